//! What can be asked of the market, and what it answers.
//!
//! Wishes, not facts: nothing here has happened. What comes of it is in `event`.

use crate::core::payment::{MoneyOrder, Payment};
use crate::core::proofs::ProofOrder;
use protocol::bounded::{List, Text};
use protocol::ids::{DepositId, LeaseId, PaymentId, RenterId};
use protocol::lease::{Grant, LeaseView, Refusal, Report};
use protocol::offer::{Offer, RESOURCES_MAX, ResourceName};
use protocol::order::{LeaseCommand, Order};
use protocol::signed::Verified;
use protocol::units::MicroUsd;
use protocol::usage::Balance;

/// What somebody asks for. Whoever makes one has checked that the signer is the one who sent it, that it
/// is for this broker, and that it is fresh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The operator got money from a renter.
    Deposit {
        /// Chosen by the operator: a repeat has no second effect.
        id: DepositId,
        /// Whose money.
        renter: RenterId,
        /// How much; more than nothing.
        amount: MicroUsd,
        /// The operator's note.
        memo: Text<128>,
    },
    /// A renter rents.
    Order(Box<Verified<Order>>),
    /// A renter stops, resumes or ends its lease.
    Lease(Verified<LeaseCommand>),
    /// A host accepts.
    Grant(Verified<Grant>),
    /// A host refuses.
    Refuse(Verified<Refusal>),
    /// A host says how a lease stands.
    Report(Verified<Report>),
    /// The operator moves a host's money.
    Money(MoneyOrder),
    /// The broker puts hardware to the proof.
    Proof(ProofOrder),
    /// The operator ends a lease.
    Operator {
        /// Which.
        lease: LeaseId,
    },
}

/// All that a host offers now, each offer signed by it.
#[derive(Debug, Clone, Default)]
pub struct VerifiedAnnouncement {
    /// What can be leased.
    pub offers: Vec<Verified<Offer>>,
    /// Where the host can be dialled directly.
    pub addresses: List<Text<256>, 8>,
    /// What of it cannot be had now.
    pub withheld: List<ResourceName, RESOURCES_MAX>,
}

/// What the market answers when it does not refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The lease as it stands now.
    Lease(Box<LeaseView>),
    /// The renter's money after the deposit.
    Deposited(Balance),
    /// Heard.
    Noted,
    /// The payment as it stands, and whether it stood so before.
    Payment {
        /// Its id.
        id: PaymentId,
        /// What it is.
        payment: Box<Payment>,
        /// Nothing changed: it was there.
        before: bool,
    },
    /// The payouts that are to be paid.
    Payouts(Vec<(PaymentId, Payment)>),
    /// The renter's money; that deposit is in it since its id was used first, and nothing changed.
    DepositedBefore(Balance),
}
