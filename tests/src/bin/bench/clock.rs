//! The one place where the bench reads the clock.
//!
//! Must not convert or compare; it only says what the time is.

use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};

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

/// The CPU time that this thread took so far.
pub(crate) fn on_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanoseconds)
}
