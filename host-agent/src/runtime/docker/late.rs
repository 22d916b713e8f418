//! An engine that may come later than the agent: after a reboot the agent is often there first. Until the engine
//! answers, every question is answered with why it does not; from then on it is a [`DockerRuntime`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use protocol::ids::{HostId, LeaseId};
use protocol::job::PinnedImage;
use protocol::lease::{Problem, ProblemKind, Stage};
use protocol::tunnel::WindowSize;
use protocol::units::{Bytes, Seconds};
use tokio::sync::{OnceCell, mpsc};

use super::super::exec::{ExecError, ExecHandle, ExecSession, ExecSpec, ExecState, Signal};
use super::super::logs::{LogQuery, LogRecords};
use super::super::sandbox::problem;
use super::super::{
    Container, ContainerEvent, ContainerId, ContainerSpec, EngineFacts, EventWatch, PullProgress,
    PulledImage, Runtime, RuntimeError, StartedAt,
};
use super::{DockerRuntime, watch};

const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_LAST: Duration = Duration::from_secs(5);

/// A Docker engine that is connected to when it is first there.
#[derive(Debug, Clone)]
pub struct LateDocker {
    socket: PathBuf,
    host: HostId,
    engine: Arc<OnceCell<DockerRuntime>>,
}

impl LateDocker {
    /// The engine at `socket`, whether it is there yet or not.
    ///
    /// # Errors
    /// When waiting would not help: it may not be used, or it is too old.
    pub async fn connect(socket: &Path, host: HostId) -> Result<Self, RuntimeError> {
        let late = Self {
            socket: socket.to_owned(),
            host,
            engine: Arc::new(OnceCell::new()),
        };
        match late.engine().await {
            Ok(_)
            | Err(
                RuntimeError::Unreachable { .. }
                | RuntimeError::Failed { .. }
                | RuntimeError::NoContainer
                | RuntimeError::File { .. },
            ) => Ok(late),
            Err(error @ (RuntimeError::Permission { .. } | RuntimeError::TooOld { .. })) => {
                Err(error)
            }
        }
    }

    async fn engine(&self) -> Result<&DockerRuntime, RuntimeError> {
        let connect = || DockerRuntime::connect(&self.socket, self.host);
        self.engine.get_or_try_init(connect).await
    }

    /// The same for a step of a start.
    async fn engine_for(&self, stage: Stage) -> Result<&DockerRuntime, Problem> {
        let failed =
            |error: RuntimeError| problem(stage, ProblemKind::EngineFailed, &error.to_string());
        self.engine().await.map_err(failed)
    }

    /// Tries until the engine is there, a little more seldom each time; nothing when nobody listens any more.
    async fn arrival(&self, events: &mpsc::Sender<ContainerEvent>) -> Option<DockerRuntime> {
        let mut pauses = ExponentialBuilder::default()
            .with_min_delay(RETRY_FIRST)
            .with_max_delay(RETRY_LAST)
            .with_jitter()
            .without_max_times()
            .build();
        loop {
            match self.engine().await {
                Ok(engine) => return Some(engine.clone()),
                Err(error) => {
                    let reason = error.to_string();
                    let lost = ContainerEvent::EngineLost { reason };
                    events.send(lost).await.ok()?;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(pauses.next().unwrap_or(RETRY_LAST)) => {}
                () = events.closed() => return None,
            }
        }
    }
}

impl Runtime for LateDocker {
    async fn facts(&self) -> Result<EngineFacts, RuntimeError> {
        self.engine().await?.facts().await
    }

    async fn containers(&self) -> Result<Vec<Container>, RuntimeError> {
        self.engine().await?.containers().await
    }

    async fn inspect(&self, lease: LeaseId) -> Result<Option<Container>, RuntimeError> {
        self.engine().await?.inspect(lease).await
    }

    async fn pull(
        &self,
        image: &PinnedImage,
        disk: Bytes,
        progress: mpsc::Sender<PullProgress>,
    ) -> Result<PulledImage, Problem> {
        let engine = self.engine_for(Stage::Pulling).await?;
        engine.pull(image, disk, progress).await
    }

    async fn create(
        &self,
        spec: &ContainerSpec,
        image: &PulledImage,
    ) -> Result<ContainerId, Problem> {
        let engine = self.engine_for(Stage::Creating).await?;
        engine.create(spec, image).await
    }

    async fn start(&self, lease: LeaseId) -> Result<StartedAt, Problem> {
        self.engine_for(Stage::Starting).await?.start(lease).await
    }

    async fn terminate(&self, lease: LeaseId) -> Result<(), RuntimeError> {
        self.engine().await?.terminate(lease).await
    }

    async fn stop(&self, lease: LeaseId, grace: Seconds) -> Result<(), RuntimeError> {
        self.engine().await?.stop(lease, grace).await
    }

    async fn remove(&self, lease: LeaseId) -> Result<(), RuntimeError> {
        self.engine().await?.remove(lease).await
    }

    fn watch(&self) -> EventWatch {
        let late = self.clone();
        EventWatch::start(move |events| async move {
            if let Some(engine) = late.arrival(&events).await {
                watch::run(engine, events).await;
            }
        })
    }

    async fn save_logs(&self, lease: LeaseId, path: &Path) -> Result<(), RuntimeError> {
        self.engine().await?.save_logs(lease, path).await
    }

    async fn disk_used(&self, lease: LeaseId) -> Result<Bytes, RuntimeError> {
        self.engine().await?.disk_used(lease).await
    }

    async fn disk_left(&self, lease: LeaseId) -> Result<Bytes, RuntimeError> {
        self.engine().await?.disk_left(lease).await
    }

    async fn logs(&self, lease: LeaseId, query: LogQuery) -> Result<LogRecords, RuntimeError> {
        self.engine().await?.logs(lease, query).await
    }

    async fn exec(&self, lease: LeaseId, spec: &ExecSpec) -> Result<ExecSession, ExecError> {
        self.engine().await?.exec(lease, spec).await
    }

    async fn resize_exec(&self, exec: &ExecHandle, size: WindowSize) -> Result<(), RuntimeError> {
        self.engine().await?.resize_exec(exec, size).await
    }

    async fn signal_exec(&self, exec: &ExecHandle, signal: Signal) -> Result<(), RuntimeError> {
        self.engine().await?.signal_exec(exec, signal).await
    }

    async fn exec_state(&self, exec: &ExecHandle) -> Result<ExecState, RuntimeError> {
        self.engine().await?.exec_state(exec).await
    }
}
