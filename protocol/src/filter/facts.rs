//! What an offer has in each field, worked out once for all searches.
//!
//! Must not depend on any other offer, or on what is asked.

use super::field::Field;
use super::model::{ModelName, gigabytes_as_sold};
use super::value::{architecture, leading_version};
use crate::ids::{HostId, OfferId};
use crate::machine::{ContainerNetwork, Gpu, Machine};
use crate::offer::Offer;
use crate::reliability::Score;
use crate::terms::{Need, Prices};
use crate::units::{Bytes, MicroUsd, Timestamp};
use std::cmp::Reverse;

/// What an offer has in every field, worked out once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    id: OfferId,
    host: HostId,
    gpus: u16,
    listed_at: Timestamp,
    prices: Prices,
    gpu: ModelName,
    gpu_maker: &'static str,
    /// Base units of the numeric fields, by field.
    numbers: Vec<Option<i64>>,
    cuda: Option<[u32; 4]>,
    driver: Option<[u32; 4]>,
    capability: Option<[u32; 4]>,
    ubuntu: Option<[u32; 4]>,
    kernel: Option<[u32; 4]>,
    engine: Option<[u32; 4]>,
    has_avx: bool,
    disk_enforced: bool,
    architecture: &'static str,
    network: &'static str,
    /// Words of names, each with a space on both sides of it.
    cpu: String,
    os: String,
    runtime: String,
}

/// Price, reliability, age, id, size: what offers are ranked by.
pub type Rank = (MicroUsd, Reverse<u32>, Timestamp, OfferId, u16);

/// What an offer has in one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact<'a> {
    /// A number of base units.
    Number(i64),
    /// A version.
    Version([u32; 4]),
    /// Yes or no.
    Flag(bool),
    /// One of the words of the field.
    Choice(&'static str),
    /// Words, each with a space on both sides of it.
    Words(&'a str),
    /// A GPU's model, as names are ordered: see [`Facts::model`].
    Model(&'a str),
    /// The bytes of an id.
    Id(&'a [u8]),
    /// Last, so that it sorts behind everything that is known.
    Unknown,
}

impl Facts {
    /// The facts of `gpus` GPUs of `host`'s `offer`; 0 for a machine without one.
    #[must_use]
    pub fn of(host: HostId, offer: &Offer, gpus: u16) -> Self {
        let Offer { machine, share, .. } = offer;
        // GPUs of one offer may differ; what an offer has is what every one of them has.
        let weakest = |key: fn(&Gpu) -> [u32; 4]| {
            share
                .gpus
                .iter()
                .map(key)
                .min()
                .filter(|version| *version != [0; 4])
        };
        let gpu = share.gpus.first();
        let is_ubuntu = machine.system.to_ascii_lowercase().starts_with("ubuntu");
        let after_name = machine
            .system
            .trim_start_matches(|c: char| !c.is_ascii_digit());
        Self {
            id: offer.id,
            host,
            listed_at: offer.listed_at,
            gpus,
            prices: offer.prices.of_gpus(gpus),
            gpu: gpu.map_or_else(ModelName::none, |gpu| {
                ModelName::reported(&gpu.model, gpu.vram)
            }),
            gpu_maker: gpu.map_or("none", |gpu| maker(&gpu.model)),
            numbers: numbers(offer, gpus),
            cuda: weakest(|gpu| [gpu.cuda.0.into(), gpu.cuda.1.into(), 0, 0]),
            driver: share
                .gpus
                .iter()
                .filter_map(|gpu| leading_version(&gpu.driver))
                .min(),
            capability: weakest(|gpu| {
                [
                    gpu.compute_capability.0.into(),
                    gpu.compute_capability.1.into(),
                    0,
                    0,
                ]
            }),
            ubuntu: if is_ubuntu {
                leading_version(after_name)
            } else {
                None
            },
            kernel: leading_version(&machine.kernel),
            engine: leading_version(&machine.engine),
            has_avx: machine.has_avx,
            disk_enforced: machine.disk_enforced,
            architecture: architecture(&machine.architecture),
            network: network(machine.network),
            cpu: spaced(&machine.cpu_model),
            os: spaced(&machine.system),
            runtime: spaced(&machine.runtime),
        }
    }

    /// What model its GPUs are.
    #[must_use]
    pub const fn model(&self) -> &ModelName {
        &self.gpu
    }

    /// Whether an id with this beginning is the offer's or its host's.
    pub(super) fn is_called(&self, beginning: &str) -> bool {
        self.id.begins_with(beginning) || self.host.begins_with(beginning)
    }

    /// The offer's id.
    #[must_use]
    pub const fn id(&self) -> OfferId {
        self.id
    }

    /// How many GPUs of the offer; 0 for a machine without one.
    #[must_use]
    pub const fn gpus(&self) -> u16 {
        self.gpus
    }

    /// What an hour costs all in, with `need`.
    #[must_use]
    pub fn price(&self, need: Need) -> MicroUsd {
        self.prices.all_in_hour(need)
    }

    /// The facts of an offer whose host has that reliability, in millionths; that of an unknown host unless
    /// it is said.
    #[must_use]
    pub fn with_reliability(mut self, millionths: u32) -> Self {
        self.set_reliability(millionths);
        self
    }

    /// Says what the reliability of its host is now, in millionths.
    pub fn set_reliability(&mut self, millionths: u32) {
        if let Some(place) = self.numbers.get_mut(Field::Reliability as usize) {
            *place = Some(millionths.into());
        }
    }

    /// The reliability of its host, in millionths.
    #[must_use]
    pub fn reliability(&self) -> u32 {
        let number = self.numbers.get(Field::Reliability as usize);
        let number = number.copied().flatten().unwrap_or(0);
        u32::try_from(number).unwrap_or(0)
    }

    /// What offers are ranked by where nothing else is asked: price, then reliability, then age, then id, then
    /// size.
    #[must_use]
    pub fn rank(&self, need: Need) -> Rank {
        let reliability = Reverse(self.reliability());
        (
            self.price(need),
            reliability,
            self.listed_at,
            self.id,
            self.gpus,
        )
    }

    /// What the offer has in one field, priced with `need`.
    #[must_use]
    pub fn fact(&self, field: Field, need: Need) -> Fact<'_> {
        let version = |known: Option<[u32; 4]>| known.map_or(Fact::Unknown, Fact::Version);
        match field {
            Field::GpuName => Fact::Model(self.gpu.base()),
            Field::GpuArch => Fact::Choice(self.gpu_maker),
            Field::ComputeCap => version(self.capability),
            Field::CudaVersion => version(self.cuda),
            Field::DriverVersion => version(self.driver),
            Field::UbuntuVersion => version(self.ubuntu),
            Field::Kernel => version(self.kernel),
            Field::Engine => version(self.engine),
            Field::DphTotal => Fact::Number(self.price(need).0),
            Field::DiskEnforced => Fact::Flag(self.disk_enforced),
            Field::HasAvx => Fact::Flag(self.has_avx),
            Field::Rentable => Fact::Flag(true),
            Field::Rented => Fact::Flag(false),
            Field::CpuArch => Fact::Choice(self.architecture),
            Field::Network => Fact::Choice(self.network),
            Field::CpuName => Fact::Words(&self.cpu),
            Field::Os => Fact::Words(&self.os),
            Field::Runtime => Fact::Words(&self.runtime),
            Field::Id => Fact::Id(self.id.as_bytes()),
            Field::HostId => Fact::Id(self.host.as_bytes()),
            Field::NumGpus
            | Field::GpuRam
            | Field::GpuTotalRam
            | Field::GpuFrac
            | Field::GpuMaxPower
            | Field::PciGeneration
            | Field::PciLanes
            | Field::DphBase
            | Field::StorageCost
            | Field::UploadCost
            | Field::DownloadCost
            | Field::DiskSpace
            | Field::CpuCores
            | Field::CpuCoresEffective
            | Field::CpuRam
            | Field::SharedMemory
            | Field::Duration
            | Field::StartWithin
            | Field::MinBid
            | Field::DiscountMax
            | Field::DurationMin
            | Field::EndDate
            | Field::Notice
            | Field::Reliability => self
                .numbers
                .get(field as usize)
                .copied()
                .flatten()
                .map_or(Fact::Unknown, Fact::Number),
        }
    }
}

/// The numeric facts, each at its field's place.
fn numbers(offer: &Offer, gpus: u16) -> Vec<Option<i64>> {
    let Offer {
        machine,
        share,
        prices,
        sales,
        limits,
        ..
    } = offer;
    let whole = prices.of_gpus(gpus);
    let (cpu_millicores, ram, shared_memory, disk_max) = offer.proportion(gpus);
    let size = |bytes: Bytes| Some(i64::try_from(bytes.0).unwrap_or(i64::MAX));
    let price = |amount: MicroUsd| Some(amount.0);
    let known = |number: u64| i64::try_from(number).ok().filter(|number| *number > 0);
    let weakest = |key: fn(&Gpu) -> u64| known(share.gpus.iter().map(key).min().unwrap_or(0));
    let sold = |gpu: &Gpu| i64::try_from(gigabytes_as_sold(gpu.vram)).unwrap_or(i64::MAX);
    let each = share.gpus.iter().map(sold).min().unwrap_or(0);
    let values = [
        (Field::NumGpus, Some(gpus.into())),
        (Field::GpuRam, Some(each)),
        (Field::GpuTotalRam, Some(each.saturating_mul(gpus.into()))),
        (Field::GpuFrac, Some(fraction(gpus, machine))),
        (Field::GpuMaxPower, weakest(|gpu| gpu.power_limit_mw.into())),
        (
            Field::PciGeneration,
            weakest(|gpu| gpu.pcie_generation.into()),
        ),
        (Field::PciLanes, weakest(|gpu| gpu.pcie_width.into())),
        (Field::DphBase, price(whole.compute.amount())),
        (Field::StorageCost, price(prices.storage.amount())),
        (Field::UploadCost, price(prices.upload.amount())),
        (Field::DownloadCost, price(prices.download.amount())),
        (Field::DiskSpace, size(disk_max)),
        (Field::CpuCores, Some(machine.cpu_cores.into())),
        (Field::CpuCoresEffective, Some(cpu_millicores.into())),
        (Field::CpuRam, size(ram)),
        (Field::SharedMemory, size(shared_memory)),
        // No limit is longer than every limit.
        (
            Field::Duration,
            size(Bytes(limits.duration_max.map_or(u64::MAX, |most| most.0))),
        ),
        (Field::StartWithin, size(Bytes(limits.start_within.0))),
        (
            Field::MinBid,
            sales.floor.and_then(|floor| price(floor.amount())),
        ),
        (
            Field::DiscountMax,
            sales.discount_max.map(|most| i64::from(most.0) * 100),
        ),
        (Field::DurationMin, size(Bytes(limits.duration_min.0))),
        (
            Field::EndDate,
            size(Bytes(limits.until.map_or(u64::MAX, |until| until.0 / 1000))),
        ),
        (Field::Notice, size(Bytes(limits.notice.0))),
        (Field::Reliability, Some(Score::unknown().ppm.into())),
    ];
    let mut numbers = vec![None; super::fields().len()];
    for (field, value) in values {
        if let Some(place) = numbers.get_mut(field as usize) {
            *place = value;
        }
    }
    numbers
}

/// Millionths of the machine's GPUs that are in it, rounded down.
fn fraction(gpus: u16, machine: &Machine) -> i64 {
    let (part, whole) = (usize::from(gpus), machine.gpus.len());
    let millionths = (part * 1_000_000).checked_div(whole).unwrap_or(0);
    i64::try_from(millionths).unwrap_or(0)
}

fn maker(model: &str) -> &'static str {
    let lower = model.to_ascii_lowercase();
    let is_of = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if is_of(&["amd", "radeon", "instinct"]) {
        "amd"
    } else if is_of(&["intel", "gaudi"]) {
        "intel"
    } else {
        "nvidia"
    }
}

const fn network(network: ContainerNetwork) -> &'static str {
    match network {
        ContainerNetwork::None => "none",
        ContainerNetwork::Bridge => "bridge",
    }
}

/// The words of a text in lower case, one space before and after each.
pub(super) fn spaced(text: &str) -> String {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    format!(" {} ", words.join(" "))
}
