//! MIG: modes, the profiles a GPU can be divided into, and the instances that exist.

use protocol::bounded::Text;
use protocol::units::Bytes;
use serde::{Deserialize, Serialize};

/// Whether a GPU is divided, and whether it will be after the next reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigMode {
    /// Now.
    pub current: bool,
    /// After the next reset.
    pub pending: bool,
}

/// A way to cut a slice, as the driver of this GPU has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The number that instances are created by.
    pub id: u32,
    /// Its name, like `3g.40gb`; empty where the driver is too old to say.
    pub name: Text<96>,
    /// Compute slices.
    pub compute_slices: u32,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Memory.
    pub memory: Bytes,
    /// How many may exist at once on an otherwise empty GPU.
    pub count_max: u32,
    /// How many can still be created now; nothing where the driver does not say (MIG is off).
    pub remaining: Option<u32>,
    /// Where it may begin and how much it covers, in memory slices.
    pub placements: Vec<Placement>,
}

/// A run of memory slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Placement {
    /// The first.
    pub start: u32,
    /// How many.
    pub size: u32,
}

/// A GPU instance with the compute instance that covers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// The GPU instance's id.
    pub gpu_instance: u32,
    /// Its profile's id.
    pub profile: u32,
    /// Where it is.
    pub placement: Placement,
    /// The compute instance in it; nothing where there is none yet, and then it cannot be used.
    pub compute: Option<ComputeInstance>,
}

/// What a program sees of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComputeInstance {
    /// Its id within its GPU instance.
    pub id: u32,
    /// `MIG-…`; nothing where the driver shows no device for it.
    pub uuid: Option<Text<64>>,
    /// Which device nodes let a program in.
    pub capabilities: Option<Capabilities>,
}

/// Minor numbers of the two device nodes `/dev/nvidia-caps/nvidia-cap*` that a slice needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Of the GPU instance.
    pub gpu_instance_minor: u32,
    /// Of the compute instance.
    pub compute_instance_minor: u32,
}
