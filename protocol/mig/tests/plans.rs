//! The planner against plans worked out by hand, and against every way to cut two GPUs.

#![expect(
    clippy::unwrap_used,
    reason = "what is around the tests is test code too"
)]

use mig::board::{Cut, boards};
use mig::chip::Chip;
use mig::layout::{Layout, Placement, layouts};
use mig::plan::worth::{Change, is_worth};
use mig::plan::{Demand, Gpu, Step, first_fit_decreasing, plan};
use proptest::prelude::*;

fn h100() -> &'static Chip {
    let board = boards().iter().find(|board| board.id == "H100-80").unwrap();
    match &board.cut {
        Cut::Known(chip) => chip,
        Cut::Named { .. } => panic!("names only"),
    }
}

fn at(name: &str, start: u8) -> Placement {
    let profile = h100().find(name).unwrap();
    Placement { start, profile }
}

fn gpu(standing: &[Placement], leased: &[Placement]) -> Gpu {
    Gpu {
        layout: Layout::of(h100(), standing).unwrap(),
        leased: leased.to_vec(),
    }
}

fn want(name: &str, count: u8, value: u64) -> Demand {
    let profile = h100().find(name).unwrap();
    Demand {
        profile,
        count,
        value,
    }
}

/// Fewest GPUs that serve all of it.
fn fewest(demand: &[Demand]) -> usize {
    let serves = |count: &usize| {
        let found = plan(h100(), &vec![Gpu::default(); *count], demand, 0);
        found.unserved.is_empty()
    };
    (1..9).find(serves).unwrap()
}

#[test]
fn the_three_demands_take_three_four_and_six_gpus() {
    assert_eq!(fewest(&[want("1g.10gb", 14, 1), want("3g.40gb", 2, 1)]), 3);
    // Two of them have half of the memory each, and only one of them fits: more than the bound of 3.
    assert_eq!(fewest(&[want("4g.40gb", 4, 1)]), 4);
    let mixed = [
        want("7g.80gb", 2, 1),
        want("3g.40gb", 3, 1),
        want("2g.20gb", 4, 1),
        want("1g.10gb", 6, 1),
        want("1g.20gb", 2, 1),
    ];
    assert_eq!(fewest(&mixed), 6);
}

#[test]
fn leases_stay_and_the_rest_is_ended_before_anything_is_made() {
    let leased = at("1g.10gb", 0);
    let standing = [leased, at("2g.20gb", 4), at("1g.10gb", 6)];
    let found = plan(
        h100(),
        &[gpu(&standing, &[leased])],
        &[want("3g.40gb", 1, 5)],
        0,
    );
    let of_gpu = &found.gpus[0];
    assert_eq!(of_gpu.keep, [leased]);
    assert_eq!(of_gpu.destroy, [at("2g.20gb", 4), at("1g.10gb", 6)]);
    assert_eq!(of_gpu.create, [at("3g.40gb", 4)]);
    assert_eq!(
        of_gpu.steps(),
        [
            Step::DestroyComputeInstance(at("2g.20gb", 4)),
            Step::DestroyGpuInstance(at("2g.20gb", 4)),
            Step::DestroyComputeInstance(at("1g.10gb", 6)),
            Step::DestroyGpuInstance(at("1g.10gb", 6)),
            Step::CreateGpuInstance(at("3g.40gb", 4)),
            Step::CreateComputeInstance(at("3g.40gb", 4)),
        ]
    );
    assert_eq!(
        (found.value, found.unserved.len(), found.is_exact),
        (5, 0, true)
    );
}

#[test]
fn what_serves_already_or_is_in_nobodys_way_stays() {
    let standing = [at("3g.40gb", 0), at("1g.10gb", 6)];
    let found = plan(h100(), &[gpu(&standing, &[])], &[want("3g.40gb", 1, 5)], 0);
    assert!(found.gpus[0].is_done());
    assert_eq!(found.gpus[0].keep, standing);
    let nothing = plan(h100(), &[gpu(&standing, &[])], &[], 0);
    assert!(nothing.gpus[0].is_done());
}

#[test]
fn too_much_demand_is_served_by_value() {
    // One GPU: four and three slices together (9 + 8) beat the whole (16).
    let demand = [
        want("7g.80gb", 1, 16),
        want("4g.40gb", 1, 9),
        want("3g.40gb", 2, 8),
    ];
    let found = plan(h100(), &[Gpu::default()], &demand, 0);
    assert_eq!(found.gpus[0].create, [at("4g.40gb", 0), at("3g.40gb", 4)]);
    assert_eq!(found.value, 17);
    let unserved: Vec<u8> = found.unserved.iter().map(|(_, count)| *count).collect();
    assert_eq!(unserved, [1, 1]);
    // At 18 it is the whole.
    let dearer = [want("7g.80gb", 1, 18), demand[1], demand[2]];
    let found = plan(h100(), &[Gpu::default()], &dearer, 0);
    assert_eq!(found.gpus[0].create, [at("7g.80gb", 0)]);
}

#[test]
fn gpus_are_left_whole_where_no_lease_is() {
    let leased = at("1g.10gb", 6);
    let gpus = [
        gpu(&[leased], &[leased]),
        gpu(&[at("1g.10gb", 6)], &[]),
        Gpu::default(),
    ];
    let demand = [want("7g.80gb", 2, 9), want("2g.20gb", 1, 1)];
    let found = plan(h100(), &gpus, &demand, 1);
    let whole: Vec<bool> = found.gpus.iter().map(|gpu| gpu.is_whole).collect();
    assert_eq!(whole, [false, false, true]);
    assert_eq!(found.value, 10);
    let found = plan(h100(), &gpus, &demand, 3);
    let whole: Vec<bool> = found.gpus.iter().map(|gpu| gpu.is_whole).collect();
    assert_eq!(whole, [false, true, true]);
    assert_eq!(found.gpus[1].destroy, [at("1g.10gb", 6)]);
    assert_eq!(found.gpus[0].create, [at("2g.20gb", 4)]);
}

#[test]
fn a_change_must_earn_more_than_it_costs_and_not_come_too_soon() {
    // 180 s at 2.25 an hour are 112 500, and 20 000 to start again: 132 500, a fifth more is 159 000.
    let change = |saving_per_hour, stood_seconds| Change {
        saving_per_hour,
        horizon_seconds: 7200,
        drain_seconds: 180,
        price_per_hour: 2_250_000,
        restart: 20_000,
        stood_seconds,
    };
    assert!(is_worth(&change(300_000, 1800)));
    assert!(!is_worth(&change(50_000, 1800)));
    assert!(!is_worth(&change(79_500, 1800)));
    assert!(is_worth(&change(79_501, 1800)));
    assert!(!is_worth(&change(300_000, 1799)));
    assert!(!is_worth(&Change {
        restart: u64::MAX,
        drain_seconds: u64::MAX,
        price_per_hour: u64::MAX,
        ..change(u64::MAX, u64::MAX)
    }));
}

/// The most that two GPUs can earn, by trying all pairs of sets.
fn most(first: &Gpu, second: &Gpu, demand: &[Demand]) -> u64 {
    let sets = |gpu: &Gpu| {
        let pinned = Layout::of(h100(), &gpu.leased).unwrap();
        let counts = |layout: &Layout| -> Vec<u8> {
            let more = |d: &Demand| layout.count(d.profile) - pinned.count(d.profile);
            demand
                .iter()
                .map(|d| u8::try_from(more(d)).unwrap())
                .collect()
        };
        let mut sets: Vec<Vec<u8>> = layouts(h100(), &pinned, |p| !p.is_marked())
            .iter()
            .map(counts)
            .collect();
        sets.sort();
        sets.dedup();
        sets
    };
    let second = sets(second);
    let value = |a: &Vec<u8>, b: &Vec<u8>| -> u64 {
        let each = a.iter().zip(b).zip(demand);
        each.map(|((a, b), d)| u64::from((a + b).min(d.count)) * d.value)
            .sum()
    };
    let pairs = sets(first)
        .into_iter()
        .flat_map(|a| second.iter().map(|b| value(&a, b)).collect::<Vec<_>>());
    pairs.max().unwrap()
}

fn a_gpu() -> impl Strategy<Value = Gpu> {
    prop::collection::vec((0_usize..6, 0_usize..7, any::<bool>()), 0..6).prop_map(|tries| {
        let chip = h100();
        let plain: Vec<_> = chip.profiles().filter(|(_, p)| !p.is_marked()).collect();
        let mut gpu = Gpu::default();
        for (profile, start, is_leased) in tries {
            let (index, profile) = plain[profile];
            let start = profile.starts[start % profile.starts.len()];
            let placement = Placement {
                start,
                profile: index,
            };
            if gpu.layout.add(chip, placement).is_ok() && is_leased {
                gpu.leased.push(placement);
            }
        }
        gpu
    })
}

fn a_demand() -> impl Strategy<Value = Vec<Demand>> {
    let names = [
        "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb",
    ];
    prop::array::uniform6((0_u8..5, 1_u64..20)).prop_map(move |each| {
        names
            .iter()
            .zip(each)
            .map(|(name, (count, value))| want(name, count, value))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_plan_is_legal_keeps_leases_and_earns_the_most(
        first in a_gpu(), second in a_gpu(), demand in a_demand(),
    ) {
        let found = plan(h100(), &[first.clone(), second.clone()], &demand, 0);
        prop_assert!(found.is_exact);
        for (before, of_gpu) in [&first, &second].into_iter().zip(&found.gpus) {
            let mut after = before.layout.clone();
            for placement in &of_gpu.destroy {
                prop_assert!(!before.leased.contains(placement));
                prop_assert!(after.remove(h100(), *placement));
            }
            prop_assert_eq!(after.placements(), &of_gpu.keep);
            for placement in &of_gpu.create {
                prop_assert_eq!(after.add(h100(), *placement), Ok(()));
            }
        }
        prop_assert_eq!(found.value, most(&first, &second, &demand));
    }

    #[test]
    fn nothing_is_placed_twice_and_nothing_is_lost(counts in prop::array::uniform6(0_usize..6)) {
        let chip = h100();
        let plain = chip.profiles().filter(|(_, p)| !p.is_marked());
        let items: Vec<_> = plain.zip(counts).flat_map(|((index, _), count)| vec![index; count]).collect();
        let mut gpus = vec![Layout::default(); 3];
        let left = first_fit_decreasing(chip, &mut gpus, &items);
        let placed: usize = gpus.iter().map(|gpu| gpu.placements().len()).sum();
        prop_assert_eq!(placed + left.len(), items.len());
    }
}
