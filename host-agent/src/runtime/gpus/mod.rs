//! GPUs on their way into a container: which they are, how they are given to it, and whether they are seen inside.
//!
//! No variable of a renter or of an image chooses a GPU: the host names each by its UUID, or by its device nodes.
//!
//! * [`way`]: pure; which of three ways is taken, and what is asked of the engine for it.
//! * [`host`]: what the kernel, the file system and the engine's lists show of GPUs. [`cdi`]: those lists.
//! * [`given`]: what a container was given, as its label says. [`inside`]: whether it is there.

pub mod cdi;
pub mod given;
pub mod host;
pub mod inside;
pub mod way;

use protocol::machine::Gpu;
use protocol::offer::ResourceName;
use protocol::units::Bytes;

/// A GPU or a slice of one that a container gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedGpu {
    /// What the driver calls it: `GPU-…`, or `MIG-…` for a slice.
    pub device: ResourceName,
    /// The GPU itself, or the one that the slice is of.
    pub card: Gpu,
    /// The driver's number of the slice; nothing for a whole GPU.
    pub gpu_instance: Option<u32>,
    /// The memory that the container has of it.
    pub memory: Bytes,
}

/// Folder in a container where our own list puts the driver's libraries.
pub const LIBRARY_FOLDER: &str = "/usr/local/nvidia/lib64";
/// The same for its programs.
pub const PROGRAM_FOLDER: &str = "/usr/local/nvidia/bin";
/// What both are in.
pub const DRIVER_FOLDER: &str = "/usr/local/nvidia";
