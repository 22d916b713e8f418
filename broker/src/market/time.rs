//! The time of the books. It never goes back: when the clock was ahead once and was put right, it runs on from
//! where the journal is, as fast as time passes, so that deadlines come and nothing is billed twice. How far
//! that is ahead of the clock is said, and what has to go by the clock can.

use crate::clock::{Clock, Stopwatch, behind};
use protocol::units::{Millis, Timestamp};
use std::time::Duration;

/// How often it is said that the clock is behind.
const SAID_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct BookTime {
    clock: Clock,
    /// The time when `passed` was started.
    from: Timestamp,
    passed: Stopwatch,
    now: Timestamp,
    ahead: Millis,
    said: Option<Stopwatch>,
}

impl BookTime {
    /// The time of books whose last event was at `last_at`.
    pub(super) fn after(last_at: Timestamp, clock: Clock) -> Self {
        let mut time = Self {
            clock,
            from: last_at,
            passed: Stopwatch::start(),
            now: last_at,
            ahead: Millis(0),
            said: None,
        };
        time.read();
        time
    }

    /// The time as it was read last.
    pub(super) const fn now(&self) -> Timestamp {
        self.now
    }

    /// How far that was ahead of the clock.
    pub(super) const fn ahead(&self) -> Millis {
        self.ahead
    }

    pub(super) fn read(&mut self) {
        let clock = self.clock.now();
        let passed = u64::try_from(self.passed.elapsed().as_millis()).unwrap_or(u64::MAX);
        let ran_on = self.from.after(Millis(passed));
        if clock >= ran_on {
            self.from = clock;
            self.passed = Stopwatch::start();
        }
        self.now = clock.max(ran_on);
        self.ahead = self.now.since(clock);
        self.warn(clock);
    }

    fn warn(&mut self, clock: Timestamp) {
        let is_said = |said: Stopwatch| said.elapsed() < SAID_EVERY;
        if let Some(ahead) = behind(clock, self.now)
            && !self.said.is_some_and(is_said)
        {
            self.said = Some(Stopwatch::start());
            tracing::warn!(
                "the journal is {ahead} ahead of this machine's clock, which was set back: leases go on and are \
                 billed by the time that passes, but times in the books are ahead by so much; is the clock right?"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Millis = Millis(3_600_000);

    #[test]
    fn the_books_follow_a_clock_that_goes_forward() {
        let clock = Clock::system();
        let mut time = BookTime::after(Timestamp(0), clock.clone());
        let before = time.now();
        clock.advance(HOUR);
        time.read();
        assert!(time.now().since(before) >= HOUR);
        assert_eq!(time.ahead(), Millis(0));
    }

    #[test]
    fn the_books_run_on_while_the_clock_is_behind_them() {
        let clock = Clock::system();
        let last_at = clock.now().after(HOUR);
        let mut time = BookTime::after(last_at, clock.clone());
        let first = time.now();
        assert!(first >= last_at);
        std::thread::sleep(Duration::from_millis(30));
        time.read();
        let passed = time.now().since(first);
        assert!(passed >= Millis(30) && passed < HOUR, "{passed:?}");
        let apart = time.ahead();
        assert!(apart.0.abs_diff(HOUR.0) < 1000, "{apart:?}");
        // The clock catches up: from here on the books go by it.
        clock.advance(Millis(2 * HOUR.0));
        time.read();
        assert_eq!(time.ahead(), Millis(0));
        // And is set back again: no step back.
        let before = time.now();
        clock.set_back(HOUR);
        time.read();
        assert!(time.now() >= before);
        assert!(time.ahead().0.abs_diff(HOUR.0) < 1000);
    }
}
