//! What is said to brokers about leases: each thing again and again until it is noted, one at a time, and
//! nothing while the broker is not connected. What it is follows from the records alone.

use super::AgentError;
use super::desk::{Desk, millis};
use super::events::{Done, Sent, What};
use super::saying::ask;
use super::words;
use crate::core::lease::{LeaseRecord, State};
use crate::core::leases::{Decision, Leases};
use crate::core::report::{Stages, gone_without_record, grant};
use crate::hardware::Hardware;
use crate::runtime::Runtime;
use protocol::ids::{BrokerId, LeaseId};
use protocol::lease::{Grant, Progress, Refusal, RefusalReason, Report, Stage};
use protocol::message::BrokerRequest;
use protocol::units::Millis;
use std::collections::BTreeMap;

/// Progress is said at most twice a second.
const PROGRESS_PERIOD: Millis = Millis(500);
/// A state that was seen longer ago than this many looks is not signed for.
const LOOKS_FRESH: u64 = 4;

/// What is to be said about one lease.
#[derive(Debug, Default)]
pub(super) struct Talk {
    /// The grant that its broker has not noted.
    pub(super) grant: Option<Grant>,
    pub(super) granting: bool,
    pub(super) next_grant: Millis,
    pub(super) reporting: bool,
    pub(super) next_report: Millis,
    progress: Option<Progress>,
    pub(super) progressing: bool,
    next_progress: Millis,
}

/// A refusal, or the news that there is no such lease: said as long as the broker asks.
#[derive(Debug, Default)]
pub(super) struct Plea {
    pub(super) saying: bool,
    pub(super) next: Millis,
    is_logged: bool,
    /// The broker would not hear a refusal: for it the lease went on. Then it hears that it is gone.
    pub(super) as_gone: bool,
}

/// What is to be said about all leases.
#[derive(Debug, Default)]
pub(super) struct Talks {
    pub(super) leases: BTreeMap<LeaseId, Talk>,
    pub(super) pleas: BTreeMap<LeaseId, Plea>,
    pub(super) stages: Stages,
}

impl Talks {
    /// After a start everything is said again.
    pub(super) fn recovered(leases: &Leases) -> Self {
        let talk = |record: &LeaseRecord| Talk {
            grant: grant(record),
            ..Talk::default()
        };
        let talks = leases
            .records()
            .values()
            .map(|record| (record.lease, talk(record)));
        Self {
            leases: talks.collect(),
            ..Self::default()
        }
    }

    /// A lease moved: its broker hears it at once; a grant before all else when resources were taken.
    pub(super) fn moved(&mut self, before: Option<&LeaseRecord>, after: &LeaseRecord) {
        let talk = self.leases.entry(after.lease).or_default();
        talk.next_report = Millis(0);
        let held_before = before
            .map(|record| record.state.held().to_vec())
            .unwrap_or_default();
        if after.state.held() != held_before.as_slice()
            && let Some(grant) = grant(after)
        {
            talk.grant = Some(grant);
            talk.next_grant = Millis(0);
        }
        if !matches!(after.state, State::Preparing { .. }) {
            talk.progress = None;
            self.stages.remove(&after.lease);
        }
    }

    pub(super) fn forget(&mut self, lease: LeaseId) {
        self.leases.remove(&lease);
        self.stages.remove(&lease);
    }

    pub(super) fn say_all_again(&mut self, broker: BrokerId, leases: &Leases) {
        for (lease, talk) in &mut self.leases {
            if leases
                .record(*lease)
                .is_some_and(|record| record.broker == broker)
            {
                talk.next_report = Millis(0);
                talk.next_grant = Millis(0);
            }
        }
        for plea in self.pleas.values_mut() {
            plea.next = Millis(0);
        }
    }
}

/// Once for each lease that a broker asks for and does not get.
fn log_plea(lease: LeaseId, broker: BrokerId, reason: Option<&RefusalReason>) {
    let (lease, broker) = (lease.short(), broker.short());
    match reason {
        Some(reason) => {
            let reason = words::refused(reason);
            tracing::info!(%lease, %broker, reason, "lease refused");
        }
        None => {
            tracing::info!(%lease, %broker, "lease is not on record here: its broker hears that it is gone")
        }
    }
}

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// Says what is due to be said.
    pub(super) async fn talk_if_due(&mut self) -> Result<(), AgentError> {
        let now = self.now().monotonic;
        self.plead(now);
        self.grant_if_due(now);
        self.progress_if_due(now);
        let due = self.due_reports(now);
        self.report(&due).await
    }

    fn plead(&mut self, now: Millis) {
        let refused = self.leases.refused();
        let unknown = self.leases.unknown();
        self.talks
            .pleas
            .retain(|lease, _| refused.contains_key(lease) || unknown.contains_key(lease));
        let mut due = Vec::new();
        let asked = refused
            .iter()
            .map(|(lease, (broker, reason))| (*lease, *broker, Some(reason.clone())))
            .chain(
                unknown
                    .iter()
                    .map(|(lease, broker)| (*lease, *broker, None)),
            );
        for (lease, broker, reason) in asked {
            let plea = self.talks.pleas.entry(lease).or_default();
            if !plea.saying
                && now >= plea.next
                && self.brokers.get(&broker).is_some_and(|b| b.was_up)
            {
                plea.saying = true;
                if !std::mem::replace(&mut plea.is_logged, true) {
                    log_plea(lease, broker, reason.as_ref());
                }
                let reason = reason.filter(|_| !plea.as_gone);
                due.push((lease, broker, reason));
            }
        }
        for (lease, broker, reason) in due {
            match reason {
                Some(reason) => {
                    self.say(broker, What::Refusal(lease), Refusal { lease, reason });
                }
                None => {
                    let report = gone_without_record(lease, self.now());
                    self.say(broker, What::Unknown(lease), report);
                }
            }
        }
    }

    fn grant_if_due(&mut self, now: Millis) {
        let mut due = Vec::new();
        for (lease, talk) in &mut self.talks.leases {
            let Some(record) = self.leases.record(*lease) else {
                continue;
            };
            let is_up = self
                .brokers
                .get(&record.broker)
                .is_some_and(|broker| broker.was_up);
            if let Some(grant) = &talk.grant
                && !talk.granting
                && now >= talk.next_grant
                && is_up
            {
                talk.granting = true;
                due.push((record.broker, grant.clone()));
            }
        }
        for (broker, grant) in due {
            self.say(broker, What::Grant(grant.lease), grant);
        }
    }

    fn progress_if_due(&mut self, now: Millis) {
        let mut due = Vec::new();
        for (lease, talk) in &mut self.talks.leases {
            let Some(record) = self.leases.record(*lease) else {
                continue;
            };
            let is_up = self
                .brokers
                .get(&record.broker)
                .is_some_and(|broker| broker.was_up);
            if is_up
                && !talk.progressing
                && now >= talk.next_progress
                && talk.grant.is_none()
                && let Some(progress) = talk.progress.take()
            {
                talk.progressing = true;
                talk.next_progress = now.plus(PROGRESS_PERIOD);
                due.push((record.broker, progress));
            }
        }
        for (to, progress) in due {
            let node = self.node.clone();
            self.tasks.spawn(async move {
                let what = What::Progress(progress.lease);
                let answer = ask(&node, to, &BrokerRequest::Progress(progress)).await;
                Done::Sent(Box::new(Sent { to, what, answer }))
            });
        }
    }

    /// Leases whose broker hears now how they stand: not before it has noted the grant.
    fn due_reports(&self, now: Millis) -> Vec<LeaseId> {
        let looks = millis(self.config.periods.reconcile)
            .0
            .saturating_mul(LOOKS_FRESH);
        let is_fresh = self.engine.is_fresh(Millis(looks), now);
        let is_due = |record: &&LeaseRecord| {
            let Some(talk) = self.talks.leases.get(&record.lease) else {
                return false;
            };
            let speaks = talk.grant.is_none() && !talk.reporting && now >= talk.next_report;
            // That a container runs is signed for only while the engine shows it.
            let is_known = is_fresh || !matches!(record.state, State::Running { .. });
            speaks
                && is_known
                && self.is_connected(record.broker)
                && self.leases.is_reported(record)
        };
        self.leases
            .records()
            .values()
            .filter(is_due)
            .map(|record| record.lease)
            .collect()
    }

    async fn report(&mut self, due: &[LeaseId]) -> Result<(), AgentError> {
        if due.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let (changes, reports) = self.leases.decide_reports(due, &self.talks.stages, now);
        self.record(&Decision {
            changes,
            notes: Vec::new(),
        })
        .await?;
        let period = millis(self.config.periods.report);
        for report in reports {
            let Some(broker) = self.leases.record(report.lease).map(|record| record.broker) else {
                continue;
            };
            if let Some(talk) = self.talks.leases.get_mut(&report.lease) {
                talk.reporting = true;
                talk.next_report = now.monotonic.plus(period);
            }
            self.say::<Report>(broker, What::Report(report.lease), report);
        }
        Ok(())
    }

    /// A job told how far it is.
    pub(super) fn stepped(&mut self, progress: Progress) {
        let preparing = |record: &LeaseRecord| matches!(record.state, State::Preparing { .. });
        if !self.leases.record(progress.lease).is_some_and(preparing) {
            return;
        }
        let talk = self.talks.leases.entry(progress.lease).or_default();
        let stage: Option<Stage> = self.talks.stages.insert(progress.lease, progress.stage);
        if stage != Some(progress.stage) {
            talk.next_report = Millis(0);
        }
        talk.progress = Some(progress);
    }
}
