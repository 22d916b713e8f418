//! `feira-host leases`: the leases on this machine, from the agent that runs or from its journal.

use super::Place;
use crate::admin::wire::{AdminReply, AdminRequest, LeaseRow};
use crate::agent::lease_row;
use crate::journal;
use protocol::operator::{Align, Exit, Failure, usd};
use protocol::units::{Bytes, Seconds};

/// Lists every lease.
pub(super) fn leases(place: &Place) -> Result<Exit, Failure> {
    let rows = match place.ask_if_running(&AdminRequest::Leases)? {
        Some(AdminReply::Leases(rows)) => rows,
        Some(
            AdminReply::Status(_)
            | AdminReply::Offers(_)
            | AdminReply::Earnings(_)
            | AdminReply::Done
            | AdminReply::Refused(_),
        ) => return Err(place.unexpected()),
        None => from_journal(place)?,
    };
    if place.printer.is_json() {
        place
            .printer
            .document(&serde_json::json!({ "schema": "feira.host-leases/1", "items": rows }));
    } else if rows.is_empty() {
        place.printer.line("no leases");
    } else {
        print(place, &rows);
    }
    Ok(Exit::Done)
}

fn from_journal(place: &Place) -> Result<Vec<LeaseRow>, Failure> {
    place
        .printer
        .note("No agent runs; this is what its journal says.");
    let recovered =
        journal::peek(place.folder.path()).map_err(|error| place.journal_failed(&error))?;
    let records = recovered
        .map(|recovered| recovered.records)
        .unwrap_or_default();
    Ok(records.iter().map(lease_row).collect())
}

/// With what is to come: the end of a notice, or of a promise.
fn state(row: &LeaseRow) -> String {
    let state = &row.state;
    match (&row.stops_at, &row.promised_until) {
        (Some(at), _) => format!("{state}, stops {at}"),
        (None, Some(until)) if state != "gone" => format!("{state}, promised until {until}"),
        (None, Some(_) | None) => state.clone(),
    }
}

fn print(place: &Place, rows: &[LeaseRow]) {
    let columns = [
        ("lease", Align::Left),
        ("name", Align::Left),
        ("kind", Align::Left),
        ("state", Align::Left),
        ("ran", Align::Right),
        ("an hour", Align::Right),
        ("up", Align::Right),
        ("down", Align::Right),
        ("holds", Align::Left),
    ];
    let cells = rows.iter().map(|row| {
        vec![
            row.lease.chars().take(10).collect(),
            row.name.clone(),
            row.kind.clone(),
            state(row),
            Seconds(row.running_s).to_string(),
            usd(&row.price_usd_per_hour),
            Bytes(row.uploaded_bytes).to_string(),
            Bytes(row.downloaded_bytes).to_string(),
            row.resources.join(", "),
        ]
    });
    place.printer.table(&columns, &cells.collect::<Vec<_>>());
}
