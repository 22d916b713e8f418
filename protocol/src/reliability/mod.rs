//! How likely a host is to run a job to its end: what is counted, and the score that follows from it.
//!
//! Faults of a host come like a Poisson process whose rate is not known: Gamma(1, 36 h) before anything was
//! seen of it. With `F` faults in `E` hours, both decayed with a half-life of 90 days,
//!
//! ```text
//! R(T)    = ((36 + E) / (36 + E + T)) ^ (1 + F)        no fault within T hours
//! p_start = (8 + S) / (10 + S + S_failed)              the lease runs within 15 minutes
//! score   = p_start · R(24 h)      hazard = (1 + F) / (36 + E) an hour      a cluster: the product
//! ```
//!
//! A broker signs what it saw ([`Outcome`], [`Standing`]); whoever has these statements has the same
//! [`Evidence`], and gets the same [`Score`] to the last digit: powers come from the `libm` crate and not
//! from the machine's own library, sums are made in one order, and what programs sort by is an integer.
//!
//! Must not know how a broker came to see anything.

mod cap;
mod evidence;
mod fault;
mod model;
mod score;
mod statements;
mod timeline;

pub use cap::counted;
pub use evidence::{CheckError, Evidence};
pub use fault::{Fault, Incident, Weight};
pub use model::{cluster, decay, decayed_hours, hazard, start_probability, survival};
pub use score::{Counted, Score};
pub use statements::{
    Carried, HostEvidence, INTERVALS_MAX, Interval, Outcome, PAYERS_MAX, Payer, Standing, Start,
};

use crate::units::Seconds;

/// Faults before anything was seen.
pub const PRIOR_FAULTS: f64 = 1.0;
/// Hours before anything was seen.
pub const PRIOR_HOURS: f64 = 36.0;
/// Hours in which what was seen loses half its weight: 90 days.
pub const HALF_LIFE_HOURS: f64 = 2160.0;
/// What an hour counts in which the host was heard and nobody leased it.
pub const IDLE_WEIGHT: f64 = 0.25;
/// Hours of one renter that count whatever the others had.
pub const RENTER_HOURS: f64 = 48.0;
/// A start in this time is a good one.
pub const START_WITHIN: Seconds = Seconds(15 * 60);
/// Faults of one kind that are no further apart are one incident, and a host that comes back sooner is not lost.
pub const INCIDENT: Seconds = Seconds(15 * 60);
/// In which crashes of different renters make the host suspicious.
pub const CRASH_WINDOW: Seconds = Seconds(7 * 24 * 3600);
/// How many paying renters that takes.
pub const CRASH_RENTERS: usize = 3;
