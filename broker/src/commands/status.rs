//! `feira-broker status`: what the running broker is doing.

use super::Place;
use crate::admin::shown::local;
use crate::admin::wire::{AdminReply, AdminRequest, Status};
use protocol::operator::{Exit, Failure, counted};
use protocol::units::BasisPoints;
use std::collections::BTreeMap;

/// Prints it.
pub(super) fn status(place: &Place) -> Result<Exit, Failure> {
    let AdminReply::Status(status) = place.ask(&AdminRequest::Status)? else {
        return Err(place.unexpected());
    };
    if place.printer.is_json() {
        place
            .printer
            .document(&serde_json::json!({ "schema": "feira.broker-status/1", "status": status }));
        return Ok(Exit::Done);
    }
    for (what, value) in lines(&status) {
        place.printer.line(&format!("{what:<12}{value}"));
    }
    Ok(Exit::Done)
}

fn lines(status: &Status) -> Vec<(&'static str, String)> {
    let up = status.now.since(status.started_at).seconds();
    let mut lines = vec![
        ("broker", format!("{} ({})", status.broker, status.name)),
        (
            "running",
            format!(
                "{up}, since {}, version {}, process {}",
                local(status.started_at),
                status.version,
                status.pid
            ),
        ),
        ("fee", BasisPoints(status.fee_bps).to_string()),
    ];
    lines.extend(
        status
            .addresses
            .iter()
            .map(|address| ("address", address.clone())),
    );
    lines.extend([
        ("metrics", status.metrics.clone()),
        ("connections", status.connections.to_string()),
        (
            "hosts",
            format!(
                "{}, with {} offers that can be leased now",
                status.hosts, status.offers
            ),
        ),
        ("leases", by_word(&status.leases)),
        ("renters", status.renters.to_string()),
        ("journal", counted(status.last_event, "event")),
        ("refused", by_word(&status.refusals)),
    ]);
    lines
}

fn by_word(counts: &BTreeMap<String, u64>) -> String {
    let shown: Vec<String> = counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(what, count)| format!("{count} {}", what.replace('_', " ")))
        .collect();
    if shown.is_empty() {
        "none".to_owned()
    } else {
        shown.join(", ")
    }
}
