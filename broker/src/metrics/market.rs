//! What the market adds up to, as gauges that are set at each scrape.

use super::{Label, signed};
use crate::core::ledger::Account;
use crate::market::Counts;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use protocol::units::MicroUsd;
use std::collections::BTreeMap;

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
            last_at: _,
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

/// The gauges.
#[derive(Debug, Default)]
pub(super) struct MarketMetrics {
    offers: Gauge,
    hosts: Gauge,
    leases: Family<Label, Gauge>,
    ledger: Family<Label, Gauge>,
    renters: Gauge,
    last_event: Gauge,
    remembered: Gauge,
}

impl MarketMetrics {
    pub(super) fn register(&self, to: &mut Registry) {
        to.register("broker_offers", "Offers shown now", self.offers.clone());
        to.register("broker_hosts", "Hosts heard now", self.hosts.clone());
        to.register(
            "broker_leases",
            "Leases by where they stand",
            self.leases.clone(),
        );
        let help =
            "What each kind of account holds, in micro-dollars; cash counts against the rest";
        to.register("broker_ledger_micro_usd", help, self.ledger.clone());
        to.register(
            "broker_renters",
            "Renters with an account",
            self.renters.clone(),
        );
        let event = self.last_event.clone();
        to.register(
            "broker_journal_event",
            "Number of the journal's last event",
            event,
        );
        let help = "Statements remembered, each good for one effect";
        to.register("broker_replay_window", help, self.remembered.clone());
    }

    pub(super) fn take(&self, market: &MarketNumbers) {
        self.offers.set(signed(market.offers));
        self.hosts.set(signed(market.hosts));
        self.renters.set(signed(market.renters));
        self.last_event.set(signed(market.last_event));
        self.remembered.set(signed(market.remembered));
        for (state, count) in &market.leases {
            self.leases
                .get_or_create_owned(&[("state", state)])
                .set(signed(*count));
        }
        for (kind, amount) in &market.ledger {
            self.ledger
                .get_or_create_owned(&[("account_kind", kind)])
                .set(*amount);
        }
    }
}
