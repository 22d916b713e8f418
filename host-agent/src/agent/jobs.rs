//! Work on containers: at most one task for each lease, cancelled when something else is wanted. A slow pull
//! holds up neither another lease nor the loop.

use super::AgentError;
use super::desk::Desk;
use super::notices::{NoticeFolder, Told};
use super::sight::crossed;
use super::words;
use crate::core::lease::{LeaseRecord, State};
use crate::core::meter::Moment;
use crate::core::reconcile::{Outcome, Work};
use crate::core::traffic::Crossed;
use crate::hardware::Hardware;
use crate::runtime::{
    Container, ContainerSpec, PullProgress, PulledImage, RunState, Runtime, RuntimeError, StartedAt,
};
use protocol::bounded::List;
use protocol::ids::LeaseId;
use protocol::lease::{Detail, Problem, ProblemKind, Progress, Stage};
use protocol::units::{Millis, Seconds, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Steps of all jobs on their way to the loop. A job waits for room when it changes its stage, and only then.
const STEPS_MAX: usize = 256;
/// After the engine failed in the middle of a job, the job begins again this much later.
const BROKEN_PAUSE: Millis = Millis(2_000);

/// When a container's last run began and ended.
type LastRun = (Timestamp, Timestamp);

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
            if !blind && !paused && !self.jobs.is_busy(lease) {
                self.begin(lease, work);
            }
        }
    }

    fn begin(&mut self, lease: LeaseId, work: Work) {
        let cancel = CancellationToken::new();
        let record = self.leases.record(lease).cloned();
        let exists = self.engine.containers().contains_key(&lease);
        let task = Task {
            runtime: Arc::clone(&self.runtime),
            lease,
            steps: self.jobs.steps.clone(),
            logs: record.is_some().then(|| self.logs_path(lease)),
            notices: NoticeFolder::of(&self.folder, lease),
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

/// What one job needs.
struct Task<R> {
    runtime: Arc<R>,
    lease: LeaseId,
    steps: mpsc::Sender<Progress>,
    logs: Option<PathBuf>,
    notices: NoticeFolder,
    /// What its notice says, if it has one.
    told: Option<Told>,
}

impl<R: Runtime> Task<R> {
    /// Nothing when it was cancelled in time.
    async fn run(
        self,
        work: Work,
        record: Option<LeaseRecord>,
        exists: bool,
        cancel: &CancellationToken,
    ) -> Option<Outcome> {
        match work {
            Work::Prepare => match record {
                Some(record) => self.prepare(&record, exists, cancel).await,
                None => Some(Outcome::Broken("the lease is not on record".to_owned())),
            },
            Work::Notify => cancel.run_until_cancelled(self.notify()).await,
            Work::Recall => cancel.run_until_cancelled(self.recall()).await,
            Work::Stop { grace } => cancel.run_until_cancelled(self.stop(grace)).await,
            Work::Remove { grace } => cancel.run_until_cancelled(self.remove(grace)).await,
        }
    }

    async fn prepare(
        &self,
        record: &LeaseRecord,
        exists: bool,
        cancel: &CancellationToken,
    ) -> Option<Outcome> {
        let made = cancel
            .run_until_cancelled(self.make(record, exists))
            .await?;
        // A start that was given up could still happen, after its resources went to another lease: it is
        // waited for, and what is wanted instead comes next.
        let started = match made {
            Ok(()) => self.start().await,
            Err(problem) => Err(problem),
        };
        Some(match started {
            Ok(StartedAt(at)) => Outcome::Started(at),
            Err(problem) => self.failed(problem).await,
        })
    }

    async fn failed(&self, problem: Problem) -> Outcome {
        if problem.kind == ProblemKind::EngineFailed
            && let Err(error) = self.runtime.facts().await
        {
            // Not the lease's fault: it goes on when the engine is back.
            return Outcome::Broken(error.to_string());
        }
        // A start that failed late may have left it running, and its resources are about to be free.
        match self.runtime.stop(self.lease, Seconds(0)).await {
            Ok(()) => Outcome::Problem(problem),
            Err(error) => Outcome::Broken(error.to_string()),
        }
    }

    async fn make(&self, record: &LeaseRecord, exists: bool) -> Result<(), Problem> {
        // What is mounted must be there when it starts.
        self.notices
            .prepare()
            .await
            .map_err(|error| no_folder(&error))?;
        if exists {
            return Ok(());
        }
        self.step(Stage::Pulling, PullProgress::default()).await;
        let image = self.pull(record).await?;
        self.step(Stage::Creating, PullProgress::default()).await;
        let notices = self.notices.path().to_owned();
        let spec = spec(record, notices);
        self.runtime.create(&spec, &image).await.map(drop)
    }

    async fn start(&self) -> Result<StartedAt, Problem> {
        self.step(Stage::Starting, PullProgress::default()).await;
        self.runtime.start(self.lease).await
    }

    /// The file first: whoever hears the signal finds it.
    async fn notify(&self) -> Outcome {
        let Some(told) = self.told else {
            return Outcome::Told;
        };
        if let Err(error) = self.notices.tell(told).await {
            tracing::warn!(lease = %self.lease.short(), %error, "the notice could not be written");
        }
        match self.runtime.terminate(self.lease).await {
            Ok(()) => Outcome::Told,
            Err(error) => Outcome::Broken(error.to_string()),
        }
    }

    async fn recall(&self) -> Outcome {
        if let Err(error) = self.notices.recall().await {
            tracing::warn!(lease = %self.lease.short(), %error, "the notice could not be taken back");
        }
        Outcome::Recalled
    }

    /// The counters of its network end with it, so they are read before.
    async fn stop(&self, grace: Seconds) -> Outcome {
        let crossed = match self.runtime.inspect(self.lease).await {
            Ok(container) => container.and_then(crossed_of),
            Err(error) => return Outcome::Broken(error.to_string()),
        };
        match self.runtime.stop(self.lease, grace).await {
            Ok(()) => Outcome::Stopped(crossed),
            Err(error) => Outcome::Broken(error.to_string()),
        }
    }

    /// Pulls, and passes on how far it is.
    async fn pull(&self, record: &LeaseRecord) -> Result<PulledImage, Problem> {
        let (sender, mut said) = mpsc::channel(8);
        let pull = self
            .runtime
            .pull(&record.order.job.image, record.order.disk, sender);
        tokio::pin!(pull);
        loop {
            tokio::select! {
                biased;
                pulled = &mut pull => return pulled,
                Some(progress) = said.recv() => {
                    // A loop that is behind needs no old progress.
                    let _ = self.steps.try_send(self.progress(Stage::Pulling, progress));
                }
            }
        }
    }

    async fn remove(&self, grace: Seconds) -> Outcome {
        let last = match self.take_leave(grace).await {
            Ok(last) => last,
            Err(error) => return Outcome::Broken(error.to_string()),
        };
        match self.runtime.remove(self.lease).await {
            Ok(()) => {
                if let Err(error) = self.notices.delete().await {
                    tracing::warn!(lease = %self.lease.short(), %error, "its notice could not be deleted");
                }
                Outcome::Removed(last)
            }
            Err(error) => Outcome::Broken(error.to_string()),
        }
    }

    /// Stops the container of a lease, saves its logs, and asks how long it ran last. One that no lease has is
    /// worth none of it.
    async fn take_leave(&self, grace: Seconds) -> Result<Option<LastRun>, RuntimeError> {
        let Some(logs) = &self.logs else {
            return Ok(None);
        };
        self.runtime.stop(self.lease, grace).await?;
        if let Err(error) = self.runtime.save_logs(self.lease, logs).await {
            tracing::warn!(lease = %self.lease.short(), %error, "the logs could not be saved");
        }
        let container = self.runtime.inspect(self.lease).await?;
        Ok(container.and_then(|container| match container.state {
            RunState::Exited(exit) => Some((exit.started, exit.finished)),
            RunState::Created
            | RunState::Running { .. }
            | RunState::Paused { .. }
            | RunState::Removing => None,
        }))
    }

    async fn step(&self, stage: Stage, progress: PullProgress) {
        // The loop is gone when this fails, and this task with it.
        let _ = self.steps.send(self.progress(stage, progress)).await;
    }

    fn progress(&self, stage: Stage, progress: PullProgress) -> Progress {
        Progress {
            lease: self.lease,
            stage,
            done: progress.done,
            total: progress.total,
        }
    }
}

/// What a container is told now.
fn told(record: &LeaseRecord, now: Moment) -> Option<Told> {
    let notice = record.notice?;
    let stop_at = notice.stop_at(record.limits.notice);
    Some(Told {
        outbid: notice.outbid,
        stop_at,
        left: stop_at.since(now.wall).seconds(),
    })
}

/// When a container that runs was started, and what crossed its network since.
fn crossed_of(container: Container) -> Option<(Timestamp, Crossed)> {
    match container.state {
        RunState::Running { since } => Some((since, crossed(container.traffic))),
        RunState::Created | RunState::Paused { .. } | RunState::Exited(_) | RunState::Removing => {
            None
        }
    }
}

fn no_folder(error: &std::io::Error) -> Problem {
    Problem {
        stage: Stage::Creating,
        kind: ProblemKind::EngineFailed,
        detail: Detail::cut(&format!(
            "the folder of its notices could not be made: {error}"
        )),
    }
}

/// What a lease's container is made from.
fn spec(record: &LeaseRecord, notices: PathBuf) -> ContainerSpec {
    let held = match &record.state {
        State::Preparing { held, .. } | State::Running { held, .. } => held.to_vec(),
        State::Stopped { .. } | State::Failed { .. } | State::Gone { .. } => Vec::new(),
    };
    ContainerSpec {
        lease: record.lease,
        broker: record.broker,
        epoch: held.iter().map(|held| held.epoch).max().unwrap_or(0),
        run: record.state.run(),
        job: record.order.job.clone(),
        gpus: List::first(record.share.gpus.iter().map(|gpu| gpu.uuid.clone())),
        cpu_millicores: record.share.cpu_millicores,
        ram: record.share.ram,
        shared_memory: record.share.shared_memory,
        disk: record.order.disk,
        network: record.network,
        stop_grace: record.limits.stop_grace,
        notices,
    }
}
