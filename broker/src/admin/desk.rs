//! What a running broker answers its operator. Must not change anything but by commands of the market.

use super::acquaintance::refused;
use super::wire::{
    AccountRow, AdminReply, AdminRequest, Deposit, Deposited, HostRow, LeaseRow, LedgerView, Status,
};
use crate::api::Api;
use crate::core::command::{Answer, Command};
use crate::market;
use protocol::ids::{DepositId, HostId};
use protocol::lease::LeaseView;
use protocol::message::{LeaseScope, Rejection};
use protocol::net::Node;
use protocol::operator::Desk;
use protocol::units::{MicroUsd, Timestamp};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// What answers an operator.
#[derive(Debug, Clone)]
pub(crate) struct AdminDesk {
    pub(crate) api: Api,
    pub(crate) node: Node,
    pub(crate) started_at: Timestamp,
    pub(crate) metrics_address: SocketAddr,
}

impl Desk for AdminDesk {
    type Request = AdminRequest;
    type Reply = AdminReply;

    async fn answer(&self, request: AdminRequest) -> AdminReply {
        match self.asked(request).await {
            Ok(reply) => reply,
            Err(rejection) => refused(&rejection),
        }
    }
}

impl AdminDesk {
    async fn asked(&self, request: AdminRequest) -> Result<AdminReply, Rejection> {
        if let Some(refused) = self.stranger(&request).await? {
            return Ok(refused);
        }
        Ok(match request {
            AdminRequest::Status => AdminReply::Status(Box::new(self.status().await?)),
            AdminRequest::Deposit(deposit) => self.deposit(deposit).await?,
            AdminRequest::Accounts => AdminReply::Accounts(self.accounts().await?),
            AdminRequest::Hosts => AdminReply::Hosts(self.hosts().await?),
            AdminRequest::Leases { all } => {
                let scope = if all {
                    LeaseScope::All
                } else {
                    LeaseScope::Open
                };
                let views = self.api.market.all_leases(scope).await?;
                AdminReply::Leases(views.iter().map(lease_row).collect())
            }
            AdminRequest::Bond(_)
            | AdminRequest::ReturnBond(_)
            | AdminRequest::Refund(_)
            | AdminRequest::Payouts { .. }
            | AdminRequest::PayoutPaid(_)
            | AdminRequest::PayoutDropped(_)
            | AdminRequest::ReverseDeposit(_)
            | AdminRequest::Suspend { .. } => self.money(request).await?,
            AdminRequest::Verify { host, offer } => self.verify(host, offer).await?,
            AdminRequest::LedgerCheck => {
                AdminReply::Ledger(LedgerView::from(self.api.market.ledger().await?))
            }
        })
    }

    async fn status(&self) -> Result<Status, Rejection> {
        let counts = self.api.market.counts().await?;
        let addresses = self.node.listen_addresses().await;
        Ok(Status {
            broker: self.api.broker,
            name: self.api.name.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            started_at: self.started_at,
            now: self.api.clock.now(),
            addresses: addresses.iter().map(ToString::to_string).collect(),
            metrics: format!("http://{}/metrics", self.metrics_address),
            fee_bps: self.api.fee.0,
            connections: self.node.counters().connections_open(),
            hosts: counts.hosts_heard,
            offers: counts.offers,
            leases: counts
                .leases
                .iter()
                .map(|(word, count)| ((*word).to_owned(), *count))
                .collect(),
            renters: counts.renters,
            last_event: counts.events,
            refusals: self.api.metrics.refusals(self.node.counters()),
        })
    }

    async fn deposit(&self, deposit: Deposit) -> Result<AdminReply, Rejection> {
        let Deposit {
            id,
            renter,
            amount,
            memo,
            stranger: _,
        } = deposit;
        let command = Command::Deposit {
            id,
            renter,
            amount,
            memo,
        };
        let (credited, available) = match self.api.market.command(command).await {
            Ok(Answer::Deposited(balance)) => (true, balance.available),
            Ok(Answer::DepositedBefore(balance)) => (false, balance.available),
            Ok(Answer::Lease(_) | Answer::Noted | Answer::Payment { .. } | Answer::Payouts(_)) => {
                (false, MicroUsd::ZERO)
            }
            Err(Rejection::IdReused) => return self.other_deposit(id).await,
            Err(rejection) => return Err(rejection),
        };
        if credited {
            tracing::info!(%id, renter = %renter.short(), %amount, "deposit is on the books");
        }
        Ok(AdminReply::Deposited(Deposited {
            id,
            renter,
            amount,
            credited,
            available,
        }))
    }

    /// What an id was used for that cannot be used again.
    async fn other_deposit(&self, id: DepositId) -> Result<AdminReply, Rejection> {
        let (renter, amount) = self
            .api
            .market
            .deposit(id)
            .await?
            .ok_or(Rejection::IdReused)?;
        Ok(AdminReply::Refused(format!(
            "the deposit {id} is on the books already: {amount} to {renter}; nothing was credited now. \
             For another deposit leave --id out"
        )))
    }

    async fn accounts(&self) -> Result<Vec<AccountRow>, Rejection> {
        let accounts = self.api.market.accounts().await?;
        let row = |account: market::AccountRow| AccountRow {
            renter: account.renter,
            available: account.available,
            held: account.held,
            spent: account.spent,
        };
        Ok(accounts.into_iter().map(row).collect())
    }

    async fn hosts(&self) -> Result<Vec<HostRow>, Rejection> {
        let connected: BTreeSet<HostId> = self
            .node
            .connected_peers()
            .await
            .into_iter()
            .map(HostId::from)
            .collect();
        let mut rows = Vec::new();
        for host in self.api.market.hosts().await? {
            let earned = self.api.market.earnings(host.host).await?;
            rows.push(HostRow {
                host: host.host,
                connected: connected.contains(&host.host),
                heard_at: host.heard_at,
                proofs: self.proofs(host.host).await?,
                offers: host.offers,
                leases: host.open_leases,
                pending: earned.pending,
                addresses: host.addresses.iter().map(ToString::to_string).collect(),
                suspended: host.suspended.map(|why| why.to_string()),
            });
        }
        Ok(rows)
    }
}

fn lease_row(view: &LeaseView) -> LeaseRow {
    LeaseRow {
        lease: view.id,
        name: view.name.to_string(),
        renter: view.renter,
        host: view.place.map(|(host, _)| host.to_string()),
        phase: view.phase.word().to_owned(),
        since: view.since,
        running_s: view.running.seconds(),
        charged: view.charged.total(),
        held: view.held,
        image: view.image.to_string(),
    }
}
