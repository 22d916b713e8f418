//! What the broker of the tests sells: one machine of one host, and orders of it that nobody typed.

use super::{broker_id, now, signing_key};
use protocol::bounded::{List, Text};
use protocol::ids::{HostId, MessageId, OfferId, OrderId, PublicKey};
use protocol::job::Job;
use protocol::message::FoundOffer;
use protocol::machine::{ContainerNetwork, Machine};
use protocol::offer::{Chunks, Offer, Share, offer_id};
use protocol::order::{Order, Target};
use protocol::signed::{ANYONE, Envelope, Signed};
use protocol::terms::{Deal, Limits, Prices, Sales};
use protocol::units::{
    Bytes, MicroUsd, PricePerGb, PricePerGbMonth, PricePerHour, Seconds, Timestamp,
};
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
    let resources = [Text::cut("machine")];
    let body = Offer {
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
    };
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

/// What a search finds.
pub(super) fn portion() -> FoundOffer {
    FoundOffer {
        offer: offer(),
        gpus: 0,
        price: prices().compute,
        pushes_out: false,
        reliability: 998_680,
        hazard: 55_000,
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
    }
}
