//! Deciding about other terms: another bid, another kind of contract.
//!
//! A lease keeps its resources whatever it becomes, and its disk's and its traffic's prices stay frozen; what
//! changes is what its GPUs cost and who can push it out. Must not change anything.

use crate::core::desk::Desk;
use crate::core::event::{Event, Fact};
use crate::core::eviction::of_all;
use crate::core::lease::{Lease, State};
use crate::core::ledger::{Account, Transfer};
use crate::core::matching::deal_now;
use crate::core::order::check_bid;
use crate::core::placing::bid_too_low;
use crate::core::rest::Resting;
use crate::core::settle::NewTerms;
use protocol::bounded::Text;
use protocol::ids::OfferId;
use protocol::message::Rejection;
use protocol::order::Target;
use protocol::terms::{ContractKind, Deal, Need, Prices};
use protocol::units::{PricePerHour, Timestamp};

impl Desk {
    /// Changes what an interruptible lease bids. Bidding the same is nothing.
    pub(super) fn set_bid(
        &self,
        now: Timestamp,
        lease: &Lease,
        bid: PricePerHour,
    ) -> Result<Option<Event>, Rejection> {
        let contract = &lease.contract;
        if contract.kind != ContractKind::Interruptible {
            let text = "only a bid that waits and an interruptible lease have a bid";
            return Err(Rejection::NotSold(Text::cut(text)));
        }
        check_bid(bid)?;
        check_phase(lease)?;
        if contract.bid == Some(bid) {
            return Ok(None);
        }
        self.check_floor(now, contract.offer, bid)?;
        let new = NewTerms {
            kind: contract.kind,
            bid: Some(bid),
            fallback: contract.fallback,
            compute: of_all(lease, bid),
            term: None,
        };
        self.changed_terms(now, lease, new, self.meter_at(now, lease))
            .map(Some)
    }

    /// Changes what an order that waits bids, and fits what is held for it.
    pub(super) fn set_waiting_bid(
        &self,
        now: Timestamp,
        rest: &Resting,
        bid: PricePerHour,
    ) -> Result<Option<Event>, Rejection> {
        check_bid(bid)?;
        if bid == rest.bid {
            return Ok(None);
        }
        if let (ContractKind::Interruptible, Target::Offer { offer, .. }) =
            (rest.kind(), &rest.order.body().target)
        {
            self.check_floor(now, *offer, bid)?;
        }
        let deal = deal_now(&Resting {
            bid,
            ..rest.clone()
        });
        let hold = self.hold_to_wait(now, rest.order.body(), &deal);
        let needed = hold.saturating_sub(self.market.held(rest.lease));
        let available = self.market.available(rest.renter());
        if needed > available {
            return Err(Rejection::NotEnoughMoney { available, needed });
        }
        let free = Account::RenterAvailable(rest.renter());
        let locked = Account::RenterLocked(rest.lease);
        let lease = rest.lease;
        Ok(Some(Event {
            at: now,
            fact: Fact::RestRebid { lease, bid },
            entries: Transfer::default().moving(free, locked, needed).entries(),
        }))
    }

    /// Makes a lease one of another kind, for at most `price_max` an hour.
    pub(super) fn convert(
        &self,
        now: Timestamp,
        lease: &Lease,
        deal: Deal,
        price_max: PricePerHour,
    ) -> Result<Option<Event>, Rejection> {
        let contract = &lease.contract;
        let cannot = |reason| Rejection::CannotConvert {
            from: contract.kind,
            to: deal.kind(),
            reason: Text::cut(reason),
        };
        if contract.kind == ContractKind::Reserved {
            return Err(cannot("its term is paid; end it early, or let it run out"));
        }
        check_phase(lease)?;
        let listing = self.book.get(contract.offer, self.wall(now));
        let offer = listing.ok_or(Rejection::OfferGone)?.offer();
        let ask = of_all(lease, offer.prices.compute);
        let firm = NewTerms {
            kind: ContractKind::OnDemand,
            bid: None,
            fallback: None,
            compute: ask,
            term: None,
        };
        let new = match deal {
            Deal::OnDemand if contract.kind == ContractKind::Interruptible => firm,
            Deal::OnDemand => return Err(cannot("its price is frozen as it is")),
            Deal::Bid { .. } => return Err(cannot("a bid is how a lease is bought")),
            Deal::Interruptible { bid, fallback, .. } => {
                check_bid(bid)?;
                self.check_floor(now, contract.offer, bid)?;
                NewTerms {
                    kind: ContractKind::Interruptible,
                    bid: Some(bid),
                    fallback,
                    compute: of_all(lease, bid),
                    term: None,
                }
            }
            Deal::Reserved { days, prepay_max } => {
                let gpus = u16::try_from(contract.share.gpus.len()).unwrap_or(u16::MAX);
                let mut term = self.term_of(now, offer, gpus, days, prepay_max)?;
                // What runs begins its term now; what is stopped, when it runs again.
                if matches!(lease.state, State::Running) {
                    term.begins = Some(now);
                    term.from = self.meter_at(now, lease).usage.stored;
                }
                NewTerms {
                    kind: ContractKind::Reserved,
                    term: Some(term),
                    ..firm
                }
            }
        };
        check_price(lease, &new, price_max)?;
        self.changed_terms(now, lease, new, self.meter_at(now, lease))
            .map(Some)
    }

    /// Whether the host takes that bid, as far as its offer stands.
    fn check_floor(
        &self,
        now: Timestamp,
        offer: OfferId,
        bid: PricePerHour,
    ) -> Result<(), Rejection> {
        let Some(listing) = self.book.get(offer, self.wall(now)) else {
            return Ok(());
        };
        match listing.offer().sales.floor {
            Some(floor) if bid < floor => {
                Err(bid_too_low(bid, floor, "the host takes no lower bid"))
            }
            Some(_) => Ok(()),
            None => {
                let text = "it has no interruptible leases";
                Err(Rejection::NotSold(Text::cut(text)))
            }
        }
    }
}

/// The host may have raised its price since the renter saw it. What a term costs is bounded by what the renter agreed
/// to pay in advance.
fn check_price(lease: &Lease, new: &NewTerms, most: PricePerHour) -> Result<(), Rejection> {
    let prices = Prices {
        compute: new.compute,
        ..lease.contract.prices
    };
    let price = prices.all_in_hour(Need::disk(lease.contract.disk));
    let allowed = most.amount();
    if price > allowed && new.term.is_none() {
        return Err(Rejection::PriceAboveLimit { price, allowed });
    }
    Ok(())
}

/// Terms change while a lease runs or is stopped, not while it begins, ends or goes.
fn check_phase(lease: &Lease) -> Result<(), Rejection> {
    match &lease.state {
        State::Running | State::Paused { .. } => Ok(()),
        State::Clearing { .. }
        | State::Offered { .. }
        | State::Accepted { .. }
        | State::Preparing { .. }
        | State::Noticed { .. }
        | State::Suspect { .. }
        | State::Closing { .. }
        | State::Closed { .. } => Err(Rejection::WrongPhase(lease.state.phase())),
    }
}
