//! Counters of memory errors, compared. They begin anew when the driver is loaded or the machine boots, and a
//! difference is never less than nothing.

use host_nvml::sample::{EccCounters, Reading, RemappedRows};
use protocol::ids::BootId;
use serde::{Deserialize, Serialize};

/// Counters of one GPU at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// In which boot they were read.
    pub boot: BootId,
    /// Memory errors; nothing when the driver does not say.
    pub ecc: Option<EccCounters>,
    /// Replaced rows; nothing when the driver does not say, as while it is divided.
    pub remapped: Option<RemappedRows>,
}

/// What was added between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// Errors that were corrected.
    pub corrected: u64,
    /// Errors that were not.
    pub uncorrected: u64,
    /// Rows that were replaced.
    pub rows: u64,
    /// Whether rows wait for a reset.
    pub pending: bool,
    /// Whether a row could not be replaced.
    pub failed: bool,
}

impl Counters {
    /// Those of a reading.
    #[must_use]
    pub const fn of(reading: &Reading, boot: BootId) -> Self {
        Self {
            boot,
            ecc: reading.ecc,
            remapped: reading.remapped,
        }
    }

    /// What was added until `later`. A counter that fell began anew, and all that it shows is new. What one of the
    /// two readings does not say adds nothing.
    #[must_use]
    pub fn added_until(&self, later: &Self) -> Added {
        let same_boot = self.boot == later.boot;
        let (corrected, uncorrected) = match (self.ecc, later.ecc) {
            (Some(before), Some(after)) => (
                grown(before.corrected, after.corrected, same_boot)
                    .max(after.corrected_ever.saturating_sub(before.corrected_ever)),
                grown(before.uncorrected, after.uncorrected, same_boot).max(
                    after
                        .uncorrected_ever
                        .saturating_sub(before.uncorrected_ever),
                ),
            ),
            (None | Some(_), None) | (None, Some(_)) => (0, 0),
        };
        let remapped = later.remapped.unwrap_or_default();
        let rows = match self.remapped {
            // Rows stay replaced for the card's life.
            Some(before) => {
                let of = |rows: RemappedRows| {
                    u64::from(rows.corrected).saturating_add(u64::from(rows.uncorrected))
                };
                of(remapped).saturating_sub(of(before))
            }
            None => 0,
        };
        Added {
            corrected,
            uncorrected,
            rows,
            pending: remapped.pending,
            failed: remapped.failed,
        }
    }
}

fn grown(before: u64, after: u64, same_boot: bool) -> u64 {
    if same_boot {
        after.checked_sub(before).unwrap_or(after)
    } else {
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOOT: BootId = BootId::from_bytes([1; 16]);
    const NEXT: BootId = BootId::from_bytes([2; 16]);

    fn counters(boot: BootId, corrected: u64, uncorrected: u64, ever: u64) -> Counters {
        Counters {
            boot,
            ecc: Some(EccCounters {
                corrected,
                uncorrected,
                corrected_ever: 0,
                uncorrected_ever: ever,
            }),
            remapped: None,
        }
    }

    #[test]
    fn a_counter_that_began_anew_adds_what_it_shows() {
        let before = counters(BOOT, 7, 3, 10);
        let added = |after: Counters| before.added_until(&after);
        assert_eq!(added(counters(BOOT, 9, 3, 10)).corrected, 2);
        assert_eq!(added(counters(BOOT, 9, 3, 10)).uncorrected, 0);
        // The driver was loaded again: 3 became 1, which is one new error.
        assert_eq!(added(counters(BOOT, 0, 1, 11)).uncorrected, 1);
        // After a boot 3 is three new ones, though it was 3 before.
        assert_eq!(added(counters(NEXT, 0, 3, 13)).uncorrected, 3);
        assert_eq!(added(counters(NEXT, 0, 0, 10)), Added::default());
        // A driver that stops saying adds nothing.
        let silent = Counters {
            boot: BOOT,
            ecc: None,
            remapped: None,
        };
        assert_eq!(added(silent), Added::default());
        assert_eq!(silent.added_until(&before), Added::default());
    }

    #[test]
    fn rows_and_what_waits_for_a_reset() {
        let rows = |uncorrected, pending, failed| Counters {
            boot: BOOT,
            ecc: None,
            remapped: Some(RemappedRows {
                corrected: 1,
                uncorrected,
                pending,
                failed,
            }),
        };
        let added = rows(1, false, false).added_until(&rows(3, true, true));
        assert_eq!((added.rows, added.pending, added.failed), (2, true, true));
        assert_eq!(
            rows(3, false, false)
                .added_until(&rows(1, false, false))
                .rows,
            0
        );
    }

    proptest! {
        #[test]
        fn nothing_is_ever_less_than_nothing(a in any::<[u64; 4]>(), b in any::<[u64; 4]>(), reboot: bool) {
            let of = |n: [u64; 4], boot| Counters {
                boot,
                ecc: Some(EccCounters { corrected: n[0], uncorrected: n[1], corrected_ever: n[2], uncorrected_ever: n[3] }),
                remapped: None,
            };
            let after = of(b, if reboot { NEXT } else { BOOT });
            let added = of(a, BOOT).added_until(&after);
            prop_assert!(added.uncorrected <= b[1].max(b[3]));
            prop_assert!(added.corrected <= b[0].max(b[2]));
        }
    }
}
