//! The containers that are there against the leases that should be: what a sight of them changes in the
//! records, and what work closes the difference. It starts no work itself.

use crate::core::capacity::Holdings;
use crate::core::lease::{LeaseRecord, State};
use crate::core::leases::{Change, Decision, Leases};
use crate::core::meter::Moment;
use protocol::ids::LeaseId;
use protocol::lease::{Problem, StopReason, Want};
use protocol::units::{Seconds, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// A lease's container as the engine shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// Made and never started.
    Created,
    /// It runs, and was started then.
    Running {
        /// By the engine's account.
        started_at: Timestamp,
    },
    /// It is frozen, which its renter neither asked for nor pays for.
    Paused {
        /// By the engine's account.
        started_at: Timestamp,
    },
    /// It ran and does not.
    Exited {
        /// Its main process's exit code.
        code: i32,
        /// Whether the kernel killed it for memory.
        out_of_memory: bool,
        /// Whether it was stopped for writing more than its disk.
        disk_full: bool,
        /// By the engine's account.
        started_at: Timestamp,
        /// By the engine's account.
        finished_at: Timestamp,
    },
}

/// Containers by their lease; what is not in it does not exist.
pub type Containers = BTreeMap<LeaseId, Observed>;

/// What to do about one lease's container. Each is begun again until its effect is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Pull what is missing, make what is missing, start, or let go on what is paused.
    Prepare,
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

/// How work that was not cancelled ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The container was started then.
    Started(Timestamp),
    /// The container could not be started, and does not run.
    Problem(Problem),
    /// The container does not run any more.
    Stopped,
    /// The container and its disk are gone; before that it had run last from when to when, if it had.
    Removed(Option<(Timestamp, Timestamp)>),
    /// The engine failed; the work begins again if it is still wanted.
    Broken(String),
}

/// How long a container that no lease wants is given to stop.
const ORPHAN_GRACE: Seconds = Seconds(10);

impl Leases {
    /// What a sight of all containers changes; `now` is when they were looked at. `busy` are leases whose containers were being worked on at
    /// the time of that sight: it says nothing about them.
    #[must_use]
    pub fn decide_sight(
        &self,
        containers: &Containers,
        busy: &BTreeSet<LeaseId>,
        now: Moment,
    ) -> Decision {
        let changed = self
            .records()
            .values()
            .filter(|record| !busy.contains(&record.lease))
            .filter_map(|record| seen(record, containers.get(&record.lease), now))
            .map(|record| Change::Lease(Box::new(record)));
        Decision {
            changes: changed.collect(),
            notes: Vec::new(),
        }
    }

    /// What the end of some work on `lease` changes.
    #[must_use]
    pub fn decide_outcome(&self, lease: LeaseId, outcome: &Outcome, now: Moment) -> Decision {
        let changed = self
            .record(lease)
            .and_then(|record| match (outcome, &record.state) {
                // How long it runs is counted from what is seen, not from when this was heard.
                (Outcome::Started(started_at), State::Preparing { .. }) => {
                    Some(record.in_state(running(record, *started_at)))
                }
                (
                    Outcome::Problem(problem),
                    State::Preparing {
                        run,
                        started_before,
                        ..
                    },
                ) => Some(record.in_state(State::Failed {
                    run: *run,
                    problem: problem.clone(),
                    started_before: *started_before,
                })),
                (Outcome::Removed(last), state) if !matches!(state, State::Gone { .. }) => {
                    Some(removed(record, *last, now))
                }
                // The next sight of the container says when it stopped and how.
                (
                    Outcome::Started(_)
                    | Outcome::Problem(_)
                    | Outcome::Stopped
                    | Outcome::Removed(_)
                    | Outcome::Broken(_),
                    _,
                ) => None,
            });
        let changes = changed.map(|record| Change::Lease(Box::new(record)));
        Decision {
            changes: changes.into_iter().collect(),
            notes: Vec::new(),
        }
    }

    /// The work that every lease and every container that no lease wants should have now.
    #[must_use]
    pub fn work(&self, containers: &Containers) -> BTreeMap<LeaseId, Work> {
        let mut work = BTreeMap::new();
        for record in self.records().values() {
            if let Some(wanted) = wanted_work(record, containers.get(&record.lease)) {
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

    /// Leases that are over for longer than `kept`, and that no broker asks about: their logs may go.
    #[must_use]
    pub fn forgettable(&self, kept: Seconds, now: Timestamp) -> Vec<LeaseId> {
        let named = |record: &LeaseRecord| {
            self.goal(record.broker)
                .is_some_and(|goal| goal.leases.contains(&record.lease))
        };
        let is_old = |record: &&LeaseRecord| match record.state {
            State::Gone { at, .. } => now.since(at) >= kept.millis() && !named(record),
            State::Preparing { .. }
            | State::Running { .. }
            | State::Stopped { .. }
            | State::Failed { .. } => false,
        };
        self.records()
            .values()
            .filter(is_old)
            .map(|record| record.lease)
            .collect()
    }
}

/// The record after its container was removed: its last run counts to its end.
fn removed(record: &LeaseRecord, last: Option<(Timestamp, Timestamp)>, now: Moment) -> LeaseRecord {
    let current = match record.state {
        State::Running { started_at, .. } => Some(started_at),
        State::Preparing { .. }
        | State::Stopped { .. }
        | State::Failed { .. }
        | State::Gone { .. } => None,
    };
    let meter = match (current, last) {
        (Some(current), Some((started_at, finished_at))) if current == started_at => {
            record.meter.finished(started_at, finished_at, now)
        }
        (Some(_) | None, _) => record.meter,
    };
    LeaseRecord {
        meter,
        ..record.gone(now)
    }
}

/// The record after its container was seen like this, if that changes it.
fn seen(record: &LeaseRecord, container: Option<&Observed>, now: Moment) -> Option<LeaseRecord> {
    match &record.state {
        State::Preparing { started_before, .. } => {
            seen_preparing(record, *started_before, container, now)
        }
        State::Running { started_at, .. } => seen_running(record, *started_at, container, now),
        State::Stopped { started_before, .. } | State::Failed { started_before, .. } => {
            seen_idle(record, *started_before, container, now)
        }
        State::Gone { .. } => None,
    }
}

/// An agent that died in the middle left its container anywhere.
fn seen_preparing(
    record: &LeaseRecord,
    started_before: Option<Timestamp>,
    container: Option<&Observed>,
    now: Moment,
) -> Option<LeaseRecord> {
    let is_new = |started_at: Timestamp| started_before.is_none_or(|before| started_at > before);
    match container {
        Some(Observed::Running { started_at }) => Some(now_running(record, *started_at, now)),
        Some(Observed::Exited {
            started_at,
            finished_at,
            ..
        }) if is_new(*started_at) => {
            // It ran unseen, and its meter counts to its end only.
            let ran = record.in_state(running(record, *started_at));
            Some(ended(&ran, container, *started_at, *finished_at, now))
        }
        Some(Observed::Created | Observed::Paused { .. } | Observed::Exited { .. }) => {
            match record.want {
                Want::Stop => Some(record.stopped(StopReason::Asked)),
                Want::Run(_) | Want::End => None,
            }
        }
        None => match record.want {
            Want::Stop => Some(record.stopped(StopReason::Asked)),
            Want::End => Some(record.gone(now)),
            Want::Run(_) => None,
        },
    }
}

fn seen_running(
    record: &LeaseRecord,
    started_at: Timestamp,
    container: Option<&Observed>,
    now: Moment,
) -> Option<LeaseRecord> {
    match container {
        Some(Observed::Running { .. }) => {
            let meter = record.meter.still_running(started_at, now);
            Some(LeaseRecord {
                meter,
                ..record.clone()
            })
        }
        Some(Observed::Paused { .. }) => {
            let meter = record.meter.idle(now);
            Some(LeaseRecord {
                meter,
                ..record.clone()
            })
        }
        Some(Observed::Exited { finished_at, .. }) => {
            Some(ended(record, container, started_at, *finished_at, now))
        }
        // Removed and made again by hand: not the container that ran.
        Some(Observed::Created) | None => Some(record.gone(now)),
    }
}

fn seen_idle(
    record: &LeaseRecord,
    started_before: Option<Timestamp>,
    container: Option<&Observed>,
    now: Moment,
) -> Option<LeaseRecord> {
    // A container that never ran may not have been made yet; one that ran must still be there.
    let vanished = container.is_none() && (started_before.is_some() || record.want == Want::End);
    vanished.then(|| record.gone(now))
}

fn now_running(record: &LeaseRecord, started_at: Timestamp, now: Moment) -> LeaseRecord {
    let meter = record.meter.still_running(started_at, now);
    LeaseRecord {
        meter,
        ..record.in_state(running(record, started_at))
    }
}

/// Running with what it holds now.
fn running(record: &LeaseRecord, started_at: Timestamp) -> State {
    let held = match &record.state {
        State::Preparing { held, .. } | State::Running { held, .. } => held.clone(),
        State::Stopped { .. } | State::Failed { .. } | State::Gone { .. } => Holdings::default(),
    };
    State::Running {
        run: record.state.run(),
        held,
        started_at,
    }
}

/// The record after its run ended: by itself, or because it was asked to.
fn ended(
    record: &LeaseRecord,
    container: Option<&Observed>,
    started_at: Timestamp,
    finished_at: Timestamp,
    now: Moment,
) -> LeaseRecord {
    let meter = record.meter.finished(started_at, finished_at, now);
    let run = record.state.run();
    let asked = match record.want {
        Want::Stop | Want::End => true,
        Want::Run(wanted) => wanted > run || record.is_overdue(),
    };
    let reason = match container {
        _ if asked => StopReason::Asked,
        Some(Observed::Exited {
            disk_full: true, ..
        }) => StopReason::DiskFull,
        Some(Observed::Exited {
            out_of_memory: true,
            ..
        }) => StopReason::OutOfMemory,
        Some(Observed::Exited { code, .. }) => StopReason::Exited(*code),
        Some(Observed::Created | Observed::Running { .. } | Observed::Paused { .. }) | None => {
            StopReason::Asked
        }
    };
    LeaseRecord {
        meter,
        ..record.stopped(reason)
    }
}

fn wanted_work(record: &LeaseRecord, container: Option<&Observed>) -> Option<Work> {
    let grace = record.limits.stop_grace;
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
        (State::Running { run, .. }, Want::Run(wanted)) => {
            let ends = wanted > *run || record.is_overdue();
            if ends {
                return Some(Work::Stop { grace });
            }
            is_paused.then_some(Work::Prepare)
        }
        (State::Running { .. }, Want::Stop) => Some(Work::Stop { grace }),
        // Whatever started it, it holds nothing and must not run.
        (State::Preparing { .. } | State::Stopped { .. } | State::Failed { .. }, Want::Stop)
        | (State::Stopped { .. } | State::Failed { .. }, Want::Run(_)) => {
            runs.then_some(Work::Stop { grace })
        }
    }
}
