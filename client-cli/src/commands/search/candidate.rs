//! A portion of an offer as a broker found it, checked: signed by its host, for that broker, sold in that
//! portion and that way.
//!
//! Pure. What follows from the offer is worked out and not believed.

use protocol::filter::Facts;
use protocol::ids::{BrokerId, HostId};
use protocol::message::FoundOffer;
use protocol::offer::{Offer, offer_id};
use protocol::signed::Verified;
use protocol::terms::{ContractKind, Need, Prices, reserved};
use protocol::units::{MicroUsd, PricePerHour};
use protocol::verify::VerificationLevel;

/// The term that discounted rates are shown for.
pub(crate) const DAYS_SHOWN: u16 = 30;

/// A portion of an offer, and the brokers that show it.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// The offer in its newest form.
    pub offer: Verified<Offer>,
    /// How many of its GPUs; 0 for a machine without one.
    pub gpus: u16,
    /// What a GPU and hour costs in a contract of the kind that was asked for.
    pub price: PricePerHour,
    /// Whether somebody would be pushed out for it.
    pub pushes_out: bool,
    /// How probable it is, in millionths, that a lease of 24 hours is carried through.
    pub reliability: u32,
    /// How often its host fails, in failures in 10⁹ hours; 0 when nothing is known of it.
    pub hazard: u32,
    /// How far a broker has proof of the hardware.
    pub verification: VerificationLevel,
    /// Through whom it can be rented, in configured order.
    pub brokers: Vec<BrokerId>,
}

impl Candidate {
    /// Whose it is.
    pub(crate) fn host(&self) -> HostId {
        HostId::from(self.offer.signer())
    }

    /// Prices of the whole portion, in a contract of the kind that was asked for.
    pub(crate) fn prices(&self) -> Prices {
        let ask = self.offer.body().prices;
        Prices {
            compute: self.price,
            ..ask
        }
        .of_gpus(self.gpus)
    }

    /// What an hour of it costs all in.
    pub(crate) fn hourly(&self, need: Need) -> MicroUsd {
        self.prices().all_in_hour(need)
    }

    /// What it has in the fields of a search; priced as its kind is.
    pub(crate) fn facts(&self) -> Facts {
        let mut offer = self.offer.body().clone();
        offer.prices.compute = self.price;
        Facts::of(self.host(), &offer, self.gpus)
            .with_reliability(self.reliability)
            .with_verification(&self.verification)
    }
}

/// A portion of an offer, if its host signed the offer, it is for this broker, and it is sold so.
pub(super) fn open(
    broker: BrokerId,
    portion: &FoundOffer,
    kind: ContractKind,
) -> Result<Candidate, String> {
    let offer = portion
        .offer
        .verify()
        .map_err(|error| format!("does not verify ({error})"))?;
    let host = HostId::from(offer.signer());
    let body = offer.body();
    if body.id != offer_id(host, &body.share.resources) || !body.prices.are_sane() {
        return Err("contradicts itself".to_owned());
    }
    if !body.brokers.contains(&broker) {
        return Err("is for other brokers".to_owned());
    }
    if !body.is_sold_as(portion.gpus) {
        return Err("is not sold in that portion".to_owned());
    }
    let price =
        price_of(body, portion, kind).ok_or_else(|| format!("is not sold {}", kind.word()))?;
    Ok(Candidate {
        offer,
        gpus: portion.gpus,
        price,
        pushes_out: portion.pushes_out,
        reliability: portion.reliability.min(1_000_000),
        hazard: portion.hazard,
        verification: portion.verification.clone(),
        brokers: vec![broker],
    })
}

/// What a GPU and hour costs in a contract of this kind; nothing when none is sold. What follows from the offer
/// is worked out and not believed: only what bids there are is the broker's to say.
fn price_of(offer: &Offer, portion: &FoundOffer, kind: ContractKind) -> Option<PricePerHour> {
    let ask = offer.prices.compute;
    match kind {
        ContractKind::OnDemand | ContractKind::Bid => Some(ask),
        ContractKind::Interruptible => Some(portion.price.max(offer.sales.floor?)),
        ContractKind::Reserved => {
            let most = offer.sales.discount_max?;
            Some(reserved::quote(ask, DAYS_SHOWN, most).hourly)
        }
    }
}
