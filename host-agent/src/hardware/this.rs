//! The machine that the agent runs on, measured through the kernel's files and the driver's library.

use super::disk::{self, Disk};
use super::nvidia::{Launch, Supervisor, Timing, divided, reset, scrub};
use super::processor::{clock_max, numa_nodes, parse_cpuinfo, parse_meminfo};
use super::seat::{self, Seats};
use super::system::{System, parse_os_release, uname};
use super::{CutProblem, Hardware, HardwareError, Measured, amd, board, intel, toolkit};
use crate::core::slices::Divisibles;
use crate::core::slices::acts::Act;
use gpu_health::between::{Dirty, Scrubbed};
use host_nvml::news::GpuNews;
use protocol::bounded::Text;
use protocol::offer::ResourceName;
use std::fs;
use std::path::{Path, PathBuf};
use tokio::sync::{OnceCell, mpsc};

/// Where lists of the bus's names are, when one is installed.
const PCI_IDS: [&str; 2] = ["/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"];

/// This machine.
#[derive(Debug)]
pub struct ThisMachine {
    nvidia: Supervisor,
    /// This program, to be started again.
    program: PathBuf,
    /// The driver's program that resets a GPU.
    resets: PathBuf,
    /// What is found once: the fastest clock now, where no higher one is known, would be another with every look.
    once: OnceCell<Once>,
}

#[derive(Debug)]
struct Once {
    mhz: u32,
    toolkit: String,
}

impl ThisMachine {
    /// This machine; `nvml` is another file than `libnvidia-ml.so.1` to load. What is heard of its GPUs comes
    /// out of the receiver. Its GPUs are asked from now on, by tasks of the runtime that this is called in.
    #[must_use]
    pub fn start(nvml: Option<PathBuf>) -> (Self, mpsc::Receiver<GpuNews>) {
        Self::start_with(Launch::again(nvml), Timing::default())
    }

    /// As [`Self::start`], with what is started and how often it is asked.
    #[must_use]
    pub fn start_with(launch: Launch, timing: Timing) -> (Self, mpsc::Receiver<GpuNews>) {
        let program = launch.program.clone();
        let (nvidia, news) = Supervisor::start(launch, timing);
        let machine = Self {
            nvidia,
            program,
            resets: PathBuf::from(reset::PROGRAM),
            once: OnceCell::new(),
        };
        (machine, news)
    }

    /// The same machine with another program in the place of the driver's.
    #[must_use]
    pub fn resetting_with(self, program: PathBuf) -> Self {
        Self {
            resets: program,
            ..self
        }
    }

    /// Its NVIDIA GPUs, to be asked and told one by one.
    #[must_use]
    pub const fn nvidia(&self) -> &Supervisor {
        &self.nvidia
    }
}

impl Hardware for ThisMachine {
    async fn measure(&self) -> Result<Measured, HardwareError> {
        let mut processor = from_file("/proc/cpuinfo", "which CPUs there are", parse_cpuinfo)?;
        let ram = from_file("/proc/meminfo", "how much RAM there is", parse_meminfo)?;
        let (kernel, architecture) = uname();
        let system = System {
            name: system_name(),
            kernel,
            architecture,
        };
        let sys = Path::new("/sys");
        let once = async {
            Once {
                mhz: clock_max(sys).unwrap_or(processor.mhz),
                toolkit: toolkit::version().await,
            }
        };
        let once = self.once.get_or_init(|| once).await;
        processor.mhz = once.mhz;
        let pci_ids = pci_ids();
        let nvidia = self.nvidia.seen().await;
        let (amd, intel) = (amd::read(sys, &pci_ids), intel::read(sys, &pci_ids));
        let of_nvidia = nvidia.gpus().iter().map(|gpu| {
            let known = self.nvidia.description(&gpu.uuid);
            seat::nvidia(sys, gpu, known.and_then(|it| it.temperature_max_c))
        });
        let seats: Seats = of_nvidia
            .chain(amd.iter().map(seat::amd))
            .chain(intel.iter().map(seat::intel))
            .collect();
        Ok(Measured {
            processor,
            numa_nodes: numa_nodes(sys),
            mainboard: board::mainboard(sys),
            toolkit: once.toolkit.clone(),
            ram,
            system,
            nvidia,
            amd,
            intel,
            seats,
        })
    }

    fn disk(&self, path: &Path) -> Result<Disk, HardwareError> {
        disk::of_path(path)
    }

    async fn divisibles(&self) -> Divisibles {
        let mut all = divided::divisibles(&self.nvidia).await;
        all.extend(amd::parts::divisibles(&amd::read(
            Path::new("/sys"),
            &pci_ids(),
        )));
        all
    }

    async fn cut(&self, act: &Act) -> Result<Option<Text<64>>, CutProblem> {
        match act {
            Act::Divide { gpu, division } => {
                let sys = Path::new("/sys");
                let gpus = amd::read(sys, &pci_ids());
                amd::parts::divide(sys, &gpus, gpu, *division).map(|()| None)
            }
            Act::SetMode { .. } | Act::Make { .. } | Act::End { .. } => {
                divided::cut(&self.nvidia, act).await
            }
        }
    }

    fn cleans(&self) -> bool {
        true
    }

    async fn reset_gpu(&self, gpu: &ResourceName) -> Result<(), String> {
        let done = self.nvidia.reset(gpu, self.resets.clone()).await;
        done.map_err(|error| error.to_string())
    }

    async fn scrub(&self, devices: &[String]) -> Result<Scrubbed, Dirty> {
        scrub::scrub(&self.program, Path::new(scrub::PARAMS), devices).await
    }
}

/// The text of the list of the bus's names; empty where none is installed.
fn pci_ids() -> String {
    let mut found = PCI_IDS.iter();
    found
        .find_map(|path| fs::read_to_string(path).ok())
        .unwrap_or_default()
}

fn from_file<T>(
    path: &str,
    what: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, HardwareError> {
    let path = PathBuf::from(path);
    let text = fs::read_to_string(&path).map_err(|source| HardwareError::File {
        path: path.clone(),
        source,
    })?;
    parse(&text).ok_or(HardwareError::Missing { path, what })
}

fn system_name() -> String {
    ["/etc/os-release", "/usr/lib/os-release"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .find_map(|text| parse_os_release(&text))
        .unwrap_or_else(|| "Linux".to_owned())
}
