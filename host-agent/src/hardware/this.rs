//! The machine that the agent runs on, measured through the kernel's files and the driver's library.

use super::disk::{self, Disk};
use super::nvidia::{Launch, Supervisor, Timing, divided, reset, scrub};
use super::processor::{parse_cpuinfo, parse_meminfo};
use super::system::{System, parse_os_release, uname};
use super::{CutProblem, Hardware, HardwareError, Measured, amd, intel};
use crate::core::slices::Divisibles;
use crate::core::slices::acts::Act;
use gpu_health::between::{Dirty, Scrubbed};
use host_nvml::news::GpuNews;
use protocol::bounded::Text;
use protocol::offer::ResourceName;
use std::fs;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;

/// Where lists of the bus's names are, when one is installed.
const PCI_IDS: [&str; 2] = ["/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"];

/// This machine.
#[derive(Debug)]
pub struct ThisMachine {
    nvidia: Supervisor,
    /// This program, to be started again.
    program: PathBuf,
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
        (Self { nvidia, program }, news)
    }

    /// Its NVIDIA GPUs, to be asked and told one by one.
    #[must_use]
    pub const fn nvidia(&self) -> &Supervisor {
        &self.nvidia
    }
}

impl Hardware for ThisMachine {
    async fn measure(&self) -> Result<Measured, HardwareError> {
        let processor = from_file("/proc/cpuinfo", "which CPUs there are", parse_cpuinfo)?;
        let ram = from_file("/proc/meminfo", "how much RAM there is", parse_meminfo)?;
        let (kernel, architecture) = uname();
        let system = System {
            name: system_name(),
            kernel,
            architecture,
        };
        let sys = Path::new("/sys");
        let pci_ids = PCI_IDS
            .iter()
            .find_map(|path| fs::read_to_string(path).ok());
        let pci_ids = pci_ids.unwrap_or_default();
        Ok(Measured {
            processor,
            ram,
            system,
            nvidia: self.nvidia.seen().await,
            amd: amd::read(sys, &pci_ids),
            intel: intel::read(sys, &pci_ids),
        })
    }

    fn disk(&self, path: &Path) -> Result<Disk, HardwareError> {
        disk::of_path(path)
    }

    async fn divisibles(&self) -> Divisibles {
        divided::divisibles(&self.nvidia).await
    }

    async fn cut(&self, act: &Act) -> Result<Option<Text<64>>, CutProblem> {
        divided::cut(&self.nvidia, act).await
    }

    fn cleans(&self) -> bool {
        true
    }

    async fn reset_gpu(&self, gpu: &ResourceName) -> Result<(), String> {
        let program = PathBuf::from(reset::PROGRAM);
        let done = self.nvidia.reset(gpu, program).await;
        done.map_err(|error| error.to_string())
    }

    async fn scrub(&self, devices: &[String]) -> Result<Scrubbed, Dirty> {
        scrub::scrub(&self.program, Path::new(scrub::PARAMS), devices).await
    }
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
