//! What the owner asks of a running agent, and the rows that are answered. It decides nothing but what is
//! listed.

use super::AgentError;
use super::desk::{Broker, Desk};
use super::saying::exchange;
use crate::admin::wire::{
    AdminReply, AdminRequest, BrokerRow, Earned, EarningsRow, LeaseRow, OfferRow, Status,
};
use crate::core::lease::LeaseRecord;
use crate::core::offer::{Listed, Listing};
use crate::hardware::Hardware;
use crate::runtime::Runtime;
use protocol::ids::BrokerId;
use protocol::lease::Want;
use protocol::machine::ContainerNetwork;
use protocol::message::{BrokerReply, BrokerRequest};
use protocol::net::{Circuit, LinkState, Node};
use protocol::offer::Chunks;
use protocol::operator::rfc3339;
use protocol::terms::{ContractKind, Deal};
use protocol::units::{BasisPoints, Seconds, Timestamp};
use std::collections::BTreeMap;
use tokio::sync::oneshot;

impl<R: Runtime, H: Hardware> Desk<R, H> {
    pub(super) async fn owner_asked(
        &mut self,
        request: AdminRequest,
        reply: oneshot::Sender<AdminReply>,
    ) -> Result<(), AgentError> {
        let answer = match request {
            AdminRequest::Status => AdminReply::Status(Box::new(self.status())),
            AdminRequest::Leases => {
                AdminReply::Leases(self.leases.records().values().map(lease_row).collect())
            }
            AdminRequest::Offers => AdminReply::Offers(self.offer_rows()),
            AdminRequest::List(listing) => {
                self.list(Some(*listing)).await?;
                AdminReply::Offers(self.offer_rows())
            }
            AdminRequest::Unlist => {
                self.list(None).await?;
                AdminReply::Done
            }
            AdminRequest::Checked(gpu) => self.checked_by_owner(&gpu).await?,
            AdminRequest::Earnings => {
                let (node, brokers) = (self.node.clone(), self.brokers.keys().copied().collect());
                self.visits.spawn(async move {
                    // The owner may have hung up.
                    let _ = reply.send(AdminReply::Earnings(earnings(&node, brokers).await));
                });
                return Ok(());
            }
        };
        let _ = reply.send(answer);
        Ok(())
    }

    async fn list(&mut self, listing: Option<Listing>) -> Result<(), AgentError> {
        self.journal.set_listing(listing.clone()).await?;
        tracing::info!(listed = listing.is_some(), "the listing changed");
        self.listing = listing;
        self.derive_offers();
        self.engine.check_soon();
        self.announce_soon();
        Ok(())
    }

    fn status(&self) -> Status {
        let facts = self.engine.state().as_ref();
        let engine = facts.map(|facts| format!("{} with {}", facts.version, facts.runtime));
        let mut leases = BTreeMap::new();
        for record in self.leases.records().values() {
            *leases.entry(record.state.word().to_owned()).or_default() += 1;
        }
        let gpus = self.standing.machine.as_ref().map(|machine| {
            machine
                .gpus
                .iter()
                .map(|gpu| gpu.model.to_string())
                .collect::<Vec<_>>()
        });
        let free = self
            .standing
            .offers
            .iter()
            .filter(|offer| self.use_of(offer).taken_by.is_none());
        let refusals = self
            .refusals
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count));
        let tunnels = crate::access::Refusal::ALL.iter().map(|refusal| {
            (
                format!("tunnel_{}", refusal.label()),
                self.access.refusals().of(*refusal),
            )
        });
        let network = self.node.counters().refusals();
        let network = network.map(|(refusal, count)| (refusal.label().to_owned(), count));
        Status {
            host: self.leases.host().to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            started_at: rfc3339(self.started_at),
            engine: engine.map_err(Clone::clone),
            gpus: gpus.unwrap_or_default(),
            gpu_rows: self.gpu_rows(),
            metrics: format!("http://{}/metrics", self.metrics_address),
            listed: self.listing.is_some(),
            offers: count(self.standing.offers.len()),
            offers_free: count(free.count()),
            offered: self.offer_rows(),
            health: self.health_rows(),
            drained: self.care.health.drain().map(str::to_owned),
            disk_free_bytes: self.disk_for_leases().0,
            leases,
            brokers: self
                .brokers
                .iter()
                .map(|(id, broker)| self.broker_row(*id, broker))
                .collect(),
            tunnels: count(self.access.open_tunnels()),
            refusals: refusals
                .chain(network)
                .chain(tunnels)
                .filter(|(_, count)| *count > 0)
                .collect(),
        }
    }

    fn broker_row(&self, id: BrokerId, broker: &Broker) -> BrokerRow {
        let configured = self.config.brokers.iter().find(|known| known.broker == id);
        let addresses = configured.map(|known| known.addresses.iter().map(ToString::to_string));
        let (connection, circuit) = match broker.link.state() {
            LinkState::Connecting => ("connecting".to_owned(), None),
            LinkState::Down { reason, .. } => (reason.to_string(), None),
            LinkState::Up { circuit, .. } => match circuit {
                Circuit::Reserved { address } => {
                    ("connected".to_owned(), Some(address.to_string()))
                }
                Circuit::Refused { reason } => (format!("connected, no relay: {reason}"), None),
                Circuit::NotWanted | Circuit::Reserving => ("connected".to_owned(), None),
            },
        };
        BrokerRow {
            broker: id.to_string(),
            addresses: addresses.map(Iterator::collect).unwrap_or_default(),
            connection,
            circuit,
            goal_heard_at: self.leases.goal(id).map(|goal| rfc3339(goal.heard_at)),
            offers_noted_at: broker.offers_noted_at.map(rfc3339),
        }
    }

    fn offer_rows(&self) -> Vec<OfferRow> {
        let offers = self.standing.offers.iter();
        offers
            .map(|listed| offer_row(listed, self.use_of(listed)))
            .collect()
    }

    /// Who has some of an offer, and why nothing of it can be leased now.
    fn use_of(&self, listed: &Listed) -> Use {
        let held_by: BTreeMap<String, usize> = self
            .holders_of(listed)
            .into_iter()
            .map(|(lease, count)| (lease.to_string(), count))
            .collect();
        let held: usize = held_by.values().sum();
        let is_full = held >= listed.offer.share.resources.len();
        let taken_by = match self.engine.state() {
            Err(reason) => Some(reason.clone()),
            Ok(_) if is_full => Some(held_by.keys().cloned().collect::<Vec<_>>().join(", ")),
            Ok(_) => self.unfit(listed),
        };
        Use { held_by, taken_by }
    }
}

/// A lease for its owner's eyes.
#[must_use]
pub(crate) fn lease_row(record: &LeaseRecord) -> LeaseRow {
    let want = match record.want {
        Want::Run(_) => "run",
        Want::Stop => "stop",
        Want::End => "end",
        Want::Vacate(_) => "leave",
    };
    LeaseRow {
        lease: record.lease.to_string(),
        name: record.order.name.to_string(),
        broker: record.broker.to_string(),
        renter: record.renter.to_string(),
        image: record.order.job.image.to_string(),
        state: record.state.word().to_owned(),
        want: want.to_owned(),
        kind: record.kind.word().to_owned(),
        promised_until: promised_until(record).map(rfc3339),
        stops_at: record
            .notice
            .map(|notice| rfc3339(notice.stop_at(record.limits.notice))),
        resources: record
            .state
            .held()
            .iter()
            .map(|held| held.resource.to_string())
            .collect(),
        running_s: record.running().seconds().0,
        uploaded_bytes: record.traffic.total().uploaded.0,
        downloaded_bytes: record.traffic.total().downloaded.0,
        taken_at: rfc3339(record.taken_at),
        price_usd_per_hour: price_of(record),
    }
}

/// Until when a lease that was prepaid is promised, as far as this host knows: its term begins when it runs.
fn promised_until(record: &LeaseRecord) -> Option<Timestamp> {
    match (record.kind, record.order.deal) {
        (ContractKind::Reserved, Deal::Reserved { days, .. }) => {
            let term = Seconds(u64::from(days) * 86_400);
            Some(record.taken_at.after(term.millis()))
        }
        (
            ContractKind::OnDemand
            | ContractKind::Bid
            | ContractKind::Interruptible
            | ContractKind::Reserved,
            _,
        ) => None,
    }
}

/// The price that the lease was taken at.
fn price_of(record: &LeaseRecord) -> String {
    let award = record
        .award
        .verify()
        .map(protocol::signed::Verified::into_body);
    award
        .map(|award| award.prices.compute.amount().decimal())
        .unwrap_or_default()
}

/// What of an offer is used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Use {
    /// Leases that have some of it, each with how many of its resources.
    pub(crate) held_by: BTreeMap<String, usize>,
    /// Why nothing of it can be leased now.
    pub(crate) taken_by: Option<String>,
}

/// An offer for its owner's eyes, with the very bytes that are signed but for header and sequence.
#[must_use]
pub(crate) fn offer_row(listed: &Listed, used: Use) -> OfferRow {
    let offer = &listed.offer;
    let (sales, limits) = (offer.sales, offer.limits);
    let held: usize = used.held_by.values().sum();
    let prices = offer.prices;
    let bytes = protocol::codec::encode(offer).unwrap_or_default();
    OfferRow {
        offer: offer.id.to_string(),
        terms: listed.terms.to_string(),
        resources: offer
            .share
            .resources
            .iter()
            .map(ToString::to_string)
            .collect(),
        gpu_name: offer
            .share
            .gpus
            .first()
            .map_or("none".to_owned(), |gpu| gpu.model.to_string()),
        gpus: count(offer.share.gpus.len()),
        free: if used.taken_by.is_some() {
            0
        } else {
            count(offer.share.resources.len().saturating_sub(held))
        },
        sold_as: offer.counts().collect(),
        chunks: chunks_word(offer.chunks).to_owned(),
        gpus_min: offer.gpus_min,
        cpu_millicores: offer.share.cpu_millicores,
        ram_bytes: offer.share.ram.0,
        disk_max_bytes: offer.limits.disk_max.0,
        price_usd_per_hour: prices.compute.amount().decimal(),
        floor_usd_per_hour: sales.floor.map(|floor| floor.amount().decimal()),
        discount_max_percent: sales.discount_max.map(percent),
        storage_usd_per_gb_month: prices.storage.amount().decimal(),
        upload_usd_per_gb: prices.upload.amount().decimal(),
        download_usd_per_gb: prices.download.amount().decimal(),
        start_within_s: limits.start_within.0,
        duration_min_s: limits.duration_min.0,
        duration_max_s: limits.duration_max.map(|longest| longest.0),
        until: limits.until.map(rfc3339),
        notice_s: limits.notice.0,
        network: network_word(offer.machine.network).to_owned(),
        held_by: used.held_by,
        taken_by: used.taken_by,
        signed_bytes: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Portions as they are typed.
#[must_use]
pub(crate) const fn chunks_word(chunks: Chunks) -> &'static str {
    match chunks {
        Chunks::Any => "any",
        Chunks::PowersOfTwo => "powers-of-two",
        Chunks::Whole => "whole",
    }
}

/// `40`, `12.50`.
fn percent(part: BasisPoints) -> String {
    let (whole, rest) = (part.0 / 100, part.0 % 100);
    if rest == 0 {
        whole.to_string()
    } else {
        format!("{whole}.{rest:02}")
    }
}

/// A container network as it is typed.
#[must_use]
pub(crate) const fn network_word(network: ContainerNetwork) -> &'static str {
    match network {
        ContainerNetwork::None => "none",
        ContainerNetwork::Bridge => "bridge",
    }
}

/// Asks every broker what this host earned there.
pub(crate) async fn earnings(node: &Node, brokers: Vec<BrokerId>) -> Vec<EarningsRow> {
    let mut rows = Vec::new();
    for broker in brokers {
        let earned = match exchange(node, broker, &BrokerRequest::Earnings).await {
            Ok(BrokerReply::Earnings(earnings)) => Ok(Earned {
                pending_usd: earnings.pending.decimal(),
                available_usd: earnings.available.decimal(),
                paid_out_usd: earnings.paid_out.decimal(),
                bond_usd: earnings.bond.decimal(),
                fees_usd: earnings.fees.decimal(),
                leases: earnings.leases,
                running_s: earnings.running.seconds().0,
            }),
            Ok(BrokerReply::Refused(rejection)) => Err(rejection.to_string()),
            Ok(
                BrokerReply::Info(_)
                | BrokerReply::Found(_)
                | BrokerReply::Lease(_)
                | BrokerReply::Leases(_)
                | BrokerReply::Balance(_)
                | BrokerReply::Statement(_)
                | BrokerReply::Receipt(_)
                | BrokerReply::HostEvidence(_)
                | BrokerReply::Verdicts(_)
                | BrokerReply::Transcript(_)
                | BrokerReply::Noted,
            ) => Err("it answered something else".to_owned()),
            Err(reason) => Err(reason),
        };
        rows.push(EarningsRow {
            broker: broker.to_string(),
            earned,
        });
    }
    rows
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
