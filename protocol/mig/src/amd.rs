//! How AMD's large accelerators are divided: all of a host's alike, and only while none of them works.
//!
//! A compute mode says how many devices one GPU shows, a memory mode into how many domains its memory is
//! divided. A change of the memory mode restarts the driver and is for the whole hive. So a division is a
//! layout of the host, not something that a lease may have changed.

use std::error::Error;
use std::fmt;

/// A model that can be divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Model {
    /// 8 dies of 38 units, 192 GB.
    Mi300x,
    /// 6 dies of 38 units, 128 GB shared with its CPU cores.
    Mi300a,
}

/// How many devices a GPU shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryMode {
    /// One.
    Nps1,
    /// Four; the driver then switches to [`ComputeMode::Cpx`] by itself.
    Nps4,
}

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
        u16::from(self.model.dies() / self.devices()) * 38
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
mod tests {
    use super::*;

    #[track_caller]
    fn of(compute: ComputeMode, memory: MemoryMode) -> (u8, u16, u16) {
        let division = Division::new(Model::Mi300x, compute, memory).unwrap();
        (
            division.devices(),
            division.compute_units(),
            division.memory_gb(),
        )
    }

    #[test]
    fn an_mi300x_divides_evenly() {
        assert_eq!(of(ComputeMode::Spx, MemoryMode::Nps1), (1, 304, 192));
        assert_eq!(of(ComputeMode::Dpx, MemoryMode::Nps1), (2, 152, 96));
        assert_eq!(of(ComputeMode::Qpx, MemoryMode::Nps1), (4, 76, 48));
        assert_eq!(of(ComputeMode::Cpx, MemoryMode::Nps1), (8, 38, 24));
        assert_eq!(of(ComputeMode::Cpx, MemoryMode::Nps4), (8, 38, 24));
    }

    #[test]
    fn what_the_driver_refuses_is_invalid() {
        use ComputeMode::{Cpx, Dpx, Qpx, Spx, Tpx};
        for compute in [Spx, Dpx, Qpx] {
            let refused = Division::new(Model::Mi300x, compute, MemoryMode::Nps4);
            assert_eq!(refused, Err(Invalid::Memory(compute)));
        }
        let dies = |model, compute| Err(Invalid::Dies(model, compute));
        for (model, compute) in [
            (Model::Mi300x, Tpx),
            (Model::Mi300a, Dpx),
            (Model::Mi300a, Qpx),
        ] {
            let refused = Division::new(model, compute, MemoryMode::Nps1);
            assert_eq!(refused, dies(model, compute));
        }
        let refused = Division::new(Model::Mi300a, Cpx, MemoryMode::Nps4);
        assert_eq!(refused, Err(Invalid::Undivided(Model::Mi300a)));
        let thirds = Division::new(Model::Mi300a, Tpx, MemoryMode::Nps1).unwrap();
        assert_eq!((thirds.devices(), thirds.compute_units()), (3, 76));
    }

    #[test]
    fn a_change_of_memory_is_for_the_whole_host() {
        let of = |compute, memory| Division::new(Model::Mi300x, compute, memory).unwrap();
        let whole = of(ComputeMode::Spx, MemoryMode::Nps1);
        let eighths = of(ComputeMode::Cpx, MemoryMode::Nps1);
        let domains = of(ComputeMode::Cpx, MemoryMode::Nps4);
        assert_eq!(whole.needs(&whole), Needs::Nothing);
        assert_eq!(whole.needs(&eighths), Needs::IdleGpu);
        assert_eq!(eighths.needs(&domains), Needs::IdleHostAndRestart);
        assert_eq!(domains.to_string(), "CPX/NPS4");
    }
}
