//! Where an order gets its place, at what price, and who has to go for it.
//!
//! One offer is asked after the other, and the best is taken: one where nobody has to go, then the one where
//! those who go pay least, then the cheapest all in, the most reliable, the longest listed. Must not change
//! anything, and must not walk through the orders that wait: `matching` does.

mod reason;

use self::reason::{gone, nearer};
use crate::core::book::Listing;
use crate::core::capacity::{Claim, Misfit, Taken};
use crate::core::charge;
use crate::core::desk::Desk;
use crate::core::event::Event;
use crate::core::lease::{Lease, Papers};
use crate::core::ledger::Account;
use crate::core::order::bad_value;
use protocol::bounded::Text;
use protocol::filter::Facts;
use protocol::ids::{HostId, LeaseId, OfferId, PublicKey, RenterId};
use protocol::lease::GOAL_LEASES_MAX;
use protocol::message::Rejection;
use protocol::offer::{Offer, Part};
use protocol::order::{Order, Target};
use protocol::terms::{Deal, Need, Prices};
use protocol::units::{MicroUsd, PricePerHour, Seconds, Timestamp};
use protocol::usage::Term;
use std::cmp::Reverse;

/// Most bytes of signed orders and awards of one host: a goal carries all of them in one message, and
/// what stands around them needs room too.
const GOAL_BYTES_MAX: usize = 192 * 1024;
/// What an award takes of a goal.
const AWARD_BYTES: usize = 2048;

/// An order that looks for a place: a new one, or one that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seeker<'a> {
    /// The lease that it would become.
    pub(super) lease: LeaseId,
    pub(super) renter: RenterId,
    pub(super) order: &'a Order,
    /// How many bytes it has, signed.
    pub(super) size: usize,
    /// The order's, or what its renter changed it to.
    pub(super) deal: Deal,
    /// Whether it waits already, and the terms it saw are those of another day.
    pub(super) has_waited: bool,
}

/// A place that an order can have.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub(super) listing: &'a Listing,
    pub(super) part: Part,
    /// Of all its GPUs together.
    pub(super) prices: Prices,
    /// Who has to go.
    pub(super) victims: Vec<LeaseId>,
    /// With which those who would have had to rather pay what the host asks.
    pub(super) converts: Vec<Event>,
    /// The term that is bought with it.
    pub(super) term: Option<Term>,
    /// What has to be held to begin.
    pub(super) hold: MicroUsd,
}

impl Desk {
    /// The best place for an order.
    ///
    /// # Errors
    /// Why there is none: for an order that names an offer the offer's reason.
    pub(super) fn place(&self, now: Timestamp, seeker: &Seeker<'_>) -> Result<Place<'_>, Misfit> {
        match &seeker.order.target {
            Target::Offer { offer, terms } => {
                let listing = self.book.get(*offer, self.wall(now));
                let listing = listing.ok_or_else(|| gone(seeker))?;
                let is_as_seen = listing.terms() == Some(*terms);
                if !seeker.has_waited && !is_as_seen {
                    return Err(Misfit::never(Rejection::OfferChanged));
                }
                self.place_at(now, seeker, listing)
            }
            Target::Any(filter) => {
                let need = Need::disk(seeker.order.disk);
                let gpus = seeker.order.gpus;
                let listings = self.book.matching(filter, need, gpus, self.wall(now));
                self.best_of(now, seeker, listings)
            }
        }
    }

    fn best_of<'a>(
        &'a self,
        now: Timestamp,
        seeker: &Seeker<'_>,
        listings: Vec<&'a Listing>,
    ) -> Result<Place<'a>, Misfit> {
        let mut best: Option<(PlaceRank, Place<'a>)> = None;
        let mut why = Misfit::not_now(Rejection::NothingMatches);
        for (index, listing) in listings.into_iter().enumerate() {
            match self.place_at(now, seeker, listing) {
                Ok(place) => {
                    let rank = self.rank(seeker.order, &place);
                    if best.as_ref().is_none_or(|(best, _)| rank < *best) {
                        best = Some((rank, place));
                    }
                }
                Err(misfit) => why = nearer(index == 0, why, misfit),
            }
        }
        best.map(|(_, place)| place).ok_or(why)
    }

    fn rank(&self, order: &Order, place: &Place<'_>) -> PlaceRank {
        let pays = place.victims.iter().filter_map(|id| self.market.lease(*id));
        let pays = pays.map(|lease| lease.contract.prices.compute.0).sum();
        let offer = place.listing.offer();
        let facts = place.listing.facts(order.gpus);
        let reliability = facts.map_or(0, Facts::reliability);
        PlaceRank {
            victims: (!place.victims.is_empty(), pays),
            price: place.prices.all_in_hour(Need::disk(order.disk)),
            reliability: Reverse(reliability),
            listed_at: offer.listed_at,
            offer: offer.id,
        }
    }

    /// The place that an order gets of one offer.
    ///
    /// # Errors
    /// Why it gets none.
    pub(super) fn place_at<'a>(
        &'a self,
        now: Timestamp,
        seeker: &Seeker<'_>,
        listing: &'a Listing,
    ) -> Result<Place<'a>, Misfit> {
        let (order, offer) = (seeker.order, listing.offer());
        if PublicKey::from(seeker.renter) == PublicKey::from(listing.host()) {
            return Err(Misfit::never(Rejection::OwnMachine));
        }
        self.check_standing(listing.host())
            .map_err(Misfit::not_now)?;
        if !offer.is_sold_as(order.gpus) {
            let text = format!("not as {} of its GPUs together", order.gpus);
            return Err(Misfit::never(Rejection::NotSold(Text::cut(&text))));
        }
        let (claim, prices) = price_of(&seeker.deal, offer, order)?;
        self.check_duration(now, seeker, offer)?;
        self.check_goal(seeker, listing.host())?;
        let (term, hold) = self.check_money(now, seeker, offer, &prices)?;
        let mut converts = Vec::new();
        loop {
            let taken = self.take(now, listing, order, claim, &leases_of(&converts));
            let Taken { part, victims } = taken.map_err(|misfit| Misfit {
                converts: converts.clone(),
                ..misfit
            })?;
            match self.first_that_pays(now, &victims, &converts) {
                Some(stays) => converts.push(stays),
                // Its own money goes there first.
                None if taken_from(&converts, seeker.renter) > MicroUsd::ZERO => {
                    return Err(Misfit {
                        converts,
                        ..Misfit::not_now(Rejection::OfferTaken)
                    });
                }
                None => {
                    return Ok(Place {
                        listing,
                        part,
                        prices,
                        victims,
                        converts,
                        term,
                        hold,
                    });
                }
            }
        }
    }

    /// The term that an order buys of an offer, and what has to be held for the rest of it: nobody makes others
    /// go, or pay more, who could not pay.
    fn check_money(
        &self,
        now: Timestamp,
        seeker: &Seeker<'_>,
        offer: &Offer,
        prices: &Prices,
    ) -> Result<(Option<Term>, MicroUsd), Misfit> {
        let order = seeker.order;
        let term = match seeker.deal {
            Deal::Reserved { days, prepay_max } => {
                let term = self.term_of(now, offer, order.gpus, days, prepay_max);
                Some(term.map_err(Misfit::never)?)
            }
            Deal::OnDemand | Deal::Bid { .. } | Deal::Interruptible { .. } => None,
        };
        let (rate, prepaid) = match &term {
            Some(term) => (PricePerHour(0), term.prepaid),
            None => (prices.compute, MicroUsd::ZERO),
        };
        if prepaid > order.budget {
            let problem = "the term alone costs more";
            return Err(Misfit::never(bad_value("budget", problem)));
        }
        let running = charge::running_cost(prices, rate, order.disk, self.settings.hold);
        let hold = running.min(order.budget.saturating_sub(prepaid));
        let available = self.market.available(seeker.renter);
        let held = self.market.held(seeker.lease);
        let needed = hold.saturating_add(prepaid).saturating_sub(held);
        if needed > available {
            let rejection = Rejection::NotEnoughMoney { available, needed };
            return Err(if seeker.has_waited {
                Misfit::not_now(rejection)
            } else {
                Misfit::never(rejection)
            });
        }
        Ok((term, hold))
    }

    /// The event with which the first of `victims` that can rather pays what its host asks than go, beside those
    /// that do already.
    pub(super) fn first_that_pays(
        &self,
        now: Timestamp,
        victims: &[LeaseId],
        others: &[Event],
    ) -> Option<Event> {
        let leases = victims.iter().filter_map(|id| self.market.lease(*id));
        leases
            .filter_map(|lease| Some((lease.contract.renter, self.fallen_back(now, lease)?)))
            .find(|(renter, event)| {
                let events = [others, std::slice::from_ref(event)].concat();
                taken_from(&events, *renter) <= self.market.available(*renter)
            })
            .map(|(_, event)| event)
    }

    fn check_duration(
        &self,
        now: Timestamp,
        seeker: &Seeker<'_>,
        offer: &Offer,
    ) -> Result<(), Misfit> {
        let limits = &offer.limits;
        let until = limits
            .until
            .map(|until| Seconds(until.since(self.wall(now)).0 / 1000));
        if until == Some(Seconds(0)) {
            let text = "the date until which its host promised it has come";
            return Err(Misfit::never(Rejection::NotSold(Text::cut(text))));
        }
        let Some(asked) = seeker.order.duration_max else {
            return Ok(());
        };
        let allowed = limits.duration_max.into_iter().chain(until).min();
        if let Some(allowed) = allowed.filter(|allowed| asked > *allowed) {
            return Err(Misfit::never(Rejection::TooLong { asked, allowed }));
        }
        if asked < limits.duration_min {
            let problem = format!("this offer is leased for {} at least", limits.duration_min);
            return Err(Misfit::never(Rejection::BadValue {
                field: Text::cut("duration"),
                problem: Text::cut(&problem),
            }));
        }
        Ok(())
    }

    /// Whether the host's next goal has room for one more lease.
    fn check_goal(&self, seeker: &Seeker<'_>, host: HostId) -> Result<(), Misfit> {
        let (mut leases, mut size) = (1, seeker.size + AWARD_BYTES);
        for lease in self.market.live_leases_of(host.into()) {
            leases += 1;
            size += papers_size(lease);
        }
        if leases > GOAL_LEASES_MAX || size > GOAL_BYTES_MAX {
            let text = "the host has as many leases, or as large ones, as it can be told of";
            return Err(Misfit::not_now(Rejection::TooMany(Text::cut(text))));
        }
        Ok(())
    }
}

/// The leases that events are about.
pub(super) fn leases_of(events: &[Event]) -> Vec<LeaseId> {
    events.iter().filter_map(Event::lease).collect()
}

/// What events that have not happened yet take of a renter's available money.
pub(super) fn taken_from(events: &[Event], renter: RenterId) -> MicroUsd {
    let account = Account::RenterAvailable(renter);
    let entries = events.iter().flat_map(|event| &event.entries);
    let taken = entries
        .filter(|entry| entry.account == account)
        .fold(0_i64, |sum, entry| sum.saturating_add(entry.amount.max(0)));
    MicroUsd(taken)
}

/// What places are compared by; less is better.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PlaceRank {
    /// Whether somebody has to go, and what those pay.
    victims: (bool, u64),
    price: MicroUsd,
    reliability: Reverse<u32>,
    listed_at: Timestamp,
    offer: OfferId,
}

/// With what claim and at which prices an order would have `order.gpus` GPUs of an offer.
fn price_of(deal: &Deal, offer: &Offer, order: &Order) -> Result<(Claim, Prices), Misfit> {
    let ask = offer.prices.compute;
    let not_sold = |text| Misfit::never(Rejection::NotSold(Text::cut(text)));
    let (claim, each) = match *deal {
        Deal::OnDemand => (Claim::Firm, ask),
        Deal::Bid { limit, .. } if limit < ask => {
            return Err(Misfit::not_now(bid_too_low(
                limit,
                ask,
                "the host asks that",
            )));
        }
        Deal::Bid { .. } => (Claim::Firm, ask),
        Deal::Interruptible { bid, .. } => {
            let floor = offer.sales.floor;
            let floor = floor.ok_or_else(|| not_sold("it has no interruptible leases"))?;
            if bid < floor {
                let reason = "the host takes no lower bid";
                return Err(Misfit::never(bid_too_low(bid, floor, reason)));
            }
            (Claim::Bid(bid), bid)
        }
        // What a term costs is bounded by what the renter agreed to pay in advance.
        Deal::Reserved { .. } => (Claim::Firm, ask),
    };
    let each = Prices {
        compute: each,
        ..offer.prices
    };
    let prices = each.of_gpus(order.gpus);
    let price = prices.all_in_hour(Need::disk(order.disk));
    let allowed = order.price_max.amount();
    if price > allowed && !matches!(deal, Deal::Reserved { .. }) {
        let rejection = Rejection::PriceAboveLimit { price, allowed };
        // The host may come down.
        return Err(match deal {
            Deal::Bid { .. } => Misfit::not_now(rejection),
            Deal::OnDemand | Deal::Interruptible { .. } | Deal::Reserved { .. } => {
                Misfit::never(rejection)
            }
        });
    }
    Ok((claim, prices))
}

/// That a bid is not enough.
pub(super) fn bid_too_low(bid: PricePerHour, needed: PricePerHour, reason: &str) -> Rejection {
    Rejection::BidTooLow {
        bid,
        needed,
        reason: Text::cut(reason),
    }
}

/// How many bytes of a goal a lease's statements take.
pub(super) fn papers_size(lease: &Lease) -> usize {
    match &lease.papers {
        Papers::Whole { order, award } => order.signed().size() + award.size(),
        Papers::Filed { .. } => 0,
    }
}
