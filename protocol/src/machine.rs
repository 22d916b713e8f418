//! What a machine is, as its host measured it.

use crate::bounded::{List, Text};
use crate::units::{Bytes, Timestamp};
use serde::{Deserialize, Serialize};

/// Most accelerators of one machine.
pub const GPUS_MAX: usize = 16;
/// Most results of benchmarks in one offer.
pub const MEASURES_MAX: usize = 32;

/// What a host measured of its machine. Nothing here is a claim typed by a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU's model name.
    pub cpu_model: Text<96>,
    /// `x86_64`, `aarch64`.
    pub architecture: Text<16>,
    /// Logical CPUs.
    pub cpu_cores: u16,
    /// Highest clock of a core in MHz; 0 when unknown.
    pub cpu_mhz: u32,
    /// NUMA nodes; 1 where there is no such thing.
    pub numa_nodes: u8,
    /// The mainboard's name; empty when unknown.
    pub mainboard: Text<64>,
    /// Whether the CPU has AVX.
    pub has_avx: bool,
    /// RAM in all.
    pub ram: Bytes,
    /// Size of the file system under the engine's data root.
    pub disk_total: Bytes,
    /// What is free on it.
    pub disk_free: Bytes,
    /// The model of the disk that it is on; empty when unknown.
    pub disk_model: Text<64>,
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
    /// Version of NVIDIA's container toolkit; empty where there is none.
    pub toolkit: Text<32>,
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

impl Machine {
    /// A machine of which nothing is known yet, for what is known to be filled in.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            cpu_model: Text::default(),
            architecture: Text::default(),
            cpu_cores: 0,
            cpu_mhz: 0,
            numa_nodes: 1,
            mainboard: Text::default(),
            has_avx: false,
            ram: Bytes(0),
            disk_total: Bytes(0),
            disk_free: Bytes(0),
            disk_model: Text::default(),
            disk_enforced: false,
            system: Text::default(),
            kernel: Text::default(),
            engine: Text::default(),
            runtime: Text::default(),
            toolkit: Text::default(),
            network: ContainerNetwork::None,
            gpus: List::default(),
        }
    }
}

impl Gpu {
    /// A GPU of which nothing is known yet, for what is known to be filled in.
    #[must_use]
    pub fn unknown(vendor: Vendor) -> Self {
        Self {
            vendor,
            model: Text::default(),
            uuid: Text::default(),
            vram: Bytes(0),
            driver: Text::default(),
            cuda: (0, 0),
            compute_capability: (0, 0),
            architecture: Text::default(),
            multiprocessors: 0,
            clock_max_mhz: 0,
            memory_clock_max_mhz: 0,
            pci_address: Text::default(),
            pcie_generation: 0,
            pcie_width: 0,
            power_limit_mw: 0,
            ecc: None,
            link_group: 0,
            links: 0,
            is_divided: None,
            has_display: false,
        }
    }
}

/// Whose GPU it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Vendor {
    /// NVIDIA, through its management library.
    Nvidia,
    /// AMD, through the kernel's files.
    Amd,
    /// Intel, through the kernel's files.
    Intel,
}

impl Vendor {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Nvidia => "nvidia",
            Self::Amd => "amd",
            Self::Intel => "intel",
        }
    }
}

/// One GPU as the driver reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Whose it is.
    pub vendor: Vendor,
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
    /// The instruction set where there is no compute capability, like `gfx942`; else empty.
    pub architecture: Text<16>,
    /// Multiprocessors or compute units; 0 when unknown.
    pub multiprocessors: u16,
    /// Highest graphics clock in MHz; 0 when unknown.
    pub clock_max_mhz: u32,
    /// Highest memory clock in MHz; 0 when unknown.
    pub memory_clock_max_mhz: u32,
    /// Where on the bus, like `0000:05:00.0`; empty when unknown.
    pub pci_address: Text<16>,
    /// Highest PCIe generation of card and slot; 0 when unknown.
    pub pcie_generation: u8,
    /// Highest PCIe width in lanes; 0 when unknown.
    pub pcie_width: u8,
    /// Enforced power limit in milliwatts; 0 when unknown.
    pub power_limit_mw: u32,
    /// Whether its memory corrects errors; nothing when it cannot, or when that is unknown.
    pub ecc: Option<bool>,
    /// Which GPUs of the machine it is linked with past PCIe (NVLink, XGMI): those of the same number above 0.
    pub link_group: u8,
    /// Links of that kind that are up.
    pub links: u8,
    /// Whether it is divided (MIG mode, compute partitions); nothing when it cannot be.
    pub is_divided: Option<bool>,
    /// Whether a display is driven by it.
    pub has_display: bool,
}

/// One result of a benchmark that the host ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// What was measured: of GPUs, the least of those in the offer.
    pub quantity: Quantity,
    /// In the quantity's unit.
    pub value: u64,
    /// By which method, like `prime-64`.
    pub method: Text<32>,
    /// Version of the method: results of two versions are not compared.
    pub version: u16,
    /// When, by the host's clock.
    pub at: Timestamp,
}

/// What a benchmark measures, with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Quantity {
    /// Single precision of a GPU, in GFLOP/s.
    Fp32,
    /// Half precision on a GPU's matrix units, in GFLOP/s.
    Fp16Matrix,
    /// BF16 on a GPU's matrix units, in GFLOP/s.
    Bf16Matrix,
    /// Reading and writing a GPU's own memory, in MB/s.
    GpuMemory,
    /// From the machine's memory to a GPU's, in MB/s.
    HostToDevice,
    /// From a GPU's memory to the machine's, in MB/s.
    DeviceToHost,
    /// One core, in thousandths of events a second.
    CpuSingle,
    /// All cores together, in thousandths of events a second.
    CpuAll,
    /// The machine's memory, in MB/s.
    Ram,
    /// Reading the disk in order, in MB/s.
    DiskRead,
    /// Writing the disk in order, in MB/s.
    DiskWrite,
    /// Reading 4 KiB here and there, in operations a second.
    DiskRandomRead,
    /// From a broker, in kbit/s.
    Download,
    /// To a broker, in kbit/s.
    Upload,
    /// Double precision of a GPU, in GFLOP/s.
    Fp64,
    /// The PCIe generation that a GPU's link runs at while data crosses it.
    PcieGeneration,
    /// The PCIe lanes that it has then.
    PcieLanes,
    /// At which temperature a GPU slows itself down, in degrees Celsius, as its driver says.
    GpuTemperatureMax,
}

impl Quantity {
    /// What it is called where people read it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Fp32 => "speed in FP32",
            Self::Fp16Matrix => "speed in FP16",
            Self::Bf16Matrix => "speed in BF16",
            Self::GpuMemory => "bandwidth of GPU memory",
            Self::HostToDevice => "transfer to the GPU",
            Self::DeviceToHost => "transfer from the GPU",
            Self::CpuSingle => "speed of a core",
            Self::CpuAll => "speed of all cores",
            Self::Ram => "bandwidth of RAM",
            Self::DiskRead => "reading the disk",
            Self::DiskWrite => "writing the disk",
            Self::DiskRandomRead => "random reads of the disk",
            Self::Download => "download",
            Self::Upload => "upload",
            Self::Fp64 => "speed in FP64",
            Self::PcieGeneration => "PCIe generation under load",
            Self::PcieLanes => "PCIe width under load",
            Self::GpuTemperatureMax => "temperature at which the GPU slows down",
        }
    }

    /// How many of a value make one of the unit that people read, and that unit.
    #[must_use]
    pub const fn unit(self) -> (u64, &'static str) {
        match self {
            Self::Fp32 | Self::Fp64 | Self::Fp16Matrix | Self::Bf16Matrix => (1000, "TFLOP/s"),
            Self::GpuMemory | Self::HostToDevice | Self::DeviceToHost | Self::Ram => (1000, "GB/s"),
            Self::CpuSingle | Self::CpuAll => (1000, "events/s"),
            Self::DiskRead | Self::DiskWrite => (1, "MB/s"),
            Self::DiskRandomRead => (1, "IOPS"),
            Self::Download | Self::Upload => (1000, "Mbit/s"),
            Self::PcieGeneration => (1, ""),
            Self::PcieLanes => (1, "lanes"),
            Self::GpuTemperatureMax => (1, "°C"),
        }
    }

    /// The same for programs: one word, with the unit of the value.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32_gflops",
            Self::Fp16Matrix => "fp16_matrix_gflops",
            Self::Bf16Matrix => "bf16_matrix_gflops",
            Self::GpuMemory => "gpu_memory_mbytes_per_second",
            Self::HostToDevice => "host_to_device_mbytes_per_second",
            Self::DeviceToHost => "device_to_host_mbytes_per_second",
            Self::CpuSingle => "cpu_single_milli_events_per_second",
            Self::CpuAll => "cpu_all_milli_events_per_second",
            Self::Ram => "ram_mbytes_per_second",
            Self::DiskRead => "disk_read_mbytes_per_second",
            Self::DiskWrite => "disk_write_mbytes_per_second",
            Self::DiskRandomRead => "disk_random_reads_per_second",
            Self::Download => "download_kbits_per_second",
            Self::Upload => "upload_kbits_per_second",
            Self::Fp64 => "fp64_gflops",
            Self::PcieGeneration => "pcie_generation_under_load",
            Self::PcieLanes => "pcie_lanes_under_load",
            Self::GpuTemperatureMax => "gpu_temperature_max_celsius",
        }
    }
}
