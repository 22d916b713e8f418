//! The operator's socket: what can be asked of a running broker, who may ask, and the asking side.
//!
//! One JSON object a line in each direction, over a Unix socket with mode 0600 that answers this user and
//! root alone. Nothing here can be reached over the network.

mod acquaintance;
pub(crate) mod desk;
mod money;
pub mod proofs;
pub(crate) mod shown;
pub mod wire;
