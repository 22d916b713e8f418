//! Who goes for a bid: the price of pushing out interruptible leases, and the cheapest of them.
//!
//! A bid is compared with those whose GPUs it takes, for each GPU and hour. It pushes out a set of leases when
//!
//! 1. it exceeds the bid of every one of them by a step, `max(1000, ceil(bid / 100))`, and
//! 2. what it pays for the GPUs that it takes exceeds what the whole set pays by a step for each of them: with
//!    `Σ` the sum of bid × GPUs over the set and `t` the GPUs taken, `bid × t ≥ Σ + t × step(ceil(Σ / t))`.
//!
//! For one GPU against one both say the same: 151 500 pushes out 150 000. The second is what keeps a host from
//! losing: 150 000 for one GPU does not push out a lease of four at 100 000. The first is what keeps the order of
//! bids from being turned round: of four GPUs let for 310 000 × 2, 250 000 and 180 000, a bid of 240 000 for two
//! would pay 480 000 for what the last two pay 430 000 for, and still does not push out the one who bid 250 000.
//!
//! Must not know leases, states or resources: who may be pushed out at all is given.

use protocol::ids::LeaseId;
use protocol::terms::BID_STEP_MIN;
use protocol::units::PricePerHour;

/// Interruptible leases that may be pushed out, and are of use only if all of them go: one lease of whole GPUs, or
/// the leases that have slices of one GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Victim {
    /// Which, rising.
    pub(super) leases: Vec<LeaseId>,
    /// The highest bid of one of them for a GPU, or a slice, and hour.
    pub(super) bid: PricePerHour,
    /// What they pay for an hour together.
    pub(super) pays: u128,
    /// How many of their GPUs, or slices, are of use to who comes.
    pub(super) units: u16,
}

/// Leases that go together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Choice {
    /// What they pay together in an hour.
    total: u128,
    /// How many leases they are.
    leases: usize,
    /// Which of the given ones, rising.
    members: Vec<usize>,
}

impl Choice {
    /// Least pay first, then fewest, then lowest index.
    fn rank(&self) -> (u128, usize, &[usize]) {
        (self.total, self.leases, &self.members)
    }

    fn with(&self, index: usize, victim: &Victim) -> Self {
        let mut members = self.members.clone();
        members.push(index);
        Self {
            total: self.total.saturating_add(victim.pays),
            leases: self.leases + victim.leases.len(),
            members,
        }
    }
}

/// By how much `bid` must be exceeded: `max(1000, ceil(bid / 100))`.
#[must_use]
pub(super) fn step(bid: PricePerHour) -> PricePerHour {
    BID_STEP_MIN.max(PricePerHour(bid.0.div_ceil(100)))
}

/// The least that exceeds `bid`.
fn above(bid: PricePerHour) -> PricePerHour {
    PricePerHour(bid.0.saturating_add(step(bid).0))
}

/// The cheapest of `victims` that have `units` together: least pay, then fewest, then lowest index. They are
/// given by their lowest index, rising. Nothing when all of them have not so many.
///
/// At most sixteen such groups have a part of an offer of GPUs, so that the table has 16 × 16 cells; of an offer of
/// slices one slice is wanted.
fn cheapest(victims: &[(usize, &Victim)], units: u16) -> Option<Choice> {
    let wanted = usize::from(units);
    let mut best: Vec<Option<Choice>> = vec![None; wanted + 1];
    if let Some(none) = best.first_mut() {
        *none = Some(Choice::default());
    }
    for (index, victim) in victims {
        for freed in (0..wanted).rev() {
            let Some(before) = best.get(freed).cloned().flatten() else {
                continue;
            };
            let then = (freed + usize::from(victim.units)).min(wanted);
            let choice = before.with(*index, victim);
            if let Some(cell) = best.get_mut(then)
                && cell
                    .as_ref()
                    .is_none_or(|other| choice.rank() < other.rank())
            {
                *cell = Some(choice);
            }
        }
    }
    best.pop().flatten()
}

/// What has to be bid for each of `units` GPUs to exceed `total` for them all.
fn exceeding(total: u128, units: u16) -> PricePerHour {
    let average = total.div_ceil(u128::from(units.max(1)));
    above(PricePerHour(u64::try_from(average).unwrap_or(u64::MAX)))
}

/// Those of `victims` who can be outbid at `bid`.
fn exceeded(victims: &[Victim], bid: PricePerHour) -> Vec<(usize, &Victim)> {
    let all = victims.iter().enumerate();
    all.filter(|(_, victim)| above(victim.bid) <= bid).collect()
}

fn leases(victims: &[Victim], choice: &Choice) -> Vec<LeaseId> {
    let members = choice.members.iter();
    members
        .filter_map(|index| victims.get(*index))
        .flat_map(|victim| victim.leases.iter().copied())
        .collect()
}

/// Who goes for `bid` on `units` GPUs that none of the free ones is, if it wins. `victims` are given by their
/// lowest index, rising.
#[must_use]
pub(super) fn outbid(victims: &[Victim], units: u16, bid: PricePerHour) -> Option<Vec<LeaseId>> {
    let choice = cheapest(&exceeded(victims, bid), units)?;
    let wins = units == 0 || bid >= exceeding(choice.total, units);
    wins.then(|| leases(victims, &choice))
}

/// Who goes for a lease that nobody can push out: the cheapest set, whatever it pays.
#[must_use]
pub(super) fn preempted(victims: &[Victim], units: u16) -> Option<Vec<LeaseId>> {
    let all: Vec<(usize, &Victim)> = victims.iter().enumerate().collect();
    Some(leases(victims, &cheapest(&all, units)?))
}

/// The least bid with which [`outbid`] gives `units` GPUs, if there is one.
#[must_use]
pub(super) fn to_win(victims: &[Victim], units: u16) -> Option<PricePerHour> {
    let with_all_up_to = |victim: &Victim| {
        let bid = above(victim.bid);
        let choice = cheapest(&exceeded(victims, bid), units)?;
        let members = choice.members.iter();
        let highest = members
            .filter_map(|index| victims.get(*index))
            .map(|member| above(member.bid))
            .max();
        Some(exceeding(choice.total, units).max(highest.unwrap_or_default()))
    };
    victims.iter().filter_map(with_all_up_to).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn victim(n: u8, bid: u64, units: u16) -> Victim {
        Victim {
            leases: vec![lease(n)],
            bid: PricePerHour(bid),
            pays: u128::from(bid) * u128::from(units),
            units,
        }
    }

    fn lease(n: u8) -> LeaseId {
        LeaseId::from_bytes([n; 16])
    }

    #[track_caller]
    fn check(victims: &[Victim], units: u16, needed: Option<u64>, go: &[u8]) {
        assert_eq!(to_win(victims, units), needed.map(PricePerHour));
        if let Some(needed) = needed {
            let go: Vec<LeaseId> = go.iter().copied().map(lease).collect();
            assert_eq!(outbid(victims, units, PricePerHour(needed)), Some(go));
            assert_eq!(outbid(victims, units, PricePerHour(needed - 1)), None);
        }
    }

    #[test]
    fn the_step_is_one_hundredth_rounded_up_and_at_least_a_thousand() {
        for (bid, by) in [
            (0, 1000),
            (100_000, 1000),
            (100_001, 1001),
            (150_000, 1500),
            (150_001, 1501),
        ] {
            assert_eq!(step(PricePerHour(bid)), PricePerHour(by), "{bid}");
        }
    }

    #[test]
    fn r6_one_gpu_against_one() {
        check(&[victim(1, 150_000, 1)], 1, Some(151_500), &[1]);
        check(&[], 1, None, &[]);
    }

    #[test]
    fn r6_the_cheapest_set_then_fewest_then_lowest_index() {
        // Two GPUs: 100 000 + 110 000 are less than the pair at 120 000 each.
        let three = [
            victim(1, 120_000, 2),
            victim(2, 110_000, 1),
            victim(3, 100_000, 1),
        ];
        // ceil(210 000 / 2) + ceil(105 000 / 100) = 106 050, but 110 000 itself needs 111 100.
        check(&three, 2, Some(111_100), &[2, 3]);
        check(&three, 1, Some(101_000), &[3]);
        // Both sets pay 200 000: the one lease goes.
        let same = [
            victim(1, 100_000, 1),
            victim(2, 100_000, 1),
            victim(3, 100_000, 2),
        ];
        check(&same, 2, Some(101_000), &[3]);
        // And of equal ones the first.
        check(&same, 1, Some(101_000), &[1]);
        // 150 000 + 90 000 = 240 000 against 100 000 × 2 + nothing: whole leases go.
        let whole = [victim(1, 150_000, 1), victim(2, 100_000, 2)];
        check(&whole, 2, Some(101_000), &[2]);
    }

    #[test]
    fn r6_one_gpu_does_not_push_out_four_for_less() {
        // All four pay 400 000; one GPU has to pay that and its step.
        check(&[victim(1, 100_000, 4)], 1, Some(404_000), &[1]);
        // Three of the four: ceil(400 000 / 3) = 133 334, and ceil of a hundredth 1334.
        check(&[victim(1, 100_000, 4)], 3, Some(134_668), &[1]);
    }

    /// Market rules, C2: a, b and d run; c does not push out b and d for more in sum.
    #[test]
    fn c2_a_bid_does_not_push_out_a_higher_one() {
        let running = [
            victim(1, 310_000, 2),
            victim(2, 250_000, 1),
            victim(4, 180_000, 1),
        ];
        assert_eq!(outbid(&running, 2, PricePerHour(240_000)), None);
        assert_eq!(outbid(&running, 1, PricePerHour(120_000)), None);
        // What would win two: b's bid and its step.
        check(&running, 2, Some(252_500), &[2, 4]);
    }

    #[test]
    fn the_cheapest_go_for_a_firm_lease_whatever_they_pay() {
        let three = [
            victim(1, 120_000, 2),
            victim(2, 130_000, 1),
            victim(3, 100_000, 1),
        ];
        assert_eq!(preempted(&three, 2), Some(vec![lease(2), lease(3)]));
        assert_eq!(preempted(&three, 1), Some(vec![lease(3)]));
        assert_eq!(preempted(&three, 0), Some(vec![]));
        assert_eq!(preempted(&three, 5), None);
    }

    proptest! {
        /// Against every subset, one by one.
        #[test]
        fn no_set_is_cheaper(
            bids in prop::collection::vec((1_u64..400_000, 1_u16..4), 0..8),
            units in 1_u16..6,
        ) {
            let victims: Vec<Victim> = (0_u8..)
                .zip(&bids)
                .map(|(n, (bid, units))| victim(n, *bid, *units))
                .collect();
            let mut best: Option<(u128, usize, Vec<usize>)> = None;
            for set in 0_u32..1 << victims.len() {
                let members: Vec<usize> =
                    (0..victims.len()).filter(|n| set >> n & 1 == 1).collect();
                let freed: u16 = members.iter().map(|n| victims[*n].units).sum();
                let total = members.iter().map(|n| {
                    u128::from(victims[*n].bid.0) * u128::from(victims[*n].units)
                }).sum();
                let rank = (total, members.len(), members);
                if freed >= units && best.as_ref().is_none_or(|best| rank < *best) {
                    best = Some(rank);
                }
            }
            let all: Vec<(usize, &Victim)> = victims.iter().enumerate().collect();
            let found = cheapest(&all, units).map(|it| (it.total, it.members.len(), it.members));
            prop_assert_eq!(found, best);
            if let Some(needed) = to_win(&victims, units) {
                prop_assert!(outbid(&victims, units, needed).is_some());
                prop_assert!(outbid(&victims, units, PricePerHour(needed.0 - 1)).is_none());
            } else {
                prop_assert!(outbid(&victims, units, PricePerHour(u64::MAX / 2)).is_none());
            }
        }
    }
}
