//! What was done with a host's money, as the books keep it.
//!
//! Must not say what may be done.

use super::Note;
use protocol::ids::{DepositId, HostId, LeaseId};
use protocol::units::{MicroUsd, Timestamp};
use serde::{Deserialize, Serialize};

/// What was done with money under one id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payment {
    /// When it was written down.
    pub at: Timestamp,
    /// What.
    pub what: PaymentKind,
    /// How much.
    pub amount: MicroUsd,
    /// The operator's words.
    pub note: Note,
}

/// What a payment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PaymentKind {
    /// From a host, as its bond.
    Bond(HostId),
    /// To a host, of its bond.
    BondReturned(HostId),
    /// To the renter of a lease.
    Refund(LeaseId),
    /// To a host, of what it earned.
    Payout(HostId, Payout),
    /// From a renter back to the operator's cash: a part of that deposit, or all of it.
    DepositReversed(DepositId),
}

/// Where a payout stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Payout {
    /// It is to be paid.
    Open,
    /// It was paid then.
    Paid(Timestamp),
    /// It was dropped then.
    Dropped(Timestamp),
}

impl Payment {
    /// Whether it still waits for the operator.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.what, PaymentKind::Payout(_, Payout::Open))
    }
}
