//! The last line of a simulation: what every order cost, what everybody has, and that the sum is zero.

use super::city::City;
use super::lines::micro;
use crate::core::accounts::receipt_of;
use crate::core::ledger::Account;
use protocol::units::MicroUsd;
use protocol::usage::Term;
use serde_json::{Map, Value, json};

/// The summary of a city as it is now.
pub(super) fn of(city: &City<'_>) -> Value {
    let market = city.desk.market();
    let ledger = market.ledger();
    let mut charges = Map::new();
    for (name, (lease, _)) in &city.orders {
        let Some(lease) = market.lease(*lease) else {
            continue;
        };
        let receipt = receipt_of(lease, lease.meter);
        let prepaid = receipt.term.as_ref().map_or(MicroUsd::ZERO, Term::spent);
        let amounts = receipt.amounts;
        charges.insert(
            name.clone(),
            json!({
                "compute": micro(amounts.compute.saturating_add(prepaid)),
                "storage": micro(amounts.storage),
                "up": micro(amounts.upload),
                "down": micro(amounts.download),
                "total": micro(receipt.total),
                "fee": micro(receipt.fee),
                "host": micro(receipt.host_share),
            }),
        );
    }
    let mut balances = Map::new();
    for (name, renter) in &city.renters {
        let balance = city.desk.balance(renter.id);
        balances.insert(
            name.clone(),
            json!({
                "available": micro(balance.available),
                "held": micro(balance.held),
                "prepaid": micro(balance.prepaid),
            }),
        );
    }
    let mut scores = Map::new();
    for host in &city.hosts {
        let earnings = city.desk.earnings(host.id);
        balances.insert(
            host.spec.id.clone(),
            json!({
                "pending": micro(earnings.pending),
                "available": micro(earnings.available),
                "bond": micro(earnings.bond),
                "paid_out": micro(earnings.paid_out),
            }),
        );
        let score = f64::from(city.desk.score_ppm(host.id)) / 1e6;
        scores.insert(host.spec.id.clone(), json!(score));
    }
    balances.insert(
        "broker".to_owned(),
        json!({
            "fee": micro(ledger.balance(&Account::BrokerFee)),
            "clawback": micro(ledger.balance(&Account::BrokerClawback)),
            "goodwill": micro(ledger.balance(&Account::BrokerGoodwill)),
        }),
    );
    let sum: i128 = ledger.iter().map(|(_, balance)| i128::from(balance)).sum();
    json!({ "summary": {
        "charges": charges,
        "balances": balances,
        "scores": scores,
        "entries": city.entries,
        "sum": i64::try_from(sum).unwrap_or(i64::MAX),
    } })
}
