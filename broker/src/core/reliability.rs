//! What each host did, as far as events say it: runs of leases, starts, faults, hours in which it was heard,
//! and time in which nobody could be. What it comes to is in [`protocol::reliability`].
//!
//! The state here changes by events and in no other way, so that a replay gives the same. How hosts are
//! watched between events, and when something of that becomes an event, is in `watch`.

mod blame;
mod outages;
mod reading;
mod watch;

pub(super) use watch::HostWatch;

use crate::core::event::{Event, Fact, Match, Move};
use crate::core::lease::{Lease, State};
use crate::core::meter::Meter;
use protocol::bounded::List;
use protocol::ids::{HostId, LeaseId};
use protocol::lease::EndCause;
use protocol::reliability::{
    Carried, Evidence, INTERVALS_MAX, Incident, Interval, Outcome, Payer, Start,
};
use protocol::units::{Seconds, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most hosts of which anything is kept; of more nothing is, until one is forgotten.
pub const HOSTS_MAX: usize = 20_000;
/// A host that never had a lease is forgotten when it was not heard for so long.
const STRANGER_KEPT: Seconds = Seconds(30 * 24 * 3600);
/// A host of a lease is silent when it was not heard for longer.
pub(super) const SILENT_AFTER: Seconds = Seconds(90);

/// When each of some hosts was heard: the body of a [`Fact::Heard`].
pub type Heard = List<(HostId, Interval), 256>;

/// What is known of all hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reliability {
    hosts: BTreeMap<HostId, Box<Evidence>>,
}

/// What is known of a host but for its outcomes, as a snapshot keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    host: HostId,
    heard: Vec<Interval>,
    excluded: Vec<Interval>,
    incidents: Vec<Incident>,
    carried: Carried,
}

impl Reliability {
    /// What is known of a host.
    #[must_use]
    pub fn evidence(&self, host: HostId) -> Option<&Evidence> {
        self.hosts.get(&host).map(|evidence| &**evidence)
    }

    /// The hosts of which anything is known.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> {
        self.hosts.keys().copied()
    }

    /// How many records it takes in a snapshot.
    #[must_use]
    pub fn size(&self) -> usize {
        let outcomes = self.hosts.values().map(|evidence| evidence.outcomes.len());
        self.hosts.len() + outcomes.sum::<usize>()
    }

    /// Each host as it is kept.
    pub fn kept(&self) -> impl Iterator<Item = Kept> {
        self.hosts.values().map(|evidence| Kept {
            host: evidence.host,
            heard: evidence.heard.clone(),
            excluded: evidence.excluded.clone(),
            incidents: evidence.incidents.clone(),
            carried: evidence.carried.clone(),
        })
    }

    /// All outcomes, by host and lease.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.hosts
            .values()
            .flat_map(|evidence| evidence.outcomes.values())
    }

    /// Takes up a host from a snapshot.
    pub fn restore(&mut self, kept: Kept) {
        let Kept {
            host,
            heard,
            excluded,
            incidents,
            carried,
        } = kept;
        let evidence = Evidence {
            heard,
            excluded,
            incidents,
            carried,
            ..Evidence::new(host)
        };
        self.hosts.insert(host, Box::new(evidence));
    }

    /// Takes up an outcome from a snapshot, of a host that was taken up before.
    pub fn restore_outcome(&mut self, outcome: Outcome) {
        if let Some(evidence) = self.hosts.get_mut(&outcome.host) {
            evidence
                .outcomes
                .insert((outcome.lease, outcome.part), outcome);
        }
    }

    /// Notes what `event` says of a host. `lease` is the lease that it is about, as it was before.
    pub fn note(&mut self, event: &Event, lease: Option<&Lease>) {
        let at = event.at;
        match &event.fact {
            Fact::Matched(matched) => self.note_match(matched, at),
            Fact::Heard(heard) => self.note_heard(heard, at),
            Fact::Away(away) => self.note_away(*away),
            Fact::Granted { grant, .. } => {
                let digest = grant.digest();
                self.with_lease(lease, |outcome| outcome.grant = Some(digest));
            }
            Fact::Cleared { .. } => self.with_lease(lease, |outcome| {
                if outcome.start == Start::Pending {
                    outcome.asked_at = at;
                }
            }),
            Fact::Moved(moved) => {
                if let Some(lease) = lease {
                    self.note_move(lease, moved, at);
                }
            }
            Fact::Metered(reading) => self.note_meter(lease, &reading.meter),
            Fact::Changed(terms) => self.note_meter(lease, &terms.meter),
            Fact::Deposited { .. }
            | Fact::Paid { .. }
            | Fact::Matured { .. }
            | Fact::Suspended { .. }
            | Fact::Held { .. }
            | Fact::Warned { .. }
            | Fact::Commanded(_)
            | Fact::Rested(_)
            | Fact::Lapsed { .. }
            | Fact::RestRebid { .. }
            | Fact::Funded { .. }
            | Fact::Reclaimed { .. }
            | Fact::Proved(_) => {}
        }
    }

    fn note_match(&mut self, matched: &Match, at: Timestamp) {
        let award = matched.award.body();
        let outcome = Outcome {
            host: award.host,
            lease: award.lease,
            part: 0,
            payer: Payer::of(award.host, award.renter),
            asked_at: at,
            start: Start::Pending,
            runs: List::default(),
            incidents: List::default(),
            paid: protocol::units::MicroUsd::ZERO,
            ended: None,
            order: award.order,
            grant: None,
            report: None,
        };
        if let Some(evidence) = self.host(award.host) {
            evidence.outcomes.insert((award.lease, 0), outcome);
            tidy(evidence);
        }
    }

    fn note_move(&mut self, lease: &Lease, moved: &Move, at: Timestamp) {
        let Some(evidence) = self.hosts.get_mut(&lease.contract.host) else {
            return;
        };
        let heard = lease.meter.heard.max(moved.meter.heard);
        let incident = blame::incident(&blame::Step {
            before: &lease.state,
            to: &moved.to,
            heard: blame::heard_since(&evidence.excluded, lease.meter.heard),
            at,
        });
        let first_run = lease.started_at.is_none() && lease.run == 1 && moved.to.has_run();
        let ended = end_of(&moved.to);
        let (ran, runs) = (runs(&lease.state), runs(&moved.to));
        change(evidence, lease.id, |outcome| {
            outcome.paid = moved.charged.total();
            outcome.report = moved.meter.report.or(outcome.report);
            if outcome.start == Start::Pending {
                if first_run {
                    outcome.start = Start::Ran(at);
                } else if let Some(cause) = ended {
                    outcome.start = Start::Failed(cause.party());
                }
            }
            if ran {
                // A host that is not heard has not been seen to run it.
                let silent = matches!(moved.to, State::Suspect { .. });
                run_to(outcome, if silent { heard.min(at) } else { at });
            }
            if runs && !ran {
                let run = Interval { from: at, to: at };
                outcome.runs = with(&outcome.runs, run);
            }
            if let Some(incident) = incident {
                outcome.incidents = with(&outcome.incidents, incident);
            }
            if let (Some(cause), None) = (ended, outcome.ended) {
                outcome.ended = Some((at, cause.party()));
            }
        });
        tidy(evidence);
    }

    /// A lease that runs ran at least to where its host was heard.
    fn note_meter(&mut self, lease: Option<&Lease>, meter: &Meter) {
        let ran = lease.is_some_and(|lease| runs(&lease.state));
        let (report, heard) = (meter.report, meter.heard);
        self.with_lease(lease, |outcome| {
            outcome.report = report.or(outcome.report);
            if ran {
                run_to(outcome, heard);
            }
        });
    }

    fn note_heard(&mut self, heard: &Heard, at: Timestamp) {
        for (host, interval) in heard {
            if let Some(evidence) = self.host(*host) {
                extend(&mut evidence.heard, *interval);
                tidy(evidence);
            }
        }
        let oldest = at.before(STRANGER_KEPT.millis());
        self.hosts.retain(|_, evidence| {
            let never_leased = evidence.outcomes.is_empty() && evidence.carried.leased.is_empty();
            let last = evidence.heard.last().map(|interval| interval.to);
            !never_leased || last.is_some_and(|last| last > oldest)
        });
    }

    fn note_away(&mut self, away: Interval) {
        for evidence in self.hosts.values_mut() {
            extend(&mut evidence.excluded, away);
            tidy(evidence);
        }
    }

    fn with_lease(&mut self, lease: Option<&Lease>, change_to: impl FnOnce(&mut Outcome)) {
        let Some(lease) = lease else {
            return;
        };
        if let Some(evidence) = self.hosts.get_mut(&lease.contract.host) {
            change(evidence, lease.id, change_to);
        }
    }

    /// The evidence on a host, which begins here unless there is too much already.
    fn host(&mut self, host: HostId) -> Option<&mut Evidence> {
        if self.hosts.len() >= HOSTS_MAX && !self.hosts.contains_key(&host) {
            return None;
        }
        let begin = || Box::new(Evidence::new(host));
        Some(self.hosts.entry(host).or_insert_with(begin))
    }
}

/// Changes the last part of a lease's outcome; a new one when its lists are full.
fn change(evidence: &mut Evidence, lease: LeaseId, change_to: impl FnOnce(&mut Outcome)) {
    let parts = evidence.outcomes.range_mut((lease, 0)..=(lease, u16::MAX));
    let Some((_, last)) = parts.last() else {
        return;
    };
    let is_full = last.runs.len() >= INTERVALS_MAX || last.incidents.len() >= INTERVALS_MAX;
    if !is_full {
        return change_to(last);
    }
    let mut next = Outcome {
        part: last.part.saturating_add(1),
        // A run that goes on goes on in the new part.
        runs: List::first(last.runs.last().map(|run| Interval {
            from: run.to,
            to: run.to,
        })),
        incidents: List::default(),
        ..last.clone()
    };
    change_to(&mut next);
    evidence.outcomes.insert((lease, next.part), next);
}

fn tidy(evidence: &mut Evidence) {
    if evidence.is_full() {
        evidence.carry_over();
    }
}

fn with<T: Clone, const N: usize>(list: &List<T, N>, item: T) -> List<T, N> {
    List::first(list.iter().cloned().chain([item]))
}

/// The run that is under way lasted at least to `to`.
fn run_to(outcome: &mut Outcome, to: Timestamp) {
    let mut runs = std::mem::take(&mut outcome.runs).into_vec();
    if let Some(run) = runs.last_mut() {
        run.to = run.to.max(to);
    }
    outcome.runs = List::first(runs);
}

/// Adds a stretch of time behind the others, or to the last of them.
fn extend(intervals: &mut Vec<Interval>, interval: Interval) {
    match intervals.last_mut() {
        Some(last) if interval.from <= last.to => last.to = last.to.max(interval.to),
        Some(_) | None => intervals.push(interval),
    }
}

const fn runs(state: &State) -> bool {
    matches!(state, State::Running | State::Noticed { .. })
}

const fn end_of(state: &State) -> Option<&EndCause> {
    match state {
        State::Closing { cause, .. } | State::Closed { cause } => Some(cause),
        State::Clearing { .. }
        | State::Offered { .. }
        | State::Accepted { .. }
        | State::Preparing { .. }
        | State::Running
        | State::Noticed { .. }
        | State::Suspect { .. }
        | State::Paused { .. } => None,
    }
}

#[cfg(test)]
mod tests;
