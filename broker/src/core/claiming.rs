//! What an order becomes: a lease at its place, or an order that waits.
//!
//! Must not look for the place, and must not change anything.

use crate::core::capacity::Claim;
use crate::core::charge;
use crate::core::desk::Desk;
use crate::core::event::{Event, Fact, Match, Rest};
use crate::core::ledger::{Account, Transfer};
use crate::core::placing::{Place, Seeker};
use protocol::bounded::Text;
use protocol::ids::{Digest, MessageId};
use protocol::lease::Award;
use protocol::message::Rejection;
use protocol::order::{Order, Target};
use protocol::signed::{Draft, Envelope, VALIDITY_MAX, Verified};
use protocol::terms::{Deal, Prices};
use protocol::units::{MicroUsd, PricePerGbMonth, PricePerHour, Timestamp};

impl Desk {
    /// The events that give an order its place: those who have to go do, and the lease begins. What was held
    /// while it waited is fitted to what it costs there.
    ///
    /// # Errors
    /// When there is not the money for it.
    pub(super) fn matched(
        &self,
        now: Timestamp,
        seeker: &Seeker<'_>,
        order: &Verified<Order>,
        number: u64,
        place: &Place<'_>,
    ) -> Result<Vec<Event>, Rejection> {
        let offer = place.listing.offer();
        let transfer = self.funded(seeker, place)?;
        let claim = claim_of(&seeker.deal);
        let (mut events, clear_by) = self.make_room(now, claim, &place.victims, &place.converts);
        let award = self.award(now, seeker, order, number, place)?;
        let (bid, fallback) = match seeker.deal {
            Deal::Interruptible { bid, fallback, .. } => (Some(bid), fallback),
            Deal::OnDemand | Deal::Bid { .. } | Deal::Reserved { .. } => (None, None),
        };
        let start_by = now.after(offer.limits.start_within.millis());
        let duration_max = match (seeker.order.duration_max, offer.limits.duration_max) {
            (Some(asked), Some(allowed)) => Some(asked.min(allowed)),
            (asked, allowed) => asked.or(allowed),
        };
        let matched = Match {
            share: offer.share.part(&place.part),
            partition: offer.partition.clone(),
            order: order.clone().into(),
            award,
            bid,
            fallback,
            term: place.term,
            clear_by,
            limits: offer.limits,
            duration_max,
            accept_by: now
                .after(self.settings.accept_within.millis())
                .min(start_by),
            start_by,
        };
        events.push(Event {
            at: now,
            fact: Fact::Matched(Box::new(matched)),
            entries: transfer.entries(),
        });
        Ok(events)
    }

    /// The moves of money with which a lease begins.
    fn funded(&self, seeker: &Seeker<'_>, place: &Place<'_>) -> Result<Transfer, Rejection> {
        let prepaid = place.term.map_or(MicroUsd::ZERO, |term| term.prepaid);
        let more = place.hold.saturating_sub(self.market.held(seeker.lease));
        let available = self.market.available(seeker.renter);
        let needed = more.saturating_add(prepaid);
        if needed > available {
            return Err(Rejection::NotEnoughMoney { available, needed });
        }
        let free = Account::RenterAvailable(seeker.renter);
        let locked = Account::RenterLocked(seeker.lease);
        Ok(Transfer::default().moving(free, locked, more).moving(
            free,
            Account::Prepaid(seeker.lease),
            prepaid,
        ))
    }

    fn award(
        &self,
        now: Timestamp,
        seeker: &Seeker<'_>,
        order: &Verified<Order>,
        number: u64,
        place: &Place<'_>,
    ) -> Result<Draft<Award>, Rejection> {
        let (lease, listing) = (seeker.lease, place.listing);
        let offer = listing.offer();
        let award = Award {
            lease,
            order: order.digest(),
            offer: (offer.id, listing.terms().unwrap_or(Digest::of(&[]))),
            kind: seeker.deal.kind(),
            part: place.part.clone(),
            renter: seeker.renter,
            host: listing.host(),
            prices: place.prices,
            fee: self.settings.fee,
            number,
            matched_at: now,
        };
        let envelope = Envelope {
            audience: listing.host().into(),
            // One award a lease: its id is as unique as a random one.
            message_id: MessageId::from_bytes(*lease.as_bytes()),
            issued: self.wall(now),
            validity: VALIDITY_MAX,
        };
        Draft::new(award, self.market.broker().into(), envelope)
            .map_err(|error| Rejection::Malformed(Text::cut(&error.to_string())))
    }

    /// The event with which an order begins to wait, with an hour of its bid held.
    ///
    /// # Errors
    /// When there is not the money for that, or more orders wait than can.
    pub(super) fn rested(
        &self,
        now: Timestamp,
        seeker: &Seeker<'_>,
        order: Verified<Order>,
        until: Timestamp,
    ) -> Result<Event, Rejection> {
        let of_renter = self.market.rests_of(seeker.renter).count();
        if of_renter >= WAITING_OF_RENTER_MAX || self.waiting.len() >= WAITING_MAX {
            let text = "as many orders wait as this broker lets wait";
            return Err(Rejection::TooMany(Text::cut(text)));
        }
        let hold = self.hold_to_wait(now, seeker.order, &seeker.deal);
        let available = self.market.available(seeker.renter);
        if hold > available {
            let needed = hold;
            return Err(Rejection::NotEnoughMoney { available, needed });
        }
        let free = Account::RenterAvailable(seeker.renter);
        let locked = Account::RenterLocked(seeker.lease);
        let rest = Rest {
            lease: seeker.lease,
            order: order.into(),
            number: self.market.last_number.saturating_add(1),
            until,
        };
        Ok(Event {
            at: now,
            fact: Fact::Rested(Box::new(rest)),
            entries: Transfer::default().moving(free, locked, hold).entries(),
        })
    }

    /// What is held for an order that waits: an hour of its bid for all GPUs, and of its disk at the offer that
    /// it names; never more than it may cost.
    ///
    /// An order for any offer does not say what its disk will cost: that is asked for when it is served.
    pub(super) fn hold_to_wait(&self, now: Timestamp, order: &Order, deal: &Deal) -> MicroUsd {
        let bid = match *deal {
            Deal::Bid { limit, .. } => limit,
            Deal::Interruptible { bid, .. } => bid,
            // Nothing of these kinds waits.
            Deal::OnDemand | Deal::Reserved { .. } => PricePerHour(0),
        };
        let storage = match &order.target {
            Target::Offer { offer, .. } => {
                let listing = self.book.get(*offer, self.wall(now));
                listing.map_or(PricePerGbMonth(0), |it| it.offer().prices.storage)
            }
            Target::Any(_) => PricePerGbMonth(0),
        };
        let each = Prices {
            compute: bid,
            storage,
            ..Prices::default()
        };
        let prices = each.of_gpus(order.gpus);
        let most = order.price_max.amount().min(order.budget);
        charge::running_cost(&prices, prices.compute, order.disk, self.settings.hold).min(most)
    }
}

/// Most orders of one renter that wait.
const WAITING_OF_RENTER_MAX: usize = 256;
/// Most orders that wait, of all renters together: some 4 kB each.
const WAITING_MAX: usize = 250_000;

/// With which claim a deal comes.
pub(super) fn claim_of(deal: &Deal) -> Claim {
    match *deal {
        Deal::Interruptible { bid, .. } => Claim::Bid(bid),
        Deal::OnDemand | Deal::Bid { .. } | Deal::Reserved { .. } => Claim::Firm,
    }
}
