//! GPUs as they are sold, idle and sound. Figures from NVIDIA's data sheets.

use crate::scenario::FakeGpu;

const MIB: u64 = 1 << 20;

/// What can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// A100 SXM4 with 40 GB.
    A100,
    /// A30.
    A30,
    /// H100 SXM with 80 GB.
    H100,
    /// H200 SXM.
    H200,
    /// GeForce RTX 4090, which cannot be divided.
    Rtx4090,
}

impl FakeGpu {
    /// The GPU of that number in the machine.
    #[must_use]
    pub fn new(model: Model, number: u32) -> Self {
        let figures = Figures::of(model);
        Self {
            name: figures.name.to_owned(),
            uuid: format!("GPU-00000000-0000-4000-8000-{number:012x}"),
            present: true,
            remembered: false,
            memory: figures.memory_mib * MIB,
            memory_reserved: figures.reserved_mib * MIB,
            memory_used: 0,
            memory_bus_bits: figures.bus_bits,
            compute_capability: figures.capability,
            cores: figures.cores,
            bus: 5 + number * 0x10,
            pci_device: figures.pci_device,
            pcie_max: (figures.pcie_generation, 16),
            pcie: (1, 16),
            pcie_replays: 0,
            minor: number,
            links: Vec::new(),
            clocks_mhz: (345, 405),
            clocks_max_mhz: figures.clocks_max,
            clock_reasons: 1,
            power_mw: 70_000,
            power_limit_mw: figures.limit_mw,
            energy_mj: 1_000,
            temperature_c: 31,
            slowdown_c: 87,
            utilisation: (0, 0),
            ecc: figures.table.map(|_| true),
            ecc_errors: [0; 4],
            remapped: (0, 0),
            remap_flags: (false, false),
            recovery: Some(0),
            display_active: false,
            persistence: true,
            processes: Vec::new(),
            mig_table: figures.table.map(str::to_owned),
            mig_at_boot: false,
            mig_pending_code: None,
        }
    }
}

struct Figures {
    name: &'static str,
    table: Option<&'static str>,
    memory_mib: u64,
    reserved_mib: u64,
    bus_bits: u32,
    capability: (i32, i32),
    cores: u32,
    pci_device: u32,
    pcie_generation: u32,
    clocks_max: (u32, u32),
    limit_mw: u32,
}

impl Figures {
    fn of(model: Model) -> Self {
        match model {
            Model::A100 => Self {
                name: "NVIDIA A100-SXM4-40GB",
                table: Some("A100-40"),
                memory_mib: 40_960,
                reserved_mib: 515,
                bus_bits: 5120,
                capability: (8, 0),
                cores: 6912,
                pci_device: 0x20B0_10DE,
                pcie_generation: 4,
                clocks_max: (1410, 1215),
                limit_mw: 400_000,
            },
            Model::A30 => Self {
                name: "NVIDIA A30",
                table: Some("A30-24"),
                memory_mib: 24_576,
                reserved_mib: 489,
                bus_bits: 3072,
                capability: (8, 0),
                cores: 3584,
                pci_device: 0x20B7_10DE,
                pcie_generation: 4,
                clocks_max: (1440, 1215),
                limit_mw: 165_000,
            },
            Model::H100 => Self {
                name: "NVIDIA H100 80GB HBM3",
                table: Some("H100-80"),
                memory_mib: 81_559,
                reserved_mib: 551,
                bus_bits: 5120,
                capability: (9, 0),
                cores: 16_896,
                pci_device: 0x2330_10DE,
                pcie_generation: 5,
                clocks_max: (1980, 2619),
                limit_mw: 700_000,
            },
            Model::H200 => Self {
                name: "NVIDIA H200",
                table: Some("H200-141"),
                memory_mib: 143_771,
                reserved_mib: 614,
                bus_bits: 6144,
                capability: (9, 0),
                cores: 16_896,
                pci_device: 0x2335_10DE,
                pcie_generation: 5,
                clocks_max: (1980, 3201),
                limit_mw: 700_000,
            },
            Model::Rtx4090 => Self {
                name: "NVIDIA GeForce RTX 4090",
                table: None,
                memory_mib: 24_564,
                reserved_mib: 359,
                bus_bits: 384,
                capability: (8, 9),
                cores: 16_384,
                pci_device: 0x2684_10DE,
                pcie_generation: 4,
                clocks_max: (3105, 10_501),
                limit_mw: 450_000,
            },
        }
    }
}
