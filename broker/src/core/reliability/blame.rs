//! What a step of a lease says against its host: the table of attribution.
//!
//! Must not look at anything but the step.

use super::SILENT_AFTER;
use crate::core::lease::State;
use protocol::lease::{EndCause, Party, PauseCause, Problem, ProblemKind, Stage};
use protocol::reliability::{Fault, INCIDENT, Incident, Interval};
use protocol::units::Timestamp;

/// Exit codes of a program that was ended by a signal that nobody is known to have sent: illegal instruction,
/// abort, bus error, arithmetic, kill, segmentation fault. A renter's program does it, and bad memory does.
const CRASHES: [i32; 6] = [132, 134, 135, 136, 137, 139];

/// A step of a lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) before: &'a State,
    pub(super) to: &'a State,
    /// Since when a silence counts: see [`heard_since`].
    pub(super) heard: Timestamp,
    pub(super) at: Timestamp,
}

/// What the step is put down to its host as, if it is.
pub(super) fn incident(step: &Step<'_>) -> Option<Incident> {
    let fault = match step.before {
        State::Suspect { .. } => return silence(step),
        State::Running | State::Noticed { .. } => while_running(step.to),
        State::Paused { .. } => broken_off(step.to),
        // What fails before it ran is a failed start and nothing else.
        State::Clearing { .. }
        | State::Offered { .. }
        | State::Accepted { .. }
        | State::Preparing { .. }
        | State::Closing { .. }
        | State::Closed { .. } => None,
    };
    fault.map(|fault| Incident { at: step.at, fault })
}

/// The end of a silence. One that the broker's own absence explains is nothing; one that went on after it
/// begins when the broker was back.
fn silence(step: &Step<'_>) -> Option<Incident> {
    let container_survived = match step.to {
        State::Suspect { .. } => return None,
        State::Closing { cause, .. } | State::Closed { cause } => !matches!(
            cause,
            EndCause::HostLost | EndCause::Host(_) | EndCause::HostFailed(_)
        ),
        State::Paused { cause, .. } => !matches!(cause, PauseCause::ResumeFailed(_)),
        State::Running
        | State::Noticed { .. }
        | State::Clearing { .. }
        | State::Offered { .. }
        | State::Accepted { .. }
        | State::Preparing { .. } => true,
    };
    let silent = step.at.since(step.heard);
    if silent <= SILENT_AFTER.millis() {
        return None;
    }
    let fault = if container_survived && silent <= INCIDENT.millis() {
        Fault::Silent
    } else {
        Fault::Lost
    };
    Some(Incident {
        at: step.heard,
        fault,
    })
}

/// Since when a host that was heard at `heard` has been silent as far as a broker can tell that was away in
/// `excluded`: a silence that was not noticed before it went away begins when it is back.
pub(super) fn heard_since(excluded: &[Interval], heard: Timestamp) -> Timestamp {
    excluded.iter().fold(heard, |heard, away| {
        let noticed = heard.after(SILENT_AFTER.millis());
        if away.from < noticed && away.to > heard {
            away.to
        } else {
            heard
        }
    })
}

fn while_running(to: &State) -> Option<Fault> {
    match to {
        State::Paused { cause, .. } => match cause {
            PauseCause::ResumeFailed(problem) => of_problem(problem),
            PauseCause::GpuFault(fault) => match fault.class.party() {
                Party::Host => Some(Fault::GpuFailed),
                Party::Renter | Party::Broker | Party::Market => Some(Fault::RenterCaused),
            },
            PauseCause::Exited(code) => CRASHES.contains(code).then_some(Fault::AmbiguousCrash),
            PauseCause::Renter
            | PauseCause::OutOfMemory
            | PauseCause::FundsLow
            | PauseCause::DiskFull
            | PauseCause::Outbid
            | PauseCause::Preempted => None,
        },
        State::Closing { .. }
        | State::Closed { .. }
        | State::Clearing { .. }
        | State::Offered { .. }
        | State::Accepted { .. }
        | State::Preparing { .. }
        | State::Running
        | State::Noticed { .. }
        | State::Suspect { .. } => broken_off(to),
    }
}

/// A lease that its host ends.
fn broken_off(to: &State) -> Option<Fault> {
    let (State::Closing { cause, .. } | State::Closed { cause }) = to else {
        return None;
    };
    match cause {
        EndCause::Host(_) => Some(Fault::StoppedByHost),
        EndCause::HostFailed(_) => Some(Fault::Withdrawn),
        EndCause::HostLost => Some(Fault::Lost),
        EndCause::Failed(problem) => of_problem(problem),
        EndCause::Renter
        | EndCause::Budget
        | EndCause::Duration
        | EndCause::DiskExpired
        | EndCause::Refused(_)
        | EndCause::NotAccepted
        | EndCause::NotStarted
        | EndCause::Operator
        | EndCause::BidExpired
        | EndCause::TermOver
        | EndCause::OfferEnded => None,
    }
}

fn of_problem(problem: &Problem) -> Option<Fault> {
    match problem.kind {
        // A resource that another lease took is not a broken one.
        ProblemKind::GpuUnavailable if problem.stage != Stage::Granting => Some(Fault::GpuFailed),
        ProblemKind::GpuUnavailable | ProblemKind::EngineFailed | ProblemKind::HostSilent => {
            Some(Fault::StoppedByHost)
        }
        ProblemKind::ImageUnknown
        | ProblemKind::ImageRefused
        | ProblemKind::DigestMismatch
        | ProblemKind::ImageTooBig
        | ProblemKind::CommandUnknown
        | ProblemKind::ImageUnusable
        | ProblemKind::ImageNeedsOtherGpu
        | ProblemKind::RegistryDown => None,
    }
}
