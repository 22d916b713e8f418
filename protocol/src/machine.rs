//! What a machine is, as its host measured it.

use crate::bounded::{List, Text};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// Most accelerators of one machine.
pub const GPUS_MAX: usize = 16;

/// What a host measured of its machine. Nothing here is a claim typed by a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU's model name.
    pub cpu_model: Text<96>,
    /// `x86_64`, `aarch64`.
    pub architecture: Text<16>,
    /// Logical CPUs.
    pub cpu_cores: u16,
    /// Whether the CPU has AVX.
    pub has_avx: bool,
    /// RAM in all.
    pub ram: Bytes,
    /// Size of the file system under the engine's data root.
    pub disk_total: Bytes,
    /// What is free on it.
    pub disk_free: Bytes,
    /// Whether a lease's disk size is enforced by a quota, or only watched.
    pub disk_enforced: bool,
    /// Operating system, like `Debian GNU/Linux 12`.
    pub system: Text<64>,
    /// Kernel release.
    pub kernel: Text<64>,
    /// Version of the Docker engine.
    pub engine: Text<32>,
    /// Version of the OCI runtime, like `runc 1.1.5`.
    pub runtime: Text<64>,
    /// What the containers' network is.
    pub network: ContainerNetwork,
    /// Its accelerators; none on a CPU machine.
    pub gpus: List<Gpu, GPUS_MAX>,
}

/// What network a lease's container gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ContainerNetwork {
    /// Loopback only; the renter reaches the container through Feira's tunnel.
    None,
    /// A bridge of its own with a way out, and no fence yet between it and the host's own network.
    Bridge,
}

/// One GPU as the driver reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// The driver's product name, like `NVIDIA GeForce RTX 4090`.
    pub model: Text<64>,
    /// `GPU-…`: the resource that is leased.
    pub uuid: Text<64>,
    /// Memory in all.
    pub vram: Bytes,
    /// Driver version, like `570.124.06`.
    pub driver: Text<32>,
    /// Highest CUDA version of the driver, major and minor; 0.0 when unknown.
    pub cuda: (u16, u16),
    /// CUDA compute capability, major and minor; 0.0 when unknown.
    pub compute_capability: (u16, u16),
    /// Highest PCIe generation of card and slot; 0 when unknown.
    pub pcie_generation: u8,
    /// Highest PCIe width in lanes; 0 when unknown.
    pub pcie_width: u8,
    /// Enforced power limit in milliwatts; 0 when unknown.
    pub power_limit_mw: u32,
}
