//! What the node let in and what it refused, as atomics that a metrics page may read at any time.
//! Counting only: no limit is enforced here.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why something from a peer was turned away. Closed: every refusal of the network layer is one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// A connection over the limit for its peer, or for all.
    TooManyConnections,
    /// A connection whose peer does not have an Ed25519 key.
    ForeignKey,
    /// A connection whose peer speaks another protocol version.
    WrongVersion,
    /// A request after the peer's token bucket was empty.
    TooManyRequests,
    /// A request while the peer, or all peers, had as many in flight as is allowed.
    TooManyInFlight,
    /// A request that announced more than [`MAX_FRAME`](super::MAX_FRAME) bytes.
    TooBig,
    /// A request that ended before its announced length, or a link that talks.
    Malformed,
    /// A request that was not all there in time.
    TooSlow,
    /// A request for which the program's own queue had no room.
    RequestQueueFull,
    /// A request that the program did not answer in time, or at all.
    NoAnswer,
    /// A tunnel for which the program's own queue had no room.
    TunnelQueueFull,
    /// A tunnel over the limit for its peer.
    TooManyTunnels,
    /// A link over the limit for its peer.
    TooManyLinks,
    /// Anything that arrived after the node was told to stop.
    Stopping,
    /// A connection while as many as are allowed were still shaking hands.
    TooManyPending,
    /// A connection while as many of its address as are allowed were still shaking hands.
    TooManyPendingOfAddress,
    /// A connection over the limit for its address.
    TooManyConnectionsOfAddress,
    /// A request while as many from its address as are allowed were still arriving.
    TooManyArrivingOfAddress,
    /// A measurement of the network over what is given to its peer, or to all.
    TooManyMeasurements,
}

impl Refusal {
    /// Every reason, in the order of the counters.
    pub const ALL: [Self; 19] = [
        Self::TooManyConnections,
        Self::ForeignKey,
        Self::WrongVersion,
        Self::TooManyRequests,
        Self::TooManyInFlight,
        Self::TooBig,
        Self::Malformed,
        Self::TooSlow,
        Self::RequestQueueFull,
        Self::NoAnswer,
        Self::TunnelQueueFull,
        Self::TooManyTunnels,
        Self::TooManyLinks,
        Self::Stopping,
        Self::TooManyPending,
        Self::TooManyPendingOfAddress,
        Self::TooManyConnectionsOfAddress,
        Self::TooManyArrivingOfAddress,
        Self::TooManyMeasurements,
    ];

    /// The reason as a metrics label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::TooManyConnections => "too_many_connections",
            Self::ForeignKey => "foreign_key",
            Self::WrongVersion => "wrong_version",
            Self::TooManyRequests => "too_many_requests",
            Self::TooManyInFlight => "too_many_in_flight",
            Self::TooBig => "too_big",
            Self::Malformed => "malformed",
            Self::TooSlow => "too_slow",
            Self::RequestQueueFull => "request_queue_full",
            Self::NoAnswer => "no_answer",
            Self::TunnelQueueFull => "tunnel_queue_full",
            Self::TooManyTunnels => "too_many_tunnels",
            Self::TooManyLinks => "too_many_links",
            Self::Stopping => "stopping",
            Self::TooManyPending => "too_many_pending",
            Self::TooManyPendingOfAddress => "too_many_pending_of_address",
            Self::TooManyConnectionsOfAddress => "too_many_connections_of_address",
            Self::TooManyArrivingOfAddress => "too_many_arriving_of_address",
            Self::TooManyMeasurements => "too_many_measurements",
        }
    }
}

/// The counts of one node since it started. Reading is cheap and never blocks the node.
#[derive(Debug, Default)]
pub struct NetCounters {
    refused: [AtomicU64; Refusal::ALL.len()],
    connections_opened: AtomicU64,
    connections_closed: AtomicU64,
    requests_received: AtomicU64,
    requests_answered: AtomicU64,
    tunnels_accepted: AtomicU64,
    circuits_accepted: AtomicU64,
    reservations_accepted: AtomicU64,
}

impl NetCounters {
    /// How often this reason was given.
    #[must_use]
    pub fn refused(&self, reason: Refusal) -> u64 {
        read(&self.refused[reason as usize])
    }

    /// Every reason with its count, zeros too.
    pub fn refusals(&self) -> impl Iterator<Item = (Refusal, u64)> + '_ {
        Refusal::ALL
            .into_iter()
            .map(|reason| (reason, self.refused(reason)))
    }

    /// Connections open now.
    #[must_use]
    pub fn connections_open(&self) -> u64 {
        // The closed ones are read first, so that the difference cannot go below zero.
        let closed = read(&self.connections_closed);
        read(&self.connections_opened).saturating_sub(closed)
    }

    /// Connections ever established.
    #[must_use]
    pub fn connections_opened(&self) -> u64 {
        read(&self.connections_opened)
    }

    /// Requests handed to the program.
    #[must_use]
    pub fn requests_received(&self) -> u64 {
        read(&self.requests_received)
    }

    /// Requests whose reply was written.
    #[must_use]
    pub fn requests_answered(&self) -> u64 {
        read(&self.requests_answered)
    }

    /// Tunnels handed to the program.
    #[must_use]
    pub fn tunnels_accepted(&self) -> u64 {
        read(&self.tunnels_accepted)
    }

    /// Circuits that this node, as a relay, joined between two peers.
    #[must_use]
    pub fn circuits_accepted(&self) -> u64 {
        read(&self.circuits_accepted)
    }

    /// Reservations that this node, as a relay, granted or renewed.
    #[must_use]
    pub fn reservations_accepted(&self) -> u64 {
        read(&self.reservations_accepted)
    }

    pub(crate) fn refuse(&self, reason: Refusal) {
        add(&self.refused[reason as usize]);
    }

    pub(crate) fn connection_opened(&self) {
        add(&self.connections_opened);
    }

    pub(crate) fn connection_closed(&self) {
        add(&self.connections_closed);
    }

    pub(crate) fn request_received(&self) {
        add(&self.requests_received);
    }

    pub(crate) fn request_answered(&self) {
        add(&self.requests_answered);
    }

    pub(crate) fn tunnel_accepted(&self) {
        add(&self.tunnels_accepted);
    }

    pub(crate) fn circuit_accepted(&self) {
        add(&self.circuits_accepted);
    }

    pub(crate) fn reservation_accepted(&self) {
        add(&self.reservations_accepted);
    }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_reason_has_its_own_counter_and_label() {
        let counters = NetCounters::default();
        counters.refuse(Refusal::TooBig);
        counters.refuse(Refusal::TooBig);
        counters.refuse(Refusal::Stopping);
        assert_eq!(counters.refused(Refusal::TooBig), 2);
        assert_eq!(counters.refused(Refusal::Stopping), 1);
        assert_eq!(counters.refusals().map(|(_, count)| count).sum::<u64>(), 3);
        for (place, reason) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
        }
        let labels: BTreeSet<_> = Refusal::ALL.into_iter().map(Refusal::label).collect();
        assert_eq!(labels.len(), Refusal::ALL.len());
    }
}
