//! Connections of a peer over its limit: let in for a moment, so that the peer can be told why it is not served,
//! and then closed. What is refused on them is the driver's business.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use libp2p::PeerId;
use libp2p::swarm::ConnectionId;
use tokio::time::{Instant, sleep_until};

use super::clock;

/// How long one stays: enough for a question and its refusal over a slow line.
const STAYS: Duration = Duration::from_secs(5);

/// The connections that are over a limit, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Surplus {
    open: HashSet<ConnectionId>,
    leaving: VecDeque<(Instant, PeerId, ConnectionId)>,
}

impl Surplus {
    pub(crate) fn add(&mut self, peer: PeerId, id: ConnectionId) {
        let until = Instant::from_std(clock::now()) + STAYS;
        self.open.insert(id);
        self.leaving.push_back((until, peer, id));
    }

    pub(crate) fn contains(&self, id: ConnectionId) -> bool {
        self.open.contains(&id)
    }

    pub(crate) fn closed(&mut self, id: ConnectionId) {
        self.open.remove(&id);
    }

    /// Waits for the next one whose time is over; for ever if there is none. Cancel-safe.
    pub(crate) async fn next_over(&mut self) -> (PeerId, ConnectionId) {
        while let Some(&(until, peer, id)) = self.leaving.front() {
            // One that has gone by itself needs no waiting for.
            if self.open.contains(&id) {
                sleep_until(until).await;
                self.leaving.pop_front();
                return (peer, id);
            }
            self.leaving.pop_front();
        }
        std::future::pending().await
    }
}
