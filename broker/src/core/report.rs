//! Deciding about what hosts say of their leases: grants, refusals, reports.
//!
//! Every message may come twice, late and out of order; hosts repeat them until they are answered.
//! Must not change anything.

use crate::core::desk::{Decision, Desk, Reply};
use crate::core::event::{Event, Fact};
use crate::core::eviction::rates_again;
use crate::core::lease::{Lease, Papers, State};
use crate::core::meter::Meter;
use crate::core::order::bad_value;
use protocol::ids::{HostId, LeaseId, PublicKey};
use protocol::lease::{
    ContainerState, Detail, EndCause, Grant, PauseCause, Problem, ProblemKind, Refusal, Report,
    Stage, StopReason,
};
use protocol::message::Rejection;
use protocol::signed::Verified;
use protocol::units::Timestamp;

impl Desk {
    fn lease_of_host(&self, id: LeaseId, signer: PublicKey) -> Result<&Lease, Rejection> {
        let lease = self.market.lease(id);
        lease
            .filter(|lease| lease.contract.host == HostId::from(signer))
            .ok_or(Rejection::UnknownLease)
    }

    pub(super) fn decide_grant(
        &self,
        now: Timestamp,
        grant: Verified<Grant>,
    ) -> Result<Decision, Rejection> {
        let lease = self.lease_of_host(grant.body().lease, grant.signer())?;
        match &lease.state {
            State::Offered { .. } => {}
            State::Clearing { .. } => return Err(Rejection::WrongPhase(lease.state.phase())),
            State::Accepted { .. }
            | State::Preparing { .. }
            | State::Running
            | State::Noticed { .. }
            | State::Suspect { .. }
            | State::Paused { .. }
            | State::Closing { .. } => return Ok(Decision::answer(Reply::Noted)),
            State::Closed { .. } => return Err(Rejection::WrongPhase(lease.state.phase())),
        }
        check_grant(lease, grant.body())?;
        let fact = Fact::Granted {
            lease: lease.id,
            grant: Box::new(grant.into()),
        };
        let events = vec![Event {
            at: now,
            fact,
            entries: Vec::new(),
        }];
        Ok(Decision::events(events, Reply::Noted))
    }

    pub(super) fn decide_refusal(
        &self,
        now: Timestamp,
        refusal: &Verified<Refusal>,
    ) -> Result<Decision, Rejection> {
        let lease = self.lease_of_host(refusal.body().lease, refusal.signer())?;
        match &lease.state {
            State::Offered { .. } => {}
            State::Clearing { .. } => return Err(Rejection::WrongPhase(lease.state.phase())),
            State::Closing { .. } | State::Closed { .. } => {
                return Ok(Decision::answer(Reply::Noted));
            }
            State::Accepted { .. }
            | State::Preparing { .. }
            | State::Running
            | State::Noticed { .. }
            | State::Suspect { .. }
            | State::Paused { .. } => return Err(Rejection::WrongPhase(lease.state.phase())),
        }
        let to = State::Closed {
            cause: EndCause::Refused(refusal.body().reason.clone()),
        };
        let event = self.moved(now, lease, to, self.meter_at(now, lease));
        Ok(Decision::events(vec![event], Reply::Noted))
    }

    pub(super) fn decide_report(
        &self,
        now: Timestamp,
        report: &Verified<Report>,
    ) -> Result<Decision, Rejection> {
        let lease = self.lease_of_host(report.body().lease, report.signer())?;
        let known = self.meter(lease);
        let said = report.body();
        if lease.state.is_closed() || said.sequence <= known.sequence {
            return Ok(Decision::answer(Reply::Noted));
        }
        let is_early = matches!(lease.state, State::Clearing { .. } | State::Offered { .. });
        if is_early && said.state != ContainerState::Gone {
            return Err(Rejection::WrongPhase(lease.state.phase()));
        }
        let meter = self
            .meter_at(now, lease)
            .hearing(now, said, report.digest());
        let event = match self.after_report(now, lease, said) {
            Some(State::Running) => Some(self.ran_on(now, lease, meter)),
            Some(to) => Some(self.moved(now, lease, to, meter)),
            None if self.is_worth_journalling(now, lease) => Some(self.metered(now, lease, meter)),
            None => None,
        };
        let decision = match event {
            Some(event) => Decision::events(vec![event], Reply::Noted),
            None => Decision::heard(lease.id, meter),
        };
        // Whatever run it was: gone is gone.
        let run = if said.state == ContainerState::Gone {
            lease.run
        } else {
            said.run
        };
        Ok(decision.saying(lease.id, run, said.state.clone()))
    }

    /// The event with which a lease runs. After a run that was free the next one costs again.
    fn ran_on(&self, now: Timestamp, lease: &Lease, meter: Meter) -> Event {
        let meter = meter.starting();
        match rates_again(lease, meter.usage.running) {
            Some(rates) => self.moved_waiving(now, lease, State::Running, meter, rates),
            None => self.moved(now, lease, State::Running, meter),
        }
    }

    /// A meter is journalled now and then; in between it is ahead of the journal, and a broker that
    /// restarts bills the gap if it was short.
    fn is_worth_journalling(&self, now: Timestamp, lease: &Lease) -> bool {
        now.since(lease.meter.counted) >= self.settings.meter_every.millis()
    }

    /// The state that a report leads to, if it is another one.
    fn after_report(&self, now: Timestamp, lease: &Lease, report: &Report) -> Option<State> {
        if report.state == ContainerState::Gone {
            return gone(lease);
        }
        // A report of an earlier run says nothing about this one but what its meters read.
        if report.run != lease.run {
            return None;
        }
        match &lease.state {
            State::Accepted { start_by } => {
                let to = || State::Preparing {
                    start_by: *start_by,
                };
                self.while_starting(now, lease, &report.state)
                    .or_else(|| matches!(report.state, ContainerState::Preparing(_)).then(to))
            }
            State::Preparing { .. } => self.while_starting(now, lease, &report.state),
            State::Running | State::Noticed { .. } => self.while_running(now, lease, &report.state),
            State::Suspect { .. } => Some(
                self.while_running(now, lease, &report.state)
                    .unwrap_or(State::Running),
            ),
            State::Clearing { .. }
            | State::Offered { .. }
            | State::Paused { .. }
            | State::Closing { .. }
            | State::Closed { .. } => None,
        }
    }

    fn while_starting(
        &self,
        now: Timestamp,
        lease: &Lease,
        container: &ContainerState,
    ) -> Option<State> {
        match container {
            ContainerState::Running => Some(State::Running),
            ContainerState::Failed(problem) => Some(self.failed(now, lease, problem.clone())),
            ContainerState::Stopped(reason) => match reason {
                // Of an earlier run, or of a goal that crossed.
                StopReason::Asked => None,
                StopReason::Exited(code) => Some(self.paused(now, PauseCause::Exited(*code))),
                StopReason::OutOfMemory => Some(self.paused(now, PauseCause::OutOfMemory)),
                StopReason::DiskFull => Some(self.paused(now, PauseCause::DiskFull)),
                StopReason::GpuFault(fault) => {
                    Some(self.paused(now, PauseCause::GpuFault(fault.clone())))
                }
                StopReason::Vacated => None,
                StopReason::ResourceTaken => Some(self.failed(now, lease, taken())),
            },
            ContainerState::Preparing(_) | ContainerState::Gone => None,
        }
    }

    fn while_running(
        &self,
        now: Timestamp,
        lease: &Lease,
        container: &ContainerState,
    ) -> Option<State> {
        let cause = match container {
            ContainerState::Stopped(reason) => match reason {
                StopReason::Asked => PauseCause::ResumeFailed(stopped_by_host()),
                StopReason::Exited(code) => PauseCause::Exited(*code),
                StopReason::OutOfMemory => PauseCause::OutOfMemory,
                StopReason::DiskFull => PauseCause::DiskFull,
                StopReason::GpuFault(fault) => PauseCause::GpuFault(fault.clone()),
                StopReason::Vacated => noticed_for(lease),
                StopReason::ResourceTaken => PauseCause::ResumeFailed(taken()),
            },
            ContainerState::Failed(problem) => {
                return Some(self.failed(now, lease, problem.clone()));
            }
            ContainerState::Running | ContainerState::Preparing(_) | ContainerState::Gone => {
                return None;
            }
        };
        Some(self.paused(now, cause))
    }

    /// A lease that never ran is over; one that ran has a disk worth keeping.
    pub(super) fn failed(&self, now: Timestamp, lease: &Lease, problem: Problem) -> State {
        if lease.started_at.is_none() {
            return self.closing(now, lease, EndCause::Failed(problem));
        }
        self.paused(now, PauseCause::ResumeFailed(problem))
    }
}

/// Why a lease went that had notice.
fn noticed_for(lease: &Lease) -> PauseCause {
    match &lease.state {
        State::Noticed { cause, .. } => cause.clone(),
        State::Clearing { .. }
        | State::Offered { .. }
        | State::Accepted { .. }
        | State::Preparing { .. }
        | State::Running
        | State::Suspect { .. }
        | State::Paused { .. }
        | State::Closing { .. }
        | State::Closed { .. } => PauseCause::Preempted,
    }
}

fn gone(lease: &Lease) -> Option<State> {
    let cause = match &lease.state {
        State::Closing { cause, .. } => cause.clone(),
        State::Closed { .. } => return None,
        State::Clearing { .. }
        | State::Offered { .. }
        | State::Accepted { .. }
        | State::Preparing { .. }
        | State::Running
        | State::Noticed { .. }
        | State::Suspect { .. }
        | State::Paused { .. } => {
            EndCause::Host(Detail::cut("the host says that it has no such container"))
        }
    };
    Some(State::Closed { cause })
}

/// A grant is for this order, this award and these resources, or it is for nothing.
fn check_grant(lease: &Lease, grant: &Grant) -> Result<(), Rejection> {
    let award = match &lease.papers {
        Papers::Whole { award, .. } => award.digest(),
        Papers::Filed { .. } => return Err(Rejection::WrongPhase(lease.state.phase())),
    };
    if grant.order != lease.contract.order_digest || grant.award != award {
        return Err(bad_value(
            "grant",
            "it is for another order or another award",
        ));
    }
    let granted = grant.resources.iter().map(|(resource, _)| resource);
    if !granted.eq(lease.contract.share.resources.iter()) {
        return Err(bad_value(
            "grant",
            "its resources are not the ones of the offer, in their order",
        ));
    }
    Ok(())
}

fn taken() -> Problem {
    Problem {
        stage: Stage::Granting,
        kind: ProblemKind::GpuUnavailable,
        detail: Detail::cut("another lease has the resource now"),
    }
}

fn stopped_by_host() -> Problem {
    Problem {
        stage: Stage::Starting,
        kind: ProblemKind::EngineFailed,
        detail: Detail::cut("the host stopped the container"),
    }
}
