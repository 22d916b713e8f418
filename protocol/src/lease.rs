//! A lease: its phases, what each side signs about it, and how its end is put down to somebody.
//!
//! ```text
//! Resting ─▶ Clearing ─┐
//!     │          │     ▼    refused, timed out, no money
//!     │          │  Offered ─▶ Accepted ─▶ Preparing ─▶ Running ─▶ Noticed ─▶ Paused
//!     │          │     │           │            │          │  ▲       │        │  │
//!     ▼          ▼     ▼           ▼            ▼          ▼  │       ▼        ▼  └─▶ Clearing, Preparing
//!     └──────────┴─────┴───────────┴────────────┴──────────┴──┼───────┴────────┴──▶ Closing ─▶ Closed
//!                                              host lost ⇄ Suspect (not billed)
//! ```
//!
//! The broker owns the phase. Compute is billed in `Running` and `Noticed` alone, storage there and in
//! `Paused`, nothing in any other phase. In `Closing` the money is settled and the host has still to say that the
//! container is gone.

mod failures;
mod statements;

pub use failures::*;
pub use statements::*;

use crate::bounded::{List, Text};
use crate::ids::{HostId, LeaseId, OfferId, OrderId, RenterId};
use crate::machine::{GPUS_MAX, Gpu};
use crate::offer::Partition;
use crate::order::LeaseName;
use crate::signed::Signed;
use crate::terms::{ContractKind, Prices, Rates};
use crate::units::{BasisPoints, Bytes, MicroUsd, Millis, PricePerHour, Seconds, Timestamp};
use crate::usage::{Amounts, Term};
use serde::{Deserialize, Serialize};

/// Words for people about something that failed: what a registry, an engine or a program said.
pub type Detail = Text<512>;

/// Where a lease stands, as both sides see it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    /// A bid that waits for a price, or for a free resource; no host has it.
    Resting,
    /// It has a resource as soon as those who are there have gone, which is by then at the latest.
    Clearing(Timestamp),
    /// The broker matched it; the host has not answered.
    Offered,
    /// The host signed the grant.
    Accepted,
    /// The host pulls, creates, starts.
    Preparing,
    /// The host signed that the container runs.
    Running,
    /// It runs and was told that it has to go; it is stopped then at the latest.
    Noticed(PauseCause, Timestamp),
    /// The host is not heard; not billed.
    Suspect,
    /// The container does not run, its disk is kept and billed.
    Paused(PauseCause),
    /// The money is settled; the host has still to confirm that the container is gone.
    Closing(EndCause),
    /// Over.
    Closed(EndCause),
}

impl Phase {
    /// Whether the lease still holds money or may again.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self, Self::Closing(_) | Self::Closed(_))
    }

    /// The phase in one word, as tables and filters say it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Resting => "resting",
            Self::Clearing(_) => "clearing",
            Self::Offered => "offered",
            Self::Accepted => "accepted",
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Noticed(..) => "noticed",
            Self::Suspect => "unreachable",
            Self::Paused(_) => "stopped",
            Self::Closing(_) => "closing",
            Self::Closed(_) => "ended",
        }
    }
}

/// Why a container does not run while its disk is kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PauseCause {
    /// The renter stopped it.
    Renter,
    /// Its main process ended with this code.
    Exited(i32),
    /// The kernel killed its main process for memory.
    OutOfMemory,
    /// The renter's money would not last another five minutes.
    FundsLow,
    /// It could not be started again.
    ResumeFailed(Problem),
    /// It wrote more than its disk, and its host stopped it.
    DiskFull,
    /// Somebody bid more. It resumes by itself when it is the best bid for a free resource.
    Outbid,
    /// A lease on demand or for a term took the resource. It resumes by itself, as above.
    Preempted,
    /// A GPU of it failed, or was made to by what ran on it.
    GpuFault(GpuFault),
}

impl PauseCause {
    /// Whether the market stopped it, and starts it again when there is room.
    #[must_use]
    pub const fn resumes_by_itself(&self) -> bool {
        matches!(self, Self::Outbid | Self::Preempted)
    }
}

/// Why a lease ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EndCause {
    /// The renter ended it.
    Renter,
    /// It reached its budget.
    Budget,
    /// It reached its longest duration.
    Duration,
    /// Its disk was kept as long as it could be paid for, or as long as disks are kept.
    DiskExpired,
    /// The host refused it.
    Refused(RefusalReason),
    /// The host did not accept in time.
    NotAccepted,
    /// The host did not run it in time.
    NotStarted,
    /// The host could not start it.
    Failed(Problem),
    /// The host was not heard for too long.
    HostLost,
    /// The host ended it, or its container vanished.
    Host(Detail),
    /// The operator of the broker ended it.
    Operator,
    /// The bid rested until its end, and was never met.
    BidExpired,
    /// The prepaid term was over.
    TermOver,
    /// The host's promised end date came.
    OfferEnded,
    /// The host broke off a prepaid term: away for too long, or withdrawn.
    HostFailed(Detail),
}

/// Who caused an end: what reliability is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Party {
    /// The renter, or its job.
    Renter,
    /// The host.
    Host,
    /// The broker.
    Broker,
    /// Nobody: two orders met.
    Market,
}

impl EndCause {
    /// Whom the end is put down to.
    #[must_use]
    pub const fn party(&self) -> Party {
        match self {
            Self::Renter
            | Self::Budget
            | Self::Duration
            | Self::DiskExpired
            | Self::BidExpired
            | Self::TermOver => Party::Renter,
            Self::OfferEnded => Party::Market,
            Self::HostFailed(_) => Party::Host,
            Self::Refused(reason) => reason.party(),
            Self::NotAccepted | Self::NotStarted | Self::HostLost | Self::Host(_) => Party::Host,
            Self::Failed(problem) => problem.stage_party(),
            Self::Operator => Party::Broker,
        }
    }
}

/// The named stages of a start, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stage {
    /// The host checks and takes the resource.
    Granting,
    /// The image is pulled.
    Pulling,
    /// The container is made.
    Creating,
    /// The container is started.
    Starting,
}

/// How far a start is. Soft: shown, never journalled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The lease.
    pub lease: LeaseId,
    /// The stage it is in.
    pub stage: Stage,
    /// What of this stage is done, in bytes; zero for stages without bytes.
    pub done: Bytes,
    /// What this stage is in all, as far as known.
    pub total: Bytes,
}

/// How a renter reaches the host of its lease.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Multiaddresses to try, best first; the last are relayed by the broker.
    pub addresses: List<Text<256>, 16>,
}

/// All that a renter (or host) may see of a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseView {
    /// The lease.
    pub id: LeaseId,
    /// The order it came from.
    pub order: OrderId,
    /// Its name.
    pub name: LeaseName,
    /// Whose it is.
    pub renter: RenterId,
    /// Where it runs, and of which offer; nowhere while a bid rests.
    pub place: Option<(HostId, OfferId)>,
    /// What kind of contract it is now.
    pub kind: ContractKind,
    /// What is bid for a GPU and hour: the limit of a resting bid, or the bid of an interruptible lease.
    pub bid: Option<PricePerHour>,
    /// What would have to be bid for it to run now, where it waits for others' bids.
    pub to_win: Option<PricePerHour>,
    /// When a bid that rests stops waiting.
    pub rests_until: Option<Timestamp>,
    /// How many GPUs were asked for; 0 for a machine without one.
    pub gpu_count: u16,
    /// Where it stands.
    pub phase: Phase,
    /// When it entered that phase.
    pub since: Timestamp,
    /// How far its start is, while it starts.
    pub progress: Option<Progress>,
    /// Rises with everything that changes here: see [`crate::message::BrokerRequest::Watch`].
    pub revision: u64,
    /// The image it runs.
    pub image: crate::job::PinnedImage,
    /// Its GPUs, or the one that it has a slice of.
    pub gpus: List<Gpu, GPUS_MAX>,
    /// Which slice of it.
    pub partition: Option<Partition>,
    /// CPU time in thousandths of a core.
    pub cpu_millicores: u32,
    /// RAM.
    pub ram: Bytes,
    /// Disk.
    pub disk: Bytes,
    /// Prices, of all its GPUs together: frozen but for the bid. Nothing while a bid rests.
    pub prices: Prices,
    /// The hourly rates so far, by running time.
    pub rates: Rates,
    /// The term, if it was prepaid.
    pub term: Option<Term>,
    /// The broker's part of every charge, frozen.
    pub fee: BasisPoints,
    /// When it was ordered.
    pub ordered_at: Timestamp,
    /// When it first ran.
    pub started_at: Option<Timestamp>,
    /// How long it ran, as billed.
    pub running: Millis,
    /// What it cost so far.
    pub charged: Amounts,
    /// What is held for it now.
    pub held: MicroUsd,
    /// Most it may cost.
    pub budget: MicroUsd,
    /// Longest time to run.
    pub duration_max: Option<Seconds>,
    /// Until when its host promised the machine: it ends by itself then, whatever it does.
    pub until: Option<Timestamp>,
    /// When a stopped lease's disk is deleted.
    pub disk_until: Option<Timestamp>,
    /// Whether the money lasts for less than 15 minutes.
    pub low_balance: bool,
    /// The host's signed grant, once there is one.
    pub grant: Option<Signed<Grant>>,
    /// How to reach it.
    pub access: Access,
    /// What the host reported last about this run of the container, or that all is gone. None until a report
    /// came since the broker started or the lease was resumed, and when the lease is over.
    pub container: Option<ContainerState>,
}
