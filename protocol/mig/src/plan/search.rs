//! The best layouts for a demand: by first fit where it serves everything, else by dynamic programming
//! over the GPUs on what of the demand is served.

use std::collections::BTreeMap;

use super::{Demand, first_fit_decreasing};
use crate::chip::{Chip, ProfileIndex};
use crate::layout::{Layout, layouts};

/// Most ways to have served the demand that are kept from one GPU to the next.
const STATES_MAX: usize = 20_000;

/// The layouts to have, in the order of the GPUs.
pub(super) struct Targets {
    pub(super) layouts: Vec<Layout>,
    pub(super) is_exact: bool,
}

/// How many of each demand are served, in the order of the demand.
type Served = Vec<u8>;

/// One way to cut one GPU: what it serves, and the layout that does and keeps most of what stands.
struct Cut {
    serves: Served,
    layout: Layout,
    kept: usize,
}

/// How a count was reached: the one before it, which cut, and how many slices are kept in all.
struct Step {
    before: Served,
    cut: usize,
    kept: usize,
}

pub(super) fn targets(
    chip: &Chip,
    pinned: &[Layout],
    standing: &[&Layout],
    demand: &[Demand],
) -> Targets {
    let exact = |layouts| Targets {
        layouts,
        is_exact: true,
    };
    // With the slices that serve already where they are, then without.
    let (kept, left) = keep_serving(chip, pinned, standing, demand);
    if let Some(layouts) = fit(chip, &kept, &left) {
        return exact(layouts);
    }
    if let Some(layouts) = fit(chip, pinned, &items(demand)) {
        return exact(layouts);
    }
    best(chip, pinned, standing, demand)
}

fn items(demand: &[Demand]) -> Vec<ProfileIndex> {
    demand
        .iter()
        .flat_map(|wanted| (0..wanted.count).map(|_| wanted.profile))
        .collect()
}

/// All of `items` beside `base`, or nothing.
fn fit(chip: &Chip, base: &[Layout], items: &[ProfileIndex]) -> Option<Vec<Layout>> {
    let mut gpus = base.to_vec();
    let left = first_fit_decreasing(chip, &mut gpus, items);
    left.is_empty().then_some(gpus)
}

/// What is pinned and every free slice that the demand wants, and what of the demand is left.
fn keep_serving(
    chip: &Chip,
    pinned: &[Layout],
    standing: &[&Layout],
    demand: &[Demand],
) -> (Vec<Layout>, Vec<ProfileIndex>) {
    let mut left = items(demand);
    let mut kept = pinned.to_vec();
    for (layout, standing) in kept.iter_mut().zip(standing) {
        for placement in standing.placements() {
            let wanted = left.iter().position(|item| *item == placement.profile);
            if let Some(place) = wanted
                && layout.add(chip, *placement).is_ok()
            {
                left.swap_remove(place);
            }
        }
    }
    (kept, left)
}

/// The most valuable layouts, and of those the ones that keep most.
fn best(chip: &Chip, pinned: &[Layout], standing: &[&Layout], demand: &[Demand]) -> Targets {
    let cuts: Vec<Vec<Cut>> = pinned
        .iter()
        .zip(standing)
        .map(|(pinned, standing)| cuts(chip, pinned, standing, demand))
        .collect();
    let value = |served: &Served| -> u128 {
        let each = served.iter().zip(demand);
        each.map(|(count, wanted)| u128::from(*count) * u128::from(wanted.value))
            .sum()
    };
    let mut is_exact = true;
    let mut layers: Vec<BTreeMap<Served, Step>> = Vec::new();
    let mut states: Vec<(Served, usize)> = vec![(vec![0; demand.len()], 0)];
    for of_gpu in &cuts {
        let mut layer: BTreeMap<Served, Step> = BTreeMap::new();
        for (before, kept) in &states {
            for (number, cut) in of_gpu.iter().enumerate() {
                let Some(after) = add(before, &cut.serves, demand) else {
                    continue;
                };
                let kept = kept + cut.kept;
                if layer.get(&after).is_none_or(|other| kept > other.kept) {
                    let step = Step {
                        before: before.clone(),
                        cut: number,
                        kept,
                    };
                    layer.insert(after, step);
                }
            }
        }
        states = layer
            .iter()
            .map(|(served, step)| (served.clone(), step.kept))
            .collect();
        states.sort_by_cached_key(|(served, kept)| std::cmp::Reverse((value(served), *kept)));
        is_exact &= states.len() <= STATES_MAX;
        states.truncate(STATES_MAX);
        layers.push(layer);
    }
    let mut served = states.swap_remove(0).0;
    let mut found = Vec::with_capacity(cuts.len());
    for (layer, of_gpu) in layers.iter().zip(&cuts).rev() {
        let Some(step) = layer.get(&served) else {
            break;
        };
        found.extend(of_gpu.get(step.cut).map(|cut| cut.layout.clone()));
        served.clone_from(&step.before);
    }
    found.reverse();
    Targets {
        layouts: found,
        is_exact,
    }
}

/// What is served in all, or nothing where that is more than is wanted.
fn add(before: &[u8], more: &[u8], demand: &[Demand]) -> Option<Served> {
    before
        .iter()
        .zip(more)
        .zip(demand)
        .map(|((before, more), wanted)| {
            let sum = before.checked_add(*more)?;
            (sum <= wanted.count).then_some(sum)
        })
        .collect()
}

/// The ways to cut one GPU, one for each set of slices beyond the pinned ones, that have no more than is
/// wanted. Of the layouts of one set, the one that keeps most of what stands, then leaves most room.
fn cuts(chip: &Chip, pinned: &Layout, standing: &Layout, demand: &[Demand]) -> Vec<Cut> {
    let wanted = |name: &str| {
        let is_it = |d: &Demand| chip.profile(d.profile).is_some_and(|p| p.name == name);
        demand.iter().any(is_it)
    };
    let mut best: BTreeMap<Served, ((usize, u32), Layout)> = BTreeMap::new();
    for layout in layouts(chip, pinned, |profile| wanted(&profile.name)) {
        let serves = |d: &Demand| {
            let more = layout.count(d.profile) - pinned.count(d.profile);
            u8::try_from(more).ok().filter(|more| *more <= d.count)
        };
        let Some(serves) = demand.iter().map(serves).collect::<Option<Served>>() else {
            continue;
        };
        let kept = layout
            .placements()
            .iter()
            .filter(|p| standing.has(**p))
            .count();
        let room = |(index, _)| u32::from(chip.cap(index, layout.mask()));
        let key = (kept, chip.profiles().map(room).sum());
        if best.get(&serves).is_none_or(|(other, _)| key > *other) {
            best.insert(serves, (key, layout));
        }
    }
    let cut = |(serves, ((kept, _), layout))| Cut {
        serves,
        layout,
        kept,
    };
    best.into_iter().map(cut).collect()
}
