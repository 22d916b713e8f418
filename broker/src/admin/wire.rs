//! What the operator's commands and the broker say to each other: closed enums, one JSON object a line.

use super::proofs::ProofView;
use super::shown;
use crate::store::LedgerReport;
use protocol::bounded::Text;
use protocol::ids::{BrokerId, DepositId, HostId, LeaseId, OfferId, PaymentId, RenterId};
use protocol::operator::{Exit, Reply};
use protocol::units::{MicroUsd, Seconds, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an operator asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum AdminRequest {
    /// What are you doing?
    Status,
    /// Credit a renter.
    Deposit(Deposit),
    /// What does each renter have?
    Accounts,
    /// Which hosts do you hear?
    Hosts,
    /// Which leases do you have?
    Leases {
        /// Those that are over, too.
        all: bool,
    },
    /// Do the books balance?
    LedgerCheck,
    /// Put an offer, or all of a host, to the proof as soon as it is idle.
    Verify {
        /// Which host.
        #[serde(with = "shown::text_if")]
        host: Option<HostId>,
        /// Or which offer.
        #[serde(with = "shown::text_if")]
        offer: Option<OfferId>,
    },
    /// A host deposited a bond, or got it back.
    Bond(HostMoney),
    /// As above, back to the host.
    ReturnBond(HostMoney),
    /// Give a renter back a part of what a lease cost.
    Refund(Refund),
    /// Make the payouts that are due, and say which are open.
    Payouts {
        /// What a host has to have free at least.
        #[serde(with = "shown::usd", rename = "minimum_usd")]
        minimum: MicroUsd,
    },
    /// A payout was paid.
    PayoutPaid(PayoutNote),
    /// A payout is not to be paid.
    PayoutDropped(PayoutNote),
    /// A host may take no leases; without a reason it may again.
    Suspend {
        /// Which.
        #[serde(with = "shown::text")]
        host: HostId,
        /// Why.
        why: Option<Text<128>>,
        /// Whether one that this broker never heard of is meant.
        stranger: bool,
    },
    /// Take a deposit back.
    ReverseDeposit(ReverseDeposit),
}

/// A deposit that is taken back, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReverseDeposit {
    /// The id: with the same one it has one effect.
    #[serde(with = "shown::text")]
    pub id: PaymentId,
    /// Of which deposit.
    #[serde(with = "shown::text")]
    pub deposit: DepositId,
    /// How much; all that was not taken back before when nothing is said.
    #[serde(with = "shown::usd_if", rename = "amount_usd")]
    pub amount: Option<MicroUsd>,
    /// Why.
    pub note: Text<128>,
}

/// Money of a host's bond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostMoney {
    /// The id: with the same one it has one effect.
    #[serde(with = "shown::text")]
    pub id: PaymentId,
    /// Whose.
    #[serde(with = "shown::text")]
    pub host: HostId,
    /// How much.
    #[serde(with = "shown::usd", rename = "amount_usd")]
    pub amount: MicroUsd,
    /// A note for the books.
    pub note: Text<128>,
    /// Whether a host that this broker never heard of is meant.
    pub stranger: bool,
}

/// Money that goes back to a renter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refund {
    /// The id: with the same one it has one effect.
    #[serde(with = "shown::text")]
    pub id: PaymentId,
    /// Of which lease.
    #[serde(with = "shown::text")]
    pub lease: LeaseId,
    /// How much.
    #[serde(with = "shown::usd", rename = "amount_usd")]
    pub amount: MicroUsd,
    /// Why.
    pub note: Text<128>,
}

/// What became of a payout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PayoutNote {
    /// Which.
    #[serde(with = "shown::text")]
    pub id: PaymentId,
    /// The bank's name of the transfer, or why it is dropped.
    pub note: Text<128>,
}

/// A payment on the books.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentRow {
    /// Its id.
    pub payment: String,
    /// What it is: `bond`, `bond-returned`, `refund`, `payout`, `deposit-reversed`.
    pub kind: String,
    /// The host, the lease or the deposit that it is about.
    pub about: String,
    /// How much.
    #[serde(with = "shown::usd", rename = "amount_usd")]
    pub amount: MicroUsd,
    /// When it was written down.
    #[serde(with = "shown::time")]
    pub at: Timestamp,
    /// Where it stands: `open`, `paid`, `dropped`, `done`.
    pub status: String,
    /// The operator's note.
    pub note: String,
    /// Whether it was there before this was asked.
    pub before: bool,
}

/// Money received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deposit {
    /// The id: with the same one the money is credited once.
    #[serde(with = "shown::text")]
    pub id: DepositId,
    /// Whose money.
    #[serde(with = "shown::text")]
    pub renter: RenterId,
    /// How much.
    #[serde(with = "shown::usd", rename = "amount_usd")]
    pub amount: MicroUsd,
    /// A note for the books.
    pub memo: Text<128>,
    /// Whether a renter that this broker never heard of is meant.
    pub stranger: bool,
}

/// What the broker answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", content = "with", rename_all = "snake_case")]
pub enum AdminReply {
    /// To [`AdminRequest::Status`].
    Status(Box<Status>),
    /// To [`AdminRequest::Deposit`].
    Deposited(Deposited),
    /// To [`AdminRequest::Accounts`].
    Accounts(Vec<AccountRow>),
    /// To [`AdminRequest::Hosts`].
    Hosts(Vec<HostRow>),
    /// To [`AdminRequest::Leases`].
    Leases(Vec<LeaseRow>),
    /// To [`AdminRequest::LedgerCheck`].
    Ledger(LedgerView),
    /// To what moves a host's money.
    Payment(Box<PaymentRow>),
    /// To [`AdminRequest::Payouts`].
    Payouts(Vec<PaymentRow>),
    /// To [`AdminRequest::Suspend`].
    Noted,
    /// To [`AdminRequest::Verify`]: the offers.
    Verifying(Vec<String>),
    /// No, because.
    Refused(String),
    /// What was named is not here.
    Unknown(String),
}

impl Reply for AdminReply {
    fn refusal(reason: String) -> Self {
        Self::Refused(reason)
    }

    fn refused(&self) -> Option<(Exit, &str)> {
        if let Self::Refused(reason) = self {
            return Some((Exit::Failed, reason));
        }
        if let Self::Unknown(reason) = self {
            return Some((Exit::NotFound, reason));
        }
        None
    }
}

/// What a running broker is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its id.
    #[serde(with = "shown::text")]
    pub broker: BrokerId,
    /// Its name.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// When it was started.
    #[serde(with = "shown::time")]
    pub started_at: Timestamp,
    /// Its clock.
    #[serde(with = "shown::time")]
    pub now: Timestamp,
    /// What to give to hosts and renters.
    pub addresses: Vec<String>,
    /// The metrics page.
    pub metrics: String,
    /// Its part of every charge.
    pub fee_bps: u16,
    /// Peers connected now.
    pub connections: u64,
    /// Hosts heard.
    pub hosts: u64,
    /// Offers shown.
    pub offers: u64,
    /// Leases by phase.
    pub leases: BTreeMap<String, u64>,
    /// Renters with an account.
    pub renters: u64,
    /// Number of the journal's last event.
    pub last_event: u64,
    /// Refusals since the start, by reason; those that did not happen are left out.
    pub refusals: BTreeMap<String, u64>,
}

/// A deposit that is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deposited {
    /// Its id.
    #[serde(with = "shown::text")]
    pub id: DepositId,
    /// Whose.
    #[serde(with = "shown::text")]
    pub renter: RenterId,
    /// How much was asked to be credited.
    #[serde(with = "shown::usd", rename = "amount_usd")]
    pub amount: MicroUsd,
    /// Whether this credited it; false when a deposit of that id had done so before.
    pub credited: bool,
    /// What the renter can spend now.
    #[serde(with = "shown::usd", rename = "available_usd")]
    pub available: MicroUsd,
}

/// A renter's account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRow {
    /// Whose.
    #[serde(with = "shown::text")]
    pub renter: RenterId,
    /// Free to spend.
    #[serde(with = "shown::usd", rename = "available_usd")]
    pub available: MicroUsd,
    /// Held for open leases.
    #[serde(with = "shown::usd", rename = "held_usd")]
    pub held: MicroUsd,
    /// Spent so far.
    #[serde(with = "shown::usd", rename = "spent_usd")]
    pub spent: MicroUsd,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRow {
    /// Which.
    #[serde(with = "shown::text")]
    pub host: HostId,
    /// Whether it is connected now.
    pub connected: bool,
    /// When it was last heard.
    #[serde(with = "shown::time_if")]
    pub heard_at: Option<Timestamp>,
    /// How each of its offers stands with proofs of its hardware.
    pub proofs: Vec<ProofView>,
    /// Offers it shows now.
    pub offers: u64,
    /// Its leases that are not over.
    pub leases: u64,
    /// What it earned and was not paid.
    #[serde(with = "shown::usd", rename = "pending_usd")]
    pub pending: MicroUsd,
    /// Where it can be dialled directly.
    pub addresses: Vec<String>,
    /// Why it may take no leases; nothing when it may.
    pub suspended: Option<String>,
}

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRow {
    /// Which.
    #[serde(with = "shown::text")]
    pub lease: LeaseId,
    /// Its name.
    pub name: String,
    /// Whose.
    #[serde(with = "shown::text")]
    pub renter: RenterId,
    /// Where: a host's id; nowhere while a bid rests.
    pub host: Option<String>,
    /// Where it stands, in one word.
    pub phase: String,
    /// Since when.
    #[serde(with = "shown::time")]
    pub since: Timestamp,
    /// How long it ran, as billed.
    pub running_s: Seconds,
    /// What it cost so far.
    #[serde(with = "shown::usd", rename = "charged_usd")]
    pub charged: MicroUsd,
    /// What is held for it.
    #[serde(with = "shown::usd", rename = "held_usd")]
    pub held: MicroUsd,
    /// What runs.
    pub image: String,
}

/// The books added up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerView {
    /// Number of the last event that is in it.
    pub last_event: u64,
    /// Entries that were added up.
    pub entries: u64,
    /// Accounts that are not empty.
    pub accounts: u64,
    /// What each kind of account holds, as its holders see it, in dollars.
    pub by_kind_usd: BTreeMap<String, String>,
    /// The sum of all entries in micro-dollars; zero, or money was made or lost.
    pub sum_micro_usd: i128,
    /// What is wrong, one sentence each; nothing when the books balance.
    pub problems: Vec<String>,
}

impl From<LedgerReport> for LedgerView {
    fn from(report: LedgerReport) -> Self {
        let LedgerReport {
            last_at: _,
            last_event,
            entries,
            accounts,
            by_kind,
            sum,
            problems,
        } = report;
        let shown = by_kind
            .into_iter()
            .map(|(kind, amount)| (kind.to_owned(), amount.decimal()));
        let by_kind_usd = shown.collect();
        Self {
            last_event,
            entries,
            accounts,
            by_kind_usd,
            sum_micro_usd: sum,
            problems,
        }
    }
}

#[cfg(test)]
mod tests;
