//! Whether a match that a broker sent may be believed: the renter ordered it, the broker awarded it to
//! this host, and it is what this host offers now.

use crate::core::offer::Listed;
use protocol::ids::{BrokerId, HostId, LeaseId, PublicKey, RenterId};
use protocol::lease::{Award, Detail, LeaseGoal, RefusalReason};
use protocol::order::Order;
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
    // An order is stale within minutes; only a lease that is not yet on record is judged by this.
    let key = PublicKey::from(broker);
    let order = goal
        .order
        .verify_fresh(key, now)
        .map_err(|error| bad(&error.to_string()))?;
    if order.header().audience != key {
        return Err(bad("the order is not for this broker"));
    }
    let renter = RenterId::from(order.signer());
    let order = order.into_body();
    let consistent = award.renter == renter
        && award.lease == LeaseId::of_order(broker, renter, order.id)
        && award.offer == (order.offer, order.terms);
    if !consistent {
        return Err(bad("the broker's match is not of this order"));
    }
    let listed = check_offer(&order, &award, standing)?;
    check_means(standing)?;
    Ok(Checked {
        order,
        renter,
        award,
        listed,
    })
}

/// The broker that sent the goal signed the match, of this order, for this host.
fn check_award(host: HostId, broker: BrokerId, goal: &LeaseGoal) -> Result<Award, RefusalReason> {
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

/// What was ordered is what this host offers, at its price, within its limits.
fn check_offer<'a>(
    order: &Order,
    award: &Award,
    standing: &Standing<'a>,
) -> Result<&'a Listed, RefusalReason> {
    let listed = standing
        .offers
        .iter()
        .find(|listed| listed.offer.id == order.offer && listed.terms == order.terms)
        .ok_or(RefusalReason::OfferChanged)?;
    let offer = &listed.offer;
    if award.prices != offer.prices {
        return Err(bad("the match has other prices than the offer"));
    }
    if order.disk > offer.limits.disk_max {
        return Err(bad("more disk was ordered than the offer allows"));
    }
    let too_long = match (order.duration_max, offer.limits.duration_max) {
        (Some(asked), Some(allowed)) => asked > allowed,
        (None, Some(_)) => true,
        (Some(_) | None, None) => false,
    };
    if too_long {
        return Err(bad("a longer lease was ordered than the offer allows"));
    }
    Ok(listed)
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

fn bad(reason: &str) -> RefusalReason {
    RefusalReason::BadOrder(Detail::cut(reason))
}
