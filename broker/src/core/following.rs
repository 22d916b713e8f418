//! After each event: where something changed is noted, and looked at until nothing more comes of it, before the
//! next event is taken.
//!
//! What follows is decided in `matching`; here is the order of it alone.

use crate::core::capacity::Claim;
use crate::core::desk::Desk;
use crate::core::event::{Event, Fact};
use crate::core::lease::State;
use crate::core::market::Market;
use crate::core::waiting::{Venue, Waiting};
use protocol::ids::{LeaseId, RenterId};
use protocol::lease::EndCause;
use protocol::units::{PricePerHour, Timestamp};

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
        if let Fact::Deposited { renter, .. } = fact {
            self.note_renter(*renter);
        }
        let changed = if let Fact::Moved(moved) = fact {
            (!moved.to.holds_resources()).then_some(moved.lease)
        } else if let Fact::Changed(terms) = fact {
            Some(terms.lease)
        } else {
            None
        };
        let lease = changed.and_then(|id| self.market.lease(id));
        if let Some(lease) = lease {
            self.waiting.note(Venue::Host(lease.contract.host));
        }
    }

    /// A renter has more money: what waits for that may be served.
    fn note_renter(&mut self, renter: RenterId) {
        let Self {
            market, waiting, ..
        } = self;
        for rest in market.rests_of(renter) {
            waiting.note(Venue::Order(rest.lease));
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
        let waited = self.waits(id);
        self.update(id, rest);
        // Its bid changed; a new order has been looked at.
        if waited && self.waits(id) {
            self.note(Venue::Order(id));
        }
    }
}
