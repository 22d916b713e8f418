//! The one place where the bench reads the clock.
//!
//! Must not convert or compare; it only says what the time is.

use std::time::{Instant, SystemTime};

/// A point in time to measure from.
#[expect(
    clippy::disallowed_methods,
    reason = "a bench is about time, and reads it here only"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The time of day, to compare with what another program on this machine wrote down.
#[expect(
    clippy::disallowed_methods,
    reason = "a bench is about time, and reads it here only"
)]
pub(crate) fn time_of_day() -> SystemTime {
    SystemTime::now()
}
