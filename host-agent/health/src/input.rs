//! What the rules hear, and what they want done.

use crate::between::{Dirty, Scrubbed};
use crate::log::Line;
use crate::machine::{Device, Place, Tenancy};
use crate::unit::{Kept, Settings, Until};
use host_nvml::news::GpuNews;
use protocol::ids::LeaseId;
use protocol::lease::GpuFault;
use protocol::offer::ResourceName;
use protocol::units::Bytes;

/// Everything that they hear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The GPUs that are there, all of them. After it, all who have something are said again.
    Machine(Vec<Device>),
    /// Who has what, all of it: each lease whose container may use a GPU.
    Tenants(Vec<Tenancy>),
    /// News of an NVIDIA GPU.
    News(GpuNews),
    /// A line of the kernel's log.
    Line(Line),
    /// Something happened to an AMD GPU.
    Amd {
        /// Which.
        gpu: ResourceName,
        /// What.
        event: AmdEvent,
    },
    /// What links GPUs works again.
    FabricUp,
    /// The settings of a GPU, as they are.
    Settings {
        /// Which.
        gpu: ResourceName,
        /// How they are.
        settings: Settings,
    },
    /// A reset ended, or did not work.
    Reset {
        /// Of which GPU.
        gpu: ResourceName,
        /// Why it did not.
        result: Result<(), String>,
    },
    /// A scrub ended.
    Scrubbed {
        /// Of what.
        resource: ResourceName,
        /// What it did.
        result: Result<Scrubbed, Dirty>,
    },
    /// The owner has checked a GPU and says that it is sound.
    Checked(ResourceName),
    /// Time went by.
    Tick,
}

/// What AMD's driver tells of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmdEvent {
    /// A program read or wrote what it must not.
    VmFault,
    /// It is slowed down for its heat.
    Throttled,
    /// A queue of commands hangs.
    RingHang,
    /// A reset begins; inside a hive it may reset every GPU.
    PreReset,
    /// The reset is over.
    PostReset,
    /// It was looked at after the reset, and is sound.
    Healthy,
    /// A program used memory that was lost; its page was retired.
    Poison,
    /// More memory errors than it may have.
    EccThreshold,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// This is to be in the journal before anything else of the same decision is done.
    Keep(Kept),
    /// Kill the container of this lease, and say why.
    EndLease {
        /// Which.
        lease: LeaseId,
        /// Why.
        fault: GpuFault,
    },
    /// Offer this GPU or slice no more.
    Withdraw {
        /// Which.
        resource: ResourceName,
        /// Why.
        why: String,
    },
    /// Offer it again.
    Restore {
        /// Which.
        resource: ResourceName,
    },
    /// Whether this GPU may be leased together with others.
    Together {
        /// Which.
        gpu: ResourceName,
        /// Whether.
        allowed: bool,
    },
    /// The grade of this GPU's offer is lowered for that, or is not any more.
    Grade {
        /// Which.
        gpu: ResourceName,
        /// For what.
        lowered: Option<String>,
    },
    /// Count no time for these leases until they are let go on.
    Freeze(Vec<LeaseId>),
    /// Count their time again.
    LetGoOn(Vec<LeaseId>),
    /// Reset this GPU.
    Reset {
        /// Which.
        gpu: ResourceName,
        /// Whether the persistence daemon has to let go of it first.
        persistence: bool,
    },
    /// Write all memory of this and read it back; of a divided GPU, slice by slice.
    Scrub {
        /// What.
        place: Place,
    },
    /// Set these as they were.
    Repair {
        /// Of which GPU.
        gpu: ResourceName,
        /// To what.
        settings: Settings,
    },
    /// Take no lease until the machine was booted anew.
    DrainHost {
        /// Why.
        why: String,
    },
    /// Something that the owner has to know.
    Alarm {
        /// Of which GPU; nothing for the machine.
        gpu: Option<ResourceName>,
        /// What.
        text: String,
    },
    /// Something for the log.
    Note {
        /// Of which GPU; nothing for the machine.
        gpu: Option<ResourceName>,
        /// What.
        text: String,
    },
    /// This was cleaned. How long it took is recorded and billed to nobody.
    Cleaned {
        /// What.
        resource: ResourceName,
        /// How long it took.
        took: crate::between::Took,
    },
}

/// What a GPU is to be, as a person reads it in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The GPU or slice.
    pub resource: ResourceName,
    /// How it is.
    pub fitness: crate::unit::Fitness,
    /// What its grade is lowered for.
    pub lowered: Option<String>,
    /// Why it is reset when nobody has it.
    pub reset_wanted: Option<String>,
    /// What it has in use while nobody has it.
    pub idle: Option<Bytes>,
    /// What it waits for.
    pub until: Option<Until>,
}
