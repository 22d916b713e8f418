//! Deciding about what renters and the operator want done with a lease: stop, resume, end.
//!
//! Must not change anything.

use crate::core::desk::{Decision, Desk, Reply};
use crate::core::event::{Event, Fact};
use crate::core::lease::{Lease, State};
use crate::core::seen::Sighting;
use protocol::ids::{LeaseId, RenterId};
use protocol::lease::{EndCause, PauseCause};
use protocol::message::Rejection;
use protocol::order::{LeaseAction, LeaseCommand};
use protocol::signed::Verified;
use protocol::units::{MicroUsd, Timestamp};

impl Desk {
    pub(super) fn decide_lease_command(
        &self,
        now: Timestamp,
        command: Verified<LeaseCommand>,
    ) -> Result<Decision, Rejection> {
        let LeaseCommand { lease: id, action } = *command.body();
        let renter = RenterId::from(command.signer());
        let lease = self
            .market
            .lease(id)
            .filter(|lease| lease.contract.renter == renter);
        let lease = lease.ok_or(Rejection::UnknownLease)?;
        match self.market.seen.sighting(&command) {
            Sighting::New => {}
            Sighting::Repeat => return Ok(Decision::answer(Reply::Lease(id))),
            Sighting::Conflict => return Err(Rejection::Replayed),
        }
        let step = match action {
            LeaseAction::Stop => self.stop(now, lease)?,
            LeaseAction::Resume => self.resume(now, lease)?,
            LeaseAction::End => self.end(now, lease, EndCause::Renter),
            LeaseAction::SetBid(_) | LeaseAction::Convert(_) => {
                return Err(Rejection::WrongPhase(lease.state.phase()));
            }
        };
        let fact = Fact::Commanded(Box::new(command.into()));
        let mut events = vec![Event {
            at: now,
            fact,
            entries: Vec::new(),
        }];
        events.extend(step);
        Ok(Decision::events(events, Reply::Lease(id)))
    }

    pub(super) fn decide_operator(
        &self,
        now: Timestamp,
        id: LeaseId,
    ) -> Result<Decision, Rejection> {
        let lease = self.market.lease(id).ok_or(Rejection::UnknownLease)?;
        let step = self.end(now, lease, EndCause::Operator);
        Ok(Decision::events(
            step.into_iter().collect(),
            Reply::Lease(id),
        ))
    }

    /// Frees the resource and keeps the disk. Stopping what is stopped is nothing.
    fn stop(&self, now: Timestamp, lease: &Lease) -> Result<Option<Event>, Rejection> {
        let was_running = lease.run > 1 || lease.started_at.is_some();
        match &lease.state {
            State::Running | State::Noticed { .. } | State::Suspect { .. } => {}
            State::Preparing { .. } if was_running => {}
            State::Paused { .. } => return Ok(None),
            State::Clearing { .. }
            | State::Offered { .. }
            | State::Accepted { .. }
            | State::Preparing { .. }
            | State::Closing { .. }
            | State::Closed { .. } => return Err(Rejection::WrongPhase(lease.state.phase())),
        }
        let to = self.paused(now, PauseCause::Renter);
        Ok(Some(self.moved(now, lease, to, self.meter_at(now, lease))))
    }

    /// Starts again from the kept disk. Resuming what runs or is about to is nothing.
    fn resume(&self, now: Timestamp, lease: &Lease) -> Result<Option<Event>, Rejection> {
        match &lease.state {
            State::Paused { .. } => {}
            State::Preparing { .. } | State::Running | State::Noticed { .. } => return Ok(None),
            State::Clearing { .. }
            | State::Offered { .. }
            | State::Accepted { .. }
            | State::Suspect { .. }
            | State::Closing { .. }
            | State::Closed { .. } => return Err(Rejection::WrongPhase(lease.state.phase())),
        }
        let contract = &lease.contract;
        let heard = self.book.heard_at(contract.host);
        let silence_max = self.settings.suspect_after.millis();
        if heard.is_none_or(|heard| self.wall(now).since(heard) > silence_max) {
            return Err(Rejection::HostGone);
        }
        let is_taken = |resource| self.market.holder(contract.host, resource).is_some();
        if contract.share.resources.iter().any(is_taken) {
            return Err(Rejection::ResourceTaken);
        }
        let meter = self.meter_at(now, lease);
        // What is charged up to here comes out of the same money.
        let unposted = lease
            .charge_for(&meter.usage)
            .total()
            .saturating_sub(lease.charged.total());
        let needed = self.hold_to_run(lease, &meter).saturating_add(unposted);
        let held = self.market.held(lease.id);
        let available = self.market.available(contract.renter);
        if needed > held.saturating_add(available) {
            let needed = needed.saturating_sub(held).max(MicroUsd::ZERO);
            return Err(Rejection::NotEnoughMoney { available, needed });
        }
        let start_by = now.after(contract.limits.start_within.millis());
        Ok(Some(self.moved(
            now,
            lease,
            State::Preparing { start_by },
            meter,
        )))
    }

    /// Ends a lease. Ending what ends is nothing.
    pub(super) fn end(&self, now: Timestamp, lease: &Lease, cause: EndCause) -> Option<Event> {
        let to = match &lease.state {
            State::Clearing { .. } | State::Offered { .. } => State::Closed { cause },
            State::Accepted { .. }
            | State::Preparing { .. }
            | State::Running
            | State::Noticed { .. }
            | State::Suspect { .. }
            | State::Paused { .. } => self.closing(now, lease, cause),
            State::Closing { .. } | State::Closed { .. } => return None,
        };
        Some(self.moved(now, lease, to, self.meter_at(now, lease)))
    }

    /// The state of a lease whose container does not run any more.
    pub(super) fn paused(&self, now: Timestamp, cause: PauseCause) -> State {
        let keep = match &cause {
            PauseCause::FundsLow | PauseCause::Outbid | PauseCause::Preempted => {
                self.settings.disk_keep_unpaid
            }
            PauseCause::Renter
            | PauseCause::Exited(_)
            | PauseCause::OutOfMemory
            | PauseCause::DiskFull
            | PauseCause::ResumeFailed(_) => self.settings.disk_keep,
        };
        State::Paused {
            cause,
            disk_until: now.after(keep.millis()),
        }
    }

    /// The state of a lease whose host has still to clear up.
    pub(super) fn closing(&self, now: Timestamp, lease: &Lease, cause: EndCause) -> State {
        State::Closing {
            cause,
            give_up_at: now.after(self.settings.lost_after.millis()),
            // A stopped lease's resource may be another one's already.
            may_run: lease.state.holds_resources(),
        }
    }
}
