//! `feira-broker verify`: hardware is put to the proof as soon as it is idle, whatever the schedule says.

use super::Place;
use crate::admin::wire::{AdminReply, AdminRequest};
use crate::args::Verify;
use protocol::operator::{Exit, Failure, counted};

/// Asks for it; what comes of it stands in `feira-broker hosts`.
pub(super) fn verify(place: &Place, typed: &Verify) -> Result<Exit, Failure> {
    let request = match (typed.what.parse().ok(), typed.what.parse().ok()) {
        (None, None) => {
            let what = format!(
                "'{}' is neither the id of a host nor that of an offer",
                typed.what
            );
            return Err(Failure::new(Exit::Usage, what)
                .help("whole ids stand in: feira-broker hosts --json"));
        }
        (host, offer) => AdminRequest::Verify { host, offer },
    };
    let AdminReply::Verifying(offers) = place.ask(&request)? else {
        return Err(place.unexpected());
    };
    if place.printer.is_json() {
        place
            .printer
            .document(&serde_json::json!({ "schema": "feira.broker-verify/1", "offers": offers }));
        return Ok(Exit::Done);
    }
    let count = u64::try_from(offers.len()).unwrap_or(u64::MAX);
    place.printer.line(&format!(
        "{} put to the proof as soon as idle",
        counted(count, "offer")
    ));
    place.printer.note("What came of it: feira-broker hosts");
    Ok(Exit::Done)
}
