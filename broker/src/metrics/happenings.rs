//! What happens in the market, counted as it happens: how starts go, what fails, how often hosts are heard.
//!
//! The market's thread counts, the page reads; the counters are shared and need no lock.

use super::Label;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use protocol::units::Millis;
use std::time::Duration;

/// Seconds: an image that is there and one of many gigabytes.
const START_BUCKETS: [f64; 14] = [
    0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 1200.0,
];
/// Seconds: a host announces itself every 20, and is suspect after 90.
const HEARTBEAT_BUCKETS: [f64; 9] = [1.0, 5.0, 15.0, 21.0, 25.0, 45.0, 60.0, 90.0, 300.0];

/// The counters. Copies count together.
#[derive(Debug, Clone)]
pub struct Happenings {
    starts: Family<Label, Histogram>,
    failures: Family<[(&'static str, &'static str); 2], Counter>,
    heartbeats: Histogram,
}

impl Happenings {
    /// Counters at zero.
    #[must_use]
    pub fn new() -> Self {
        Self {
            starts: Family::new_with_constructor(|| Histogram::new(START_BUCKETS)),
            failures: Family::default(),
            heartbeats: Histogram::new(HEARTBEAT_BUCKETS),
        }
    }

    /// A first start reached `stage` so long after its order.
    pub(crate) fn reached(&self, stage: &'static str, after: Millis) {
        self.starts
            .get_or_create(&[("stage", stage)])
            .observe(seconds(after));
    }

    /// A lease failed during `stage`.
    pub(crate) fn failed(&self, stage: &'static str, code: &'static str) {
        self.failures
            .get_or_create(&[("stage", stage), ("code", code)])
            .inc();
    }

    /// A host was heard so long after it was heard before.
    pub(crate) fn heard_after(&self, age: Millis) {
        self.heartbeats.observe(seconds(age));
    }

    pub(super) fn register(&self, to: &mut Registry) {
        let help = "From an order to each stage of its first start";
        to.register_with_unit(
            "broker_lease_start",
            help,
            Unit::Seconds,
            self.starts.clone(),
        );
        to.register(
            "broker_lease_failures",
            "Leases that failed, by stage and reason",
            self.failures.clone(),
        );
        let help = "How long ago a host was heard when it is heard again";
        to.register_with_unit(
            "broker_heartbeat_age",
            help,
            Unit::Seconds,
            self.heartbeats.clone(),
        );
    }
}

impl Default for Happenings {
    fn default() -> Self {
        Self::new()
    }
}

fn seconds(time: Millis) -> f64 {
    Duration::from_millis(time.0).as_secs_f64()
}
