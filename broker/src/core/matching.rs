//! What follows from an event before the next one: orders that wait are served, leases that were pushed out
//! run again, those that waited for others to go begin.
//!
//! Where something changed, the first in line is served, and then it is looked again, until nothing more comes
//! of it. Firm orders come first, then bids by amount, number and id; who does not fit is passed over. Must not
//! change anything: the desk records and applies one step after the other.

use crate::core::book::Listing;
use crate::core::capacity::Claim;
use crate::core::desk::Desk;
use crate::core::event::{Event, Fact};
use crate::core::lease::{Lease, State};
use crate::core::ledger::{Account, Transfer};
use crate::core::placing::{Place, Seeker};
use crate::core::rest::Resting;
use crate::core::waiting::{Rank, Venue};
use protocol::ids::{HostId, LeaseId, OfferId};
use protocol::lease::EndCause;
use protocol::terms::{ContractKind, Deal};
use protocol::units::{PricePerHour, Timestamp};

/// How many in line are looked at first; then eight times as many, and so on.
const FEW: usize = 4;

impl Desk {
    /// The next step that follows from what changed at `venue`; nothing when all is settled there.
    pub(super) fn next_step(&self, now: Timestamp, venue: Venue) -> Vec<Event> {
        match venue {
            Venue::Host(host) => self.next_at_host(now, host),
            Venue::Order(lease) => {
                let rest = self.market.resting(lease);
                let rest = rest.filter(|rest| rest.ended.is_none());
                rest.and_then(|rest| self.serve_anywhere(now, rest))
                    .unwrap_or_default()
            }
        }
    }

    fn next_at_host(&self, now: Timestamp, host: HostId) -> Vec<Event> {
        if let Some(events) = self.begin_cleared(now, host) {
            return events;
        }
        self.serve_firm(now, host)
            .or_else(|| self.serve_bids(now, host))
            .unwrap_or_default()
    }

    /// A lease whose resources are free now is offered to its host, or resumed.
    fn begin_cleared(&self, now: Timestamp, host: HostId) -> Option<Vec<Event>> {
        let mut leases = self.market.live_leases_of(host.into());
        let lease = leases.find(|lease| self.is_cleared(host, lease))?;
        Some(vec![self.begun(now, lease)])
    }

    fn is_cleared(&self, host: HostId, lease: &Lease) -> bool {
        let resources = &lease.contract.share.resources;
        lease.contract.host == host
            && matches!(lease.state, State::Clearing { .. })
            && self.market.holdings(host).is_none_or(|holdings| {
                let mut resources = resources.iter();
                resources.all(|resource| holdings.in_the_way(resource).next().is_none())
            })
    }

    /// The event with which a lease that waited for others to go begins.
    fn begun(&self, now: Timestamp, lease: &Lease) -> Event {
        let start_by = now.after(lease.contract.limits.start_within.millis());
        if lease.started_at.is_some() {
            let to = State::Preparing { start_by };
            return self.moved(now, lease, to, self.meter_at(now, lease));
        }
        let accept_by = now
            .after(self.settings.accept_within.millis())
            .min(start_by);
        let fact = Fact::Cleared {
            lease: lease.id,
            accept_by,
            start_by,
        };
        Event::bare(now, fact)
    }

    /// Leases that were pushed out and cannot be any more, by age, then bids for what the host asks now.
    fn serve_firm(&self, now: Timestamp, host: HostId) -> Option<Vec<Event>> {
        let mut paused: Vec<&Lease> = self.pushed_out_at(host, true).collect();
        paused.sort_by_key(|lease| lease.contract.number);
        for lease in paused {
            if let Some(events) = self.serve_paused(now, lease) {
                return Some(events);
            }
        }
        let least = |listing: &Listing| Some(listing.offer().prices.compute);
        self.serve_line(now, host, ContractKind::Bid, &[], least)
    }

    /// Interruptible leases that were pushed out, and interruptible orders, together by bid.
    fn serve_bids(&self, now: Timestamp, host: HostId) -> Option<Vec<Event>> {
        let paused = self.pushed_out_at(host, false).map(|lease| {
            let contract = &lease.contract;
            let bid = contract.bid.unwrap_or_default();
            Rank::new(bid, contract.number, lease.id)
        });
        let paused: Vec<Rank> = paused.collect();
        let least = |listing: &Listing| self.least_bid(now, listing);
        self.serve_line(now, host, ContractKind::Interruptible, &paused, least)
    }

    /// The first step for anybody in line at a host: for orders of a kind, and for leases that were pushed out.
    fn serve_line(
        &self,
        now: Timestamp,
        host: HostId,
        kind: ContractKind,
        paused: &[Rank],
        least: impl Fn(&Listing) -> Option<PricePerHour>,
    ) -> Option<Vec<Event>> {
        let mut wanted = FEW;
        loop {
            let (mut line, cut) = self.in_line(now, host, kind, wanted, &least);
            line.extend(paused.iter().map(|rank| (*rank, None)));
            line.sort_unstable();
            // Behind the cut others may come in between.
            line.retain(|(rank, _)| cut.is_none_or(|cut| *rank <= cut));
            let step = line.into_iter().find_map(|(rank, offer)| match offer {
                Some(offer) => self.serve_at(now, rank.lease, offer),
                None => self.serve_paused(now, self.market.lease(rank.lease)?),
            });
            if step.is_some() || cut.is_none() {
                return step;
            }
            wanted = wanted.saturating_mul(8);
        }
    }

    /// The leases of a host that the market stopped, firm ones or interruptible ones.
    fn pushed_out_at(&self, host: HostId, firm: bool) -> impl Iterator<Item = &Lease> {
        let leases = self.market.live_leases_of(host.into());
        leases.filter(move |lease| {
            lease.contract.host == host
                && lease.contract.kind.is_firm() == firm
                && matches!(&lease.state, State::Paused { cause, .. } if cause.resumes_by_itself())
        })
    }

    /// The orders of a kind that any offer of the host may serve, with that offer; and up to whom the line is
    /// complete, where it is not.
    fn in_line(
        &self,
        now: Timestamp,
        host: HostId,
        kind: ContractKind,
        wanted: usize,
        least: impl Fn(&Listing) -> Option<PricePerHour>,
    ) -> (Vec<(Rank, Option<OfferId>)>, Option<Rank>) {
        let (mut line, mut cut) = (Vec::new(), None::<Rank>);
        if self.waiting.len() == 0 {
            return (line, cut);
        }
        for listing in self.book.host_offers(host, self.wall(now)) {
            let offer = listing.offer().id;
            let Some(least) = least(listing).filter(|_| self.has_any_room(now, listing)) else {
                continue;
            };
            let facts = |gpus| listing.facts(gpus);
            let (ranks, has_more) = self.waiting.of_offer(kind, offer, least, wanted, facts);
            if let Some(last) = ranks.last().filter(|_| has_more) {
                cut = Some(cut.map_or(*last, |cut| cut.min(*last)));
            }
            line.extend(ranks.into_iter().map(|rank| (rank, Some(offer))));
        }
        (line, cut)
    }

    /// Whether anybody at all could get anything of it.
    fn has_any_room(&self, now: Timestamp, listing: &Listing) -> bool {
        let resources = &listing.offer().share.resources;
        let room = self.room(now, listing.host(), resources, Claim::Firm, &[]);
        !room.free.is_empty() || !room.victims.is_empty()
    }

    /// The least bid that can have any part of an offer now; no less wins anything.
    fn least_bid(&self, now: Timestamp, listing: &Listing) -> Option<PricePerHour> {
        let floor = listing.offer().sales.floor?;
        let resources = &listing.offer().share.resources;
        let claim = Claim::Bid(PricePerHour(u64::MAX));
        let room = self.room(now, listing.host(), resources, claim, &[]);
        if !room.free.is_empty() {
            return Some(floor);
        }
        let lowest = room.victims.iter().map(|victim| victim.bid).min()?;
        Some(floor.max(lowest))
    }

    fn serve_at(&self, now: Timestamp, lease: LeaseId, offer: OfferId) -> Option<Vec<Event>> {
        let rest = self.market.resting(lease)?;
        let listing = self.book.get(offer, self.wall(now))?;
        let seeker = seeker_of(rest);
        match self.place_at(now, &seeker, listing) {
            Ok(place) => self.serve(now, rest, &seeker, &place),
            Err(misfit) => some(misfit.converts),
        }
    }

    fn serve_anywhere(&self, now: Timestamp, rest: &Resting) -> Option<Vec<Event>> {
        let seeker = seeker_of(rest);
        match self.place(now, &seeker) {
            Ok(place) => self.serve(now, rest, &seeker, &place),
            Err(misfit) => some(misfit.converts),
        }
    }

    /// The order gets that place, if its renter can pay for it.
    fn serve(
        &self,
        now: Timestamp,
        rest: &Resting,
        seeker: &Seeker<'_>,
        place: &Place<'_>,
    ) -> Option<Vec<Event>> {
        let events = self.matched(now, seeker, &rest.order, rest.number, place);
        events.ok()
    }

    /// Runs a lease again that was pushed out, if its own resources are free or won.
    fn serve_paused(&self, now: Timestamp, lease: &Lease) -> Option<Vec<Event>> {
        match self.run_again(now, lease) {
            Ok(events) => Some(events),
            Err(misfit) => some(misfit.converts),
        }
    }

    /// The order stops waiting: what was held for it is free again.
    pub(super) fn lapsed(&self, now: Timestamp, rest: &Resting, cause: EndCause) -> Event {
        let held = self.market.held(rest.lease);
        let (locked, free) = (
            Account::RenterLocked(rest.lease),
            Account::RenterAvailable(rest.renter()),
        );
        Event {
            at: now,
            fact: Fact::Lapsed {
                lease: rest.lease,
                cause,
            },
            entries: Transfer::default().moving(locked, free, held).entries(),
        }
    }
}

/// An order that waits, as one that looks for a place.
fn seeker_of(rest: &Resting) -> Seeker<'_> {
    let order = rest.order.body();
    Seeker {
        lease: rest.lease,
        renter: rest.renter(),
        order,
        size: rest.order.signed().size(),
        deal: deal_now(rest),
        has_waited: true,
    }
}

/// The order's deal with the bid of now.
pub(super) fn deal_now(rest: &Resting) -> Deal {
    match rest.order.body().deal {
        Deal::Bid { until, .. } => Deal::Bid {
            limit: rest.bid,
            until,
        },
        Deal::Interruptible {
            until, fallback, ..
        } => Deal::Interruptible {
            bid: rest.bid,
            until,
            fallback,
        },
        other @ (Deal::OnDemand | Deal::Reserved { .. }) => other,
    }
}

fn some(events: Vec<Event>) -> Option<Vec<Event>> {
    (!events.is_empty()).then_some(events)
}
