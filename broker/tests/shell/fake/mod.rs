//! A broker in a folder of its own, and hosts and renters that are nothing but a key and a node: what they
//! say is what a test makes them say.

pub(crate) mod papers;
pub(crate) mod prover;

use broker::clock::Clock;
use broker::config::Config;
use broker::program::PROGRAM;
use broker::server::{Options, Server};
use broker::store::Store;
use ed25519_dalek::SigningKey;
use protocol::ids::{BrokerId, HostId, LeaseId, PublicKey, RenterId};
use protocol::lease::{Goal, LeaseView};
use protocol::message::{self, BrokerReply, BrokerRequest, HostReply, HostRequest, Rejection};
use protocol::net::{Identity, Multiaddr, Node, NodeConfig, NodeEvent, NodeEvents, Tunnel};
use protocol::operator::{Folder, MetricsAddress, ask};
use protocol::units::Seconds;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How long anything may take on a machine that does other things, too.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// A broker that can be stopped and started again.
pub(crate) struct Stand {
    pub(crate) folder: Folder,
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) server: Option<Server>,
    _temporary: TempDir,
}

impl Stand {
    /// A broker on free ports, with these lines in its `broker.toml`.
    pub(crate) async fn new(settings: &str) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::new(&PROGRAM, temporary.path().join("broker"));
        let identity = Identity::create(&folder.key()).unwrap();
        let broker = BrokerId::from(identity.public());
        let (store, _) = Store::create(folder.path(), broker).unwrap();
        store.close().unwrap();
        let text = format!("listen = [\"/ip4/127.0.0.1/tcp/0\"]\n{settings}\n");
        let mut config = Config::parse(&folder.config(), &text).unwrap();
        config.metrics = MetricsAddress::At("127.0.0.1:0".parse().unwrap());
        let mut stand = Self {
            folder,
            config,
            clock: Clock::system(),
            server: None,
            _temporary: temporary,
        };
        stand.start().await;
        stand
    }

    pub(crate) async fn start(&mut self) {
        let (folder, config) = (self.folder.clone(), self.config.clone());
        let options = Options {
            folder,
            config,
            clock: self.clock.clone(),
        };
        self.server = Some(Server::start(options).await.unwrap());
    }

    pub(crate) async fn stop(&mut self) {
        self.server.take().unwrap().shutdown().await.unwrap();
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub(crate) fn id(&self) -> BrokerId {
        self.server().broker()
    }

    pub(crate) fn addresses(&self) -> Vec<Multiaddr> {
        self.server().addresses().to_vec()
    }

    /// The page at `path` of the metrics port: status line and body.
    pub(crate) async fn page(&self, path: &str) -> (String, String) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let address = self.server().metrics_address();
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    /// The value of a metric's line, by all that stands before it; zero when it is not there.
    pub(crate) async fn metric(&self, line: &str) -> i64 {
        let (_, body) = self.page("/metrics").await;
        let found = body
            .lines()
            .find_map(|l| l.strip_prefix(line)?.strip_prefix(' ')?.parse().ok());
        found.unwrap_or(0)
    }

    /// How often requests were refused for this reason.
    pub(crate) async fn refused(&self, reason: &str) -> i64 {
        self.metric(&format!("broker_refusals_total{{reason=\"{reason}\"}}"))
            .await
    }

    /// Asks over the operator's socket.
    pub(crate) async fn operate(
        &self,
        request: broker::admin::wire::AdminRequest,
    ) -> broker::admin::wire::AdminReply {
        let socket = self.server().admin_socket().to_owned();
        let asking = move || ask(&PROGRAM, &socket, &request).unwrap();
        tokio::task::spawn_blocking(asking).await.unwrap()
    }

    /// Credits a renter.
    pub(crate) async fn deposit(&self, renter: RenterId, dollars: &str) {
        use broker::admin::wire::{AdminReply, AdminRequest, Deposit};
        let deposit = Deposit {
            id: protocol::ids::DepositId::from_bytes(rand::random()),
            renter,
            amount: dollars.parse().unwrap(),
            memo: protocol::bounded::Text::default(),
            stranger: true,
        };
        let reply = self.operate(AdminRequest::Deposit(deposit)).await;
        assert!(matches!(reply, AdminReply::Deposited(_)), "{reply:?}");
    }

    /// Proves that the books balance, in memory and on disk.
    pub(crate) async fn check_ledger(&self) {
        use broker::admin::wire::{AdminReply, AdminRequest};
        let AdminReply::Ledger(ledger) = self.operate(AdminRequest::LedgerCheck).await else {
            panic!("another answer")
        };
        assert_eq!(ledger.sum_micro_usd, 0);
        assert_eq!(ledger.problems, Vec::<String>::new());
    }
}

/// A key and a node, connected to one broker or more.
pub(crate) struct Party {
    pub(crate) key: SigningKey,
    pub(crate) node: Node,
    pub(crate) broker: PublicKey,
}

impl Party {
    pub(crate) async fn new(
        seed: [u8; 32],
        config: NodeConfig,
        stand: &Stand,
    ) -> (Self, NodeEvents) {
        let key = SigningKey::from_bytes(&seed);
        let (node, events) = Node::start(&Identity::from_signing_key(key.clone()), config)
            .await
            .unwrap();
        let party = Self {
            key,
            node,
            broker: stand.id().into(),
        };
        party.connect(stand).await;
        (party, events)
    }

    pub(crate) async fn renter(stand: &Stand) -> Self {
        Self::new(rand::random(), NodeConfig::renter(), stand)
            .await
            .0
    }

    pub(crate) async fn connect(&self, stand: &Stand) {
        self.node
            .connect(stand.id().into(), stand.addresses(), DEADLINE)
            .await
            .unwrap();
    }

    pub(crate) fn public(&self) -> PublicKey {
        PublicKey::from_bytes(self.key.verifying_key().to_bytes())
    }

    pub(crate) fn renter_id(&self) -> RenterId {
        self.public().into()
    }

    pub(crate) fn host_id(&self) -> HostId {
        self.public().into()
    }

    pub(crate) async fn ask(&self, request: BrokerRequest) -> BrokerReply {
        self.ask_of(self.broker, request).await
    }

    pub(crate) async fn ask_of(&self, broker: PublicKey, request: BrokerRequest) -> BrokerReply {
        let bytes = message::encode(&request).unwrap();
        let wait = Duration::from_secs(40);
        let answer = self.node.request(broker, bytes, wait).await.unwrap();
        message::decode(&answer).unwrap()
    }

    pub(crate) async fn ask_bytes(&self, bytes: Vec<u8>) -> BrokerReply {
        let answer = self
            .node
            .request(self.broker, bytes, DEADLINE)
            .await
            .unwrap();
        message::decode(&answer).unwrap()
    }

    #[track_caller]
    pub(crate) fn refusal(reply: BrokerReply) -> Rejection {
        let BrokerReply::Refused(rejection) = reply else {
            panic!("not refused: {reply:?}")
        };
        rejection
    }

    #[track_caller]
    pub(crate) fn view(reply: BrokerReply) -> LeaseView {
        let BrokerReply::Lease(view) = reply else {
            panic!("not a lease: {reply:?}")
        };
        *view
    }

    pub(crate) async fn lease(&self, lease: LeaseId) -> LeaseView {
        Self::view(self.ask(BrokerRequest::Lease(lease)).await)
    }

    /// Waits, by long polls, until the lease is as wanted.
    pub(crate) async fn watch_until(
        &self,
        lease: LeaseId,
        wanted: impl Fn(&LeaseView) -> bool,
    ) -> LeaseView {
        let watching = async {
            let mut seen = 0;
            loop {
                let request = BrokerRequest::Watch {
                    lease,
                    seen,
                    wait: Seconds(5),
                };
                let view = Self::view(self.ask(request).await);
                if wanted(&view) {
                    return view;
                }
                seen = view.revision;
            }
        };
        tokio::time::timeout(Duration::from_secs(15), watching)
            .await
            .expect("the lease in time")
    }
}

/// A host that notes every goal it is sent.
pub(crate) struct FakeHost {
    pub(crate) party: Party,
    pub(crate) goals: mpsc::Receiver<(PublicKey, Goal)>,
    /// Tunnels that somebody opened.
    pub(crate) tunnels: mpsc::Receiver<Tunnel>,
    /// Most goals that were with it at once.
    pub(crate) at_once: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl FakeHost {
    pub(crate) async fn new(stand: &Stand) -> Self {
        Self::slow(stand, Duration::ZERO).await
    }

    /// A host that takes so long to note a goal.
    pub(crate) async fn slow(stand: &Stand, delay: Duration) -> Self {
        let (party, events) = Party::new(rand::random(), NodeConfig::host(Vec::new()), stand).await;
        let (sender, goals) = mpsc::channel(1024);
        let (tunnel, tunnels) = mpsc::channel(16);
        let at_once = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        tasks.spawn(note_goals(
            events,
            (sender, tunnel),
            delay,
            Arc::clone(&at_once),
        ));
        Self {
            party,
            goals,
            tunnels,
            at_once,
            _tasks: tasks,
        }
    }

    /// The next goal of `broker` that is as wanted.
    pub(crate) async fn goal_of(
        &mut self,
        broker: BrokerId,
        wanted: impl Fn(&Goal) -> bool,
    ) -> Goal {
        let waiting = async {
            loop {
                let (from, goal) = self.goals.recv().await.expect("a running host");
                if from == PublicKey::from(broker) && wanted(&goal) {
                    return goal;
                }
            }
        };
        tokio::time::timeout(DEADLINE, waiting)
            .await
            .expect("a goal in time")
    }

    pub(crate) async fn goal(&mut self, wanted: impl Fn(&Goal) -> bool) -> Goal {
        self.goal_of(self.party.broker.into(), wanted).await
    }
}

async fn note_goals(
    mut events: NodeEvents,
    (goals, tunnels): (mpsc::Sender<(PublicKey, Goal)>, mpsc::Sender<Tunnel>),
    delay: Duration,
    at_once: Arc<AtomicUsize>,
) {
    let mut answers = JoinSet::new();
    while let Some(event) = events.recv().await {
        while answers.try_join_next().is_some() {}
        let (peer, bytes, responder) = match event {
            NodeEvent::Request {
                peer,
                bytes,
                responder,
            } => (peer, bytes, responder),
            NodeEvent::Tunnel { tunnel, .. } => {
                let _ = tunnels.try_send(tunnel);
                continue;
            }
        };
        let HostRequest::Goal(goal) = message::decode(&bytes).unwrap();
        let goals = goals.clone();
        at_once.fetch_max(answers.len() + 1, Ordering::Relaxed);
        answers.spawn(async move {
            let _ = goals.send((peer, goal)).await;
            tokio::time::sleep(delay).await;
            let _ = responder.reply(message::encode(&HostReply::Noted).unwrap());
        });
    }
}
