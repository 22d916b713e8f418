//! A lease as programs see it.

use super::phase::reason_in_words;
use super::sums::{ends_by, hourly, term_ends};
use super::{Held, rfc3339, slice_json};
use protocol::lease::{LeaseView, Phase};
use protocol::machine::Gpu;
use protocol::terms::{ContractKind, Rates};
use protocol::units::{PricePerHour, Timestamp};
use protocol::usage::Term;
use serde_json::{Value, json};

/// Schema of one lease.
pub(crate) const LEASE_SCHEMA: &str = "feira.lease/1";

/// The kind as programs read it.
pub(crate) const fn kind_word(kind: ContractKind) -> &'static str {
    match kind {
        ContractKind::OnDemand => "on_demand",
        ContractKind::Bid => "bid",
        ContractKind::Interruptible => "interruptible",
        ContractKind::Reserved => "reserved",
    }
}

fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(rfc3339)
}

fn dollars(price: Option<PricePerHour>) -> Option<String> {
    price.map(|price| price.amount().decimal())
}

/// A lease as programs see it.
pub(crate) fn lease_json(held: &Held, now: Timestamp) -> Value {
    let mut json = of_lease(held, now);
    if let (Some(fields), Some(more)) = (json.as_object_mut(), of_deal(&held.view).as_object()) {
        fields.extend(more.clone());
    }
    json
}

fn of_lease(held: &Held, now: Timestamp) -> Value {
    let view = &held.view;
    json!({
        "schema": LEASE_SCHEMA,
        "id": view.id.to_string(),
        "name": view.name.as_str(),
        "kind": kind_word(view.kind),
        "state": view.phase.word(),
        "reason": reason_in_words(&view.phase),
        "since": rfc3339(view.since),
        "broker": held.broker.to_string(),
        "host": view.place.map(|(host, _)| host.to_string()),
        "offer": view.place.map(|(_, offer)| offer.to_string()),
        "order": view.order.to_string(),
        "renter": view.renter.to_string(),
        "image": view.image.to_string(),
        "gpu_count": view.gpu_count,
        "gpus": view.gpus.iter().map(gpu_json).collect::<Vec<_>>(),
        "partition": slice_json(view.partition.as_ref()),
        "cpu_millicores": view.cpu_millicores,
        "ram_bytes": view.ram.0,
        "disk_bytes": view.disk.0,
        "price_usd_per_hour": hourly(view).decimal(),
        "compute_usd_per_hour": view.prices.compute.amount().decimal(),
        "storage_usd_per_gb_month": view.prices.storage.amount().decimal(),
        "upload_usd_per_gb": view.prices.upload.amount().decimal(),
        "download_usd_per_gb": view.prices.download.amount().decimal(),
        "fee_basis_points": view.fee.0,
        "ordered_at": rfc3339(view.ordered_at),
        "started_at": time(view.started_at),
        "ends_by": time(ends_by(view, now)),
        "disk_until": time(view.disk_until),
        "running_seconds": view.running.seconds().0,
        "max_seconds": view.duration_max.map(|most| most.0),
        "promised_until": time(view.until),
        "charged_usd": view.charged.total().decimal(),
        "held_usd": view.held.decimal(),
        "budget_usd": view.budget.decimal(),
        "low_balance": view.low_balance,
        "addresses": addresses(view),
    })
}

/// What a kind has that others have not: null where it is another.
fn of_deal(view: &LeaseView) -> Value {
    let (must_go_by, clears_by, resumes) = match &view.phase {
        Phase::Noticed(cause, by) => (Some(*by), None, cause.resumes_by_itself()),
        Phase::Clearing(by) => (None, Some(*by), false),
        Phase::Paused(cause) => (None, None, cause.resumes_by_itself()),
        Phase::Resting
        | Phase::Offered
        | Phase::Accepted
        | Phase::Preparing
        | Phase::Running
        | Phase::Suspect
        | Phase::Closing(_)
        | Phase::Closed(_) => (None, None, false),
    };
    json!({
        "bid_usd_per_gpu_hour": dollars(view.bid),
        "to_win_usd_per_gpu_hour": dollars(view.to_win),
        "rests_until": time(view.rests_until),
        "must_go_by": time(must_go_by),
        "clears_by": time(clears_by),
        "resumes_by_itself": resumes,
        "rates": rates_json(&view.rates),
        "term": view.term.as_ref().map(term_json),
    })
}

/// The hourly rates of all GPUs together, by running time.
pub(crate) fn rates_json(rates: &Rates) -> Vec<Value> {
    let step = |step: &protocol::terms::RateStep| {
        json!({
            "from_running_ms": step.from.0,
            "compute_usd_per_hour": step.price.amount().decimal(),
        })
    };
    rates.steps().iter().map(step).collect()
}

/// A prepaid term.
pub(crate) fn term_json(term: &Term) -> Value {
    let (host, broker) = term.clawed_back;
    json!({
        "days": term.days,
        "prepaid_usd": term.prepaid.decimal(),
        "discount_basis_points": term.discount.0,
        "on_demand_usd_per_hour": term.rate.amount().decimal(),
        "begins_at": time(term.begins),
        "ends_at": time(term_ends(term)),
        "begins_at_stored_ms": term.from.0,
        "down_ms": term.down.0,
        "earned_usd": term.earned.decimal(),
        "refunded_usd": term.refunded.decimal(),
        "clawed_back_host_usd": host.decimal(),
        "clawed_back_broker_usd": broker.decimal(),
        "from_bond_usd": term.from_bond.decimal(),
    })
}

/// Each address once, in the order in which the broker has them.
fn addresses(view: &LeaseView) -> Vec<&str> {
    let mut once: Vec<&str> = Vec::new();
    for address in view.access.addresses.iter().map(|a| a.as_str()) {
        if !once.contains(&address) {
            once.push(address);
        }
    }
    once
}

fn gpu_json(gpu: &Gpu) -> Value {
    json!({"model": gpu.model.as_str(), "uuid": gpu.uuid.as_str(), "vram_bytes": gpu.vram.0})
}
