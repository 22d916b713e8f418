//! A running broker: started from a folder and settings, joined, shut down. A test can run ten in one process.
//!
//! What each part decides is in that part; here they are put together, and taken apart again in order.

mod events;

use crate::admin::desk::AdminDesk;
use crate::api::Api;
use crate::clock::Clock;
use crate::config::Config;
use crate::core::book::BookLimits;
use crate::core::market::Market;
use crate::goals::GoalPusher;
use crate::health::{HealthPage, PageState};
use crate::market::{MarketError, MarketSetup, MarketThread};
use crate::metrics::Metrics;
use crate::ports::{PortTaken, check_free};
use crate::program::{PROGRAM, last_backup};
use crate::store::{Store, StoreError};
use crate::verify::transcripts::Transcripts;
use crate::verify::{AtWork, ProofConfig, Proofs};
use crate::watches::WatchList;
use ed25519_dalek::SigningKey;
use events::{EventLoop, Parts};
use protocol::ids::BrokerId;
use protocol::net::{Identity, IdentityError, Multiaddr, Node, NodeConfig, NodeError, NodeEvents};
use protocol::operator::{AdminSocket, AdminSocketError, Folder, PageError};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// How often it is looked whether the broker's own addresses changed.
const ADDRESS_PERIOD: Duration = Duration::from_secs(5);
/// What a peer may send at once after a pause, in seconds of its rate.
const BURST_SECONDS: NonZeroU32 = NonZeroU32::MIN.saturating_add(3);

/// What a broker is started from.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its folder, with a key in it.
    pub folder: Folder,
    /// Its settings.
    pub config: Config,
    /// Its clock.
    pub clock: Clock,
}

/// Why a broker did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The key.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The journal.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The market's thread.
    #[error(transparent)]
    Market(#[from] MarketError),
    /// A port of the network.
    #[error(transparent)]
    Port(#[from] PortTaken),
    /// The network.
    #[error(transparent)]
    Network(#[from] NodeError),
    /// The metrics page.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The operator's socket.
    #[error(transparent)]
    Admin(#[from] AdminSocketError),
    /// A task of the start did not come back.
    #[error("the start broke off: {reason}")]
    Broken {
        /// What the runtime said.
        reason: String,
    },
}

/// Why a broker stopped otherwise than as it was told.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The journal could not be written.
    #[error("the journal failed; what is not on disk was not answered")]
    Market(#[source] MarketError),
    /// The market ended although nobody told it to.
    #[error("the market ended by itself")]
    MarketEnded,
    /// The network ended although nobody told it to.
    #[error("the network ended by itself")]
    NetworkEnded,
    /// The event loop broke off.
    #[error("the broker broke off: {reason}")]
    Broken {
        /// What the runtime said.
        reason: String,
    },
}

/// A running broker. Dropping it tells it to stop.
#[derive(Debug)]
pub struct Server {
    api: Api,
    node: Node,
    addresses: Vec<Multiaddr>,
    metrics_address: SocketAddr,
    admin_socket: PathBuf,
    stop: CancellationToken,
    running: JoinHandle<Result<(), ServerError>>,
}

/// What is open before anything runs.
struct Opened {
    broker: BrokerId,
    key: SigningKey,
    thread: MarketThread,
    node: Node,
    events: NodeEvents,
    page: HealthPage,
    socket: AdminSocket,
}

/// Puts hosts to the proof, if the operator wants it.
fn prove(
    config: Option<ProofConfig>,
    api: &Api,
    node: &Node,
    key: SigningKey,
) -> impl Future<Output = ()> + use<> {
    let (api, node) = (api.clone(), node.clone());
    async move {
        if let Some(config) = config {
            let at_work = AtWork {
                api,
                node,
                key,
                config,
            };
            Proofs::new(at_work).run().await;
        }
    }
}

fn page_state(options: &Options, api: &Api, node: &Node) -> PageState {
    PageState {
        api: api.clone(),
        node: node.clone(),
        last_backup: last_backup(&options.folder),
    }
}

impl Server {
    /// Opens the journal, listens, serves.
    ///
    /// # Errors
    /// What is in the way; nothing is left running then.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let opened = Opened::open(&options).await?;
        Ok(Self::serve(opened, &options).await)
    }

    async fn serve(opened: Opened, options: &Options) -> Self {
        let Opened {
            broker,
            key,
            thread,
            node,
            events,
            page,
            socket,
        } = opened;
        let (limits, clock) = (options.config.limits, options.clock.clone());
        let started_at = clock.now();
        let stop = CancellationToken::new();
        let metrics = Arc::new(Metrics::of(thread.happenings().clone()));
        let market = thread.handle();
        metrics.set_started(started_at.0 / 1000);
        let (watches, watch_list) = WatchList::new(thread.notices());
        let (goals, pusher) = {
            let (market, metrics) = (market.clone(), Arc::clone(&metrics));
            GoalPusher::new(node.clone(), market, metrics, thread.notices())
        };
        let (tell, addresses) = watch::channel(node.external_addresses().await);
        let api = Api {
            broker,
            name: options.config.name.clone(),
            fee: options.config.market.fee,
            clock,
            market,
            goals,
            watches,
            watch_places: Arc::new(Semaphore::new(limits.watches)),
            addresses,
            metrics,
            stopping: stop.child_token(),
            transcripts: Transcripts::in_folder(options.folder.path()),
        };
        let (metrics_address, admin_socket) = (page.address(), socket.path().to_owned());
        let desk = AdminDesk {
            api: api.clone(),
            node: node.clone(),
            started_at,
            metrics_address,
        };
        let mut services = JoinSet::new();
        services.spawn(watch_list.run());
        services.spawn(prove(options.config.proofs.clone(), &api, &node, key));
        services.spawn(pusher.run());
        services.spawn(follow_addresses(node.clone(), tell));
        services.spawn(page.serve(page_state(options, &api, &node)));
        services.spawn(socket.serve(desk));
        let addresses = node.listen_addresses().await;
        let parts = Parts {
            api: api.clone(),
            node: node.clone(),
            thread,
            services,
            limits,
        };
        let running = tokio::spawn(EventLoop::new(parts, events, stop.clone()).run());
        Self {
            api,
            node,
            addresses,
            metrics_address,
            admin_socket,
            stop,
            running,
        }
    }

    /// What to give to hosts and renters: each address ends in `/p2p/` and this broker's id.
    #[must_use]
    pub fn addresses(&self) -> &[Multiaddr] {
        &self.addresses
    }

    /// This broker's id.
    #[must_use]
    pub const fn broker(&self) -> BrokerId {
        self.api.broker
    }

    /// Where the metrics page is.
    #[must_use]
    pub const fn metrics_address(&self) -> SocketAddr {
        self.metrics_address
    }

    /// Where the operator's socket is.
    #[must_use]
    pub fn admin_socket(&self) -> &Path {
        &self.admin_socket
    }

    /// What answers requests: for benchmarks and tests that come without a network.
    #[must_use]
    pub const fn api(&self) -> &Api {
        &self.api
    }

    /// Its place in the network.
    #[must_use]
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// Waits until it ends.
    ///
    /// # Errors
    /// When it ends otherwise than as it was told.
    pub async fn join(&mut self) -> Result<(), ServerError> {
        match (&mut self.running).await {
            Ok(ended) => ended,
            Err(error) => Err(ServerError::Broken {
                reason: error.to_string(),
            }),
        }
    }

    /// Stops accepting, answers what is in hand, writes a snapshot, closes.
    ///
    /// # Errors
    /// When the journal failed on the way.
    pub async fn shutdown(mut self) -> Result<(), ServerError> {
        self.stop.cancel();
        self.join().await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Opened {
    /// The market's thread comes last: until then, whatever fails leaves nothing behind.
    async fn open(options: &Options) -> Result<Self, StartError> {
        let Options {
            folder,
            config,
            clock,
        } = options;
        let identity = Identity::load(&folder.key())?;
        let broker = BrokerId::from(identity.public());
        let (store, market) = open_store(folder, broker).await?;
        let socket_path = config
            .admin_socket
            .clone()
            .unwrap_or_else(|| folder.admin_socket());
        let socket = AdminSocket::bind(&PROGRAM, &socket_path)?;
        check_free(&config.listen)?;
        let (node, events) = Node::start(&identity, node_config(config)).await?;
        let page = HealthPage::bind(config.metrics).await?;
        let setup = MarketSetup {
            settings: config.market,
            key: identity.signing_key().clone(),
            limits: BookLimits::default(),
            clock: clock.clone(),
        };
        let thread = MarketThread::start(store, market, setup)?;
        Ok(Self {
            broker,
            key: identity.signing_key().clone(),
            thread,
            node,
            events,
            page,
            socket,
        })
    }
}

async fn open_store(folder: &Folder, broker: BrokerId) -> Result<(Store, Market), StartError> {
    let path = folder.path().to_owned();
    let opening = tokio::task::spawn_blocking(move || Store::open(&path, broker));
    let (store, market) = opening.await.map_err(|error| StartError::Broken {
        reason: error.to_string(),
    })??;
    let recovery = store.recovery();
    for note in &recovery.notes {
        tracing::warn!("journal: {note}");
    }
    tracing::info!(
        last_event = store.last_event(),
        replayed = recovery.replayed,
        "journal is open and the ledger adds up"
    );
    Ok((store, market))
}

fn node_config(config: &Config) -> NodeConfig {
    let mut node = NodeConfig::broker(config.listen.clone());
    node.announce.clone_from(&config.announce);
    node.limits.connections = config.limits.connections;
    node.limits.requests_per_second = config.limits.requests_per_second;
    node.limits.request_burst = config
        .limits
        .requests_per_second
        .saturating_mul(BURST_SECONDS);
    node.limits.in_flight = config.limits.requests_in_flight;
    node
}

/// Keeps the addresses from which circuits are made.
async fn follow_addresses(node: Node, tell: watch::Sender<Vec<Multiaddr>>) {
    let mut period = tokio::time::interval(ADDRESS_PERIOD);
    loop {
        period.tick().await;
        let now = node.external_addresses().await;
        tell.send_if_modified(|before| {
            let changed = *before != now;
            before.clone_from(&now);
            changed
        });
    }
}
