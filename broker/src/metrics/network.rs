//! What the network layer counted, copied at each scrape.

use super::{Label, signed};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use protocol::net::NetCounters;
use std::sync::atomic::Ordering;

/// The copies.
#[derive(Debug, Default)]
pub(super) struct NetMetrics {
    refusals: Family<Label, Counter>,
    connections: Gauge,
    connections_opened: Counter,
    requests: Counter,
    answered: Counter,
    circuits: Counter,
    reservations: Counter,
}

impl NetMetrics {
    pub(super) fn register(&self, to: &mut Registry) {
        let help = "What the network layer turned away, by reason";
        to.register("broker_net_refusals", help, self.refusals.clone());
        to.register(
            "broker_net_connections",
            "Connections open now",
            self.connections.clone(),
        );
        let opened = self.connections_opened.clone();
        to.register(
            "broker_net_connections_opened",
            "Connections ever established",
            opened,
        );
        let requests = self.requests.clone();
        to.register(
            "broker_net_requests",
            "Requests that the network layer let in",
            requests,
        );
        to.register(
            "broker_net_answers",
            "Answers that were written",
            self.answered.clone(),
        );
        let circuits = self.circuits.clone();
        to.register(
            "broker_net_circuits",
            "Circuits relayed between renters and hosts",
            circuits,
        );
        let reservations = self.reservations.clone();
        to.register(
            "broker_net_reservations",
            "Reservations of hosts, with renewals",
            reservations,
        );
    }

    pub(super) fn take(&self, net: &NetCounters) {
        for (refusal, count) in net.refusals() {
            let counter = self
                .refusals
                .get_or_create_owned(&[("reason", refusal.label())]);
            counter.inner().store(count, Ordering::Relaxed);
        }
        let counters = [
            (&self.connections_opened, net.connections_opened()),
            (&self.requests, net.requests_received()),
            (&self.answered, net.requests_answered()),
            (&self.circuits, net.circuits_accepted()),
            (&self.reservations, net.reservations_accepted()),
        ];
        for (counter, count) in counters {
            counter.inner().store(count, Ordering::Relaxed);
        }
        self.connections.set(signed(net.connections_open()));
    }
}
