//! Deciding about money that comes in and about orders: what may become a lease, and at what price.
//!
//! Must not change anything.

use crate::core::book::Listing;
use crate::core::charge;
use crate::core::desk::{Decision, Desk, Reply};
use crate::core::event::{Event, Fact, Match};
use crate::core::lease::{Lease, Papers};
use crate::core::ledger::{Account, Transfer};
use crate::core::seen::Sighting;
use protocol::bounded::{List, Text};
use protocol::ids::{DepositId, Digest, HostId, LeaseId, MessageId, RenterId};
use protocol::lease::{Award, GOAL_LEASES_MAX};
use protocol::message::Rejection;
use protocol::offer::{Offer, Part};
use protocol::order::{Order, Target, is_reserved_name};
use protocol::signed::{Envelope, Signed, VALIDITY_MAX, Verified};
use protocol::terms::Need;
use protocol::units::{MicroUsd, Seconds, Timestamp};

/// Most bytes of signed orders and awards of one host: a goal carries all of them in one message, and
/// what stands around them needs room too.
const GOAL_BYTES_MAX: usize = 192 * 1024;

/// A deposit to be decided about.
#[derive(Debug)]
pub(super) struct Deposit {
    pub(super) id: DepositId,
    pub(super) renter: RenterId,
    pub(super) amount: MicroUsd,
    pub(super) memo: Text<128>,
}

impl Desk {
    pub(super) fn decide_deposit(
        &self,
        now: Timestamp,
        deposit: Deposit,
    ) -> Result<Decision, Rejection> {
        let Deposit {
            id,
            renter,
            amount,
            memo,
        } = deposit;
        let reply = Reply::Deposited(renter);
        match self.market.deposits.get(&id) {
            Some(known) if *known == (renter, amount) => {
                return Ok(Decision::answer(Reply::DepositedBefore(renter)));
            }
            Some(_) => return Err(Rejection::IdReused),
            None => {}
        }
        // All balances together are the cash: while that fits, every sum of some of them does.
        let cash = self
            .market
            .ledger()
            .balance(&Account::Cash)
            .checked_add(amount);
        if amount <= MicroUsd::ZERO || cash.is_none() {
            return Err(bad_value(
                "amount",
                "more than nothing, and less than the ledger can hold",
            ));
        }
        let account = Account::RenterAvailable(renter);
        let entries = Transfer::default()
            .moving(Account::Cash, account, amount)
            .entries();
        let fact = Fact::Deposited {
            id,
            renter,
            amount,
            memo,
        };
        Ok(Decision::events(
            vec![Event {
                at: now,
                fact,
                entries,
            }],
            reply,
        ))
    }

    pub(super) fn decide_order(
        &self,
        now: Timestamp,
        order: Verified<Order>,
    ) -> Result<Decision, Rejection> {
        let renter = RenterId::from(order.signer());
        let id = LeaseId::of_order(self.market.broker(), renter, order.body().id);
        if self.market.seen.sighting(&order) == Sighting::Conflict {
            return Err(Rejection::Replayed);
        }
        if let Some(lease) = self.market.lease(id) {
            let same = lease.came_from(order.body());
            return if same {
                Ok(Decision::answer(Reply::Lease(id)))
            } else {
                Err(Rejection::IdReused)
            };
        }
        check_values(order.body())?;
        let listing = self.listed(now, order.body())?;
        self.check_limits(order.body(), listing)?;
        let name = &order.body().name;
        if self.market.named(renter, name).is_some() {
            return Err(Rejection::NameTaken(name.clone()));
        }
        let award = self.award(now, id, &order, listing)?;
        self.check_room(
            listing.host(),
            order.signed().size() + award.signed().size(),
        )?;
        let hold = self.hold_to_start(order.body(), listing);
        let available = self.market.available(renter);
        if available < hold {
            return Err(Rejection::NotEnoughMoney {
                available,
                needed: hold,
            });
        }
        let (free, locked) = (Account::RenterAvailable(renter), Account::RenterLocked(id));
        let entries = Transfer::default().moving(free, locked, hold).entries();
        let fact = Fact::Matched(Box::new(self.matched(now, order, award, listing)));
        Ok(Decision::events(
            vec![Event {
                at: now,
                fact,
                entries,
            }],
            Reply::Lease(id),
        ))
    }

    /// The offer that an order names, if it stands and nobody has it.
    fn listed(&self, now: Timestamp, order: &Order) -> Result<&Listing, Rejection> {
        let Target::Offer { offer, terms } = order.target else {
            return Err(Rejection::NothingMatches);
        };
        let listing = self
            .book
            .get(offer, self.wall(now))
            .ok_or(Rejection::OfferGone)?;
        // What was decoded can be encoded; if not, nobody agreed to it.
        if listing.offer().terms_digest() != Ok(terms) {
            return Err(Rejection::OfferChanged);
        }
        if self.is_free(listing) {
            Ok(listing)
        } else {
            Err(Rejection::OfferTaken)
        }
    }

    fn check_limits(&self, order: &Order, listing: &Listing) -> Result<(), Rejection> {
        let offer = listing.offer();
        let prices = offer.prices.of_gpus(order.gpus);
        let (price, allowed) = (
            prices.all_in_hour(Need::disk(order.disk)),
            order.price_max.amount(),
        );
        if price > allowed {
            return Err(Rejection::PriceAboveLimit { price, allowed });
        }
        if order.disk > offer.limits.disk_max {
            let (asked, allowed) = (order.disk, offer.limits.disk_max);
            return Err(Rejection::DiskTooLarge { asked, allowed });
        }
        match (order.duration_max, offer.limits.duration_max) {
            (Some(asked), Some(allowed)) if asked > allowed => {
                Err(Rejection::TooLong { asked, allowed })
            }
            (Some(_) | None, Some(_) | None) => Ok(()),
        }
    }

    /// Whether the host's next goal has room for one more lease of `bytes`.
    fn check_room(&self, host: HostId, bytes: usize) -> Result<(), Rejection> {
        let (mut leases, mut size) = (1, bytes);
        for lease in self.market.live_leases_of(host.into()) {
            leases += 1;
            size += papers_size(lease);
        }
        if leases > GOAL_LEASES_MAX || size > GOAL_BYTES_MAX {
            let text = "the host has as many leases, or as large ones, as it can be told of";
            return Err(Rejection::TooMany(Text::cut(text)));
        }
        Ok(())
    }

    fn hold_to_start(&self, order: &Order, listing: &Listing) -> MicroUsd {
        let prices = &listing.offer().prices.of_gpus(order.gpus);
        charge::running_cost(prices, prices.compute, order.disk, self.settings.hold)
            .min(order.budget)
    }

    fn award(
        &self,
        now: Timestamp,
        lease: LeaseId,
        order: &Verified<Order>,
        listing: &Listing,
    ) -> Result<Verified<Award>, Rejection> {
        let offer = listing.offer();
        let award = Award {
            lease,
            order: order.digest(),
            offer: (offer.id, offer.terms_digest().unwrap_or(Digest::of(&[]))),
            kind: order.body().deal.kind(),
            part: part_of(offer, order.body().gpus),
            renter: order.signer().into(),
            host: listing.host(),
            prices: offer.prices.of_gpus(order.body().gpus),
            fee: self.settings.fee,
            number: self.market.last_number.saturating_add(1),
            matched_at: now,
        };
        let envelope = Envelope {
            audience: listing.host().into(),
            // One award a lease: its id is as unique as a random one.
            message_id: MessageId::from_bytes(*lease.as_bytes()),
            issued: self.wall(now),
            validity: VALIDITY_MAX,
        };
        Signed::sign(award, &self.key, envelope)
            .map_err(|error| Rejection::Malformed(Text::cut(&error.to_string())))
    }

    fn matched(
        &self,
        now: Timestamp,
        order: Verified<Order>,
        award: Verified<Award>,
        listing: &Listing,
    ) -> Match {
        let offer = listing.offer();
        let start_by = now.after(offer.limits.start_within.millis());
        let duration_max = match (order.body().duration_max, offer.limits.duration_max) {
            (Some(asked), Some(allowed)) => Some(asked.min(allowed)),
            (asked, allowed) => asked.or(allowed),
        };
        Match {
            share: offer.share.part(&award.body().part),
            order: order.into(),
            award: award.into(),
            bid: None,
            fallback: None,
            term: None,
            clear_by: None,
            limits: offer.limits,
            duration_max,
            accept_by: now
                .after(self.settings.accept_within.millis())
                .min(start_by),
            start_by,
        }
    }
}

/// How many bytes of a goal a lease's statements take.
pub(super) fn papers_size(lease: &Lease) -> usize {
    match &lease.papers {
        Papers::Whole { order, award } => order.signed().size() + award.signed().size(),
        Papers::Filed { .. } => 0,
    }
}

/// The first `gpus` GPUs of an offer, with what they have in proportion.
fn part_of(offer: &Offer, gpus: u16) -> Part {
    let (cpu_millicores, ram, shared_memory, _) = offer.proportion(gpus);
    let count = usize::from(gpus.max(1));
    Part {
        resources: List::first(offer.share.resources.iter().take(count).cloned()),
        cpu_millicores,
        ram,
        shared_memory,
    }
}

fn check_values(order: &Order) -> Result<(), Rejection> {
    let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if order.name.is_empty() || !order.name.chars().all(is_of_a_name) {
        return Err(bad_value("name", "letters, digits and hyphens are wanted"));
    }
    if is_reserved_name(&order.name) {
        return Err(bad_value(
            "name",
            "it could be taken for an id or a command",
        ));
    }
    if order.budget <= MicroUsd::ZERO {
        return Err(bad_value("budget", "it must be more than nothing"));
    }
    if order.duration_max == Some(Seconds(0)) {
        return Err(bad_value("duration", "it must be at least one second"));
    }
    let is_of_a_variable = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for variable in &order.job.environment {
        let name = &variable.name;
        let begins_well = name.chars().next().is_some_and(|c| !c.is_ascii_digit());
        if !begins_well || !name.chars().all(is_of_a_variable) {
            return Err(bad_value(
                "environment",
                "names of variables are letters, digits and '_', and begin with no digit",
            ));
        }
    }
    Ok(())
}

pub(super) fn bad_value(field: &str, problem: &str) -> Rejection {
    Rejection::BadValue {
        field: Text::cut(field),
        problem: Text::cut(problem),
    }
}
