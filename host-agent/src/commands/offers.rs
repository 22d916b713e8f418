//! `feira-host show-offer`: the offers, exactly as they are signed, from the agent that runs or from what it
//! would say.

use super::{Place, block_on};
use crate::admin::wire::{AdminReply, AdminRequest, OfferRow};
use crate::agent::offer_row;
use protocol::ids::HostId;
use protocol::operator::{Exit, Failure, usd};
use protocol::units::{Bytes, Seconds};

/// Shows every offer.
pub(super) fn show(place: &Place) -> Result<Exit, Failure> {
    let rows = match place.ask_if_running(&AdminRequest::Offers)? {
        Some(AdminReply::Offers(rows)) => rows,
        Some(
            AdminReply::Status(_)
            | AdminReply::Leases(_)
            | AdminReply::Earnings(_)
            | AdminReply::Done
            | AdminReply::Refused(_),
        ) => return Err(place.unexpected()),
        None => without_agent(place)?,
    };
    if rows.is_empty() {
        return Err(place.not_listed());
    }
    print(place, &rows, Depth::Signed);
    Ok(Exit::Done)
}

fn without_agent(place: &Place) -> Result<Vec<OfferRow>, Failure> {
    let listing = place.listing()?.ok_or_else(|| place.not_listed())?;
    let (config, identity) = (place.config()?, place.identity()?);
    let host = HostId::from(identity.public());
    let seen = block_on(place.look(&config, host, listing.network))??;
    let listed = place.offers_of(host, &seen.machine, &listing, &config)?;
    Ok(listed
        .iter()
        .map(|listed| offer_row(listed, Some("no agent runs".to_owned())))
        .collect())
}

/// How much of an offer people are shown; programs get all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// What it says.
    Said,
    /// What it says, and what is signed for it.
    Signed,
}

/// Prints offers, one field a line: there are few, and each is a promise.
pub(super) fn print(place: &Place, rows: &[OfferRow], depth: Depth) {
    if place.printer.is_json() {
        place
            .printer
            .document(&serde_json::json!({ "schema": "feira.host-offers/1", "items": rows }));
        return;
    }
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            place.printer.line("");
        }
        let signed = match depth {
            Depth::Said => Vec::new(),
            Depth::Signed => signed_fields(row),
        };
        for (field, value) in fields(row).into_iter().chain(signed) {
            place.printer.line(&format!("{field:<14}{value}"));
        }
    }
}

fn fields(row: &OfferRow) -> Vec<(&'static str, String)> {
    let longest = row.duration_max_s;
    let longest = longest.map_or("no limit".to_owned(), |longest| {
        Seconds(longest).to_string()
    });
    let (up, down) = (usd(&row.upload_usd_per_gb), usd(&row.download_usd_per_gb));
    let taken = row.taken_by.as_ref();
    vec![
        ("offer", row.offer.clone()),
        ("sells", row.resources.join(", ")),
        ("gpu_name", row.gpu_name.clone()),
        ("cpu", format!("{} cores", millicores(row.cpu_millicores))),
        ("ram", Bytes(row.ram_bytes).to_string()),
        ("disk", format!("up to {}", Bytes(row.disk_max_bytes))),
        ("price", format!("{}/h", usd(&row.price_usd_per_hour))),
        (
            "storage",
            format!("{}/GB-month", usd(&row.storage_usd_per_gb_month)),
        ),
        ("traffic", format!("{up}/GB up, {down}/GB down")),
        ("starts within", Seconds(row.start_within_s).to_string()),
        ("longest", longest),
        ("network", row.network.clone()),
        (
            "free",
            taken.map_or("yes".to_owned(), |reason| format!("no: {reason}")),
        ),
    ]
}

/// What every order for it agrees to.
fn signed_fields(row: &OfferRow) -> Vec<(&'static str, String)> {
    vec![
        ("terms", row.terms.clone()),
        ("signed bytes", row.signed_bytes.clone()),
    ]
}

fn millicores(thousandths: u32) -> String {
    let (whole, rest) = (thousandths / 1000, thousandths % 1000);
    if rest == 0 {
        whole.to_string()
    } else {
        format!("{whole}.{rest:03}")
    }
}
