//! Keys, offers and jobs that the tests' parties have.

use ed25519_dalek::SigningKey;
use mig::board::{Cut, find_board};
use mig::chip::{Chip, Profile};
use protocol::bounded::{List, Text};
use protocol::ids::{BrokerId, HostId, PublicKey, RenterId};
use protocol::job::{Job, PinnedImage};
use protocol::machine::{ContainerNetwork, GPUS_MAX, Gpu, Machine, Vendor};
use protocol::offer::{Chunks, Isolation, Offer, Partition, ResourceName, Share, offer_id};
use protocol::terms::{Limits, Prices, Sales};
use protocol::units::{Bytes, PricePerGb, PricePerGbMonth, PricePerHour, Seconds, Timestamp};

pub(crate) const START: Timestamp = Timestamp(1_800_000_000_000);

pub(crate) fn broker_key() -> SigningKey {
    SigningKey::from_bytes(&[1; 32])
}

pub(crate) fn broker_id() -> BrokerId {
    public(&broker_key()).into()
}

pub(crate) fn renter_key(n: u8) -> SigningKey {
    SigningKey::from_bytes(&[100 + n; 32])
}

pub(crate) fn renter_id(n: u8) -> RenterId {
    public(&renter_key(n)).into()
}

pub(crate) fn host_key(n: u8) -> SigningKey {
    SigningKey::from_bytes(&[200 + n; 32])
}

pub(crate) fn host_id(n: u8) -> HostId {
    public(&host_key(n)).into()
}

fn public(key: &SigningKey) -> PublicKey {
    PublicKey::from_bytes(key.verifying_key().to_bytes())
}

/// Slices of a profile: all that its chip has, or one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slices {
    pub(crate) profile: &'static str,
    /// The GPU's number and the start.
    pub(crate) only: Option<(u16, u8)>,
}

/// What an offer sells, asks and bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    /// How many GPUs; 0 for a machine without one.
    pub(crate) gpus: u16,
    /// Which slices of them; whole ones without.
    pub(crate) slices: Option<Slices>,
    pub(crate) chunks: Chunks,
    pub(crate) gpus_min: u16,
    pub(crate) prices: Prices,
    pub(crate) sales: Sales,
    pub(crate) start_within: Seconds,
    pub(crate) duration_min: Seconds,
    pub(crate) duration_max: Option<Seconds>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) notice: Seconds,
    pub(crate) disk_max: Bytes,
}

impl Default for Ask {
    /// The offer of the first example of the market rules.
    fn default() -> Self {
        Self {
            gpus: 0,
            slices: None,
            chunks: Chunks::Any,
            gpus_min: 0,
            prices: Prices {
                compute: PricePerHour(400_000),
                storage: PricePerGbMonth(100_000),
                upload: PricePerGb(10_000),
                download: PricePerGb(0),
            },
            sales: Sales::default(),
            start_within: Seconds(600),
            duration_min: Seconds(0),
            duration_max: None,
            until: None,
            notice: Seconds(120),
            disk_max: Bytes::from_gb(500),
        }
    }
}

impl Ask {
    /// Of so many GPUs at that price each, with no other price, and interruptible from `floor`.
    pub(crate) fn gpus(gpus: u16, compute: u64, floor: Option<u64>) -> Self {
        Self {
            gpus,
            prices: Prices {
                compute: PricePerHour(compute),
                ..Prices::default()
            },
            sales: Sales {
                floor: floor.map(PricePerHour),
                discount_max: None,
            },
            ..Self::default()
        }
    }
}

pub(crate) fn job() -> Job {
    Job {
        image: PinnedImage {
            name: Text::new("127.0.0.1:5000/demo").unwrap(),
            sha256: [5; 32],
        },
        entrypoint: None,
        command: Some(List::first([
            Text::new("sleep").unwrap(),
            Text::new("60").unwrap(),
        ])),
        environment: List::default(),
    }
}

/// The GPUs of an offer, or `resource` itself without any: one for each, named after it.
fn wholes(resource: &ResourceName, ask: &Ask) -> Vec<ResourceName> {
    if ask.gpus == 0 {
        return vec![resource.clone()];
    }
    let numbers = (0..ask.gpus).filter(|number| {
        let only = ask.slices.and_then(|slices| slices.only);
        only.is_none_or(|(gpu, _)| gpu == *number)
    });
    numbers
        .map(|n| Text::new(format!("{}-{n:02}", resource.as_str())).unwrap())
        .collect()
}

/// The chip of the GPUs whose names begin with `GPU-h`: an H100 of 80 GB.
pub(crate) fn chip() -> &'static Chip {
    match &find_board("NVIDIA H100 80GB HBM3", 80 << 30).unwrap().cut {
        Cut::Known(chip) => chip,
        Cut::Named { .. } => panic!("an H100 is known"),
    }
}

fn profile(slices: Slices) -> &'static Profile {
    chip()
        .profile(chip().find(slices.profile).unwrap())
        .unwrap()
}

fn partition(slices: Slices) -> Partition {
    let profile = profile(slices);
    Partition {
        profile: Text::new(slices.profile).unwrap(),
        vram: Bytes(u64::from(profile.memory_mib) << 20),
        multiprocessors: (profile.sm, 132),
        memory_slices: (profile.size, 8),
        isolation: Isolation::Hardware,
    }
}

/// The resources of an offer: its GPUs, or all places of a slice on them.
fn resources(resource: &ResourceName, ask: &Ask) -> Vec<ResourceName> {
    let gpus = wholes(resource, ask);
    let Some(slices) = ask.slices else {
        return gpus;
    };
    let (profile, size) = (slices.profile, profile(slices).size);
    let starts = profile_starts(slices);
    let names = gpus.iter().flat_map(|gpu| {
        let name = move |start: &u8| format!("{}/{profile}@{start}+{size}", gpu.as_str());
        starts.iter().map(name)
    });
    names.map(|name| Text::new(name).unwrap()).collect()
}

fn profile_starts(slices: Slices) -> Vec<u8> {
    let all = profile(slices).starts.iter().copied();
    all.filter(|start| slices.only.is_none_or(|(_, only)| only == *start))
        .collect()
}

fn gpu(uuid: &ResourceName) -> Gpu {
    let (model, vram, compute_capability) = if uuid.starts_with("GPU-h") {
        ("NVIDIA H100 80GB HBM3", Bytes(80 << 30), (9, 0))
    } else {
        ("NVIDIA GeForce RTX 4090", Bytes::from_gb(24), (8, 9))
    };
    Gpu {
        model: Text::new(model).unwrap(),
        uuid: uuid.clone(),
        vram,
        driver: Text::new("570.124.06").unwrap(),
        cuda: (12, 8),
        compute_capability,
        pcie_generation: 4,
        pcie_width: 16,
        power_limit_mw: 450_000,
        ..Gpu::unknown(Vendor::Nvidia)
    }
}

/// A share has 4 cores and 16 GB for each GPU, or for the machine; a slice has its part of those of one GPU.
pub(crate) fn offer(host: u8, resource: &ResourceName, ask: &Ask, now: Timestamp) -> Offer {
    let resources = resources(resource, ask);
    let gpus: List<Gpu, GPUS_MAX> = if ask.gpus == 0 {
        List::default()
    } else {
        List::first(wholes(resource, ask).iter().map(gpu))
    };
    // In eighths of a GPU.
    let eighths = match ask.slices {
        Some(slices) => u64::from(profile(slices).size),
        None => u64::from(ask.gpus.max(1)) * 8,
    };
    let parts = u64::from(ask.gpus.max(1));
    let gb = 1_000_000_000;
    Offer {
        id: offer_id(host_id(host), &resources),
        sequence: now.0,
        listed_at: START,
        machine: machine(gpus.clone(), parts),
        share: Share {
            resources: List::first(resources),
            gpus,
            cpu_millicores: 500 * u32::try_from(eighths).unwrap(),
            ram: Bytes(2 * gb * eighths),
            shared_memory: Bytes(gb / 8 * eighths),
        },
        chunks: ask.chunks,
        gpus_min: ask.gpus_min,
        partition: ask.slices.map(partition),
        measures: List::default(),
        prices: ask.prices,
        sales: ask.sales,
        limits: Limits {
            start_within: ask.start_within,
            duration_min: ask.duration_min,
            duration_max: ask.duration_max,
            until: ask.until,
            stop_grace: Seconds(10),
            notice: ask.notice,
            disk_max: if ask.slices.is_some() {
                Bytes(ask.disk_max.0 / 8 * eighths)
            } else {
                ask.disk_max
            },
        },
        brokers: List::first([broker_id()]),
    }
}

fn machine(gpus: List<Gpu, GPUS_MAX>, parts: u64) -> Machine {
    Machine {
        cpu_model: Text::new("EPYC").unwrap(),
        architecture: Text::new("x86_64").unwrap(),
        cpu_cores: 4,
        has_avx: true,
        ram: Bytes::from_gb(16 * parts),
        disk_total: Bytes::from_gb(1000),
        disk_free: Bytes::from_gb(900),
        disk_enforced: false,
        system: Text::new("Debian GNU/Linux 12").unwrap(),
        kernel: Text::new("6.1.0").unwrap(),
        engine: Text::new("20.10.24").unwrap(),
        runtime: Text::new("runc 1.1.5").unwrap(),
        network: ContainerNetwork::Bridge,
        gpus,
        ..Machine::unknown()
    }
}
