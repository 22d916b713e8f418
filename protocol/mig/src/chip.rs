//! What a GPU can be cut into: its memory axis, its profiles, and where each may start.
//!
//! Must not know which boards there are; `board` does.

use std::error::Error;
use std::fmt;

use serde::Deserialize;

use crate::layout::Mask;
use crate::lost::Tables;
use crate::name::{AXIS_MAX, is_profile_name};

/// Most profiles of one chip.
pub const PROFILES_MAX: usize = 16;

/// Most cells of an axis, for tables of one entry for each set of cells: no known chip has more than 8.
pub const CELLS_MAX: u8 = 12;

/// Which of its chip's profiles, in the chip's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProfileIndex(u8);

/// A number of NVML's `NVML_GPU_INSTANCE_PROFILE_*`, which asks the driver for a profile. The profile's
/// own id, which creates an instance, is another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum NvmlProfile {
    /// 0x0.
    #[serde(rename = "1_SLICE")]
    One,
    /// 0x1.
    #[serde(rename = "2_SLICE")]
    Two,
    /// 0x2.
    #[serde(rename = "3_SLICE")]
    Three,
    /// 0x3.
    #[serde(rename = "4_SLICE")]
    Four,
    /// 0x4.
    #[serde(rename = "7_SLICE")]
    Seven,
    /// 0x5.
    #[serde(rename = "8_SLICE")]
    Eight,
    /// 0x6.
    #[serde(rename = "6_SLICE")]
    Six,
    /// 0x7: with media engines.
    #[serde(rename = "1_SLICE_REV1")]
    OneMedia,
    /// 0x8: with media engines.
    #[serde(rename = "2_SLICE_REV1")]
    TwoMedia,
    /// 0x9: with twice the memory.
    #[serde(rename = "1_SLICE_REV2")]
    OneLarge,
    /// 0xA.
    #[serde(rename = "1_SLICE_GFX")]
    OneGraphics,
    /// 0xB.
    #[serde(rename = "2_SLICE_GFX")]
    TwoGraphics,
    /// 0xC.
    #[serde(rename = "4_SLICE_GFX")]
    FourGraphics,
    /// 0xD.
    #[serde(rename = "1_SLICE_NO_ME")]
    OneNoMedia,
    /// 0xE.
    #[serde(rename = "2_SLICE_NO_ME")]
    TwoNoMedia,
    /// 0xF.
    #[serde(rename = "1_SLICE_ALL_ME")]
    OneAllMedia,
    /// 0x10.
    #[serde(rename = "2_SLICE_ALL_ME")]
    TwoAllMedia,
}

/// Media engines: of a profile, or left of a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Engines {
    /// Decoders.
    pub nvdec: u8,
    /// Encoders.
    pub nvenc: u8,
    /// JPEG decoders.
    pub jpeg: u8,
    /// Optical flow accelerators.
    pub ofa: u8,
}

/// A kind of slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// As the driver prints it, without `MIG `: `3g.40gb`, `1g.24gb+me`.
    pub name: String,
    /// What `nvidia-smi mig -cgi` and `nvmlDeviceCreateGpuInstance` take.
    pub id: u32,
    /// What `nvmlDeviceGetGpuInstanceProfileInfo` takes; nothing where only the driver knows.
    pub nvml: Option<NvmlProfile>,
    /// Compute slices.
    pub compute: u8,
    /// Units of the memory axis.
    pub size: u8,
    /// Units at which it may start, rising.
    pub starts: Vec<u8>,
    /// Most of this profile on one GPU.
    pub count_max: u8,
    /// Memory in MiB; 0 when unknown.
    pub memory_mib: u32,
    /// Streaming multiprocessors; 0 when unknown.
    pub sm: u16,
    /// Media engines.
    pub engines: Engines,
}

/// A chip without its profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Units of the memory axis: 8 on most, 4 on an A30, 12 on an RTX PRO 6000.
    pub axis: u8,
    /// Compute slices.
    pub compute: u8,
    /// Most instances at once.
    pub instances_max: u8,
    /// Streaming multiprocessors of the whole GPU; 0 when unknown.
    pub sm_total: u16,
}

/// A GPU that can be cut: its geometry, its profiles, and the tables that place them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chip {
    geometry: Geometry,
    profiles: Vec<Profile>,
    /// Units in a cell: no start and no size is finer.
    cell: u8,
    engines: Engines,
    tables: Tables,
}

/// Why a geometry and its profiles are not a chip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChipError {
    /// No unit, or more than [`AXIS_MAX`] units or [`CELLS_MAX`] cells.
    Axis(u8),
    /// No profile, or more than [`PROFILES_MAX`].
    Profiles(usize),
    /// The profile of this name has no size, start, count or compute slice, or leaves the chip.
    Profile(String),
    /// Two profiles have this name.
    Twice(String),
}

impl ProfileIndex {
    /// The place in the chip's list.
    #[must_use]
    pub fn place(self) -> usize {
        usize::from(self.0)
    }
}

impl NvmlProfile {
    /// The number in NVML's header.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::One => 0x0,
            Self::Two => 0x1,
            Self::Three => 0x2,
            Self::Four => 0x3,
            Self::Seven => 0x4,
            Self::Eight => 0x5,
            Self::Six => 0x6,
            Self::OneMedia => 0x7,
            Self::TwoMedia => 0x8,
            Self::OneLarge => 0x9,
            Self::OneGraphics => 0xA,
            Self::TwoGraphics => 0xB,
            Self::FourGraphics => 0xC,
            Self::OneNoMedia => 0xD,
            Self::TwoNoMedia => 0xE,
            Self::OneAllMedia => 0xF,
            Self::TwoAllMedia => 0x10,
        }
    }
}

impl Engines {
    /// The sum, kept at the end of the range.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            nvdec: self.nvdec.saturating_add(other.nvdec),
            nvenc: self.nvenc.saturating_add(other.nvenc),
            jpeg: self.jpeg.saturating_add(other.jpeg),
            ofa: self.ofa.saturating_add(other.ofa),
        }
    }

    /// Whether none is more than in `all`.
    #[must_use]
    pub const fn is_within(self, all: Self) -> bool {
        self.nvdec <= all.nvdec
            && self.nvenc <= all.nvenc
            && self.jpeg <= all.jpeg
            && self.ofa <= all.ofa
    }

    fn most(self, other: Self) -> Self {
        Self {
            nvdec: self.nvdec.max(other.nvdec),
            nvenc: self.nvenc.max(other.nvenc),
            jpeg: self.jpeg.max(other.jpeg),
            ofa: self.ofa.max(other.ofa),
        }
    }
}

impl Profile {
    /// Whether its name has a mark for media engines or graphics: `+me`, `+gfx`, `+me.all`, `-me`.
    #[must_use]
    pub fn is_marked(&self) -> bool {
        self.name.contains(['+', '-'])
    }
}

impl Chip {
    /// The chip of this geometry with these profiles.
    ///
    /// # Errors
    /// Names what is not possible; the numbers may come from a stranger.
    pub fn new(geometry: Geometry, profiles: Vec<Profile>) -> Result<Self, ChipError> {
        if profiles.is_empty() || profiles.len() > PROFILES_MAX {
            return Err(ChipError::Profiles(profiles.len()));
        }
        let axis = geometry.axis;
        if axis == 0 || axis > AXIS_MAX {
            return Err(ChipError::Axis(axis));
        }
        for (place, profile) in profiles.iter().enumerate() {
            if !is_possible(&geometry, profile) {
                return Err(ChipError::Profile(profile.name.clone()));
            }
            if profiles.iter().take(place).any(|p| p.name == profile.name) {
                return Err(ChipError::Twice(profile.name.clone()));
            }
        }
        let cell = profiles
            .iter()
            .flat_map(|profile| profile.starts.iter().copied().chain([profile.size]))
            .fold(axis, greatest_common_divisor);
        if axis / cell > CELLS_MAX {
            return Err(ChipError::Axis(axis));
        }
        // The largest profile has all engines that there are.
        let none = Engines::default();
        let engines = profiles.iter().fold(none, |all, p| all.most(p.engines));
        let mut chip = Self {
            geometry,
            profiles,
            cell,
            engines,
            tables: Tables::default(),
        };
        chip.tables = Tables::of(&chip);
        Ok(chip)
    }

    /// Axis, compute slices, instances, multiprocessors.
    #[must_use]
    pub const fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Its profiles in order, each with its index.
    pub fn profiles(&self) -> impl Iterator<Item = (ProfileIndex, &Profile)> {
        (0_u8..).map(ProfileIndex).zip(&self.profiles)
    }

    /// The profile at `index`; nothing for an index of another chip that this one does not have.
    #[must_use]
    pub fn profile(&self, index: ProfileIndex) -> Option<&Profile> {
        self.profiles.get(index.place())
    }

    /// The profile of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<ProfileIndex> {
        let (index, _) = self.profiles().find(|(_, profile)| profile.name == name)?;
        Some(index)
    }

    /// Media engines of the whole GPU, as far as its profiles tell.
    #[must_use]
    pub const fn engines(&self) -> Engines {
        self.engines
    }

    /// Cells of the axis: what a [`Mask`] has a bit for.
    #[must_use]
    pub const fn cells(&self) -> u8 {
        self.geometry.axis / self.cell
    }

    /// Units of the memory axis in a cell.
    #[must_use]
    pub const fn cell(&self) -> u8 {
        self.cell
    }

    /// The cells that `profile` takes when it starts at unit `start`, whether or not it may start there.
    #[must_use]
    pub fn window(&self, profile: &Profile, start: u8) -> Mask {
        Mask::span(start / self.cell, profile.size / self.cell)
    }

    /// The tables that place its slices.
    pub(crate) const fn tables(&self) -> &Tables {
        &self.tables
    }
}

fn is_possible(geometry: &Geometry, profile: &Profile) -> bool {
    let rising = profile.starts.windows(2).all(|pair| pair[0] < pair[1]);
    let inside = |start: &u8| {
        start
            .checked_add(profile.size)
            .is_some_and(|end| end <= geometry.axis)
    };
    is_profile_name(&profile.name)
        && profile.size > 0
        && profile.count_max > 0
        && (1..=geometry.compute).contains(&profile.compute)
        && !profile.starts.is_empty()
        && rising
        && profile.starts.iter().all(inside)
}

const fn greatest_common_divisor(a: u8, b: u8) -> u8 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl fmt::Display for ChipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Axis(units) => write!(f, "a memory axis of {units} units cannot be handled"),
            Self::Profiles(count) => write!(f, "{count} profiles; 1 to {PROFILES_MAX} are wanted"),
            Self::Profile(name) => write!(
                f,
                "profile '{name}' has an impossible name, size, start, count or number of slices"
            ),
            Self::Twice(name) => write!(f, "profile '{name}' is there twice"),
        }
    }
}

impl Error for ChipError {}
