//! What the rules are tested with: a machine, keys, orders and goals that are signed as real ones are.

mod goals;
mod health;
mod kinds;
mod model;
mod moves;
mod notices;
mod portions;

use crate::core::award::Standing;
use crate::core::health::unheard;
use crate::core::leases::Leases;
use crate::core::meter::Moment;
use crate::core::offer::{Listed, Listing, offers, resources_of};
use crate::core::slices::Divisibles;
use crate::core::slices::policy::SlicePolicy;
use ed25519_dalek::SigningKey;
use gpu_health::health::Health;
use protocol::bounded::{List, Text};
use protocol::ids::{BootId, BrokerId, HostId, LeaseId, MessageId, OrderId, PublicKey, RenterId};
use protocol::job::{Job, PinnedImage};
use protocol::lease::{Award, Goal, LeaseGoal, Want};
use protocol::machine::{ContainerNetwork, Gpu, Machine, Vendor};
use protocol::offer::{Chunks, Offer, Part};
use protocol::order::{Order, Target};
use protocol::signed::{Envelope, Signed, Statement};
use protocol::terms::{ContractKind, Deal, Limits, Prices, Sales};
use protocol::units::{
    BasisPoints, Bytes, MicroUsd, Millis, PricePerGbMonth, PricePerHour, Seconds, Timestamp,
};
use std::collections::BTreeMap;

/// When the tests begin: an order signed now is valid for two minutes.
pub(crate) const START: u64 = 1_000_000_000;

pub(crate) fn at(seconds: u64) -> Moment {
    Moment {
        wall: Timestamp(START + seconds * 1000),
        monotonic: Millis(5_000 + seconds * 1000),
        boot: BootId::from_bytes([1; 16]),
    }
}

pub(crate) fn gpu(uuid: &str) -> Gpu {
    Gpu {
        model: Text::cut("NVIDIA Test"),
        uuid: Text::cut(uuid),
        vram: Bytes(24 << 30),
        driver: Text::cut("570.1"),
        cuda: (12, 8),
        compute_capability: (8, 9),
        pcie_generation: 4,
        pcie_width: 16,
        power_limit_mw: 450_000,
        ..Gpu::unknown(Vendor::Nvidia)
    }
}

pub(crate) fn machine(gpus: &[Gpu]) -> Machine {
    Machine {
        cpu_model: Text::cut("Test CPU"),
        architecture: Text::cut("x86_64"),
        cpu_cores: 8,
        has_avx: true,
        ram: Bytes(16 << 30),
        disk_total: Bytes::from_gb(1000),
        disk_free: Bytes::from_gb(500),
        disk_enforced: false,
        system: Text::cut("Test"),
        kernel: Text::cut("6.1"),
        engine: Text::cut("20.10"),
        runtime: Text::cut("runc 1.1.5"),
        network: ContainerNetwork::None,
        gpus: List::first(gpus.iter().cloned()),
        ..Machine::unknown()
    }
}

pub(crate) fn listing(machine: &Machine) -> Listing {
    Listing {
        resources: resources_of(machine),
        chunks: Chunks::Any,
        gpus_min: 1,
        sales: Sales {
            floor: Some(PricePerHour(100_000)),
            discount_max: Some(BasisPoints(4000)),
        },
        prices: Prices {
            compute: PricePerHour(350_000),
            storage: PricePerGbMonth(100_000),
            ..Prices::default()
        },
        limits: Limits {
            start_within: Seconds(600),
            duration_min: Seconds(60),
            duration_max: None,
            until: None,
            stop_grace: Seconds(10),
            notice: Seconds(120),
            disk_max: Bytes::from_gb(100),
        },
        network: ContainerNetwork::None,
        cpu_millicores: 8_000,
        ram: Bytes(16 << 30),
        listed_at: Timestamp(START),
        slices: SlicePolicy::default(),
    }
}

/// A host with two GPUs, two brokers and a renter.
pub(crate) struct World {
    pub(crate) host: HostId,
    pub(crate) brokers: [SigningKey; 2],
    pub(crate) renter: SigningKey,
    pub(crate) offers: Vec<Listed>,
    pub(crate) disk_left: BTreeMap<LeaseId, Bytes>,
    pub(crate) health: Health,
}

pub(crate) fn public(key: &SigningKey) -> PublicKey {
    PublicKey::from_bytes(key.verifying_key().to_bytes())
}

fn sign<T: Statement>(key: &SigningKey, audience: PublicKey, number: u8, body: T) -> Signed<T> {
    let envelope = Envelope {
        audience,
        message_id: MessageId::from_bytes([number; 16]),
        issued: Timestamp(START),
        validity: Seconds(120),
    };
    Signed::sign(body, key, envelope).unwrap().signed().clone()
}

impl World {
    pub(crate) fn new() -> Self {
        let key = |byte: u8| SigningKey::from_bytes(&[byte; 32]);
        let machine = machine(&[gpu("GPU-a"), gpu("GPU-b")]);
        let host = HostId::from(public(&key(9)));
        Self {
            host,
            brokers: [key(1), key(2)],
            renter: key(3),
            offers: offers(host, &machine, &Divisibles::new(), &listing(&machine), &[]).unwrap(),
            disk_left: BTreeMap::new(),
            health: unheard(),
        }
    }

    pub(crate) fn empty(&self) -> Leases {
        Leases::recovered(self.host, [], [])
    }

    pub(crate) fn broker(&self, broker: usize) -> BrokerId {
        BrokerId::from(public(&self.brokers[broker]))
    }

    pub(crate) fn standing(&self) -> Standing<'_> {
        Standing {
            offers: &self.offers,
            engine: Ok(()),
            disk_free: Bytes::from_gb(400),
            disk_left: &self.disk_left,
            health: &self.health,
            draining: false,
        }
    }

    /// The one offer of the world.
    pub(crate) fn offer(&self) -> &Offer {
        &self.offers[0].offer
    }

    /// An order of one GPU of it.
    pub(crate) fn order(&self, number: u8) -> Order {
        let listed = &self.offers[0];
        Order {
            id: OrderId::from_bytes([number; 16]),
            target: Target::Offer {
                offer: listed.offer.id,
                terms: listed.terms,
            },
            deal: Deal::OnDemand,
            gpus: 1,
            cpu_millicores: None,
            ram: None,
            name: Text::cut("test-lease"),
            job: Job {
                image: PinnedImage {
                    name: Text::cut("127.0.0.1:5000/demo"),
                    sha256: [7; 32],
                },
                entrypoint: None,
                command: None,
                environment: List::default(),
            },
            disk: Bytes::from_gb(10),
            price_max: PricePerHour(1_000_000),
            budget: MicroUsd(5_000_000),
            duration_max: None,
            access: List::default(),
        }
    }

    /// The part of the offer that these GPUs are.
    pub(crate) fn part(&self, gpus: &[usize]) -> Part {
        let offer = self.offer();
        let count = u16::try_from(gpus.len()).unwrap();
        let (cpu_millicores, ram, shared_memory, _) = offer.proportion(count);
        let names = gpus.iter().map(|gpu| offer.share.resources[*gpu].clone());
        Part {
            resources: List::first(names),
            cpu_millicores,
            ram,
            shared_memory,
        }
    }

    /// The goal for order `number` of one GPU by `broker`, after `change` of order and award.
    pub(crate) fn changed_goal(
        &self,
        broker: usize,
        number: u8,
        gpu: usize,
        change: impl FnOnce(&mut Order, &mut Award),
    ) -> LeaseGoal {
        let mut order = self.order(number);
        let broker_id = self.broker(broker);
        let renter = RenterId::from(public(&self.renter));
        let listed = &self.offers[0];
        let mut award = Award {
            lease: LeaseId::of_order(broker_id, renter, order.id),
            order: protocol::ids::Digest::of(b""),
            offer: (listed.offer.id, listed.terms),
            kind: ContractKind::OnDemand,
            part: self.part(&[gpu]),
            renter,
            host: self.host,
            prices: listed.offer.prices.of_gpus(1),
            fee: BasisPoints(300),
            number: u64::from(number),
            matched_at: Timestamp(START),
        };
        change(&mut order, &mut award);
        let order = sign(&self.renter, broker_id.into(), number, order);
        award.order = order.digest();
        let lease = award.lease;
        let award = sign(&self.brokers[broker], self.host.into(), number, award);
        LeaseGoal {
            lease,
            order,
            award,
            want: Want::Run(1),
        }
    }

    pub(crate) fn lease_goal(
        &self,
        broker: usize,
        number: u8,
        gpu: usize,
        want: Want,
    ) -> LeaseGoal {
        LeaseGoal {
            want,
            ..self.changed_goal(broker, number, gpu, |_, _| ())
        }
    }
}

pub(crate) fn goal(sequence: u64, leases: Vec<LeaseGoal>) -> Goal {
    Goal {
        sequence,
        started_at: Timestamp(START),
        leases: List::new(leases).unwrap(),
    }
}
