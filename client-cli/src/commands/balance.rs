//! `feira balance`: one's money with each broker, and every movement of it.

mod statement;

use crate::args::BalanceArgs;
use crate::context::{Context, unexpected};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::{Column, Listing, Row};
use crate::session::Broker;
use crate::view::lasts;
use protocol::ids::RenterId;
use protocol::message::{BrokerReply, BrokerRequest};
use protocol::usage::Balance;
use serde_json::json;

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &BalanceArgs) -> Result<Exit, Failure> {
    if arguments.statement {
        return statement::run(context).await;
    }
    let renter = RenterId::from(context.identity()?.public());
    let session = context.session().await?;
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    for (id, answer) in session.ask_all(&BrokerRequest::Balance).await {
        match (answer, session.broker(id)) {
            (Ok(BrokerReply::Balance(balance)), Some(broker)) => {
                rows.push(row(renter, broker, &balance));
            }
            (Ok(_), _) => failures.push(unexpected(id)),
            (Err(failure), _) => failures.push(failure),
        }
    }
    if rows.is_empty()
        && let Some(failure) = failures.pop()
    {
        return Err(failure);
    }
    for failure in failures {
        context.printer.warn(failure.what());
    }
    context.printer.list(&listing(rows))?;
    context.printer.hint(&format!(
        "\nTo top up, give the operator of a broker your renter id:\n  {renter}"
    ));
    Ok(Exit::Done)
}

fn listing(rows: Vec<Row>) -> Listing {
    Listing {
        schema: "feira.balances/1",
        columns: vec![
            Column::left("BROKER"),
            Column::right("AVAILABLE"),
            Column::right("HELD"),
            Column::right("PREPAID"),
            Column::right("SPENT").rank(1),
            Column::right("$/H NOW").rank(2),
            Column::left("LASTS").rank(3),
        ],
        rows,
        empty: "No broker answered.".to_owned(),
        next: None,
    }
}

fn row(renter: RenterId, broker: &Broker, balance: &Balance) -> Row {
    let money = balance.available.saturating_add(balance.held);
    let lasts = lasts(money, balance.burn_per_hour);
    Row {
        id: broker.id.to_string(),
        cells: vec![
            broker.title(),
            balance.available.to_string(),
            balance.held.to_string(),
            balance.prepaid.to_string(),
            balance.spent.to_string(),
            balance.burn_per_hour.to_string(),
            lasts.map_or_else(|| "-".to_owned(), |time| time.to_string()),
        ],
        json: json!({
            "broker": broker.id.to_string(),
            "broker_name": broker.info.name.as_str(),
            "renter": renter.to_string(),
            "available_usd": balance.available.decimal(),
            "held_usd": balance.held.decimal(),
            "prepaid_usd": balance.prepaid.decimal(),
            "spent_usd": balance.spent.decimal(),
            "burn_usd_per_hour": balance.burn_per_hour.decimal(),
            "lasts_seconds": lasts.map(|time| time.0),
        }),
    }
}
