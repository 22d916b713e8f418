//! A notice to a container that has to go: when it was heard, and when it is over. It reads no clock.

use crate::core::meter::Moment;
use protocol::ids::BootId;
use protocol::units::{Millis, Seconds, Timestamp};
use serde::{Deserialize, Serialize};

/// A notice of one run. It counts from when this host heard it, by a clock that nobody can set, so that each
/// container has the whole time that its offer states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Whether a better bid, rather than a firm lease, takes its place.
    pub outbid: bool,
    /// When it was heard.
    pub heard_at: Timestamp,
    /// The same by the monotonic clock of `boot`.
    heard: Millis,
    boot: BootId,
    /// Whether the container was told.
    told: bool,
}

impl Notice {
    /// Heard now.
    #[must_use]
    pub const fn heard(outbid: bool, now: Moment) -> Self {
        Self {
            outbid,
            heard_at: now.wall,
            heard: now.monotonic,
            boot: now.boot,
            told: false,
        }
    }

    /// The same, and the container knows.
    #[must_use]
    pub const fn told(&self) -> Self {
        Self {
            told: true,
            ..*self
        }
    }

    /// Whether the container was told.
    #[must_use]
    pub const fn is_told(&self) -> bool {
        self.told
    }

    /// When the container is stopped, for people and programs in it.
    #[must_use]
    pub const fn stop_at(&self, length: Seconds) -> Timestamp {
        self.heard_at.after(length.millis())
    }

    /// What is left of a notice of this length, in whole seconds rounded up.
    #[must_use]
    pub fn left(&self, length: Seconds, now: Moment) -> Seconds {
        if self.boot != now.boot {
            return Seconds(0);
        }
        let passed = now.monotonic.0.saturating_sub(self.heard.0);
        Seconds(length.millis().0.saturating_sub(passed).div_ceil(1000))
    }

    /// Whether a notice of this length is over. No container outlives its boot, so neither does a notice.
    #[must_use]
    pub fn is_over(&self, length: Seconds, now: Moment) -> bool {
        self.boot != now.boot || now.monotonic.0.saturating_sub(self.heard.0) >= length.millis().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tests::at;

    #[test]
    fn a_notice_counts_by_the_clock_that_nobody_can_set() {
        let notice = Notice::heard(true, at(0));
        let length = Seconds(120);
        assert_eq!(notice.stop_at(length), at(120).wall);
        assert!(!notice.is_over(length, at(119)));
        assert!(notice.is_over(length, at(120)));
        let set_forward = Moment {
            wall: at(9_000).wall,
            ..at(1)
        };
        assert!(!notice.is_over(length, set_forward));
        let set_back = Moment {
            wall: Timestamp(0),
            ..at(120)
        };
        assert!(notice.is_over(length, set_back));
    }

    #[test]
    fn a_notice_ends_with_its_boot() {
        let notice = Notice::heard(false, at(0));
        let other = Moment {
            boot: BootId::from_bytes([2; 16]),
            ..at(1)
        };
        assert!(notice.is_over(Seconds(600), other));
    }
}
