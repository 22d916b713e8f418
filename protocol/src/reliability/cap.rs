//! How many of the hours that renters had count: a host must not make its score by renting from itself.

use super::RENTER_HOURS;

/// The hours that count of those that each renter had: no more of one renter than 48 h or a quarter of all
/// that count, whichever is more. The largest number that this is true of.
#[must_use]
pub fn counted(hours: &[f64]) -> f64 {
    let cap = cap_of(hours);
    hours.iter().map(|hours| hours.min(cap)).sum()
}

/// How many hours of one renter count at most.
///
/// With the `k` largest at a quarter of all, all are the rest and `k` quarters of all: the rest divided by
/// `1 - k/4`. The smallest `k` that agrees with itself gives the largest sum. Of `k = 3` it is always true:
/// a quarter of all is then the rest, and no part of the rest is more than that.
pub(super) fn cap_of(hours: &[f64]) -> f64 {
    let mut sorted = hours.to_vec();
    sorted.sort_by(|left, right| right.total_cmp(left));
    let mut rest: f64 = sorted.iter().sum();
    let mut quarter = 0.0;
    let mut largest = sorted.into_iter();
    for part_of_all in [1.0, 0.75, 0.5, 0.25] {
        quarter = rest / part_of_all / 4.0;
        match largest.next() {
            Some(largest) if largest > quarter => rest -= largest,
            Some(_) | None => break,
        }
    }
    quarter.max(RENTER_HOURS)
}
