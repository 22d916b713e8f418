//! The smallest market: one broker, one host, one renter with money; and what must be true of it once
//! everything has come to rest.

use crate::programs::{registry, wait_for};
use crate::proxy::Proxy;
use crate::renter::{Renter, containers_of_lease, micro_usd};
use crate::stage::{Broker, Host, Stage};
use std::process::{Child, Stdio};
use std::time::Duration;

/// How long a market may take to come to rest after a fault.
const REST: Duration = Duration::from_secs(60);
/// One broker, one host, one renter.
#[derive(Debug)]
pub struct Market {
    /// The broker.
    pub broker: Broker,
    /// The host.
    pub host: Host,
    /// The renter.
    pub renter: Renter,
    /// What the renter has at first, µ$.
    pub deposit: i64,
    /// Where they are; dropped last.
    pub stage: Stage,
}

impl Market {
    /// A market with these lines in its `broker.toml`, a host at $0.36 an hour and a renter with a thousand
    /// dollars, once the host's offer is shown.
    #[track_caller]
    #[must_use]
    pub fn on(stage: Stage, settings: &[(&str, &str)]) -> Self {
        Self::listed(stage, settings, &["--price", "0.36"], 1000)
    }

    /// The same with the host listed so, and a renter with so many dollars.
    #[track_caller]
    #[must_use]
    pub fn listed(stage: Stage, settings: &[(&str, &str)], listing: &[&str], dollars: u32) -> Self {
        let broker = stage.broker("broker", settings);
        let address = broker.address.clone();
        Self::reached(stage, broker, &address, listing, dollars)
    }

    /// The same with a host that reaches its broker through a line that can be cut.
    #[track_caller]
    #[must_use]
    pub fn on_a_line(settings: &[(&str, &str)], listing: &[&str]) -> (Self, Proxy) {
        let stage = Stage::new();
        let broker = stage.broker("broker", settings);
        let proxy = Proxy::to(broker.socket());
        let address = broker.address_through(proxy.address());
        (Self::reached(stage, broker, &address, listing, 1000), proxy)
    }

    #[track_caller]
    fn reached(
        stage: Stage,
        broker: Broker,
        address: &str,
        listing: &[&str],
        dollars: u32,
    ) -> Self {
        let host = stage.host("host", &[address], listing);
        let renter = stage.renter("renter", &[&broker.address]);
        broker.deposit(&renter, &dollars.to_string());
        renter.wait_for_offers(1);
        Self {
            broker,
            host,
            renter,
            deposit: i64::from(dollars) * 1_000_000,
            stage,
        }
    }

    /// Begins to rent the demo image under `name`, and waits for nothing.
    ///
    /// # Panics
    /// When the program cannot be started.
    #[track_caller]
    pub fn start_rent(&self, name: &str) -> Child {
        let image = format!("{}/feira-demo:1", registry());
        self.begin(&[
            "rent",
            "--name",
            name,
            "--image",
            &image,
            "--yes",
            "--max-price",
            "5",
            "--budget",
            "5",
        ])
    }

    /// Begins a command of the renter's, and waits for nothing.
    ///
    /// # Panics
    /// When the program cannot be started.
    #[track_caller]
    pub fn begin(&self, arguments: &[&str]) -> Child {
        let mut command = self.renter.prepared();
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("feira")
    }

    /// Waits until every open lease runs or is stopped, with exactly one container; then ends them all and
    /// proves that the containers are gone and that the money adds up.
    ///
    /// # Panics
    /// When that is not so, or takes too long.
    #[track_caller]
    pub fn settle(&self, stage: &str) {
        let leases = wait_for(&format!("{stage}: leases to come to rest"), REST, || {
            let leases = self.leases(&["ls", "--json"])?;
            let at_rest = |lease: &serde_json::Value| {
                lease["state"] == "running" || lease["state"] == "stopped"
            };
            leases.iter().all(at_rest).then_some(leases)
        });
        for lease in &leases {
            let id = lease["id"].as_str().expect("an id");
            assert_eq!(containers_of_lease(id).len(), 1, "{stage}: {lease}");
            let _ = self.renter.feira(&["end", id, "--yes"]).ok();
        }
        self.check_money(stage);
    }

    /// Waits until every lease has ended, and proves that the containers are gone and that what the renter
    /// has and what it was charged is what it paid in.
    ///
    /// # Panics
    /// When that is not so, or takes too long.
    #[track_caller]
    pub fn check_money(&self, stage: &str) {
        let all = self.leases(&["ls", "--all", "--json"]).expect("all leases");
        let mut charged = 0;
        for lease in &all {
            let id = lease["id"].as_str().expect("an id");
            let lease = self.renter.wait_for_phase(id, "ended", REST);
            charged += micro_usd(&lease["charged_usd"]);
            wait_for(&format!("{stage}: {id} to be gone"), REST, || {
                containers_of_lease(id).is_empty().then_some(())
            });
        }
        assert_eq!(
            self.renter.balance(),
            (self.deposit - charged, 0),
            "{stage}"
        );
        self.broker.check_ledger();
    }

    fn leases(&self, arguments: &[&str]) -> Option<Vec<serde_json::Value>> {
        let said = self.renter.feira(arguments);
        (said.code == 0).then(|| said.json()["items"].as_array().cloned())?
    }
}
