//! The kinds of contract, and what a renter agrees to with each.
//!
//! Must not know what a kind does to anybody: the broker's core does.

use crate::units::{MicroUsd, PricePerHour, Seconds, Timestamp};
use serde::{Deserialize, Serialize};

/// Shortest notice that an offer may give an interruptible lease.
pub const GRACE_MIN: Seconds = Seconds(30);
/// Longest notice.
pub const GRACE_MAX: Seconds = Seconds(600);
/// Least by which a bid must exceed the one it pushes out, for each GPU and hour; one hundredth of that one
/// when that is more.
pub const BID_STEP_MIN: PricePerHour = PricePerHour(1000);

/// How a lease is contracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ContractKind {
    /// At the host's price until either a limit or the renter ends it; all terms are frozen.
    OnDemand,
    /// On demand, bought by a bid that rested until the host's price came down to it.
    Bid,
    /// At the renter's own bid, for as long as nobody with a better claim wants the resource.
    Interruptible,
    /// For a term that was paid in advance.
    Reserved,
}

impl ContractKind {
    /// The kind as commands and tables say it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Bid => "bid",
            Self::Interruptible => "interruptible",
            Self::Reserved => "reserved",
        }
    }

    /// Whether nobody can push it out.
    #[must_use]
    pub const fn is_firm(self) -> bool {
        !matches!(self, Self::Interruptible)
    }
}

/// What a renter agrees to pay, and with which claim. Prices are for each GPU and hour, or for the machine
/// where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deal {
    /// The host's price, now or not at all.
    OnDemand,
    /// The host's price, as soon as it is at most `limit`.
    Bid {
        /// Most to pay.
        limit: PricePerHour,
        /// When it stops waiting.
        until: Timestamp,
    },
    /// The renter's own price, for as long as it wins.
    Interruptible {
        /// What is paid while it runs.
        bid: PricePerHour,
        /// When it stops waiting for its first start.
        until: Timestamp,
        /// Rather than be pushed out, it becomes a lease on demand while the host's price is at most this.
        fallback: Option<PricePerHour>,
    },
    /// A term, paid in advance.
    Reserved {
        /// The term.
        days: u16,
        /// Most to pay for it; the order is refused above it.
        prepay_max: MicroUsd,
    },
}

impl Deal {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> ContractKind {
        match self {
            Self::OnDemand => ContractKind::OnDemand,
            Self::Bid { .. } => ContractKind::Bid,
            Self::Interruptible { .. } => ContractKind::Interruptible,
            Self::Reserved { .. } => ContractKind::Reserved,
        }
    }
}
