//! Offers made up for tests.

use super::super::merge::Candidate;
use ed25519_dalek::SigningKey;
use protocol::bounded::{List, Text};
use protocol::codec;
use protocol::ids::{BrokerId, HostId, MessageId, PublicKey};
use protocol::machine::{ContainerNetwork, Gpu, Machine};
use protocol::message::FoundOffer;
use protocol::offer::{Chunks, Offer, Share, offer_id};
use protocol::signed::{ANYONE, Envelope, Signed, Verified};
use protocol::terms::{Limits, Prices, Sales};
use protocol::units::{Bytes, PricePerGb, PricePerGbMonth, PricePerHour, Seconds, Timestamp};

/// The brokers that the offers are for.
pub(in crate::commands::search) const BROKERS: [BrokerId; 2] = [
    BrokerId::from_bytes([0xb1; 32]),
    BrokerId::from_bytes([0xb2; 32]),
];

fn text<const N: usize>(words: &str) -> Text<N> {
    Text::new(words).unwrap()
}

fn offer(host: u8, sequence: u64, price: u64) -> Offer {
    let gpu = Gpu {
        model: text("NVIDIA GeForce RTX 4090"),
        uuid: text("GPU-1"),
        vram: Bytes(24_564 << 20),
        driver: text("570.124.06"),
        cuda: (12, 8),
        compute_capability: (8, 9),
        pcie_generation: 4,
        pcie_width: 16,
        power_limit_mw: 450_000,
    };
    let resources = List::new(vec![text("GPU-1")]).unwrap();
    Offer {
        id: offer_id(host_id(host), &resources),
        sequence,
        listed_at: Timestamp(5),
        machine: Machine {
            cpu_model: text("AMD EPYC 7713 64-Core Processor"),
            architecture: text("x86_64"),
            cpu_cores: 16,
            has_avx: true,
            ram: Bytes(64 << 30),
            disk_total: Bytes::from_gb(900),
            disk_free: Bytes::from_gb(800),
            disk_enforced: false,
            system: text("Debian GNU/Linux 12"),
            kernel: text("6.1.0"),
            engine: text("20.10.24"),
            runtime: text("runc 1.1.5"),
            network: ContainerNetwork::Bridge,
            gpus: List::new(vec![gpu.clone()]).unwrap(),
        },
        share: Share {
            resources,
            gpus: List::new(vec![gpu]).unwrap(),
            cpu_millicores: 16_000,
            ram: Bytes(60 << 30),
            shared_memory: Bytes(30 << 30),
        },
        chunks: Chunks::Any,
        gpus_min: 1,
        sales: Sales::default(),
        prices: Prices {
            compute: PricePerHour(price),
            storage: PricePerGbMonth(100_000),
            upload: PricePerGb(5_000),
            download: PricePerGb(0),
        },
        limits: Limits {
            start_within: Seconds(300),
            duration_min: Seconds(0),
            duration_max: None,
            until: None,
            stop_grace: Seconds(10),
            notice: Seconds(120),
            disk_max: Bytes::from_gb(500),
        },
        brokers: List::new(BROKERS.to_vec()).unwrap(),
    }
}

fn key(host: u8) -> SigningKey {
    SigningKey::from_bytes(&[host; 32])
}

fn host_id(host: u8) -> HostId {
    HostId::from(PublicKey::from_bytes(key(host).verifying_key().to_bytes()))
}

fn sign(host: u8, offer: Offer) -> Verified<Offer> {
    let envelope = Envelope {
        audience: ANYONE,
        message_id: MessageId::from_bytes([1; 16]),
        issued: Timestamp(1_796_047_364_103),
        validity: Seconds(90),
    };
    Signed::sign(offer, &key(host), envelope).unwrap()
}

fn portion(offer: Signed<Offer>, price: u64) -> FoundOffer {
    FoundOffer {
        offer,
        gpus: 1,
        price: PricePerHour(price),
        pushes_out: false,
        reliability: 998_680,
    }
}

/// Host `host`'s offer of one RTX 4090 at `price` µ$ an hour and $0.10 a GB-month.
pub(in crate::commands::search) fn verified(
    host: u8,
    sequence: u64,
    price: u64,
) -> Verified<Offer> {
    sign(host, offer(host, sequence, price))
}

/// The same as a broker answers with it.
pub(in crate::commands::search) fn found(host: u8, sequence: u64, price: u64) -> FoundOffer {
    portion(verified(host, sequence, price).signed().clone(), price)
}

/// The same as it is shown.
pub(in crate::commands::search) fn candidate(host: u8, sequence: u64, price: u64) -> Candidate {
    Candidate {
        offer: verified(host, sequence, price),
        gpus: 1,
        price: PricePerHour(price),
        pushes_out: false,
        reliability: 998_680,
        brokers: BROKERS.to_vec(),
    }
}

/// An offer for these brokers only.
pub(in crate::commands::search) fn for_brokers(host: u8, brokers: Vec<BrokerId>) -> FoundOffer {
    let brokers = List::new(brokers).unwrap();
    let signed = sign(
        host,
        Offer {
            brokers,
            ..offer(host, 1, 1000)
        },
    );
    portion(signed.signed().clone(), 1000)
}

/// An offer whose signature is another's.
pub(in crate::commands::search) fn forged() -> FoundOffer {
    let mut bytes = codec::encode(verified(9, 1, 1000).signed()).unwrap();
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    portion(codec::decode(&bytes).unwrap(), 1000)
}
