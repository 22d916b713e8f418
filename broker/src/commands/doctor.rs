//! `feira-broker doctor`: what is right, what is doubtful, what is wrong, and how to mend it. Changes nothing.

mod checks;

use super::Place;
use protocol::operator::doctor::report;
use protocol::operator::{Exit, Failure};

/// Looks at everything; fails when something is wrong.
pub(super) fn doctor(place: &Place) -> Result<Exit, Failure> {
    let checks = checks::all(place);
    Ok(report(&place.printer, &checks, ""))
}
