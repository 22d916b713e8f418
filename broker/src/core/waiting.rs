//! Which orders wait, in the order in which they are served, and where something changed that may serve one.
//!
//! Made anew from the market at every start. Must not decide anything.

use crate::core::book::bids::Bids;
use crate::core::rest::Resting;
use protocol::filter::Facts;
use protocol::ids::{HostId, LeaseId, OfferId};
use protocol::order::Target;
use protocol::terms::{ContractKind, Need};
use protocol::units::{PricePerHour, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Who comes first: the higher bid, then the earlier number, then the smaller id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// The bid, or the limit, for each GPU and hour.
    pub bid: Reverse<PricePerHour>,
    /// The broker's number of the order.
    pub number: u64,
    /// The lease that it may become.
    pub lease: LeaseId,
}

impl Rank {
    /// The rank of an order with that bid, number and lease.
    #[must_use]
    pub const fn new(bid: PricePerHour, number: u64, lease: LeaseId) -> Self {
        Self {
            bid: Reverse(bid),
            number,
            lease,
        }
    }
}

/// Where something changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Venue {
    /// A host's prices, its free resources, or who may be pushed out there.
    Host(HostId),
    /// What an order that waits bids, or what its renter can pay.
    Order(LeaseId),
}

/// An order that waits.
#[derive(Debug, Clone, Copy)]
struct Known {
    kind: ContractKind,
    gpus: u16,
    /// The offer that it names; any without.
    offer: Option<OfferId>,
    rank: Rank,
    until: Timestamp,
}

/// Orders of one kind that wait for any offer.
#[derive(Debug, Default)]
struct Anywhere {
    bids: Bids,
    /// How many of them are for so many GPUs.
    sizes: BTreeMap<u16, usize>,
}

/// All orders that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    known: BTreeMap<LeaseId, Known>,
    named: BTreeMap<(ContractKind, OfferId), BTreeSet<Rank>>,
    anywhere: BTreeMap<ContractKind, Anywhere>,
    ends: BTreeSet<(Timestamp, LeaseId)>,
    changed: BTreeSet<Venue>,
}

impl Waiting {
    /// Takes up what became of an order: that it waits, with its bid now, or that it does not wait any more.
    pub(super) fn update(&mut self, lease: LeaseId, rest: Option<&Resting>) {
        self.forget(lease);
        let Some(rest) = rest.filter(|rest| rest.ended.is_none()) else {
            return;
        };
        let (kind, order) = (rest.kind(), rest.order.body());
        let (gpus, rank) = (order.gpus, Rank::new(rest.bid, rest.number, lease));
        let offer = match &order.target {
            Target::Offer { offer, .. } => {
                self.named.entry((kind, *offer)).or_default().insert(rank);
                Some(*offer)
            }
            Target::Any(filter) => {
                let anywhere = self.anywhere.entry(kind).or_default();
                let need = Need::disk(order.disk);
                anywhere.bids.insert(rank, gpus, filter, need);
                *anywhere.sizes.entry(gpus).or_default() += 1;
                None
            }
        };
        let until = rest.until;
        self.ends.insert((until, lease));
        let known = Known {
            kind,
            gpus,
            offer,
            rank,
            until,
        };
        self.known.insert(lease, known);
    }

    /// Whether what is known here of an order is not what became of it.
    pub(super) fn is_otherwise(&self, lease: LeaseId, rest: Option<&Resting>) -> bool {
        let known = self.known.get(&lease).map(|known| known.rank.bid.0);
        let rest = rest.filter(|rest| rest.ended.is_none());
        known != rest.map(|rest| rest.bid)
    }

    fn forget(&mut self, lease: LeaseId) {
        let Some(known) = self.known.remove(&lease) else {
            return;
        };
        let (kind, rank) = (known.kind, known.rank);
        self.ends.remove(&(known.until, lease));
        self.changed.remove(&Venue::Order(lease));
        if let Some(offer) = known.offer {
            if let Some(ranks) = self.named.get_mut(&(kind, offer)) {
                ranks.remove(&rank);
                if ranks.is_empty() {
                    self.named.remove(&(kind, offer));
                }
            }
        } else if let Some(anywhere) = self.anywhere.get_mut(&kind) {
            anywhere.bids.remove(rank);
            if let Some(count) = anywhere.sizes.get_mut(&known.gpus) {
                *count -= 1;
                if *count == 0 {
                    anywhere.sizes.remove(&known.gpus);
                }
            }
        }
    }

    /// Whether an order waits.
    pub(super) fn waits(&self, lease: LeaseId) -> bool {
        self.known.contains_key(&lease)
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// When the first order stops waiting.
    pub(super) fn first_end(&self) -> Option<Timestamp> {
        self.ends.first().map(|(until, _)| *until)
    }

    /// An order that should not wait any more at `now`.
    pub(super) fn ended(&self, now: Timestamp) -> Option<LeaseId> {
        let first = self.ends.first().filter(|(until, _)| *until <= now);
        first.map(|(_, lease)| *lease)
    }

    /// The first orders of a kind that an offer may serve and that bid at least `least`, in their order; and
    /// whether there may be more of them. `facts` says what so many GPUs of it are, if they are sold together.
    pub(super) fn of_offer<'a>(
        &self,
        kind: ContractKind,
        offer: OfferId,
        least: PricePerHour,
        wanted: usize,
        facts: impl Fn(u16) -> Option<&'a Facts>,
    ) -> (Vec<Rank>, bool) {
        let named = self.named.get(&(kind, offer)).into_iter().flatten();
        let named = named.take_while(|rank| rank.bid.0 >= least);
        let mut found: Vec<Rank> = named.take(wanted).copied().collect();
        let mut has_more = found.len() >= wanted;
        if let Some(anywhere) = self.anywhere.get(&kind) {
            for facts in anywhere.sizes.keys().filter_map(|gpus| facts(*gpus)) {
                let line = anywhere.bids.in_line(facts, least, wanted);
                has_more |= line.len() >= wanted;
                found.extend(line);
            }
        }
        found.sort_unstable();
        // Behind the last of a line that was cut others may come first.
        found.truncate(wanted);
        (found, has_more)
    }

    /// Something changed there.
    pub(super) fn note(&mut self, venue: Venue) {
        self.changed.insert(venue);
    }

    /// A place where something changed that was not looked at since.
    pub(super) fn next(&self) -> Option<Venue> {
        self.changed.first().copied()
    }

    /// It was looked at, and nothing more comes of it.
    pub(super) fn done(&mut self, venue: Venue) {
        self.changed.remove(&venue);
    }
}
