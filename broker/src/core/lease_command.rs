//! Deciding about what renters and the operator want done with a lease, or with an order that waits: stop,
//! resume, end, and by way of `rebid` other terms.
//!
//! Must not change anything.

use crate::core::desk::{Decision, Desk, Reply};
use crate::core::event::{Event, Fact};
use crate::core::lease::{Lease, State};
use crate::core::rest::{Resting, rest_phase};
use crate::core::seen::Sighting;
use protocol::ids::{LeaseId, RenterId};
use protocol::lease::{EndCause, PauseCause, Phase};
use protocol::message::Rejection;
use protocol::order::{LeaseAction, LeaseCommand};
use protocol::signed::Verified;
use protocol::terms::ContractKind;
use protocol::units::Timestamp;

impl Desk {
    pub(super) fn decide_lease_command(
        &self,
        now: Timestamp,
        command: Verified<LeaseCommand>,
    ) -> Result<Decision, Rejection> {
        let LeaseCommand { lease: id, action } = *command.body();
        let renter = RenterId::from(command.signer());
        let is_own_lease = |lease: &&Lease| lease.contract.renter == renter;
        let lease = self.market.lease(id).filter(is_own_lease);
        let rest = self
            .market
            .resting(id)
            .filter(|rest| rest.renter() == renter);
        if lease.is_none() && rest.is_none() {
            return Err(Rejection::UnknownLease);
        }
        match self.market.seen.sighting(&command) {
            Sighting::New => {}
            Sighting::Repeat => return Ok(Decision::answer(Reply::Lease(id))),
            Sighting::Conflict => return Err(Rejection::Replayed),
        }
        let steps = match (lease, rest) {
            (Some(lease), _) => self.act(now, lease, action)?,
            (None, Some(rest)) => self.act_waiting(now, rest, action)?.into_iter().collect(),
            (None, None) => Vec::new(),
        };
        let fact = Fact::Commanded(Box::new(command.into()));
        let mut events = vec![Event {
            at: now,
            fact,
            entries: Vec::new(),
        }];
        events.extend(steps);
        Ok(Decision::events(events, Reply::Lease(id)))
    }

    fn act(
        &self,
        now: Timestamp,
        lease: &Lease,
        action: LeaseAction,
    ) -> Result<Vec<Event>, Rejection> {
        let step = match action {
            LeaseAction::Stop => self.stop(now, lease)?,
            LeaseAction::Resume => return self.resume(now, lease),
            LeaseAction::End => self.end(now, lease, EndCause::Renter),
            LeaseAction::SetBid(bid) => self.set_bid(now, lease, bid)?,
            LeaseAction::Convert { deal, price_max } => {
                self.convert(now, lease, deal, price_max)?
            }
        };
        Ok(step.into_iter().collect())
    }

    /// What a renter does with an order that waits. Ending what waits no more is nothing.
    fn act_waiting(
        &self,
        now: Timestamp,
        rest: &Resting,
        action: LeaseAction,
    ) -> Result<Option<Event>, Rejection> {
        let phase = rest_phase(rest);
        match action {
            LeaseAction::End if phase != Phase::Resting => Ok(None),
            LeaseAction::End => Ok(Some(self.lapsed(now, rest, EndCause::Renter))),
            LeaseAction::SetBid(bid) if phase == Phase::Resting => {
                self.set_waiting_bid(now, rest, bid)
            }
            LeaseAction::Stop
            | LeaseAction::Resume
            | LeaseAction::SetBid(_)
            | LeaseAction::Convert { .. } => Err(Rejection::WrongPhase(phase)),
        }
    }

    pub(super) fn decide_operator(
        &self,
        now: Timestamp,
        id: LeaseId,
    ) -> Result<Decision, Rejection> {
        let step = match (self.market.lease(id), self.market.resting(id)) {
            (Some(lease), _) => self.end(now, lease, EndCause::Operator),
            (None, Some(rest)) if rest.ended.is_some() => None,
            (None, Some(rest)) => Some(self.lapsed(now, rest, EndCause::Operator)),
            (None, None) => return Err(Rejection::UnknownLease),
        };
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
            State::Preparing { .. } | State::Clearing { .. } if was_running => {}
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

    /// Starts again from the kept disk. Resuming what runs or is about to is nothing. An interruptible lease
    /// whose resources others have waits for its turn.
    fn resume(&self, now: Timestamp, lease: &Lease) -> Result<Vec<Event>, Rejection> {
        let (cause, disk_until) = match &lease.state {
            State::Paused { cause, disk_until } => (cause, *disk_until),
            State::Clearing { .. } if lease.started_at.is_some() => return Ok(Vec::new()),
            State::Preparing { .. } | State::Running | State::Noticed { .. } => {
                return Ok(Vec::new());
            }
            State::Clearing { .. }
            | State::Offered { .. }
            | State::Accepted { .. }
            | State::Suspect { .. }
            | State::Closing { .. }
            | State::Closed { .. } => return Err(Rejection::WrongPhase(lease.state.phase())),
        };
        let misfit = match self.run_again(now, lease) {
            Ok(events) => return Ok(events),
            Err(misfit) => misfit,
        };
        let waits = misfit.rejection == Rejection::ResourceTaken
            && lease.contract.kind == ContractKind::Interruptible;
        if !waits {
            return Err(misfit.rejection);
        }
        let mut events = misfit.converts;
        if !cause.resumes_by_itself() {
            let to = State::Paused {
                cause: PauseCause::Outbid,
                disk_until,
            };
            events.push(self.moved(now, lease, to, self.meter_at(now, lease)));
        }
        Ok(events)
    }

    /// Ends a lease. Ending what ends is nothing.
    pub(super) fn end(&self, now: Timestamp, lease: &Lease, cause: EndCause) -> Option<Event> {
        let to = match &lease.state {
            State::Clearing { .. } if lease.started_at.is_some() => self.closing(now, lease, cause),
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
            | PauseCause::GpuFault(_)
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
