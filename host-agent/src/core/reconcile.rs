//! The containers that are there against the leases that should be: what a sight of them, and the end of some work
//! on one, changes in the records. What closes the difference is [`super::work`]'s.

use crate::core::capacity::Holdings;
use crate::core::lease::{LeaseRecord, State};
use crate::core::leases::{Change, Decision, Leases};
use crate::core::meter::Moment;
use crate::core::notice::Notice;
use crate::core::traffic::Crossed;
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
        /// What crossed its network since.
        crossed: Crossed,
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

/// How work that was not cancelled ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The container was started then.
    Started(Timestamp),
    /// The container could not be started, and does not run.
    Problem(Problem),
    /// The container was told of its notice.
    Told,
    /// The container's notice was taken back.
    Recalled,
    /// The container does not run any more; when it had been started, and what had crossed its network when it
    /// was told to stop.
    Stopped(Option<(Timestamp, Crossed)>),
    /// The container and its disk are gone; before that it had run last from when to when, if it had.
    Removed(Option<(Timestamp, Timestamp)>),
    /// The engine failed; the work begins again if it is still wanted.
    Broken(String),
}

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
                (Outcome::Told, State::Running { .. }) => record.notice.map(|notice| LeaseRecord {
                    notice: Some(notice.told()),
                    ..record.clone()
                }),
                (Outcome::Recalled, State::Running { .. }) => Some(LeaseRecord {
                    notice: None,
                    ..record.clone()
                }),
                (Outcome::Stopped(Some((started_at, crossed))), State::Running { .. }) => {
                    Some(LeaseRecord {
                        traffic: record.traffic.read(now.boot, *started_at, *crossed),
                        ..record.clone()
                    })
                }
                (Outcome::Removed(last), state) if !matches!(state, State::Gone { .. }) => {
                    Some(removed(record, *last, now))
                }
                // The next sight of the container says when it stopped and how.
                (
                    Outcome::Started(_)
                    | Outcome::Problem(_)
                    | Outcome::Told
                    | Outcome::Recalled
                    | Outcome::Stopped(_)
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
        Some(Observed::Running {
            started_at,
            crossed,
        }) => Some(now_running(record, *started_at, *crossed, now)),
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
                Want::Vacate(_) => Some(record.stopped(StopReason::Vacated)),
                Want::Run(_) | Want::End => None,
            }
        }
        None => match record.want {
            Want::Stop => Some(record.stopped(StopReason::Asked)),
            Want::Vacate(_) => Some(record.stopped(StopReason::Vacated)),
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
        Some(Observed::Running {
            started_at: since,
            crossed,
        }) => Some(LeaseRecord {
            meter: record.meter.still_running(started_at, now),
            traffic: record.traffic.read(now.boot, *since, *crossed),
            ..record.clone()
        }),
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

fn now_running(
    record: &LeaseRecord,
    started_at: Timestamp,
    crossed: Crossed,
    now: Moment,
) -> LeaseRecord {
    LeaseRecord {
        meter: record.meter.still_running(started_at, now),
        traffic: record.traffic.read(now.boot, started_at, crossed),
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
    let reason = match container {
        _ if let Some(reason) = asked_to_end(record, finished_at) => reason,
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

/// Why a run ended that somebody wanted to end.
fn asked_to_end(record: &LeaseRecord, finished_at: Timestamp) -> Option<StopReason> {
    let run = record.state.run();
    match record.want {
        Want::Stop | Want::End => Some(StopReason::Asked),
        Want::Run(wanted) => (wanted > run || record.is_overdue()).then_some(StopReason::Asked),
        Want::Vacate(vacate) if vacate.run > run => Some(StopReason::Asked),
        // What had ended before it heard of it did not end for it.
        Want::Vacate(_) => {
            let is_told = |notice: Notice| finished_at >= notice.heard_at;
            record
                .notice
                .is_none_or(is_told)
                .then_some(StopReason::Vacated)
        }
    }
}
