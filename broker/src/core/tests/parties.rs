//! Keys, offers and jobs that the tests' parties have.

use ed25519_dalek::SigningKey;
use protocol::bounded::{List, Text};
use protocol::ids::{BrokerId, HostId, PublicKey, RenterId};
use protocol::job::{Job, PinnedImage};
use protocol::machine::{ContainerNetwork, Machine};
use protocol::offer::{Offer, ResourceName, Share, offer_id};
use protocol::terms::{Limits, Prices};
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

/// What an offer asks and bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) prices: Prices,
    pub(crate) start_within: Seconds,
    pub(crate) duration_max: Option<Seconds>,
    pub(crate) disk_max: Bytes,
}

impl Default for Ask {
    /// The offer of the first example of the market rules.
    fn default() -> Self {
        Self {
            prices: Prices {
                compute: PricePerHour(400_000),
                storage: PricePerGbMonth(100_000),
                upload: PricePerGb(10_000),
                download: PricePerGb(0),
            },
            start_within: Seconds(600),
            duration_max: None,
            disk_max: Bytes::from_gb(500),
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

pub(crate) fn offer(host: u8, resource: &ResourceName, ask: &Ask, now: Timestamp) -> Offer {
    Offer {
        id: offer_id(host_id(host), std::slice::from_ref(resource)),
        sequence: now.0,
        listed_at: START,
        machine: machine(),
        share: Share {
            resources: List::first([resource.clone()]),
            gpus: List::default(),
            cpu_millicores: 4000,
            ram: Bytes::from_gb(16),
            shared_memory: Bytes::from_gb(1),
        },
        prices: ask.prices,
        limits: Limits {
            start_within: ask.start_within,
            duration_max: ask.duration_max,
            stop_grace: Seconds(10),
            disk_max: ask.disk_max,
        },
        brokers: List::first([broker_id()]),
    }
}

fn machine() -> Machine {
    Machine {
        cpu_model: Text::new("EPYC").unwrap(),
        architecture: Text::new("x86_64").unwrap(),
        cpu_cores: 4,
        has_avx: true,
        ram: Bytes::from_gb(16),
        disk_total: Bytes::from_gb(1000),
        disk_free: Bytes::from_gb(900),
        disk_enforced: false,
        system: Text::new("Debian GNU/Linux 12").unwrap(),
        kernel: Text::new("6.1.0").unwrap(),
        engine: Text::new("20.10.24").unwrap(),
        runtime: Text::new("runc 1.1.5").unwrap(),
        network: ContainerNetwork::Bridge,
        gpus: List::default(),
    }
}
