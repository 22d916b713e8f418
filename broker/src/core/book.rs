//! The soft book of offers: what hosts announce, until it expires, and the searches over it.
//!
//! Nothing here is ever journalled: a broker that starts anew has an empty book, and full again within one
//! period of its hosts. Must not know leases or money; who holds a resource is asked of the caller.
//!
//! Every portion of every offer is a row of an index, which answers searches without a look at each. What can be
//! had changes with leases, not with offers: the index is told of it host by host ([`Book::settle`]), and the
//! portions of a host that it was not told of since something changed are looked at one by one.

mod admission;
mod announcing;
mod answer;
pub mod bids;
mod by_job;
mod columns;
pub mod index;
mod listing;
mod names;
mod portions;
mod standing;

pub use admission::BookRefusal;
pub use listing::Listing;

use mig::name::excludes;
use portions::Portions;
use protocol::bounded::{List, Text};
use protocol::filter::Filter;
use protocol::ids::{BrokerId, HostId, OfferId};
use protocol::offer::{RESOURCES_MAX, ResourceName};
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

/// What the book knows of a host.
#[derive(Debug, Default)]
struct HostEntry {
    /// The highest sequence that it announced.
    sequence: u64,
    heard_at: Timestamp,
    addresses: List<Text<256>, 8>,
    offers: BTreeSet<OfferId>,
    /// What cannot be had of it now for a reason that is the host's: other brokers' leases have it, or it is not fit.
    withheld: List<ResourceName, RESOURCES_MAX>,
}

/// All offers that a broker shows. One owner: the thread that decides.
#[derive(Debug)]
pub struct Book {
    broker: BrokerId,
    limits: BookLimits,
    hosts: BTreeMap<HostId, HostEntry>,
    listings: BTreeMap<OfferId, Listing>,
    portions: Portions,
    /// The hosts of which the index does not know what can be had.
    unsettled: BTreeSet<HostId>,
    by_expiry: BTreeSet<(Timestamp, OfferId)>,
}

impl Book {
    /// An empty book of `broker`.
    #[must_use]
    pub fn new(broker: BrokerId, limits: BookLimits) -> Self {
        Self {
            broker,
            limits,
            hosts: BTreeMap::new(),
            listings: BTreeMap::new(),
            portions: Portions::new(),
            unsettled: BTreeSet::new(),
            by_expiry: BTreeSet::new(),
        }
    }

    fn remove_listing(&mut self, id: OfferId) -> Option<Listing> {
        let listing = self.listings.remove(&id)?;
        self.by_expiry.remove(&(listing.expires(), id));
        for (slot, facts) in listing.rows() {
            self.portions.remove(slot, facts);
        }
        Some(listing)
    }

    /// What cannot be had of a host from now on, whatever it offers.
    pub fn withhold(&mut self, host: HostId, names: List<ResourceName, RESOURCES_MAX>) {
        if let Some(entry) = self.hosts.get_mut(&host)
            && entry.withheld != names
        {
            entry.withheld = names;
            self.unsettle(host);
        }
    }

    /// What cannot be had of a host.
    #[must_use]
    pub fn withheld(&self, host: HostId) -> &[ResourceName] {
        self.hosts.get(&host).map_or(&[], |entry| &*entry.withheld)
    }

    /// Whether `resource`, or a part of it, cannot be had.
    #[must_use]
    pub fn is_withheld(&self, host: HostId, resource: &str) -> bool {
        let mut names = self.withheld(host).iter();
        names.any(|name| excludes(name, resource))
    }

    /// Something changed at a host: what of its offers can be had is not known to the index any more.
    pub fn unsettle(&mut self, host: HostId) {
        if !self.unsettled.insert(host) {
            return;
        }
        let offers = self.hosts.get(&host).map(|entry| &entry.offers);
        for offer in offers.into_iter().flatten() {
            for (slot, _) in self.listings.get(offer).into_iter().flat_map(Listing::rows) {
                self.portions.hide(slot);
            }
        }
    }

    /// A host that is not settled.
    #[must_use]
    pub fn next_unsettled(&self) -> Option<HostId> {
        self.unsettled.first().copied()
    }

    /// Says what can be had of a host's offers by somebody who cannot be pushed out, until [`Self::unsettle`]: for
    /// each portion, whether somebody has to go for it.
    pub fn settle(&mut self, host: HostId, available: &[(OfferId, u16, bool)]) {
        self.unsettled.remove(&host);
        for (offer, gpus, pushes_out) in available {
            let listing = self
                .listings
                .get(offer)
                .filter(|listing| listing.host == host);
            let mut rows = listing.into_iter().flat_map(Listing::rows);
            if let Some((slot, facts)) = rows.find(|(_, facts)| facts.gpus() == *gpus) {
                self.portions.show(slot, facts, *pushes_out);
            }
        }
    }

    /// Forgets a host and all that it offers.
    pub fn withdraw(&mut self, host: HostId) {
        self.unsettled.remove(&host);
        if let Some(entry) = self.hosts.remove(&host) {
            for offer in entry.offers {
                self.remove_listing(offer);
            }
        }
    }

    /// Drops the offers that expired, and the hosts that have not been heard for longer than an offer may
    /// be valid and offer nothing. Says how many offers went.
    pub fn expire(&mut self, now: Timestamp) -> usize {
        let gone = self.expire_offers(now);
        let oldest = now.before(protocol::signed::VALIDITY_MAX.millis());
        let unsettled = &mut self.unsettled;
        self.hosts.retain(|host, entry| {
            let stays = !entry.offers.is_empty() || entry.heard_at > oldest;
            if !stays {
                unsettled.remove(host);
            }
            stays
        });
        gone
    }

    /// Drops the offers that expired. Says how many.
    pub fn expire_offers(&mut self, now: Timestamp) -> usize {
        let mut gone = 0;
        while let Some((expires, id)) = self.by_expiry.first().copied() {
            if expires > now {
                break;
            }
            self.by_expiry.pop_first();
            if let Some(listing) = self.remove_listing(id)
                && let Some(entry) = self.hosts.get_mut(&listing.host)
            {
                entry.offers.remove(&id);
            }
            gone += 1;
        }
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

    /// The offers of which a portion of `gpus` matches, in no order, whether it can be had or not.
    #[must_use]
    pub fn matching(
        &self,
        filter: &Filter,
        need: Need,
        gpus: u16,
        now: Timestamp,
    ) -> Vec<&Listing> {
        let slots = self.portions.matching(filter, need, gpus, &self.listings);
        slots
            .into_iter()
            .filter_map(|slot| self.portions.owner(slot))
            .filter_map(|(offer, _)| self.get(offer, now))
            .collect()
    }
}

#[cfg(test)]
mod tests;
