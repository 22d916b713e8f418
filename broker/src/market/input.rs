//! Everything the market's thread can be asked, one closed list, each with the way back for its answer.

use crate::core::command::{Answer, Command, VerifiedAnnouncement};
use crate::core::goal::GoalDraft;
use crate::core::overview::{AccountRow, Counts, HostRow};
use crate::market::proofs::ProofInput;
use crate::store::LedgerReport;
use protocol::ids::{DepositId, HostId, LeaseId, PublicKey, RenterId};
use protocol::lease::{LeaseView, Progress};
use protocol::message::{Found, LeaseScope, Rejection, Search};
use protocol::reliability::HostEvidence;
use protocol::signed::Signed;
use protocol::units::MicroUsd;
use protocol::usage::{AccountStatement, Balance, Earnings, Receipt};
use tokio::sync::oneshot;

/// The way back.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Rejection>>;

/// One input.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "commands are the common case, and the queue that holds them is short"
)]
pub(super) enum Input {
    // What may change the hard state.
    Command(Command, Reply<Answer>),
    // What changes the soft state.
    Announce(HostId, VerifiedAnnouncement, Reply<()>),
    Progress(HostId, Progress, Reply<()>),
    Gone(HostId),
    Greet(PublicKey, Reply<Counts>),
    // What changes nothing.
    Search(Box<Search>, Reply<Found>),
    Leases(PublicKey, LeaseScope, Reply<Vec<LeaseView>>),
    Lease(PublicKey, LeaseId, Reply<Box<LeaseView>>),
    Balance(RenterId, Reply<Balance>),
    Earnings(HostId, Reply<Earnings>),
    HostEvidence(HostId, Option<(LeaseId, u16)>, Reply<Box<HostEvidence>>),
    Statement(RenterId, u64, Reply<Signed<AccountStatement>>),
    Receipt(PublicKey, LeaseId, Reply<Signed<Receipt>>),
    Goal(HostId, Reply<GoalDraft>),
    Counts(Reply<Counts>),
    Knows(PublicKey, Reply<bool>),
    Hosts(Reply<Vec<HostRow>>),
    Accounts(Reply<Vec<AccountRow>>),
    AllLeases(LeaseScope, Reply<Vec<LeaseView>>),
    Deposit(DepositId, Reply<Option<(RenterId, MicroUsd)>>),
    Ledger(Reply<LedgerReport>),
    /// About proofs of hardware.
    Proof(ProofInput),
    // The end.
    Shutdown(Reply<()>),
}
