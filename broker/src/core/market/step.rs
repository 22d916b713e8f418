//! How an event changes the lease that it is about.
//!
//! Must not look at another lease, and decides nothing.

use crate::core::event::{Kept, Move, Reading, Terms};
use crate::core::lease::{Lease, State};
use protocol::lease::Grant;
use protocol::units::Timestamp;

/// The lease that its host granted.
pub(super) fn accept(lease: &mut Lease, grant: Kept<Grant>, at: Timestamp) {
    if let State::Offered { start_by, .. } = lease.state {
        lease.state = State::Accepted { start_by };
        lease.since = at;
    }
    lease.grant = Some(grant);
}

/// The lease with its meter read.
pub(super) fn read(lease: &mut Lease, reading: Reading, at: Timestamp) {
    let Reading {
        meter,
        charged,
        term,
        ..
    } = reading;
    lease.meter = meter;
    lease.charged = charged;
    lease.term = term;
    lease.mark_earnings(at);
}

/// The lease with other terms.
pub(super) fn change_terms(lease: &mut Lease, terms: Terms) {
    let Terms {
        kind,
        bid,
        fallback,
        prices,
        rates,
        term,
        meter,
        charged,
        ..
    } = terms;
    let contract = &mut lease.contract;
    (contract.kind, contract.bid, contract.fallback) = (kind, bid, fallback);
    (contract.prices, contract.rates) = (prices, rates);
    if let (None, Some(bought)) = (&lease.term, &term) {
        contract.budget = contract.budget.saturating_sub(bought.prepaid);
    }
    lease.term = term;
    (lease.meter, lease.charged) = (meter, charged);
}

/// The lease in its next state.
pub(super) fn step(lease: &mut Lease, moved: Move, at: Timestamp) {
    let Move {
        to,
        meter,
        charged,
        rates,
        term,
        ..
    } = moved;
    if matches!(
        (&lease.state, &to),
        // A lease that clears on its way to be prepared has run before: a first one is offered.
        (
            State::Paused { .. } | State::Clearing { .. },
            State::Preparing { .. }
        )
    ) {
        lease.run = lease.run.saturating_add(1);
    }
    if lease.started_at.is_none() && to.has_run() {
        lease.started_at = Some(at);
    }
    if matches!(to, State::Running) && lease.state.is_starting() {
        lease.run_from = meter.usage.running;
    }
    if let Some(rates) = rates {
        lease.contract.rates = rates;
    }
    lease.term = term;
    lease.meter = meter;
    lease.charged = charged;
    lease.state = to;
    lease.since = at;
    if lease.state.is_closed() {
        lease.file_papers();
    }
}
