//! Deciding about money that comes in and about orders: what is sound, what becomes a lease now, what waits.
//!
//! Must not change anything.

use crate::core::capacity::Misfit;
use crate::core::desk::{Decision, Desk, Reply};
use crate::core::event::{Event, Fact};
use crate::core::ledger::{Account, Transfer};
use crate::core::placing::{Seeker, taken_from};
use crate::core::seen::Sighting;
use protocol::bounded::Text;
use protocol::ids::{DepositId, LeaseId, RenterId};
use protocol::message::Rejection;
use protocol::order::{Order, is_reserved_name};
use protocol::signed::Verified;
use protocol::terms::Deal;
use protocol::units::{MicroUsd, PricePerHour, Seconds, Timestamp};

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
        if let Some(is_same) = self.is_known(id, order.body()) {
            return if is_same {
                Ok(Decision::answer(Reply::Lease(id)))
            } else {
                Err(Rejection::IdReused)
            };
        }
        check_values(order.body())?;
        let until = self.check_deal(now, &order.body().deal)?;
        let name = &order.body().name;
        if self.market.named(renter, name).is_some() {
            return Err(Rejection::NameTaken(name.clone()));
        }
        let seeker = Seeker {
            lease: id,
            renter,
            order: order.body(),
            size: order.signed().size(),
            deal: order.body().deal,
            has_waited: false,
        };
        match self.place(now, &seeker) {
            Ok(place) => {
                let number = self.market.last_number.saturating_add(1);
                let events = self.matched(now, &seeker, &order, number, &place)?;
                Ok(Decision::events(events, Reply::Lease(id)))
            }
            Err(misfit) => {
                let waits = until.filter(|_| !misfit.is_final);
                let rests = waits
                    .map(|until| self.rested(now, &seeker, order.clone(), until))
                    .transpose()?;
                let rests = rests.filter(|rests| self.can_pay_both(renter, &misfit, rests));
                unplaced(misfit, id, rests)
            }
        }
    }

    /// Whether the order of that id was this one, if there was one.
    fn is_known(&self, id: LeaseId, order: &Order) -> Option<bool> {
        let lease = self.market.lease(id).map(|lease| lease.came_from(order));
        let rest = self.market.resting(id);
        lease.or_else(|| rest.map(|rest| rest.order.body() == order))
    }

    /// Whether a renter has the money for what its leases do and for an order that waits.
    fn can_pay_both(&self, renter: RenterId, misfit: &Misfit, rests: &Event) -> bool {
        let events = [&misfit.converts, std::slice::from_ref(rests)].concat();
        taken_from(&events, renter) <= self.market.available(renter)
    }

    /// Until when an order of that deal waits when it has no place, if it does.
    fn check_deal(&self, now: Timestamp, deal: &Deal) -> Result<Option<Timestamp>, Rejection> {
        let (bid, until) = match *deal {
            Deal::OnDemand | Deal::Reserved { .. } => return Ok(None),
            Deal::Bid { limit, until } => (limit, until),
            Deal::Interruptible { bid, until, .. } => (bid, until),
        };
        check_bid(bid)?;
        let latest = self.wall(now).after(WAIT_MAX.millis());
        if until <= self.wall(now) || until > latest {
            return Err(bad_value(
                "until",
                "a bid waits until a moment in the next 90 days",
            ));
        }
        Ok(Some(until))
    }
}

/// What becomes of an order that has no place: it waits, or is refused. Those whom it would have pushed out and
/// who rather pay what the host asks do so now.
fn unplaced(misfit: Misfit, id: LeaseId, rests: Option<Event>) -> Result<Decision, Rejection> {
    let mut events = misfit.converts;
    let reply = match rests {
        Some(rests) => {
            events.push(rests);
            Reply::Lease(id)
        }
        None if events.is_empty() => return Err(misfit.rejection),
        None => Reply::Refused(Box::new(misfit.rejection)),
    };
    Ok(Decision::events(events, reply))
}

/// Longest that an order waits.
const WAIT_MAX: Seconds = Seconds(90 * 24 * 3600);

/// A bid is more than nothing, and within what sums are proved for.
pub(super) fn check_bid(bid: PricePerHour) -> Result<(), Rejection> {
    if bid == PricePerHour(0) || !bid.is_sane() {
        return Err(bad_value(
            "bid",
            "it must be more than nothing and at most a million dollars",
        ));
    }
    Ok(())
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
