//! Tunnels of renters into the containers of their leases: who may open one, and what flows through it.
//!
//! A tunnel begins with a signed request. It is answered once, and what follows is either a program in the
//! container or the container's logs. This module does not know brokers or money; whose lease it is it asks
//! a [`LeaseLookup`]. Everything that waits is bounded: a reader that is slow slows the program.

pub mod places;

use std::future::Future;
use std::path::PathBuf;

use protocol::ids::{LeaseId, PublicKey, RenterId};
use protocol::units::Seconds;

/// What this host knows of a lease that somebody wants to enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseAccess {
    /// Whose it is.
    pub renter: RenterId,
    /// Further keys that may enter: the order's `access`.
    pub keys: Vec<PublicKey>,
    /// Whether its container runs.
    pub running: bool,
    /// Where its logs are or will be saved before the container is removed.
    pub saved_logs: PathBuf,
    /// How its main process last ended, if it did.
    pub exit_code: Option<i32>,
    /// How long saved logs are kept after the end: what a renter who comes too late is told.
    pub logs_kept: Seconds,
}

impl LeaseAccess {
    fn admits(&self, key: PublicKey) -> bool {
        PublicKey::from(self.renter) == key || self.keys.contains(&key)
    }
}

/// Where leases are looked up: the agent.
pub trait LeaseLookup: Send + Sync + 'static {
    /// The lease, if this host has or had it and still keeps anything of it.
    fn lease(&self, lease: LeaseId) -> impl Future<Output = Option<LeaseAccess>> + Send;
}
