//! What goes wrong with a lease, and whom it is put down to: refusals, failed starts, faults of GPUs.

use super::{Detail, Party, Stage};
use crate::offer::ResourceName;
use serde::{Deserialize, Serialize};

/// A fault of a GPU that stopped a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GpuFault {
    /// The GPU or slice of the lease.
    pub resource: ResourceName,
    /// The driver's number of it (NVIDIA's Xid); 0 for one without.
    pub xid: u16,
    /// What it is put down to.
    pub class: FaultClass,
    /// What the host saw.
    pub detail: Detail,
}

impl GpuFault {
    /// What happened, in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        let what = match self.class {
            FaultClass::Program => "what ran on it made its GPU fail",
            FaultClass::Hardware => "its GPU failed",
            FaultClass::Driver => "the driver of its GPU failed",
            FaultClass::Link => "a link of its GPU failed",
        };
        match self.xid {
            0 => format!("{what}: {}", self.detail),
            xid => format!("{what}: {} (Xid {xid})", self.detail),
        }
    }
}

/// What a GPU's fault is put down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FaultClass {
    /// The program that ran on it.
    Program,
    /// The hardware.
    Hardware,
    /// The driver or the firmware.
    Driver,
    /// A link or the bus.
    Link,
}

impl FaultClass {
    /// Whom it is put down to.
    #[must_use]
    pub const fn party(self) -> Party {
        match self {
            Self::Program => Party::Renter,
            Self::Hardware | Self::Driver | Self::Link => Party::Host,
        }
    }
}

/// Why a host refuses a lease that a broker matched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RefusalReason {
    /// The resource is held by another lease, perhaps another broker's.
    Taken,
    /// The host does not offer this, or not on these terms any more.
    OfferChanged,
    /// The host does not list with this broker.
    UnknownBroker,
    /// The renter's order does not verify, is not for this broker, or is too old.
    BadOrder(Detail),
    /// The host stops for maintenance.
    Draining,
    /// The engine of the host does not answer.
    EngineDown(Detail),
    /// More disk than the host has free now.
    DiskFull,
    /// A GPU of it is not fit now: quarantined, or not cleaned since its last lease.
    GpuUnfit(Detail),
}

impl RefusalReason {
    pub(super) const fn party(&self) -> Party {
        match self {
            Self::Taken | Self::OfferChanged => Party::Market,
            Self::BadOrder(_) => Party::Broker,
            Self::UnknownBroker
            | Self::Draining
            | Self::EngineDown(_)
            | Self::DiskFull
            | Self::GpuUnfit(_) => Party::Host,
        }
    }
}

/// Where a start failed, and how.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    /// During which stage.
    pub stage: Stage,
    /// What kind of failure.
    pub kind: ProblemKind,
    /// What was said.
    pub detail: Detail,
}

impl Problem {
    pub(super) const fn stage_party(&self) -> Party {
        match self.kind {
            ProblemKind::ImageUnknown
            | ProblemKind::ImageRefused
            | ProblemKind::DigestMismatch
            | ProblemKind::ImageTooBig
            | ProblemKind::CommandUnknown
            | ProblemKind::ImageUnusable
            | ProblemKind::ImageNeedsOtherGpu => Party::Renter,
            ProblemKind::RegistryDown => Party::Market,
            ProblemKind::EngineFailed | ProblemKind::GpuUnavailable | ProblemKind::HostSilent => {
                Party::Host
            }
        }
    }
}

/// What kind of failure stopped a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProblemKind {
    /// The registry does not know the image.
    ImageUnknown,
    /// The registry wants a login.
    ImageRefused,
    /// What came is not what the digest names.
    DigestMismatch,
    /// The image is larger than the lease's disk, or than the host allows.
    ImageTooBig,
    /// The command is not in the image.
    CommandUnknown,
    /// The image's own settings cannot be run safely (a working directory under `/proc`, and the like).
    ImageUnusable,
    /// The registry does not answer.
    RegistryDown,
    /// The engine failed.
    EngineFailed,
    /// The GPU could not be given to the container.
    GpuUnavailable,
    /// The host did not answer, or not in time.
    HostSilent,
    /// The image asks for a newer driver or another GPU than the lease has (`NVIDIA_REQUIRE_CUDA`).
    ImageNeedsOtherGpu,
}
