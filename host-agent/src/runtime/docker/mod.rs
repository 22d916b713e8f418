//! The real engine: Docker (API 1.41 and later) on its unix socket.
//!
//! Containers are found by a name made from the lease, so that the way from a goal to a running container is
//! three calls: image, create, start. Lists are for starts of the agent and gaps of the event stream.
//!
//! ```text
//!   facts · pull · lifecycle (create, start, stop, remove) · gpus, kept · watch (events, disk) · exec · output (logs)
//!      └───────────── all speak through `failures`, which turns the engine's words into typed problems
//! ```

mod disk;
mod exec;
mod facts;
mod failures;
mod gpus;
mod kept;
mod late;
mod lifecycle;
mod output;
mod program;
mod pull;
mod pull_meter;
mod traffic;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::{API_DEFAULT_VERSION, Docker};
use protocol::ids::{HostId, LeaseId};
use protocol::job::PinnedImage;
use protocol::lease::Problem;
use protocol::tunnel::WindowSize;
use protocol::units::{Bytes, Seconds};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use super::exec::{ExecError, ExecHandle, ExecSession, ExecSpec, ExecState, Signal};
use super::logs::{LogQuery, LogRecords};
use super::{
    Container, ContainerId, ContainerSpec, EngineFacts, EventWatch, PullProgress, PulledImage,
    Runtime, RuntimeError, StartedAt,
};

pub use late::LateDocker;

/// Where the engine listens unless told otherwise.
pub const DEFAULT_SOCKET: &str = "/var/run/docker.sock";
/// Oldest API version that has all that the sandbox sets (private control groups): Docker 20.10.
const API_OLDEST: (u32, u32) = (1, 41);
/// How long the engine may take to begin an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// How long it may take to copy what a container wrote.
const COPY_TIMEOUT: Duration = Duration::from_secs(3600);
/// How often the disks of running containers are measured, at most.
const DISK_EVERY: Duration = Duration::from_secs(5);

/// A Docker engine of this machine, as one host uses it.
#[derive(Debug, Clone)]
pub struct DockerRuntime {
    docker: Docker,
    socket: PathBuf,
    host: HostId,
    /// As of the connection; what changes with the engine's settings needs a restart of the agent.
    facts: EngineFacts,
    disk_every: Duration,
    /// Where the machine's devices and libraries are: `/`.
    root: PathBuf,
}

impl DockerRuntime {
    /// Connects to the engine at `socket` and asks what it is.
    ///
    /// # Errors
    /// When there is none, it may not be used, or it is too old.
    pub async fn connect(socket: &Path, host: HostId) -> Result<Self, RuntimeError> {
        UnixStream::connect(socket)
            .await
            .map_err(|error| failures::of_socket(socket, &error))?;
        let name = socket.display().to_string();
        let timeout = ANSWER_TIMEOUT.as_secs();
        let failed = |error| failures::of_engine(socket, "say its version", &error);
        let docker = Docker::connect_with_unix(&name, timeout, API_DEFAULT_VERSION)
            .map_err(failed)?
            .negotiate_version()
            .await
            .map_err(failed)?;
        let facts = facts::ask(&docker, socket).await?;
        if facts.api < API_OLDEST {
            let text = |(major, minor): (u32, u32)| format!("{major}.{minor}");
            return Err(RuntimeError::TooOld {
                found: text(facts.api),
                wanted: text(API_OLDEST),
            });
        }
        Ok(Self {
            docker,
            socket: socket.to_owned(),
            host,
            facts,
            disk_every: DISK_EVERY,
            root: PathBuf::from("/"),
        })
    }

    /// The same, measuring the disks of running containers so often (5 seconds unless told otherwise).
    #[must_use]
    pub const fn measuring_disks_every(mut self, every: Duration) -> Self {
        self.disk_every = every;
        self
    }

    /// The same, looking for GPUs' device nodes, driver and libraries under another folder than `/`.
    #[must_use]
    pub fn with_gpus_under(mut self, root: &Path) -> Self {
        root.clone_into(&mut self.root);
        self
    }

    fn failed(&self, what: &'static str) -> impl Fn(bollard::errors::Error) -> RuntimeError {
        move |error| failures::of_engine(&self.socket, what, &error)
    }
}

impl Runtime for DockerRuntime {
    async fn facts(&self) -> Result<EngineFacts, RuntimeError> {
        facts::ask(&self.docker, &self.socket).await
    }

    async fn containers(&self) -> Result<Vec<Container>, RuntimeError> {
        lifecycle::list(self).await
    }

    async fn inspect(&self, lease: LeaseId) -> Result<Option<Container>, RuntimeError> {
        lifecycle::inspect(self, lease).await
    }

    async fn pull(
        &self,
        image: &PinnedImage,
        disk: Bytes,
        progress: mpsc::Sender<PullProgress>,
    ) -> Result<PulledImage, Problem> {
        pull::pull(self, image, disk, progress).await
    }

    async fn create(
        &self,
        spec: &ContainerSpec,
        image: &PulledImage,
    ) -> Result<ContainerId, Problem> {
        lifecycle::create(self, spec, image).await
    }

    async fn start(&self, lease: LeaseId) -> Result<StartedAt, Problem> {
        lifecycle::start(self, lease).await
    }

    async fn terminate(&self, lease: LeaseId) -> Result<(), RuntimeError> {
        lifecycle::terminate(self, lease).await
    }

    async fn stop(&self, lease: LeaseId, grace: Seconds) -> Result<(), RuntimeError> {
        lifecycle::stop(self, lease, grace).await
    }

    async fn remove(&self, lease: LeaseId) -> Result<(), RuntimeError> {
        lifecycle::remove(self, lease).await
    }

    fn watch(&self) -> EventWatch {
        let runtime = self.clone();
        EventWatch::start(move |events| watch::run(runtime, events))
    }

    async fn save_logs(&self, lease: LeaseId, path: &Path) -> Result<(), RuntimeError> {
        output::save(self, lease, path).await
    }

    async fn disk_used(&self, lease: LeaseId) -> Result<Bytes, RuntimeError> {
        disk::used(self, lease).await
    }

    async fn disk_left(&self, lease: LeaseId) -> Result<Bytes, RuntimeError> {
        let allowed = watch::limit(self, lease).await?;
        let allowed = allowed.ok_or(RuntimeError::NoContainer)?;
        let used = disk::used_up_to(self, lease, allowed).await?;
        Ok(Bytes(allowed.0.saturating_sub(used.0)))
    }

    async fn logs(&self, lease: LeaseId, query: LogQuery) -> Result<LogRecords, RuntimeError> {
        output::records(self, lease, query).await
    }

    async fn exec(&self, lease: LeaseId, spec: &ExecSpec) -> Result<ExecSession, ExecError> {
        exec::start(self, lease, spec).await
    }

    async fn resize_exec(&self, exec: &ExecHandle, size: WindowSize) -> Result<(), RuntimeError> {
        exec::resize(self, &exec.id, size).await
    }

    async fn signal_exec(&self, exec: &ExecHandle, signal: Signal) -> Result<(), RuntimeError> {
        exec::signal(exec, signal)
    }

    async fn exec_state(&self, exec: &ExecHandle) -> Result<ExecState, RuntimeError> {
        exec::state(self, &exec.id).await
    }
}
