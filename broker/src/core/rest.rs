//! Orders that wait: for a host's price to come down to their limit, or for a free resource.
//!
//! They are hard state: what they hold is held, and the order that was acknowledged is not forgotten. The
//! market alone changes them, by applying events; what they may become is decided in `matching`.

use crate::core::event::{Kept, Rest};
use protocol::ids::{LeaseId, RenterId};
use protocol::lease::{EndCause, Phase};
use protocol::order::Order;
use protocol::terms::{ContractKind, Deal};
use protocol::units::{PricePerHour, Timestamp};
use serde::{Deserialize, Serialize};

/// An order that waits, or waited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resting {
    /// The lease that it may become.
    pub lease: LeaseId,
    /// The renter's order.
    pub order: Kept<Order>,
    /// The broker's number of the order: earlier is smaller.
    pub number: u64,
    /// When it came.
    pub at: Timestamp,
    /// When it stops waiting.
    pub until: Timestamp,
    /// Its bid or limit for each GPU and hour now: the order's, or what its renter changed it to.
    pub bid: PricePerHour,
    /// When and why it stopped waiting without becoming a lease.
    pub ended: Option<(Timestamp, EndCause)>,
}

impl Resting {
    /// The order that `rest` says waits, at `at`.
    #[must_use]
    pub fn new(rest: Rest, at: Timestamp) -> Self {
        let Rest {
            lease,
            order,
            number,
            until,
        } = rest;
        let bid = match order.body().deal {
            Deal::Bid { limit, .. } => limit,
            Deal::Interruptible { bid, .. } => bid,
            // Nothing of these kinds waits.
            Deal::OnDemand | Deal::Reserved { .. } => PricePerHour(0),
        };
        Self {
            lease,
            order,
            number,
            at,
            until,
            bid,
            ended: None,
        }
    }

    /// Whose it is.
    #[must_use]
    pub fn renter(&self) -> RenterId {
        self.order.signer().into()
    }

    /// Whether it waits for a price, or for a resource.
    #[must_use]
    pub fn kind(&self) -> ContractKind {
        self.order.body().deal.kind()
    }
}

/// Where an order stands that waits, or waited and became no lease.
pub(super) fn rest_phase(rest: &Resting) -> Phase {
    match &rest.ended {
        Some((_, cause)) => Phase::Closed(cause.clone()),
        None => Phase::Resting,
    }
}
