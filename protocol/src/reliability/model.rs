//! The formulas alone: hours and counts in, probabilities out. Must not know statements.

use super::{HALF_LIFE_HOURS, PRIOR_FAULTS, PRIOR_HOURS};
use crate::units::{Millis, Timestamp};
use std::f64::consts::LN_2;
use std::time::Duration;

/// How likely it is that no fault comes within `hours`, with that much seen: the survival function of the
/// Lomax distribution.
#[must_use]
pub fn survival(faults: f64, exposure_hours: f64, hours: f64) -> f64 {
    let seen = PRIOR_HOURS + exposure_hours;
    libm::pow(seen / (seen + hours), PRIOR_FAULTS + faults)
}

/// Faults to expect in an hour.
#[must_use]
pub fn hazard(faults: f64, exposure_hours: f64) -> f64 {
    (PRIOR_FAULTS + faults) / (PRIOR_HOURS + exposure_hours)
}

/// How likely a lease is to run in time: eight of ten before anything was seen.
#[must_use]
pub fn start_probability(starts: u32, failed: u32) -> f64 {
    let (starts, failed) = (f64::from(starts), f64::from(failed));
    (8.0 + starts) / (10.0 + starts + failed)
}

/// How likely a job is to survive that needs all of some hosts.
#[must_use]
pub fn cluster(scores: impl IntoIterator<Item = f64>) -> f64 {
    scores.into_iter().product()
}

/// What is left at `now` of something that counted one at `at`; one for what is still to come.
#[must_use]
pub fn decay(at: Timestamp, now: Timestamp) -> f64 {
    libm::exp2(-hours(now.since(at)) / HALF_LIFE_HOURS)
}

/// What is left at `now` of the hours between two moments, each of which began to decay when it passed:
/// `∫ 2^(-(now - t) / h) dt`.
#[must_use]
pub fn decayed_hours(from: Timestamp, to: Timestamp, now: Timestamp) -> f64 {
    let to = to.min(now);
    if from >= to {
        return 0.0;
    }
    DECAYED_HOURS_MAX * (decay(to, now) - decay(from, now))
}

/// What all hours there ever were come to, decayed.
pub(super) const DECAYED_HOURS_MAX: f64 = HALF_LIFE_HOURS / LN_2;

/// A time in hours.
pub(super) fn hours(time: Millis) -> f64 {
    Duration::from_millis(time.0).as_secs_f64() / 3600.0
}

/// Hours in milliseconds, rounded down; nothing for what is not a time.
pub(super) fn millis(hours: f64) -> Millis {
    let time = Duration::try_from_secs_f64(hours * 3600.0).unwrap_or_default();
    Millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// A number of at least zero in millionths, rounded down; nothing for what is not a number.
pub(super) fn millionths(number: f64) -> u64 {
    let number = Duration::try_from_secs_f64(number).unwrap_or_default();
    u64::try_from(number.as_micros()).unwrap_or(u64::MAX)
}
