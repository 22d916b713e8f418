//! What happened to a GPU, as the driver told it.

use protocol::bounded::Text;
use protocol::units::Timestamp;
use serde::{Deserialize, Serialize};

/// One event of one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuEvent {
    /// UUID of the GPU; of a MIG slice, that of the GPU it is a part of.
    pub gpu: Text<64>,
    /// What happened.
    pub kind: EventKind,
    /// The GPU instance it happened in; nothing where the driver attributes it to none.
    pub gpu_instance: Option<u32>,
    /// The compute instance it happened in; nothing where the driver attributes it to none.
    pub compute_instance: Option<u32>,
    /// When the agent heard of it, by its own clock.
    pub at: Timestamp,
}

impl GpuEvent {
    /// The Xid, where it is one.
    #[must_use]
    pub const fn xid(&self) -> Option<u32> {
        match self.kind {
            EventKind::Xid(xid) => Some(xid),
            EventKind::DoubleBitEcc
            | EventKind::DramRetirement
            | EventKind::DramRetirementFailed
            | EventKind::ContainedPoison
            | EventKind::FatalPoison
            | EventKind::Unavailable
            | EventKind::RecoveryActionChanged
            | EventKind::MigChanged
            | EventKind::Other { .. } => None,
        }
    }
}

/// The kinds of events that are listened to (`nvmlEventType*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// An Xid: the driver's number of an error.
    Xid(u32),
    /// A double-bit ECC error.
    DoubleBitEcc,
    /// A page or row of memory was retired.
    DramRetirement,
    /// Retiring one failed.
    DramRetirementFailed,
    /// Poisoned data was consumed, and contained.
    ContainedPoison,
    /// Poisoned data was consumed, and not contained.
    FatalPoison,
    /// The GPU is not available any more.
    Unavailable,
    /// The driver's recommended recovery action is another one: read it.
    RecoveryActionChanged,
    /// MIG mode or the layout changed.
    MigChanged,
    /// A kind that has no name here.
    Other {
        /// The driver's bit of it.
        bit: u64,
        /// What it carried.
        data: u64,
    },
}
