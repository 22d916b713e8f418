//! Whether a match that a broker sent may be believed: the renter ordered it, the broker awarded it to
//! this host, and it is a portion of what this host offers now, at its price.

use crate::core::lease::LeaseRecord;
use crate::core::offer::Listed;
use crate::core::sold;
use gpu_health::health::Health;
use protocol::ids::{BrokerId, HostId, LeaseId, PublicKey, RenterId};
use protocol::lease::{Award, Detail, LeaseGoal, RefusalReason};
use protocol::order::{Order, Target};
use protocol::signed::{CLOCK_SKEW_MAX, Verified};
use protocol::terms::Deal;
use protocol::units::{Bytes, Timestamp};
use std::collections::BTreeMap;

/// What a host knows of itself when it judges a match.
#[derive(Debug, Clone)]
pub struct Standing<'a> {
    /// All its offers, free or not.
    pub offers: &'a [Listed],
    /// Whether its engine answers; if not, what was said.
    pub engine: Result<(), String>,
    /// Disk that is free now and may be given to leases; what other leases were promised is not yet taken off.
    pub disk_free: Bytes,
    /// How much more each lease may write, as last looked at; of one that is not in it nothing is known.
    pub disk_left: &'a BTreeMap<LeaseId, Bytes>,
    /// How its GPUs are.
    pub health: &'a Health,
    /// Whether it takes new leases at all.
    pub draining: bool,
}

/// A match that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked<'a> {
    /// The order.
    pub order: Order,
    /// The renter who signed it.
    pub renter: RenterId,
    /// The award.
    pub award: Award,
    /// The offer it is of.
    pub listed: &'a Listed,
}

/// Checks everything about a match but whether its resources and its disk are free.
///
/// # Errors
/// Why it is refused.
pub fn check<'a>(
    host: HostId,
    broker: BrokerId,
    goal: &LeaseGoal,
    standing: &Standing<'a>,
    now: Timestamp,
) -> Result<Checked<'a>, RefusalReason> {
    let award = check_award(host, broker, goal)?;
    let order = check_order(broker, goal, now)?;
    let renter = RenterId::from(order.signer());
    let order = order.into_body();
    let is_of_this_order = award.renter == renter
        && award.lease == LeaseId::of_order(broker, renter, order.id)
        && match &order.target {
            Target::Offer { offer, terms } => award.offer == (*offer, *terms),
            Target::Any(_) => true,
        };
    if !is_of_this_order {
        return Err(bad("the broker's match is not of this order"));
    }
    if renter.as_bytes() == host.as_bytes() {
        return Err(bad("this host ordered it itself"));
    }
    let listed = standing
        .offers
        .iter()
        .find(|listed| (listed.offer.id, listed.terms) == award.offer)
        .ok_or(RefusalReason::OfferChanged)?;
    sold::check(host, &order, &award, &listed.offer, now)?;
    check_means(standing)?;
    Ok(Checked {
        order,
        renter,
        award,
        listed,
    })
}

/// The broker that sent the goal signed the match, of this order, for this host.
pub(super) fn check_award(
    host: HostId,
    broker: BrokerId,
    goal: &LeaseGoal,
) -> Result<Award, RefusalReason> {
    let award = goal
        .award
        .verify()
        .map_err(|error| bad(&error.to_string()))?;
    if award.signer() != PublicKey::from(broker) {
        return Err(bad("the match was signed by another broker"));
    }
    let award = award.into_body();
    if award.host != host {
        return Err(bad("the match is for another host"));
    }
    if award.lease != goal.lease || award.order != goal.order.digest() {
        return Err(bad("the match is not of this order"));
    }
    Ok(award)
}

/// The renter signed the order, for this broker, and still means it. Only a lease that is not yet on record is
/// judged by this.
fn check_order(
    broker: BrokerId,
    goal: &LeaseGoal,
    now: Timestamp,
) -> Result<Verified<Order>, RefusalReason> {
    let key = PublicKey::from(broker);
    let unsigned = |error: protocol::signed::SignatureError| bad(&error.to_string());
    let order = goal.order.verify().map_err(unsigned)?;
    if order.header().audience != key {
        return Err(bad("the order is not for this broker"));
    }
    match order.body().deal {
        // These are stale within minutes.
        Deal::OnDemand | Deal::Reserved { .. } => {
            goal.order.verify_fresh(key, now).map_err(unsigned)
        }
        // These wait for as long as they say.
        Deal::Bid { until, .. } | Deal::Interruptible { until, .. } => {
            if order.header().issued.since(now) > CLOCK_SKEW_MAX.millis() {
                return Err(bad("the order is from the future"));
            }
            if now.since(until) > CLOCK_SKEW_MAX.millis() {
                return Err(bad("the bid waited for longer than its renter wanted"));
            }
            Ok(order)
        }
    }
}

/// The host can do it now.
fn check_means(standing: &Standing<'_>) -> Result<(), RefusalReason> {
    if standing.draining {
        return Err(RefusalReason::Draining);
    }
    if let Err(reason) = &standing.engine {
        return Err(RefusalReason::EngineDown(Detail::cut(reason)));
    }
    Ok(())
}

/// What is wrong with an order or a match.
pub(super) fn bad(reason: &str) -> RefusalReason {
    RefusalReason::BadOrder(Detail::cut(reason))
}

/// The record with a newer match of the same lease, which a conversion has; and whether that is of other
/// resources, where its container and its disk cannot go.
pub(super) fn with_award(
    host: HostId,
    record: &LeaseRecord,
    goal: &LeaseGoal,
) -> (LeaseRecord, bool) {
    if goal.award.digest() == record.award.digest() {
        return (record.clone(), false);
    }
    let checked = check_award(host, record.broker, goal);
    match checked {
        Ok(Award { part, kind, .. }) if part.resources[..] == record.share.resources[..] => {
            let known = LeaseRecord {
                award: goal.award.clone(),
                kind,
                ..record.clone()
            };
            (known, false)
        }
        Ok(_) => (record.clone(), true),
        Err(_) => (record.clone(), false),
    }
}
