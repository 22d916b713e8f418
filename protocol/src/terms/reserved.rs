//! The sums of a prepaid term: its discount, its price, what is earned of it, what an early end gives back.
//!
//! Must not move money.

use crate::units::{BasisPoints, MicroUsd, Millis, PricePerHour};

/// Longest term, in days.
pub const DAYS_MAX: u16 = 365;
/// What a day has.
const DAY: Millis = Millis(24 * 3_600_000);
/// The discount by length: (days, hundredths of a percent), straight between two points, flat after the last.
const CURVE: [(u16, u16); 4] = [(0, 0), (30, 2000), (90, 3000), (180, 4000)];
/// Beyond the discount that it got, an early cancel costs this part of it.
const CANCEL_FEE: BasisPoints = BasisPoints(500);
/// What a host that fails a term pays from its bond, of what it gives back.
const PENALTY: BasisPoints = BasisPoints(1000);

/// The price of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quote {
    /// The discount.
    pub discount: BasisPoints,
    /// What the same time costs on demand.
    pub on_demand: MicroUsd,
    /// What is paid in advance.
    pub prepaid: MicroUsd,
    /// What an hour comes to, rounded down.
    pub hourly: PricePerHour,
}

/// What becomes of the unearned part of a term that its renter ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancel {
    /// Back to the renter.
    pub refund: MicroUsd,
    /// To the host and the fee: the discount that was received, as far as it is there.
    pub host: MicroUsd,
    /// To the broker.
    pub broker: MicroUsd,
}

/// How long a term of `days` is.
#[must_use]
pub const fn length(days: u16) -> Millis {
    Millis(DAY.0 * days as u64)
}

/// The discount of a term of `days` on an offer that gives `most` at most.
#[must_use]
pub fn discount(days: u16, most: BasisPoints) -> BasisPoints {
    let mut by_length = CURVE.last().map_or(0, |(_, last)| u32::from(*last));
    for pair in CURVE.windows(2) {
        if let [(from, low), (to, high)] = pair
            && (*from..*to).contains(&days)
        {
            let (along, span) = (u32::from(days - from), u32::from(to - from));
            by_length = u32::from(*low) + u32::from(high - low) * along / span;
            break;
        }
    }
    BasisPoints(u16::try_from(by_length).unwrap_or(u16::MAX)).min(most)
}

/// The price of `days` at `rate` an hour, all GPUs together: `floor(rate × 24 × days × (1 − d))`.
#[must_use]
pub fn quote(rate: PricePerHour, days: u16, most: BasisPoints) -> Quote {
    let discount = discount(days, most);
    let whole = u128::from(BasisPoints::WHOLE.0);
    let hours = 24 * u128::from(days);
    let on_demand = u128::from(rate.0) * hours;
    let left = whole.saturating_sub(u128::from(discount.0));
    let prepaid = on_demand * left / whole;
    Quote {
        discount,
        on_demand: amount(on_demand),
        prepaid: amount(prepaid),
        hourly: PricePerHour(u64::try_from(prepaid / hours.max(1)).unwrap_or(u64::MAX)),
    }
}

/// What is earned of `prepaid` when `used` of a term of `days` has passed: `floor(P × used / term)`.
#[must_use]
pub fn earned(prepaid: MicroUsd, days: u16, used: Millis) -> MicroUsd {
    let term = length(days);
    let exact = unsigned(prepaid) * u128::from(used.min(term).0) / u128::from(term.0.max(1));
    amount(exact)
}

/// What a renter gets back who ends a term after `used` of it, which cost `rate` an hour on demand:
/// `max(0, rem − D − floor(0.05·D))`, with `D` the discount received so far.
#[must_use]
pub fn cancel(rate: PricePerHour, prepaid: MicroUsd, days: u16, used: Millis) -> Cancel {
    let earned = earned(prepaid, days, used);
    let left = prepaid.saturating_sub(earned);
    let used = used.min(length(days));
    let on_demand = amount(u128::from(rate.0) * u128::from(used.0) / 3_600_000);
    let received = on_demand.saturating_sub(earned).max(MicroUsd::ZERO);
    let claw = received.saturating_add(part(received, CANCEL_FEE));
    let refund = left.saturating_sub(claw).max(MicroUsd::ZERO);
    let kept = left.saturating_sub(refund);
    let host = received.min(kept);
    Cancel {
        refund,
        host,
        broker: kept.saturating_sub(host),
    }
}

/// What a host that fails a term pays from its bond beside giving `refund` back; its bond caps it.
#[must_use]
pub fn penalty(refund: MicroUsd, bond: MicroUsd) -> MicroUsd {
    part(refund, PENALTY).min(bond).max(MicroUsd::ZERO)
}

fn part(of: MicroUsd, rate: BasisPoints) -> MicroUsd {
    amount(unsigned(of) * u128::from(rate.0) / u128::from(BasisPoints::WHOLE.0))
}

fn unsigned(amount: MicroUsd) -> u128 {
    u128::try_from(amount.0).unwrap_or(0)
}

fn amount(exact: u128) -> MicroUsd {
    MicroUsd(i64::try_from(exact).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    /// Market rules, Q.
    #[test]
    fn quotes_of_the_market_rules() {
        for (rate, days, discount, prepaid, hourly) in [
            (1_000_000, 15, 1000, 324_000_000, 900_000),
            (1_000_000, 30, 2000, 576_000_000, 800_000),
            (1_000_000, 60, 2500, 1_080_000_000, 750_000),
            (2_250_000, 90, 3000, 3_402_000_000, 1_575_000),
        ] {
            let quote = quote(PricePerHour(rate), days, BasisPoints(4000));
            assert_eq!(quote.discount, BasisPoints(discount), "{days} days");
            assert_eq!(quote.prepaid, MicroUsd(prepaid), "{days} days");
            assert_eq!(quote.hourly, PricePerHour(hourly), "{days} days");
        }
    }

    #[test]
    fn the_discount_is_capped_by_the_host_and_flat_after_half_a_year() {
        assert_eq!(discount(90, BasisPoints(1500)), BasisPoints(1500));
        assert_eq!(discount(180, BasisPoints(9000)), BasisPoints(4000));
        assert_eq!(discount(365, BasisPoints(9000)), BasisPoints(4000));
        // 2000 + 1000 × 1 / 60, rounded down; 2000 × 1 / 30.
        assert_eq!(discount(31, BasisPoints(9000)), BasisPoints(2016));
        assert_eq!(discount(1, BasisPoints(9000)), BasisPoints(66));
        assert_eq!(discount(0, BasisPoints(9000)), BasisPoints(0));
    }

    /// Market rules, X.
    #[test]
    fn early_cancels_of_the_market_rules() {
        let at = |hours: u64| {
            cancel(
                PricePerHour(1_000_000),
                MicroUsd(576_000_000),
                30,
                Millis(hours * HOUR),
            )
        };
        assert_eq!(at(0).refund, MicroUsd(576_000_000));
        let half = at(360);
        assert_eq!(half.refund, MicroUsd(212_400_000));
        assert_eq!(half.host, MicroUsd(72_000_000));
        assert_eq!(half.broker, MicroUsd(3_600_000));
        let end = at(720);
        assert_eq!((end.refund, end.host, end.broker), Default::default());
    }

    /// Nearly at the end the discount received is more than what is left: nothing comes back, and nothing
    /// is taken that was not paid.
    #[test]
    fn a_cancel_never_takes_more_than_is_left() {
        let late = cancel(
            PricePerHour(1_000_000),
            MicroUsd(576_000_000),
            30,
            Millis(700 * HOUR),
        );
        // 20 h are left: 16 000 000; D = 140 000 000.
        assert_eq!(late.refund, MicroUsd::ZERO);
        assert_eq!(late.host, MicroUsd(16_000_000));
        assert_eq!(late.broker, MicroUsd::ZERO);
    }

    /// Market rules, F.
    #[test]
    fn a_failing_host_of_the_market_rules() {
        let prepaid = MicroUsd(576_000_000);
        let bond = MicroUsd(50_000_000);
        for (used, refund, from_bond) in [
            (360, 288_000_000, 28_800_000),
            (348, 297_600_000, 29_760_000),
        ] {
            let earned = earned(prepaid, 30, Millis(used * HOUR));
            let back = prepaid.saturating_sub(earned);
            assert_eq!(back, MicroUsd(refund));
            assert_eq!(penalty(back, bond), MicroUsd(from_bond));
        }
        assert_eq!(
            penalty(MicroUsd(288_000_000), MicroUsd(1000)),
            MicroUsd(1000)
        );
    }
}
