//! The machine that the agent runs on, measured through the kernel's files and the driver's library.

use super::disk::{self, Disk};
use super::nvidia::Probe;
use super::processor::{parse_cpuinfo, parse_meminfo};
use super::system::{System, parse_os_release, uname};
use super::{Hardware, HardwareError, Measured};
use std::fs;
use std::path::{Path, PathBuf};

/// This machine.
#[derive(Debug)]
pub struct ThisMachine {
    nvidia: Probe,
}

impl ThisMachine {
    /// This machine; `nvml` is another file than `libnvidia-ml.so.1` to load.
    #[must_use]
    pub fn new(nvml: Option<PathBuf>) -> Self {
        Self {
            nvidia: Probe::new(nvml),
        }
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
        Ok(Measured {
            processor,
            ram,
            system,
            nvidia: self.nvidia.ask().await,
        })
    }

    fn disk(&self, path: &Path) -> Result<Disk, HardwareError> {
        disk::of_path(path)
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

#[cfg(test)]
mod tests {
    use super::super::nvidia::Nvidia;
    use super::*;

    #[tokio::test]
    async fn a_machine_without_the_library_is_a_cpu_machine() {
        let machine = ThisMachine::new(Some(PathBuf::from("/nonexistent/libnvidia-ml.so.1")));
        let measured = machine.measure().await.unwrap();
        assert!(
            matches!(measured.nvidia, Nvidia::LibraryMissing { .. }),
            "{:?}",
            measured.nvidia
        );
        assert!(measured.nvidia.gpus().is_empty());
        assert!(measured.processor.cores > 0 && measured.ram.0 > 0);
    }
}
