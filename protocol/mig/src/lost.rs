//! Where to put a slice so that least is lost: the window whose taking leaves room for most others.
//!
//! `cap[p][m]` is how many of profile `p` still fit beside mask `m`; a window's loss is the sum, over the
//! plain profiles, of their size times what their `cap` falls by. All of it is computed once for a chip;
//! a decision is one look at the table for each GPU. Must not know who asks or pays.

use crate::chip::{Chip, Profile, ProfileIndex};
use crate::layout::{Layout, Mask, Placement};

/// For each profile and mask: how many fit, and the best window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    /// By profile, then by mask.
    caps: Vec<Vec<u8>>,
    /// By profile, then by mask: loss, free cells and start of the window of least loss, the lowest of
    /// equals, in two bytes, one and one, so that the smaller number is the better place; or [`NO_WINDOW`].
    best: Vec<Vec<u32>>,
}

const NO_WINDOW: u32 = u32::MAX;

/// A place on one GPU of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// The GPU's number in the pool.
    pub gpu: usize,
    /// The slice that may be created there.
    pub placement: Placement,
}

/// What one GPU of a pool would lose to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eviction {
    /// Where the request then fits.
    pub spot: Spot,
    /// What has to go first.
    pub evicted: Vec<Placement>,
    /// What that costs: the sum of their values.
    pub cost: u64,
}

impl Tables {
    /// The tables of `chip`.
    pub(crate) fn of(chip: &Chip) -> Self {
        let masks = 0..1_u16 << chip.cells();
        let caps: Vec<Vec<u8>> = chip
            .profiles()
            .map(|(_, profile)| capacities(chip, profile))
            .collect();
        let mut tables = Self {
            caps,
            best: Vec::new(),
        };
        tables.best = chip
            .profiles()
            .map(|(_, profile)| {
                let best = |mask| tables.best_window(chip, profile, Mask(mask));
                masks.clone().map(best).collect()
            })
            .collect();
        tables
    }

    fn cap(&self, profile: usize, mask: Mask) -> u8 {
        let caps = self.caps.get(profile);
        let cap = caps.and_then(|caps| caps.get(usize::from(mask.0)));
        cap.copied().unwrap_or(0)
    }

    fn best_window(&self, chip: &Chip, profile: &Profile, mask: Mask) -> u32 {
        let free = u32::from(chip.cells()) - mask.count();
        let windows = profile.starts.iter().filter_map(|start| {
            let taken = chip.window(profile, *start);
            let loss = || u32::from(self.loss(chip, mask, mask.with(taken)));
            mask.is_disjoint(taken)
                .then(|| loss() << 16 | free << 8 | u32::from(*start))
        });
        windows.min().unwrap_or(NO_WINDOW)
    }

    fn loss(&self, chip: &Chip, before: Mask, after: Mask) -> u16 {
        let plain = chip.profiles().filter(|(_, p)| !p.is_marked());
        plain
            .map(|(index, profile)| {
                let place = index.place();
                let fewer = self
                    .cap(place, before)
                    .saturating_sub(self.cap(place, after));
                u16::from(profile.size / chip.cell()) * u16::from(fewer)
            })
            .sum()
    }
}

/// How many of `profile` fit beside each mask. A mask with one window more is a larger number, so going
/// down from the full one, what follows is known.
fn capacities(chip: &Chip, profile: &Profile) -> Vec<u8> {
    let count = 1_u16 << chip.cells();
    let mut caps = vec![0_u8; usize::from(count)];
    for mask in (0..count).rev() {
        let more = profile
            .starts
            .iter()
            .map(|start| chip.window(profile, *start))
            .filter(|window| Mask(mask).is_disjoint(*window))
            .filter_map(|window| caps.get(usize::from(Mask(mask).with(window).0)))
            .map(|beside| beside.saturating_add(1))
            .max();
        if let Some(cap) = caps.get_mut(usize::from(mask)) {
            *cap = more.unwrap_or(0).min(profile.count_max);
        }
    }
    caps
}

impl Chip {
    /// How many of `profile` fit beside `mask`.
    #[must_use]
    pub fn cap(&self, profile: ProfileIndex, mask: Mask) -> u8 {
        self.tables().cap(profile.place(), mask)
    }

    /// What taking `profile` at `start` loses on a GPU with `mask`, in cells.
    #[must_use]
    pub fn loss(&self, profile: ProfileIndex, start: u8, mask: Mask) -> u16 {
        self.profile(profile).map_or(0, |taken| {
            let after = mask.with(self.window(taken, start));
            self.tables().loss(self, mask, after)
        })
    }

    /// Where `profile` goes: least loss, then fewest free cells, then the lowest number, then the lowest
    /// start. The order is total, so the same pool always gives the same answer. `pool` has each GPU that may
    /// be cut with its number; nothing when none has room.
    #[must_use]
    pub fn place<'a>(
        &self,
        pool: impl IntoIterator<Item = (usize, &'a Layout)>,
        profile: ProfileIndex,
    ) -> Option<Spot> {
        let best = self.tables().best.get(profile.place())?;
        let (mut chosen, mut key) = (None, (NO_WINDOW, usize::MAX));
        for (gpu, layout) in pool {
            let window = best.get(usize::from(layout.mask().0)).copied();
            let window = window.unwrap_or(NO_WINDOW);
            // The start comes after the GPU's number.
            let other = (window >> 8, gpu);
            if window != NO_WINDOW && other < key && layout.takes(self, profile).is_ok() {
                key = other;
                chosen = Some(window);
            }
        }
        let start = u8::try_from(chosen? & 0xff).ok()?;
        let placement = Placement { start, profile };
        let (_, gpu) = key;
        Some(Spot { gpu, placement })
    }

    /// Where `profile` fits at least cost when slices may be taken from others. `value` says what ending
    /// a slice costs, and nothing for one that must stay. Among equals: least loss afterwards, the lowest
    /// number, the lowest start. Exact: a request has few windows on a GPU, and each is looked at.
    #[must_use]
    pub fn evict<'a>(
        &self,
        pool: impl IntoIterator<Item = (usize, &'a Layout)>,
        profile: ProfileIndex,
        value: impl Fn(usize, Placement) -> Option<u64>,
    ) -> Option<Eviction> {
        let wanted = self.profile(profile)?;
        let mut best: Option<((u64, u16, usize, u8), Eviction)> = None;
        for (gpu, layout) in pool {
            for start in &wanted.starts {
                let placement = Placement {
                    start: *start,
                    profile,
                };
                let Some((evicted, cost, left)) = self.clear(layout, placement, |p| value(gpu, p))
                else {
                    continue;
                };
                let key = (cost, self.loss(profile, *start, left.mask()), gpu, *start);
                if best.as_ref().is_none_or(|(other, _)| key < *other) {
                    let spot = Spot { gpu, placement };
                    let eviction = Eviction {
                        spot,
                        evicted,
                        cost,
                    };
                    best = Some((key, eviction));
                }
            }
        }
        best.map(|(_, eviction)| eviction)
    }

    /// What has to go from `layout` for `placement`, at what cost, and what is left; nothing when one of
    /// them must stay or it does not fit even then.
    fn clear(
        &self,
        layout: &Layout,
        placement: Placement,
        value: impl Fn(Placement) -> Option<u64>,
    ) -> Option<(Vec<Placement>, u64, Layout)> {
        let window = self.window(self.profile(placement.profile)?, placement.start);
        let (mut evicted, mut cost, mut left) = (Vec::new(), 0_u64, layout.clone());
        for standing in layout.placements() {
            let taken = self.window(self.profile(standing.profile)?, standing.start);
            if !taken.is_disjoint(window) {
                cost = cost.checked_add(value(*standing)?)?;
                left.remove(self, *standing);
                evicted.push(*standing);
            }
        }
        let mut after = left.clone();
        after.add(self, placement).ok()?;
        Some((evicted, cost, left))
    }
}
