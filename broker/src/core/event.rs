//! What happened: the journal's only content. State is what these add up to.
//!
//! An event carries everything its application needs (prices, deadlines, entries), so that applying it
//! takes no decision, needs no offer, and gives the same state whenever it is done.

use crate::core::lease::State;
use crate::core::ledger::Entry;
use crate::core::meter::Meter;
use crate::core::payment::{Note, Payment, PaymentKind, Payout};
use crate::core::reliability::Heard;
use crate::core::ripening::Mark;
use protocol::bounded::Text;
use protocol::ids::{DepositId, HostId, LeaseId, OrderId, PaymentId, RenterId};
use protocol::lease::{Award, EndCause, Grant};
use protocol::offer::{Partition, Share};
use protocol::order::{LeaseCommand, Order};
use protocol::reliability::Interval;
use protocol::signed::{Draft, Signed, Statement, Verified};
use protocol::terms::{ContractKind, Limits, Prices, Rates};
use protocol::units::{MicroUsd, PricePerHour, Seconds, Timestamp};
use protocol::usage::{Amounts, Term};
use protocol::verify::Verdict;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Deref;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, by the broker's clock; never before the event before it.
    pub at: Timestamp,
    /// What.
    pub fact: Fact,
    /// The money it moved; the sum is zero.
    pub entries: Vec<Entry>,
}

/// What happened. Variants are only ever added at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    /// The operator got money from a renter.
    Deposited {
        /// The operator's id of it.
        id: DepositId,
        /// Whose.
        renter: RenterId,
        /// How much.
        amount: MicroUsd,
        /// The operator's note.
        memo: Text<128>,
    },
    /// An order met an offer: a lease begins.
    Matched(Box<Match>),
    /// The host accepted.
    Granted {
        /// The lease.
        lease: LeaseId,
        /// What the host signed.
        grant: Box<Kept<Grant>>,
    },
    /// The lease is in another state now.
    Moved(Box<Move>),
    /// The meter ran on.
    Metered(Box<Reading>),
    /// The hold was filled up.
    Held {
        /// The lease.
        lease: LeaseId,
    },
    /// The renter's money lasts for less than it should, or for long enough again.
    Warned {
        /// The lease.
        lease: LeaseId,
        /// Whether it is low now.
        low: bool,
    },
    /// The renter gave a command; what comes of it are the next events, if anything.
    Commanded(Box<Kept<LeaseCommand>>),
    /// An order waits: for a price, or for a free resource.
    Rested(Box<Rest>),
    /// An order that waited does so no more, and became no lease.
    Lapsed {
        /// The lease that it would have become.
        lease: LeaseId,
        /// Why.
        cause: EndCause,
    },
    /// Those who were in the way of a lease have gone: its host is asked now.
    Cleared {
        /// The lease.
        lease: LeaseId,
        /// The host has to accept by then.
        accept_by: Timestamp,
        /// The container has to run by then.
        start_by: Timestamp,
    },
    /// The bid of an order that waits.
    RestRebid {
        /// The lease that it may become.
        lease: LeaseId,
        /// For each GPU and hour.
        bid: PricePerHour,
    },
    /// The lease's terms changed at this moment: its bid, or its kind.
    Changed(Box<Terms>),
    /// The operator moved a host's money, or a payout of it stands otherwise now.
    Paid {
        /// Its id.
        id: PaymentId,
        /// What it is now.
        payment: Box<Payment>,
    },
    /// What a host earned of a lease up to the mark is free.
    Matured {
        /// The lease.
        lease: LeaseId,
        /// Up to when.
        mark: Mark,
    },
    /// A host may take no leases from here on, or may again.
    Suspended {
        /// Which.
        host: HostId,
        /// Why; it may again without.
        why: Option<Note>,
    },
    /// When hosts were heard since the last line about each of them.
    Heard(Heard),
    /// The broker or its network was away: what happened then is put down to nobody.
    Away(Interval),
    /// The broker gave a renter of its own money for the order of a proof.
    Funded {
        /// The order.
        order: OrderId,
        /// The renter.
        renter: RenterId,
        /// How much.
        amount: MicroUsd,
    },
    /// The broker took back what was left of it.
    Reclaimed {
        /// The order.
        order: OrderId,
        /// The renter.
        renter: RenterId,
        /// How much.
        amount: MicroUsd,
    },
    /// The broker found something out about a host's hardware.
    Proved(Box<Kept<Verdict>>),
}

/// An order that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rest {
    /// The lease that it may become.
    pub lease: LeaseId,
    /// The renter's order.
    pub order: Kept<Order>,
    /// The broker's number of the order: earlier is smaller.
    pub number: u64,
    /// When it stops waiting.
    pub until: Timestamp,
}

/// The terms of a lease from one moment on, and its meter there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The lease.
    pub lease: LeaseId,
    /// Its kind.
    pub kind: ContractKind,
    /// Its bid for each GPU and hour, if it is interruptible.
    pub bid: Option<PricePerHour>,
    /// What it rather pays than be pushed out.
    pub fallback: Option<PricePerHour>,
    /// Its prices.
    pub prices: Prices,
    /// Its rates.
    pub rates: Rates,
    /// Its prepaid term.
    pub term: Option<Term>,
    /// Its meter here.
    pub meter: Meter,
    /// What it was charged from its start to here.
    pub charged: Amounts,
}

/// A match, with all that is frozen for the life of the lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// The renter's order.
    pub order: Kept<Order>,
    /// The broker's award: prices, fee, host, number. Signed when the host is told of it.
    pub award: Draft<Award>,
    /// What is leased.
    pub share: Share,
    /// Which slice of a GPU that is; nothing when it is whole.
    pub partition: Option<Partition>,
    /// The bid for each GPU and hour, if it is interruptible.
    pub bid: Option<PricePerHour>,
    /// What it rather pays on demand than be pushed out, if it is interruptible.
    pub fallback: Option<PricePerHour>,
    /// The term that was prepaid, if it is reserved.
    pub term: Option<Term>,
    /// When those who are in its way have gone at the latest, if anybody is.
    pub clear_by: Option<Timestamp>,
    /// What the host promised and bounded.
    pub limits: Limits,
    /// Longest time to run: the order's, or the offer's when that is shorter or the only one.
    pub duration_max: Option<Seconds>,
    /// The host has to accept by then.
    pub accept_by: Timestamp,
    /// The container has to run by then.
    pub start_by: Timestamp,
}

/// A step from one state of a lease to another, with the meter and the charge at that moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// The lease.
    pub lease: LeaseId,
    /// Its state from here on.
    pub to: State,
    /// Its meter here.
    pub meter: Meter,
    /// What it was charged from its start to here.
    pub charged: Amounts,
    /// Its rates from here on, when a stretch was waived.
    pub rates: Option<Rates>,
    /// Its prepaid term here.
    pub term: Option<Term>,
}

/// A meter and what it came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The lease.
    pub lease: LeaseId,
    /// Its meter.
    pub meter: Meter,
    /// What it was charged from its start to here.
    pub charged: Amounts,
    /// Its prepaid term here.
    pub term: Option<Term>,
}

impl Event {
    /// What moved no money.
    #[must_use]
    pub const fn bare(at: Timestamp, fact: Fact) -> Self {
        Self {
            at,
            fact,
            entries: Vec::new(),
        }
    }

    /// The lease that it is about.
    #[must_use]
    pub fn lease(&self) -> Option<LeaseId> {
        match &self.fact {
            Fact::Deposited { .. }
            | Fact::Suspended { .. }
            | Fact::Heard(_)
            | Fact::Away(_)
            | Fact::Funded { .. }
            | Fact::Reclaimed { .. }
            | Fact::Proved(_) => None,
            Fact::Paid { payment, .. } => match payment.what {
                PaymentKind::Refund(lease) => Some(lease),
                PaymentKind::Bond(_)
                | PaymentKind::BondReturned(_)
                | PaymentKind::Payout(..)
                | PaymentKind::DepositReversed(_) => None,
            },
            Fact::Matured { lease, .. } => Some(*lease),
            Fact::Matched(matched) => Some(matched.award.body().lease),
            Fact::Granted { lease, .. } | Fact::Held { lease } | Fact::Warned { lease, .. } => {
                Some(*lease)
            }
            Fact::Moved(moved) => Some(moved.lease),
            Fact::Metered(reading) => Some(reading.lease),
            Fact::Commanded(command) => Some(command.body().lease),
            Fact::Rested(rest) => Some(rest.lease),
            Fact::Lapsed { lease, .. }
            | Fact::Cleared { lease, .. }
            | Fact::RestRebid { lease, .. } => Some(*lease),
            Fact::Changed(terms) => Some(terms.lease),
        }
    }

    /// What happened in one word, as the journal's column says it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match &self.fact {
            Fact::Deposited { .. } => "deposited",
            Fact::Matched(_) => "matched",
            Fact::Granted { .. } => "granted",
            Fact::Moved(moved) => moved.to.word(),
            Fact::Metered(_) => "metered",
            Fact::Held { .. } => "held",
            Fact::Warned { .. } => "warned",
            Fact::Commanded(_) => "commanded",
            Fact::Rested(_) => "rested",
            Fact::Lapsed { .. } => "lapsed",
            Fact::Cleared { .. } => "cleared",
            Fact::RestRebid { .. } => "rebid",
            Fact::Changed(_) => "changed",
            Fact::Paid { payment, .. } => match payment.what {
                PaymentKind::Bond(_) => "bond",
                PaymentKind::BondReturned(_) => "bond-returned",
                PaymentKind::Refund(_) => "refunded",
                PaymentKind::DepositReversed(_) => "deposit-reversed",
                PaymentKind::Payout(_, Payout::Open) => "payout",
                PaymentKind::Payout(_, Payout::Paid(_)) => "paid-out",
                PaymentKind::Payout(_, Payout::Dropped(_)) => "payout-dropped",
            },
            Fact::Matured { .. } => "matured",
            Fact::Suspended { .. } => "suspended",
            Fact::Heard(_) => "heard",
            Fact::Away(_) => "away",
            Fact::Funded { .. } => "funded",
            Fact::Reclaimed { .. } => "reclaimed",
            Fact::Proved(_) => "proved",
        }
    }
}

/// A statement that was verified when it came and is stored as it was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept<T>(Verified<T>);

impl<T> From<Verified<T>> for Kept<T> {
    fn from(verified: Verified<T>) -> Self {
        Self(verified)
    }
}

impl<T> Deref for Kept<T> {
    type Target = Verified<T>;

    fn deref(&self) -> &Verified<T> {
        &self.0
    }
}

impl<T> Serialize for Kept<T>
where
    Signed<T>: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.signed().serialize(serializer)
    }
}

impl<'de, T: Statement> Deserialize<'de> for Kept<T>
where
    Signed<T>: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Signed::deserialize(deserializer)?
            .reopen()
            .map(Self)
            .map_err(D::Error::custom)
    }
}
