//! The parties of a scenario: keys from their names, what they sign, and what a host's machine does.
//!
//! Must not know the market's state but what a party would be told.

use super::scenario::{Host, SliceSale};
use super::slices::{self, Part, Sold};
use ed25519_dalek::SigningKey;
use protocol::bounded::{List, Text};
use protocol::catalogue::sheet_of;
use protocol::codec::CodecError;
use protocol::filter::ModelName;
use protocol::ids::{BootId, BrokerId, Digest, HostId, LeaseId, MessageId, PublicKey, RenterId};
use protocol::job::{Job, PinnedImage};
use protocol::lease::{ContainerState, Meters, Report};
use protocol::machine::{ContainerNetwork, GPUS_MAX, Gpu, Machine, Vendor};
use protocol::offer::{Chunks, Offer, ResourceName, Share, WHOLE_MACHINE, offer_id};
use protocol::signed::{Envelope, Signed, Statement, VALIDITY_MAX, Verified};
use protocol::terms::{Limits, Prices, Sales};
use protocol::units::{
    BasisPoints, Bytes, Millis, PricePerGb, PricePerGbMonth, PricePerHour, Seconds, Timestamp,
};
use std::collections::BTreeMap;

/// Signs statements of one party after the other, each with an id that was never used.
#[derive(Debug)]
pub(super) struct Signer {
    broker: BrokerId,
    messages: u64,
}

impl Signer {
    pub(super) const fn new(broker: BrokerId) -> Self {
        Self {
            broker,
            messages: 0,
        }
    }

    /// What `key`'s owner signs at `now`.
    pub(super) fn sign<T: Statement>(
        &mut self,
        body: T,
        key: &SigningKey,
        now: Timestamp,
    ) -> Result<Verified<T>, CodecError> {
        self.messages += 1;
        let envelope = Envelope {
            audience: self.broker.into(),
            message_id: MessageId::from_bytes(bytes_of(self.messages)),
            issued: now,
            validity: VALIDITY_MAX,
        };
        Signed::sign(body, key, envelope)
    }
}

/// A number as sixteen bytes.
pub(super) fn bytes_of(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    let (low, _) = bytes.split_at_mut(8);
    low.copy_from_slice(&number.to_le_bytes());
    bytes
}

/// The key of whoever has that name in the scenario.
pub(super) fn key_of(part: &str, name: &str) -> SigningKey {
    let digest = Digest::of(format!("feira scenario {part} {name}").as_bytes());
    SigningKey::from_bytes(digest.as_bytes())
}

/// The public half.
pub(super) fn public(key: &SigningKey) -> PublicKey {
    PublicKey::from_bytes(key.verifying_key().to_bytes())
}

/// A renter.
#[derive(Debug)]
pub(super) struct Renter {
    pub(super) key: SigningKey,
    pub(super) id: RenterId,
}

impl Renter {
    pub(super) fn named(name: &str) -> Self {
        let key = key_of("renter", name);
        let id = public(&key).into();
        Self { key, id }
    }
}

/// A host and its machine.
#[derive(Debug)]
pub(super) struct HostActor {
    pub(super) key: SigningKey,
    pub(super) id: HostId,
    pub(super) spec: Host,
    /// Not heard until then.
    pub(super) offline_until: Option<Timestamp>,
    /// It took its offers back.
    pub(super) withdrawn: bool,
    pub(super) containers: BTreeMap<LeaseId, Container>,
    sequence: u64,
    epoch: u64,
}

/// A lease's container.
#[derive(Debug, Default)]
pub(super) struct Container {
    pub(super) run: u32,
    pub(super) state: Stands,
    /// How long it ran before its present run.
    before: Millis,
    pub(super) uploaded: Bytes,
    pub(super) downloaded: Bytes,
    pub(super) granted: bool,
}

/// Where a container stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Stands {
    /// There is none yet.
    #[default]
    None,
    /// It is prepared until then.
    Preparing(Timestamp),
    /// It runs since then.
    Running(Timestamp),
    /// It does not run.
    Stopped,
}

impl Container {
    /// What its meters read.
    pub(super) fn meters(&self, now: Timestamp) -> Meters {
        let running = match self.state {
            Stands::Running(since) => self.before.plus(now.since(since)),
            Stands::None | Stands::Preparing(_) | Stands::Stopped => self.before,
        };
        Meters {
            running,
            uploaded: self.uploaded,
            downloaded: self.downloaded,
        }
    }

    /// Stops it.
    pub(super) fn stop(&mut self, now: Timestamp) {
        self.before = self.meters(now).running;
        self.state = Stands::Stopped;
    }
}

impl HostActor {
    pub(super) fn new(spec: Host) -> Self {
        let key = key_of("host", &spec.id);
        let id = public(&key).into();
        Self {
            key,
            id,
            spec,
            offline_until: None,
            withdrawn: false,
            containers: BTreeMap::new(),
            sequence: 0,
            epoch: 0,
        }
    }

    pub(super) fn is_offline(&self, now: Timestamp) -> bool {
        self.offline_until.is_some_and(|until| now < until)
    }

    /// A new epoch of its resources.
    pub(super) const fn next_epoch(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    /// What it says of a lease.
    pub(super) fn report(
        &mut self,
        lease: LeaseId,
        state: ContainerState,
        now: Timestamp,
    ) -> Report {
        self.sequence += 1;
        let container = self.containers.entry(lease).or_default();
        Report {
            lease,
            sequence: self.sequence,
            boot: BootId::from_bytes([1; 16]),
            run: container.run,
            state,
            meters: container.meters(now),
        }
    }

    /// All that it offers, one offer for each model of GPU, or its machine.
    pub(super) fn offers(
        &self,
        broker: BrokerId,
        listed_at: Timestamp,
        now: Timestamp,
        notice: Seconds,
    ) -> Vec<Offer> {
        if self.withdrawn {
            return Vec::new();
        }
        let machine = self.machine();
        let (shares, slices) = self.shares(&machine);
        let offer = |share: Share| Offer {
            id: offer_id(self.id, &share.resources),
            sequence: now.0,
            listed_at,
            machine: machine.clone(),
            share,
            chunks: Chunks::Any,
            gpus_min: 0,
            partition: None,
            measures: List::default(),
            prices: Prices {
                compute: PricePerHour(self.spec.ask_uh),
                storage: PricePerGbMonth(self.spec.disk_ugbmo),
                upload: PricePerGb(self.spec.up_ugb),
                download: PricePerGb(self.spec.down_ugb),
            },
            sales: Sales {
                floor: self.spec.floor_uh.map(PricePerHour),
                discount_max: self.spec.max_discount_bps.map(BasisPoints),
            },
            limits: Limits {
                start_within: Seconds(self.spec.prepare_s.saturating_add(600)),
                duration_min: Seconds(0),
                duration_max: None,
                until: None,
                stop_grace: Seconds(10),
                notice,
                disk_max: Bytes::from_gb(self.spec.disk_gb),
            },
            brokers: List::first([broker]),
        };
        let wholes = shares.into_iter().map(offer);
        let slices = slices
            .into_iter()
            .map(|(sale, (partition, share, disk_max))| {
                let mut offer = offer(share);
                offer.partition = Some(partition);
                offer.prices.compute = PricePerHour(sale.ask_uh);
                offer.sales.floor = sale.floor_uh.map(PricePerHour);
                offer.limits.disk_max = disk_max;
                offer
            });
        wholes.chain(slices).collect()
    }

    /// What it sells: shares of whole GPUs, one for each model, or its machine; and each kind of slice.
    fn shares(&self, machine: &Machine) -> (Vec<Share>, Vec<(&SliceSale, Sold)>) {
        let mut shares: Vec<Share> = Vec::new();
        let mut slices = Vec::new();
        let all = u64::try_from(machine.gpus.len()).unwrap_or(0);
        for group in &self.spec.gpus {
            let is_of = |gpu: &&Gpu| gpu.model.as_str() == model_of(&group.model).as_str();
            let gpus: Vec<Gpu> = machine.gpus.iter().filter(is_of).cloned().collect();
            let part = u64::from(group.count);
            let names = gpus.iter().map(|gpu| ResourceName::cut(&gpu.uuid));
            shares.push(share(
                List::first(names),
                List::first(gpus.iter().cloned()),
                &self.spec,
                (part, all.max(1)),
            ));
            let whole = Part {
                cpu_millicores: u64::from(self.spec.cpu_cores) * 1000 / all.max(1),
                ram: Bytes(Bytes::from_gb(self.spec.ram_gb).0 / all.max(1)),
                disk: Bytes(Bytes::from_gb(self.spec.disk_gb).0 / all.max(1)),
            };
            let sold = group.slices.iter();
            slices.extend(
                sold.filter_map(|sale| Some((sale, slices::share(group, sale, &gpus, whole)?))),
            );
        }
        if shares.is_empty() {
            let whole = List::first([ResourceName::cut(WHOLE_MACHINE)]);
            shares.push(share(whole, List::default(), &self.spec, (1, 1)));
        }
        (shares, slices)
    }

    fn machine(&self) -> Machine {
        let mut gpus = Vec::new();
        for group in &self.spec.gpus {
            for index in 0..group.count {
                // The name of a slice has its GPU's in it, and no spaces.
                let name = if group.slices.is_empty() {
                    group.model.clone()
                } else {
                    group
                        .model
                        .replace(|c: char| !c.is_ascii_alphanumeric(), "-")
                };
                gpus.push(gpu(&group.model, &format!("{name}-{index:02}")));
            }
        }
        Machine {
            cpu_model: Text::cut("simulated"),
            architecture: Text::cut("x86_64"),
            cpu_cores: self.spec.cpu_cores,
            has_avx: true,
            ram: Bytes::from_gb(self.spec.ram_gb),
            disk_total: Bytes::from_gb(self.spec.disk_gb),
            disk_free: Bytes::from_gb(self.spec.disk_gb),
            disk_enforced: true,
            system: Text::cut("simulated"),
            kernel: Text::cut("6.1.0"),
            engine: Text::cut("20.10.24"),
            runtime: Text::cut("runc 1.1.5"),
            network: ContainerNetwork::Bridge,
            gpus: List::<_, GPUS_MAX>::first(gpus),
            ..Machine::unknown()
        }
    }
}

/// The part of a machine that goes with its resources: in proportion to its GPUs.
fn share(
    resources: List<ResourceName, GPUS_MAX>,
    gpus: List<Gpu, GPUS_MAX>,
    spec: &Host,
    (part, all): (u64, u64),
) -> Share {
    let ram = Bytes::from_gb(spec.ram_gb).0 / all * part;
    Share {
        resources: List::first(resources.into_vec()),
        gpus,
        cpu_millicores: u32::try_from(u64::from(spec.cpu_cores) * 1000 / all * part)
            .unwrap_or(u32::MAX),
        ram: Bytes(ram),
        shared_memory: Bytes(ram / 8),
    }
}

/// A model as a driver reports it.
pub(super) fn model_of(model: &str) -> String {
    let has_maker = model.to_ascii_lowercase().starts_with("nvidia");
    if has_maker {
        model.to_owned()
    } else {
        format!("NVIDIA {model}")
    }
}

/// What its data sheet says, where it has one.
pub(super) fn gpu(model: &str, name: &str) -> Gpu {
    let sheet = sheet_of(&ModelName::asked(model), Bytes(0));
    let (pcie_generation, pcie_width) = sheet.map_or((4, 16), |sheet| sheet.pcie);
    Gpu {
        model: Text::cut(&model_of(model)),
        uuid: Text::cut(&format!("GPU-{name}")),
        vram: sheet.map_or(Bytes(24 << 30), |sheet| sheet.vram),
        driver: Text::cut("570.124.06"),
        cuda: (12, 8),
        compute_capability: sheet.map_or((8, 9), |sheet| sheet.capability.unwrap_or_default()),
        pcie_generation,
        pcie_width,
        power_limit_mw: 450_000,
        ..Gpu::unknown(sheet.map_or(Vendor::Nvidia, |sheet| sheet.vendor))
    }
}

/// What every lease of a scenario runs.
pub(super) fn job() -> Job {
    Job {
        image: PinnedImage {
            name: Text::cut("simulated"),
            sha256: [0; 32],
        },
        entrypoint: None,
        command: None,
        environment: List::default(),
    }
}
