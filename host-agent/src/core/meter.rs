//! How long a container ran, over all its runs: what the host signs and the broker may bill at most.
//! It reads no clock; a [`Moment`] is an argument.

use protocol::ids::BootId;
use protocol::units::{Millis, Timestamp};
use serde::{Deserialize, Serialize};

/// Now, by the two clocks that a meter needs, and the boot in which the second one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock, which people and programs may set.
    pub wall: Timestamp,
    /// `CLOCK_MONOTONIC`: time since the boot, without time asleep. Nobody can set it.
    pub monotonic: Millis,
    /// The boot that `monotonic` counts in.
    pub boot: BootId,
}

/// The running time of one lease. It never falls, and grows by no more than the time that really passed:
/// neither a clock set forward nor an engine's wrong timestamp makes it longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meter {
    /// All runs before this one.
    before: Millis,
    /// This run so far.
    current: Millis,
    /// When this was last brought up to date, by the monotonic clock of `boot`.
    seen: Millis,
    boot: BootId,
}

impl Meter {
    /// The meter of a lease that has not run.
    #[must_use]
    pub const fn new(now: Moment) -> Self {
        Self {
            before: Millis(0),
            current: Millis(0),
            seen: now.monotonic,
            boot: now.boot,
        }
    }

    /// The time of all runs.
    #[must_use]
    pub const fn running(&self) -> Millis {
        self.before.plus(self.current)
    }

    /// The meter at the beginning of another run.
    #[must_use]
    pub const fn next_run(&self, now: Moment) -> Self {
        Self {
            before: self.running(),
            ..Self::new(now)
        }
    }

    /// The meter of a container that the engine started at `started_at` and that runs now.
    #[must_use]
    pub fn still_running(&self, started_at: Timestamp, now: Moment) -> Self {
        self.grown_to(now.wall.since(started_at), now)
    }

    /// The meter of a container that ran from `started_at` to `finished_at`, by the engine's account.
    #[must_use]
    pub fn finished(&self, started_at: Timestamp, finished_at: Timestamp, now: Moment) -> Self {
        self.grown_to(finished_at.since(started_at), now)
    }

    /// The meter of a container that was seen and did not run: what passed since it was seen last is not counted.
    #[must_use]
    pub fn idle(&self, now: Moment) -> Self {
        self.grown_to(self.current, now)
    }

    /// Brings this run up to `claimed`, as far as time passed for it since it was last seen. A container
    /// does not outlive its boot, so what happened after the last sight of an earlier one is not counted.
    fn grown_to(&self, claimed: Millis, now: Moment) -> Self {
        let passed = if self.boot == now.boot {
            now.monotonic.0.saturating_sub(self.seen.0)
        } else {
            0
        };
        let growth = claimed.0.saturating_sub(self.current.0).min(passed);
        // What was looked at earlier may be told later: the same time is not counted again.
        let seen = if self.boot == now.boot {
            now.monotonic.max(self.seen)
        } else {
            now.monotonic
        };
        Self {
            before: self.before,
            current: self.current.plus(Millis(growth)),
            seen,
            boot: now.boot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: BootId = BootId::from_bytes([1; 16]);

    fn at(wall: u64, monotonic: u64) -> Moment {
        Moment {
            wall: Timestamp(wall),
            monotonic: Millis(monotonic),
            boot: BOOT,
        }
    }

    #[test]
    fn two_runs_add_up() {
        let meter = Meter::new(at(100_000, 5_000));
        let meter = meter.still_running(Timestamp(101_000), at(111_000, 16_000));
        assert_eq!(meter.running(), Millis(10_000));
        let meter = meter.finished(Timestamp(101_000), Timestamp(113_500), at(120_000, 25_000));
        assert_eq!(meter.running(), Millis(12_500));
        let meter = meter.next_run(at(200_000, 105_000));
        let meter = meter.still_running(Timestamp(200_500), at(203_000, 108_000));
        assert_eq!(meter.running(), Millis(15_000));
    }

    #[test]
    fn a_late_look_counts_no_time_twice() {
        let meter = Meter::new(at(0, 0)).still_running(Timestamp(0), at(5_000, 5_000));
        let meter = meter.still_running(Timestamp(0), at(3_000, 3_000));
        // The wall clock was set forward by an hour: what passed since 5 s is all that counts.
        let meter = meter.still_running(Timestamp(0), at(3_606_000, 6_000));
        assert_eq!(meter.running(), Millis(6_000));
    }

    #[test]
    fn a_clock_set_forward_adds_only_the_time_that_passed() {
        let meter = Meter::new(at(0, 0)).still_running(Timestamp(0), at(1_000, 1_000));
        let meter = meter.still_running(Timestamp(0), at(3_601_000, 2_000));
        assert_eq!(meter.running(), Millis(2_000));
    }

    #[test]
    fn a_clock_set_back_takes_nothing_away() {
        let meter = Meter::new(at(10_000, 0)).still_running(Timestamp(10_000), at(15_000, 5_000));
        let meter = meter.still_running(Timestamp(10_000), at(11_000, 6_000));
        assert_eq!(meter.running(), Millis(5_000));
    }

    #[test]
    fn an_absurd_finish_adds_nothing() {
        let meter = Meter::new(at(10_000, 0)).still_running(Timestamp(10_000), at(15_000, 5_000));
        // The engine's zero time for a container that died with the machine.
        let meter = meter.finished(Timestamp(10_000), Timestamp(0), at(16_000, 6_000));
        assert_eq!(meter.running(), Millis(5_000));
    }

    #[test]
    fn nothing_is_counted_across_a_boot() {
        let meter =
            Meter::new(at(10_000, 90_000)).still_running(Timestamp(10_000), at(15_000, 95_000));
        let other = Moment {
            boot: BootId::from_bytes([2; 16]),
            ..at(900_000, 99_000_000)
        };
        let meter = meter.finished(Timestamp(10_000), Timestamp(899_000), other);
        assert_eq!(meter.running(), Millis(5_000));
    }

    #[test]
    fn time_in_which_it_was_paused_is_not_counted() {
        let meter = Meter::new(at(0, 0)).still_running(Timestamp(0), at(5_000, 5_000));
        let meter = meter.idle(at(20_000, 20_000));
        assert_eq!(meter.running(), Millis(5_000));
        let meter = meter.still_running(Timestamp(0), at(23_000, 23_000));
        assert_eq!(meter.running(), Millis(8_000));
    }

    #[test]
    fn an_agent_that_was_away_counts_what_the_container_ran_meanwhile() {
        let meter = Meter::new(at(10_000, 0)).still_running(Timestamp(10_000), at(11_000, 1_000));
        let meter = meter.still_running(Timestamp(10_000), at(71_000, 61_000));
        assert_eq!(meter.running(), Millis(61_000));
    }
}
