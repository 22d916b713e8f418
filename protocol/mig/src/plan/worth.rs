//! Whether a better cut is worth the trouble of getting there.

/// How long a cut stands at least before it is changed again: half an hour.
pub const DWELL_SECONDS_MIN: u64 = 1800;

const SECONDS_PER_HOUR: u128 = 3600;

/// What a change of the cut brings and costs. Money in micro-dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// What it earns more in an hour.
    pub saving_per_hour: u64,
    /// How long the demand that it is for is expected to last.
    pub horizon_seconds: u64,
    /// How long what must go keeps its place without earning.
    pub drain_seconds: u64,
    /// What that place earns in an hour otherwise.
    pub price_per_hour: u64,
    /// What starting the moved work again costs.
    pub restart: u64,
    /// How long the present cut has stood.
    pub stood_seconds: u64,
}

/// Whether to change: the cut has stood for [`DWELL_SECONDS_MIN`], and
/// `saving/h × horizon > 1.2 × (drain × price + restart)`, compared without rounding.
#[must_use]
pub fn is_worth(change: &Change) -> bool {
    let Change {
        saving_per_hour,
        horizon_seconds,
        drain_seconds,
        price_per_hour,
        restart,
        stood_seconds,
    } = *change;
    // Both sides times 3600 s × 5; products of two 64-bit numbers times six may leave 128 bits and stay at
    // the end of the range then.
    let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
    let saved = product(saving_per_hour, horizon_seconds).saturating_mul(5);
    let cost = product(drain_seconds, price_per_hour)
        .saturating_add(u128::from(restart) * SECONDS_PER_HOUR)
        .saturating_mul(6);
    stood_seconds >= DWELL_SECONDS_MIN && saved > cost
}
