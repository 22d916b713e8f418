//! What stands on one GPU, and what may be added: spans, compute slices, counts, media engines.
//!
//! Must not choose where to put anything; `lost` does.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;

use crate::chip::{Chip, Engines, Profile, ProfileIndex};

/// Cells of a GPU's memory axis, one bit each: on a chip whose cells are single units, bit `i` is memory
/// slice `i`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mask(pub u16);

/// One slice on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Placement {
    /// Its first unit on the memory axis.
    pub start: u8,
    /// What it is.
    pub profile: ProfileIndex,
}

/// The slices of one GPU, legal together on the chip that they were added for.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layout {
    mask: Mask,
    placements: Vec<Placement>,
}

/// Why a slice cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Illegal {
    /// The chip has no such profile.
    Profile,
    /// The profile does not start there.
    Start,
    /// Another slice has some of its memory.
    Overlap,
    /// Not so many compute slices are left.
    Compute,
    /// No more of this profile, or no more instances at all.
    Count,
    /// The media engines of a profile with `+me` are taken.
    Engines,
}

impl Mask {
    /// `cells` cells from cell `start` on.
    #[must_use]
    pub const fn span(start: u8, cells: u8) -> Self {
        let bits = if cells >= 16 {
            u16::MAX
        } else {
            (1 << cells) - 1
        };
        Self(if start >= 16 { 0 } else { bits << start })
    }

    /// Whether no cell is in both.
    #[must_use]
    pub const fn is_disjoint(self, other: Self) -> bool {
        self.0 & other.0 == 0
    }

    /// Cells of either.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Cells of this one that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// How many cells.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }
}

impl Layout {
    /// The layout of `placements`.
    ///
    /// # Errors
    /// Says why the first that does not fit does not.
    pub fn of(chip: &Chip, placements: &[Placement]) -> Result<Self, Illegal> {
        let mut layout = Self::default();
        for placement in placements {
            layout.add(chip, *placement)?;
        }
        Ok(layout)
    }

    /// What stands on it, by start.
    #[must_use]
    pub fn placements(&self) -> &[Placement] {
        &self.placements
    }

    /// Cells that are taken.
    #[must_use]
    pub const fn mask(&self) -> Mask {
        self.mask
    }

    /// Whether nothing stands on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.placements.is_empty()
    }

    /// Whether this slice stands on it.
    #[must_use]
    pub fn has(&self, placement: Placement) -> bool {
        self.placements.binary_search(&placement).is_ok()
    }

    /// How many of `profile` stand on it.
    #[must_use]
    pub fn count(&self, profile: ProfileIndex) -> usize {
        self.placements
            .iter()
            .filter(|p| p.profile == profile)
            .count()
    }

    /// Adds a slice.
    ///
    /// # Errors
    /// Says why it does not fit; nothing has changed then.
    pub fn add(&mut self, chip: &Chip, placement: Placement) -> Result<(), Illegal> {
        let profile = chip.profile(placement.profile).ok_or(Illegal::Profile)?;
        if !profile.starts.contains(&placement.start) {
            return Err(Illegal::Start);
        }
        let window = chip.window(profile, placement.start);
        if !self.mask.is_disjoint(window) {
            return Err(Illegal::Overlap);
        }
        self.takes(chip, placement.profile)?;
        let place = self.placements.partition_point(|other| *other < placement);
        self.placements.insert(place, placement);
        self.mask = self.mask.with(window);
        Ok(())
    }

    /// Takes a slice away; false when it was not there.
    pub fn remove(&mut self, chip: &Chip, placement: Placement) -> bool {
        let Ok(place) = self.placements.binary_search(&placement) else {
            return false;
        };
        self.placements.remove(place);
        if let Some(profile) = chip.profile(placement.profile) {
            let window = chip.window(profile, placement.start);
            self.mask = self.mask.without(window);
        }
        true
    }

    /// Whether one more of `profile` may stand here, its place aside.
    ///
    /// # Errors
    /// Says what is used up.
    pub fn takes(&self, chip: &Chip, profile: ProfileIndex) -> Result<(), Illegal> {
        let added = chip.profile(profile).ok_or(Illegal::Profile)?;
        let geometry = chip.geometry();
        if self.placements.len() >= usize::from(geometry.instances_max)
            || self.count(profile) >= usize::from(added.count_max)
        {
            return Err(Illegal::Count);
        }
        let standing = || {
            self.placements
                .iter()
                .filter_map(|p| chip.profile(p.profile))
        };
        let compute: u32 = standing().map(|p| u32::from(p.compute)).sum();
        if compute + u32::from(added.compute) > u32::from(geometry.compute) {
            return Err(Illegal::Compute);
        }
        // What drivers and papers say of engines differs; they bind only beside a profile that is about them.
        let together = || standing().chain([added]);
        let engines = together().fold(Engines::default(), |sum, p| sum.plus(p.engines));
        if together().any(Profile::is_marked) && !engines.is_within(chip.engines()) {
            return Err(Illegal::Engines);
        }
        Ok(())
    }

    /// Slices that may be added next, by profile and start.
    pub fn addable<'a>(&'a self, chip: &'a Chip) -> impl Iterator<Item = Placement> + 'a {
        chip.profiles()
            .filter(|(index, _)| self.takes(chip, *index).is_ok())
            .flat_map(move |(index, profile)| {
                let free = |start: &u8| self.mask.is_disjoint(chip.window(profile, *start));
                let place = move |start| Placement {
                    start,
                    profile: index,
                };
                profile.starts.iter().copied().filter(free).map(place)
            })
    }

    /// How many of each profile stand on it, in the chip's order.
    #[must_use]
    pub fn counts(&self, chip: &Chip) -> Vec<u8> {
        let count = |(index, _)| u8::try_from(self.count(index)).unwrap_or(u8::MAX);
        chip.profiles().map(count).collect()
    }
}

/// Every layout that has all of `base` and beyond it only profiles that `wanted` admits, `base` itself
/// first: 723 on an empty chip of 7 compute slices with its plain profiles.
#[must_use]
pub fn layouts(chip: &Chip, base: &Layout, wanted: impl Fn(&Profile) -> bool) -> Vec<Layout> {
    let mut seen = BTreeSet::new();
    let mut found = vec![base.clone()];
    let mut next = 0;
    while let Some(layout) = found.get(next).cloned() {
        next += 1;
        for placement in layout.addable(chip) {
            if !chip.profile(placement.profile).is_some_and(&wanted) {
                continue;
            }
            let mut larger = layout.clone();
            if larger.add(chip, placement).is_ok() && seen.insert(larger.clone()) {
                found.push(larger);
            }
        }
    }
    found
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Profile => "the GPU has no such profile",
            Self::Start => "the profile cannot start there",
            Self::Overlap => "another slice has some of that memory",
            Self::Compute => "not so many compute slices are left",
            Self::Count => "no more of this profile fit",
            Self::Engines => "the media engines are taken",
        })
    }
}

impl Error for Illegal {}
