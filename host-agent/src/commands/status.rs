//! `feira-host status`: what the running agent is doing.

mod gpus;

use super::{Place, offers};
use crate::admin::wire::{AdminReply, AdminRequest, OfferRow, Status};
use protocol::operator::{Exit, Failure, usd};
use protocol::units::Bytes;

/// Shows engine, offers, leases and brokers.
pub(super) fn status(place: &Place) -> Result<Exit, Failure> {
    let status = match place.ask(&AdminRequest::Status)? {
        AdminReply::Status(status) => status,
        AdminReply::Leases(_)
        | AdminReply::Offers(_)
        | AdminReply::Earnings(_)
        | AdminReply::Done
        | AdminReply::Refused(_) => return Err(place.unexpected()),
    };
    if place.printer.is_json() {
        let mut document = serde_json::json!({ "schema": "feira.host-status/1" });
        if let (Some(object), Ok(serde_json::Value::Object(fields))) =
            (document.as_object_mut(), serde_json::to_value(&*status))
        {
            object.extend(fields);
        }
        place.printer.document(&document);
    } else {
        print(place, &status);
    }
    Ok(Exit::Done)
}

/// `o-5wpa…: 2 × NVIDIA GeForce RTX 4090 at $0.35/h each; interruptible from …; …; free: 1 of 2`.
fn summary(offer: &OfferRow) -> String {
    let goods = match offer.gpus {
        0 => "the machine".to_owned(),
        1 => offer.gpu_name.clone(),
        more => format!("{more} × {}", offer.gpu_name),
    };
    let each = if offer.gpus > 1 { " each" } else { "" };
    let short: String = offer.offer.chars().take(10).collect();
    let until = offer.until.as_ref();
    let until = until.map_or(String::new(), |until| format!("; promised until {until}"));
    format!(
        "{short}: {goods} at {}/h{each}; interruptible: {}; prepaid: {}{until}; free: {}",
        usd(&offer.price_usd_per_hour),
        offers::interruptible(offer),
        offers::prepaid(offer),
        offers::free(offer),
    )
}

fn print(place: &Place, status: &Status) {
    let line = |field: &str, value: &str| place.printer.line(&format!("{field:<10}{value}"));
    line("host", &status.host);
    line(
        "agent",
        &format!(
            "{}, process {}, since {}",
            status.version, status.pid, status.started_at
        ),
    );
    match &status.engine {
        Ok(engine) => line("engine", engine),
        Err(reason) => line("engine", &format!("does not answer: {reason}")),
    }
    let mut gpus = gpus::lines(&status.gpu_rows).into_iter();
    line("gpus", &gpus.next().unwrap_or_else(|| "none".to_owned()));
    gpus.for_each(|gpu| line("", &gpu));
    for said in super::health::lines(place, status) {
        line("", &said);
    }
    line("metrics", &status.metrics);
    line(
        "disk",
        &format!("{} for a new lease", Bytes(status.disk_free_bytes)),
    );
    if status.listed {
        line(
            "offers",
            &format!("{} of {} free", status.offers_free, status.offers),
        );
        for offer in &status.offered {
            line("", &summary(offer));
        }
    } else {
        line(
            "offers",
            &format!(
                "not listed; list it: {}",
                place.command("list --price 0.35")
            ),
        );
    }
    let leases: Vec<String> = status
        .leases
        .iter()
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    line(
        "leases",
        &if leases.is_empty() {
            "none".to_owned()
        } else {
            leases.join(", ")
        },
    );
    for broker in &status.brokers {
        line(
            "broker",
            &format!("{} {}", broker.broker, broker.connection),
        );
        if let Some(circuit) = &broker.circuit {
            line("", &format!("reached at {circuit}"));
        }
    }
    for (reason, count) in &status.refusals {
        line("refused", &format!("{count} {reason}"));
    }
}
