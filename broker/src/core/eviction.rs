//! What becomes of interruptible leases that have to go: notice, and a lease on demand for those who rather pay
//! what the host asks.
//!
//! Must not choose who goes: `auction` and `placing` do.

use crate::core::capacity::Claim;
use crate::core::desk::Desk;
use crate::core::event::{Event, Fact, Kept, Rest};
use crate::core::lease::{Lease, Papers, State};
use crate::core::settle::NewTerms;
use protocol::ids::LeaseId;
use protocol::lease::PauseCause;
use protocol::terms::{ContractKind, Deal, GRACE_MAX, GRACE_MIN, Rates};
use protocol::units::{Millis, PricePerHour, Timestamp};

impl Desk {
    /// The events that make room for somebody who comes with `claim`, and when those who go have gone at the
    /// latest; nothing when they have by then.
    pub(super) fn make_room(
        &self,
        now: Timestamp,
        claim: Claim,
        victims: &[LeaseId],
        converts: &[Event],
    ) -> (Vec<Event>, Option<Timestamp>) {
        let cause = match claim {
            Claim::Firm => PauseCause::Preempted,
            Claim::Bid(_) => PauseCause::Outbid,
        };
        let mut events = converts.to_vec();
        let mut clear_by = None;
        for lease in victims.iter().filter_map(|id| self.market.lease(*id)) {
            let (event, by) = self.sent_away(now, lease, cause.clone());
            events.push(event);
            clear_by = clear_by.max(by);
        }
        (events, clear_by)
    }

    /// The event with which a lease goes, and by when it is gone if it has notice.
    ///
    /// A firm lease that comes before an interruptible one had its time makes that one's run free, from its
    /// begin to its end: the rate of that stretch is nothing, and what was charged of it goes back.
    fn sent_away(
        &self,
        now: Timestamp,
        lease: &Lease,
        cause: PauseCause,
    ) -> (Event, Option<Timestamp>) {
        let meter = self.meter_at(now, lease);
        if let State::Clearing { until } = lease.state {
            let event = self.waits_again(now, lease).unwrap_or_else(|| {
                let to = self.paused(now, cause);
                self.moved(now, lease, to, meter)
            });
            return (event, Some(until));
        }
        if !matches!(lease.state, State::Running) {
            return (self.moved(now, lease, self.paused(now, cause), meter), None);
        }
        let notice = lease.contract.limits.notice.clamp(GRACE_MIN, GRACE_MAX);
        let by = now.after(notice.millis());
        let is_free = cause == PauseCause::Preempted && !self.has_had_its_time(now, lease);
        let to = State::Noticed { cause, by };
        let waived = if is_free { waived(lease) } else { None };
        let event = match waived {
            Some(rates) => self.moved_waiving(now, lease, to, meter, rates),
            None => self.moved(now, lease, to, meter),
        };
        (event, Some(by))
    }

    /// The event with which a lease that was matched and never offered to its host waits again.
    fn waits_again(&self, now: Timestamp, lease: &Lease) -> Option<Event> {
        let Papers::Whole { order, .. } = &lease.papers else {
            return None;
        };
        let Deal::Interruptible { until, .. } = order.body().deal else {
            return None;
        };
        if lease.started_at.is_some() {
            return None;
        }
        let rest = Rest {
            lease: lease.id,
            order: Kept::clone(order),
            number: lease.contract.number,
            until,
        };
        Some(Event::bare(now, Fact::Rested(Box::new(rest))))
    }

    /// The event with which a lease that has to go rather pays what its host asks now, if it does and can.
    pub(super) fn fallen_back(&self, now: Timestamp, lease: &Lease) -> Option<Event> {
        let most = lease.contract.fallback?;
        let ask = self.ask_of(now, lease)?;
        let runs = matches!(lease.state, State::Running);
        (runs && ask <= most)
            .then(|| self.on_demand(now, lease))
            .flatten()
    }

    /// What the host asks now for a GPU of the offer that a lease is of.
    pub(super) fn ask_of(&self, now: Timestamp, lease: &Lease) -> Option<PricePerHour> {
        let listing = self.book.get(lease.contract.offer, self.wall(now))?;
        Some(listing.offer().prices.compute)
    }

    /// The event that makes a lease one on demand, at what its host asks now, if there is money for it.
    fn on_demand(&self, now: Timestamp, lease: &Lease) -> Option<Event> {
        let new = NewTerms {
            kind: ContractKind::OnDemand,
            bid: None,
            fallback: None,
            compute: of_all(lease, self.ask_of(now, lease)?),
            term: None,
        };
        self.changed_terms(now, lease, new, self.meter_at(now, lease))
            .ok()
    }
}

/// A price for each GPU, for all that a lease has.
pub(super) fn of_all(lease: &Lease, each: PricePerHour) -> PricePerHour {
    let gpus = u64::try_from(lease.contract.share.gpus.len().max(1)).unwrap_or(u64::MAX);
    PricePerHour(each.0.saturating_mul(gpus))
}

/// The rates of a lease whose present run is free.
fn waived(lease: &Lease) -> Option<Rates> {
    let rates = &lease.contract.rates;
    rates.changed(lease.run_from, PricePerHour(0)).ok()
}

/// The rates of a lease that runs again from `running` on, when its run before that was free.
pub(super) fn rates_again(lease: &Lease, running: Millis) -> Option<Rates> {
    let contract = &lease.contract;
    let price = contract.prices.compute;
    if lease.term.is_some() || contract.rates.current() == price {
        return None;
    }
    contract.rates.changed(running, price).ok()
}
