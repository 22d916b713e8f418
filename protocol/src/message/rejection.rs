//! Why a broker refuses: an answer like any other, with what the asker has to know.

use crate::bounded::Text;
use crate::lease::Phase;
use crate::order::LeaseName;
use crate::terms::ContractKind;
use crate::units::{Bytes, MicroUsd, PricePerHour, Seconds, Timestamp};
use serde::{Deserialize, Serialize};

/// Why a broker refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Rejection {
    /// The message cannot be read.
    #[error("the broker could not read the message: {0}")]
    Malformed(Text<128>),
    /// The signature, its form or its key is wrong.
    #[error("the broker refused the signature: {0}")]
    BadSignature(Text<128>),
    /// Too old, or from the future.
    #[error("the message is not valid now ({detail}); the broker's clock says {now:?}")]
    NotNow {
        /// What was wrong.
        detail: Text<128>,
        /// The broker's clock.
        now: Timestamp,
    },
    /// Made for another broker.
    #[error("the message is for another broker")]
    WrongAudience,
    /// Signed by another key than the connection's.
    #[error("the message was signed by another key than the one that sent it")]
    NotTheSigner,
    /// A message id that was used before, for something else.
    #[error("the message was seen before")]
    Replayed,
    /// An order id that was used before, for another order.
    #[error("this order id was used for another order")]
    IdReused,
    /// There is no such offer now.
    #[error("the offer is gone")]
    OfferGone,
    /// The offer's terms are not the ones the order agreed to.
    #[error("the offer's terms changed")]
    OfferChanged,
    /// Another lease has it.
    #[error("the offer was rented by someone else")]
    OfferTaken,
    /// The host is not heard.
    #[error("the offer's host does not answer")]
    HostGone,
    /// It costs more than the order allows.
    #[error("the price is {price} an hour all in; the order allows {allowed}")]
    PriceAboveLimit {
        /// All in, with the asked disk.
        price: MicroUsd,
        /// The order's limit.
        allowed: MicroUsd,
    },
    /// The balance does not cover the hold.
    #[error("{needed} must be held to start; {available} is available")]
    NotEnoughMoney {
        /// What there is.
        available: MicroUsd,
        /// What is needed.
        needed: MicroUsd,
    },
    /// More disk than the offer allows.
    #[error("{asked} of disk were asked; the offer allows {allowed}")]
    DiskTooLarge {
        /// Asked for.
        asked: Bytes,
        /// Allowed.
        allowed: Bytes,
    },
    /// Longer than the offer allows.
    #[error("a lease of {asked} was asked; the offer allows {allowed}")]
    TooLong {
        /// Asked for.
        asked: Seconds,
        /// Allowed.
        allowed: Seconds,
    },
    /// A value that no order may have.
    #[error("{field}: {problem}")]
    BadValue {
        /// Which field of the order.
        field: Text<32>,
        /// What is wrong with it.
        problem: Text<128>,
    },
    /// The renter has an open lease of that name.
    #[error("you have an open lease named {0}")]
    NameTaken(LeaseName),
    /// There is no such lease of the asker's.
    #[error("there is no such lease of yours")]
    UnknownLease,
    /// The lease is in a phase in which that cannot be done.
    #[error("the lease is {}; that cannot be done now", .0.word())]
    WrongPhase(Phase),
    /// The resource of a stopped lease is held by another one now.
    #[error("the machine is rented by someone else now")]
    ResourceTaken,
    /// A limit on how much one party may have or ask.
    #[error("{0}")]
    TooMany(Text<128>),
    /// No offer matches an order for whichever is best.
    #[error("no offer that matches is free")]
    NothingMatches,
    /// A bid below what can win.
    #[error("{bid} an hour and GPU was bid; at least {needed} is needed: {reason}")]
    BidTooLow {
        /// What was bid.
        bid: PricePerHour,
        /// What is needed.
        needed: PricePerHour,
        /// Why that much.
        reason: Text<128>,
    },
    /// The offer is not sold that way.
    #[error("the offer is not sold that way: {0}")]
    NotSold(Text<128>),
    /// A contract cannot become one of that kind.
    #[error("a lease that is {from} cannot become {to}: {reason}", from = from.word(), to = to.word())]
    CannotConvert {
        /// What it is.
        from: ContractKind,
        /// What was asked for.
        to: ContractKind,
        /// Why not.
        reason: Text<128>,
    },
    /// A host's own machine.
    #[error("this machine is your own: the renter's key is its host's")]
    OwnMachine,
    /// The host may not take leases.
    #[error("the broker suspended this host: {0}")]
    HostSuspended(Text<128>),
    /// The broker is stopping.
    #[error("the broker is shutting down: try again in a moment")]
    ShuttingDown,
    /// The broker has more to do than it takes on.
    #[error("the broker is busy: try again in a moment")]
    Busy,
    /// A prepaid term costs more than the renter agreed to.
    #[error("the term costs {price} in advance; {allowed} is agreed to")]
    PrepayAboveLimit {
        /// What is paid in advance.
        price: MicroUsd,
        /// The renter's limit.
        allowed: MicroUsd,
    },
}
