//! Ways between whole numbers and floats that cannot go wrong.
//!
//! A `Duration` converts both ways, checked; there is no other conversion from a float in the language
//! but a cast, which is silent about what it loses.

use crate::units::Seconds;
use std::time::Duration;

/// `number` as a float: the nearest one.
pub(crate) fn float(number: u64) -> f64 {
    Duration::from_secs(number).as_secs_f64()
}

/// The whole number nearest to `number`; the largest when it is beyond all, or not a number.
pub(crate) fn nearest(number: f64) -> u64 {
    let rounded = libm::round(number.max(0.0));
    Duration::try_from_secs_f64(rounded).map_or(u64::MAX, |whole| whole.as_secs())
}

/// A time in whole seconds, to the nearest: for what is shown.
#[must_use]
pub fn rounded(seconds: f64) -> Seconds {
    Seconds(nearest(seconds))
}

/// A measurement that can be divided by: finite and more than nothing.
pub(super) fn known(number: Option<f64>) -> Option<f64> {
    number.filter(|number| number.is_finite() && *number > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_come_back() {
        for number in [0, 1, 3_587_800, 1 << 53, u64::MAX] {
            let there = float(number);
            assert!(nearest(there) == number || number == u64::MAX, "{number}");
        }
        assert_eq!(float(2_000_000_000), 2e9);
    }

    #[test]
    fn what_is_no_number_is_the_largest() {
        assert_eq!((nearest(0.49), nearest(0.5), nearest(-3.0)), (0, 1, 0));
        assert_eq!(nearest(f64::INFINITY), u64::MAX);
        assert_eq!(nearest(1e30), u64::MAX);
        assert_eq!(known(Some(f64::NAN)), None);
        assert_eq!(known(Some(-1.0)), None);
        assert_eq!(known(Some(2.5)), Some(2.5));
    }
}
