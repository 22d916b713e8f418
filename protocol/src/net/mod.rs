//! The libp2p node that broker, host agent and renter all use: one key, connections, bounded byte frames, tunnels.
//!
//! It moves **frames**, not messages: it does not decode what it carries, knows no lease, offer or price, and
//! takes no decision about them. What it does decide is how much a peer may ask of this machine ([`Limits`]);
//! every refusal is said to the peer and counted under a closed reason ([`Refusal`]).
//!
//! ```text
//!   Node (handle) ──commands──▶ driver: one task, owns the swarm ──▶ NodeEvents
//!      │ request, open_tunnel      │ asks the gate about each inbound stream
//!      ▼                           ▼
//!   its own stream, in the      one task for each request being answered, owned by the driver
//!   caller's task
//! ```
//!
//! * [`identity`]: the key file, and what a key is called on the network.
//! * [`named_file`]: other files that a person names, read up to a bound.
//! * [`node`]: start a node and use it; [`config`] says what it may be told.
//! * [`link`]: keep the connection to a broker for ever, and a relay circuit on it.
//! * [`requests`], [`tunnels`]: the two things that cross a connection. [`speed`]: how fast it is.
//! * [`counters`]: what was let in and what was refused, for metrics.

pub mod identity;
pub mod named_file;

pub mod config;
pub mod node;

pub mod link;
pub mod requests;
pub mod tunnels;

pub mod speed;

pub mod frames;

pub mod address;
pub mod counters;

mod behaviour;
mod clock;
mod driver;
mod dumps;
mod gate;
mod reservations;
mod sources;
mod streams;
mod surplus;
mod wire;

pub use address::{AddressError, circuit_address, parse_address, peer_of_address};
pub use config::{Limits, NodeConfig, RelayLimits, Role, SpeedLimits};
pub use counters::{NetCounters, Refusal};
pub use identity::{Identity, IdentityError, peer_id_of, public_key_of};
pub use libp2p::{Multiaddr, PeerId};
pub use link::{Circuit, LinkDown, LinkHandle, LinkState, ReserveRelay};
pub use node::{ConnectError, Node, NodeError, NodeEvent, NodeEvents};
pub use requests::{ReplyError, RequestError, Responder};
pub use speed::{Direction, Speed, SpeedError};
pub use tunnels::{Tunnel, TunnelError};
pub use wire::{MAX_FRAME, PeerRefusal};

/// The version every Feira node announces; a peer that announces another is closed.
pub const PROTOCOL_VERSION: &str = "feira/1";
