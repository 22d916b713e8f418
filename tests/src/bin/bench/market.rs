//! A market to measure with: hosts, their signed offers, renters and their signed orders, the same on
//! every run.
//!
//! Must not read a clock; what is signed says when by the caller's.

use ed25519_dalek::SigningKey;
use protocol::bounded::{List, Text};
use protocol::catalogue::sheet_of;
use protocol::filter::ModelName;
use protocol::ids::{BrokerId, HostId, MessageId, OrderId, PublicKey, RenterId};
use protocol::job::{Job, PinnedImage};
use protocol::machine::{ContainerNetwork, Gpu, Machine, Vendor};
use protocol::offer::{Chunks, OFFERS_MAX, Offer, ResourceName, Share, offer_id};
use protocol::order::{Order, Target};
use protocol::signed::{ANYONE, Envelope, Signed, Statement, Verified};
use protocol::terms::{Deal, Limits, Prices, Sales};
use protocol::units::{
    BasisPoints, Bytes, MicroUsd, PricePerGb, PricePerGbMonth, PricePerHour, Seconds, Timestamp,
};

use crate::Outcome;

/// Disk that every order asks for.
const DISK: Bytes = Bytes(10_000_000_000);
/// Longer than a run takes, and as long as a fresh statement may be valid.
const VALIDITY: Seconds = Seconds(290);

/// Cards as they are rented, with an hour's price in micro-dollars and their memory in GiB.
const MODELS: [(&str, u64, u64); 6] = [
    ("NVIDIA GeForce RTX 3090", 180_000, 24),
    ("NVIDIA GeForce RTX 4090", 340_000, 24),
    ("NVIDIA GeForce RTX 5090", 520_000, 32),
    ("NVIDIA A100-SXM4-80GB", 1_100_000, 80),
    ("NVIDIA H100 80GB HBM3", 2_200_000, 80),
    ("NVIDIA L40S", 790_000, 48),
];

/// A key that depends on a kind of party and a number only.
pub(crate) fn key(kind: u8, number: u32) -> SigningKey {
    let mut seed = [kind; 32];
    seed[..4].copy_from_slice(&number.to_le_bytes());
    SigningKey::from_bytes(&seed)
}

/// The public half, as ids are made of it.
pub(crate) fn public(key: &SigningKey) -> PublicKey {
    PublicKey::from_bytes(key.verifying_key().to_bytes())
}

/// A host with its offers, one for each of its GPUs.
pub(crate) struct Seller {
    pub(crate) key: SigningKey,
    pub(crate) offers: Vec<Verified<Offer>>,
}

/// Enough sellers for `count` offers, each with as many as a host may have.
pub(crate) fn sellers(count: usize, broker: BrokerId, now: Timestamp) -> Outcome<Vec<Seller>> {
    let mut sellers = Vec::new();
    let mut left = count;
    while left > 0 {
        let cards = left.min(OFFERS_MAX.min(protocol::machine::GPUS_MAX));
        sellers.push(seller(u32::try_from(sellers.len())?, cards, broker, now)?);
        left -= cards;
    }
    Ok(sellers)
}

fn seller(number: u32, cards: usize, broker: BrokerId, now: Timestamp) -> Outcome<Seller> {
    let key = key(b'h', number);
    let (model, price, vram) = MODELS[usize::try_from(number)? % MODELS.len()];
    let gpus: Vec<Gpu> = (0..cards)
        .map(|card| gpu(model, vram, number, card))
        .collect::<Outcome<_>>()?;
    let machine = machine(&gpus)?;
    let offers = gpus
        .into_iter()
        .map(|card| {
            // Within a fifth of the usual price, so that the order by price means something.
            let price = PricePerHour(price + u64::from(number) * 7919 % (price / 5));
            let offer = offer(&key, &machine, card, price, broker, now)?;
            let id = *offer.id.as_bytes();
            sign(offer, &key, ANYONE, id, now)
        })
        .collect::<Outcome<_>>()?;
    Ok(Seller { key, offers })
}

fn gpu(model: &str, vram: u64, number: u32, card: usize) -> Outcome<Gpu> {
    let sheet = sheet_of(&ModelName::asked(model), Bytes(0));
    Ok(Gpu {
        model: Text::new(model)?,
        uuid: Text::new(format!("GPU-{number:08x}-0000-0000-0000-{card:012x}"))?,
        vram: Bytes(vram << 30),
        driver: Text::new("570.124.06")?,
        cuda: (12, 8),
        compute_capability: sheet.and_then(|sheet| sheet.capability).unwrap_or_default(),
        pcie_generation: 4,
        pcie_width: 16,
        power_limit_mw: 450_000,
        ..Gpu::unknown(Vendor::Nvidia)
    })
}

fn machine(gpus: &[Gpu]) -> Outcome<Machine> {
    Ok(Machine {
        cpu_model: Text::new("AMD EPYC 7543 32-Core Processor")?,
        architecture: Text::new("x86_64")?,
        cpu_cores: 64,
        has_avx: true,
        ram: Bytes(512 << 30),
        disk_total: Bytes(4_000_000_000_000),
        disk_free: Bytes(3_000_000_000_000),
        disk_enforced: true,
        system: Text::new("Debian GNU/Linux 12")?,
        kernel: Text::new("6.1.0-31-amd64")?,
        engine: Text::new("20.10.24")?,
        runtime: Text::new("runc 1.1.5")?,
        network: ContainerNetwork::None,
        gpus: List::new(gpus.to_vec())?,
        ..Machine::unknown()
    })
}

fn offer(
    key: &SigningKey,
    machine: &Machine,
    card: Gpu,
    price: PricePerHour,
    broker: BrokerId,
    now: Timestamp,
) -> Outcome<Offer> {
    let resource: ResourceName = Text::new(card.uuid.as_str())?;
    Ok(Offer {
        id: offer_id(HostId::from(public(key)), std::slice::from_ref(&resource)),
        sequence: now.0,
        listed_at: now,
        machine: machine.clone(),
        share: Share {
            resources: List::new(vec![resource])?,
            gpus: List::new(vec![card])?,
            cpu_millicores: 4000,
            ram: Bytes(32 << 30),
            shared_memory: Bytes(1 << 30),
        },
        chunks: Chunks::Any,
        gpus_min: 1,
        sales: Sales {
            floor: Some(PricePerHour(price.0 / 4)),
            discount_max: Some(BasisPoints(3000)),
        },
        partition: None,
        measures: List::default(),
        prices: Prices {
            compute: price,
            storage: PricePerGbMonth(100_000),
            upload: PricePerGb(0),
            download: PricePerGb(0),
        },
        limits: Limits {
            start_within: Seconds(3600),
            duration_min: Seconds(0),
            duration_max: None,
            until: None,
            stop_grace: Seconds(10),
            notice: Seconds(120),
            disk_max: Bytes(200_000_000_000),
        },
        brokers: List::new(vec![broker])?,
    })
}

/// An order on demand by `renter` for `offer`, signed for `broker`.
pub(crate) fn order(
    renter: &SigningKey,
    offer: &Offer,
    broker: BrokerId,
    now: Timestamp,
) -> Outcome<Verified<Order>> {
    // An order for each offer: the offer's id is as good a name for it as any.
    let id = *offer.id.as_bytes();
    let order = order_of(offer, Deal::OnDemand, OrderId::from_bytes(id))?;
    sign(order, renter, PublicKey::from(broker), id, now)
}

/// The order of that id for one GPU of `offer`.
pub(crate) fn order_of(offer: &Offer, deal: Deal, id: OrderId) -> Outcome<Order> {
    Ok(Order {
        id,
        target: Target::Offer {
            offer: offer.id,
            terms: offer.terms_digest()?,
        },
        deal,
        gpus: 1,
        cpu_millicores: None,
        ram: None,
        // Not the id alone: a name that could be taken for one is refused.
        name: Text::new(format!("bench-{}", id.to_string().trim_start_matches("b-")))?,
        job: Job {
            image: PinnedImage {
                name: Text::new("127.0.0.1:5000/feira-demo")?,
                sha256: [7; 32],
            },
            entrypoint: None,
            command: None,
            environment: List::new(Vec::new())?,
        },
        disk: DISK,
        price_max: PricePerHour(10_000_000),
        budget: MicroUsd(5_000_000_000),
        duration_max: None,
        access: List::new(Vec::new())?,
    })
}

/// The id of the party that signs orders with this key.
pub(crate) fn renter_id(key: &SigningKey) -> RenterId {
    RenterId::from(public(key))
}

/// Signs what somebody says to `audience`, under an id that was not used before.
pub(crate) fn sign<T: Statement>(
    body: T,
    key: &SigningKey,
    audience: PublicKey,
    id: [u8; 16],
    now: Timestamp,
) -> Outcome<Verified<T>> {
    let message_id = MessageId::from_bytes(id);
    let envelope = Envelope {
        audience,
        message_id,
        issued: now,
        validity: VALIDITY,
    };
    Ok(Signed::sign(body, key, envelope)?)
}
