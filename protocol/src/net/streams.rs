//! Raw streams of four kinds, opened on the best connection to a peer and handed up when they arrive.
//! It counts and refuses nothing: the gate does, with the stream in hand, so that it can say so to the peer.
//!
//! Written here, and not taken from `libp2p-stream`, because that one drops inbound streams without a word when
//! its reader is not waiting at that instant, and opens on a random connection of several.

mod guarded;
mod handler;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::task::{Context, Poll};

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::swarm::behaviour::ConnectionEstablished;
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, NotifyHandler, THandler,
    THandlerInEvent, THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, PeerId};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

pub(crate) use self::guarded::GuardedStream;
use self::handler::Handler;
use super::address::is_relayed;

/// What a stream is for; each has its own protocol name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One request and its reply.
    Request,
    /// Bytes between two programs.
    Tunnel,
    /// Nothing: as long as it is open, both sides keep the connection.
    Link,
    /// Bytes that are only counted.
    Speed,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Request, Self::Tunnel, Self::Link, Self::Speed];
}

impl AsRef<str> for Kind {
    fn as_ref(&self) -> &str {
        match self {
            Self::Request => "/feira/rpc/1",
            Self::Tunnel => "/feira/tunnel/1",
            Self::Link => "/feira/link/1",
            Self::Speed => "/feira/speed/1",
        }
    }
}

/// An order for a stream to a peer, with the place it takes and where the stream goes.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) kind: Kind,
    pub(crate) place: OwnedSemaphorePermit,
    pub(crate) reply: oneshot::Sender<Result<Opened, OpenError>>,
}

/// A stream this node opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) stream: GuardedStream,
    pub(crate) connection: ConnectionId,
    pub(crate) relayed: bool,
    /// Kept as long as the stream is.
    pub(crate) place: OwnedSemaphorePermit,
}

/// Why no stream was opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("there is no connection to the peer")]
    Unreachable,
    #[error("{limit} are open to the peer already")]
    TooMany { limit: usize },
    #[error("the peer did not answer")]
    TimedOut,
    #[error("the peer does not speak this protocol")]
    Unsupported,
    #[error("the connection failed: {0}")]
    Io(io::Error),
}

/// A stream that a peer opened.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) peer: PeerId,
    pub(crate) connection: ConnectionId,
    pub(crate) kind: Kind,
    pub(crate) relayed: bool,
    pub(crate) stream: GuardedStream,
}

/// The behaviour: which connections there are to whom, and which streams are on their way.
#[derive(Default)]
pub(crate) struct Behaviour {
    connections: HashMap<PeerId, Vec<Connection>>,
    pending: VecDeque<ToSwarm<Inbound, Opening>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Connection {
    id: ConnectionId,
    relayed: bool,
}

impl Behaviour {
    /// Opens a stream on the best connection there is: the newest direct one, or else the newest relayed one.
    /// The newest, because of two direct ones the older is often the one that a lost network left behind.
    pub(crate) fn open(&mut self, peer: PeerId, opening: Opening) {
        let Some(best) = self.connections.get(&peer).and_then(|all| best_of(all)) else {
            // The caller may have stopped waiting; then nobody needs the answer.
            let _ = opening.reply.send(Err(OpenError::Unreachable));
            return;
        };
        self.pending.push_back(ToSwarm::NotifyHandler {
            peer_id: peer,
            handler: NotifyHandler::One(best.id),
            event: opening,
        });
    }

    /// Uses the connection no more, because it is being closed, now or soon. That can take the system a quarter of an hour when
    /// the other end is cut off with bytes still on the way to it.
    pub(crate) fn forget(&mut self, peer: &PeerId, id: ConnectionId) {
        if let Some(all) = self.connections.get_mut(peer) {
            all.retain(|connection| connection.id != id);
            if all.is_empty() {
                self.connections.remove(peer);
            }
        }
    }

    /// Uses no connection to the peer any more.
    pub(crate) fn forget_all(&mut self, peer: &PeerId) {
        self.connections.remove(peer);
    }

    /// Whether there is a connection to the peer.
    pub(crate) fn is_connected(&self, peer: &PeerId) -> bool {
        self.connections.contains_key(peer)
    }

    /// Connections to the peer that streams are opened on.
    pub(crate) fn connections(&self, peer: &PeerId) -> usize {
        self.connections.get(peer).map_or(0, Vec::len)
    }

    /// Whether some connection to the peer does not go through a relay.
    pub(crate) fn is_direct(&self, peer: &PeerId) -> bool {
        self.connections
            .get(peer)
            .is_some_and(|all| all.iter().any(|connection| !connection.relayed))
    }

    fn is_relayed(&self, peer: &PeerId, id: ConnectionId) -> bool {
        self.connections
            .get(peer)
            .and_then(|all| all.iter().find(|connection| connection.id == id))
            .is_some_and(|connection| connection.relayed)
    }

    fn established(&mut self, event: &ConnectionEstablished<'_>) {
        self.connections
            .entry(event.peer_id)
            .or_default()
            .push(Connection {
                id: event.connection_id,
                relayed: event.endpoint.is_relayed(),
            });
    }
}

/// Connections are kept in the order they were established.
fn best_of(all: &[Connection]) -> Option<Connection> {
    let newest_first = || all.iter().rev().copied();
    newest_first()
        .find(|connection| !connection.relayed)
        .or_else(|| newest_first().next())
}

impl NetworkBehaviour for Behaviour {
    type ConnectionHandler = Handler;
    type ToSwarm = Inbound;

    fn handle_established_inbound_connection(
        &mut self,
        id: ConnectionId,
        _: PeerId,
        local: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(Handler::new(id, is_relayed(local)))
    }

    fn handle_established_outbound_connection(
        &mut self,
        id: ConnectionId,
        _: PeerId,
        address: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(Handler::new(id, is_relayed(address)))
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        if let FromSwarm::ConnectionEstablished(event) = event {
            self.established(&event);
        } else if let FromSwarm::ConnectionClosed(event) = event {
            self.forget(&event.peer_id, event.connection_id);
        }
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        (kind, stream): THandlerOutEvent<Self>,
    ) {
        self.pending.push_back(ToSwarm::GenerateEvent(Inbound {
            peer,
            connection,
            kind,
            relayed: self.is_relayed(&peer, connection),
            stream,
        }));
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Inbound, THandlerInEvent<Self>>> {
        // No waker is needed: `open` is called by the task that polls the swarm, before it polls again.
        self.pending.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_direct_connection_is_taken_before_any_relayed_one() {
        let of = |id, relayed| Connection {
            id: ConnectionId::new_unchecked(id),
            relayed,
        };
        let check = |all: &[Connection], expected: Option<usize>| {
            assert_eq!(
                best_of(all).map(|connection| connection.id),
                expected.map(ConnectionId::new_unchecked)
            );
        };
        check(&[], None);
        check(&[of(1, true)], Some(1));
        check(&[of(1, true), of(2, true)], Some(2));
        check(&[of(1, false), of(2, true)], Some(1));
        check(&[of(1, false), of(2, true), of(3, false)], Some(3));
    }
}
