//! What somebody can have of an offer now, and for how much: what searches show, and what would win for an order
//! that waits.
//!
//! Must not change anything.

use crate::core::auction;
use crate::core::book::Listing;
use crate::core::capacity::{Claim, Room, units};
use crate::core::desk::Desk;
use crate::core::lease::{Lease, State};
use crate::core::rest::Resting;
use protocol::order::Target;
use protocol::terms::{ContractKind, Need, reserved};
use protocol::units::{PricePerHour, Timestamp};

/// The term whose price stands for all in a search.
const TERM_SHOWN_DAYS: u16 = 30;

/// What somebody can have now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Available {
    /// What a GPU and hour costs in a lease of the kind that was asked for.
    pub price: PricePerHour,
    /// Whether somebody has to go for it.
    pub pushes_out: bool,
}

impl Desk {
    /// What `gpus` GPUs of an offer cost in a lease of that kind that begins now; nothing when it cannot.
    pub(super) fn available(
        &self,
        now: Timestamp,
        kind: ContractKind,
        listing: &Listing,
        gpus: u16,
    ) -> Option<Available> {
        let (host, offer) = (listing.host(), listing.offer());
        if self.market.suspended(host).is_some() {
            return None;
        }
        let claim = match kind {
            ContractKind::Interruptible => Claim::Bid(PricePerHour(u64::MAX)),
            ContractKind::OnDemand | ContractKind::Bid | ContractKind::Reserved => Claim::Firm,
        };
        let ask = offer.prices.compute;
        let price = match kind {
            ContractKind::OnDemand | ContractKind::Bid => ask,
            ContractKind::Interruptible => offer.sales.floor?,
            ContractKind::Reserved => {
                reserved::quote(ask, TERM_SHOWN_DAYS, offer.sales.discount_max?).hourly
            }
        };
        let wanted = units(gpus, offer);
        let has_leases = self.market.live_leases_of(host.into()).next().is_some();
        if !has_leases && self.book.withheld(host).is_empty() {
            let pushes_out = false;
            return Some(Available { price, pushes_out });
        }
        let room = self.room(now, host, &offer.share.resources, claim, &[]);
        let missing = room.missing(wanted)?;
        let price = match claim {
            Claim::Firm => auction::preempted(&room.victims, missing).map(|_| price)?,
            Claim::Bid(_) => price.max(bid_to_win(&room, missing)?),
        };
        Some(Available {
            price,
            pushes_out: missing > 0,
        })
    }

    /// What an order that waits would have to bid for a GPU and hour to be served now; nothing when no bid is
    /// enough.
    pub(super) fn rest_to_win(&self, now: Timestamp, rest: &Resting) -> Option<PricePerHour> {
        let order = rest.order.body();
        let wall = self.wall(now);
        let listings = match &order.target {
            Target::Offer { offer, .. } => self.book.get(*offer, wall).into_iter().collect(),
            Target::Any(filter) => {
                let need = Need::disk(order.disk);
                self.book.matching(filter, need, order.gpus, wall)
            }
        };
        let kind = rest.kind();
        let prices = listings
            .into_iter()
            .filter(|listing| listing.offer().is_sold_as(order.gpus))
            .filter_map(|listing| self.available(now, kind, listing, order.gpus));
        prices.map(|available| available.price).min()
    }

    /// The same of a lease that was pushed out.
    pub(super) fn lease_to_win(&self, now: Timestamp, lease: &Lease) -> Option<PricePerHour> {
        let contract = &lease.contract;
        let waits =
            matches!(&lease.state, State::Paused { cause, .. } if cause.resumes_by_itself());
        let bid = contract.bid.filter(|_| waits)?;
        let resources = &contract.share.resources;
        let claim = Claim::Bid(PricePerHour(u64::MAX));
        let room = self.room(now, contract.host, resources, claim, &[]);
        let missing = room.missing(resources.len())?;
        // On free resources any bid runs: its own does.
        if missing == 0 {
            return Some(bid);
        }
        bid_to_win(&room, missing)
    }
}

fn bid_to_win(room: &Room, missing: u16) -> Option<PricePerHour> {
    if missing == 0 {
        return Some(PricePerHour(0));
    }
    auction::to_win(&room.victims, missing)
}
