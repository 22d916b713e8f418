//! The machine boundary: what the agent may ask of a container engine, and the types that cross it.
//!
//! It knows leases, images and containers; no price, no broker connection, no journal. What should run is the
//! agent's business: everything here does one step of it, and each step may be repeated (a container that is
//! there is not made twice, one that is gone is not an error to remove).
//!
//! ```text
//!   pull ─▶ create ─▶ start ─▶ … ─▶ stop ─▶ save_logs ─▶ remove
//!              └──────── watch: what happened to any of them, and the full list after each gap
//! ```
//!
//! * [`sandbox`]: pure; from lease, job and image to the one container body that is ever sent.
//! * [`gpus`]: GPUs on their way into a container. [`needs`]: what an image needs of them.
//! * [`docker`]: the real engine. [`sim`]: the same trait without one, for tests.
//! * [`exec`], [`logs`]: what a tunnel needs of a running container.

pub mod exec;
pub mod logs;

mod events;

pub mod docker;
pub mod gpus;
pub mod needs;
pub mod sandbox;
pub mod sim;

mod process;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};

use protocol::bounded::List;
use protocol::ids::{BrokerId, LeaseId};
use protocol::job::{Job, PinnedImage};
use protocol::lease::Problem;
use protocol::machine::{ContainerNetwork, GPUS_MAX};
use protocol::tunnel::WindowSize;
use protocol::units::{Bytes, Seconds, Timestamp};
use tokio::sync::mpsc;

pub use events::{ContainerEvent, EventWatch};

use exec::{ExecError, ExecHandle, ExecSession, ExecSpec, ExecState, Signal};
use gpus::LeasedGpu;
use logs::{LogQuery, LogRecords};

/// A container engine. Cheap to share behind an `Arc`; every method may be called at any time.
pub trait Runtime: Send + Sync + 'static {
    /// What the engine says of itself and of its machine, asked now.
    fn facts(&self) -> impl Future<Output = Result<EngineFacts, RuntimeError>> + Send;

    /// Every container of this host, running or not: what an agent that starts adopts or ends.
    fn containers(&self) -> impl Future<Output = Result<Vec<Container>, RuntimeError>> + Send;

    /// The container of one lease, if there is one.
    fn inspect(
        &self,
        lease: LeaseId,
    ) -> impl Future<Output = Result<Option<Container>, RuntimeError>> + Send;

    /// Makes sure that the image is there: nothing is fetched when it is. `progress` gets at most two
    /// messages a second and is never waited for. Dropping the future gives the pull up.
    ///
    /// The problem is [`ProblemKind::ImageTooBig`](protocol::lease::ProblemKind) as soon as the image is
    /// known to be larger than `disk`.
    fn pull(
        &self,
        image: &PinnedImage,
        disk: Bytes,
        progress: mpsc::Sender<PullProgress>,
    ) -> impl Future<Output = Result<PulledImage, Problem>> + Send;

    /// Makes the lease's container, or finds the one made before. One that was made for other GPUs than it gets now
    /// (a slice that was cut again has another UUID) is made again from what it wrote.
    fn create(
        &self,
        spec: &ContainerSpec,
        image: &PulledImage,
    ) -> impl Future<Output = Result<ContainerId, Problem>> + Send;

    /// Starts it and waits until its own program (not only its init) runs and its GPUs are seen inside; the answer is
    /// when, by the engine's clock. One that runs already is answered the same way.
    fn start(&self, lease: LeaseId) -> impl Future<Output = Result<StartedAt, Problem>> + Send;

    /// SIGTERM to its program, and nothing else. Done when it was sent, or when nothing runs.
    fn terminate(&self, lease: LeaseId) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// SIGTERM, `grace`, SIGKILL. Done when it does not run (or is not there).
    fn stop(
        &self,
        lease: LeaseId,
        grace: Seconds,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// Removes the container, its writable layer, volumes and network, running or not. Done when they are
    /// gone.
    fn remove(&self, lease: LeaseId) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// What happens to this host's containers from now on; see [`ContainerEvent`]. To be called inside a
    /// tokio runtime; the watch ends when what is returned is dropped.
    fn watch(&self) -> EventWatch;

    /// Writes the container's output to `path` in the form that [`logs::read_saved`] reads; at most
    /// [`logs::SAVED_BYTES_MAX`]. A container that is not there leaves no file.
    fn save_logs(
        &self,
        lease: LeaseId,
        path: &Path,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// How much the container wrote to its own layer. Walks it: not to be asked often.
    fn disk_used(&self, lease: LeaseId)
    -> impl Future<Output = Result<Bytes, RuntimeError>> + Send;

    /// How much more the container may write. Walks its layer: not to be asked often.
    fn disk_left(&self, lease: LeaseId)
    -> impl Future<Output = Result<Bytes, RuntimeError>> + Send;

    /// What the container wrote, as the engine keeps it. With `follow` the stream ends when the container
    /// does.
    fn logs(
        &self,
        lease: LeaseId,
        query: LogQuery,
    ) -> impl Future<Output = Result<LogRecords, RuntimeError>> + Send;

    /// Starts a program in the container.
    fn exec(
        &self,
        lease: LeaseId,
        spec: &ExecSpec,
    ) -> impl Future<Output = Result<ExecSession, ExecError>> + Send;

    /// Sets the size of the program's terminal.
    fn resize_exec(
        &self,
        exec: &ExecHandle,
        size: WindowSize,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// Sends a signal to the program and what it started in its process group. One that ended gets none.
    fn signal_exec(
        &self,
        exec: &ExecHandle,
        signal: Signal,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send;

    /// Where the program stands.
    fn exec_state(
        &self,
        exec: &ExecHandle,
    ) -> impl Future<Output = Result<ExecState, RuntimeError>> + Send;
}

/// The engine failed, was not there, or did not answer. What a renter may be told is in the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// Nothing answers at the socket.
    #[error("no container engine answers at {socket}: {reason}")]
    Unreachable {
        /// Where it was looked for.
        socket: String,
        /// What the system said.
        reason: String,
    },
    /// The socket is there and may not be used.
    #[error(
        "{socket} may not be used by this user: run as root, or join the socket's group (`docker`)"
    )]
    Permission {
        /// The socket.
        socket: String,
    },
    /// The engine is older than what this program can use.
    #[error("the engine speaks API {found}; at least {wanted} is needed (Docker 20.10)")]
    TooOld {
        /// Its newest API version.
        found: String,
        /// The oldest that will do.
        wanted: String,
    },
    /// The lease has no container here.
    #[error("the lease has no container here")]
    NoContainer,
    /// The engine answered with an error.
    #[error("the engine could not {what}: {detail}")]
    Failed {
        /// What was asked, as a verb and its object.
        what: &'static str,
        /// What the engine said.
        detail: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {detail}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        detail: String,
    },
}

/// What an engine says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineFacts {
    /// Version, like `20.10.24`.
    pub version: String,
    /// API version in use, like `(1, 41)`.
    pub api: (u32, u32),
    /// OCI runtime and its version, like `runc 1.1.5`.
    pub runtime: String,
    /// Names of the runtimes that it knows.
    pub runtimes: Vec<String>,
    /// The one that it takes unless it is told otherwise.
    pub default_runtime: String,
    /// Folders of its lists of devices (CDI); none where that is off, or the engine too old for it.
    pub cdi_spec_dirs: Vec<String>,
    /// Where it keeps images and containers.
    pub data_root: String,
    /// Storage driver, like `overlay2`.
    pub storage_driver: String,
    /// Whether a container's disk can be limited by the engine (overlay2 on xfs with project quotas).
    pub disk_quota: bool,
    /// Version of the control groups, 1 or 2.
    pub cgroup_version: u8,
    /// What sets the control groups up: `cgroupfs`, `systemd`.
    pub cgroup_driver: String,
    /// Whether AppArmor confines containers.
    pub apparmor: bool,
    /// Most open files that it may allow a container: its own hard limit, when that can be seen.
    pub open_files_max: u64,
    /// Kernel release.
    pub kernel: String,
    /// Operating system, like `Debian GNU/Linux 12 (bookworm)`.
    pub system: String,
    /// Logical CPUs.
    pub cpu_cores: u16,
    /// RAM in all.
    pub ram: Bytes,
}

/// The engine's own name of a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerId(pub String);

/// When a container started, by the engine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StartedAt(pub Timestamp);

/// How far a pull is: half of a layer counts when it is fetched and half when it is unpacked, so `done`
/// reaches `total` when the image can be used. Neither ever goes down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PullProgress {
    /// What is done.
    pub done: Bytes,
    /// Compressed size of the layers that are known so far and were not there before.
    pub total: Bytes,
}

/// An image that the engine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PulledImage {
    /// The engine's id of it, `sha256:…`: what a container is made from, never a tag.
    pub id: String,
    /// Unpacked size.
    pub size: Bytes,
    /// Its settings: a stranger's input.
    pub config: ImageConfig,
}

/// The settings of an image that matter for running it. All of it is a stranger's input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageConfig {
    /// `NAME=value`.
    pub environment: Vec<String>,
    /// What is run before the command.
    pub entrypoint: Vec<String>,
    /// What is run when the job names nothing.
    pub command: Vec<String>,
    /// Where it runs.
    pub working_directory: String,
    /// Paths that the image declares as volumes.
    pub volumes: Vec<String>,
    /// What is written on it.
    pub labels: BTreeMap<String, String>,
}

/// All that a container is made from, beside its image. Nothing here can weaken the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerSpec {
    /// The lease.
    pub lease: LeaseId,
    /// Whose lease it is.
    pub broker: BrokerId,
    /// Highest epoch of its resources.
    pub epoch: u64,
    /// The run that it is made in.
    pub run: u32,
    /// What to run.
    pub job: Job,
    /// The leased GPUs and slices; empty on a CPU machine.
    pub gpus: List<LeasedGpu, GPUS_MAX>,
    /// CPU time in thousandths of a core.
    pub cpu_millicores: u32,
    /// RAM; there is no swap beside it.
    pub ram: Bytes,
    /// Size of `/dev/shm`; it counts as RAM when used.
    pub shared_memory: Bytes,
    /// Disk for image and writable layer together.
    pub disk: Bytes,
    /// Its network.
    pub network: ContainerNetwork,
    /// From SIGTERM to SIGKILL when the engine itself goes down.
    pub stop_grace: Seconds,
    /// A folder of this machine that it can read at [`sandbox::NOTICES_PATH`]: the host's own, never a request's.
    pub notices: PathBuf,
}

/// A container of this host as the engine has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The lease on its label.
    pub lease: LeaseId,
    /// The broker on its label.
    pub broker: BrokerId,
    /// The epoch on its label.
    pub epoch: u64,
    /// The run that it was made in.
    pub run: u32,
    /// The engine's id.
    pub id: ContainerId,
    /// Where it stands.
    pub state: RunState,
    /// What crossed its network since it was started; nothing while it does not run or has none.
    pub traffic: Traffic,
}

/// What crossed a container's own network interfaces since it was started, headers of Ethernet included. It
/// begins at zero with each start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that left it.
    pub uploaded: Bytes,
    /// Bytes that reached it.
    pub downloaded: Bytes,
}

/// Where a container stands with the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// Made, never started.
    Created,
    /// It runs.
    Running {
        /// Since when, by the engine's clock.
        since: Timestamp,
    },
    /// It is frozen: somebody on the machine paused it. Starting it lets it go on.
    Paused {
        /// Since when it had run, by the engine's clock.
        since: Timestamp,
    },
    /// It ran.
    Exited(Exit),
    /// The engine is removing it, or failed to.
    Removing,
}

/// How a container's main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code; 128 and the signal's number for one that a signal ended.
    pub code: i32,
    /// Whether the kernel killed for memory in it and it then ended by SIGKILL.
    pub out_of_memory: bool,
    /// When it had started.
    pub started: Timestamp,
    /// When it ended, by the engine's clock.
    pub finished: Timestamp,
}
