//! One job on one container: pull, make, start; tell it to go; stop; remove. It decides nothing, and knows nothing
//! of other leases.

use super::notices::{NoticeFolder, Told};
use super::sight::crossed;
use crate::core::lease::{LeaseRecord, State};
use crate::core::meter::Moment;
use crate::core::reconcile::Outcome;
use crate::core::traffic::Crossed;
use crate::core::work::Work;
use crate::runtime::gpus::LeasedGpu;
use crate::runtime::needs;
use crate::runtime::{
    Container, ContainerSpec, PullProgress, PulledImage, RunState, Runtime, RuntimeError, StartedAt,
};
use protocol::bounded::List;
use protocol::ids::LeaseId;
use protocol::lease::{Detail, Problem, ProblemKind, Progress, Stage};
use protocol::units::{Seconds, Timestamp};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// When a container's last run began and ended.
type LastRun = (Timestamp, Timestamp);

/// What one job needs.
pub(super) struct Task<R> {
    pub(super) runtime: Arc<R>,
    pub(super) lease: LeaseId,
    pub(super) steps: mpsc::Sender<Progress>,
    /// Where its logs are saved; nowhere for a container that no lease has.
    pub(super) logs: Option<PathBuf>,
    pub(super) notices: NoticeFolder,
    /// The GPUs and slices that its container gets.
    pub(super) gpus: Vec<LeasedGpu>,
    /// What its notice says, if it has one.
    pub(super) told: Option<Told>,
}

impl<R: Runtime> Task<R> {
    /// Nothing when it was cancelled in time.
    pub(super) async fn run(
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
        // One with GPUs may have been made for others than it gets now.
        if exists && self.gpus.is_empty() {
            return Ok(());
        }
        self.step(Stage::Pulling, PullProgress::default()).await;
        let image = self.pull(record).await?;
        needs::check(&image.config, &self.gpus)?;
        self.step(Stage::Creating, PullProgress::default()).await;
        let notices = self.notices.path().to_owned();
        let spec = spec(record, &self.gpus, notices);
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
pub(super) fn told(record: &LeaseRecord, now: Moment) -> Option<Told> {
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
fn spec(record: &LeaseRecord, gpus: &[LeasedGpu], notices: PathBuf) -> ContainerSpec {
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
        gpus: List::first(gpus.iter().cloned()),
        cpu_millicores: record.share.cpu_millicores,
        ram: record.share.ram,
        shared_memory: record.share.shared_memory,
        disk: record.order.disk,
        network: record.network,
        stop_grace: record.limits.stop_grace,
        notices,
    }
}
