//! What is done with a GPU or slice between two leases, as the steps it consists of. Nobody is billed for it.
//!
//! ```text
//!  the container is gone ─▶ Emptying ─▶ Scrubbing ─▶ Comparing ─▶ done
//!                             │            │            │
//!        a process stays, or memory    could not, or    errors that could not
//!        stays in use, for 10 s        read otherwise   be corrected
//!                             ╰────────────┴────────────┴─▶ dirty: no lease until it was cleaned
//! ```

use crate::counters::{Added, Counters};
use crate::machine::Place;
use crate::unit::{Idle, Until, is_within};
use host_nvml::sample::{Process, Reading};
use protocol::units::{Bytes, Millis};
use std::collections::BTreeSet;

/// How long processes and memory may take to go after the container was killed.
pub const EMPTY_WITHIN: Millis = Millis(10_000);
/// How much more memory than before may be in use: what the driver keeps changes a little with what ran.
pub const MEMORY_SLACK: Bytes = Bytes(64 << 20);
/// The least share of its memory that has to be written, in percent: the rest is the driver's own, and the
/// context's of who writes.
pub const SCRUBBED_PERCENT_MIN: u64 = 90;

/// The cleaning of one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaning {
    place: Place,
    stage: Stage,
    since: Millis,
    begun: Millis,
    before: Option<Counters>,
    took: Took,
}

/// Where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Processes have to go, and memory to be given back.
    Emptying,
    /// It is empty; it is not scrubbed yet, because it is to be reset first.
    Empty,
    /// It is written and read back.
    Scrubbing,
    /// The counters of memory errors are read once more.
    Comparing,
}

/// How long the steps took. It is recorded, and billed to nobody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Took {
    /// Until it was empty.
    pub emptying: Millis,
    /// Until it was written and read back.
    pub scrubbing: Millis,
    /// All.
    pub all: Millis,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing yet.
    Nothing,
    /// It is empty, and can be scrubbed or reset.
    IsEmpty,
    /// It is clean.
    Done {
        /// How long it took.
        took: Took,
        /// Memory errors since its lease began.
        added: Added,
    },
    /// It is not.
    Dirty(Dirty),
}

/// Why something is not clean.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Dirty {
    /// Processes did not go.
    #[error("processes of its last lease still use it: {pids:?}")]
    Processes {
        /// Their ids on the host.
        pids: Vec<u32>,
    },
    /// Nobody can say who uses it.
    #[error("the driver does not say who uses it")]
    UseUnknown,
    /// Its memory was not given back.
    #[error("{used} B of its memory are in use, and {idle} B were before its last lease", used = .used.0, idle = .idle.0)]
    Memory {
        /// In use.
        used: Bytes,
        /// In use while nobody had it.
        idle: Bytes,
    },
    /// The driver was told not to clear memory.
    #[error(
        "the driver was told not to clear memory that is freed (RMDisableScrubOnFree): take it out of the driver's settings"
    )]
    DriverKeeps,
    /// It could not be written in full.
    #[error("only {written} of its {memory} B of memory could be written", written = .written.0, memory = .memory.0)]
    Short {
        /// Written.
        written: Bytes,
        /// All of it.
        memory: Bytes,
    },
    /// What was read is not what was written.
    #[error("{wrong} B of its memory read otherwise than they were written")]
    Mismatch {
        /// How many.
        wrong: u64,
    },
    /// The scrub did not do its work.
    #[error("it could not be written: {0}")]
    Scrub(String),
    /// Errors that could not be corrected.
    #[error("{0} memory errors that could not be corrected since its last lease began")]
    Errors(u64),
    /// A row of memory could not be replaced.
    #[error("a row of its memory could not be replaced: the card may have to be returned")]
    Remap,
}

impl Dirty {
    /// What has to be done before it is tried again.
    #[must_use]
    pub const fn until(&self) -> Until {
        match self {
            Self::Mismatch { .. } | Self::Remap => Until::Checked,
            Self::Errors(_) => Until::Reset,
            Self::Processes { .. }
            | Self::UseUnknown
            | Self::Memory { .. }
            | Self::DriverKeeps
            | Self::Short { .. }
            | Self::Scrub(_) => Until::Tested,
        }
    }
}

/// What a scrub did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scrubbed {
    /// Memory that was written.
    pub written: Bytes,
    /// All of it.
    pub memory: Bytes,
    /// Bytes of the sample that read otherwise than they were written.
    pub wrong: u64,
}

/// Whether the driver clears memory that is freed, by the text of `/proc/driver/nvidia/params`.
#[must_use]
pub fn driver_clears(params: &str) -> bool {
    let mut settings = params
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("RegistryDwords"));
    !settings.any(|set| set.to_ascii_lowercase().contains("rmdisablescrubonfree"))
}

impl Cleaning {
    /// Of a place whose container is gone, with the counters from before its lease.
    #[must_use]
    pub const fn begin(place: Place, before: Option<Counters>, now: Millis) -> Self {
        Self {
            place,
            stage: Stage::Emptying,
            since: now,
            begun: now,
            before,
            took: Took {
                emptying: Millis(0),
                scrubbing: Millis(0),
                all: Millis(0),
            },
        }
    }

    /// What is cleaned.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Whether it is empty and waits for a reset or its scrub.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stage == Stage::Empty
    }

    /// After a reading of the GPU that was taken since the last step. `idle` is what the GPU showed while nobody had
    /// it.
    #[must_use]
    pub fn read(
        &self,
        reading: &Reading,
        counters: Counters,
        idle: &Idle,
        now: Millis,
    ) -> (Self, Step) {
        match self.stage {
            Stage::Emptying => match self.residue(reading, idle) {
                None => {
                    let mut next = self.at(Stage::Empty, now);
                    next.took.emptying = since(self.begun, now);
                    (next, Step::IsEmpty)
                }
                Some(_) if is_within(self.since, EMPTY_WITHIN, now) => {
                    (self.clone(), Step::Nothing)
                }
                Some(dirty) => (self.clone(), Step::Dirty(dirty)),
            },
            Stage::Empty | Stage::Scrubbing => (self.clone(), Step::Nothing),
            Stage::Comparing => (self.clone(), self.compared(counters, now)),
        }
    }

    /// The scrub begins.
    #[must_use]
    pub fn scrubbing(&self, now: Millis) -> Self {
        self.at(Stage::Scrubbing, now)
    }

    /// The scrub ended.
    #[must_use]
    pub fn scrubbed(&self, result: &Result<Scrubbed, Dirty>, now: Millis) -> (Self, Step) {
        if self.stage != Stage::Scrubbing {
            return (self.clone(), Step::Nothing);
        }
        let mut next = self.at(Stage::Comparing, now);
        next.took.scrubbing = since(self.since, now);
        let dirty = match result {
            Err(dirty) => Some(dirty.clone()),
            Ok(done) if done.wrong > 0 => Some(Dirty::Mismatch { wrong: done.wrong }),
            Ok(done) => {
                let wanted = done.memory.0 / 100 * SCRUBBED_PERCENT_MIN;
                (done.written.0 < wanted).then_some(Dirty::Short {
                    written: done.written,
                    memory: done.memory,
                })
            }
        };
        let step = dirty.map_or(Step::Nothing, Step::Dirty);
        (next, step)
    }

    /// What is left on it.
    fn residue(&self, reading: &Reading, idle: &Idle) -> Option<Dirty> {
        let Some(processes) = &reading.processes else {
            return Some(Dirty::UseUnknown);
        };
        let is_here = |process: &&Process| {
            self.place.is_whole() || process.gpu_instance == self.place.instance
        };
        let pids: BTreeSet<u32> = processes
            .iter()
            .filter(is_here)
            .map(|process| process.pid)
            .filter(|pid| !idle.processes.contains(pid))
            .collect();
        if !pids.is_empty() {
            let pids = pids.into_iter().collect();
            return Some(Dirty::Processes { pids });
        }
        // The memory of a slice is not told apart from that of its neighbours; that it can be written shows it.
        if !self.place.is_whole() {
            return None;
        }
        let idle = idle.memory.unwrap_or_default();
        let used = reading.memory_used?;
        let most = idle.0.saturating_add(MEMORY_SLACK.0);
        (used.0 > most).then_some(Dirty::Memory { used, idle })
    }

    fn compared(&self, counters: Counters, now: Millis) -> Step {
        let added = match &self.before {
            Some(before) => before.added_until(&counters),
            None => Added::default(),
        };
        // Errors of a divided GPU are not told apart by slice: its events say whose they are.
        if self.place.is_whole() && added.failed {
            return Step::Dirty(Dirty::Remap);
        }
        if self.place.is_whole() && added.uncorrected > 0 {
            return Step::Dirty(Dirty::Errors(added.uncorrected));
        }
        let took = Took {
            all: since(self.begun, now),
            ..self.took
        };
        Step::Done { took, added }
    }

    fn at(&self, stage: Stage, now: Millis) -> Self {
        Self {
            stage,
            since: now,
            ..self.clone()
        }
    }
}

const fn since(then: Millis, now: Millis) -> Millis {
    Millis(now.0.saturating_sub(then.0))
}

#[cfg(test)]
mod tests;
