//! An offer in the book, with what each of its portions is.
//!
//! Must not know other offers, or what can be had.

use super::index::Slot;
use crate::core::available::Available;
use mig::board::{Cut, find_board};
use mig::chip::Chip;
use protocol::filter::Facts;
use protocol::ids::{Digest, HostId};
use protocol::message::FoundOffer;
use protocol::offer::Offer;
use protocol::signed::Verified;
use protocol::units::Timestamp;
use protocol::verify::VerificationLevel;

/// An offer in the book.
#[derive(Debug, Clone)]
pub struct Listing {
    pub(super) verified: Verified<Offer>,
    pub(super) host: HostId,
    /// [`Offer::terms_digest`]: every order that names the offer is held against it.
    terms: Option<Digest>,
    /// Of each number of GPUs that is sold together.
    pub(super) portions: Vec<Facts>,
    /// The rows of these in the index.
    pub(super) slots: Vec<Slot>,
    /// How often its host fails, in failures in 10⁹ hours; 0 when nobody said.
    pub(super) hazard: u32,
    /// How far its hardware is proved; not at all when nobody said.
    pub(super) verification: VerificationLevel,
    /// The chip that its slices are of, if it sells slices of one that is known.
    chip: Option<&'static Chip>,
}

impl Listing {
    pub(super) fn new(host: HostId, verified: Verified<Offer>) -> Self {
        let offer = verified.body();
        let portions = offer.counts().map(|gpus| Facts::of(host, offer, gpus));
        Self {
            portions: portions.collect(),
            slots: Vec::new(),
            hazard: 0,
            verification: VerificationLevel::Unverified,
            chip: chip_of(offer),
            // What was decoded can be encoded; if not, nobody can have agreed to it.
            terms: offer.terms_digest().ok(),
            verified,
            host,
        }
    }

    pub(super) fn found(&self, facts: &Facts, available: Option<Available>) -> FoundOffer {
        let ask = self.offer().prices.compute;
        FoundOffer {
            offer: self.verified.signed().clone(),
            gpus: facts.gpus(),
            price: available.map_or(ask, |available| available.price),
            pushes_out: available.is_some_and(|available| available.pushes_out),
            reliability: facts.reliability(),
            hazard: self.hazard,
            verification: self.verification.clone(),
        }
    }

    /// How often its host fails, in failures in 10⁹ hours; 0 when nobody said.
    pub(super) const fn hazard(&self) -> u32 {
        self.hazard
    }

    /// The chip that its slices are of, if it sells slices of one that is known.
    #[must_use]
    pub(in crate::core) const fn chip(&self) -> Option<&'static Chip> {
        self.chip
    }

    /// How far its hardware is proved.
    #[must_use]
    pub const fn verification(&self) -> &VerificationLevel {
        &self.verification
    }

    /// The offer.
    #[must_use]
    pub const fn offer(&self) -> &Offer {
        self.verified.body()
    }

    /// What a renter agrees to who orders it.
    #[must_use]
    pub const fn terms(&self) -> Option<Digest> {
        self.terms
    }

    /// So many GPUs of it, if they are sold together.
    pub(in crate::core) fn facts(&self, gpus: u16) -> Option<&Facts> {
        self.portions.iter().find(|facts| facts.gpus() == gpus)
    }

    /// The rows of its portions in the index.
    pub(super) fn rows(&self) -> impl Iterator<Item = (Slot, &Facts)> {
        self.slots.iter().copied().zip(&self.portions)
    }

    /// The offer as its host signed it.
    #[must_use]
    pub const fn verified(&self) -> &Verified<Offer> {
        &self.verified
    }

    /// Whose it is.
    #[must_use]
    pub const fn host(&self) -> HostId {
        self.host
    }

    /// When it is gone, unless it is announced again.
    #[must_use]
    pub const fn expires(&self) -> Timestamp {
        self.verified.header().expires
    }

    pub(super) fn is_fresh(&self, now: Timestamp) -> bool {
        self.expires() > now
    }
}

fn chip_of(offer: &Offer) -> Option<&'static Chip> {
    let gpu = offer
        .share
        .gpus
        .first()
        .filter(|_| offer.partition.is_some())?;
    match &find_board(&gpu.model, gpu.vram.0)?.cut {
        Cut::Known(chip) => Some(chip),
        Cut::Named { .. } => None,
    }
}
