//! Where connections come from, and how many of one address there may be: half open ones, which cost an attacker
//! nothing, and established ones. Without it one machine could fill the places of everybody.
//! It knows nothing of keys: a peer's own connections are counted elsewhere.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};
use std::task::{Context, Poll};

use libp2p::core::transport::PortUse;
use libp2p::core::{ConnectedPoint, Endpoint};
use libp2p::multiaddr::Protocol;
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm, dummy,
};
use libp2p::{Multiaddr, PeerId};

use super::address::is_relayed;
use super::config::Limits;
use super::counters::Refusal;

/// Where an inbound connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// One machine or site: an IPv4 address, or the first 64 bits of an IPv6 address, of which whoever has one
    /// has 2⁶⁴.
    Address(IpAddr),
    /// A relay's circuit: the relay bounds those, and their addresses are not known.
    Relayed,
}

impl Source {
    fn of(local: &Multiaddr, remote: &Multiaddr) -> Self {
        if is_relayed(local) || is_relayed(remote) {
            return Self::Relayed;
        }
        let address = remote.iter().find_map(|part| {
            if let Protocol::Ip4(address) = part {
                return Some(IpAddr::V4(address));
            }
            if let Protocol::Ip6(address) = part {
                return Some(IpAddr::V6(address).to_canonical());
            }
            None
        });
        match address {
            Some(IpAddr::V6(address)) => {
                let site = u128::from(address) >> 64 << 64;
                Self::Address(IpAddr::V6(Ipv6Addr::from(site)))
            }
            Some(address @ IpAddr::V4(_)) => Self::Address(address),
            None => Self::Relayed,
        }
    }
}

/// A connection over one of the limits here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("connection refused: {}", .reason.label())]
pub(crate) struct TooMany {
    pub(crate) reason: Refusal,
}

/// Inbound connections with their sources, for each state they can be in.
#[derive(Debug, Default)]
struct Held {
    sources: HashMap<ConnectionId, Source>,
    counts: BTreeMap<Source, u32>,
}

impl Held {
    fn insert(&mut self, id: ConnectionId, source: Source) {
        if self.sources.insert(id, source).is_none() {
            *self.counts.entry(source).or_default() += 1;
        }
    }

    fn remove(&mut self, id: ConnectionId) {
        let Some(source) = self.sources.remove(&id) else {
            return;
        };
        if let Some(count) = self.counts.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&source);
            }
        }
    }

    /// Whether a source has as many as it may; circuits have no such limit.
    fn is_full(&self, source: Source, limit: u32) -> bool {
        let count = self.counts.get(&source).copied().unwrap_or_default();
        source != Source::Relayed && count >= limit
    }

    fn all(&self) -> u32 {
        u32::try_from(self.sources.len()).unwrap_or(u32::MAX)
    }
}

/// The behaviour: denies a connection before a byte of it is read, or before any other protocol hears of it.
#[derive(Debug)]
pub(crate) struct Behaviour {
    limits: Limits,
    pending: Held,
    established: Held,
}

impl Behaviour {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            pending: Held::default(),
            established: Held::default(),
        }
    }

    /// Where an established connection comes from; nothing for one that this node dialled.
    pub(crate) fn source_of(&self, id: ConnectionId) -> Option<Source> {
        self.established.sources.get(&id).copied()
    }

    fn check_pending(&self, source: Source) -> Result<(), TooMany> {
        if self
            .pending
            .is_full(source, self.limits.pending_per_address)
        {
            let reason = Refusal::TooManyPendingOfAddress;
            return Err(TooMany { reason });
        }
        if self.pending.all() >= self.limits.pending_connections {
            let reason = Refusal::TooManyPending;
            return Err(TooMany { reason });
        }
        Ok(())
    }

    fn check_established(&self, source: Source) -> Result<(), TooMany> {
        if self
            .established
            .is_full(source, self.limits.connections_per_address)
        {
            let reason = Refusal::TooManyConnectionsOfAddress;
            return Err(TooMany { reason });
        }
        Ok(())
    }
}

impl NetworkBehaviour for Behaviour {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        id: ConnectionId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        let source = Source::of(local, remote);
        self.check_pending(source).map_err(ConnectionDenied::new)?;
        self.pending.insert(id, source);
        Ok(())
    }

    fn handle_established_inbound_connection(
        &mut self,
        id: ConnectionId,
        _: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.pending.remove(id);
        self.check_established(Source::of(local, remote))
            .map_err(ConnectionDenied::new)?;
        Ok(dummy::ConnectionHandler)
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        if let FromSwarm::ConnectionEstablished(event) = event {
            if let ConnectedPoint::Listener {
                local_addr,
                send_back_addr,
            } = event.endpoint
            {
                let source = Source::of(local_addr, send_back_addr);
                self.established.insert(event.connection_id, source);
            }
        } else if let FromSwarm::ConnectionClosed(event) = event {
            self.established.remove(event.connection_id);
        } else if let FromSwarm::ListenFailure(event) = event {
            self.pending.remove(event.connection_id);
        }
    }

    fn on_connection_handler_event(
        &mut self,
        _: PeerId,
        _: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Infallible, THandlerInEvent<Self>>> {
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(remote: &str) -> Source {
        let local = "/ip4/192.0.2.9/tcp/7700".parse().unwrap();
        Source::of(&local, &remote.parse().unwrap())
    }

    #[test]
    fn ports_and_transports_of_an_address_are_one_source() {
        let address = Source::Address("192.0.2.1".parse().unwrap());
        for remote in [
            "/ip4/192.0.2.1/tcp/1",
            "/ip4/192.0.2.1/udp/2/quic-v1",
            "/ip6/::ffff:192.0.2.1/tcp/3",
        ] {
            assert_eq!(source(remote), address, "{remote}");
        }
        assert_ne!(source("/ip4/192.0.2.2/tcp/1"), address);
        assert_eq!(
            source("/ip6/2001:db8:0:1:aaaa::1/tcp/1"),
            source("/ip6/2001:db8:0:1:bbbb::2/tcp/1")
        );
        assert_ne!(
            source("/ip6/2001:db8:0:1::1/tcp/1"),
            source("/ip6/2001:db8:0:2::1/tcp/1")
        );
    }

    #[test]
    fn one_address_fills_its_own_places_and_all_addresses_fill_the_table() {
        let limits = Limits {
            pending_per_address: 2,
            pending_connections: 3,
            ..Limits::default()
        };
        let mut behaviour = Behaviour::new(limits);
        let (one, other) = (
            source("/ip4/192.0.2.1/tcp/1"),
            source("/ip4/192.0.2.2/tcp/1"),
        );
        let id = ConnectionId::new_unchecked;
        behaviour.pending.insert(id(1), one);
        behaviour.pending.insert(id(2), one);
        let refused = |behaviour: &Behaviour, source| {
            behaviour.check_pending(source).err().map(|it| it.reason)
        };
        assert_eq!(
            refused(&behaviour, one),
            Some(Refusal::TooManyPendingOfAddress)
        );
        assert_eq!(refused(&behaviour, other), None);
        assert_eq!(refused(&behaviour, Source::Relayed), None);
        behaviour.pending.insert(id(3), other);
        assert_eq!(refused(&behaviour, other), Some(Refusal::TooManyPending));
        behaviour.pending.remove(id(1));
        behaviour.pending.remove(id(1));
        assert_eq!(refused(&behaviour, one), None);
        assert_eq!(behaviour.pending.counts.get(&one), Some(&1));
    }
}
