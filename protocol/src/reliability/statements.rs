//! What a broker signs about a host: the outcome of each lease, and how the host stood in between.

use super::Incident;
use crate::bounded::List;
use crate::ids::{Digest, HostId, LeaseId, RenterId};
use crate::lease::Party;
use crate::signed::{Signed, Statement};
use crate::units::{MicroUsd, Millis, Timestamp};
use serde::{Deserialize, Serialize};

/// Most intervals and most faults in one statement.
pub const INTERVALS_MAX: usize = 128;
/// Most renters whose hours are carried on.
pub const PAYERS_MAX: usize = 1024;

/// A stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Interval {
    /// Its first moment.
    pub from: Timestamp,
    /// The first moment after it.
    pub to: Timestamp,
}

impl Interval {
    /// Whether a moment is in it.
    #[must_use]
    pub fn holds(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.to
    }
}

/// A renter as its host's score knows it: the same renter is the same payer of one host, and another one of
/// another host, so that statements do not tell who rents where. Whoever knows the renter can check it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Payer([u8; 16]);

impl Payer {
    /// `renter` as a payer of `host`.
    #[must_use]
    pub fn of(host: HostId, renter: RenterId) -> Self {
        let mut bytes = b"feira payer 1".to_vec();
        bytes.extend_from_slice(host.as_bytes());
        bytes.extend_from_slice(renter.as_bytes());
        Self(Digest::of(&bytes).half())
    }

    /// The payer with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Whether a lease ever ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Start {
    /// It has not run yet.
    Pending,
    /// It ran first then.
    Ran(Timestamp),
    /// It ended before it ran, and this is whom that is put down to.
    Failed(Party),
}

/// What came of one lease, as its broker saw it; interim until `ended` is there, and replaced by every later
/// one of the same lease and part. The renter's order and the host's grant and last report are the other two
/// parties' word for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Where it ran.
    pub host: HostId,
    /// The lease.
    pub lease: LeaseId,
    /// From 0; another one begins when a list of the one before is full. Only the first speaks of the start.
    pub part: u16,
    /// Who paid.
    pub payer: Payer,
    /// When its host was asked for it.
    pub asked_at: Timestamp,
    /// Whether it ran.
    pub start: Start,
    /// When it ran, in order.
    pub runs: List<Interval, INTERVALS_MAX>,
    /// What went wrong.
    pub incidents: List<Incident, INTERVALS_MAX>,
    /// What was paid for it so far.
    pub paid: MicroUsd,
    /// When it ended, and whom the end is put down to.
    pub ended: Option<(Timestamp, Party)>,
    /// Digest of the renter's signed order.
    pub order: Digest,
    /// Digest of the host's signed grant.
    pub grant: Option<Digest>,
    /// Digest of the host's last signed report.
    pub report: Option<Digest>,
}

impl Statement for Outcome {
    const TYPE: &'static str = "outcome/v1";
}

/// What is left of evidence that is too old or too much to be kept piece by piece.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// All evidence before this moment is in here, decayed to it.
    pub until: Timestamp,
    /// Hours of leases by who paid, in milliseconds.
    pub leased: List<(Payer, Millis), PAYERS_MAX>,
    /// Hours in which the host was heard and not leased.
    pub idle: Millis,
    /// Faults, in millionths.
    pub faults_ppm: u64,
    /// Leases that ran in time.
    pub starts: u32,
    /// Leases that the host did not run in time.
    pub starts_failed: u32,
}

/// How a host stood with a broker: when it was heard, what was not its fault, and what became of older
/// evidence. With the outcomes that it names, all that the host's score is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Which host.
    pub host: HostId,
    /// When it was heard, in order.
    pub heard: List<Interval, INTERVALS_MAX>,
    /// When the broker or its network was away; nothing in there counts for or against anybody.
    pub excluded: List<Interval, INTERVALS_MAX>,
    /// What went wrong outside leases.
    pub incidents: List<Incident, INTERVALS_MAX>,
    /// What came of older evidence.
    pub carried: Carried,
    /// How many outcomes belong to it.
    pub outcomes: u32,
    /// BLAKE3 of their bodies in order of lease and part: so that none can be left out.
    pub outcomes_digest: Digest,
}

impl Statement for Standing {
    const TYPE: &'static str = "standing/v1";
}

/// What a broker answers of a host: a page of the evidence, and the score that all of it comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEvidence {
    /// How the host stood.
    pub standing: Signed<Standing>,
    /// The moment of `ppm`, by the broker's clock.
    pub as_of: Timestamp,
    /// The shown score in millionths.
    pub ppm: u32,
    /// When the host was heard last, if it is there.
    pub heard_at: Option<Timestamp>,
    /// Outcomes, by lease and part.
    pub outcomes: List<Signed<Outcome>, 64>,
    /// Ask again from here if there are more.
    pub next: Option<(LeaseId, u16)>,
}

impl HostEvidence {
    /// Most outcomes in one answer.
    pub const OUTCOMES_MAX: usize = 64;
}
