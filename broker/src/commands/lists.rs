//! `feira-broker accounts | hosts | leases`: lists of the running broker, one record a line.

use super::Place;
use crate::admin::proofs::ProofView;
use crate::admin::shown::local;
use crate::admin::wire::{AdminReply, AdminRequest};
use protocol::ids::HostId;
use protocol::operator::Align::{self, Left, Right};
use protocol::operator::{Exit, Failure};
use serde::Serialize;
use std::collections::BTreeSet;

/// What each renter has.
pub(super) fn accounts(place: &Place) -> Result<Exit, Failure> {
    let AdminReply::Accounts(rows) = place.ask(&AdminRequest::Accounts)? else {
        return Err(place.unexpected());
    };
    let columns = [
        ("renter", Left),
        ("available", Right),
        ("held", Right),
        ("spent", Right),
    ];
    // The whole id: it is what `deposit` wants.
    print(
        place,
        "feira.accounts/1",
        "no renter has an account yet",
        &columns,
        &rows,
        |row| {
            let money = [row.available, row.held, row.spent].map(|amount| amount.to_string());
            std::iter::once(row.renter.to_string())
                .chain(money)
                .collect()
        },
    );
    Ok(Exit::Done)
}

/// Which hosts are heard.
pub(super) fn hosts(place: &Place) -> Result<Exit, Failure> {
    let AdminReply::Hosts(rows) = place.ask(&AdminRequest::Hosts)? else {
        return Err(place.unexpected());
    };
    let columns = [
        ("host", Left),
        ("connected", Left),
        ("heard", Left),
        ("offers", Right),
        ("leases", Right),
        ("pending", Right),
        ("proof", Left),
        ("suspended", Left),
    ];
    print(
        place,
        "feira.hosts/1",
        "no host is heard",
        &columns,
        &rows,
        |row| {
            vec![
                row.host.short(),
                if row.connected { "yes" } else { "no" }.to_owned(),
                row.heard_at.map_or_else(|| "-".to_owned(), local),
                row.offers.to_string(),
                row.leases.to_string(),
                row.pending.to_string(),
                proof(&row.proofs),
                row.suspended.clone().unwrap_or_else(|| "-".to_owned()),
            ]
        },
    );
    Ok(Exit::Done)
}

/// How the offers of a host stand with proofs: each level once, with the reasons.
fn proof(proofs: &[ProofView]) -> String {
    let words = proofs
        .iter()
        .map(|proof| match (&proof.reason, proof.under_way) {
            (_, true) => "under way".to_owned(),
            (Some(reason), _) => format!("{}: {reason}", proof.level),
            (None, _) => proof.level.clone(),
        });
    let words: BTreeSet<String> = words.collect();
    if words.is_empty() {
        return "-".to_owned();
    }
    words.into_iter().collect::<Vec<_>>().join("; ")
}

/// Which leases there are.
pub(super) fn leases(place: &Place, all: bool) -> Result<Exit, Failure> {
    let AdminReply::Leases(rows) = place.ask(&AdminRequest::Leases { all })? else {
        return Err(place.unexpected());
    };
    let columns = [
        ("lease", Left),
        ("name", Left),
        ("renter", Left),
        ("host", Left),
        ("phase", Left),
        ("ran", Right),
        ("charged", Right),
        ("held", Right),
    ];
    let none = if all {
        "there was no lease yet"
    } else {
        "no lease is open; --all shows those that are over"
    };
    print(
        place,
        "feira.broker-leases/1",
        none,
        &columns,
        &rows,
        |row| {
            vec![
                row.lease.short(),
                row.name.clone(),
                row.renter.short(),
                row.host
                    .as_deref()
                    .map_or_else(|| "-".to_owned(), short_host),
                row.phase.clone(),
                row.running_s.to_string(),
                row.charged.to_string(),
                row.held.to_string(),
            ]
        },
    );
    Ok(Exit::Done)
}

/// A host's id as the other lists show it.
fn short_host(id: &str) -> String {
    id.parse()
        .map_or_else(|_| id.to_owned(), |host: HostId| host.short())
}

fn print<T: Serialize>(
    place: &Place,
    schema: &str,
    none: &str,
    columns: &[(&str, Align)],
    rows: &[T],
    cells: impl Fn(&T) -> Vec<String>,
) {
    if place.printer.is_json() {
        place
            .printer
            .document(&serde_json::json!({ "schema": schema, "items": rows }));
    } else if rows.is_empty() {
        place.printer.note(none);
    } else {
        let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
        place.printer.table(columns, &rows);
    }
}
