//! The one place that reads the clocks. Everything else takes `now` as an argument.

use protocol::units::{Millis, Timestamp};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The time of day by this machine's clock.
#[expect(
    clippy::disallowed_methods,
    reason = "this file is where the clock is read"
)]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Measures how long something takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts at zero.
    #[expect(
        clippy::disallowed_methods,
        reason = "this file is where the clock is read"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// What it shows.
    pub(crate) fn elapsed(&self) -> Millis {
        Millis(u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}
