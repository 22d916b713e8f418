//! How a GPU is at one moment. What the driver does not say is absent; nothing stands for it.

use protocol::bounded::Text;
use protocol::units::{Bytes, Timestamp};
use serde::{Deserialize, Serialize};

/// Most processes of one GPU that a sample lists; a GPU runs a few dozen at most.
pub const PROCESSES_MAX: usize = 256;

/// One reading of one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuSample {
    /// Its UUID.
    pub gpu: Text<64>,
    /// When the agent got it, by its own clock.
    pub at: Timestamp,
    /// What was read.
    pub reading: Reading,
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Temperature of the core in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Power drawn, in milliwatts.
    pub power_mw: Option<u32>,
    /// Enforced power limit, in milliwatts.
    pub power_limit_mw: Option<u32>,
    /// Energy since the driver was loaded, in millijoules.
    pub energy_mj: Option<u64>,
    /// Share of the last period in which a kernel ran, in percent.
    pub utilisation_percent: Option<u32>,
    /// Share of the last period in which memory was read or written, in percent.
    pub memory_utilisation_percent: Option<u32>,
    /// Memory in use, without what the driver keeps for itself.
    pub memory_used: Option<Bytes>,
    /// Clock of the multiprocessors, in MHz.
    pub graphics_clock_mhz: Option<u32>,
    /// Clock of the memory, in MHz.
    pub memory_clock_mhz: Option<u32>,
    /// PCIe generation and lanes that are in use now; a GPU at rest lowers its generation.
    pub pcie: Option<(u32, u32)>,
    /// PCIe packets sent again since the driver was loaded.
    pub pcie_replays: Option<u32>,
    /// Why its clocks are lower than they could be.
    pub clock_reasons: Option<ClockReasons>,
    /// Memory errors.
    pub ecc: Option<EccCounters>,
    /// Rows of memory that were replaced. The driver does not say while MIG instances exist.
    pub remapped: Option<RemappedRows>,
    /// What the driver itself says is to be done (field 230).
    pub recovery: Option<RecoveryAction>,
    /// Who uses it, at most [`PROCESSES_MAX`]; nothing when the driver does not say.
    pub processes: Option<Vec<Process>>,
}

/// The driver's clock event reasons, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReasons(pub u64);

impl ClockReasons {
    /// Nothing runs.
    pub const IDLE: u64 = 0x1;
    /// Limits set by applications.
    pub const APPLICATION: u64 = 0x2;
    /// The power limit: normal under load.
    pub const POWER_CAP: u64 = 0x4;
    /// The hardware slows down: heat or power.
    pub const HARDWARE_SLOWDOWN: u64 = 0x8;
    /// Held to the clock of a group.
    pub const SYNC_BOOST: u64 = 0x10;
    /// The driver slows it down for its heat.
    pub const SOFTWARE_THERMAL: u64 = 0x20;
    /// The hardware slows it down for its heat.
    pub const HARDWARE_THERMAL: u64 = 0x40;
    /// The power supply asked for less.
    pub const POWER_BRAKE: u64 = 0x80;
    /// A display's clock.
    pub const DISPLAY: u64 = 0x100;

    /// Whether any of `bits` is set.
    #[must_use]
    pub const fn has(self, bits: u64) -> bool {
        self.0 & bits != 0
    }
}

/// Errors of the memory: since the driver was loaded (volatile), and over the card's life (aggregate).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EccCounters {
    /// Corrected since the driver was loaded.
    pub corrected: u64,
    /// Not corrected since the driver was loaded.
    pub uncorrected: u64,
    /// Corrected over the card's life.
    pub corrected_ever: u64,
    /// Not corrected over the card's life.
    pub uncorrected_ever: u64,
}

/// Rows of memory that were replaced by spare ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemappedRows {
    /// For corrected errors.
    pub corrected: u32,
    /// For uncorrected ones.
    pub uncorrected: u32,
    /// More wait for a reset.
    pub pending: bool,
    /// One could not be replaced: the card is to be returned.
    pub failed: bool,
}

/// `NVML_FI_DEV_GET_GPU_RECOVERY_ACTION`: the driver's own verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RecoveryAction {
    /// Nothing.
    None,
    /// Reset the GPU.
    Reset,
    /// Reboot the machine.
    Reboot,
    /// Start no new work across GPUs.
    DrainPeers,
    /// Start no new work, and reset when it is empty.
    DrainAndReset,
    /// Another one, by its number.
    Other(u32),
}

impl RecoveryAction {
    /// The action of the driver's number.
    #[must_use]
    pub const fn of_number(number: u32) -> Self {
        match number {
            0 => Self::None,
            1 => Self::Reset,
            2 => Self::Reboot,
            3 => Self::DrainPeers,
            4 => Self::DrainAndReset,
            other => Self::Other(other),
        }
    }
}

/// A process that uses the GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its id on the host.
    pub pid: u32,
    /// How it uses it.
    pub kind: ProcessKind,
    /// Its memory; nothing where the driver does not say.
    pub memory: Option<Bytes>,
    /// The GPU instance it runs in.
    pub gpu_instance: Option<u32>,
    /// The compute instance it runs in.
    pub compute_instance: Option<u32>,
}

/// How a process uses a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProcessKind {
    /// CUDA.
    Compute,
    /// Drawing: a display, or a renderer.
    Graphics,
    /// CUDA through a shared server.
    Mps,
}
