//! What a broker of the tests does, and what it keeps of what it was told.

use protocol::ids::LeaseId;
use protocol::lease::{LeaseView, Phase};
use protocol::message::Rejection;
use protocol::order::{LeaseAction, Order};
use std::collections::BTreeMap;

/// What a broker does out of the ordinary.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script {
    /// Refuses every order like this.
    pub(crate) refuse: Option<Rejection>,
    /// Takes so many orders without answering.
    pub(crate) swallow: usize,
    /// New leases never start.
    pub(crate) stall: bool,
    /// How a lease ends instead of running.
    pub(crate) instead: Option<Phase>,
    /// Its hosts say nothing of what they were told.
    pub(crate) host_silent: bool,
    /// Its only offer is rented by somebody.
    pub(crate) all_rented: bool,
    /// It sells a pool of four GPUs, to bidders and for terms too, instead of a machine without one.
    pub(crate) pool: bool,
    /// Bids wait.
    pub(crate) rests: bool,
    /// Where a lease is, one after another, whenever somebody watches it.
    pub(crate) course: Vec<Phase>,
    /// Leases have a prepaid term that has gone on for so many hours.
    pub(crate) term: Option<u64>,
    /// The first lease is called like the id of the second.
    pub(crate) called_like_an_id: bool,
    /// Leases that are there from the start.
    pub(crate) leases: Vec<(&'static str, Phase)>,
}

/// What it was told and what it made of it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Orders in the order in which they came, repeats too.
    pub(crate) orders: Vec<Order>,
    /// Commands.
    pub(crate) commands: Vec<(LeaseId, LeaseAction)>,
    /// Requests of all kinds.
    pub(crate) requests: usize,
    pub(super) leases: BTreeMap<LeaseId, LeaseView>,
}

impl Seen {
    /// How many leases it has.
    pub(crate) fn leases(&self) -> usize {
        self.leases.len()
    }
}
