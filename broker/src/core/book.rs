//! The soft book of offers: what hosts announce, until it expires, and the searches over it.
//!
//! Nothing here is ever journalled: a broker that starts anew has an empty book, and full again within one
//! period of its hosts. Must not know leases or money; who holds a resource is asked of the caller.
//!
//! A search looks at every fresh offer once: the exact number of matches and the explanation of none need
//! that anyway, and a thousand offers take some tens of microseconds. Callers see only [`Book::search`], so an
//! index can take its place.

mod admission;
mod answer;
pub mod bids;
mod by_job;
mod columns;
pub mod index;
mod names;

pub use admission::BookRefusal;

use crate::core::available::Available;
use protocol::bounded::{List, Text};
use protocol::filter::{Facts, Filter};
use protocol::ids::{BrokerId, Digest, HostId, OfferId};
use protocol::message::FoundOffer;
use protocol::offer::{OFFERS_MAX, Offer};
use protocol::reliability::Score;
use protocol::signed::Verified;
use protocol::terms::Need;
use protocol::units::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// How much a book takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BookLimits {
    /// Most hosts.
    pub hosts: usize,
    /// Most offers of all hosts together.
    pub offers: usize,
}

impl Default for BookLimits {
    fn default() -> Self {
        // Some 2 kB each: 200 MB at most, whatever strangers announce.
        Self {
            hosts: 10_000,
            offers: 100_000,
        }
    }
}

/// What an announcement did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announced {
    /// The host's list is the announced one now.
    Replaced,
    /// A newer list is there already; this one changed nothing.
    Stale,
}

/// An offer in the book.
#[derive(Debug, Clone)]
pub struct Listing {
    verified: Verified<Offer>,
    host: HostId,
    /// [`Offer::terms_digest`]: every order that names the offer is held against it.
    terms: Option<Digest>,
    /// Of each number of GPUs that is sold together.
    portions: Vec<Facts>,
    /// How often its host fails, in failures in 10⁹ hours; 0 when nobody said.
    hazard: u32,
}

impl Listing {
    fn new(host: HostId, verified: Verified<Offer>) -> Self {
        let offer = verified.body();
        let portions = offer.counts().map(|gpus| Facts::of(host, offer, gpus));
        Self {
            portions: portions.collect(),
            hazard: 0,
            // What was decoded can be encoded; if not, nobody can have agreed to it.
            terms: offer.terms_digest().ok(),
            verified,
            host,
        }
    }

    fn found(&self, facts: &Facts, available: Option<Available>) -> FoundOffer {
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
    const fn hazard(&self) -> u32 {
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

    fn is_fresh(&self, now: Timestamp) -> bool {
        self.expires() > now
    }
}

/// What the book knows of a host.
#[derive(Debug, Default)]
struct HostEntry {
    /// The highest sequence that it announced.
    sequence: u64,
    heard_at: Timestamp,
    addresses: List<Text<256>, 8>,
    offers: BTreeSet<OfferId>,
}

/// All offers that a broker shows. One owner: the thread that decides.
#[derive(Debug)]
pub struct Book {
    broker: BrokerId,
    limits: BookLimits,
    hosts: BTreeMap<HostId, HostEntry>,
    listings: BTreeMap<OfferId, Listing>,
    by_expiry: BTreeSet<(Timestamp, OfferId)>,
}

impl Book {
    /// An empty book of `broker`.
    #[must_use]
    pub const fn new(broker: BrokerId, limits: BookLimits) -> Self {
        Self {
            broker,
            limits,
            hosts: BTreeMap::new(),
            listings: BTreeMap::new(),
            by_expiry: BTreeSet::new(),
        }
    }

    /// Takes `offers` for all that `host` offers from now on. A list that is older than the one that is
    /// there (it was overtaken on its way) changes nothing.
    ///
    /// # Errors
    /// When an offer is not the host's to announce here, or the book is full; then nothing changes.
    pub fn announce(
        &mut self,
        now: Timestamp,
        host: HostId,
        offers: Vec<Verified<Offer>>,
        addresses: List<Text<256>, 8>,
    ) -> Result<Announced, BookRefusal> {
        if offers.len() > OFFERS_MAX {
            return Err(BookRefusal::TooManyOffers {
                count: offers.len(),
            });
        }
        let mut seen = BTreeSet::new();
        for offer in &offers {
            admission::check(self.broker, host, offer)?;
            if !seen.insert(offer.body().id) {
                return Err(BookRefusal::Twice(offer.body().id));
            }
        }
        let known = self.hosts.get(&host);
        let newest = offers.iter().map(|offer| offer.body().sequence).max();
        if known
            .zip(newest)
            .is_some_and(|(known, newest)| newest < known.sequence)
        {
            return Ok(Announced::Stale);
        }
        let before = known.map_or(0, |known| known.offers.len());
        let after = self.listings.len() - before + offers.len();
        if after > self.limits.offers || (known.is_none() && self.hosts.len() >= self.limits.hosts)
        {
            return Err(BookRefusal::Full);
        }
        self.replace(now, host, offers, addresses);
        Ok(Announced::Replaced)
    }

    fn replace(
        &mut self,
        now: Timestamp,
        host: HostId,
        offers: Vec<Verified<Offer>>,
        addresses: List<Text<256>, 8>,
    ) {
        let mut entry = self.hosts.remove(&host).unwrap_or_default();
        for gone in std::mem::take(&mut entry.offers) {
            self.remove_listing(gone);
        }
        entry.addresses = addresses;
        entry.heard_at = now;
        for offer in offers {
            entry.sequence = entry.sequence.max(offer.body().sequence);
            let listing = Listing::new(host, offer);
            let id = listing.offer().id;
            entry.offers.insert(id);
            self.by_expiry.insert((listing.expires(), id));
            self.listings.insert(id, listing);
        }
        self.hosts.insert(host, entry);
    }

    fn remove_listing(&mut self, id: OfferId) {
        if let Some(listing) = self.listings.remove(&id) {
            self.by_expiry.remove(&(listing.expires(), id));
        }
    }

    /// Says how reliable a host is whose offers these are now. Offers that are announced anew are those of an
    /// unknown host until it is said again.
    pub fn rate(&mut self, host: HostId, score: &Score) {
        let offers = self.hosts.get(&host).map(|entry| &entry.offers);
        for offer in offers.into_iter().flatten() {
            if let Some(listing) = self.listings.get_mut(offer) {
                listing.hazard = score.hazard_in_billion_hours();
                for facts in &mut listing.portions {
                    facts.set_reliability(score.ppm);
                }
            }
        }
    }

    /// Forgets a host and all that it offers.
    pub fn withdraw(&mut self, host: HostId) {
        if let Some(entry) = self.hosts.remove(&host) {
            for offer in entry.offers {
                self.remove_listing(offer);
            }
        }
    }

    /// Drops the offers that expired, and the hosts that have not been heard for longer than an offer may
    /// be valid and offer nothing. Says how many offers went.
    pub fn expire(&mut self, now: Timestamp) -> usize {
        let mut gone = 0;
        while let Some((expires, id)) = self.by_expiry.first().copied() {
            if expires > now {
                break;
            }
            self.by_expiry.pop_first();
            if let Some(listing) = self.listings.remove(&id)
                && let Some(entry) = self.hosts.get_mut(&listing.host)
            {
                entry.offers.remove(&id);
            }
            gone += 1;
        }
        let oldest = now.before(protocol::signed::VALIDITY_MAX.millis());
        self.hosts
            .retain(|_, entry| !entry.offers.is_empty() || entry.heard_at > oldest);
        gone
    }

    /// An offer that stands now.
    #[must_use]
    pub fn get(&self, offer: OfferId, now: Timestamp) -> Option<&Listing> {
        self.listings
            .get(&offer)
            .filter(|listing| listing.is_fresh(now))
    }

    /// What a host offers now.
    pub fn host_offers(&self, host: HostId, now: Timestamp) -> impl Iterator<Item = &Listing> {
        let offers = self
            .hosts
            .get(&host)
            .into_iter()
            .flat_map(|entry| &entry.offers);
        offers.filter_map(move |offer| self.get(*offer, now))
    }

    /// Where a host said that it can be dialled directly; nothing behind NAT.
    #[must_use]
    pub fn addresses(&self, host: HostId) -> &[Text<256>] {
        self.hosts.get(&host).map_or(&[], |entry| &*entry.addresses)
    }

    /// When a host last announced anything.
    #[must_use]
    pub fn heard_at(&self, host: HostId) -> Option<Timestamp> {
        self.hosts.get(&host).map(|entry| entry.heard_at)
    }

    /// The hosts in the book.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> {
        self.hosts.keys().copied()
    }

    /// How many hosts there are.
    #[must_use]
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// How many offers there are, expired ones that were not dropped yet among them.
    #[must_use]
    pub fn offer_count(&self) -> usize {
        self.listings.len()
    }

    /// The offers of which a portion of `gpus` matches, in no order.
    #[must_use]
    pub fn matching(
        &self,
        filter: &Filter,
        need: Need,
        gpus: u16,
        now: Timestamp,
    ) -> Vec<&Listing> {
        let filter = filter.prepare(need);
        let fits = |facts: &Facts| facts.gpus() == gpus && filter.matches(facts);
        self.listings
            .values()
            .filter(|listing| listing.is_fresh(now) && listing.portions.iter().any(fits))
            .collect()
    }
}

#[cfg(test)]
mod tests;
