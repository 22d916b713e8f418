//! `feira-host checked`: the owner's word that a GPU is sound. The agent tests it before anybody gets it.

use super::Place;
use crate::admin::wire::{AdminReply, AdminRequest};
use protocol::operator::{Exit, Failure};

/// Tells the running agent.
pub(super) fn checked(place: &Place, gpu: &str) -> Result<Exit, Failure> {
    match place.ask(&AdminRequest::Checked(gpu.to_owned()))? {
        AdminReply::Done => {
            if place.printer.is_json() {
                place
                    .printer
                    .document(&serde_json::json!({ "schema": "feira.host-checked/1", "gpu": gpu }));
            } else {
                let status = place.command("status");
                place.printer.line(&format!(
                    "{gpu} is tested now, and leased again when it passes: see {status}"
                ));
            }
            Ok(Exit::Done)
        }
        AdminReply::Status(_)
        | AdminReply::Leases(_)
        | AdminReply::Offers(_)
        | AdminReply::Earnings(_)
        | AdminReply::Refused(_) => Err(place.unexpected()),
    }
}
