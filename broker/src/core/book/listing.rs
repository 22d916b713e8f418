//! An offer in the book, with what each of its portions is.
//!
//! Must not know other offers, or what can be had.

use super::index::Slot;
use crate::core::available::Available;
use protocol::filter::Facts;
use protocol::ids::{Digest, HostId};
use protocol::message::FoundOffer;
use protocol::offer::Offer;
use protocol::signed::Verified;
use protocol::units::Timestamp;

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
}

impl Listing {
    pub(super) fn new(host: HostId, verified: Verified<Offer>) -> Self {
        let offer = verified.body();
        let portions = offer.counts().map(|gpus| Facts::of(host, offer, gpus));
        Self {
            portions: portions.collect(),
            slots: Vec::new(),
            hazard: 0,
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
        }
    }

    /// How often its host fails, in failures in 10⁹ hours; 0 when nobody said.
    pub(super) const fn hazard(&self) -> u32 {
        self.hazard
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
