//! Whether a match is of a portion that an offer sells, to whom its filter finds it, in the kind and at the
//! prices that the offer states, within its limits.
//!
//! It knows no other lease: whether the portion is free is [`super::capacity`]'s.

use super::award::bad;
use protocol::filter::Facts;
use protocol::ids::HostId;
use protocol::lease::{Award, RefusalReason};
use protocol::offer::{Offer, Part};
use protocol::order::{Order, Target};
use protocol::terms::{ContractKind, Deal, Need, Prices};
use protocol::units::{BasisPoints, PricePerHour, Seconds, Timestamp};

/// Checks `award` of `order` against `offer`, all of this host's own.
///
/// # Errors
/// What does not fit.
pub(super) fn check(
    host: HostId,
    order: &Order,
    award: &Award,
    offer: &Offer,
    now: Timestamp,
) -> Result<(), RefusalReason> {
    check_portion(order, &award.part, offer)?;
    check_filter(host, order, offer)?;
    check_prices(order, award, offer)?;
    check_limits(order, offer, now)
}

/// So many GPUs are sold together, and these are them.
fn check_portion(order: &Order, part: &Part, offer: &Offer) -> Result<(), RefusalReason> {
    let share = &offer.share;
    if !offer.is_sold_as(order.gpus) {
        return Err(bad("the offer is not sold in this portion"));
    }
    // A machine without a GPU is one resource.
    if part.resources.len() != usize::from(order.gpus.max(1)) {
        return Err(bad("the match has another number of GPUs than the order"));
    }
    let places = part
        .resources
        .iter()
        .map(|name| share.resources.iter().position(|sold| sold == name));
    // Nothing comes before every place.
    if !places.clone().all(|place| place.is_some()) || !places.is_sorted_by(|a, b| a < b) {
        return Err(bad("the match has resources that the offer does not sell"));
    }
    let is_sold = part.cpu_millicores > 0
        && part.cpu_millicores <= share.cpu_millicores
        && part.ram.0 > 0
        && part.ram <= share.ram
        && part.shared_memory <= part.ram;
    if !is_sold {
        return Err(bad("the match has more CPU or RAM than the offer sells"));
    }
    Ok(())
}

/// An order for whichever is best would find this one.
fn check_filter(host: HostId, order: &Order, offer: &Offer) -> Result<(), RefusalReason> {
    let Target::Any(filter) = &order.target else {
        return Ok(());
    };
    let facts = Facts::of(host, offer, order.gpus);
    if filter.prepare(Need::disk(order.disk)).matches(&facts) {
        Ok(())
    } else {
        Err(bad("the order is not for an offer like this"))
    }
}

/// The kind is the one that was ordered, is sold, and costs what the offer asks for it.
fn check_prices(order: &Order, award: &Award, offer: &Offer) -> Result<(), RefusalReason> {
    let asked = offer.prices.of_gpus(order.gpus);
    let compute = award.prices.compute;
    let others_differ = Prices { compute, ..asked } != award.prices;
    let wrong = || bad("the match has other prices than the offer");
    if others_differ {
        return Err(wrong());
    }
    let is_kind = match order.deal {
        Deal::OnDemand | Deal::Bid { .. } | Deal::Reserved { .. } => {
            award.kind == order.deal.kind()
        }
        Deal::Interruptible { fallback, .. } => {
            let falls_back = fallback.is_some() && award.kind == ContractKind::OnDemand;
            falls_back || award.kind == ContractKind::Interruptible
        }
    };
    if !is_kind {
        return Err(bad("the match is of another kind than the order"));
    }
    match award.kind {
        ContractKind::OnDemand | ContractKind::Bid if compute == asked.compute => Ok(()),
        ContractKind::OnDemand | ContractKind::Bid => Err(wrong()),
        ContractKind::Interruptible => {
            let floor = offer
                .sales
                .floor
                .ok_or_else(|| bad("the offer is not sold interruptibly"))?;
            let least = Prices {
                compute: floor,
                ..asked
            }
            .of_gpus(order.gpus);
            if compute < least.compute || !compute.is_sane() {
                return Err(bad("the bid is below the offer's lowest"));
            }
            Ok(())
        }
        ContractKind::Reserved => {
            let most = offer
                .sales
                .discount_max
                .ok_or_else(|| bad("the offer is not sold for a term"))?;
            if compute > asked.compute || compute < discounted(asked.compute, most) {
                return Err(bad("the term has a larger discount than the offer gives"));
            }
            Ok(())
        }
    }
}

/// `floor(price × (10 000 − discount) / 10 000)`.
fn discounted(price: PricePerHour, discount: BasisPoints) -> PricePerHour {
    let whole = u128::from(BasisPoints::WHOLE.0);
    let rest = whole.saturating_sub(discount.0.into());
    let exact = u128::from(price.0) * rest / whole;
    PricePerHour(u64::try_from(exact).unwrap_or(u64::MAX))
}

const DAY: u64 = 86_400;

/// The lease is neither larger nor longer nor later than the offer allows.
fn check_limits(order: &Order, offer: &Offer, now: Timestamp) -> Result<(), RefusalReason> {
    let limits = &offer.limits;
    if order.disk > limits.disk_max {
        return Err(bad("more disk was ordered than the offer allows"));
    }
    if limits.until.is_some_and(|until| now >= until) {
        return Err(bad("the offer's end has come"));
    }
    // One that names no end has the offer's.
    let asked = match order.deal {
        Deal::Reserved { days, .. } => Some(Seconds(u64::from(days) * DAY)),
        Deal::OnDemand | Deal::Bid { .. } | Deal::Interruptible { .. } => order.duration_max,
    };
    let Some(asked) = asked else {
        return Ok(());
    };
    if limits.duration_max.is_some_and(|most| asked > most) {
        return Err(bad("a longer lease was ordered than the offer allows"));
    }
    if asked < limits.duration_min {
        return Err(bad("a shorter lease was ordered than the offer allows"));
    }
    let is_term = matches!(order.deal, Deal::Reserved { .. });
    // A term begins when the container runs.
    let ends =
        |until: Timestamp| now.after(asked.millis()) > until.after(limits.start_within.millis());
    if is_term && limits.until.is_some_and(ends) {
        return Err(bad("the term ends after the offer does"));
    }
    Ok(())
}
