//! The only file of the broker that reads the clock. It takes no decision about what it reads.
//!
//! A [`Clock`] can be moved, so that a test can let an hour pass between two messages; moving it moves
//! every copy of it, and only the broker that holds those copies.

use protocol::units::{Millis, Seconds, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The clock that bills: wall time in milliseconds, and an offset that is zero outside tests.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    offset_ms: Arc<AtomicI64>,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::default()
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let offset = self.offset_ms.load(Ordering::Relaxed);
        Timestamp(wall_ms().saturating_add_signed(offset))
    }

    /// Lets `span` pass at once.
    pub fn advance(&self, span: Millis) {
        let span = i64::try_from(span.0).unwrap_or(i64::MAX);
        self.offset_ms.fetch_add(span, Ordering::Relaxed);
    }

    /// Sets the clock back by `span`, as a wrongly set machine would.
    pub fn set_back(&self, span: Millis) {
        let span = i64::try_from(span.0).unwrap_or(i64::MAX);
        self.offset_ms.fetch_sub(span, Ordering::Relaxed);
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock of the broker")]
fn wall_ms() -> u64 {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// How far a journal may be ahead of the clock: machines' clocks are set by so much now and then.
const AHEAD_MAX: Millis = Millis(60_000);

/// How far a journal whose last event was at `last_at` is ahead of a clock that says `now`, when it is
/// more than clocks differ. The market's time runs on from the journal then, and the times in the books are
/// ahead by so much.
#[must_use]
pub fn behind(now: Timestamp, last_at: Timestamp) -> Option<Seconds> {
    let ahead = last_at.since(now);
    (ahead > AHEAD_MAX).then(|| ahead.seconds())
}

/// The monotonic time, for how long something took.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts to measure.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock of the broker")]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// The time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_clock_moves_all_its_copies_and_no_other() {
        let (clock, other) = (Clock::system(), Clock::system());
        let copy = clock.clone();
        let before = other.now();
        clock.advance(Millis(3_600_000));
        assert!(copy.now().since(before).0 >= 3_600_000);
        assert!(other.now().since(before).0 < 3_600_000);
        copy.set_back(Millis(3_600_000));
        assert!(clock.now().since(before).0 < 3_600_000);
    }

    #[test]
    fn a_clock_may_be_behind_by_a_minute() {
        let now = Timestamp(1_800_000_000_000);
        assert_eq!(behind(now, now.before(Millis(5))), None);
        assert_eq!(behind(now, now.after(Millis(60_000))), None);
        assert_eq!(
            behind(now, now.after(Millis(3_600_000))),
            Some(Seconds(3600))
        );
    }
}
