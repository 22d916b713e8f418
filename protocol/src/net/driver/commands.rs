//! What the handles ask of the driver, and how it is carried out. Nothing here waits.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use libp2p::multiaddr::Protocol;
use libp2p::swarm::ConnectionId;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::{Multiaddr, PeerId};
use tokio::sync::oneshot;

use super::super::address::is_relayed;
use super::super::gate::places_of;
use super::super::identity::public_key_of;
use super::super::node::ConnectError;
use super::super::reservations::Waiting;
use super::super::streams::{Kind, OpenError, Opened, Opening};
use super::events::describe;
use super::{Dial, Driver};
use crate::ids::PublicKey;

/// What the handles ask of the driver. Each is answered exactly once, or the reply's sender is dropped.
#[derive(Debug)]
pub(crate) enum Command {
    Connect {
        peer: PeerId,
        addresses: Vec<Multiaddr>,
        reply: oneshot::Sender<Result<(), ConnectError>>,
    },
    Disconnect {
        peer: PeerId,
        reply: oneshot::Sender<()>,
    },
    /// Closes one connection; needs no answer.
    Close {
        peer: PeerId,
        connection: ConnectionId,
    },
    IsConnected {
        peer: PeerId,
        reply: oneshot::Sender<bool>,
    },
    Open {
        peer: PeerId,
        kind: Kind,
        reply: oneshot::Sender<Result<Opened, OpenError>>,
    },
    Reserve {
        relay: Multiaddr,
        reply: Waiting,
    },
    Snapshot {
        reply: oneshot::Sender<Snapshot>,
    },
    Shutdown(Stop),
}

/// An order to stop, with the time that what is being answered may still take.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) deadline: Duration,
    pub(crate) reply: oneshot::Sender<()>,
}

/// How things are at one moment.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) listen: Vec<Multiaddr>,
    pub(crate) external: Vec<Multiaddr>,
    pub(crate) peers: Vec<PublicKey>,
}

impl Driver {
    pub(super) fn on_command(&mut self, command: Command) -> ControlFlow<Stop> {
        // Every reply goes to a caller that may have stopped waiting; then nobody needs it.
        match command {
            Command::Connect {
                peer,
                addresses,
                reply,
            } => self.connect(peer, addresses, reply),
            Command::Disconnect { peer, reply } => {
                self.swarm.behaviour_mut().streams.forget_all(&peer);
                let _ = self.swarm.disconnect_peer_id(peer);
                let _ = reply.send(());
            }
            Command::Close { peer, connection } => self.close(peer, connection),
            Command::IsConnected { peer, reply } => {
                let _ = reply.send(self.is_connected(&peer, true));
            }
            Command::Open { peer, kind, reply } => self.open(peer, kind, reply),
            Command::Reserve { relay, reply } => match self.swarm.listen_on(relay) {
                Ok(listener) => self.reservations.asked(listener, reply),
                Err(error) => {
                    let _ = reply.send(Err(error.to_string()));
                }
            },
            Command::Snapshot { reply } => {
                let _ = reply.send(self.snapshot());
            }
            Command::Shutdown(stop) => return ControlFlow::Break(stop),
        }
        ControlFlow::Continue(())
    }

    fn connect(
        &mut self,
        peer: PeerId,
        addresses: Vec<Multiaddr>,
        reply: oneshot::Sender<Result<(), ConnectError>>,
    ) {
        let relayed_will_do = addresses.iter().all(is_relayed);
        if self.is_connected(&peer, relayed_will_do) {
            let _ = reply.send(Ok(()));
            return;
        }
        let options = DialOpts::peer_id(peer)
            .condition(PeerCondition::Always)
            .addresses(addresses)
            .build();
        let connection = options.connection_id();
        match self.swarm.dial(options) {
            Ok(()) => {
                let dial = Dial {
                    peer,
                    relayed_will_do,
                    reply,
                };
                self.dials.insert(connection, dial);
            }
            Err(error) => {
                let _ = reply.send(Err(describe(&error)));
            }
        }
    }

    /// Whether there is a connection, and a direct one if a relayed one will not do.
    fn is_connected(&self, peer: &PeerId, relayed_will_do: bool) -> bool {
        let streams = &self.swarm.behaviour().streams;
        if relayed_will_do {
            streams.is_connected(peer)
        } else {
            streams.is_direct(peer)
        }
    }

    fn open(
        &mut self,
        peer: PeerId,
        kind: Kind,
        reply: oneshot::Sender<Result<Opened, OpenError>>,
    ) {
        let Some(known) = self.peers.get(&peer) else {
            let _ = reply.send(Err(OpenError::Unreachable));
            return;
        };
        let Some(place) = known.outbound.take(kind) else {
            let limit = places_of(kind, &self.limits);
            let _ = reply.send(Err(OpenError::TooMany { limit }));
            return;
        };
        let opening = Opening { kind, place, reply };
        self.swarm.behaviour_mut().streams.open(peer, opening);
    }

    fn snapshot(&self) -> Snapshot {
        let me = *self.swarm.local_peer_id();
        let named = |address: &Multiaddr| match address.iter().last() {
            Some(Protocol::P2p(_)) => address.clone(),
            Some(_) | None => address.clone().with(Protocol::P2p(me)),
        };
        let peers: BTreeSet<PublicKey> = self
            .swarm
            .connected_peers()
            .filter(|peer| self.is_connected(peer, true))
            .filter_map(|peer| public_key_of(peer).ok())
            .collect();
        Snapshot {
            listen: self.swarm.listeners().map(named).collect(),
            external: self.swarm.external_addresses().map(named).collect(),
            peers: peers.into_iter().collect(),
        }
    }
}
