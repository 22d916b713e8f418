//! Every movement of the account with each broker, as the broker signed it.

use crate::context::{Context, unexpected};
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::printer::{Column, Listing, Row};
use crate::view::{clock_time, rfc3339};
use protocol::ids::{BrokerId, PublicKey};
use protocol::message::{BrokerReply, BrokerRequest};
use protocol::usage::{AccountStatement, StatementLine};
use serde_json::json;

/// Most pages of one broker; far more than anybody reads, and a bound for a broker that never ends.
const PAGES: usize = 200;

/// Shows the statements of all brokers.
pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    let mut rows = Vec::new();
    for broker in context.session().await?.brokers() {
        for line in lines(context, broker.id).await? {
            rows.push(row(broker.id, &line));
        }
    }
    context.printer.list(&Listing {
        schema: "feira.statement/1",
        columns: vec![
            Column::left("WHEN"),
            Column::right("EVENT").rank(3),
            Column::left("WHAT"),
            Column::right("AMOUNT"),
            Column::right("AVAILABLE"),
            Column::left("LEASE").rank(2),
            Column::left("BROKER").rank(4),
        ],
        rows,
        empty: "Nothing has moved yet.".to_owned(),
        next: None,
    })?;
    Ok(Exit::Done)
}

/// All lines of one broker, page by page, each page with its signature checked.
async fn lines(context: &Context, broker: BrokerId) -> Result<Vec<StatementLine>, Failure> {
    let session = context.session().await?;
    let mut lines = Vec::new();
    let mut after = 0;
    for _ in 0..PAGES {
        let reply = session
            .ask(broker, &BrokerRequest::Statement(after))
            .await?;
        let BrokerReply::Statement(signed) = reply else {
            return Err(unexpected(broker));
        };
        let page = signed
            .verify()
            .map_err(|error| wrong(broker, &error.to_string()))?;
        if page.signer() != PublicKey::from(broker) {
            return Err(wrong(broker, "somebody else signed it"));
        }
        if PublicKey::from(page.body().renter) != context.identity()?.public() {
            return Err(wrong(broker, "it is somebody else's"));
        }
        let AccountStatement {
            lines: new, next, ..
        } = page.into_body();
        lines.extend(new.into_vec());
        match next.filter(|next| *next > after) {
            Some(next) => after = next,
            None => break,
        }
    }
    Ok(lines)
}

fn wrong(broker: BrokerId, reason: &str) -> Failure {
    let what = format!(
        "the statement of broker {} is not right: {reason}",
        broker.short()
    );
    Failure::new(Code::ReceiptWrong, what)
}

fn row(broker: BrokerId, line: &StatementLine) -> Row {
    Row {
        id: line.event.to_string(),
        cells: vec![
            clock_time(line.at),
            line.event.to_string(),
            line.what.to_string(),
            line.amount.to_string(),
            line.balance.to_string(),
            line.lease
                .map_or_else(|| "-".to_owned(), |lease| lease.short()),
            broker.short(),
        ],
        json: json!({
            "broker": broker.to_string(),
            "event": line.event,
            "at": rfc3339(line.at),
            "lease": line.lease.map(|lease| lease.to_string()),
            "what": line.what.as_str(),
            "amount_usd": line.amount.decimal(),
            "balance_usd": line.balance.decimal(),
        }),
    }
}
