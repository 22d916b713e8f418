//! What a host is blamed for, and how much.

use crate::units::Timestamp;
use serde::{Deserialize, Serialize};

/// Thousandths of a fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Weight(pub u16);

impl Weight {
    /// As a number of faults.
    #[must_use]
    pub fn faults(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

/// What went wrong, as it is put down to somebody. Variants are only ever added at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fault {
    /// The host of a lease was silent for more than 90 s and its container did not go on within 15 minutes.
    Lost,
    /// The host of a lease was silent for more than 90 s, and the container survived.
    Silent,
    /// A GPU failed: a fatal Xid or ECC error, or it fell off the bus.
    GpuFailed,
    /// The host's disk was full, so that a lease could not go on.
    HostDiskFull,
    /// The host stopped its agent or a container before the lease's end.
    StoppedByHost,
    /// The host took back a lease before the end that it had promised.
    Withdrawn,
    /// Two of three spot checks were below nine tenths of what is advertised.
    BelowAdvertised,
    /// Maintenance, announced a day ahead, that hurt no lease.
    Maintenance,
    /// The renter's: its program failed or took too much memory, its image is not there, its money ran out,
    /// it stopped.
    RenterCaused,
    /// A crash that could be anybody's. It counts when renters who have nothing to do with each other see
    /// it: see [`super::CRASH_RENTERS`].
    AmbiguousCrash,
    /// Many hosts of different networks fell silent in one minute: it was the broker or its network.
    BrokerOutage,
}

impl Fault {
    /// All of them, in the order in which they are explained.
    pub const ALL: [Self; 11] = [
        Self::Lost,
        Self::Silent,
        Self::GpuFailed,
        Self::HostDiskFull,
        Self::StoppedByHost,
        Self::Withdrawn,
        Self::BelowAdvertised,
        Self::Maintenance,
        Self::RenterCaused,
        Self::AmbiguousCrash,
        Self::BrokerOutage,
    ];

    /// What one of them counts by itself.
    #[must_use]
    pub const fn weight(self) -> Weight {
        Weight(match self {
            Self::Lost | Self::GpuFailed | Self::HostDiskFull | Self::StoppedByHost => 1000,
            Self::Silent => 200,
            Self::Withdrawn => 2000,
            Self::BelowAdvertised => 500,
            Self::Maintenance | Self::RenterCaused | Self::AmbiguousCrash | Self::BrokerOutage => 0,
        })
    }

    /// What it counts when enough renters see it in a week.
    #[must_use]
    pub const fn weight_if_many(self) -> Weight {
        match self {
            Self::AmbiguousCrash => Weight(500),
            Self::Lost
            | Self::Silent
            | Self::GpuFailed
            | Self::HostDiskFull
            | Self::StoppedByHost
            | Self::Withdrawn
            | Self::BelowAdvertised
            | Self::Maintenance
            | Self::RenterCaused
            | Self::BrokerOutage => self.weight(),
        }
    }

    /// What happened, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Lost => "not heard, and its lease did not go on",
            Self::Silent => "not heard for a while; its lease went on",
            Self::GpuFailed => "a GPU failed",
            Self::HostDiskFull => "its disk was full",
            Self::StoppedByHost => "it stopped a lease",
            Self::Withdrawn => "it took back a lease before its promised end",
            Self::BelowAdvertised => "slower than advertised",
            Self::Maintenance => "announced maintenance",
            Self::RenterCaused => "the renter's",
            Self::AmbiguousCrash => "a container crashed; whose fault is not known",
            Self::BrokerOutage => "the broker's outage",
        }
    }

    /// The fault as which it is one incident with others: a host that is silent is silent for all its leases,
    /// whether some of them went on or not.
    pub(super) const fn family(self) -> Self {
        match self {
            Self::Silent => Self::Lost,
            Self::Lost
            | Self::GpuFailed
            | Self::HostDiskFull
            | Self::StoppedByHost
            | Self::Withdrawn
            | Self::BelowAdvertised
            | Self::Maintenance
            | Self::RenterCaused
            | Self::AmbiguousCrash
            | Self::BrokerOutage => self,
        }
    }
}

/// A fault at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Incident {
    /// When it began: of a silence, when the host was last heard.
    pub at: Timestamp,
    /// What it was.
    pub fault: Fault,
}
