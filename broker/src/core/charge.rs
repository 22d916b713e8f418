//! What a lease costs: charges capped by the budget, holds, and how long money lasts.
//!
//! Must not move money: `settle` does.

use protocol::terms::{Prices, Rates, compute_due, storage_due};
use protocol::units::{Bytes, MicroUsd, Millis, PricePerHour, Seconds};
use protocol::usage::{Amounts, Usage, amounts_due};

/// What is charged for `usage`: what is due, but never more than `budget` in all. The components are
/// filled in their order, so the cap falls on the last ones.
#[must_use]
pub fn charged(
    prices: &Prices,
    rates: &Rates,
    disk: Bytes,
    usage: &Usage,
    budget: MicroUsd,
) -> Amounts {
    let due = amounts_due(prices, rates, disk, usage);
    let mut left = budget.max(MicroUsd::ZERO);
    let mut take = |component: MicroUsd| {
        let taken = component.min(left);
        left = left.saturating_sub(taken);
        taken
    };
    Amounts {
        compute: take(due.compute),
        storage: take(due.storage),
        upload: take(due.upload),
        download: take(due.download),
    }
}

/// What running for `time` costs at `rate`, the disk included and traffic not.
#[must_use]
pub fn running_cost(prices: &Prices, rate: PricePerHour, disk: Bytes, time: Seconds) -> MicroUsd {
    compute_due(rate, time.millis()).saturating_add(storing_cost(prices, disk, time))
}

/// What keeping the disk for `time` costs.
#[must_use]
pub fn storing_cost(prices: &Prices, disk: Bytes, time: Seconds) -> MicroUsd {
    storage_due(prices.storage, disk, time.millis())
}

/// How long `amount` lasts at `per_hour`, rounded down, so that a check planned for its end is never late.
/// Nothing when it lasts for ever.
#[must_use]
pub fn lasts(amount: MicroUsd, per_hour: MicroUsd) -> Option<Millis> {
    if per_hour <= MicroUsd::ZERO {
        return None;
    }
    let amount = u128::try_from(amount.0).unwrap_or(0);
    // The price of an hour was itself rounded down: one more is at least the exact one.
    let per_hour = u128::try_from(per_hour.0).unwrap_or(0) + 1;
    Some(Millis(
        u64::try_from(amount * 3_600_000 / per_hour).unwrap_or(u64::MAX),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::units::{PricePerGbMonth, PricePerHour};

    fn prices() -> Prices {
        Prices {
            compute: PricePerHour(400_000),
            storage: PricePerGbMonth(100_000),
            ..Prices::default()
        }
    }

    #[test]
    fn the_cap_falls_on_the_last_component() {
        let hour = Millis(3_600_000);
        let usage = Usage {
            running: hour,
            stored: hour,
            ..Usage::default()
        };
        // 400 000 + floor(50 × 100 000 × 3600 / 2 592 000) = 400 000 + 6944.
        let disk = Bytes::from_gb(50);
        let rates = Rates::flat(prices().compute);
        let whole = charged(&prices(), &rates, disk, &usage, MicroUsd(1_000_000));
        assert_eq!(
            (whole.compute, whole.storage),
            (MicroUsd(400_000), MicroUsd(6944))
        );
        let capped = charged(&prices(), &rates, disk, &usage, MicroUsd(400_001));
        assert_eq!(
            (capped.compute, capped.storage),
            (MicroUsd(400_000), MicroUsd(1))
        );
        let less = charged(&prices(), &rates, disk, &usage, MicroUsd(7));
        assert_eq!((less.compute, less.storage), (MicroUsd(7), MicroUsd::ZERO));
    }

    #[test]
    fn the_hold_of_the_market_rules() {
        let hold = running_cost(
            &prices(),
            prices().compute,
            Bytes::from_gb(50),
            Seconds(3600),
        );
        assert_eq!(hold, MicroUsd(406_944));
    }

    #[test]
    fn money_lasts_no_longer_than_said() {
        // 100 000 µ$ at 400 000 an hour are 900 s; at the next whole rate a little less.
        assert_eq!(
            lasts(MicroUsd(100_000), MicroUsd(400_000)),
            Some(Millis(899_997))
        );
        assert_eq!(lasts(MicroUsd(1), MicroUsd::ZERO), None);
        assert_eq!(lasts(MicroUsd(-5), MicroUsd(1)), Some(Millis(0)));
    }
}
