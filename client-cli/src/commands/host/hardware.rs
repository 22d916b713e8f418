//! How far a host's hardware is proved, offer by offer, as its brokers say: with the reason where it is not.

use crate::commands::search::verification_json;
use crate::context::Context;
use crate::failure::Failure;
use crate::view::rfc3339;
use audit::class;
use protocol::bounded::List;
use protocol::filter::Filter;
use protocol::ids::{BrokerId, HostId, OfferId};
use protocol::message::{BrokerReply, BrokerRequest, FOUND_MAX, Search};
use protocol::offer::Offer;
use protocol::terms::{ContractKind, Need};
use protocol::verify::VerificationLevel;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How an offer stands with one broker.
#[derive(Debug)]
pub(super) struct Hardware {
    broker: BrokerId,
    offer: Offer,
    level: VerificationLevel,
}

/// All that a host offers now, each offer once for each broker.
pub(super) async fn of(context: &Context, host: HostId) -> Result<Vec<Hardware>, Failure> {
    let Ok(filter) = format!("host_id={host} partition=any").parse::<Filter>() else {
        return Ok(Vec::new());
    };
    let search = Search {
        filter,
        sort: List::default(),
        need: Need::default(),
        kind: ContractKind::OnDemand,
        job: None,
        limit: u16::try_from(FOUND_MAX).unwrap_or(u16::MAX),
    };
    let session = context.session().await?;
    let mut known: BTreeMap<(BrokerId, OfferId), Hardware> = BTreeMap::new();
    for (broker, answer) in session.ask_all(&BrokerRequest::Search(search)).await {
        let Ok(BrokerReply::Found(found)) = answer else {
            continue;
        };
        for portion in &found.offers {
            let Ok(offer) = portion.offer.verify() else {
                continue;
            };
            if HostId::from(offer.signer()) == host {
                let offer = offer.into_body();
                let level = portion.verification.clone();
                known.entry((broker, offer.id)).or_insert(Hardware {
                    broker,
                    offer,
                    level,
                });
            }
        }
    }
    Ok(known.into_values().collect())
}

/// What is said of one.
pub(super) fn line(hardware: &Hardware) -> (String, String) {
    let Hardware {
        broker,
        offer,
        level,
    } = hardware;
    let said = match level {
        VerificationLevel::Verified { at, .. } => format!("verified, {}", rfc3339(*at)),
        VerificationLevel::Withdrawn { reason, at } => {
            format!("not verified since {}: {reason}", rfc3339(*at))
        }
        VerificationLevel::Unverified => match unprovable(offer) {
            Some(why) => format!("not verified: {why}"),
            None => "not verified: it was not put to the proof yet".to_owned(),
        },
    };
    let text = format!("{} ({}): {said}", model(offer), broker.short());
    (format!("offer {}", offer.id.short()), text)
}

/// The same for programs.
pub(super) fn json(all: &[Hardware]) -> Value {
    let one = |hardware: &Hardware| {
        json!({
            "broker": hardware.broker.to_string(),
            "offer": hardware.offer.id.to_string(),
            "verification": verification_json(&hardware.level),
            "unprovable": unprovable(&hardware.offer),
        })
    };
    all.iter().map(one).collect()
}

/// Why no class of this program fits the offer. A broker may have classes of its own.
fn unprovable(offer: &Offer) -> Option<String> {
    let (name, memory) = (model(offer), memory(offer));
    class::find(&name, memory)
        .err()
        .map(|error| error.to_string())
}

fn model(offer: &Offer) -> String {
    match (offer.share.gpus.first(), &offer.partition) {
        (Some(gpu), Some(slice)) => format!("{} MIG {}", gpu.model, slice.profile),
        (Some(gpu), None) => gpu.model.to_string(),
        (None, _) => offer.machine.cpu_model.to_string(),
    }
}

fn memory(offer: &Offer) -> protocol::units::Bytes {
    let slice = offer.partition.as_ref().map(|slice| slice.vram);
    let gpu = offer.share.gpus.first().map(|gpu| gpu.vram);
    slice.or(gpu).unwrap_or(offer.share.ram)
}
