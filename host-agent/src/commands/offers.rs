//! `feira-host show-offer`: the offers, exactly as they are signed, from the agent that runs or from what it
//! would say.

use super::{Place, block_on};
use crate::admin::wire::{AdminReply, AdminRequest, OfferRow};
use crate::agent::{Use, offer_row};
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
    let listed = place.offers_of(host, &seen, &listing, &config)?;
    Ok(listed
        .iter()
        .map(|listed| {
            let used = Use {
                taken_by: Some("no agent runs".to_owned()),
                ..Use::default()
            };
            offer_row(listed, used)
        })
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
    let (up, down) = (usd(&row.upload_usd_per_gb), usd(&row.download_usd_per_gb));
    vec![
        ("offer", row.offer.clone()),
        ("sells", row.resources.join(", ")),
        ("gpu_name", row.gpu_name.clone()),
        ("portions", portions(row)),
        ("cpu", format!("{} cores", millicores(row.cpu_millicores))),
        ("ram", Bytes(row.ram_bytes).to_string()),
        ("disk", format!("up to {}", Bytes(row.disk_max_bytes))),
        (
            "price",
            format!("{}{}", usd(&row.price_usd_per_hour), per_hour(row)),
        ),
        ("interruptible", interruptible(row)),
        ("prepaid", prepaid(row)),
        (
            "storage",
            format!("{}/GB-month", usd(&row.storage_usd_per_gb_month)),
        ),
        ("traffic", format!("{up}/GB up, {down}/GB down")),
        ("starts within", Seconds(row.start_within_s).to_string()),
        ("durations", durations(row)),
        (
            "promised",
            row.until
                .clone()
                .unwrap_or_else(|| "no end date".to_owned()),
        ),
        ("network", row.network.clone()),
        ("free", free(row)),
    ]
}

fn per_hour(row: &OfferRow) -> &'static str {
    if row.gpus > 1 {
        "/h for each GPU"
    } else {
        "/h"
    }
}

/// Which numbers of GPUs are sold together.
fn portions(row: &OfferRow) -> String {
    if row.gpus == 0 {
        return "the machine".to_owned();
    }
    let counts: Vec<String> = row.sold_as.iter().map(ToString::to_string).collect();
    format!("{} of {} GPUs", counts.join(", "), row.gpus)
}

pub(super) fn interruptible(row: &OfferRow) -> String {
    row.floor_usd_per_hour.as_ref().map_or_else(
        || "not sold".to_owned(),
        |floor| {
            let notice = row.notice_s;
            format!("from {}{}, {notice}s notice", usd(floor), per_hour(row))
        },
    )
}

pub(super) fn prepaid(row: &OfferRow) -> String {
    row.discount_max_percent.as_ref().map_or_else(
        || "not sold".to_owned(),
        |most| format!("at most {most} % off"),
    )
}

fn durations(row: &OfferRow) -> String {
    let longest = row
        .duration_max_s
        .map(|longest| Seconds(longest).to_string());
    match (row.duration_min_s, longest) {
        (0, None) => "any".to_owned(),
        (0, Some(longest)) => format!("up to {longest}"),
        (least, None) => format!("from {}", Seconds(least)),
        (least, Some(longest)) => format!("{} to {longest}", Seconds(least)),
    }
}

/// What can be leased now, and which leases have the rest.
pub(super) fn free(row: &OfferRow) -> String {
    let all = row.resources.len();
    let held: Vec<String> = row
        .held_by
        .iter()
        .map(|(lease, count)| match count {
            1 => lease.clone(),
            more => format!("{lease} ({more})"),
        })
        .collect();
    match &row.taken_by {
        Some(reason) => format!("no: {reason}"),
        None if held.is_empty() && all == 1 => "yes".to_owned(),
        None if held.is_empty() => format!("all {all}"),
        None => format!("{} of {all}; held: {}", row.free, held.join(", ")),
    }
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
