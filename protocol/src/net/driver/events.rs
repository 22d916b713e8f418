//! What libp2p says happened, and what follows from it. Nothing here waits.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;

use libp2p::core::transport::ListenerId;
use libp2p::swarm::{ConnectionId, DialError, ListenError, SwarmEvent};
use libp2p::{Multiaddr, PeerId, connection_limits, identify, ping, relay};
use rustix::io::Errno;

use super::super::PROTOCOL_VERSION;
use super::super::address::is_relayed;
use super::super::behaviour::BehaviourEvent;
use super::super::counters::Refusal;
use super::super::gate::Peer;
use super::super::identity::public_key_of;
use super::super::node::ConnectError;
use super::super::sources::TooMany;
use super::super::streams::Inbound;
use super::{Dial, Driver};

impl Driver {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the library's enum is open, and most of its events are of no use here"
    )]
    pub(super) fn on_event(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::Behaviour(event) => self.on_behaviour(event),
            SwarmEvent::ConnectionEstablished {
                peer_id,
                connection_id,
                endpoint,
                ..
            } => self.on_established(peer_id, connection_id, endpoint.is_listener()),
            SwarmEvent::ConnectionClosed {
                peer_id,
                connection_id,
                num_established,
                cause,
                ..
            } => {
                self.counters.connection_closed();
                self.surplus.closed(connection_id);
                if num_established == 0 {
                    self.peers.remove(&peer_id);
                }
                tracing::debug!(peer = %peer_id, left = num_established, ?cause, "connection closed");
            }
            SwarmEvent::IncomingConnectionError { error, .. } => self.on_refused(&error),
            SwarmEvent::OutgoingConnectionError {
                connection_id,
                error,
                ..
            } => {
                if let Some(dial) = self.dials.remove(&connection_id) {
                    // The caller may have stopped waiting.
                    let _ = dial.reply.send(Err(describe(&error)));
                }
            }
            SwarmEvent::NewListenAddr {
                listener_id,
                address,
            } => self.on_listening(listener_id, address),
            SwarmEvent::ListenerClosed {
                listener_id,
                reason,
                ..
            } => self.reservations.closed(listener_id, &reason),
            SwarmEvent::ListenerError { error, .. } => {
                tracing::warn!(%error, "a listener reports an error");
            }
            _ => {}
        }
    }

    fn on_established(&mut self, id: PeerId, connection: ConnectionId, inbound: bool) {
        self.counters.connection_opened();
        let Ok(key) = public_key_of(&id) else {
            self.turn_away(id, connection, Refusal::ForeignKey);
            return;
        };
        if inbound && self.is_over(&id) {
            // Used by nobody from now on; the peer hears why on the first stream that it opens.
            self.counters.refuse(Refusal::TooManyConnections);
            self.swarm.behaviour_mut().streams.forget(&id, connection);
            self.surplus.add(id, connection);
            return;
        }
        self.peers
            .entry(id)
            .or_insert_with(|| Peer::new(key, &self.limits));
        self.finish_dials(id);
    }

    /// Whether the peer has more connections than it may, the newest counted.
    fn is_over(&self, peer: &PeerId) -> bool {
        let open = self.swarm.behaviour().streams.connections(peer);
        u32::try_from(open).map_or(true, |open| open > self.limits.connections_per_peer)
    }

    /// Everybody who waits for a connection to this peer has one now, whoever made it.
    fn finish_dials(&mut self, peer: PeerId) {
        let direct = self.swarm.behaviour().streams.is_direct(&peer);
        let served = |dial: &Dial| dial.peer == peer && (direct || dial.relayed_will_do);
        let (served, waiting) = std::mem::take(&mut self.dials)
            .into_iter()
            .partition(|(_, dial)| served(dial));
        self.dials = waiting;
        let served: BTreeMap<ConnectionId, Dial> = served;
        for dial in served.into_values() {
            // The caller may have stopped waiting.
            let _ = dial.reply.send(Ok(()));
        }
    }

    fn on_refused(&mut self, error: &ListenError) {
        match refusal_of(error) {
            Some(reason) => self.counters.refuse(reason),
            None => tracing::debug!(%error, "an inbound connection failed"),
        }
    }

    fn on_stream(&mut self, inbound: Inbound) {
        if self.surplus.contains(inbound.connection) {
            self.gate.turn_away(inbound.stream);
            return;
        }
        // A stream of a connection that has closed meanwhile is dropped with it.
        if let Some(peer) = self.peers.get(&inbound.peer) {
            let source = self.swarm.behaviour().sources.source_of(inbound.connection);
            self.gate.admit(peer, source, inbound);
        }
    }

    fn on_listening(&mut self, listener: ListenerId, address: Multiaddr) {
        self.started(listener);
        self.reservations.granted(listener, &address);
        if self.announce_listeners && !is_relayed(&address) {
            self.swarm.add_external_address(address);
        }
    }

    fn on_behaviour(&mut self, event: BehaviourEvent) {
        match event {
            BehaviourEvent::Streams(inbound) => self.on_stream(inbound),
            BehaviourEvent::Ping(event) => self.on_ping(&event),
            BehaviourEvent::Identify(event) => self.on_identified(event),
            BehaviourEvent::RelayServer(event) => self.on_relayed(&event),
            BehaviourEvent::RelayClient(event) => tracing::debug!(?event, "relay client"),
            BehaviourEvent::Limits(never) | BehaviourEvent::Sources(never) => match never {},
        }
    }

    /// A peer that does not answer pings is gone, even if the system still believes in the connection.
    fn on_ping(&mut self, event: &ping::Event) {
        match &event.result {
            Ok(_) => {}
            Err(ping::Failure::Unsupported) => {
                self.turn_away(event.peer, event.connection, Refusal::WrongVersion);
            }
            Err(failure @ (ping::Failure::Timeout | ping::Failure::Other { .. })) => {
                tracing::debug!(peer = %event.peer, %failure, "closing a silent connection");
                self.close(event.peer, event.connection);
            }
        }
    }

    fn on_identified(&mut self, event: identify::Event) {
        if let identify::Event::Received {
            connection_id,
            peer_id,
            info,
        } = event
            && info.protocol_version != PROTOCOL_VERSION
        {
            self.turn_away(peer_id, connection_id, Refusal::WrongVersion);
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the rest is for the log, and some of the variants are deprecated"
    )]
    fn on_relayed(&mut self, event: &relay::Event) {
        match event {
            relay::Event::ReservationReqAccepted { .. } => self.counters.reservation_accepted(),
            relay::Event::CircuitReqAccepted { .. } => self.counters.circuit_accepted(),
            _ => {}
        }
        tracing::debug!(?event, "relay");
    }

    fn turn_away(&mut self, peer: PeerId, connection: ConnectionId, reason: Refusal) {
        self.counters.refuse(reason);
        tracing::debug!(%peer, reason = reason.label(), "turning a connection away");
        self.close(peer, connection);
    }

    pub(super) fn close(&mut self, peer: PeerId, connection: ConnectionId) {
        self.swarm.behaviour_mut().streams.forget(&peer, connection);
        self.swarm.close_connection(connection);
    }
}

/// The limit that an inbound connection ran into, if that is why it failed.
fn refusal_of(error: &ListenError) -> Option<Refusal> {
    let ListenError::Denied { cause } = error else {
        return None;
    };
    let of_source = cause.downcast_ref::<TooMany>().map(|it| it.reason);
    let exceeded = cause.downcast_ref::<connection_limits::Exceeded>();
    of_source.or_else(|| exceeded.map(|_| Refusal::TooManyConnections))
}

/// What went wrong with a dial, for whoever asked for it.
pub(super) fn describe(error: &DialError) -> ConnectError {
    match error {
        DialError::NoAddresses => ConnectError::NoAddresses,
        DialError::WrongPeerId { obtained, .. } => ConnectError::WrongPeer { found: *obtained },
        DialError::Denied { cause }
            if cause
                .downcast_ref::<connection_limits::Exceeded>()
                .is_some() =>
        {
            ConnectError::TooManyConnections
        }
        DialError::Transport(tried) => ConnectError::Failed {
            reason: tried
                .iter()
                .map(|(address, error)| format!("{address}: {}", root_cause(error)))
                .collect::<Vec<_>>()
                .join("; "),
        },
        DialError::LocalPeerId { .. }
        | DialError::DialPeerConditionFalse(_)
        | DialError::Aborted
        | DialError::Denied { .. } => ConnectError::Failed {
            reason: error.to_string(),
        },
    }
}

/// The innermost error that says something: the outer ones of the transports only repeat each other.
pub(super) fn root_cause(error: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(error), |error| (*error).source())
        .map(ToString::to_string)
        .filter(|text| !text.is_empty())
        .last()
        .unwrap_or_else(|| format!("{error:?}"))
}

/// Whether a listener failed because its port is taken. The library wraps the system's error so that only its text
/// can be got at, so it is compared with what the system calls that error.
pub(super) fn is_in_use(error: &(dyn Error + 'static)) -> bool {
    root_cause(error) == io::Error::from(Errno::ADDRINUSE).to_string()
}
