//! The agent: one loop that owns the leases, and the tasks it started. It hears goals from its brokers,
//! events from the engine and questions from its owner, lets `core` decide, writes the decision to
//! the journal, and only then acts on it.
//!
//! ```text
//!   brokers ──goals──▶ ┌──────┐ ──grants, reports, offers──▶ brokers
//!   engine ──events──▶ │ loop │ ──pull, start, stop, remove──▶ one task a lease
//!   owner ─questions─▶ └──────┘ ──commits──▶ journal's thread
//! ```
//!
//! * `desk`: what the loop owns, and how a decision becomes true.
//! * `events`: the loop itself, one closed enum of what can happen.
//! * `goals`: what brokers ask. `talk`, `saying`: what they are told. `words`: what the log calls it.
//!   `announce`: the offers.
//! * `jobs`: which work on containers is under way. `task`: the work itself. `leased`: the GPUs that it is about. `notices`: the file that tells one that it has to go. `sight`: what the engine shows. `slicing`: how GPUs are divided. `disks`: what leases may still write.
//!   `benches`: what the machine was measured to do, and when that is measured again.
//!   `health`: faults of GPUs, and what is done with one between two leases. `fitness`: the same for the owner's eyes.
//! * `answers`: what the owner asks. `gauges`: what is shown of each GPU.

mod desk;
mod events;

mod announce;
mod goals;
mod mood;
mod saying;
mod talk;
mod words;

mod benches;
mod disks;
mod fitness;
mod health;
mod jobs;
mod leased;
mod notices;
mod sight;
mod slicing;
mod task;

mod answers;
mod entry;
mod gauges;
mod signing;

pub(crate) use answers::{Use, earnings as ask_earnings, lease_row, offer_row};
pub(crate) use saying::exchange;
pub(crate) use slicing::demands_of;

use crate::admin::serve::OwnersDesk;
use crate::clock::Clock;
use crate::config::Config;
use crate::core::leases::Leases;
use crate::hardware::Hardware;
use crate::journal::writer::JournalWriter;
use crate::journal::{Journal, JournalError};
use crate::metrics::serve::MetricsPage;
use crate::program::PROGRAM;
use crate::runtime::Runtime;
use desk::{Desk, Parts};
use events::Ears;
use gpu_health::health::Health;
use gpu_health::input::Input;
use protocol::ids::HostId;
use protocol::net::{Identity, Multiaddr, Node, NodeConfig, NodeError};
use protocol::operator::{AdminSocket, AdminSocketError, Folder, PageError};
use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Name of the folder of saved logs in the data folder.
pub const LOGS_NAME: &str = "logs";

/// Questions of owners on their way to the loop.
const QUESTIONS_MAX: usize = 16;

/// Why an agent did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The journal cannot be opened.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The network cannot be used.
    #[error(transparent)]
    Network(#[from] NodeError),
    /// The owner's socket cannot be made.
    #[error(transparent)]
    Socket(#[from] AdminSocketError),
    /// The metrics page cannot be where it is set to be.
    #[error(transparent)]
    Page(#[from] PageError),
    /// A folder or a thread cannot be made.
    #[error("could not {doing}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// Why an agent ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A decision could not be written: what is in memory must not be acted on.
    #[error("the journal failed, so the agent stops; containers go on running")]
    Journal(#[from] JournalError),
    /// A task of the agent broke off.
    #[error("a part of the agent broke off: {reason}")]
    Broke {
        /// What it said.
        reason: String,
    },
}

/// What an agent is started from.
#[derive(Debug)]
pub struct Setup<R, H> {
    /// Its data folder.
    pub folder: PathBuf,
    /// Its settings.
    pub config: Config,
    /// Its key.
    pub identity: Identity,
    /// The container engine.
    pub runtime: R,
    /// The machine.
    pub hardware: H,
    /// What is heard of its GPUs; nothing where nobody tells.
    pub heard: Option<mpsc::Receiver<Input>>,
}

/// A running agent. Dropping it ends it as a crash would; [`Agent::shutdown`] takes leave.
#[derive(Debug)]
pub struct Agent {
    host: HostId,
    node: Node,
    socket: PathBuf,
    stop: CancellationToken,
    alive: watch::Receiver<u64>,
    task: JoinHandle<Result<(), AgentError>>,
    _socket_task: tokio_util::task::AbortOnDropHandle<()>,
    metrics_address: SocketAddr,
    _page_task: tokio_util::task::AbortOnDropHandle<()>,
}

impl Agent {
    /// Starts an agent on its data folder: adopts the containers that its leases want and ends the others.
    ///
    /// # Errors
    /// When another agent has the folder, or journal, network or socket fail. An engine that does not
    /// answer is no error: the agent offers nothing until it does.
    pub async fn start<R: Runtime, H: Hardware>(setup: Setup<R, H>) -> Result<Self, StartError> {
        let Setup {
            folder,
            config,
            identity,
            runtime,
            hardware,
            heard,
        } = setup;
        // The engine mounts a part of it, and knows no other folder to start from.
        let folder = std::path::absolute(folder).map_err(|source| StartError::System {
            doing: "find the data folder",
            source,
        })?;
        let (journal, recovered) = Journal::open(&folder)?;
        make_folder(&folder.join(LOGS_NAME))?;
        let journal = JournalWriter::start(journal).map_err(|source| StartError::System {
            doing: "start the journal's thread",
            source,
        })?;
        let mut network = NodeConfig::host(config.listen.clone());
        network.announce.clone_from(&config.announce);
        let (node, inbound) = Node::start(&identity, network).await?;
        let socket = config
            .admin_socket
            .clone()
            .unwrap_or_else(|| Folder::new(&PROGRAM, &folder).admin_socket());
        let (asked, questions) = mpsc::channel(QUESTIONS_MAX);
        let page = MetricsPage::bind(config.metrics).await?;
        let metrics_address = page.address();
        let page_task = tokio::spawn(page.serve(asked.clone()));
        let socket_task =
            tokio::spawn(AdminSocket::bind(&PROGRAM, &socket)?.serve(OwnersDesk(asked)));

        let host = HostId::from(identity.public());
        let clock = Clock::of_this_boot();
        let leases = Leases::recovered(host, recovered.epochs, recovered.records);
        let stop = CancellationToken::new();
        let desk = Desk::new(Parts {
            metrics_address,
            folder,
            config,
            identity,
            clock,
            node: node.clone(),
            runtime,
            hardware,
            journal,
            leases,
            listing: recovered.listing,
            slices: recovered.slices,
            health: Health::recovered(recovered.health, clock.now().boot),
        });
        let (beat, alive) = watch::channel(0);
        let ears = Ears {
            inbound,
            questions,
            heard,
        };
        let task = tokio::spawn(desk.run(ears, stop.clone(), beat));
        Ok(Self {
            host,
            node,
            socket,
            stop,
            alive,
            task,
            _socket_task: tokio_util::task::AbortOnDropHandle::new(socket_task),
            metrics_address,
            _page_task: tokio_util::task::AbortOnDropHandle::new(page_task),
        })
    }

    /// Who this is.
    #[must_use]
    pub const fn host(&self) -> HostId {
        self.host
    }

    /// Where it can be dialled directly; nowhere unless it was told to listen.
    pub async fn addresses(&self) -> Vec<Multiaddr> {
        self.node.listen_addresses().await
    }

    /// Where its owner's commands reach it.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Where its page for Prometheus is, on this machine alone.
    #[must_use]
    pub const fn metrics_address(&self) -> SocketAddr {
        self.metrics_address
    }

    /// Changes as long as the loop turns.
    #[must_use]
    pub fn alive(&self) -> watch::Receiver<u64> {
        self.alive.clone()
    }

    /// Waits until the agent ended by itself. Cancel-safe.
    ///
    /// # Errors
    /// Why it did.
    pub async fn join(&mut self) -> Result<(), AgentError> {
        match (&mut self.task).await {
            Ok(result) => result,
            Err(error) => Err(AgentError::Broke {
                reason: error.to_string(),
            }),
        }
    }

    /// Takes the offers back, lets work that cannot be repeated finish within the drain deadline, and ends.
    /// Containers go on running.
    ///
    /// # Errors
    /// When the agent had broken already.
    pub async fn shutdown(mut self) -> Result<(), AgentError> {
        self.stop.cancel();
        self.join().await
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn make_folder(path: &Path) -> Result<(), StartError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| StartError::System {
            doing: "make the folder of saved logs",
            source,
        })
}
