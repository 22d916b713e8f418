//! NVIDIA GPUs, as the driver's management library reports them. The library runs code of the driver's in
//! this process and may hang with it, so it is called on a thread of its own and waited for briefly.

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml, cuda_driver_version_major, cuda_driver_version_minor};
use protocol::bounded::Text;
use protocol::machine::{GPUS_MAX, Gpu};
use protocol::units::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the library may take: a healthy driver answers in a fraction of it.
pub const DEADLINE: Duration = Duration::from_secs(2);

/// The machine's NVIDIA GPUs, or why there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nvidia {
    /// The driver answers.
    Ready {
        /// Driver version.
        driver: String,
        /// Its GPUs; may be none.
        gpus: Vec<Gpu>,
        /// GPUs that the driver counts and that do not answer.
        unreadable: u32,
    },
    /// The library is not installed: a machine without NVIDIA software.
    LibraryMissing {
        /// What the loader said.
        detail: String,
    },
    /// The library is there and the driver is not loaded.
    DriverNotLoaded,
    /// The library answered with an error.
    Failed {
        /// Which.
        detail: String,
    },
    /// The library did not answer within [`DEADLINE`].
    Hangs,
}

impl Nvidia {
    /// The GPUs that can be leased.
    #[must_use]
    pub fn gpus(&self) -> &[Gpu] {
        match self {
            Self::Ready { gpus, .. } => gpus,
            Self::LibraryMissing { .. }
            | Self::DriverNotLoaded
            | Self::Failed { .. }
            | Self::Hangs => &[],
        }
    }
}

/// Asks the library, never two at a time.
#[derive(Debug)]
pub struct Probe {
    library: Option<PathBuf>,
    busy: Arc<AtomicBool>,
}

impl Probe {
    /// A probe that loads `library`, or the driver's own.
    #[must_use]
    pub fn new(library: Option<PathBuf>) -> Self {
        Self {
            library,
            busy: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Asks now. A call that hung before and still does is not joined by another.
    pub async fn ask(&self) -> Nvidia {
        if self.busy.swap(true, Ordering::AcqRel) {
            return Nvidia::Hangs;
        }
        let (library, busy) = (self.library.clone(), Arc::clone(&self.busy));
        // Not the runtime's pool for blocking calls: a thread that hangs there would hold up the exit.
        let (answer, answered) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("nvml".to_owned())
            .spawn(move || {
                let found = read(library.as_deref());
                busy.store(false, Ordering::Release);
                // Nobody waits any longer for an answer that came late.
                let _ = answer.send(found);
            });
        if let Err(error) = thread {
            self.busy.store(false, Ordering::Release);
            return Nvidia::Failed {
                detail: error.to_string(),
            };
        }
        match tokio::time::timeout(DEADLINE, answered).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => Nvidia::Failed {
                detail: "the library crashed".to_owned(),
            },
            Err(_) => Nvidia::Hangs,
        }
    }
}

fn read(library: Option<&Path>) -> Nvidia {
    let loaded = match library {
        Some(path) => Nvml::builder().lib_path(path.as_os_str()).init(),
        None => Nvml::init(),
    };
    let nvml = match loaded {
        Ok(nvml) => nvml,
        Err(error) => return absent(&error),
    };
    let driver = nvml.sys_driver_version().unwrap_or_default();
    let cuda = nvml
        .sys_cuda_driver_version()
        .ok()
        .map_or((0, 0), |version| {
            let part = |part: i32| u16::try_from(part).unwrap_or(0);
            (
                part(cuda_driver_version_major(version)),
                part(cuda_driver_version_minor(version)),
            )
        });
    let count = match nvml.device_count() {
        Ok(count) => count,
        Err(error) => {
            return Nvidia::Failed {
                detail: error.to_string(),
            };
        }
    };
    let gpus: Vec<Gpu> = (0..count)
        .filter_map(|index| nvml.device_by_index(index).ok())
        .filter_map(|device| read_gpu(&device, &driver, cuda))
        .take(GPUS_MAX)
        .collect();
    let readable = u32::try_from(gpus.len()).unwrap_or(u32::MAX);
    Nvidia::Ready {
        driver,
        gpus,
        unreadable: count.saturating_sub(readable),
    }
}

/// Without a name, a UUID and its memory a GPU cannot be leased; all else may be unknown.
fn read_gpu(device: &Device<'_>, driver: &str, cuda: (u16, u16)) -> Option<Gpu> {
    let uuid = Text::new(device.uuid().ok()?).ok()?;
    let capability = device
        .cuda_compute_capability()
        .ok()
        .map_or((0, 0), |found| {
            (
                u16::try_from(found.major).unwrap_or(0),
                u16::try_from(found.minor).unwrap_or(0),
            )
        });
    let small = |value: u32| u8::try_from(value).unwrap_or(0);
    Some(Gpu {
        model: Text::cut(&device.name().ok()?),
        uuid,
        vram: Bytes(device.memory_info().ok()?.total),
        driver: Text::cut(driver),
        cuda,
        compute_capability: capability,
        pcie_generation: device.max_pcie_link_gen().map_or(0, small),
        pcie_width: device.max_pcie_link_width().map_or(0, small),
        power_limit_mw: device.enforced_power_limit().unwrap_or(0),
    })
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library's errors are many and its own; only these mean something of their own here"
)]
fn absent(error: &NvmlError) -> Nvidia {
    match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => Nvidia::LibraryMissing {
            detail: error.to_string(),
        },
        NvmlError::DriverNotLoaded => Nvidia::DriverNotLoaded,
        _ => Nvidia::Failed {
            detail: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_told_from_a_driver_that_is_not_loaded() {
        assert!(matches!(
            read(Some(Path::new("/nonexistent/libnvidia-ml.so.1"))),
            Nvidia::LibraryMissing { .. }
        ));
        assert_eq!(absent(&NvmlError::DriverNotLoaded), Nvidia::DriverNotLoaded);
        assert!(matches!(
            absent(&NvmlError::NoPermission),
            Nvidia::Failed { .. }
        ));
    }

    #[tokio::test]
    async fn a_call_that_hangs_is_not_joined_by_another() {
        let probe = Probe::new(None);
        probe.busy.store(true, Ordering::Release);
        assert_eq!(probe.ask().await, Nvidia::Hangs);
    }
}
