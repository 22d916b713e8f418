//! What a GPU is: what does not change while it works.

use crate::slices::MigMode;
use protocol::bounded::Text;
use protocol::units::Bytes;
use serde::{Deserialize, Serialize};

/// Most NVLink links of one GPU (`NVML_NVLINK_MAX_LINKS`).
pub const LINKS_MAX: u32 = 18;

/// Which GPU it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// `GPU-…`.
    pub uuid: Text<64>,
    /// Where on the bus, like `00000000:05:00.0`, as the library writes and wants it.
    pub pci: Text<32>,
}

/// Everything that is known of a GPU. What the driver does not say is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Which it is.
    pub identity: Identity,
    /// The driver's product name, like `NVIDIA H100 80GB HBM3`.
    pub name: Text<96>,
    /// Driver version.
    pub driver: Text<64>,
    /// Highest CUDA version of the driver, major and minor.
    pub cuda: Option<(u32, u32)>,
    /// CUDA compute capability, major and minor.
    pub compute_capability: Option<(u32, u32)>,
    /// CUDA cores.
    pub cores: Option<u32>,
    /// Memory in all.
    pub memory: Bytes,
    /// Memory that the driver keeps for itself.
    pub memory_reserved: Option<Bytes>,
    /// Width of the memory bus in bits.
    pub memory_bus_bits: Option<u32>,
    /// Vendor, device and the card's own numbers: device id in the upper, vendor id in the lower half.
    pub pci_device: Option<u32>,
    /// Number of its device node `/dev/nvidia<N>`.
    pub minor: Option<u32>,
    /// Highest PCIe generation and lanes of card and slot.
    pub pcie_max: Option<(u32, u32)>,
    /// Enforced power limit in milliwatts.
    pub power_limit_mw: Option<u32>,
    /// Least and most that the limit can be set to, in milliwatts.
    pub power_limits_mw: Option<(u32, u32)>,
    /// Highest clock of the multiprocessors in MHz.
    pub graphics_clock_max_mhz: Option<u32>,
    /// Highest clock of the memory in MHz.
    pub memory_clock_max_mhz: Option<u32>,
    /// At which temperature its hardware slows it down, in degrees Celsius.
    pub temperature_max_c: Option<u32>,
    /// Whether its memory corrects errors.
    pub ecc: Option<bool>,
    /// Whether a display is driven by it.
    pub display_active: Option<bool>,
    /// Whether the driver stays loaded while nothing uses the GPU.
    pub persistence: Option<bool>,
    /// Its MIG mode; nothing when it cannot be divided.
    pub mig: Option<MigMode>,
    /// Its NVLink links that are up.
    pub links: Vec<Link>,
    /// Its serial number.
    pub serial: Option<Text<64>>,
}

/// An NVLink link that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its number on this GPU.
    pub link: u32,
    /// Generation of NVLink.
    pub version: Option<u32>,
    /// What is at the other end, by its place on the bus: a GPU, or a switch.
    pub remote: Option<Text<32>>,
}
