//! What the broker of the tests sells: one machine of one host, and orders of it that nobody typed.

use super::{broker_id, now, signing_key};
use protocol::bounded::{List, Text};
use protocol::filter::Facts;
use protocol::ids::{HostId, MessageId, OfferId, OrderId, PublicKey};
use protocol::job::Job;
use protocol::machine::{ContainerNetwork, Gpu, Machine, Vendor};
use protocol::message::{FoundOffer, Search};
use protocol::offer::{Chunks, Offer, Share, offer_id};
use protocol::order::{Order, Target};
use protocol::signed::{ANYONE, Envelope, Signed};
use protocol::terms::{ContractKind, Deal, Limits, Prices, Sales};
use protocol::units::{
    BasisPoints, Bytes, MicroUsd, Millis, PricePerGb, PricePerGbMonth, PricePerHour, Seconds,
    Timestamp,
};
use protocol::usage::Term;
use protocol::verify::VerificationLevel;
use std::error::Error;

pub(super) fn order_of(offer: &Offer, byte: u8) -> Result<Order, Box<dyn Error>> {
    Ok(Order {
        id: OrderId::from_bytes([byte; 16]),
        target: Target::Offer {
            offer: offer.id,
            terms: offer.terms_digest()?,
        },
        deal: Deal::OnDemand,
        gpus: 0,
        cpu_millicores: None,
        ram: None,
        name: Text::default(),
        job: Job {
            image: format!("docker.io/library/debian@sha256:{}", "0a".repeat(32)).parse()?,
            entrypoint: None,
            command: None,
            environment: List::default(),
        },
        disk: Bytes::from_gb(10),
        price_max: PricePerHour(1_000_000),
        budget: MicroUsd(5_000_000),
        duration_max: None,
        access: List::default(),
    })
}

pub(super) fn host_id() -> HostId {
    PublicKey::from_bytes(signing_key(99).verifying_key().to_bytes()).into()
}

pub(super) fn prices() -> Prices {
    Prices {
        compute: PricePerHour(400_000),
        storage: PricePerGbMonth(100_000),
        upload: PricePerGb(0),
        download: PricePerGb(0),
    }
}

/// The one offer: a CPU machine at $0.40 an hour and $0.10 a GB and month, so $0.401388 an hour with 10 GB.
pub(super) fn offer() -> Signed<Offer> {
    sign(body())
}

fn body() -> Offer {
    let resources = [Text::cut("machine")];
    Offer {
        id: offer_id(host_id(), &resources),
        sequence: now().0,
        listed_at: Timestamp(0),
        machine: machine(),
        share: Share {
            resources: List::first(resources),
            gpus: List::default(),
            cpu_millicores: 8000,
            ram: Bytes(30 << 30),
            shared_memory: Bytes(1 << 30),
        },
        chunks: Chunks::Any,
        gpus_min: 0,
        partition: None,
        measures: List::default(),
        prices: prices(),
        sales: Sales::default(),
        limits: Limits {
            start_within: Seconds(300),
            duration_min: Seconds(0),
            duration_max: None,
            until: None,
            notice: Seconds(120),
            stop_grace: Seconds(10),
            disk_max: Bytes::from_gb(100),
        },
        brokers: List::first([1, 2].map(broker_id)),
    }
}

fn sign(body: Offer) -> Signed<Offer> {
    let envelope = Envelope {
        audience: ANYONE,
        message_id: MessageId::from_bytes([1; 16]),
        issued: now(),
        validity: Seconds(90),
    };
    match Signed::sign(body, &signing_key(99), envelope) {
        Ok(verified) => verified.signed().clone(),
        Err(error) => panic!("an offer of a few hundred bytes is signed: {error}"),
    }
}

/// What a search finds: of the pool those portions that its filter matches.
pub(super) fn portions(pool: bool, search: &Search) -> Vec<FoundOffer> {
    let offer = if pool { pool_offer() } else { offer() };
    let Ok(verified) = offer.verify() else {
        return Vec::new();
    };
    let body = verified.body();
    let filter = search.filter.prepare(search.need);
    let price = match search.kind {
        ContractKind::Interruptible => PricePerHour(205_000),
        ContractKind::OnDemand | ContractKind::Bid | ContractKind::Reserved => body.prices.compute,
    };
    let is_sold = match search.kind {
        ContractKind::Interruptible => body.sales.floor.is_some(),
        ContractKind::Reserved => body.sales.discount_max.is_some(),
        ContractKind::OnDemand | ContractKind::Bid => true,
    };
    let found = |gpus| FoundOffer {
        offer: offer.clone(),
        gpus,
        price,
        pushes_out: false,
        reliability: 998_680,
        hazard: 55_000,
        verification: VerificationLevel::Unverified,
    };
    let counts = body.counts().filter(|_| is_sold);
    let facts = |gpus: &u16| Facts::of(host_id(), body, *gpus).with_reliability(998_680);
    counts
        .filter(|gpus| !pool || filter.matches(&facts(gpus)))
        .map(found)
        .collect()
}

/// A pool of four RTX 4090, each at $0.40 an hour, sold by 1, 2 and 4; bids from $0.10 on, discounts up to 40 %.
fn pool_offer() -> Signed<Offer> {
    let gpu = |index: u8| Gpu {
        model: Text::cut("NVIDIA GeForce RTX 4090"),
        uuid: Text::cut(&format!("GPU-{index}")),
        vram: Bytes(24_564 << 20),
        driver: Text::cut("570.124.06"),
        cuda: (12, 8),
        compute_capability: (8, 9),
        pcie_generation: 4,
        pcie_width: 16,
        power_limit_mw: 450_000,
        ..Gpu::unknown(Vendor::Nvidia)
    };
    let gpus: Vec<Gpu> = (1..=4).map(gpu).collect();
    let resources: Vec<_> = gpus.iter().map(|gpu| Text::cut(&gpu.uuid)).collect();
    let whole = body();
    sign(Offer {
        id: offer_id(host_id(), &resources),
        share: Share {
            resources: List::first(resources),
            gpus: List::first(gpus),
            ..whole.share
        },
        chunks: Chunks::PowersOfTwo,
        gpus_min: 1,
        sales: Sales {
            floor: Some(PricePerHour(100_000)),
            discount_max: Some(BasisPoints(4000)),
        },
        ..whole
    })
}

/// What is bid, and until when it waits.
pub(super) fn bid_of(deal: &Deal) -> (Option<PricePerHour>, Option<Timestamp>) {
    match *deal {
        Deal::OnDemand | Deal::Reserved { .. } => (None, None),
        Deal::Bid { limit, until } => (Some(limit), Some(until)),
        Deal::Interruptible { bid, until, .. } => (Some(bid), Some(until)),
    }
}

/// 30 days at $1 on demand, of which so many hours have gone: see the market's rules, X.
pub(super) fn term_of(hours: u64) -> Term {
    let gone = Millis(hours * 3_600_000);
    Term {
        days: 30,
        prepaid: MicroUsd(576_000_000),
        discount: BasisPoints(2000),
        rate: PricePerHour(1_000_000),
        begins: Some(now().before(gone)),
        from: Millis(0),
        down: Millis(0),
        earned: MicroUsd(288_000_000),
        refunded: MicroUsd::ZERO,
        clawed_back: (MicroUsd::ZERO, MicroUsd::ZERO),
        from_bond: MicroUsd::ZERO,
    }
}

/// Where an order is placed.
pub(super) fn place_of(order: &Order) -> Option<(HostId, OfferId)> {
    match &order.target {
        Target::Offer { offer, .. } => Some((host_id(), *offer)),
        Target::Any(_) => None,
    }
}

fn machine() -> Machine {
    Machine {
        cpu_model: Text::cut("AMD EPYC 7B13"),
        architecture: Text::cut("x86_64"),
        cpu_cores: 8,
        has_avx: true,
        ram: Bytes(32 << 30),
        disk_total: Bytes::from_gb(500),
        disk_free: Bytes::from_gb(400),
        disk_enforced: false,
        system: Text::cut("Debian GNU/Linux 12"),
        kernel: Text::cut("6.1.0"),
        engine: Text::cut("20.10.24"),
        runtime: Text::cut("runc 1.1.5"),
        network: ContainerNetwork::None,
        gpus: List::default(),
        ..Machine::unknown()
    }
}
