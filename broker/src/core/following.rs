//! After each event: where something changed is noted, and looked at until nothing more comes of it, before the
//! next event is taken.
//!
//! What follows is decided in `matching`; here is the order of it alone.

use crate::core::capacity::Claim;
use crate::core::desk::Desk;
use crate::core::event::{Event, Fact};
use crate::core::lease::State;
use crate::core::market::Market;
use crate::core::rest::Resting;
use crate::core::waiting::{Venue, Waiting};
use protocol::ids::{LeaseId, RenterId};
use protocol::lease::EndCause;
use protocol::order::Target;
use protocol::units::{Bytes, PricePerHour, Timestamp};

/// Most steps after one input. Every step serves somebody, and those it pushes out pay less than who comes, so
/// it ends by itself; what a mistake leaves over is taken up with the next input.
const STEPS_MAX: usize = 10_000;

impl Desk {
    /// Takes the next step at every place where something changed, until all is settled.
    ///
    /// # Errors
    /// When recording failed.
    pub(super) fn settle_down<E>(
        &mut self,
        now: Timestamp,
        record: &mut impl FnMut(&Event) -> Result<(), E>,
    ) -> Result<(), E> {
        for _ in 0..STEPS_MAX {
            let Some(venue) = self.waiting.next() else {
                return Ok(());
            };
            let events = self.next_step(now, venue);
            if events.is_empty() {
                self.waiting.done(venue);
            }
            for event in events {
                self.happen(now, event, record)?;
            }
        }
        Ok(())
    }

    /// Ends the orders that waited as long as they should.
    ///
    /// # Errors
    /// When recording failed.
    pub(super) fn end_waiting<E>(
        &mut self,
        now: Timestamp,
        record: &mut impl FnMut(&Event) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(id) = self.waiting.ended(self.wall(now)) {
            let Some(rest) = self.market.resting(id) else {
                self.waiting.update(id, None);
                continue;
            };
            let event = self.lapsed(now, rest, EndCause::BidExpired);
            self.happen(now, event, record)?;
        }
        Ok(())
    }

    /// Makes the lists of those that wait anew.
    pub(super) fn take_up_waiting(&mut self) {
        let Self {
            market, waiting, ..
        } = self;
        for rest in market.rests() {
            waiting.update(rest.lease, Some(rest));
        }
        for lease in market.live_leases() {
            waiting.note(Venue::Host(lease.contract.host));
        }
    }

    /// Notes where an event changes something, before it is applied.
    pub(super) fn note_event(&mut self, fact: &Fact) {
        let lease = |id| self.market.lease(id);
        let rest = |id| self.market.resting(id);
        let (host, renter) = if let Fact::Moved(moved) = fact {
            let lease = lease(moved.lease).filter(|lease| {
                let resumes = matches!(lease.state, State::Paused { .. });
                resumes || !moved.to.holds_resources()
            });
            let contract = lease.map(|lease| &lease.contract);
            (contract.map(|it| it.host), contract.map(|it| it.renter))
        } else if let Fact::Changed(terms) = fact {
            let contract = lease(terms.lease).map(|lease| &lease.contract);
            (contract.map(|it| it.host), contract.map(|it| it.renter))
        } else if let Fact::Lapsed { lease, .. } | Fact::RestRebid { lease, .. } = fact {
            (None, rest(*lease).map(Resting::renter))
        } else if let Fact::Matched(matched) = fact {
            // Where less is free, a bid may take a whole lease's GPUs that was to take one of them.
            (Some(matched.award.body().host), None)
        } else if let Fact::Deposited { renter, .. } = fact {
            (None, Some(*renter))
        } else {
            (None, None)
        };
        if let Some(host) = host {
            self.waiting.note(Venue::Host(host));
        }
        if let Some(renter) = renter {
            self.note_renter(renter);
        }
    }

    /// A renter may have more money: what waits for that may be served. An order that names its offer has what it
    /// needs held.
    fn note_renter(&mut self, renter: RenterId) {
        let Self {
            market, waiting, ..
        } = self;
        for rest in market.rests_of(renter) {
            let order = rest.order.body();
            if matches!(order.target, Target::Any(_)) && order.disk > Bytes(0) {
                waiting.note(Venue::Order(rest.lease));
            }
        }
        for lease in market.live_leases_of(renter.into()) {
            if matches!(&lease.state, State::Paused { cause, .. } if cause.resumes_by_itself()) {
                waiting.note(Venue::Host(lease.contract.host));
            }
        }
    }

    /// Notes that a lease can be outbid, when it can.
    pub(super) fn note_bids(&mut self, now: Timestamp, id: LeaseId) {
        let Some(lease) = self.market.lease(id) else {
            return;
        };
        let claim = Claim::Bid(PricePerHour(u64::MAX));
        if self.can_be_pushed_out(now, lease, claim) {
            self.waiting.note(Venue::Host(lease.contract.host));
        }
    }
}

impl Waiting {
    /// Takes up what became of the order of `lease`, if an event was about one.
    pub(super) fn update_from(&mut self, market: &Market, lease: Option<LeaseId>) {
        let Some(id) = lease else {
            return;
        };
        let rest = market.resting(id);
        if !self.is_otherwise(id, rest) {
            return;
        }
        self.update(id, rest);
        // Its bid changed; and where a new one made others pay more than go, there may be more of them.
        if self.waits(id) {
            self.note(Venue::Order(id));
        }
    }
}
