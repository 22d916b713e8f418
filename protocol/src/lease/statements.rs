//! What broker and host say of a lease: the match, the grant or refusal, reports, and the broker's goal.

use super::{GpuFault, Problem, RefusalReason, Stage};
use crate::bounded::List;
use crate::ids::{BootId, Digest, HostId, LeaseId, OfferId, RenterId};
use crate::machine::GPUS_MAX;
use crate::offer::{Part, ResourceName};
use crate::order::Order;
use crate::signed::{Signed, Statement};
use crate::terms::{ContractKind, Prices};
use crate::units::{BasisPoints, Bytes, Millis, Timestamp};
use serde::{Deserialize, Serialize};

/// The broker's match of an order with an offer: what the host is asked to run and at what price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Award {
    /// The lease.
    pub lease: LeaseId,
    /// Digest of the renter's signed order.
    pub order: Digest,
    /// The offer and the digest of its terms.
    pub offer: (OfferId, Digest),
    /// What kind of contract.
    pub kind: ContractKind,
    /// What of the offer's share the lease has.
    pub part: Part,
    /// The renter.
    pub renter: RenterId,
    /// The host.
    pub host: HostId,
    /// The prices of that part; frozen, but for a bid.
    pub prices: Prices,
    /// The broker's part of every charge.
    pub fee: BasisPoints,
    /// The broker's receipt number of the order: earlier is smaller.
    pub number: u64,
    /// When it was matched.
    pub matched_at: Timestamp,
}

impl Statement for Award {
    const TYPE: &'static str = "award/v2";
}

/// A host's acceptance of a lease: these resources, under these epochs, are this lease's alone. Two grants
/// of one resource under one epoch prove a double sale to anybody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The lease.
    pub lease: LeaseId,
    /// Digest of the renter's signed order.
    pub order: Digest,
    /// Digest of the broker's signed award.
    pub award: Digest,
    /// Each resource with the epoch it was taken under; epochs only rise.
    pub resources: List<(ResourceName, u64), GPUS_MAX>,
}

impl Statement for Grant {
    const TYPE: &'static str = "grant/v1";
}

/// A host's refusal of a lease. Final for that lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The lease.
    pub lease: LeaseId,
    /// Why.
    pub reason: RefusalReason,
}

impl Statement for Refusal {
    const TYPE: &'static str = "refusal/v2";
}

/// What a host says of one lease: where its container stands and what its meters read, from the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The lease.
    pub lease: LeaseId,
    /// Rises with every report of this lease; an older one is ignored.
    pub sequence: u64,
    /// This boot of the host.
    pub boot: BootId,
    /// Which run of the container this is about: see [`Want::Run`].
    pub run: u32,
    /// Where the container stands.
    pub state: ContainerState,
    /// Meters.
    pub meters: Meters,
}

impl Statement for Report {
    const TYPE: &'static str = "report/v2";
}

/// Cumulative counters of a lease over all its runs, by the host's monotonic clock and counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meters {
    /// How long the container ran.
    pub running: Millis,
    /// Bytes that left it.
    pub uploaded: Bytes,
    /// Bytes that reached it.
    pub downloaded: Bytes,
}

/// Where a lease's container stands on its host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ContainerState {
    /// It is being prepared.
    Preparing(Stage),
    /// It runs and the renter can reach it.
    Running,
    /// It does not run; its disk is kept.
    Stopped(StopReason),
    /// It could not be started in this run.
    Failed(Problem),
    /// It and its disk are gone.
    Gone,
}

/// Why a container does not run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StopReason {
    /// The goal said so.
    Asked,
    /// Its main process ended with this code.
    Exited(i32),
    /// The kernel killed its main process for memory.
    OutOfMemory,
    /// Its resource went to another lease while it was stopped, so it cannot run now.
    ResourceTaken,
    /// It wrote more than its disk, and was stopped for it.
    DiskFull,
    /// It was given notice, and is stopped.
    Vacated,
    /// A GPU of it failed, and it was killed for it.
    GpuFault(GpuFault),
}

/// Most leases of one broker on one host.
pub const GOAL_LEASES_MAX: usize = 64;

/// What a broker wants a host to be doing for it: complete, and said again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// Rises within one run of the broker; with `started_at` it orders goals that crossed.
    pub sequence: u64,
    /// When this run of the broker started.
    pub started_at: Timestamp,
    /// Every lease that this broker has on this host. A container of this broker's that is not here is to
    /// be ended.
    pub leases: List<LeaseGoal, GOAL_LEASES_MAX>,
}

/// What should be true of one lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseGoal {
    /// The lease.
    pub lease: LeaseId,
    /// The renter's signed order: what to run.
    pub order: Signed<Order>,
    /// The broker's signed match.
    pub award: Signed<Award>,
    /// What should be true.
    pub want: Want,
}

/// What a broker wants of one lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Want {
    /// The container runs. The number is 1 at first and rises with every resume, so that a container that
    /// ended by itself is not started again by the same goal.
    Run(u32),
    /// It does not run, and its disk is kept.
    Stop,
    /// It and its disk are gone.
    End,
    /// The run goes on for the notice that the offer states: the container is told at once (SIGTERM, and the
    /// notice file), and stopped when the notice is over. Its disk is kept.
    Vacate(Vacate),
}

/// A notice to a container that has to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Vacate {
    /// Which run: see [`Want::Run`].
    pub run: u32,
    /// When it is stopped, by the broker's clock.
    pub by: Timestamp,
    /// Why, in the words of [`super::PauseCause`]: whether a bid or a firm lease took its place.
    pub outbid: bool,
}
