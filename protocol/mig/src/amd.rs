//! How AMD's large accelerators are divided: all of a host's alike, and only while none of them works.
//!
//! A compute mode says how many devices one GPU shows, a memory mode into how many domains its memory is
//! divided. A change of the memory mode restarts the driver and is for the whole hive. So a division is a
//! layout of the host, not something that a lease may have changed.

use crate::chip::{Chip, Engines, Geometry, Profile};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// A model that can be divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Model {
    /// 8 dies of 38 units, 192 GB.
    Mi300x,
    /// 6 dies of 38 units, 128 GB shared with its CPU cores.
    Mi300a,
}

/// How many devices a GPU shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ComputeMode {
    /// One.
    Spx,
    /// Two.
    Dpx,
    /// Three; only a model with six dies.
    Tpx,
    /// Four; not a model with six dies.
    Qpx,
    /// One for each die.
    Cpx,
}

/// Into how many domains its memory is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MemoryMode {
    /// One.
    Nps1,
    /// Four; the driver then switches to [`ComputeMode::Cpx`] by itself.
    Nps4,
}

/// Modes as they are asked for, of whatever model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Modes {
    /// How many devices.
    pub compute: ComputeMode,
    /// How many domains; as they are when absent.
    pub memory: Option<MemoryMode>,
}

/// Units of compute on one die.
const DIE_UNITS: u16 = 38;

/// A valid division of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Division {
    model: Model,
    compute: ComputeMode,
    memory: MemoryMode,
}

/// Why a division is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// The dies of this model do not divide so.
    Dies(Model, ComputeMode),
    /// Four memory domains go with one device for each die only.
    Memory(ComputeMode),
    /// This model's memory is not divided.
    Undivided(Model),
}

/// What a change takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// It is so already.
    Nothing,
    /// No work on this GPU.
    IdleGpu,
    /// No work on any GPU of the host, and a restart of the driver.
    IdleHostAndRestart,
}

impl Model {
    /// The model of a product's name, like `AMD Instinct MI300X`; nothing for one that is not known to be divided.
    #[must_use]
    pub fn find(product: &str) -> Option<Self> {
        let mut words = product.split(|letter: char| !letter.is_ascii_alphanumeric());
        words.find_map(|word| match word.to_ascii_uppercase().as_str() {
            "MI300X" => Some(Self::Mi300x),
            "MI300A" => Some(Self::Mi300a),
            _ => None,
        })
    }

    /// What one with so much memory can be cut into: for each mode that is valid one profile, `1g.24gb` for a die of an
    /// MI300X with its part of the memory, at every place. The axis is of dies. Only slices of one profile stand
    /// together; nothing where the memory is none.
    #[must_use]
    pub fn chip(self, memory_mib: u32) -> Option<Chip> {
        let geometry = Geometry {
            axis: self.dies(),
            compute: self.dies(),
            instances_max: self.dies(),
            sm_total: u16::from(self.dies()) * DIE_UNITS,
        };
        let divisions = ComputeMode::ALL
            .into_iter()
            .filter_map(|compute| Self::division(self, compute));
        let parts = divisions.filter(|division| division.devices() > 1);
        Chip::new(
            geometry,
            parts.map(|part| part.profile(memory_mib)).collect(),
        )
        .ok()
    }

    fn division(self, compute: ComputeMode) -> Option<Division> {
        Division::new(self, compute, MemoryMode::Nps1).ok()
    }

    /// Dies of one GPU.
    #[must_use]
    pub const fn dies(self) -> u8 {
        match self {
            Self::Mi300x => 8,
            Self::Mi300a => 6,
        }
    }

    /// Memory of one GPU in gigabytes, as it is sold.
    #[must_use]
    pub const fn memory_gb(self) -> u16 {
        match self {
            Self::Mi300x => 192,
            Self::Mi300a => 128,
        }
    }
}

impl ComputeMode {
    /// All of them, fewest devices first.
    pub const ALL: [Self; 5] = [Self::Spx, Self::Dpx, Self::Tpx, Self::Qpx, Self::Cpx];
}

impl Division {
    /// The division of `model` in these modes.
    ///
    /// # Errors
    /// Says why it is not valid.
    pub const fn new(
        model: Model,
        compute: ComputeMode,
        memory: MemoryMode,
    ) -> Result<Self, Invalid> {
        let fits = match compute {
            ComputeMode::Spx | ComputeMode::Cpx => true,
            ComputeMode::Dpx | ComputeMode::Qpx => matches!(model, Model::Mi300x),
            ComputeMode::Tpx => matches!(model, Model::Mi300a),
        };
        if !fits {
            return Err(Invalid::Dies(model, compute));
        }
        match (memory, compute) {
            (MemoryMode::Nps1, _) => {}
            (MemoryMode::Nps4, ComputeMode::Cpx) => {
                if matches!(model, Model::Mi300a) {
                    return Err(Invalid::Undivided(model));
                }
            }
            (
                MemoryMode::Nps4,
                ComputeMode::Spx | ComputeMode::Dpx | ComputeMode::Tpx | ComputeMode::Qpx,
            ) => return Err(Invalid::Memory(compute)),
        }
        Ok(Self {
            model,
            compute,
            memory,
        })
    }

    /// Its modes.
    #[must_use]
    pub const fn modes(&self) -> Modes {
        Modes {
            compute: self.compute,
            memory: Some(self.memory),
        }
    }

    /// This division with other modes; the memory's stays where none is asked for.
    ///
    /// # Errors
    /// Says why it is not valid.
    pub fn with(&self, modes: Modes) -> Result<Self, Invalid> {
        let memory = modes.memory.unwrap_or(self.memory);
        Self::new(self.model, modes.compute, memory)
    }

    /// Dies of one device.
    #[must_use]
    pub const fn dies(&self) -> u8 {
        self.model.dies() / self.devices()
    }

    /// What one device is sold as: `1g.24gb`, its dies and its part of the memory.
    #[must_use]
    pub fn profile_name(&self) -> String {
        format!("{}g.{}gb", self.dies(), self.memory_gb())
    }

    fn profile(&self, memory_mib: u32) -> Profile {
        let (devices, dies) = (self.devices(), self.dies());
        Profile {
            name: self.profile_name(),
            id: u32::from(devices),
            nvml: None,
            compute: dies,
            size: dies,
            starts: (0..devices).map(|device| device * dies).collect(),
            count_max: devices,
            memory_mib: memory_mib / u32::from(devices),
            sm: self.compute_units(),
            engines: Engines::default(),
        }
    }

    /// Devices that one GPU shows.
    #[must_use]
    pub const fn devices(&self) -> u8 {
        match self.compute {
            ComputeMode::Spx => 1,
            ComputeMode::Dpx => 2,
            ComputeMode::Tpx => 3,
            ComputeMode::Qpx => 4,
            ComputeMode::Cpx => self.model.dies(),
        }
    }

    /// Compute units of one device.
    #[must_use]
    pub fn compute_units(&self) -> u16 {
        u16::from(self.dies()) * DIE_UNITS
    }

    /// Memory of one device in gigabytes, rounded down: its even share of the GPU's.
    #[must_use]
    pub fn memory_gb(&self) -> u16 {
        self.model.memory_gb() / u16::from(self.devices())
    }

    /// What it takes to come from here to `wanted`.
    #[must_use]
    pub fn needs(&self, wanted: &Self) -> Needs {
        if self.memory != wanted.memory {
            Needs::IdleHostAndRestart
        } else if self.compute != wanted.compute {
            Needs::IdleGpu
        } else {
            Needs::Nothing
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mi300x => "MI300X",
            Self::Mi300a => "MI300A",
        })
    }
}

impl fmt::Display for ComputeMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Spx => "SPX",
            Self::Dpx => "DPX",
            Self::Tpx => "TPX",
            Self::Qpx => "QPX",
            Self::Cpx => "CPX",
        })
    }
}

impl fmt::Display for MemoryMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nps1 => "NPS1",
            Self::Nps4 => "NPS4",
        })
    }
}

impl FromStr for ComputeMode {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let mut all = Self::ALL.into_iter();
        all.find(|mode| mode.to_string() == text)
            .ok_or_else(|| Unknown(text.to_owned()))
    }
}

impl FromStr for MemoryMode {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        match text {
            "NPS1" => Ok(Self::Nps1),
            "NPS4" => Ok(Self::Nps4),
            _ => Err(Unknown(text.to_owned())),
        }
    }
}

/// `CPX`, `CPX/NPS4`, in any case.
impl FromStr for Modes {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let upper = text.to_ascii_uppercase();
        let (compute, memory) = match upper.split_once('/') {
            Some((compute, memory)) => (compute, Some(memory.parse()?)),
            None => (upper.as_str(), None),
        };
        let compute = compute.parse()?;
        Ok(Self { compute, memory })
    }
}

/// As it is asked for: `CPX`, `CPX/NPS4`.
impl fmt::Display for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.compute)?;
        match self.memory {
            Some(memory) => write!(f, "/{memory}"),
            None => Ok(()),
        }
    }
}

/// No mode has this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown(pub String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no mode of a GPU of AMD's: there are SPX, DPX, TPX, QPX, CPX, and NPS1 and NPS4 after a slash",
            self.0
        )
    }
}

impl Error for Unknown {}

/// As the tools take it: `CPX/NPS4`.
impl fmt::Display for Division {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.compute, self.memory)
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dies(model, compute) => {
                write!(
                    f,
                    "the {} dies of an {model} do not divide as {compute}",
                    model.dies()
                )
            }
            Self::Memory(compute) => {
                write!(f, "{compute} goes with NPS1; NPS4 goes with CPX only")
            }
            Self::Undivided(model) => write!(f, "the memory of an {model} is not divided: NPS1"),
        }
    }
}

impl Error for Invalid {}

#[cfg(test)]
mod tests;
