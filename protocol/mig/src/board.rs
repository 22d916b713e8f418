//! The boards that are known, and whether what a host says of its GPU is what such a board can say.
//!
//! The driver on the host is the authority on memory, multiprocessors and which profiles there are; names
//! and places are the same with every driver, so they are compared strictly.

use std::error::Error;
use std::fmt;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::chip::{Chip, ChipError, Engines, Geometry, NvmlProfile, Profile};

/// How far a driver's memory of a profile may be from ours, in percent: versions differ by up to 7.
pub const MEMORY_TOLERANCE_PERCENT: u64 = 8;

const DATA: &str = include_str!("../data/mig_profiles.toml");

/// A board that can be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Board {
    /// Our name of it, like `A100-40`.
    pub id: String,
    /// Words in a row of the driver's product name, in capitals: one of these is in it.
    pub models: Vec<String>,
    /// Memory in GiB, as it is sold.
    pub memory_gib: u64,
    /// What it can be cut into.
    pub cut: Cut,
}

/// What is known of a board's slices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// All of it, from printouts of the driver.
    Known(Chip),
    /// The geometry and the names of its profiles; where they start only the driver says.
    Named {
        /// Axis, compute slices, instances, multiprocessors.
        geometry: Geometry,
        /// Every profile's name.
        names: Vec<String>,
    },
}

/// What the driver says of one profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// Without `MIG ` before it.
    pub name: String,
    /// What creates an instance.
    pub id: u32,
    /// Compute slices.
    pub compute: u8,
    /// Units of the memory axis, as the placements say.
    pub size: u8,
    /// Units at which it may start, rising.
    pub starts: Vec<u8>,
    /// Most of this profile on one GPU.
    pub count_max: u8,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Streaming multiprocessors.
    pub sm: u16,
}

/// Why a host's table of profiles is not that of its board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableProblem {
    /// The board has no profile of this name.
    Unknown {
        /// The board.
        board: String,
        /// The profile that was reported.
        profile: String,
    },
    /// Another number of slices, of instances or of places.
    Shape {
        /// The profile.
        profile: String,
        /// Compute slices, size, most instances and starts as reported.
        reported: (u8, u8, u8, Vec<u8>),
        /// The same as known.
        known: (u8, u8, u8, Vec<u8>),
    },
    /// Memory further from ours than [`MEMORY_TOLERANCE_PERCENT`].
    Memory {
        /// The profile.
        profile: String,
        /// MiB as reported.
        reported: u32,
        /// MiB as known.
        known: u32,
    },
    /// The table is not one of any chip.
    Chip(ChipError),
}

/// Every known board.
///
/// Empty when the data that this crate carries does not parse, which its tests exclude.
#[must_use]
pub fn boards() -> &'static [Board] {
    static BOARDS: LazyLock<Vec<Board>> = LazyLock::new(|| parse(DATA).unwrap_or_default());
    &BOARDS
}

/// The board of the driver's product name (`NVIDIA A100-SXM4-40GB`) with so much memory in bytes: the one
/// that has the model's words and is nearest in memory, within [`MEMORY_TOLERANCE_PERCENT`].
#[must_use]
pub fn find_board(product: &str, memory_bytes: u64) -> Option<&'static Board> {
    let mib = memory_bytes >> 20;
    let words = words(product);
    boards()
        .iter()
        .filter(|board| board.models.iter().any(|model| has_words(&words, model)))
        .map(|board| ((board.memory_gib << 10).abs_diff(mib), board))
        .filter(|(off, board)| off * 100 <= (board.memory_gib << 10) * MEMORY_TOLERANCE_PERCENT)
        .min_by_key(|(off, _)| *off)
        .map(|(_, board)| board)
}

impl Board {
    /// The chip as the driver reports it: memory, multiprocessors, ids and presence by the report, once
    /// names, shapes and places are found to be the board's. A driver that knows fewer profiles is an older
    /// one. `sm_total` is the whole GPU's, 0 when unknown.
    ///
    /// # Errors
    /// Says which profile is not the board's, with both numbers.
    pub fn chip(&self, reported: &[Reported], sm_total: u16) -> Result<Chip, TableProblem> {
        let mut geometry = self.geometry();
        if sm_total > 0 {
            geometry.sm_total = sm_total;
        }
        let profiles = reported
            .iter()
            .map(|profile| self.checked(profile))
            .collect::<Result<_, _>>()?;
        Chip::new(geometry, profiles).map_err(TableProblem::Chip)
    }

    /// The geometry of the board.
    #[must_use]
    pub const fn geometry(&self) -> Geometry {
        match &self.cut {
            Cut::Known(chip) => chip.geometry(),
            Cut::Named { geometry, .. } => *geometry,
        }
    }

    fn checked(&self, reported: &Reported) -> Result<Profile, TableProblem> {
        let unknown = || TableProblem::Unknown {
            board: self.id.clone(),
            profile: reported.name.clone(),
        };
        let (nvml, engines) = match &self.cut {
            Cut::Known(chip) => {
                let index = chip.find(&reported.name).ok_or_else(unknown)?;
                let known = chip.profile(index).ok_or_else(unknown)?;
                compare(reported, known)?;
                (known.nvml, known.engines)
            }
            Cut::Named { names, .. } if names.contains(&reported.name) => {
                (None, Engines::default())
            }
            Cut::Named { .. } => return Err(unknown()),
        };
        Ok(Profile {
            name: reported.name.clone(),
            id: reported.id,
            nvml,
            compute: reported.compute,
            size: reported.size,
            starts: reported.starts.clone(),
            count_max: reported.count_max,
            memory_mib: reported.memory_mib,
            sm: reported.sm,
            engines,
        })
    }
}

fn compare(reported: &Reported, known: &Profile) -> Result<(), TableProblem> {
    let said = (
        reported.compute,
        reported.size,
        reported.count_max,
        reported.starts.clone(),
    );
    let ours = (
        known.compute,
        known.size,
        known.count_max,
        known.starts.clone(),
    );
    if said != ours {
        return Err(TableProblem::Shape {
            profile: known.name.clone(),
            reported: said,
            known: ours,
        });
    }
    let off = u64::from(reported.memory_mib.abs_diff(known.memory_mib));
    if known.memory_mib > 0 && off * 100 > u64::from(known.memory_mib) * MEMORY_TOLERANCE_PERCENT {
        return Err(TableProblem::Memory {
            profile: known.name.clone(),
            reported: reported.memory_mib,
            known: known.memory_mib,
        });
    }
    Ok(())
}

/// The letters and digits of a product's name in capitals, word by word.
fn words(product: &str) -> Vec<String> {
    product
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_uppercase)
        .collect()
}

fn has_words(words: &[String], model: &str) -> bool {
    let wanted: Vec<&str> = model.split(' ').collect();
    words
        .windows(wanted.len())
        .any(|run| run.iter().eq(wanted.iter()))
}

/// The file of boards.
#[derive(Deserialize)]
struct File {
    gpu: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    models: Vec<String>,
    memory_gb: u64,
    sm_total: u16,
    mem_slices: u8,
    compute_slices: u8,
    max_instances: u8,
    #[serde(default)]
    names_only: bool,
    #[serde(default)]
    profile_names: Vec<String>,
    #[serde(default)]
    profile: Vec<ProfileEntry>,
}

#[derive(Deserialize)]
struct ProfileEntry {
    name: String,
    profile_id: u32,
    nvml: NvmlProfile,
    compute_slices: u8,
    mem_slices: u8,
    memory_mib: u32,
    max_instances: u8,
    placements: Vec<u8>,
    sm: u16,
    #[serde(flatten)]
    engines: Engines,
}

fn parse(text: &str) -> Result<Vec<Board>, Box<dyn Error + Send + Sync>> {
    let file: File = toml::from_str(text)?;
    file.gpu.into_iter().map(Entry::board).collect()
}

impl Entry {
    fn board(self) -> Result<Board, Box<dyn Error + Send + Sync>> {
        let geometry = Geometry {
            axis: self.mem_slices,
            compute: self.compute_slices,
            instances_max: self.max_instances,
            sm_total: self.sm_total,
        };
        let cut = if self.names_only {
            Cut::Named {
                geometry,
                names: self.profile_names,
            }
        } else {
            let profiles = self.profile.into_iter().map(ProfileEntry::profile);
            Cut::Known(Chip::new(geometry, profiles.collect())?)
        };
        Ok(Board {
            id: self.id,
            models: self.models,
            memory_gib: self.memory_gb,
            cut,
        })
    }
}

impl ProfileEntry {
    fn profile(self) -> Profile {
        Profile {
            name: self.name,
            id: self.profile_id,
            nvml: Some(self.nvml),
            compute: self.compute_slices,
            size: self.mem_slices,
            starts: self.placements,
            count_max: self.max_instances,
            memory_mib: self.memory_mib,
            sm: self.sm,
            engines: self.engines,
        }
    }
}

impl fmt::Display for TableProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { board, profile } => {
                write!(f, "a {board} has no profile '{profile}'")
            }
            Self::Shape {
                profile,
                reported,
                known,
            } => write!(
                f,
                "profile '{profile}' is reported with {} compute slices, {} of memory, at most {} at {:?}; \
                 known are {}, {}, {} at {:?}",
                reported.0, reported.1, reported.2, reported.3, known.0, known.1, known.2, known.3
            ),
            Self::Memory {
                profile,
                reported,
                known,
            } => write!(
                f,
                "profile '{profile}' is reported with {reported} MiB; known are {known} MiB, and drivers \
                 differ by at most {MEMORY_TOLERANCE_PERCENT} %"
            ),
            Self::Chip(_) => f.write_str("the reported profiles are not those of a chip"),
        }
    }
}

impl Error for TableProblem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Chip(error) => Some(error),
            Self::Unknown { .. } | Self::Shape { .. } | Self::Memory { .. } => None,
        }
    }
}
