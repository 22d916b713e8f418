//! The handle that a program holds: start a node, connect, ask, open tunnels, hear what arrives.
//! The work is done by the driver's task; this file only talks to it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use libp2p::swarm::ConnectionId;
use libp2p::{Multiaddr, PeerId};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::behaviour::build_swarm;
use super::config::NodeConfig;
use super::counters::NetCounters;
use super::driver::{Command, Driver, Snapshot, Stop};
use super::gate::Gate;
use super::identity::{Identity, peer_id_of};
use super::link::{LinkHandle, ReserveRelay};
use super::requests::{Arrived, RequestError, Responder, ask, check_size};
use super::reservations::Reservation;
use super::streams::{Kind, OpenError, Opened};
use super::tunnels::{Tunnel, TunnelError};
use super::wire::PeerRefusal;
use crate::ids::PublicKey;

/// Commands that wait for the driver; beyond it a caller waits, which costs nobody else anything.
const COMMANDS: usize = 1024;
/// Listeners come up within milliseconds, or never.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// It could not listen where it was told.
    #[error("cannot listen on {address}: {reason}; is another program using that port?")]
    Listen {
        /// Where.
        address: Multiaddr,
        /// What the system or the library said.
        reason: String,
    },
    /// Encryption or name resolution could not be set up.
    #[error("cannot set up the network: {reason}")]
    Transport {
        /// What the library said.
        reason: String,
    },
}

impl NodeError {
    pub(crate) fn transport(error: impl fmt::Display) -> Self {
        Self::Transport {
            reason: error.to_string(),
        }
    }
}

/// Why there is no connection to a peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// No address was given.
    #[error("no address to dial")]
    NoAddresses,
    /// Somebody else lives there.
    #[error("another node answered there: {found}")]
    WrongPeer {
        /// Whom the address led to.
        found: PeerId,
    },
    /// Every address failed.
    #[error("could not connect: {reason}")]
    Failed {
        /// Each address tried and what went wrong.
        reason: String,
    },
    /// No connection in time.
    #[error("no connection within {after:?}")]
    TimedOut {
        /// The deadline that was given.
        after: Duration,
    },
    /// This node has as many connections as it allows itself.
    #[error("this node has too many connections")]
    TooManyConnections,
    /// This node has stopped.
    #[error("the node has stopped")]
    NodeStopped,
}

/// What arrives from peers.
#[derive(Debug)]
pub enum NodeEvent {
    /// A request that wants a reply.
    Request {
        /// Who asks; proven by the connection's handshake.
        peer: PublicKey,
        /// At most [`MAX_FRAME`](super::MAX_FRAME) bytes, not yet looked at.
        bytes: Vec<u8>,
        /// Where the reply goes.
        responder: Responder,
    },
    /// A tunnel that was accepted.
    Tunnel {
        /// Who opened it; proven by the connection's handshake.
        peer: PublicKey,
        /// Whether it comes through a broker's relay.
        relayed: bool,
        /// The tunnel.
        tunnel: Tunnel,
    },
}

/// The queue of what arrives. While it is not read, requests and tunnels fill their bounds and are then refused.
#[derive(Debug)]
pub struct NodeEvents {
    requests: mpsc::Receiver<Arrived>,
    tunnels: mpsc::Receiver<Tunnel>,
}

impl NodeEvents {
    /// The next event; `None` once the node has stopped. Cancel-safe.
    pub async fn recv(&mut self) -> Option<NodeEvent> {
        tokio::select! {
            Some(arrived) = self.requests.recv() => Some(NodeEvent::Request {
                peer: arrived.peer,
                bytes: arrived.bytes,
                responder: arrived.responder,
            }),
            Some(tunnel) = self.tunnels.recv() => Some(NodeEvent::Tunnel {
                peer: tunnel.peer(),
                relayed: tunnel.relayed(),
                tunnel,
            }),
            else => None,
        }
    }
}

/// A running node. Clones are handles to the same one; it stops when the last is dropped, or by [`Node::shutdown`].
#[derive(Clone, Debug)]
pub struct Node {
    commands: mpsc::Sender<Command>,
    counters: Arc<NetCounters>,
    public: PublicKey,
}

impl Node {
    /// Starts a node; when this returns it listens at every address it was given.
    ///
    /// # Errors
    /// [`NodeError::Listen`] naming the address, for instance because its port is taken.
    pub async fn start(
        identity: &Identity,
        config: NodeConfig,
    ) -> Result<(Self, NodeEvents), NodeError> {
        let swarm = build_swarm(identity.keypair(), &config)?;
        let counters = Arc::new(NetCounters::default());
        let (command_sender, command_receiver) = mpsc::channel(COMMANDS);
        // As many as can be in flight: a request that was let in always finds room, unless nobody reads.
        let (request_sender, requests) = mpsc::channel(config.limits.in_flight.max(1));
        let (tunnel_sender, tunnels) = mpsc::channel(config.limits.tunnel_queue.max(1));
        let gate = Gate::new(
            config.limits,
            Arc::clone(&counters),
            request_sender,
            tunnel_sender,
        );
        let mut driver = Driver::new(swarm, command_receiver, gate, &counters, &config);
        driver.listen(&config.listen, START_TIMEOUT).await?;
        // Owned by the handles: it ends when they are all gone, or is told to by `shutdown`.
        tokio::spawn(driver.run());
        let node = Self {
            commands: command_sender,
            counters,
            public: identity.public(),
        };
        Ok((node, NodeEvents { requests, tunnels }))
    }

    /// This node's key.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    /// What was let in and what was refused so far.
    #[must_use]
    pub const fn counters(&self) -> &Arc<NetCounters> {
        &self.counters
    }

    /// Where this node listens, each with its id at the end: ready to be dialled or printed.
    pub async fn listen_addresses(&self) -> Vec<Multiaddr> {
        self.snapshot().await.listen
    }

    /// Where others can reach this node as far as it knows: announced addresses and circuits.
    pub async fn external_addresses(&self) -> Vec<Multiaddr> {
        self.snapshot().await.external
    }

    /// Everybody there is a connection to.
    pub async fn connected_peers(&self) -> Vec<PublicKey> {
        self.snapshot().await.peers
    }

    /// Whether there is a connection to the peer.
    pub async fn is_connected(&self, peer: PublicKey) -> bool {
        self.call(|reply| Command::IsConnected {
            peer: peer_id_of(&peer),
            reply,
        })
        .await
        .unwrap_or(false)
    }

    /// Connects to a peer, at its own addresses or through circuits. Returns at once if there is a connection
    /// already, unless that one is relayed and some address given here is not.
    ///
    /// # Errors
    /// [`ConnectError`], with every address tried and what went wrong there.
    pub async fn connect(
        &self,
        peer: PublicKey,
        addresses: Vec<Multiaddr>,
        deadline: Duration,
    ) -> Result<(), ConnectError> {
        let connecting = self.call(|reply| Command::Connect {
            peer: peer_id_of(&peer),
            addresses,
            reply,
        });
        match timeout(deadline, connecting).await {
            Ok(Some(result)) => result,
            Ok(None) => Err(ConnectError::NodeStopped),
            Err(_) => Err(ConnectError::TimedOut { after: deadline }),
        }
    }

    /// Closes every connection to the peer.
    pub async fn disconnect(&self, peer: PublicKey) {
        // A stopped node has none.
        let _ = self
            .call(|reply| Command::Disconnect {
                peer: peer_id_of(&peer),
                reply,
            })
            .await;
    }

    /// Keeps a connection to a broker for as long as the handle is held, and on request a relay circuit on it.
    /// Must be called inside a tokio runtime.
    #[must_use = "the connection is kept only as long as the handle"]
    pub fn keep_connected(
        &self,
        broker: PublicKey,
        addresses: Vec<Multiaddr>,
        reserve: ReserveRelay,
    ) -> LinkHandle {
        LinkHandle::start(self.clone(), broker, addresses, reserve)
    }

    /// Sends a request to a connected peer and waits for the reply. Nothing is dialled for it.
    /// Dropping the future withdraws the request, though the peer may have read it already. When the peer says
    /// [`PeerRefusal::TooManyConnections`] the connection is given up: connect again before asking again.
    ///
    /// # Errors
    /// [`RequestError`]; [`RequestError::may_have_been_handled`] tells whether sending it again is a second time.
    pub async fn request(
        &self,
        peer: PublicKey,
        bytes: Vec<u8>,
        deadline: Duration,
    ) -> Result<Vec<u8>, RequestError> {
        check_size(&bytes)?;
        let asking = async {
            let opened = self
                .open(peer, Kind::Request)
                .await
                .ok_or(RequestError::NodeStopped)?
                .map_err(|error| RequestError::of_opening(&error, deadline))?;
            let connection = opened.connection;
            let _place = opened.place;
            let answer = ask(opened.stream, &bytes).await;
            let too_many = RequestError::Busy {
                reason: PeerRefusal::TooManyConnections,
            };
            if answer.as_ref() == Err(&too_many) {
                self.close(peer, connection).await;
            }
            answer
        };
        timeout(deadline, asking)
            .await
            .unwrap_or(Err(RequestError::TimedOut { after: deadline }))
    }

    /// Opens a tunnel to a connected peer, on a direct connection if there is one.
    ///
    /// # Errors
    /// [`TunnelError`]; in particular [`TunnelError::Refused`] with the peer's reason.
    pub async fn open_tunnel(
        &self,
        peer: PublicKey,
        deadline: Duration,
    ) -> Result<Tunnel, TunnelError> {
        let opening = async {
            let opened = self
                .open(peer, Kind::Tunnel)
                .await
                .ok_or(TunnelError::NodeStopped)?
                .map_err(|error| TunnelError::of_opening(&error, deadline))?;
            let connection = opened.connection;
            let answer = Tunnel::wait_accepted(opened, peer).await;
            let too_many = TunnelError::Refused {
                reason: PeerRefusal::TooManyConnections,
            };
            if answer.as_ref().err() == Some(&too_many) {
                self.close(peer, connection).await;
            }
            answer
        };
        timeout(deadline, opening)
            .await
            .unwrap_or(Err(TunnelError::TimedOut { after: deadline }))
    }

    /// Stops: no new connections or streams, requests being answered are finished within `deadline`, then every
    /// connection is closed. Returns when the node is gone; then so are its ports.
    pub async fn shutdown(&self, deadline: Duration) {
        // A node that has stopped already needs no stopping.
        let _ = self
            .call(|reply| Command::Shutdown(Stop { deadline, reply }))
            .await;
        self.commands.closed().await;
    }

    /// Opens a stream; `None` if the node has stopped.
    pub(crate) async fn open(
        &self,
        peer: PublicKey,
        kind: Kind,
    ) -> Option<Result<Opened, OpenError>> {
        let opened = self
            .call(|reply| Command::Open {
                peer: peer_id_of(&peer),
                kind,
                reply,
            })
            .await;
        if opened.is_none() && !self.commands.is_closed() {
            // The order for the stream was dropped with the connection it was given to.
            let gone = io::Error::from(io::ErrorKind::ConnectionReset);
            return Some(Err(OpenError::Io(gone)));
        }
        opened
    }

    /// Gives up a connection on which the peer will do nothing, so that the next try is on another.
    pub(crate) async fn close(&self, peer: PublicKey, connection: ConnectionId) {
        let peer = peer_id_of(&peer);
        // A stopped node has none.
        let _ = self
            .commands
            .send(Command::Close { peer, connection })
            .await;
    }

    /// Asks a relay for a circuit; `None` if the node has stopped.
    pub(crate) async fn reserve(&self, relay: Multiaddr) -> Option<Result<Reservation, String>> {
        self.call(|reply| Command::Reserve { relay, reply }).await
    }

    async fn snapshot(&self) -> Snapshot {
        self.call(|reply| Command::Snapshot { reply })
            .await
            .unwrap_or_default()
    }

    async fn call<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        self.commands.send(command(sender)).await.ok()?;
        receiver.await.ok()
    }
}
