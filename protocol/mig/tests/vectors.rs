//! Every vector of the placement rule: counts of layouts, tables of what still fits, each decision.

#![expect(
    clippy::unwrap_used,
    reason = "what is around the tests is test code too"
)]

use std::collections::{BTreeMap, BTreeSet};

use mig::board::{Cut, boards};
use mig::chip::{Chip, Profile};
use mig::layout::{Layout, Mask, layouts};
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("data/mig_vectors.json")).unwrap()
}

fn chip(id: &str) -> &'static Chip {
    let board = boards().iter().find(|board| board.id == id).unwrap();
    match &board.cut {
        Cut::Known(chip) => chip,
        Cut::Named { .. } => panic!("{id} has names only"),
    }
}

/// Placed sets, masks, multisets, maximal placed sets, maximal multisets.
fn counts(chip: &Chip, wanted: impl Fn(&Profile) -> bool + Copy) -> [usize; 5] {
    let all = layouts(chip, &Layout::default(), wanted);
    let is_full = |layout: &&Layout| {
        let mut more = layout.addable(chip);
        !more.any(|placement| wanted(chip.profile(placement.profile).unwrap()))
    };
    let full: Vec<&Layout> = all.iter().filter(is_full).collect();
    let masks: BTreeSet<Mask> = all.iter().map(Layout::mask).collect();
    let sets: BTreeSet<Vec<u8>> = all.iter().map(|layout| layout.counts(chip)).collect();
    let full_sets: BTreeSet<Vec<u8>> = full.iter().map(|layout| layout.counts(chip)).collect();
    let figures = [all.len(), masks.len(), sets.len(), full.len()];
    [
        figures[0],
        figures[1],
        figures[2],
        figures[3],
        full_sets.len(),
    ]
}

#[test]
fn there_are_as_many_layouts_as_counted() {
    let vectors = vectors();
    let counted = vectors["state_counts"].as_object().unwrap();
    assert_eq!(counted.len(), 3);
    for (id, of_chip) in counted {
        for (variant, marked) in [("base", false), ("with_variants", true)] {
            let keys = [
                "placed_sets",
                "masks",
                "multisets",
                "maximal_placed",
                "maximal_multisets",
            ];
            let wanted = keys.map(|key| of_chip[variant][key].as_u64().unwrap());
            let found = counts(chip(id), |profile| marked || !profile.is_marked());
            assert_eq!(found.map(|count| count as u64), wanted, "{id} {variant}");
        }
    }
}

/// All boards of one family are cut alike; an A100 without the profile of double memory has the 19
/// configurations that are usually quoted.
#[test]
fn every_seven_slice_chip_has_the_same_layouts() {
    let mut seven = 0;
    for board in boards() {
        let Cut::Known(chip) = &board.cut else {
            continue;
        };
        if chip.geometry().compute == 7 {
            seven += 1;
            let plain = counts(chip, |profile| !profile.is_marked());
            assert_eq!(plain, [723, 192, 78, 78, 38], "{}", board.id);
            let all = counts(chip, |_| true);
            assert_eq!((all[0], all[2]), (2319, 128), "{}", board.id);
        }
    }
    assert_eq!(seven, 8);
    let classic = |profile: &Profile| !profile.is_marked() && profile.name != "1g.10gb";
    let found = counts(chip("A100-40"), classic);
    assert_eq!((found[0], found[3]), (298, 19));
}

#[test]
fn what_still_fits_is_the_table() {
    let vectors = vectors();
    let chip = chip("H100-80");
    let mut rows = 0;
    for (name, caps) in vectors["cap_table"].as_object().unwrap() {
        let profile = chip.find(name).unwrap();
        for (mask, cap) in caps.as_object().unwrap() {
            let found = chip.cap(profile, Mask(mask.parse().unwrap()));
            assert_eq!(u64::from(found), cap.as_u64().unwrap(), "{name} {mask}");
            rows += 1;
        }
    }
    assert_eq!(rows, 6 * 192);
}

#[test]
fn an_empty_gpu_loses_what_is_said() {
    let vectors = vectors();
    let chip = chip("H100-80");
    let mut rows = 0;
    for (name, starts) in vectors["lost_empty"].as_object().unwrap() {
        let profile = chip.find(name).unwrap();
        for (start, loss) in starts.as_object().unwrap() {
            let found = chip.loss(profile, start.parse().unwrap(), Mask(0));
            assert_eq!(u64::from(found), loss.as_u64().unwrap(), "{name}@{start}");
            rows += 1;
        }
    }
    assert_eq!(rows, 7 + 4 + 3 + 2 + 1 + 1);
}

#[test]
fn every_decision_is_the_table() {
    let vectors = vectors();
    let chip = chip("H100-80");
    // One layout of plain profiles for each mask.
    let plain = layouts(chip, &Layout::default(), |profile| !profile.is_marked());
    let by_mask: BTreeMap<Mask, &Layout> =
        plain.iter().map(|layout| (layout.mask(), layout)).collect();
    let (mut decided, mut refused) = (0, 0);
    let table = vectors["lost_policy_uniform"]["table"].as_object().unwrap();
    for (name, rows) in table {
        let profile = chip.find(name).unwrap();
        let wanted: BTreeMap<Mask, (u64, u64)> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                let number = |at: usize| row[at].as_u64().unwrap();
                (Mask(number(0).try_into().unwrap()), (number(1), number(2)))
            })
            .collect();
        for (mask, layout) in &by_mask {
            let spot = chip.place([(0, *layout)], profile);
            let found = spot.map(|spot| {
                let start = spot.placement.start;
                (
                    u64::from(start),
                    u64::from(chip.loss(profile, start, *mask)),
                )
            });
            assert_eq!(found, wanted.get(mask).copied(), "{name} beside {mask:?}");
            decided += usize::from(found.is_some());
            refused += usize::from(found.is_none());
        }
    }
    assert_eq!(decided + refused, 6 * 192);
    let rows: usize = table
        .values()
        .map(|rows| rows.as_array().unwrap().len())
        .sum();
    assert_eq!(decided, rows);
}
