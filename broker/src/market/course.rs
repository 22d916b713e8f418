//! The course of leases as the log and the metrics tell it: each step once, with who and why, after it is on
//! disk. Must not decide anything; what it forgets over a restart is in the journal.

use super::reasons::{self, Reason};
use crate::core::event::{Event, Fact};
use crate::core::lease::{Lease, State};
use crate::core::market::Market;
use crate::metrics::Happenings;
use protocol::ids::LeaseId;
use protocol::units::Timestamp;
use std::collections::BTreeMap;

/// What is told, and what the last word about each live lease was.
#[derive(Debug)]
pub(super) struct Course {
    words: BTreeMap<LeaseId, &'static str>,
    steps: Vec<Step>,
    /// Those of them that are in the commit under way.
    committing: Vec<Step>,
    happenings: Happenings,
}

#[derive(Debug)]
struct Step {
    lease: LeaseId,
    at: Timestamp,
    what: What,
}

#[derive(Debug)]
enum What {
    Ordered,
    Accepted,
    Moved(State),
    Money { low: bool },
}

impl Course {
    pub(super) fn new(market: &Market, happenings: Happenings) -> Self {
        let live = market.live_leases();
        Self {
            words: live.map(|lease| (lease.id, lease.state.word())).collect(),
            steps: Vec::new(),
            committing: Vec::new(),
            happenings,
        }
    }

    /// Where it counts.
    pub(super) const fn happenings(&self) -> &Happenings {
        &self.happenings
    }

    /// Keeps what an event says about a lease until it is on disk.
    pub(super) fn note(&mut self, event: &Event) {
        let what = match &event.fact {
            Fact::Matched(_) => What::Ordered,
            Fact::Granted { .. } => What::Accepted,
            Fact::Moved(moved) => What::Moved(moved.to.clone()),
            Fact::Warned { low, .. } => What::Money { low: *low },
            Fact::Deposited { .. }
            | Fact::Metered(_)
            | Fact::Held { .. }
            | Fact::Commanded(_)
            | Fact::Paid { .. }
            | Fact::Matured { .. }
            | Fact::Suspended { .. }
            | Fact::Rested(_)
            | Fact::Lapsed { .. }
            | Fact::Cleared { .. }
            | Fact::RestRebid { .. }
            | Fact::Heard(_)
            | Fact::Away(_)
            | Fact::Funded { .. }
            | Fact::Reclaimed { .. }
            | Fact::Proved(_)
            | Fact::Changed(_) => return,
        };
        self.steps.extend(event.lease().map(|lease| Step {
            lease,
            at: event.at,
            what,
        }));
    }

    /// A commit begins with all that was kept so far.
    pub(super) fn commit(&mut self) {
        self.committing.append(&mut self.steps);
    }

    /// Tells what was committed; `market` is as it is after it, or later.
    pub(super) fn tell(&mut self, market: &Market) {
        for step in std::mem::take(&mut self.committing) {
            if let Some(lease) = market.lease(step.lease) {
                self.tell_step(lease, &step);
            }
        }
    }

    fn tell_step(&mut self, lease: &Lease, step: &Step) {
        let to = match &step.what {
            What::Ordered => "offered",
            What::Accepted => "accepted",
            What::Moved(state) => state.word(),
            What::Money { low } => {
                return say(lease, if *low { MONEY_LOW } else { MONEY_LASTS }, None);
            }
        };
        let from = self.words.insert(lease.id, to).unwrap_or("new");
        self.count_start(lease, step, to);
        let reason = match &step.what {
            What::Moved(State::Paused { cause, .. }) => Some(reasons::of_pause(cause)),
            What::Moved(State::Closing { cause, .. } | State::Closed { cause }) => {
                Some(reasons::of_end(cause))
            }
            What::Ordered | What::Accepted | What::Moved(_) | What::Money { .. } => None,
        };
        let failed_in = reason.as_ref().and_then(|reason| reason.failed_in);
        // What failed on its way through `closing` failed once.
        if let (Some(reason), Some(stage)) = (&reason, failed_in)
            && from != "closing"
        {
            self.happenings.failed(stage, reason.code);
        }
        if to == "ended" {
            self.words.remove(&lease.id);
        }
        say(lease, message(from, to), reason);
    }

    /// Counts how long a first start took to here.
    fn count_start(&self, lease: &Lease, step: &Step, to: &'static str) {
        let is_of_first_start = match &step.what {
            What::Accepted => true,
            What::Moved(State::Preparing { .. }) => lease.run == 1,
            What::Moved(State::Running) => lease.started_at == Some(step.at),
            What::Ordered | What::Moved(_) | What::Money { .. } => false,
        };
        if is_of_first_start {
            let after = step.at.since(lease.contract.ordered_at);
            self.happenings.reached(to, after);
        }
    }
}

const MONEY_LOW: &str = "the renter's money is running out";
const MONEY_LASTS: &str = "the renter's money lasts again";

/// What a step is called.
fn message(from: &str, to: &str) -> &'static str {
    match (from, to) {
        (_, "offered") => "lease ordered",
        (_, "accepted") => "lease accepted by its host",
        ("stopped", "preparing") => "lease resumed",
        (_, "preparing") => "lease is prepared by its host",
        ("unreachable", "running") => "the lease's host is heard again",
        (_, "running") => "lease runs",
        (_, "unreachable") => "the lease's host is not heard",
        (_, "stopped") => "lease stopped",
        (_, "closing") => "lease ends",
        (_, _) => "lease ended",
    }
}

fn say(lease: &Lease, message: &str, reason: Option<Reason>) {
    let contract = &lease.contract;
    let why = reason.as_ref().map(|reason| reason.code);
    let stage = reason.as_ref().and_then(|reason| reason.failed_in);
    let detail = reason.and_then(|reason| reason.detail);
    tracing::info!(
        lease = %lease.id,
        name = contract.name.as_str(),
        renter = %contract.renter.short(),
        host = %contract.host.short(),
        run = lease.run,
        charged = %lease.charged.total(),
        why,
        stage,
        detail = detail.as_deref(),
        "{message}"
    );
}

#[cfg(test)]
mod tests;
