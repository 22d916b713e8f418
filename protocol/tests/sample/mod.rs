//! Offers for the tests: fixed, made of numbers that are easy to find in a dump. Must not draw anything at
//! random.

use ed25519_dalek::SigningKey;
use protocol::bounded::{List, Text};
use protocol::ids::{BrokerId, HostId, PublicKey};
use protocol::machine::{ContainerNetwork, Gpu, Machine, Vendor};
use protocol::offer::{Chunks, Offer, Share, offer_id};
use protocol::terms::{Limits, Prices, Sales};
use protocol::units::{
    BasisPoints, Bytes, PricePerGb, PricePerGbMonth, PricePerHour, Seconds, Timestamp,
};

pub(crate) const BROKER: BrokerId = BrokerId::from_bytes([0xb0; 32]);

pub(crate) fn host_key() -> SigningKey {
    SigningKey::from_bytes(&[0x11; 32])
}

pub(crate) fn host() -> HostId {
    HostId::from(PublicKey::from_bytes(host_key().verifying_key().to_bytes()))
}

pub(crate) fn text<const N: usize>(words: &str) -> Text<N> {
    Text::new(words).unwrap()
}

pub(crate) fn list<T, const N: usize>(items: Vec<T>) -> List<T, N> {
    List::new(items).ok().unwrap()
}

pub(crate) fn rtx_4090() -> Gpu {
    Gpu {
        model: text("NVIDIA GeForce RTX 4090"),
        uuid: text("GPU-1"),
        vram: Bytes(24_564 << 20),
        driver: text("570.124.06"),
        cuda: (12, 8),
        compute_capability: (8, 9),
        pcie_generation: 4,
        pcie_width: 16,
        power_limit_mw: 450_000,
        ..Gpu::unknown(Vendor::Nvidia)
    }
}

pub(crate) fn machine(gpus: Vec<Gpu>) -> Machine {
    Machine {
        cpu_model: text("AMD EPYC 7713 64-Core Processor"),
        architecture: text("x86_64"),
        cpu_cores: 64,
        has_avx: true,
        ram: Bytes(256_000_000_000),
        disk_total: Bytes::from_gb(2000),
        disk_free: Bytes::from_gb(1500),
        disk_enforced: false,
        system: text("Debian GNU/Linux 12 (bookworm)"),
        kernel: text("6.1.0-18-amd64"),
        engine: text("20.10.24+dfsg1"),
        runtime: text("runc 1.1.5"),
        network: ContainerNetwork::Bridge,
        gpus: list(gpus),
        ..Machine::unknown()
    }
}

/// One RTX 4090 of two, at $0.318 an hour and $0.10 a GB-month; interruptible from $0.10, prepaid at 40 % off.
/// The host promises to be there until 2027-01-01T00:00:00Z, gives two minutes of notice, and takes nobody for
/// less than an hour.
pub(crate) fn gpu_offer() -> Offer {
    let second = Gpu {
        uuid: text("GPU-2"),
        ..rtx_4090()
    };
    let resources = list(vec![text("GPU-1")]);
    Offer {
        id: offer_id(host(), &resources),
        sequence: 7,
        listed_at: Timestamp(1_000),
        machine: machine(vec![rtx_4090(), second]),
        share: Share {
            resources,
            gpus: list(vec![rtx_4090()]),
            cpu_millicores: 32_000,
            ram: Bytes(128_000_000_000),
            shared_memory: Bytes(64_000_000_000),
        },
        chunks: Chunks::Any,
        gpus_min: 1,
        partition: None,
        measures: List::default(),
        prices: Prices {
            compute: PricePerHour(318_000),
            storage: PricePerGbMonth(100_000),
            upload: PricePerGb(5_000),
            download: PricePerGb(0),
        },
        sales: Sales {
            floor: Some(PricePerHour(100_000)),
            discount_max: Some(BasisPoints(4000)),
        },
        limits: Limits {
            start_within: Seconds(300),
            duration_min: Seconds(3600),
            duration_max: Some(Seconds(604_800)),
            until: Some(Timestamp(1_798_761_600_000)),
            stop_grace: Seconds(10),
            notice: Seconds(120),
            disk_max: Bytes::from_gb(500),
        },
        brokers: list(vec![BROKER]),
    }
}

/// Both RTX 4090s of the machine, each at the price of [`gpu_offer`], in any number.
pub(crate) fn pair_offer() -> Offer {
    let gpu = gpu_offer();
    let resources = list(vec![text("GPU-1"), text("GPU-2")]);
    Offer {
        id: offer_id(host(), &resources),
        share: Share {
            resources,
            gpus: gpu.machine.gpus.clone(),
            cpu_millicores: 63_999,
            ..gpu.share
        },
        ..gpu
    }
}

/// A machine without a GPU, at $0.02 an hour, on demand alone: without a longest duration and without an end.
pub(crate) fn cpu_offer() -> Offer {
    let resources = list(vec![text("machine")]);
    let gpu = gpu_offer();
    Offer {
        id: offer_id(host(), &resources),
        machine: machine(vec![]),
        share: Share {
            resources,
            gpus: list(vec![]),
            ..gpu.share
        },
        gpus_min: 0,
        sales: Sales::default(),
        prices: Prices {
            compute: PricePerHour(20_000),
            ..gpu.prices
        },
        limits: Limits {
            duration_max: None,
            until: None,
            ..gpu.limits
        },
        ..gpu
    }
}
