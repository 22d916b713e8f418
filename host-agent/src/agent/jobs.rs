//! Work on containers: at most one task for each lease, cancelled when something else is wanted. A slow pull
//! holds up neither another lease nor the loop.

use super::AgentError;
use super::desk::Desk;
use super::notices::NoticeFolder;
use super::task::{Task, told};
use super::words;
use crate::core::reconcile::Outcome;
use crate::core::work::Work;
use crate::hardware::Hardware;
use crate::runtime::Runtime;
use protocol::ids::LeaseId;
use protocol::lease::Progress;
use protocol::offer::ResourceName;
use protocol::units::Millis;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Steps of all jobs on their way to the loop. A job waits for room when it changes its stage, and only then.
const STEPS_MAX: usize = 256;
/// After the engine failed in the middle of a job, the job begins again this much later.
const BROKEN_PAUSE: Millis = Millis(2_000);

/// How a job ended; nothing when it was cancelled.
pub(super) type Ended = (LeaseId, Option<Outcome>);

/// A running job.
#[derive(Debug)]
struct Job {
    work: Work,
    cancel: CancellationToken,
}

/// All jobs, and what is known of them beside the records.
#[derive(Debug)]
pub(super) struct Jobs {
    running: BTreeMap<LeaseId, Job>,
    pub(super) set: JoinSet<Ended>,
    steps: mpsc::Sender<Progress>,
    pub(super) progress: mpsc::Receiver<Progress>,
    /// Leases that only a sight with at least this number says something about.
    blind_until: BTreeMap<LeaseId, u64>,
    /// Leases whose engine failed, and when to try again.
    paused: BTreeMap<LeaseId, Millis>,
}

impl Jobs {
    pub(super) fn new() -> Self {
        let (steps, progress) = mpsc::channel(STEPS_MAX);
        Self {
            running: BTreeMap::new(),
            set: JoinSet::new(),
            steps,
            progress,
            blind_until: BTreeMap::new(),
            paused: BTreeMap::new(),
        }
    }

    /// Leases that the sight with this number says nothing about.
    pub(super) fn unseen_by(&self, sight: u64) -> BTreeSet<LeaseId> {
        let later = self.blind_until.iter().filter(|(_, until)| **until > sight);
        self.running
            .keys()
            .chain(later.map(|(lease, _)| lease))
            .copied()
            .collect()
    }

    /// Whether anything is being done about this lease.
    pub(super) fn is_busy(&self, lease: LeaseId) -> bool {
        self.running.contains_key(&lease)
    }

    /// Gives up what can begin again after a restart; stops and removals go on.
    pub(super) fn cancel_preparations(&self) {
        for job in self
            .running
            .values()
            .filter(|job| job.work == Work::Prepare)
        {
            job.cancel.cancel();
        }
    }

    pub(super) fn cancel_all(&self) {
        for job in self.running.values() {
            job.cancel.cancel();
        }
    }
}

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// Cancels work that is not wanted any more, and begins what is wanted and possible now.
    pub(super) fn align_jobs(&mut self) {
        let Some(sight) = self.engine.last_sight() else {
            return;
        };
        let wanted = self.leases.work(self.engine.containers(), self.now());
        for (lease, job) in &self.jobs.running {
            // Only its end starts the next one: two tasks never touch one container.
            let is_wanted = wanted
                .get(lease)
                .is_some_and(|work| is_same(*work, job.work));
            if !is_wanted {
                job.cancel.cancel();
            }
        }
        if self.draining || !self.engine.is_up() {
            return;
        }
        let now = self.now().monotonic;
        for (lease, work) in wanted {
            let blind = self
                .jobs
                .blind_until
                .get(&lease)
                .is_some_and(|until| *until > sight);
            let paused = self
                .jobs
                .paused
                .get(&lease)
                .is_some_and(|until| *until > now);
            if blind || paused || self.jobs.is_busy(lease) {
                continue;
            }
            let devices = match work {
                Work::Prepare => self.devices_of(lease),
                Work::Notify | Work::Recall | Work::Stop { .. } | Work::Remove { .. } => {
                    Some(Vec::new())
                }
            };
            // Its slice is not there yet.
            if let Some(devices) = devices {
                self.begin(lease, work, &devices);
            }
        }
    }

    fn begin(&mut self, lease: LeaseId, work: Work, devices: &[ResourceName]) {
        let cancel = CancellationToken::new();
        let record = self.leases.record(lease).cloned();
        let exists = self.engine.containers().contains_key(&lease);
        let task = Task {
            runtime: Arc::clone(&self.runtime),
            lease,
            steps: self.jobs.steps.clone(),
            logs: record.is_some().then(|| self.logs_path(lease)),
            notices: NoticeFolder::of(&self.folder, lease),
            gpus: self.leased_gpus(lease, devices),
            told: record.as_ref().and_then(|record| told(record, self.now())),
        };
        let doing = words::work(work);
        tracing::debug!(lease = %lease.short(), doing, exists, "work begins");
        let token = cancel.clone();
        self.jobs.set.spawn(async move {
            let outcome = task.run(work, record, exists, &token).await;
            (lease, outcome)
        });
        self.jobs.running.insert(lease, Job { work, cancel });
    }

    /// A job ended: what it says is recorded, and the container is looked at again.
    pub(super) async fn job_ended(&mut self, ended: Ended) -> Result<(), AgentError> {
        let (lease, outcome) = ended;
        self.jobs.running.remove(&lease);
        self.jobs
            .blind_until
            .insert(lease, self.engine.next_sight());
        self.engine.look_soon();
        let Some(outcome) = outcome else {
            return Ok(());
        };
        let now = self.now();
        match &outcome {
            Outcome::Broken(reason) => {
                tracing::warn!(lease = %lease.short(), reason, "the engine failed; trying again");
                self.jobs
                    .paused
                    .insert(lease, now.monotonic.plus(BROKEN_PAUSE));
                self.engine.check_soon();
            }
            Outcome::Started(_)
            | Outcome::Problem(_)
            | Outcome::Told
            | Outcome::Recalled
            | Outcome::Stopped(_)
            | Outcome::Removed(_) => {
                self.jobs.paused.remove(&lease);
            }
        }
        let decision = self.leases.decide_outcome(lease, &outcome, now);
        self.record(&decision).await
    }

    /// Forgets what is known about leases that are not there any more.
    pub(super) fn tidy_jobs(&mut self, sight: u64) {
        self.jobs.blind_until.retain(|_, until| *until > sight);
        let records = self.leases.records();
        self.jobs
            .paused
            .retain(|lease, _| records.contains_key(lease));
    }
}

/// Work that only differs in its patience goes on.
const fn is_same(wanted: Work, running: Work) -> bool {
    matches!(
        (wanted, running),
        (Work::Prepare, Work::Prepare)
            | (Work::Notify, Work::Notify)
            | (Work::Recall, Work::Recall)
            | (Work::Stop { .. }, Work::Stop { .. })
            | (Work::Remove { .. }, Work::Remove { .. })
    )
}
