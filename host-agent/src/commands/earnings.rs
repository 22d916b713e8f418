//! `feira-host earnings`: what each broker owes this host, asked of each.

use super::{Place, block_on};
use crate::admin::wire::{AdminReply, AdminRequest, EarningsRow};
use crate::agent::ask_earnings;
use crate::config::Config;
use protocol::ids::PublicKey;
use protocol::net::{Identity, Node, NodeConfig};
use protocol::operator::{Align, Exit, Failure, chain, usd};
use protocol::units::Seconds;
use std::time::Duration;

const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// Shows the money with each broker.
pub(super) fn earnings(place: &Place) -> Result<Exit, Failure> {
    let rows = match place.ask_if_running(&AdminRequest::Earnings)? {
        Some(AdminReply::Earnings(rows)) => rows,
        Some(
            AdminReply::Status(_)
            | AdminReply::Leases(_)
            | AdminReply::Offers(_)
            | AdminReply::Done
            | AdminReply::Refused(_),
        ) => return Err(place.unexpected()),
        None => block_on(without_agent(&place.config()?, &place.identity()?))??,
    };
    if place.printer.is_json() {
        place
            .printer
            .document(&serde_json::json!({ "schema": "feira.host-earnings/1", "items": rows }));
    } else {
        print(place, &rows);
    }
    let answered = rows.is_empty() || rows.iter().any(|row| row.earned.is_ok());
    Ok(if answered {
        Exit::Done
    } else {
        Exit::Unreachable
    })
}

async fn without_agent(config: &Config, identity: &Identity) -> Result<Vec<EarningsRow>, Failure> {
    let (node, _events) = Node::start(identity, NodeConfig::host(Vec::new()))
        .await
        .map_err(|error| Failure::new(Exit::Failed, chain(&error)))?;
    for known in &config.brokers {
        let key = PublicKey::from(known.broker);
        // One that cannot be reached is an answer of its own below.
        let _ = node
            .connect(key, known.addresses.clone(), CONNECT_DEADLINE)
            .await;
    }
    let brokers = config.brokers.iter().map(|known| known.broker).collect();
    Ok(ask_earnings(&node, brokers).await)
}

fn print(place: &Place, rows: &[EarningsRow]) {
    if rows.is_empty() {
        place.printer.line("no brokers are set");
        return;
    }
    let columns = [
        ("broker", Align::Left),
        ("pending", Align::Right),
        ("available", Align::Right),
        ("paid out", Align::Right),
        ("bond", Align::Right),
        ("fees", Align::Right),
        ("leases", Align::Right),
        ("ran", Align::Right),
    ];
    let cells = rows.iter().map(|row| {
        let broker = row.broker.chars().take(10).collect();
        match &row.earned {
            Ok(earned) => vec![
                broker,
                usd(&earned.pending_usd),
                usd(&earned.available_usd),
                usd(&earned.paid_out_usd),
                usd(&earned.bond_usd),
                usd(&earned.fees_usd),
                earned.leases.to_string(),
                Seconds(earned.running_s).to_string(),
            ],
            Err(reason) => vec![broker, reason.clone()],
        }
    });
    place.printer.table(&columns, &cells.collect::<Vec<_>>());
}
