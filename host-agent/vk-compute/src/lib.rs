//! Computing through Vulkan, as little of it as kernels over buffers need: one device, buffers, kernels, and lists of
//! calls that run one after the other to their end. It knows nothing of what is computed.
//!
//! * [`Device`]: opened for computing. [`Buffer`]: memory on it, or where the machine sees it too.
//! * [`Kernel`]: SPIR-V, ready to be called. [`Call`], [`run`]: calls, and how long they took.
//!
//! The loader is looked for when a device is opened, and there need be none. A device is used by one thread.

mod buffer;
mod clock;
mod device;
mod kernel;

pub use buffer::{Buffer, Place};
pub use device::{Device, Wanted};
pub use kernel::{CALLS_MAX, Call, Kernel, run, spread};

use ash::vk;

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VulkanError {
    /// There is no Vulkan loader.
    #[error("no Vulkan loader (libvulkan.so.1) can be loaded: {0}")]
    NoLoader(String),
    /// No device of Vulkan's is the one.
    #[error("Vulkan has no device that is {wanted}; it has {found}")]
    NoDevice {
        /// What was looked for.
        wanted: String,
        /// Those that there are.
        found: String,
    },
    /// Its driver said no.
    #[error("the Vulkan driver could not {doing}: {reason}")]
    Driver {
        /// What was tried.
        doing: &'static str,
        /// What it said.
        reason: String,
    },
    /// More than a buffer holds was copied, read or written.
    #[error("{asked} bytes are beyond a buffer of {holds}")]
    Beyond {
        /// Up to where.
        asked: u64,
        /// What the buffer has.
        holds: u64,
    },
}

/// What a call of Vulkan's that failed is said as.
fn failed(doing: &'static str) -> impl Fn(vk::Result) -> VulkanError {
    move |error| VulkanError::Driver {
        doing,
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
