//! What a renter asks for: an order to rent, and commands about a lease it has.

use crate::bounded::{List, Text};
use crate::ids::{Digest, LeaseId, OfferId, OrderId};
use crate::job::Job;
use crate::signed::Statement;
use crate::terms::ContractKind;
use crate::units::{Bytes, MicroUsd, PricePerHour, Seconds};
use serde::{Deserialize, Serialize};

/// A lease's name: two words and a hyphen by default; letters, digits and hyphens.
pub type LeaseName = Text<63>;

/// An order to rent one offer. The same id with the same body has one effect, however often it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Chosen by the renter: the idempotency key.
    pub id: OrderId,
    /// What to rent.
    pub offer: OfferId,
    /// [`crate::offer::Offer::terms_digest`] of what the renter saw and agreed to.
    pub terms: Digest,
    /// How.
    pub kind: ContractKind,
    /// The lease's name, unique among the renter's open leases.
    pub name: LeaseName,
    /// What to run.
    pub job: Job,
    /// Disk to keep for it.
    pub disk: Bytes,
    /// Most that an hour may cost, all in; the order is refused above it.
    pub price_max: PricePerHour,
    /// Most that the lease may cost in all; it ends by itself there.
    pub budget: MicroUsd,
    /// Longest time to run; it ends by itself there.
    pub duration_max: Option<Seconds>,
    /// Further keys that may open tunnels to the lease, beside the renter's own.
    pub access: List<crate::ids::PublicKey, 8>,
}

impl Statement for Order {
    const TYPE: &'static str = "order/v1";
}

/// What a renter can do with a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LeaseAction {
    /// Free the resource, keep the disk.
    Stop,
    /// Start again from the kept disk, on the same host.
    Resume,
    /// End it and delete the disk.
    End,
}

/// A renter's command about its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseCommand {
    /// The lease.
    pub lease: LeaseId,
    /// What to do.
    pub action: LeaseAction,
}

impl Statement for LeaseCommand {
    const TYPE: &'static str = "lease-command/v1";
}
