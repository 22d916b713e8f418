//! How far a measurement is, and whether it is to stop. It measures nothing.

use crate::MeasureError;
use std::time::{Duration, Instant};

/// How often a measurement that waits looks whether it is to stop.
pub const LOOK: Duration = Duration::from_millis(50);

/// Who follows a measurement.
pub trait Control: Sync {
    /// Whether it is to stop; asked at least every [`LOOK`] or so.
    fn is_cancelled(&self) -> bool;
    /// So many thousandths are done. Called by one thread at a time, and never downwards.
    fn progress(&self, thousandths: u16);
}

/// Nobody: it goes to its end.
#[derive(Debug, Clone, Copy)]
pub struct Unwatched;

impl Control for Unwatched {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&self, _: u16) {}
}

/// A part of a measurement as one of its own: from `from` to `to` thousandths of the whole.
#[derive(Clone, Copy)]
pub struct Portion<'a> {
    whole: &'a dyn Control,
    from: u16,
    to: u16,
}

impl std::fmt::Debug for Portion<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Portion({}..{})", self.from, self.to)
    }
}

impl<'a> Portion<'a> {
    /// The portion of `whole` between two thousandths of it.
    #[must_use]
    pub fn of(whole: &'a dyn Control, from: u16, to: u16) -> Self {
        Self {
            whole,
            from,
            to: to.max(from),
        }
    }
}

impl Control for Portion<'_> {
    fn is_cancelled(&self) -> bool {
        self.whole.is_cancelled()
    }

    fn progress(&self, thousandths: u16) {
        let span = u32::from(self.to - self.from);
        let into = span * u32::from(thousandths.min(1000)) / 1000;
        self.whole
            .progress(self.from + u16::try_from(into).unwrap_or(0));
    }
}

/// How many thousandths of `length` have passed since `began`.
pub(crate) fn part_of(began: Instant, now: Instant, length: Duration) -> u16 {
    let passed = now.saturating_duration_since(began).as_micros();
    let part = (passed * 1000)
        .checked_div(length.as_micros())
        .unwrap_or(1000);
    u16::try_from(part.min(1000)).unwrap_or(1000)
}

/// An error if it is to stop.
pub(crate) fn check(control: &dyn Control) -> Result<(), MeasureError> {
    if control.is_cancelled() {
        return Err(MeasureError::Cancelled);
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    /// Stops after so many looks, and remembers what it was told.
    pub(crate) struct After {
        pub(crate) looks: AtomicU32,
        pub(crate) stopped: AtomicBool,
        pub(crate) said: Mutex<Vec<u16>>,
    }

    impl After {
        pub(crate) fn looks(looks: u32) -> Self {
            Self {
                looks: AtomicU32::new(looks),
                stopped: AtomicBool::new(false),
                said: Mutex::new(Vec::new()),
            }
        }
    }

    impl Control for After {
        fn is_cancelled(&self) -> bool {
            let left = self.looks.load(Ordering::Relaxed);
            self.looks.store(left.saturating_sub(1), Ordering::Relaxed);
            if left == 0 {
                self.stopped.store(true, Ordering::Relaxed);
            }
            left == 0
        }

        fn progress(&self, thousandths: u16) {
            self.said.lock().unwrap().push(thousandths);
        }
    }

    #[test]
    fn a_portion_is_a_part_of_the_whole() {
        let whole = After::looks(9);
        let portion = Portion::of(&whole, 200, 600);
        portion.progress(0);
        portion.progress(500);
        portion.progress(1000);
        assert_eq!(*whole.said.lock().unwrap(), [200, 400, 600]);
        assert!(!portion.is_cancelled());
    }

    #[test]
    fn a_part_of_a_time_never_exceeds_it() {
        let began = crate::clock::now();
        let second = Duration::from_secs(1);
        assert_eq!(part_of(began, began + second / 4, second), 250);
        assert_eq!(part_of(began, began + second * 4, second), 1000);
        assert_eq!(part_of(began, began, Duration::ZERO), 1000);
    }
}
