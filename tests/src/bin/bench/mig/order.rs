//! What the rule is compared with: mixes of requests, and fixed orders of starts. Must not decide anything
//! by what stands elsewhere on the GPU.

use ::mig::chip::{Chip, Profile, ProfileIndex};

/// How often each profile is asked for, by its rank in size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mix {
    Uniform,
    Small,
    Big,
    Bimodal,
}

/// In which order a profile's starts are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Lowest,
    /// As the driver places where it is not told: high, but of single slices first the last of each half.
    Driver,
    /// As HAMi does: high, two slices low.
    Hami,
}

impl Mix {
    pub(super) const ALL: [Self; 4] = [Self::Uniform, Self::Small, Self::Big, Self::Bimodal];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Small => "skew-small",
            Self::Big => "skew-big",
            Self::Bimodal => "bimodal",
        }
    }

    /// The weight of rank `rank` of `count`, from 0.
    pub(super) fn weight(self, rank: u32, count: u32) -> u32 {
        match self {
            Self::Uniform => 1,
            Self::Small => count - rank,
            Self::Big => rank + 1,
            Self::Bimodal => (count - rank).max(rank + 1) - count / 2,
        }
    }
}

impl Order {
    /// Where `start` comes in the order, from 0.
    pub(super) fn rank(self, chip: &Chip, profile: &Profile, start: u8) -> u8 {
        let (high, axis) = (u8::MAX - start, chip.geometry().axis);
        match self {
            Self::Lowest => start,
            Self::Hami if profile.compute == 2 => start,
            Self::Driver if axis == 8 && profile.size == 1 => match start {
                6 => 0,
                4 | 5 => start - 3,
                _ => start + 3,
            },
            Self::Driver | Self::Hami => high,
        }
    }

    /// The starts of `profile` in this order.
    pub(super) fn starts(self, chip: &Chip, profile: &Profile) -> Vec<u8> {
        let mut starts = profile.starts.clone();
        starts.sort_by_key(|start| self.rank(chip, profile, *start));
        starts
    }
}

/// The profiles that the mixes are of: those without a mark.
pub(super) fn plain(chip: &Chip) -> Vec<(ProfileIndex, &Profile)> {
    chip.profiles()
        .filter(|(_, profile)| !profile.is_marked())
        .collect()
}

/// The weight of each plain profile, and their sum.
pub(super) fn weights(chip: &Chip, mix: Mix) -> (Vec<u32>, u32) {
    let count = u32::try_from(plain(chip).len()).unwrap_or(u32::MAX);
    let weights: Vec<u32> = (0..count).map(|rank| mix.weight(rank, count)).collect();
    let sum = weights.iter().sum();
    (weights, sum)
}
