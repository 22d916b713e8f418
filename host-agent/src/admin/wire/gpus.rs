//! What the agent says of its GPUs and slices. What a driver does not say is absent, never zero.

use serde::{Deserialize, Serialize};

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuRow {
    /// Its number in the order of the bus.
    pub number: u32,
    /// Which.
    pub uuid: String,
    /// Its model.
    pub model: String,
    /// `nvidia`, `amd`, `intel`.
    pub vendor: String,
    /// Its driver's version.
    pub driver: String,
    /// Where on the bus.
    pub pci_address: String,
    /// Memory in all, in bytes.
    pub memory_bytes: u64,
    /// The lease that has it as a whole.
    pub lease: Option<String>,
    /// How it was when it was last asked; nothing before the first time.
    pub reading: Option<ReadingRow>,
    /// The last Xid since the agent started.
    pub last_xid: Option<u32>,
    /// What leases on record earned with it and its slices by running, before fees.
    pub earned_usd: String,
    /// In thousandths, how much of the time since the agent started neither it nor a slice of it was leased.
    pub idle_permille: Option<u32>,
    /// What it is cut into.
    pub slices: Vec<SliceRow>,
}

/// A slice of a GPU. How much of the time it works no driver says; what it has in memory the driver says of the
/// processes in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceRow {
    /// Its name.
    pub resource: String,
    /// Its profile, like `3g.40gb`.
    pub profile: String,
    /// The driver's number of it.
    pub gpu_instance: u32,
    /// The driver's name of its device, `MIG-…`.
    pub device: Option<String>,
    /// Memory in all, in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory of the processes in it, in bytes.
    pub memory_used_bytes: Option<u64>,
    /// The lease that has it.
    pub lease: Option<String>,
    /// What leases on record earned with it.
    pub earned_usd: String,
    /// In thousandths, how much of the time it was not leased.
    pub idle_permille: Option<u32>,
}

/// How a GPU is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadingRow {
    /// When it was asked, RFC 3339; nothing where that is not kept.
    pub at: Option<String>,
    /// Share of time in which it worked, in percent.
    pub utilisation_percent: Option<u32>,
    /// Share of time in which its memory was read or written, in percent.
    pub memory_utilisation_percent: Option<u32>,
    /// Memory in use, in bytes.
    pub memory_used_bytes: Option<u64>,
    /// Temperature, in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Power drawn, in milliwatts.
    pub power_mw: Option<u32>,
    /// Power limit, in milliwatts.
    pub power_limit_mw: Option<u32>,
    /// Energy since the driver was loaded, in millijoules.
    pub energy_mj: Option<u64>,
    /// Clock of the multiprocessors, in MHz.
    pub graphics_clock_mhz: Option<u32>,
    /// Clock of the memory, in MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Why its clocks are low, as the driver's bits.
    pub clock_reasons: Option<u64>,
    /// PCIe generation in use.
    pub pcie_generation: Option<u32>,
    /// PCIe lanes in use.
    pub pcie_width: Option<u32>,
    /// PCIe packets that were sent again since the driver was loaded.
    pub pcie_replays: Option<u32>,
    /// Memory errors.
    pub ecc: Option<EccRow>,
    /// Rows of memory that were replaced.
    pub remapped: Option<RemappedRow>,
}

/// Errors of a GPU's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EccRow {
    /// Corrected since the driver was loaded.
    pub corrected: u64,
    /// Not corrected since the driver was loaded.
    pub uncorrected: u64,
    /// Corrected over the card's life.
    pub corrected_ever: u64,
    /// Not corrected over the card's life.
    pub uncorrected_ever: u64,
}

/// Rows of a GPU's memory that were replaced by spare ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemappedRow {
    /// For errors that were corrected.
    pub corrected: u32,
    /// For errors that were not.
    pub uncorrected: u32,
    /// More wait for a reset.
    pub pending: bool,
    /// One could not be replaced.
    pub failed: bool,
}
