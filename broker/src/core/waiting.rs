//! Which orders wait, in the order in which they are served, and where something changed that may serve one.
//!
//! Made anew from the market at every start. Must not decide anything.

use crate::core::rest::Resting;
use protocol::filter::{Facts, Prepared};
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

/// An order for any offer.
#[derive(Debug)]
struct Anywhere {
    gpus: u16,
    filter: Prepared,
}

/// All orders that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    known: BTreeMap<LeaseId, (ContractKind, Option<OfferId>, Rank, Timestamp)>,
    named: BTreeMap<(ContractKind, OfferId), BTreeSet<Rank>>,
    anywhere: BTreeMap<(ContractKind, Rank), Anywhere>,
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
        let rank = Rank::new(rest.bid, rest.number, lease);
        let offer = match &order.target {
            Target::Offer { offer, .. } => {
                self.named.entry((kind, *offer)).or_default().insert(rank);
                Some(*offer)
            }
            Target::Any(filter) => {
                let anywhere = Anywhere {
                    gpus: order.gpus,
                    filter: filter.prepare(Need::disk(order.disk)),
                };
                self.anywhere.insert((kind, rank), anywhere);
                None
            }
        };
        self.ends.insert((rest.until, lease));
        self.known.insert(lease, (kind, offer, rank, rest.until));
    }

    /// Whether what is known here of an order is not what became of it.
    pub(super) fn is_otherwise(&self, lease: LeaseId, rest: Option<&Resting>) -> bool {
        let known = self.known.get(&lease).map(|(.., rank, _)| rank.bid.0);
        let rest = rest.filter(|rest| rest.ended.is_none());
        known != rest.map(|rest| rest.bid)
    }

    fn forget(&mut self, lease: LeaseId) {
        let Some((kind, offer, rank, until)) = self.known.remove(&lease) else {
            return;
        };
        self.ends.remove(&(until, lease));
        self.changed.remove(&Venue::Order(lease));
        match offer {
            None => {
                self.anywhere.remove(&(kind, rank));
            }
            Some(offer) => {
                if let Some(ranks) = self.named.get_mut(&(kind, offer)) {
                    ranks.remove(&rank);
                    if ranks.is_empty() {
                        self.named.remove(&(kind, offer));
                    }
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

    /// The orders of a kind that an offer may serve and that bid at least `least`, in their order. `facts`
    /// says what so many GPUs of it are, if they are sold together.
    pub(super) fn of_offer(
        &self,
        kind: ContractKind,
        offer: OfferId,
        least: PricePerHour,
        mut facts: impl FnMut(u16) -> Option<Facts>,
    ) -> Vec<Rank> {
        let named = self.named.get(&(kind, offer));
        let named = named.into_iter().flatten().copied();
        let mut found: Vec<Rank> = named.take_while(|rank| rank.bid.0 >= least).collect();
        let mut known: BTreeMap<u16, Option<Facts>> = BTreeMap::new();
        let first = Rank::new(PricePerHour(u64::MAX), 0, LeaseId::from_bytes([0; 16]));
        let after = Rank::new(least, u64::MAX, LeaseId::from_bytes([255; 16]));
        for ((_, rank), order) in self.anywhere.range((kind, first)..=(kind, after)) {
            let facts = known.entry(order.gpus).or_insert_with(|| facts(order.gpus));
            if facts
                .as_ref()
                .is_some_and(|facts| order.filter.matches(facts))
            {
                found.push(*rank);
            }
        }
        found.sort_unstable();
        found
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
