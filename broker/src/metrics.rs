//! What the broker counts, under names that dashboards rely on.
//!
//! No label holds an id, or anything else that a stranger could choose: each has a closed list of values.

mod happenings;
mod market;
mod network;
mod process;

pub use happenings::Happenings;
pub use market::MarketNumbers;

use crate::api::refusals;
use market::MarketMetrics;
use network::NetMetrics;
use process::ProcessMetrics;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use protocol::net::NetCounters;
use protocol::units::Seconds;
use std::collections::BTreeMap;
use std::time::Duration;

/// One label with a value from a closed list.
type Label = [(&'static str, &'static str); 1];

/// Seconds: from a query in memory to a commit on a slow disk, and a long poll.
const REQUEST_BUCKETS: [f64; 10] = [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 20.0];

/// All counters of one broker.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<Label, Counter>,
    refusals: Family<Label, Counter>,
    matches: Family<Label, Counter>,
    request_seconds: Family<Label, Histogram>,
    goals: Family<Label, Counter>,
    net: NetMetrics,
    market: MarketMetrics,
    happenings: Happenings,
    process: ProcessMetrics,
}

impl Metrics {
    /// Counters at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::of(Happenings::new())
    }

    /// Counters at zero, beside those of a market.
    #[must_use]
    pub fn of(happenings: Happenings) -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            refusals: Family::default(),
            matches: Family::default(),
            request_seconds: Family::new_with_constructor(|| Histogram::new(REQUEST_BUCKETS)),
            goals: Family::default(),
            net: NetMetrics::default(),
            market: MarketMetrics::default(),
            happenings,
            process: ProcessMetrics::default(),
        };
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        metrics.net.register(&mut registry);
        metrics.market.register(&mut registry);
        metrics.happenings.register(&mut registry);
        metrics.process.register(&mut registry);
        metrics.registry = registry;
        metrics
    }

    fn register(&self, to: &mut Registry) {
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        to.register("broker_build", "The program that runs", build);
        let requests = self.requests.clone();
        to.register(
            "broker_requests",
            "Requests of hosts and renters, by what they ask",
            requests,
        );
        let refusals = self.refusals.clone();
        to.register(
            "broker_refusals",
            "Requests that were refused, by reason",
            refusals,
        );
        to.register(
            "broker_matches",
            "Orders, by what came of them",
            self.matches.clone(),
        );
        let seconds = self.request_seconds.clone();
        let help = "From a request's arrival to its answer, by what it asks";
        to.register_with_unit("broker_request_duration", help, Unit::Seconds, seconds);
        to.register(
            "broker_goals",
            "Goals sent to hosts, by what came of it",
            self.goals.clone(),
        );
    }

    /// Counts a request that took `elapsed` and was refused for `refusal`, if it was.
    pub fn answered(&self, asked: &'static str, refusal: Option<&'static str>, elapsed: Duration) {
        self.requests.get_or_create(&[("ask", asked)]).inc();
        self.request_seconds
            .get_or_create(&[("ask", asked)])
            .observe(elapsed.as_secs_f64());
        if let Some(reason) = refusal {
            self.refusals.get_or_create(&[("reason", reason)]).inc();
        }
        if asked == "order" {
            let result = refusal.unwrap_or("matched");
            self.matches.get_or_create(&[("result", result)]).inc();
        }
    }

    /// Counts a goal that was sent, by what came of it.
    pub fn goal_sent(&self, result: &'static str) {
        self.goals.get_or_create(&[("result", result)]).inc();
    }

    /// How often requests were refused for `reason`.
    #[must_use]
    pub fn refused(&self, reason: &'static str) -> u64 {
        self.refusals
            .get(&[("reason", reason)])
            .map_or(0, |counter| counter.get())
    }

    /// Every reason for which requests were refused, with how often, those of the network layer included.
    #[must_use]
    pub fn refusals(&self, net: &NetCounters) -> BTreeMap<String, u64> {
        let own = refusals::LABELS
            .iter()
            .map(|reason| ((*reason).to_owned(), self.refused(reason)));
        let network = net
            .refusals()
            .map(|(refusal, count)| (refusal.label().to_owned(), count));
        let mut all = BTreeMap::new();
        for (reason, count) in own.chain(network).filter(|(_, count)| *count > 0) {
            *all.entry(reason).or_default() += count;
        }
        all
    }

    /// When the process started, for the page.
    pub fn set_started(&self, seconds_since_1970: u64) {
        self.process.set_started(seconds_since_1970);
    }

    /// How long ago the last backup was made; not on the page until there was one.
    pub fn set_backup_age(&self, age: Seconds) {
        self.process.set_backup_age(age.0);
    }

    /// The page: what was counted, and what the network and the market add up to now.
    ///
    /// # Errors
    /// Never, in practice: a text is written to memory.
    pub fn page(
        &self,
        net: &NetCounters,
        market: &MarketNumbers,
    ) -> Result<String, std::fmt::Error> {
        self.net.take(net);
        self.market.take(market);
        self.process.take();
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_names_that_dashboards_rely_on() {
        let metrics = Metrics::new();
        metrics.answered("order", Some("not_enough_money"), Duration::from_millis(2));
        metrics.answered("order", None, Duration::from_millis(2));
        let market = MarketNumbers {
            offers: 3,
            leases: BTreeMap::from([("running", 2)]),
            ledger: BTreeMap::from([("cash", -10_000_000), ("renter_available", 10_000_000)]),
            ..MarketNumbers::default()
        };
        let page = metrics.page(&NetCounters::default(), &market).unwrap();
        for line in [
            "broker_refusals_total{reason=\"not_enough_money\"} 1",
            "broker_matches_total{result=\"matched\"} 1",
            "broker_requests_total{ask=\"order\"} 2",
            "broker_offers 3",
            "broker_leases{state=\"running\"} 2",
            "broker_ledger_micro_usd{account_kind=\"cash\"} -10000000",
            "broker_net_refusals_total{reason=\"too_big\"} 0",
            "broker_request_duration_seconds_count{ask=\"order\"} 2",
        ] {
            assert!(
                page.lines().any(|found| found == line),
                "{line} is not on\n{page}"
            );
        }
        assert_eq!(metrics.refused("not_enough_money"), 1);
        assert_eq!(metrics.refused("busy"), 0);
    }
}
