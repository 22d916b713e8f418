//! The libp2p protocols and transports of a node, put together with our limits. Nothing is decided here.

use std::num::NonZeroU32;
use std::time::Duration;

use libp2p::swarm::NetworkBehaviour;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::{
    PeerId, Swarm, SwarmBuilder, connection_limits, identify, identity, noise, ping, relay, tcp,
    yamux,
};

use super::PROTOCOL_VERSION;
use super::config::{Limits, NodeConfig, RelayLimits, Role};
use super::node::NodeError;
use super::{sources, streams};

/// Streams on one connection, of both directions together. With TCP a peer that opens more loses its connection
/// (yamux ends it), so it lies well above what [`Limits`] lets either side have open at once.
const STREAMS_PER_CONNECTION: u32 = 1024;

/// A peer's connections up to this many times its limit are let in to be told that they are too many.
const SURPLUS_FACTOR: u32 = 4;

/// How long a host's reservation lasts; the library renews it after three quarters of that.
const RESERVATION: Duration = Duration::from_secs(60 * 60);

/// Everything a node speaks.
#[derive(NetworkBehaviour)]
pub(crate) struct Behaviour {
    /// First, so that a connection over the limit costs the others nothing.
    pub(super) sources: sources::Behaviour,
    limits: connection_limits::Behaviour,
    pub(super) streams: streams::Behaviour,
    ping: ping::Behaviour,
    identify: identify::Behaviour,
    relay_client: relay::client::Behaviour,
    relay_server: Toggle<relay::Behaviour>,
}

/// Builds the swarm; it listens nowhere yet.
pub(crate) fn build_swarm(
    keypair: identity::Keypair,
    config: &NodeConfig,
) -> Result<Swarm<Behaviour>, NodeError> {
    let limits = config.limits;
    let relay = (config.role == Role::Broker).then_some(config.relay);
    let swarm = SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_tcp(
            tcp::Config::default().nodelay(true),
            noise::Config::new,
            muxer,
        )
        .map_err(NodeError::transport)?
        .with_quic_config(|mut quic| {
            quic.max_concurrent_stream_limit = STREAMS_PER_CONNECTION;
            quic.handshake_timeout = quic.handshake_timeout.min(limits.handshake_timeout);
            quic
        })
        .with_dns()
        .map_err(NodeError::transport)?
        .with_relay_client(noise::Config::new, muxer)
        .map_err(NodeError::transport)?
        .with_behaviour(|key, relay_client| behaviour(key, relay_client, limits, relay))
        .map_err(NodeError::transport)?
        .with_swarm_config(|swarm| swarm.with_idle_connection_timeout(limits.idle_timeout))
        .with_connection_timeout(limits.handshake_timeout)
        .build();
    Ok(swarm)
}

fn behaviour(
    key: &identity::Keypair,
    relay_client: relay::client::Behaviour,
    limits: Limits,
    relay: Option<RelayLimits>,
) -> Behaviour {
    let me = PeerId::from(key.public());
    // The driver turns away what is over the limit itself, and says so; here only what is far over it.
    let per_peer = limits.connections_per_peer.saturating_mul(SURPLUS_FACTOR);
    Behaviour {
        sources: sources::Behaviour::new(limits),
        limits: connection_limits::Behaviour::new(
            connection_limits::ConnectionLimits::default()
                .with_max_established(Some(limits.connections))
                .with_max_established_per_peer(Some(per_peer)),
        ),
        streams: streams::Behaviour::default(),
        ping: ping::Behaviour::new(
            ping::Config::new()
                .with_interval(limits.ping_interval)
                .with_timeout(limits.ping_timeout),
        ),
        identify: identify::Behaviour::new(
            identify::Config::new(PROTOCOL_VERSION.to_owned(), key.public())
                .with_agent_version(concat!("feira/", env!("CARGO_PKG_VERSION")).to_owned()),
        ),
        relay_client,
        relay_server: relay
            .map(|relay| relay::Behaviour::new(me, relay_config(relay)))
            .into(),
    }
}

fn muxer() -> yamux::Config {
    let mut muxer = yamux::Config::default();
    muxer.set_max_num_streams(STREAMS_PER_CONNECTION as usize);
    muxer
}

/// The rates replace the library's, which refuse a host that reconnects twice in two minutes and a second renter
/// behind the same address within one.
fn relay_config(limits: RelayLimits) -> relay::Config {
    let second = Duration::from_secs(1);
    let config = relay::Config {
        max_reservations: limits.reservations,
        max_reservations_per_peer: 4,
        reservation_duration: RESERVATION,
        reservation_rate_limiters: Vec::new(),
        max_circuits: limits.circuits,
        max_circuits_per_peer: limits.circuits_per_peer,
        max_circuit_duration: limits.circuit_duration,
        max_circuit_bytes: limits.circuit_bytes,
        circuit_src_rate_limiters: Vec::new(),
    };
    config
        .reservation_rate_per_peer(burst(32), 4 * second)
        .reservation_rate_per_ip(burst(1024), second)
        .circuit_src_per_peer(burst(64), second)
        .circuit_src_per_ip(burst(1024), second / 8)
}

const fn burst(size: u32) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(size - 1)
}
