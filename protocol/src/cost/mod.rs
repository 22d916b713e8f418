//! What a job costs from its start to its end on one offer: the sum that brokers rank by and renters compare.
//!
//! ```text
//! setup = boot + image/net↓ + image/unpack + data/net↓ + load/disk        (image terms 0 where it is cached)
//! W     = max(operations/(peak·eff), bytes/(bandwidth·eff)) / (n·scale),  or pieces / measured rate
//! T     = W and what checkpoints, failures and interruptions add          (see [`formula`])
//! cost  = price·(setup + T + upload) + disk for as long + traffic
//! ```
//!
//! The sum prices setup as time that is paid for, though a lease pays no compute before its container runs:
//! where two offers differ by their setup, the renter waits for it all the same. The bill is then lower than
//! the estimate, never higher for that. Floats are used inside only, through `libm`, so that all machines
//! come to the same micro-dollar. Must not know where offers are kept, or how many there are.

mod assumption;
mod card;
mod cluster;
pub mod formula;
pub(crate) mod number;
mod profile;
mod site;
mod sum;

pub use assumption::{
    Assumption, Assumptions, BOOT_SECONDS, COMPUTE_EFFICIENCY, DISK_BYTES_PER_SECOND,
    HAZARD_PER_HOUR, INTERRUPTIONS_PER_HOUR, MEMORY_EFFICIENCY, NETWORK_BYTES_PER_SECOND,
    UNPACK_BYTES_PER_SECOND,
};
pub use card::{Card, card_of};
pub use cluster::{Cluster, Step};
pub use number::rounded;
pub use profile::{Fraction, FractionError, JobProfile, Precision, RATES_MAX, Rate, Work};
pub use site::{Interruption, Site, Sites, hazard_of};
pub use sum::{estimate, rank_key};

use crate::units::{Bytes, MicroUsd, Seconds};

/// What a job takes and costs on one offer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobCost {
    /// How its time is spent.
    pub times: Times,
    /// How its cost is made up.
    pub costs: Costs,
    /// What had to be assumed.
    pub assumed: Assumptions,
}

/// Seconds, by what they are spent on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    /// Until the container runs, the image aside.
    pub boot: f64,
    /// Pulling the image.
    pub image: f64,
    /// Unpacking it.
    pub unpack: f64,
    /// Downloading what the job needs.
    pub data: f64,
    /// Reading it from disk.
    pub load: f64,
    /// Working.
    pub work: f64,
    /// Writing checkpoints.
    pub checkpoints: f64,
    /// Doing again what failures lost, and beginning again after them.
    pub lost: f64,
    /// Uploading the result.
    pub upload: f64,
}

/// Money, by what it is paid for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// GPUs or machine.
    pub compute: MicroUsd,
    /// Disk.
    pub storage: MicroUsd,
    /// Image and data that come in.
    pub download: MicroUsd,
    /// The result that goes out.
    pub upload: MicroUsd,
}

/// Why a job cannot be done on an offer, or nobody can say what it would cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Neither the job has a rate for the GPU nor the catalogue its data sheet.
    #[error("nobody knows how fast it does this work")]
    SpeedUnknown,
    /// Failures come faster than it gets on, or it takes more than ten years.
    #[error("it would not come to an end within ten years")]
    NeverDone,
    /// It takes longer than leases here may.
    #[error("it takes {needed}; leases here end after {allowed}")]
    TooLong {
        /// What it takes.
        needed: Seconds,
        /// What is allowed.
        allowed: Seconds,
    },
    /// It wants more disk than leases here may have.
    #[error("it wants {needed} of disk; leases here have {allowed} at most")]
    DiskTooLarge {
        /// What it wants.
        needed: Bytes,
        /// What is allowed.
        allowed: Bytes,
    },
}

impl Times {
    /// Until work begins.
    #[must_use]
    pub fn setup(&self) -> f64 {
        self.boot + self.image + self.unpack + self.data + self.load
    }

    /// From when work begins to when it is done.
    #[must_use]
    pub fn run(&self) -> f64 {
        self.work + self.checkpoints + self.lost
    }

    /// All.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.setup() + self.run() + self.upload
    }
}

impl Costs {
    /// All.
    #[must_use]
    pub fn total(&self) -> MicroUsd {
        let traffic = self.download.saturating_add(self.upload);
        self.compute
            .saturating_add(self.storage)
            .saturating_add(traffic)
    }
}
