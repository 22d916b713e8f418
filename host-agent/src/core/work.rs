//! What is to be done about each container now, so that in the end it is what its broker wants. It starts no work
//! itself.

use crate::core::lease::{LeaseRecord, State};
use crate::core::leases::Leases;
use crate::core::meter::Moment;
use crate::core::reconcile::{Containers, Observed};
use protocol::ids::LeaseId;
use protocol::lease::{StopReason, Want};
use protocol::units::Seconds;
use std::collections::BTreeMap;

/// What to do about one lease's container. Each is begun again until its effect is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Pull what is missing, make what is missing, start, or let go on what is paused.
    Prepare,
    /// Tell it that it has to go: the notice file, and the polite signal.
    Notify,
    /// Tell it that it may stay after all.
    Recall,
    /// Stop within this time, keep the disk.
    Stop {
        /// From the polite signal to the other one.
        grace: Seconds,
    },
    /// Stop, save the logs, remove with its disk.
    Remove {
        /// From the polite signal to the other one.
        grace: Seconds,
    },
}

/// How long a container that no lease wants is given to stop.
const ORPHAN_GRACE: Seconds = Seconds(10);

impl Leases {
    /// The work that every lease and every container that no lease wants should have now.
    #[must_use]
    pub fn work(&self, containers: &Containers, now: Moment) -> BTreeMap<LeaseId, Work> {
        let mut work = BTreeMap::new();
        for record in self.records().values() {
            if let Some(wanted) = wanted_work(record, containers.get(&record.lease), now) {
                work.insert(record.lease, wanted);
            }
        }
        for lease in containers
            .keys()
            .filter(|lease| self.record(**lease).is_none())
        {
            work.insert(
                *lease,
                Work::Remove {
                    grace: ORPHAN_GRACE,
                },
            );
        }
        work
    }
}

/// How long a container has from the signal to its end: the usual, and of one that was told of its end before no
/// more than is left until then.
fn grace(record: &LeaseRecord, now: Moment) -> Seconds {
    let usual = record.limits.stop_grace;
    match record.notice {
        Some(notice) if notice.is_told() => notice.left(record.limits.notice, now).min(usual),
        // One that could not be told hears it now.
        Some(_) | None => usual,
    }
}

/// What a container that runs is to do.
fn work_while_running(
    record: &LeaseRecord,
    run: u32,
    is_paused: bool,
    now: Moment,
) -> Option<Work> {
    let grace = grace(record, now);
    let wanted = match record.want {
        Want::Stop | Want::End => return Some(Work::Stop { grace }),
        Want::Run(wanted) => wanted,
        Want::Vacate(vacate) => vacate.run,
    };
    if wanted > run || record.is_overdue() {
        return Some(Work::Stop { grace });
    }
    let is_leaving = matches!(record.want, Want::Vacate(_));
    match record.notice {
        None if is_leaving => Some(Work::Stop { grace }),
        Some(notice) if is_leaving && notice.is_over(record.limits.notice, now) => {
            Some(Work::Stop { grace })
        }
        // It hears nothing while it is frozen.
        Some(_) | None if is_paused => Some(Work::Prepare),
        Some(_) if !is_leaving => Some(Work::Recall),
        Some(notice) => (!notice.is_told()).then_some(Work::Notify),
        None => None,
    }
}

fn wanted_work(record: &LeaseRecord, container: Option<&Observed>, now: Moment) -> Option<Work> {
    let grace = match record.state {
        // Nothing is to be saved on a GPU that failed, and others wait for it.
        State::Stopped {
            reason: StopReason::GpuFault(_),
            ..
        } => Seconds(0),
        State::Preparing { .. }
        | State::Running { .. }
        | State::Stopped { .. }
        | State::Failed { .. }
        | State::Gone { .. } => record.limits.stop_grace,
    };
    let is_paused = matches!(container, Some(Observed::Paused { .. }));
    let runs = is_paused || matches!(container, Some(Observed::Running { .. }));
    match (&record.state, record.want) {
        (State::Gone { .. }, _) => container.map(|_| Work::Remove {
            grace: ORPHAN_GRACE,
        }),
        (
            State::Preparing { .. }
            | State::Running { .. }
            | State::Stopped { .. }
            | State::Failed { .. },
            Want::End,
        ) => Some(Work::Remove { grace }),
        (State::Preparing { .. }, Want::Run(_)) => Some(Work::Prepare),
        (State::Running { run, .. }, Want::Run(_) | Want::Stop | Want::Vacate(_)) => {
            work_while_running(record, *run, is_paused, now)
        }
        // Whether it was started in time, the next sight says.
        (State::Preparing { .. }, Want::Vacate(_)) => None,
        // Whatever started it, it holds nothing and must not run.
        (State::Preparing { .. } | State::Stopped { .. } | State::Failed { .. }, Want::Stop)
        | (State::Stopped { .. } | State::Failed { .. }, Want::Run(_) | Want::Vacate(_)) => {
            runs.then_some(Work::Stop { grace })
        }
    }
}
