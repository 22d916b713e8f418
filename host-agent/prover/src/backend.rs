//! Through which driver a device is reached.

use crate::vulkan::Vulkan;
use audit::processor::Processor;
use audit::prover::{Device, Unable};
use std::str::FromStr;

/// Through which driver a device is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// NVIDIA's if it is there, else Vulkan.
    Automatic,
    /// NVIDIA's driver.
    Cuda,
    /// Vulkan, on a GPU.
    Vulkan,
    /// Vulkan, on a device that is a program: for tests.
    Software,
    /// No driver: the reference on the processor, for tests.
    Processor,
}

/// What may be named on the command line.
pub const NAMES: [(&str, Backend); 5] = [
    ("auto", Backend::Automatic),
    ("cuda", Backend::Cuda),
    ("vulkan", Backend::Vulkan),
    ("software", Backend::Software),
    ("processor", Backend::Processor),
];

impl FromStr for Backend {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = NAMES.iter().find(|(name, _)| *name == text);
        known.map(|(_, backend)| *backend).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            format!(
                "there is no back end '{text}'; there are: {}",
                names.join(", ")
            )
        })
    }
}

impl Backend {
    /// Opens the device called `device` (`GPU-…`, `MIG-…`), or the first there is for `machine`.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn open(self, device: &str) -> Result<Box<dyn Device>, Unable> {
        match self {
            Self::Automatic if crate::cuda::is_present() => Self::Cuda.open(device),
            Self::Automatic | Self::Vulkan => Ok(Box::new(Vulkan::open(false)?)),
            Self::Cuda => Ok(Box::new(crate::cuda::Cuda::open(device)?)),
            Self::Software => Ok(Box::new(Vulkan::open(true)?)),
            Self::Processor => Ok(Box::new(Processor::new())),
        }
    }
}
