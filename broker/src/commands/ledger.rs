//! `feira-broker ledger check` and `replay`: whether the books balance. Nothing is changed.

use super::Place;
use crate::admin::wire::{AdminReply, AdminRequest, LedgerView};
use crate::store;
use protocol::operator::{Exit, Failure, counted};

/// Adds up every entry, and fails when the books do not balance. The broker that runs is asked, so that its
/// memory is compared with the disk; when none runs, the journal is read from its first event.
pub(super) fn check(place: &Place) -> Result<Exit, Failure> {
    let (view, by) = match place.ask_if_running(&AdminRequest::LedgerCheck)? {
        Some(AdminReply::Ledger(view)) => (view, "the running broker"),
        Some(_) => return Err(place.unexpected()),
        None => (read(place)?, "reading the journal, no broker runs"),
    };
    conclude(place, &view, by)
}

/// Reads the journal from its first event, whether a broker runs or not.
pub(super) fn replay(place: &Place) -> Result<Exit, Failure> {
    let view = read(place)?;
    conclude(place, &view, "replaying the journal from its first event")
}

fn conclude(place: &Place, view: &LedgerView, by: &str) -> Result<Exit, Failure> {
    if place.printer.is_json() {
        place
            .printer
            .document(&serde_json::json!({ "schema": "feira.ledger/1", "ledger": view }));
    } else {
        print(place, view, by);
    }
    Ok(if view.problems.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    })
}

fn read(place: &Place) -> Result<LedgerView, Failure> {
    let report = store::check(place.folder.path()).map_err(|error| place.store_failed(&error))?;
    Ok(LedgerView::from(report))
}

fn print(place: &Place, view: &LedgerView, by: &str) {
    for (kind, amount) in &view.by_kind_usd {
        place.printer.line(&format!("{kind:<18}{amount:>20} USD"));
    }
    for problem in &view.problems {
        place.printer.line(&format!("wrong: {problem}"));
    }
    let verdict = if view.problems.is_empty() {
        "the books balance"
    } else {
        "the books do not balance"
    };
    place.printer.line(&format!(
        "{verdict}: {} in {}, {}, sum {} (added up by {by})",
        if view.entries == 1 {
            "1 entry".to_owned()
        } else {
            format!("{} entries", view.entries)
        },
        counted(view.last_event, "event"),
        counted(view.accounts, "account"),
        view.sum_micro_usd
    ));
}
