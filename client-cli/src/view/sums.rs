//! Sums about a lease that people ask for: what an hour costs, how long the money lasts, when it ends by
//! itself, what an early end gives back.

use protocol::lease::{LeaseView, Phase};
use protocol::terms::{Need, Prices, reserved, storage_due};
use protocol::units::{MicroUsd, Millis, PricePerHour, Seconds, Timestamp};
use protocol::usage::Term;

const DAY: Seconds = Seconds(86_400);

/// What an hour of it costs all in while it runs: by the bid while nothing else is agreed, and with the
/// discounted rate of a term.
pub(crate) fn hourly(view: &LeaseView) -> MicroUsd {
    let mut prices = view.prices;
    if let Some(term) = &view.term {
        prices.compute = rate_of(term);
    } else if let (Phase::Resting, Some(bid)) = (&view.phase, view.bid) {
        prices = Prices {
            compute: bid,
            ..prices
        }
        .of_gpus(view.gpu_count);
    }
    prices.all_in_hour(Need::disk(view.disk))
}

/// What an hour of a term comes to, rounded down.
fn rate_of(term: &Term) -> PricePerHour {
    let prepaid = u64::try_from(term.prepaid.0).unwrap_or(0);
    let hours = u64::from(term.days).saturating_mul(24).max(1);
    PricePerHour(prepaid / hours)
}

/// What an hour takes of the budget: a term is paid already.
fn taken_hourly(view: &LeaseView) -> MicroUsd {
    if view.term.is_none() {
        return hourly(view);
    }
    let prices = Prices {
        compute: PricePerHour(0),
        ..view.prices
    };
    prices.all_in_hour(Need::disk(view.disk))
}

/// What a stopped lease costs a day.
pub(crate) fn disk_per_day(view: &LeaseView) -> MicroUsd {
    storage_due(view.prices.storage, view.disk, DAY.millis())
}

/// How long `money` lasts at `per_hour`; nothing when it lasts for ever.
pub(crate) fn lasts(money: MicroUsd, per_hour: MicroUsd) -> Option<Seconds> {
    let money = u128::try_from(money.0).unwrap_or(0);
    let per_hour = u128::try_from(per_hour.0).ok().filter(|rate| *rate > 0)?;
    u64::try_from(money * 3600 / per_hour).ok().map(Seconds)
}

/// When a lease ends by itself at the latest: one that runs, or a bid that rests.
pub(crate) fn ends_by(view: &LeaseView, now: Timestamp) -> Option<Timestamp> {
    if view.phase == Phase::Resting {
        return view.rests_until;
    }
    let by_term = view.term.as_ref().and_then(term_ends);
    let by_host = view.until;
    if !matches!(view.phase, Phase::Running | Phase::Noticed(..)) {
        let first = by_term.into_iter().chain(by_host).min();
        return first.filter(|_| view.phase.is_open());
    }
    // The budget of a lease with a term is what is left beside what was prepaid.
    let left = view.budget.saturating_sub(view.charged.total());
    let by_money = lasts(left, taken_hourly(view)).map(|left| now.after(left.millis()));
    let by_time = view.duration_max.map(|most| {
        let left = most.millis().0.saturating_sub(view.running.0);
        now.after(Millis(left))
    });
    let by_itself = by_money.into_iter().chain(by_time).chain(by_term);
    by_itself.chain(by_host).min()
}

/// When a term that began is over.
pub(crate) fn term_ends(term: &Term) -> Option<Timestamp> {
    let begins = term.begins?;
    Some(begins.after(reserved::length(term.days)))
}

/// What ending a term now would give back and cost; nothing when it has no term that goes on.
pub(crate) fn cancelled(view: &LeaseView, now: Timestamp) -> Option<reserved::Cancel> {
    let term = view.term.filter(|_| view.phase.is_open())?;
    let used = term.begins.map_or(Millis(0), |begins| now.since(begins));
    let used = Millis(used.0.saturating_sub(term.down.0));
    Some(reserved::cancel(term.rate, term.prepaid, term.days, used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::lease;
    use protocol::units::BasisPoints;

    #[test]
    fn money_lasts_as_long_as_division_says() {
        // $5.00 at $0.336/h: 5 / 0.336 h = 53571.4… s.
        let five = MicroUsd(5_000_000);
        assert_eq!(lasts(five, MicroUsd(336_000)), Some(Seconds(53_571)));
        assert_eq!(lasts(five, MicroUsd::ZERO), None);
        assert_eq!(lasts(MicroUsd(-1), MicroUsd(1)), Some(Seconds(0)));
    }

    const BEGINS: Timestamp = Timestamp(1_796_047_364_000);
    const HOUR: u64 = 3_600_000;

    fn reserved_lease() -> LeaseView {
        let mut view = lease(1, "brave-otter", Phase::Running).view;
        view.budget = MicroUsd(24_000_000);
        view.term = Some(Term {
            days: 30,
            prepaid: MicroUsd(576_000_000),
            discount: BasisPoints(2000),
            rate: PricePerHour(1_000_000),
            begins: Some(BEGINS),
            from: Millis(0),
            down: Millis(0),
            earned: MicroUsd(0),
            refunded: MicroUsd(0),
            clawed_back: Default::default(),
            from_bond: MicroUsd(0),
        });
        view
    }

    /// Market rules, X: 212.40 come back at half of the term; with 12 h of downtime 348 h were used.
    #[test]
    fn an_early_end_of_a_term_gives_back_what_the_rules_say() {
        let view = reserved_lease();
        let half = Timestamp(BEGINS.0 + 360 * HOUR);
        assert_eq!(
            cancelled(&view, half).unwrap().refund,
            MicroUsd(212_400_000)
        );
        assert_eq!(
            cancelled(&view, BEGINS).unwrap().refund,
            MicroUsd(576_000_000)
        );
        let mut down = view.clone();
        down.term = view.term.map(|term| Term {
            down: Millis(12 * HOUR),
            ..term
        });
        // Earned 278.4, left 297.6; received 69.6: 297.6 - 69.6 - 3.48.
        assert_eq!(
            cancelled(&down, half).unwrap().refund,
            MicroUsd(224_520_000)
        );
        assert_eq!(cancelled(&lease(1, "x", Phase::Running).view, half), None);
    }

    #[test]
    fn a_term_costs_its_rate_and_ends_with_it_or_with_the_money_for_its_disk() {
        let mut view = reserved_lease();
        // 576 / 720 h, and 50 GB at $0.10: 6 944.
        assert_eq!(hourly(&view), MicroUsd(806_944));
        let over = Timestamp(BEGINS.0 + 720 * HOUR);
        // $24 last for 3 456 h of disk: longer than the term.
        assert_eq!(ends_by(&view, BEGINS), Some(over));
        view.budget = MicroUsd(6_944);
        assert_eq!(ends_by(&view, BEGINS), Some(Timestamp(BEGINS.0 + HOUR)));
    }

    #[test]
    fn a_lease_ends_with_its_hosts_promise_if_that_is_first_also_while_it_is_stopped() {
        let mut view = reserved_lease();
        let promised = Timestamp(BEGINS.0 + 500 * HOUR);
        view.until = Some(promised);
        assert_eq!(ends_by(&view, BEGINS), Some(promised));
        view.phase = Phase::Paused(protocol::lease::PauseCause::Renter);
        assert_eq!(ends_by(&view, BEGINS), Some(promised));
        // The term of 720 h is over before a promise of 800 h is.
        view.until = Some(Timestamp(BEGINS.0 + 800 * HOUR));
        assert_eq!(
            ends_by(&view, BEGINS),
            Some(Timestamp(BEGINS.0 + 720 * HOUR))
        );
        view.phase = Phase::Closed(protocol::lease::EndCause::Renter);
        assert_eq!(ends_by(&view, BEGINS), None);
    }

    #[test]
    fn a_bid_that_rests_costs_its_bid_and_ends_when_it_was_said() {
        let mut view = lease(1, "brave-otter", Phase::Resting).view;
        view.prices = Prices::default();
        (view.bid, view.gpu_count) = (Some(PricePerHour(220_000)), 2);
        view.rests_until = Some(Timestamp(BEGINS.0 + HOUR));
        assert_eq!(hourly(&view), MicroUsd(440_000));
        assert_eq!(ends_by(&view, BEGINS), view.rests_until);
    }
}
