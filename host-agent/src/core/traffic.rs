//! What crossed the network interfaces of a lease's container, over all its runs: what the host signs and the
//! broker may bill at most.
//!
//! The kernel counts from zero whenever a container is started, so what is read belongs to one start. It reads
//! no counter itself.

use protocol::ids::BootId;
use protocol::units::{Bytes, Timestamp};
use serde::{Deserialize, Serialize};

/// Bytes in both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crossed {
    /// Bytes that left the container.
    pub uploaded: Bytes,
    /// Bytes that reached it.
    pub downloaded: Bytes,
}

impl Crossed {
    const fn plus(self, other: Self) -> Self {
        Self {
            uploaded: Bytes(self.uploaded.0.saturating_add(other.uploaded.0)),
            downloaded: Bytes(self.downloaded.0.saturating_add(other.downloaded.0)),
        }
    }

    fn at_least(self, other: Self) -> Self {
        Self {
            uploaded: self.uploaded.max(other.uploaded),
            downloaded: self.downloaded.max(other.downloaded),
        }
    }
}

/// The traffic of one lease. It never falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// All starts before this one.
    before: Crossed,
    /// This start so far.
    current: Crossed,
    /// Which start: when it was, by the engine's account, in this boot.
    start: (BootId, Timestamp),
}

impl Traffic {
    /// Of a container that was not started yet.
    #[must_use]
    pub const fn new(boot: BootId) -> Self {
        let nothing = Crossed {
            uploaded: Bytes(0),
            downloaded: Bytes(0),
        };
        Self {
            before: nothing,
            current: nothing,
            start: (boot, Timestamp(0)),
        }
    }

    /// The traffic of all starts.
    #[must_use]
    pub const fn total(&self) -> Crossed {
        self.before.plus(self.current)
    }

    /// The traffic after the counters of the container that was started at `started_at` read `counters`. A look
    /// that is told late, and a counter that fell within one start, add nothing.
    #[must_use]
    pub fn read(&self, boot: BootId, started_at: Timestamp, counters: Crossed) -> Self {
        let start = (boot, started_at);
        if self.start == start {
            return Self {
                current: self.current.at_least(counters),
                ..*self
            };
        }
        let is_older = self.start.0 == boot && started_at < self.start.1;
        if is_older {
            return *self;
        }
        Self {
            before: self.total(),
            current: counters,
            start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: BootId = BootId::from_bytes([1; 16]);

    const fn crossed(uploaded: u64, downloaded: u64) -> Crossed {
        Crossed {
            uploaded: Bytes(uploaded),
            downloaded: Bytes(downloaded),
        }
    }

    #[test]
    fn one_start_counts_what_its_counters_read() {
        let traffic = Traffic::new(BOOT).read(BOOT, Timestamp(10), crossed(5, 7));
        assert_eq!(traffic.total(), crossed(5, 7));
        let traffic = traffic.read(BOOT, Timestamp(10), crossed(50, 70));
        assert_eq!(traffic.total(), crossed(50, 70));
    }

    #[test]
    fn starts_add_up_whatever_their_counters_begin_with() {
        let traffic = Traffic::new(BOOT).read(BOOT, Timestamp(10), crossed(50, 70));
        let traffic = traffic.read(BOOT, Timestamp(20), crossed(0, 1));
        assert_eq!(traffic.total(), crossed(50, 71));
        let traffic = traffic.read(BOOT, Timestamp(20), crossed(60, 80));
        assert_eq!(traffic.total(), crossed(110, 150));
    }

    #[test]
    fn another_boot_is_another_start_even_at_an_earlier_time() {
        let traffic = Traffic::new(BOOT).read(BOOT, Timestamp(10), crossed(50, 70));
        let other = BootId::from_bytes([2; 16]);
        let traffic = traffic.read(other, Timestamp(5), crossed(1, 2));
        assert_eq!(traffic.total(), crossed(51, 72));
    }

    #[test]
    fn a_counter_that_falls_and_a_look_that_comes_late_add_and_take_nothing() {
        let traffic = Traffic::new(BOOT).read(BOOT, Timestamp(10), crossed(50, 70));
        let traffic = traffic.read(BOOT, Timestamp(10), crossed(40, 90));
        assert_eq!(traffic.total(), crossed(50, 90));
        let traffic = traffic.read(BOOT, Timestamp(20), crossed(1, 1));
        let late = traffic.read(BOOT, Timestamp(10), crossed(60, 95));
        assert_eq!(late, traffic);
    }

    #[test]
    fn sums_stop_at_the_largest_number() {
        let most = crossed(u64::MAX, u64::MAX);
        let traffic = Traffic::new(BOOT).read(BOOT, Timestamp(1), most);
        let traffic = traffic.read(BOOT, Timestamp(2), most);
        assert_eq!(traffic.total(), most);
    }
}
