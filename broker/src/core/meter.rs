//! A lease's meter: what the host signed, bounded by the broker's own clock.
//!
//! Must not know prices.

use protocol::ids::Digest;
use protocol::lease::{Meters, Report};
use protocol::units::{Bytes, Millis, Seconds, Timestamp};
use protocol::usage::Usage;
use serde::{Deserialize, Serialize};

/// Most bytes that a lease can move in a millisecond: a link of 10 Gbit/s. A host cannot bill more traffic
/// than fits through one in the time that is billed.
const LINK_BYTES_PER_MS: u64 = 1_250_000;

/// What is counted while time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// Nothing.
    Nothing,
    /// The disk.
    Storage,
    /// The disk and the running container.
    Running,
}

/// A lease's meter at one moment, cumulative from its start.
///
/// The broker's clock says how long the container may have run at most (`allowed`), the host signs how
/// long it ran; the lower one is billed and never falls. Time in which the host was not heard is counted
/// by neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meter {
    /// When the host was last heard about this lease, by the broker's clock.
    pub heard: Timestamp,
    /// Up to when time was counted.
    pub counted: Timestamp,
    /// How long the container may have run by the broker's clock.
    pub allowed: Millis,
    /// What is billed.
    pub usage: Usage,
    /// The highest values that the host signed.
    pub signed: Meters,
    /// Sequence of the last report.
    pub sequence: u64,
    /// Digest of the last report.
    pub report: Option<Digest>,
}

impl Meter {
    /// A meter of nothing, at the moment `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self {
            heard: now,
            counted: now,
            allowed: Millis(0),
            usage: Usage::default(),
            signed: Meters::default(),
            sequence: 0,
            report: None,
        }
    }

    /// Counts the time up to `now`, unless the host has been silent for longer than `silence_max`.
    #[must_use]
    pub fn counted_to(mut self, now: Timestamp, counting: Counting, silence_max: Seconds) -> Self {
        let gap = now.since(self.counted);
        if self.is_heard(now, silence_max) {
            if counting == Counting::Running {
                self.allowed = self.allowed.plus(gap);
            }
            if counting != Counting::Nothing {
                self.usage.stored = self.usage.stored.plus(gap);
            }
        }
        self.counted = self.counted.max(now);
        self.billed()
    }

    /// Takes up what a report says, after the time before it was counted.
    #[must_use]
    pub fn hearing(mut self, now: Timestamp, report: &Report, digest: Digest) -> Self {
        let Meters {
            running,
            uploaded,
            downloaded,
        } = report.meters;
        self.heard = self.heard.max(now);
        self.signed.running = self.signed.running.max(running);
        self.signed.uploaded = self.signed.uploaded.max(uploaded);
        self.signed.downloaded = self.signed.downloaded.max(downloaded);
        self.sequence = report.sequence;
        self.report = Some(digest);
        self.billed()
    }

    /// Begins a run: what the host could still have signed of an earlier one is forfeit.
    #[must_use]
    pub const fn starting(mut self) -> Self {
        self.allowed = self.usage.running;
        self
    }

    /// What will be billed at `now` if the host signs that the container ran on since its last report.
    #[must_use]
    pub fn expected(&self, now: Timestamp, counting: Counting, silence_max: Seconds) -> Usage {
        let unsigned = now.since(self.heard);
        let ahead = self.counted_to(now, counting, silence_max);
        let signed = if counting == Counting::Running {
            self.signed.running.plus(unsigned)
        } else {
            self.signed.running
        };
        let mut usage = ahead.usage;
        usage.running = usage.running.max(ahead.allowed.min(signed));
        usage
    }

    /// What will be billed if the host signs all that the broker's clock allows.
    #[must_use]
    pub fn at_most(&self) -> Usage {
        Usage {
            running: self.usage.running.max(self.allowed),
            ..self.usage
        }
    }

    /// Whether the host has been heard lately enough to be billed for.
    #[must_use]
    pub fn is_heard(&self, now: Timestamp, silence_max: Seconds) -> bool {
        now.since(self.heard) <= silence_max.millis()
    }

    fn billed(mut self) -> Self {
        self.usage.running = self
            .usage
            .running
            .max(self.allowed.min(self.signed.running));
        let most = Bytes(self.usage.running.0.saturating_mul(LINK_BYTES_PER_MS));
        self.usage.uploaded = self.usage.uploaded.max(self.signed.uploaded.min(most));
        self.usage.downloaded = self.usage.downloaded.max(self.signed.downloaded.min(most));
        self
    }
}
