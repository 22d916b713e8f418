//! What this host says to a broker about each of its leases: grants, refusals and reports, derived from
//! the records. It signs and sends nothing.

use crate::core::lease::{LeaseRecord, State};
use crate::core::leases::{Change, Leases};
use crate::core::meter::Moment;
use crate::core::traffic::Crossed;
use protocol::bounded::List;
use protocol::ids::LeaseId;
use protocol::lease::{ContainerState, Grant, Meters, Report, Stage};
use protocol::units::Millis;
use std::collections::BTreeMap;

/// How far a lease's preparation is, as its work said last.
pub type Stages = BTreeMap<LeaseId, Stage>;

/// The grant of a lease: what it holds, under which epochs; none when it holds nothing.
#[must_use]
pub fn grant(record: &LeaseRecord) -> Option<Grant> {
    let held = record.state.held();
    if held.is_empty() {
        return None;
    }
    Some(Grant {
        lease: record.lease,
        order: record.order_digest(),
        award: record.award.digest(),
        resources: List::first(held.iter().map(|held| (held.resource.clone(), held.epoch))),
    })
}

impl Leases {
    /// A report of each of these leases, and the records with the numbers they use up. A number is also
    /// never below the clock in milliseconds, so that a lost journal does not make them repeat.
    #[must_use]
    pub fn decide_reports(
        &self,
        leases: &[LeaseId],
        stages: &Stages,
        now: Moment,
    ) -> (Vec<Change>, Vec<Report>) {
        let records = leases.iter().filter_map(|lease| self.record(*lease));
        records
            .map(|record| {
                let sequence = record.sequence.saturating_add(1).max(now.wall.0);
                let report = Report {
                    lease: record.lease,
                    sequence,
                    boot: now.boot,
                    run: record.state.run(),
                    state: container_state(record, stages),
                    meters: meters(record.running(), record.traffic.total()),
                };
                let numbered = LeaseRecord {
                    sequence,
                    ..record.clone()
                };
                (Change::Lease(Box::new(numbered)), report)
            })
            .unzip()
    }

    /// Whether its broker is told how this lease stands: until it is gone, and after that for as long as
    /// the broker asks.
    #[must_use]
    pub fn is_reported(&self, record: &LeaseRecord) -> bool {
        let named = || {
            self.goal(record.broker)
                .is_none_or(|goal| goal.leases.contains(&record.lease))
        };
        match record.state {
            State::Gone { .. } => self.goal(record.broker).is_some() && named(),
            State::Preparing { .. }
            | State::Running { .. }
            | State::Stopped { .. }
            | State::Failed { .. } => named(),
        }
    }
}

/// The report about a lease that this host has nothing of.
#[must_use]
pub fn gone_without_record(lease: LeaseId, now: Moment) -> Report {
    Report {
        lease,
        sequence: now.wall.0,
        boot: now.boot,
        run: 0,
        state: ContainerState::Gone,
        meters: meters(Millis(0), Crossed::default()),
    }
}

fn container_state(record: &LeaseRecord, stages: &Stages) -> ContainerState {
    match &record.state {
        State::Preparing { .. } => {
            let stage = stages
                .get(&record.lease)
                .copied()
                .unwrap_or(Stage::Granting);
            ContainerState::Preparing(stage)
        }
        // Between the wish and its effect the container still runs, and says so.
        State::Running { .. } => ContainerState::Running,
        State::Stopped { reason, .. } => ContainerState::Stopped(reason.clone()),
        State::Failed { problem, .. } => ContainerState::Failed(problem.clone()),
        State::Gone { .. } => ContainerState::Gone,
    }
}

const fn meters(running: Millis, crossed: Crossed) -> Meters {
    Meters {
        running,
        uploaded: crossed.uploaded,
        downloaded: crossed.downloaded,
    }
}
