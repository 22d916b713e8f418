//! The library itself: loaded by its name or by a path, and asked about one GPU at a time. Everything here
//! may hang for ever or take the process with it, so only [`crate::serve`] calls it.
//!
//! * `describe`, `sample`: what a GPU is, and how it is. `profiles`, `slices`: MIG. `events`: waiting for events.
//! * `raw`: the calls that the wrapper hides, or that older drivers know under older names.

mod describe;
mod events;
mod profiles;
mod raw;
mod sample;
mod slices;

pub use events::{Heard, Watcher};

use crate::facts::Identity;
use crate::fault::Fault;
use crate::sample::Process;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use protocol::bounded::Text;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where the library is when it is not where it usually is: without its number, and in WSL in a folder of its own.
const OTHER_NAMES: [&str; 2] = ["libnvidia-ml.so", "/usr/lib/wsl/lib/libnvidia-ml.so.1"];

/// A loaded library with its driver.
#[derive(Debug)]
pub struct Library {
    nvml: Nvml,
    mig_minors: PathBuf,
}

/// Which GPU is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Which {
    /// By the library's count, from 0. Finding one may wake others.
    Index(u32),
    /// By its place on the bus: no other GPU is touched, which is why a known one is opened so.
    Pci(Text<32>),
}

/// What a reset of the GPU depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetFacts {
    /// Who uses it; nothing when the driver does not say, and then it may not be reset.
    pub processes: Option<Vec<Process>>,
    /// GPU instances that exist.
    pub instances: u32,
    /// Whether the driver is kept loaded by its persistence mode or daemon.
    pub persistence: Option<bool>,
    /// What the driver itself wants done.
    pub recovery: Option<crate::sample::RecoveryAction>,
}

impl Library {
    /// Loads `library`, or the driver's own, and begins to speak with the driver. `mig_minors` is the
    /// driver's table of device nodes for slices, by default `/proc/driver/nvidia-caps/mig-minors`.
    ///
    /// # Errors
    /// When there is no library or no driver.
    pub fn load(library: Option<&Path>, mig_minors: PathBuf) -> Result<Self, Fault> {
        let nvml = match library {
            Some(path) => Nvml::builder().lib_path(path.as_os_str()).init(),
            None => drivers_own(),
        };
        let nvml = nvml.map_err(Fault::from)?;
        Ok(Self { nvml, mig_minors })
    }

    /// How many GPUs the driver counts.
    ///
    /// # Errors
    /// When the driver does not say.
    pub fn count(&self) -> Result<u32, Fault> {
        Ok(self.nvml.device_count()?)
    }

    /// Which GPU `which` is.
    ///
    /// # Errors
    /// When it is not there, or lost.
    pub fn identify(&self, which: &Which) -> Result<Identity, Fault> {
        let device = match which {
            Which::Index(index) => self.nvml.device_by_index(*index)?,
            Which::Pci(place) => self.device(place)?,
        };
        let uuid = device.uuid()?;
        let uuid = Text::new(uuid).map_err(|error| Fault::Other {
            detail: format!("a UUID of the GPU's: {error}"),
        })?;
        let pci = Text::cut(&device.pci_info()?.bus_id);
        Ok(Identity { uuid, pci })
    }

    /// What a reset of the GPU depends on.
    ///
    /// # Errors
    /// When the GPU is lost.
    pub fn reset_facts(&self, pci: &str) -> Result<ResetFacts, Fault> {
        let reading = self.sample(pci)?;
        let instances = match self.instances(pci) {
            Ok(instances) => u32::try_from(instances.len()).unwrap_or(u32::MAX),
            Err(Fault::NotSupported) => 0,
            Err(fault) => return Err(fault),
        };
        Ok(ResetFacts {
            processes: reading.processes,
            instances,
            persistence: self.device(pci)?.is_in_persistent_mode().ok(),
            recovery: reading.recovery,
        })
    }

    fn device(&self, pci: &str) -> Result<Device<'_>, Fault> {
        Ok(self.nvml.device_by_pci_bus_id(pci)?)
    }
}

/// Keeps what the driver says and leaves out what it does not, but remembers that the GPU is lost: a GPU
/// that fell off the bus answers some questions from the library's memory.
#[derive(Debug, Default)]
struct Asker {
    lost: bool,
}

impl Asker {
    fn known<T>(&mut self, answer: Result<T, impl Into<Fault>>) -> Option<T> {
        match answer.map_err(Into::into) {
            Ok(value) => Some(value),
            Err(Fault::Lost) => {
                self.lost = true;
                None
            }
            Err(_) => None,
        }
    }

    fn unless_lost<T>(self, value: T) -> Result<T, Fault> {
        if self.lost {
            Err(Fault::Lost)
        } else {
            Ok(value)
        }
    }
}

impl From<NvmlError> for Fault {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the library's errors are many and its own; only these mean something of their own here"
    )]
    fn from(error: NvmlError) -> Self {
        match error {
            NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => Self::LibraryMissing {
                detail: error.to_string(),
            },
            NvmlError::DriverNotLoaded => Self::DriverNotLoaded,
            NvmlError::GpuLost => Self::Lost,
            NvmlError::NotFound => Self::NotFound,
            NvmlError::NotSupported
            | NvmlError::FailedToLoadSymbol(_)
            | NvmlError::FunctionNotFound => Self::NotSupported,
            NvmlError::NoPermission => Self::NoPermission,
            NvmlError::InUse => Self::InUse,
            NvmlError::ResetRequired => Self::ResetRequired,
            NvmlError::InvalidArg => Self::Refused {
                detail: "an argument of the call".to_owned(),
            },
            other => Self::Other {
                detail: other.to_string(),
            },
        }
    }
}

/// The driver's own library by the first of its names that is there. Where none is, what is told is of the usual one.
fn drivers_own() -> Result<Nvml, NvmlError> {
    let is_missing =
        |found: &Result<Nvml, NvmlError>| matches!(found, Err(NvmlError::LibloadingError(_)));
    let mut found = Nvml::init();
    for name in OTHER_NAMES {
        if is_missing(&found) {
            let other = Nvml::builder().lib_path(name.as_ref()).init();
            if !is_missing(&other) {
                found = other;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_told_from_a_driver_that_is_not_loaded() {
        let missing = Library::load(
            Some(Path::new("/nonexistent/libnvidia-ml.so.1")),
            PathBuf::new(),
        );
        assert!(matches!(missing, Err(Fault::LibraryMissing { .. })));
        assert_eq!(
            Fault::from(NvmlError::DriverNotLoaded),
            Fault::DriverNotLoaded
        );
        assert!(matches!(
            Fault::from(NvmlError::Unknown),
            Fault::Other { .. }
        ));
    }

    #[test]
    fn a_lost_gpu_is_lost_though_it_answers_some_questions() {
        let mut ask = Asker::default();
        assert_eq!(ask.known::<u8>(Err(Fault::NotSupported)), None);
        assert_eq!(ask.known::<u8>(Err(Fault::Lost)), None);
        assert_eq!(ask.known::<u8>(Ok::<_, Fault>(7)), Some(7));
        assert_eq!(ask.unless_lost(()), Err(Fault::Lost));
        let mut ask = Asker::default();
        assert_eq!(ask.known::<u8>(Err(Fault::NotSupported)), None);
        assert_eq!(ask.unless_lost(7), Ok(7));
    }
}
