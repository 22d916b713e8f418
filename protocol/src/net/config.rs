//! What a node may be told: its role, its addresses, and how much peers may ask of it. Data only.

use std::num::NonZeroU32;
use std::time::Duration;

use libp2p::Multiaddr;

/// What a node is for. Only a broker relays circuits for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Listens for everybody, relays between renters and hosts.
    Broker,
    /// Dials its brokers and is reached over their circuits or its own addresses.
    Host,
    /// Dials its brokers and its hosts.
    Renter,
}

/// How to start a node.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// What the node is for.
    pub role: Role,
    /// Where to listen, e.g. `/ip4/0.0.0.0/tcp/7700` and `/ip4/0.0.0.0/udp/7700/quic-v1`; may be empty.
    pub listen: Vec<Multiaddr>,
    /// Addresses under which others reach this node. Empty on a broker: every address it listens on.
    pub announce: Vec<Multiaddr>,
    /// How much peers may ask.
    pub limits: Limits,
    /// What a broker relays; not read in the other roles.
    pub relay: RelayLimits,
}

impl NodeConfig {
    /// A broker that listens at these addresses, with the default limits.
    #[must_use]
    pub fn broker(listen: Vec<Multiaddr>) -> Self {
        Self::new(Role::Broker, listen)
    }

    /// A host; `listen` may be empty when it is reached through its brokers only.
    #[must_use]
    pub fn host(listen: Vec<Multiaddr>) -> Self {
        Self::new(Role::Host, listen)
    }

    /// A renter, which listens nowhere.
    #[must_use]
    pub fn renter() -> Self {
        Self::new(Role::Renter, Vec::new())
    }

    fn new(role: Role, listen: Vec<Multiaddr>) -> Self {
        let mut limits = Limits::default();
        if role != Role::Broker {
            // They dial, through circuits too, which is two handshakes.
            limits.handshake_timeout *= 2;
            // What others measure is their way to a broker.
            limits.speed.at_once = 0;
        }
        Self {
            role,
            listen,
            announce: Vec::new(),
            limits,
            relay: RelayLimits::default(),
        }
    }
}

/// How much peers may ask of this node. Each limit is enforced before the work it protects from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections with one peer, one for each program that it runs at once with the same key. Three times as many
    /// more are let in for a few seconds to be told so; beyond those a connection is closed without a word.
    pub connections_per_peer: u32,
    /// Inbound connections from one address (IPv4, or the first 64 bits of IPv6), circuits aside.
    pub connections_per_address: u32,
    /// Connections with all peers.
    pub connections: u32,
    /// Inbound connections that are still shaking hands.
    pub pending_connections: u32,
    /// Of those, from one address: far fewer, so that one machine that opens and says nothing shuts nobody else out.
    pub pending_per_address: u32,
    /// A connection must have shaken hands within this time, in either direction.
    pub handshake_timeout: Duration,
    /// A connection without any open stream is closed after this long.
    pub idle_timeout: Duration,
    /// Requests that one peer may send a second, on average.
    pub requests_per_second: NonZeroU32,
    /// Requests that one peer may send at once after a pause.
    pub request_burst: NonZeroU32,
    /// Requests of one peer arriving, handled or answered; also how many this node sends one peer.
    pub in_flight_per_peer: usize,
    /// Requests of all peers being handled or answered.
    pub in_flight: usize,
    /// Requests of all peers that are still arriving. Apart from `in_flight`, so that peers who send slowly, or
    /// nothing, take no place from one who sends at once; times 256 KiB is the most memory they can take.
    pub arriving: usize,
    /// Of those, from one address; those that come over circuits count together as one.
    pub arriving_per_address: usize,
    /// A request must be all there, and a reply taken, within this time.
    pub frame_timeout: Duration,
    /// The program must answer a request within this time.
    pub answer_timeout: Duration,
    /// Tunnels open with one peer, counted for each direction.
    pub tunnels_per_peer: usize,
    /// Tunnels accepted that the program has not yet taken.
    pub tunnel_queue: usize,
    /// How long after an answered ping the next is sent.
    pub ping_interval: Duration,
    /// A ping must be answered within this time. Of two unanswered ones in a row the connection is closed.
    pub ping_timeout: Duration,
    /// Measurements of the network that peers may ask for.
    pub speed: SpeedLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_per_peer: 32,
            connections_per_address: 1024,
            connections: 4096,
            pending_connections: 1024,
            pending_per_address: 64,
            handshake_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
            requests_per_second: FIFTY,
            request_burst: TWO_HUNDRED,
            in_flight_per_peer: 64,
            in_flight: 1024,
            arriving: 4096,
            // Sixteen peers that hold all their places open; the other addresses keep three quarters of all.
            arriving_per_address: 1024,
            frame_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(60),
            tunnels_per_peer: 128,
            tunnel_queue: 256,
            // A cut network is noticed after at most 38 s: 10 to the next ping, 8 without an answer, 10 to the
            // next, and the library's 10 without a stream for it.
            ping_interval: Duration::from_secs(10),
            ping_timeout: Duration::from_secs(8),
            speed: SpeedLimits::default(),
        }
    }
}

/// How much of this node's network goes into measurements of it. A peer that asked for all it may, and all peers
/// together, cost a few per cent of an ordinary line: 120 times 256 MiB an hour are 72 Mbit/s at the very most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpeedLimits {
    /// Measurements at once, of all peers; of one peer there is one.
    pub at_once: usize,
    /// How often one peer may ask: as many at once as are given here, and as many an hour.
    pub per_peer_and_hour: NonZeroU32,
    /// How often all peers together may, likewise.
    pub per_hour: NonZeroU32,
    /// Bytes of one measurement.
    pub bytes: u64,
    /// How long one takes.
    pub length: Duration,
}

impl Default for SpeedLimits {
    fn default() -> Self {
        Self {
            at_once: 2,
            per_peer_and_hour: FOUR,
            per_hour: HUNDRED_AND_TWENTY,
            bytes: 256 * 1024 * 1024,
            length: Duration::from_secs(5),
        }
    }
}

/// Up and down, and both once again.
const FOUR: NonZeroU32 = NonZeroU32::MIN.saturating_add(3);
/// Four thousand hosts that measure both ways once a week ask 49 times an hour.
const HUNDRED_AND_TWENTY: NonZeroU32 = NonZeroU32::MIN.saturating_add(119);

/// A renter's busiest command (search over pages) and a host's (reports of 8 leases) stay well under it.
const FIFTY: NonZeroU32 = NonZeroU32::MIN.saturating_add(49);
const TWO_HUNDRED: NonZeroU32 = NonZeroU32::MIN.saturating_add(199);

/// What a broker relays. The library's defaults (128 KiB and 2 minutes a circuit) cannot carry a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelayLimits {
    /// Hosts that may be reached through this broker at once.
    pub reservations: usize,
    /// Circuits open at once.
    pub circuits: usize,
    /// Circuits that end at one peer, whichever end.
    pub circuits_per_peer: usize,
    /// A circuit is closed after this long.
    pub circuit_duration: Duration,
    /// A circuit is closed after this many bytes; 0 is no limit. Without one the broker carries renters' traffic.
    pub circuit_bytes: u64,
}

impl Default for RelayLimits {
    fn default() -> Self {
        Self {
            reservations: 4096,
            circuits: 4096,
            circuits_per_peer: 128,
            circuit_duration: Duration::from_secs(24 * 60 * 60),
            circuit_bytes: 0,
        }
    }
}
