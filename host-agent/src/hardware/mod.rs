//! What this machine is, measured and never typed in: processor, memory, system, disk, GPUs. It decides
//! nothing about what is offered, and no probe that fails or hangs takes the agent with it.
//!
//! * [`this`]: the machine that the agent runs on. [`sim`]: one that is made up, for tests.
//! * [`processor`], [`system`]: the kernel's small text files. [`kernel_log`]: what it says of GPUs. [`hearing`]: that, and what their library says. [`disk`]: the file system.
//!   [`board`]: the mainboard. [`toolkit`]: what gives GPUs to containers. [`seat`]: where each GPU sits.
//! * [`nvidia`]: GPUs, through the driver's own library where there is one. [`amd`], [`intel`]: GPUs, through the
//!   kernel's files about the devices of the bus ([`pci`]).

pub mod sim;
pub mod this;

pub mod amd;
pub mod board;
pub mod disk;
pub mod hearing;
pub mod intel;
pub mod kernel_log;
pub mod nvidia;
pub mod pci;
pub mod processor;
pub mod seat;
pub mod system;
pub mod toolkit;

use crate::core::slices::Divisibles;
use crate::core::slices::acts::Act;
use crate::runtime::EngineFacts;
use amd::AmdGpu;
use disk::Disk;
use gpu_health::between::{Dirty, Scrubbed};
use intel::IntelGpu;
use nvidia::Nvidia;
use processor::Processor;
use protocol::bounded::{List, Text};
use protocol::machine::{ContainerNetwork, Gpu, Machine};
use protocol::offer::ResourceName;
use protocol::units::Bytes;
use seat::Seats;
use std::future::Future;
use std::path::{Path, PathBuf};
use system::System;

/// A machine that can be measured.
pub trait Hardware: Send + Sync + 'static {
    /// Everything but the disk, measured now.
    fn measure(&self) -> impl Future<Output = Result<Measured, HardwareError>> + Send;

    /// The file system that `path` is on, measured now.
    ///
    /// # Errors
    /// When the system does not say.
    fn disk(&self, path: &Path) -> Result<Disk, HardwareError>;

    /// The GPUs that can be divided, as they are now; none where nobody can tell.
    fn divisibles(&self) -> impl Future<Output = Divisibles> + Send {
        async { Divisibles::new() }
    }

    /// Does one thing about slices; of one that was made, says which device it is.
    fn cut(&self, act: &Act) -> impl Future<Output = Result<Option<Text<64>>, CutProblem>> + Send {
        let problem = CutProblem {
            is_in_use: false,
            detail: format!("nothing here divides {}", act.gpu()),
        };
        async { Err(problem) }
    }

    /// Whether its NVIDIA GPUs can be looked at and cleaned between two leases.
    fn cleans(&self) -> bool {
        false
    }

    /// Resets a GPU; what is leased and linked was looked at before.
    fn reset_gpu(&self, gpu: &ResourceName) -> impl Future<Output = Result<(), String>> + Send {
        let problem = format!("nothing here resets {gpu}");
        async { Err(problem) }
    }

    /// Writes and reads back all memory of these devices, by the driver's names of them.
    fn scrub(&self, devices: &[String]) -> impl Future<Output = Result<Scrubbed, Dirty>> + Send {
        let problem = Dirty::Scrub(format!("nothing here writes {devices:?}"));
        async { Err(problem) }
    }
}

/// Why the driver did not do what it was told about slices.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct CutProblem {
    /// Somebody uses it: it may be done later.
    pub is_in_use: bool,
    /// What the driver said.
    pub detail: String,
}

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum HardwareError {
    /// A file of the kernel's cannot be read.
    #[error("could not read {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It does not say what it should.
    #[error("{path} does not say {what}")]
    Missing {
        /// Which.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// The file system of a path cannot be looked at.
    #[error("could not look at the file system of {path}")]
    FileSystem {
        /// The path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// A machine without its disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// Its processors.
    pub processor: Processor,
    /// NUMA nodes; 1 where there is no such thing.
    pub numa_nodes: u8,
    /// Maker and name of its mainboard; empty when unknown.
    pub mainboard: String,
    /// Version of NVIDIA's container toolkit; empty where there is none.
    pub toolkit: String,
    /// RAM in all.
    pub ram: Bytes,
    /// Operating system and kernel.
    pub system: System,
    /// Its NVIDIA GPUs, or why there are none.
    pub nvidia: Nvidia,
    /// Its AMD GPUs.
    pub amd: Vec<AmdGpu>,
    /// Its Intel GPUs.
    pub intel: Vec<IntelGpu>,
    /// Where each GPU sits, and its limits.
    pub seats: Seats,
}

impl Measured {
    /// Whether it is the same machine in all that it is sold by: not how warm its GPUs are.
    #[must_use]
    pub fn is_as(&self, other: &Self) -> bool {
        let rest = |of: &Self| Self {
            amd: Vec::new(),
            intel: Vec::new(),
            ..of.clone()
        };
        rest(self) == rest(other) && self.gpus().eq(other.gpus())
    }

    /// The GPUs that can be leased, of all vendors.
    pub fn gpus(&self) -> impl Iterator<Item = &Gpu> {
        let nvidia = self.nvidia.gpus().iter();
        let amd = self.amd.iter().map(|amd| &amd.gpu);
        let intel = self.intel.iter().map(|intel| &intel.gpu);
        nvidia.chain(amd).chain(intel)
    }
}

/// The machine as offers describe it.
#[must_use]
pub fn machine(
    measured: &Measured,
    disk: Disk,
    engine: &EngineFacts,
    network: ContainerNetwork,
) -> Machine {
    Machine {
        cpu_model: Text::cut(&measured.processor.model),
        architecture: Text::cut(&measured.system.architecture),
        // The engine refuses more than it was given itself.
        cpu_cores: measured.processor.cores.min(engine.cpu_cores.max(1)),
        cpu_mhz: measured.processor.mhz,
        numa_nodes: measured.numa_nodes,
        mainboard: Text::cut(&measured.mainboard),
        has_avx: measured.processor.has_avx,
        ram: measured.ram,
        disk_total: disk.total,
        disk_free: disk.free,
        disk_model: Text::cut(&disk.model),
        disk_enforced: engine.disk_quota,
        system: Text::cut(&measured.system.name),
        kernel: Text::cut(&measured.system.kernel),
        engine: Text::cut(&engine.version),
        runtime: Text::cut(&engine.runtime),
        toolkit: Text::cut(&measured.toolkit),
        network,
        gpus: List::first(measured.gpus().cloned()),
    }
}

#[cfg(test)]
mod tests;
