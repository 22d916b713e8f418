//! What the broker counts, under names that dashboards rely on.
//!
//! No label holds an id, or anything else that a stranger could choose: each has a closed list of values.

use crate::api::refusals;
use crate::core::ledger::Account;
use crate::core::view::Counts;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use protocol::net::NetCounters;
use protocol::units::MicroUsd;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
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
    net_refusals: Family<Label, Counter>,
    net: NetMetrics,
    market: MarketMetrics,
    process: ProcessMetrics,
}

#[derive(Debug, Default)]
struct NetMetrics {
    connections: Gauge,
    connections_opened: Counter,
    requests: Counter,
    answered: Counter,
    circuits: Counter,
    reservations: Counter,
}

#[derive(Debug, Default)]
struct MarketMetrics {
    offers: Gauge,
    hosts: Gauge,
    leases: Family<Label, Gauge>,
    ledger: Family<Label, Gauge>,
    renters: Gauge,
    last_event: Gauge,
    remembered: Gauge,
}

#[derive(Debug, Default)]
struct ProcessMetrics {
    resident: Gauge,
    open_files: Gauge,
    started: Gauge,
}

/// What the market adds up to at the time of a scrape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarketNumbers {
    /// Offers shown.
    pub offers: u64,
    /// Hosts heard.
    pub hosts: u64,
    /// Leases by the word of their phase.
    pub leases: BTreeMap<&'static str, u64>,
    /// Micro-dollars by kind of account; cash counts against the rest, so they add up to zero.
    pub ledger: BTreeMap<&'static str, i64>,
    /// Renters with an account.
    pub renters: u64,
    /// Number of the journal's last event.
    pub last_event: u64,
    /// Statements that are remembered so that they have one effect.
    pub remembered: u64,
}

impl From<Counts> for MarketNumbers {
    fn from(counts: Counts) -> Self {
        let Counts {
            offers,
            hosts_heard,
            leases,
            money,
            renters,
            remembered,
            events,
        } = counts;
        let entry = |(kind, amount): (&'static str, MicroUsd)| {
            // What the broker has, it owes to the others.
            let amount = if kind == Account::Cash.kind() {
                amount.negated()
            } else {
                amount
            };
            (kind, amount.0)
        };
        let ledger = money.into_iter().map(entry).collect();
        Self {
            offers,
            hosts: hosts_heard,
            leases,
            ledger,
            renters,
            last_event: events,
            remembered,
        }
    }
}

impl Metrics {
    /// Counters at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            refusals: Family::default(),
            matches: Family::default(),
            request_seconds: Family::new_with_constructor(|| Histogram::new(REQUEST_BUCKETS)),
            goals: Family::default(),
            net_refusals: Family::default(),
            net: NetMetrics::default(),
            market: MarketMetrics::default(),
            process: ProcessMetrics::default(),
        };
        metrics.register_own();
        metrics.register_network();
        metrics.register_market();
        metrics.register_process();
        metrics
    }

    fn register_own(&mut self) {
        let to = &mut self.registry;
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

    fn register_network(&mut self) {
        let (to, net) = (&mut self.registry, &self.net);
        let refusals = self.net_refusals.clone();
        to.register(
            "broker_net_refusals",
            "What the network layer turned away, by reason",
            refusals,
        );
        to.register(
            "broker_net_connections",
            "Connections open now",
            net.connections.clone(),
        );
        let opened = net.connections_opened.clone();
        to.register(
            "broker_net_connections_opened",
            "Connections ever established",
            opened,
        );
        let requests = net.requests.clone();
        to.register(
            "broker_net_requests",
            "Requests that the network layer let in",
            requests,
        );
        to.register(
            "broker_net_answers",
            "Answers that were written",
            net.answered.clone(),
        );
        let circuits = net.circuits.clone();
        to.register(
            "broker_net_circuits",
            "Circuits relayed between renters and hosts",
            circuits,
        );
        let reservations = net.reservations.clone();
        to.register(
            "broker_net_reservations",
            "Reservations of hosts, with renewals",
            reservations,
        );
    }

    fn register_market(&mut self) {
        let (to, market) = (&mut self.registry, &self.market);
        to.register("broker_offers", "Offers shown now", market.offers.clone());
        to.register("broker_hosts", "Hosts heard now", market.hosts.clone());
        to.register(
            "broker_leases",
            "Leases by where they stand",
            market.leases.clone(),
        );
        let help =
            "What each kind of account holds, in micro-dollars; cash counts against the rest";
        to.register("broker_ledger_micro_usd", help, market.ledger.clone());
        to.register(
            "broker_renters",
            "Renters with an account",
            market.renters.clone(),
        );
        let event = market.last_event.clone();
        to.register(
            "broker_journal_event",
            "Number of the journal's last event",
            event,
        );
        let remembered = market.remembered.clone();
        to.register(
            "broker_replay_window",
            "Statements remembered, each good for one effect",
            remembered,
        );
    }

    fn register_process(&mut self) {
        let (to, process) = (&mut self.registry, &self.process);
        let resident = process.resident.clone();
        to.register("process_resident_memory_bytes", "Memory in use", resident);
        to.register(
            "process_open_fds",
            "Open files and sockets",
            process.open_files.clone(),
        );
        let started = process.started.clone();
        to.register(
            "process_start_time_seconds",
            "When the process started, since 1970",
            started,
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
        self.process.started.set(signed(seconds_since_1970));
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
        self.take_network(net);
        self.take_market(market);
        self.take_process();
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &self.registry)?;
        Ok(page)
    }

    fn take_network(&self, net: &NetCounters) {
        for (refusal, count) in net.refusals() {
            let counter = self
                .net_refusals
                .get_or_create_owned(&[("reason", refusal.label())]);
            counter.inner().store(count, Ordering::Relaxed);
        }
        let counters = [
            (&self.net.connections_opened, net.connections_opened()),
            (&self.net.requests, net.requests_received()),
            (&self.net.answered, net.requests_answered()),
            (&self.net.circuits, net.circuits_accepted()),
            (&self.net.reservations, net.reservations_accepted()),
        ];
        for (counter, count) in counters {
            counter.inner().store(count, Ordering::Relaxed);
        }
        self.net.connections.set(signed(net.connections_open()));
    }

    fn take_market(&self, market: &MarketNumbers) {
        self.market.offers.set(signed(market.offers));
        self.market.hosts.set(signed(market.hosts));
        self.market.renters.set(signed(market.renters));
        self.market.last_event.set(signed(market.last_event));
        self.market.remembered.set(signed(market.remembered));
        for (state, count) in &market.leases {
            self.market
                .leases
                .get_or_create_owned(&[("state", state)])
                .set(signed(*count));
        }
        for (kind, amount) in &market.ledger {
            self.market
                .ledger
                .get_or_create_owned(&[("account_kind", kind)])
                .set(*amount);
        }
    }

    fn take_process(&self) {
        if let Some(bytes) = resident_bytes() {
            self.process.resident.set(signed(bytes));
        }
        if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
            self.process
                .open_files
                .set(i64::try_from(entries.count()).unwrap_or(i64::MAX));
        }
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

/// `VmRSS:    12345 kB`
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
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
