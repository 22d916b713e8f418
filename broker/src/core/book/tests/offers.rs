//! Hosts and offers made up for tests.

use ed25519_dalek::SigningKey;
use protocol::bounded::{List, Text};
use protocol::ids::{BrokerId, HostId, MessageId, PublicKey};
use protocol::machine::{ContainerNetwork, Gpu, Machine, Vendor};
use protocol::offer::{Chunks, Offer, Share, offer_id};
use protocol::signed::{ANYONE, Envelope, Signed, Verified};
use protocol::terms::{Limits, Prices, Sales};
use protocol::units::{Bytes, PricePerGb, PricePerGbMonth, PricePerHour, Seconds, Timestamp};

pub(super) const BROKER: BrokerId = BrokerId::from_bytes([0xb0; 32]);
pub(super) const NOW: Timestamp = Timestamp(1_000_000);

pub(super) fn text<const N: usize>(words: &str) -> Text<N> {
    Text::new(words).unwrap()
}

fn key(number: u32) -> SigningKey {
    let mut seed = [9; 32];
    seed[..4].copy_from_slice(&number.to_le_bytes());
    SigningKey::from_bytes(&seed)
}

pub(super) fn host(number: u32) -> HostId {
    HostId::from(PublicKey::from_bytes(
        key(number).verifying_key().to_bytes(),
    ))
}

pub(super) fn gpu(model: &str, uuid: &str) -> Gpu {
    let (vendor, compute_capability) = match model {
        "AMD Instinct MI300X" => (Vendor::Amd, (0, 0)),
        "NVIDIA H100 80GB HBM3" => (Vendor::Nvidia, (9, 0)),
        _ => (Vendor::Nvidia, (8, 9)),
    };
    Gpu {
        model: text(model),
        uuid: text(uuid),
        vram: Bytes(24 << 30),
        driver: text("570.124.06"),
        cuda: (12, 8),
        compute_capability,
        pcie_generation: 4,
        pcie_width: 16,
        power_limit_mw: 450_000,
        ..Gpu::unknown(vendor)
    }
}

/// Host `number`'s offer of the GPU `uuid` at `price` µ$ an hour.
pub(super) fn offer(number: u32, uuid: &str, price: u64) -> Offer {
    let gpu = gpu("NVIDIA GeForce RTX 4090", uuid);
    let resources = List::new(vec![text(uuid)]).unwrap();
    Offer {
        id: offer_id(host(number), &resources),
        sequence: 1,
        listed_at: Timestamp(5),
        machine: Machine {
            cpu_model: text("EPYC"),
            architecture: text("x86_64"),
            cpu_cores: 16,
            has_avx: true,
            ram: Bytes::from_gb(64),
            disk_total: Bytes::from_gb(500),
            disk_free: Bytes::from_gb(400),
            disk_enforced: false,
            system: text("Debian GNU/Linux 12"),
            kernel: text("6.1.0"),
            engine: text("20.10.24"),
            runtime: text("runc 1.1.5"),
            network: ContainerNetwork::None,
            gpus: List::new(vec![gpu.clone()]).unwrap(),
            ..Machine::unknown()
        },
        share: Share {
            resources,
            gpus: List::new(vec![gpu]).unwrap(),
            cpu_millicores: 8000,
            ram: Bytes::from_gb(32),
            shared_memory: Bytes::from_gb(16),
        },
        chunks: Chunks::Any,
        gpus_min: 0,
        sales: Sales::default(),
        partition: None,
        measures: List::default(),
        prices: Prices {
            compute: PricePerHour(price),
            storage: PricePerGbMonth(72_000),
            upload: PricePerGb(0),
            download: PricePerGb(0),
        },
        limits: Limits {
            start_within: Seconds(300),
            duration_min: Seconds(0),
            duration_max: None,
            until: None,
            stop_grace: Seconds(10),
            notice: Seconds(120),
            disk_max: Bytes::from_gb(100),
        },
        brokers: List::new(vec![BROKER]).unwrap(),
    }
}

pub(super) fn signed_at(number: u32, offer: Offer, issued: Timestamp) -> Verified<Offer> {
    let envelope = Envelope {
        audience: ANYONE,
        message_id: MessageId::from_bytes([1; 16]),
        issued,
        validity: Seconds(90),
    };
    Signed::sign(offer, &key(number), envelope).unwrap()
}

pub(super) fn signed(number: u32, offer: Offer) -> Verified<Offer> {
    signed_at(number, offer, NOW)
}
