//! What is known of one GPU's health.
//!
//! ```text
//!                        fault, finish the lease            nobody has it, preconditions hold
//!   Fit ───────────────▶ Finishing ──▶ Quarantined ─────────────────────▶ Resetting
//!    ▲  ╲ fault that ends the lease ──────▲  until: reset, reboot, checked     │ done
//!    │   ╲                                ╰─────────── failed ─────────────────┤
//!    │    ╲ the lease is over                                                  ▼
//!    ╰──── Cleaning ◀──────────────────────── until: tested ───────────────────╯
//! ```
//!
//! `Unknown` and `Gone` hide these while the GPU does not answer; what it waits for is not forgotten.

use crate::clocks::Pace;
use crate::counters::Counters;
use crate::machine::Place;
use host_nvml::sample::{Reading, RecoveryAction};
use protocol::ids::LeaseId;
use protocol::units::{Bytes, Millis};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// What has to be done before a GPU may be leased again, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Until {
    /// It is empty, and all its memory was written and read back.
    Tested,
    /// It was reset, and then tested.
    Reset,
    /// The machine was booted anew, and then it was tested.
    Reboot,
    /// Its owner looked at it and said so, and then it was tested.
    Checked,
}

impl Until {
    /// In words, after "it waits".
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Tested => "until it was tested",
            Self::Reset => "for a reset",
            Self::Reboot => "for a reboot of the machine",
            Self::Checked => "until its owner has checked it",
        }
    }
}

/// Why a GPU gets no lease, and until when. It outlives the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Why.
    pub why: String,
    /// The number of the error that it began with; 0 for one without.
    pub xid: u32,
    /// Until when.
    pub until: Until,
}

/// Whether a GPU can be spoken with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Presence {
    /// Nothing was heard of it yet, or nobody tells.
    #[default]
    Unheard,
    /// It answers.
    Answers,
    /// It does not answer.
    Unknown {
        /// Why.
        why: String,
        /// Since when.
        since: Millis,
    },
    /// The driver lists it no more.
    Gone,
}

/// What may be done with a GPU or slice now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fitness {
    /// It may be leased.
    Fit,
    /// Its lease goes on, and it gets no other until then.
    Finishing {
        /// Why.
        why: String,
        /// Until when.
        until: Until,
    },
    /// It gets no lease until then.
    Quarantined {
        /// Why.
        why: String,
        /// Until when.
        until: Until,
    },
    /// It is being reset, or what it is linked to is.
    Resetting,
    /// It is being cleaned after a lease.
    Cleaning,
    /// It is not there.
    Gone,
    /// It does not answer.
    Unknown {
        /// Why.
        why: String,
    },
}

impl Fitness {
    /// Whether it may be leased.
    #[must_use]
    pub const fn is_fit(&self) -> bool {
        matches!(self, Self::Fit)
    }

    /// In words.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Fit => "fit".to_owned(),
            Self::Finishing { why, until } => {
                format!("finishing: {why}; then it waits {}", until.in_words())
            }
            Self::Quarantined { why, until } => {
                format!("quarantined: {why}; it waits {}", until.in_words())
            }
            Self::Resetting => "resetting".to_owned(),
            Self::Cleaning => "cleaned after a lease".to_owned(),
            Self::Gone => "gone: the driver lists it no more".to_owned(),
            Self::Unknown { why } => format!("unknown: it does not answer: {why}"),
        }
    }
}

/// An error that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) xid: u32,
    pub(crate) instance: Option<u32>,
    pub(crate) at: Millis,
    /// The one lease that it happened to, where it was one.
    pub(crate) lease: Option<LeaseId>,
}

/// Most errors that are remembered of one GPU.
const PAST_MAX: usize = 64;
/// How long they are.
pub(crate) const DAY: Millis = Millis(24 * 3_600_000);

/// The settings of a GPU that a lease must not change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Enforced power limit in milliwatts.
    pub power_limit_mw: Option<u32>,
    /// Whether its memory corrects errors.
    pub ecc: Option<bool>,
    /// Whether the driver stays loaded while nothing uses it.
    pub persistence: Option<bool>,
    /// Whether it is divided.
    pub divided: Option<bool>,
}

/// One GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) presence: Presence,
    pub(crate) wait: Option<Wait>,
    /// Why it is to be reset as soon as nobody has it, though it is sold until then.
    pub(crate) reset_wanted: Option<String>,
    /// Whether it gets no lease together with others: the driver's wish.
    pub(crate) alone: bool,
    pub(crate) reset: Resets,
    /// The last reading.
    pub(crate) reading: Option<Reading>,
    pub(crate) counters: Option<Counters>,
    pub(crate) past: VecDeque<Past>,
    pub(crate) killed_at: Option<Millis>,
    pub(crate) pace: Pace,
    /// Whether it had more errors that were corrected than is good.
    pub(crate) worn: bool,
    pub(crate) idle: Idle,
    /// Whether the machine was booted anew and this was not read since: nothing of a lease's runs on it.
    pub(crate) is_booted: bool,
    pub(crate) settings: Option<Settings>,
}

/// What a GPU shows while nobody has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idle {
    /// Its memory in use.
    pub memory: Option<Bytes>,
    /// Processes of the machine's own that use it, such as a display's.
    pub processes: BTreeSet<u32>,
}

/// What the driver itself has in use goes up and down by less than this.
const IDLE_NOISE: u64 = 16 << 20;

impl Idle {
    /// After another reading of a GPU that nobody has; the same as before when it differs by next to nothing.
    pub(crate) fn after(&self, reading: &Reading) -> Self {
        let Some(processes) = &reading.processes else {
            return self.clone();
        };
        let memory = match (self.memory, reading.memory_used) {
            (Some(known), Some(used)) if known.0.abs_diff(used.0) < IDLE_NOISE => Some(known),
            (known, used) => used.or(known),
        };
        Self {
            memory,
            processes: processes.iter().map(|process| process.pid).collect(),
        }
    }
}

/// Resets of one GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resets {
    /// One is under way.
    pub(crate) running: bool,
    /// How many failed, one after the other.
    pub(crate) failed: u32,
    /// Not before then.
    pub(crate) not_before: Millis,
    /// For what errors it was reset, and when.
    pub(crate) done: VecDeque<(u32, Millis)>,
}

impl Unit {
    pub(crate) fn remember(&mut self, past: Past) {
        self.past.retain(|old| is_within(old.at, DAY, past.at));
        if self.past.len() >= PAST_MAX {
            self.past.pop_front();
        }
        self.past.push_back(past);
    }

    /// The errors of that number within `span` before now.
    pub(crate) fn past_of(
        &self,
        xid: u32,
        span: Millis,
        now: Millis,
    ) -> impl Iterator<Item = &Past> {
        self.past
            .iter()
            .filter(move |past| past.xid == xid && is_within(past.at, span, now))
    }

    /// What the driver itself wants done, as last read; nothing when it does not say.
    pub(crate) fn verdict(&self) -> Option<RecoveryAction> {
        self.reading.as_ref().and_then(|reading| reading.recovery)
    }
}

/// Whether `at` is no longer ago than `span`.
pub(crate) const fn is_within(at: Millis, span: Millis, now: Millis) -> bool {
    now.0.saturating_sub(at.0) <= span.0
}

/// What the agent's journal keeps of the GPUs' health.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The boot in which it was written, as text.
    pub boot: String,
    /// GPUs that something is kept of.
    pub gpus: Vec<KeptGpu>,
    /// What was leased and not cleaned since.
    pub used: Vec<Place>,
    /// Why the host takes no lease until it is booted anew.
    pub drain: Option<String>,
}

/// What is kept of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptGpu {
    /// Its UUID.
    pub gpu: protocol::offer::ResourceName,
    /// What it waits for.
    pub wait: Option<Wait>,
    /// Why it is to be reset when nobody has it.
    pub reset_wanted: Option<String>,
    /// What it shows while nobody has it.
    pub idle: Idle,
}
