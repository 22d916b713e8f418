//! Reliability: the formulas against numbers worked out elsewhere, and what evidence comes to.
#![cfg(test)]

mod attribution;
mod evidence;
mod formulas;
mod statements;

use protocol::bounded::List;
use protocol::ids::{Digest, HostId, LeaseId};
use protocol::lease::Party;
use protocol::reliability::{Evidence, Fault, Incident, Interval, Outcome, Payer, Start};
use protocol::units::{MicroUsd, Timestamp};

pub(crate) const HOST: HostId = HostId::from_bytes([0x40; 32]);
pub(crate) const HOUR_MS: u64 = 3_600_000;
/// Where times begin; far enough from zero that years before it can be told.
pub(crate) const START: u64 = 1_796_040_000_000;

/// So many hours after the beginning.
pub(crate) const fn hour(hours: u64) -> Timestamp {
    Timestamp(START + hours * HOUR_MS)
}

pub(crate) const fn second(seconds: u64) -> Timestamp {
    Timestamp(START + seconds * 1000)
}

pub(crate) const fn between(from: Timestamp, to: Timestamp) -> Interval {
    Interval { from, to }
}

pub(crate) const fn payer(number: u8) -> Payer {
    Payer::from_bytes([number; 16])
}

pub(crate) fn list<T: Clone, const N: usize>(items: &[T]) -> List<T, N> {
    List::new(items.to_vec()).unwrap()
}

/// A lease of `payer` that ran then, paid, and was ended by its renter.
pub(crate) fn outcome(number: u8, payer: Payer, runs: &[Interval]) -> Outcome {
    let asked_at = runs.first().map_or(hour(0), |run| run.from);
    let end = runs.last().map_or(asked_at, |run| run.to);
    Outcome {
        host: HOST,
        lease: LeaseId::from_bytes([number; 16]),
        part: 0,
        payer,
        asked_at,
        start: runs
            .first()
            .map_or(Start::Failed(Party::Renter), |run| Start::Ran(run.from)),
        runs: list(runs),
        incidents: List::default(),
        paid: MicroUsd(1),
        ended: Some((end, Party::Renter)),
        order: Digest::from_bytes([0; 32]),
        grant: None,
        report: None,
    }
}

pub(crate) fn with_faults(outcome: Outcome, faults: &[(Timestamp, Fault)]) -> Outcome {
    let incident = |(at, fault): &(Timestamp, Fault)| Incident {
        at: *at,
        fault: *fault,
    };
    Outcome {
        incidents: List::first(faults.iter().map(incident)),
        ..outcome
    }
}

pub(crate) fn evidence(outcomes: impl IntoIterator<Item = Outcome>) -> Evidence {
    let mut evidence = Evidence::new(HOST);
    for outcome in outcomes {
        evidence
            .outcomes
            .insert((outcome.lease, outcome.part), outcome);
    }
    evidence
}

#[track_caller]
pub(crate) fn near(found: f64, wanted: f64, within: f64) {
    assert!(
        (found - wanted).abs() <= within,
        "{found} is not {wanted} to {within}"
    );
}
