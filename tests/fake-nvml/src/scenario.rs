//! The machine that the library pretends to be. A test writes it whole; the library reads it again whenever
//! it has changed.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Which boot it is: another one forgets what programs did.
    pub boot: u64,
    /// Version of the driver; nothing while it is not loaded.
    pub driver: Option<String>,
    /// For so many starts of the library after the boot the driver is not loaded yet.
    pub starts_too_early: u32,
    /// Highest CUDA version, as the driver writes it: 12080 is 12.8.
    pub cuda: i32,
    /// Its GPUs.
    pub gpus: Vec<FakeGpu>,
    /// What goes wrong.
    pub faults: Vec<CallFault>,
    /// What happens, oldest first. An event is told to those who were listening when it was added.
    pub events: Vec<Happening>,
}

/// One GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FakeGpu {
    /// Product name.
    pub name: String,
    /// `GPU-…`.
    pub uuid: String,
    /// Whether it is on the bus.
    pub present: bool,
    /// Whether programs that found it before go on getting answers though it is not there any more.
    pub remembered: bool,
    /// Memory in bytes.
    pub memory: u64,
    /// What the driver keeps of it, in bytes.
    pub memory_reserved: u64,
    /// What is used, in bytes.
    pub memory_used: u64,
    /// Width of the memory bus in bits.
    pub memory_bus_bits: u32,
    /// Compute capability.
    pub compute_capability: (i32, i32),
    /// CUDA cores.
    pub cores: u32,
    /// The PCI bus it is on.
    pub bus: u32,
    /// Device id in the upper half, vendor id in the lower.
    pub pci_device: u32,
    /// PCIe generation and lanes: at most, and now.
    pub pcie_max: (u32, u32),
    /// Now.
    pub pcie: (u32, u32),
    /// PCIe packets sent again.
    pub pcie_replays: u32,
    /// Number of its device node.
    pub minor: u32,
    /// Its links that are up: number, and the bus of what is at the other end.
    pub links: Vec<(u32, u32)>,
    /// Clocks of multiprocessors and memory in MHz.
    pub clocks_mhz: (u32, u32),
    /// The highest of them.
    pub clocks_max_mhz: (u32, u32),
    /// Clock event reasons.
    pub clock_reasons: u64,
    /// Power drawn in milliwatts.
    pub power_mw: u32,
    /// The limit of it.
    pub power_limit_mw: u32,
    /// Energy in millijoules.
    pub energy_mj: u64,
    /// In degrees Celsius.
    pub temperature_c: u32,
    /// At which temperature its hardware slows it down, in degrees Celsius.
    pub slowdown_c: u32,
    /// Use of multiprocessors and memory in percent.
    pub utilisation: (u32, u32),
    /// Whether errors of the memory are corrected; nothing when they cannot be.
    pub ecc: Option<bool>,
    /// Memory errors: corrected and not since the driver was loaded, corrected and not ever.
    pub ecc_errors: [u64; 4],
    /// Rows replaced for corrected and uncorrected errors.
    pub remapped: (u32, u32),
    /// More wait for a reset; one could not be replaced.
    pub remap_flags: (bool, bool),
    /// The driver's recommended action, field 230; nothing where the driver has no such field.
    pub recovery: Option<u32>,
    /// Whether a display is driven.
    pub display_active: bool,
    /// Persistence mode.
    pub persistence: bool,
    /// Who uses it.
    pub processes: Vec<FakeProcess>,
    /// The table of MIG profiles that it has, like `H100-80`; nothing when it cannot be divided.
    pub mig_table: Option<String>,
    /// Whether it is divided when the machine boots.
    pub mig_at_boot: bool,
    /// The code with which a change of its MIG mode stays pending, like 16 for a reset that it takes.
    pub mig_pending_code: Option<u32>,
}

/// A process on a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FakeProcess {
    /// Its id.
    pub pid: u32,
    /// How it uses the GPU.
    pub kind: FakeProcessKind,
    /// Its memory in bytes.
    pub memory: u64,
    /// The GPU instance it runs in.
    pub gpu_instance: Option<u32>,
}

/// How a process uses a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FakeProcessKind {
    /// CUDA.
    Compute,
    /// Drawing.
    Graphics,
    /// CUDA through a shared server.
    Mps,
}

/// A call that goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallFault {
    /// Name of the function, or `*` for all.
    pub call: String,
    /// UUID of the GPU that it is called for; nothing for any, and for calls that are for none.
    pub gpu: Option<String>,
    /// What it does.
    pub does: Misdeed,
}

/// What a call does instead of its work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Misdeed {
    /// Takes so long, and then does it.
    Hangs {
        /// In milliseconds.
        milliseconds: u64,
    },
    /// Returns this code.
    Fails {
        /// Of `nvmlReturn_t`.
        code: u32,
    },
    /// Ends the process that calls it.
    Crashes,
}

/// Something that those who wait for events are told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Happening {
    /// An event of a GPU.
    Event {
        /// Its UUID.
        gpu: String,
        /// The kind, a bit of `nvmlEventType*`.
        bit: u64,
        /// What it carries: of an Xid, its number.
        data: u64,
        /// In which GPU instance and compute instance.
        instance: Option<(u32, u32)>,
    },
    /// The wait breaks with this code.
    WaitFails {
        /// Of `nvmlReturn_t`.
        code: u32,
    },
}

impl Scenario {
    /// A machine with these GPUs and a driver of 2025.
    #[must_use]
    pub fn new(gpus: Vec<FakeGpu>) -> Self {
        Self {
            boot: 1,
            driver: Some("570.124.06".to_owned()),
            starts_too_early: 0,
            cuda: 12_080,
            gpus,
            faults: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Writes it where the library looks: whole, or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let new = path.with_extension("new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(new, path)
    }

    /// Adds an Xid of the GPU of that number.
    pub fn xid(&mut self, gpu: usize, xid: u64, instance: Option<(u32, u32)>) {
        self.events.push(Happening::Event {
            gpu: self.gpus[gpu].uuid.clone(),
            bit: 8,
            data: xid,
            instance,
        });
    }

    /// Makes a call for the GPU of that number go wrong.
    pub fn fault(&mut self, call: &str, gpu: usize, does: Misdeed) {
        self.faults.push(CallFault {
            call: call.to_owned(),
            gpu: Some(self.gpus[gpu].uuid.clone()),
            does,
        });
    }

    /// The text of `/proc/driver/nvidia-caps/mig-minors` as the driver writes it: of each GPU fifteen GPU
    /// instances with eight compute instances.
    #[must_use]
    pub fn mig_minors(&self) -> String {
        let mut text = "config 1\nmonitor 2\n".to_owned();
        let mut minor = 3;
        let mut line = |name: String| {
            text.push_str(&format!("{name} {minor}\n"));
            minor += 1;
        };
        for gpu in 0..self.gpus.len() {
            for instance in 0..15 {
                line(format!("gpu{gpu}/gi{instance}/access"));
                for compute in 0..8 {
                    line(format!("gpu{gpu}/gi{instance}/ci{compute}/access"));
                }
            }
        }
        text
    }
}
