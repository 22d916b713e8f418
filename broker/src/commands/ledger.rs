//! `feira-broker ledger check`: adds up every entry. The broker that runs is asked; when none runs, the
//! journal is read, and changed in nothing.

use super::Place;
use super::asking::unexpected;
use crate::admin::wire::{AdminReply, AdminRequest, LedgerView};
use crate::exit::{Exit, Failure};
use crate::store;

/// Adds up, and fails when the books do not balance.
pub(super) fn check(place: &Place) -> Result<Exit, Failure> {
    let (view, by) = match place.ask_if_running(&AdminRequest::LedgerCheck)? {
        Some(AdminReply::Ledger(view)) => (view, "the running broker"),
        Some(_) => return Err(unexpected()),
        None => (read(place)?, "the journal, no broker runs"),
    };
    if place.printer.is_json() {
        place.printer.document(&serde_json::json!({ "schema": "feira.ledger/1", "ledger": view }));
    } else {
        print(place, &view, by);
    }
    Ok(if view.problems.is_empty() { Exit::Done } else { Exit::Failed })
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
    let verdict = if view.problems.is_empty() { "the books balance" } else { "the books do not balance" };
    place.printer.line(&format!(
        "{verdict}: {} entries in {} events, {} accounts, sum {} (added up by {by})",
        view.entries, view.last_event, view.accounts, view.sum_micro_usd
    ));
}
