//! What an offer has in each field, worked out once for all searches.
//!
//! Must not depend on any other offer, or on what is asked.

use super::field::Field;
use super::model::ModelName;
use super::numbers::{are_linked, numbers};
use super::profile::WHOLE;
use super::value::{architecture, leading_version};
use crate::ids::{HostId, OfferId};
use crate::machine::{ContainerNetwork, Gpu};
use crate::offer::{Isolation, Offer, Partition};
use crate::terms::{Need, Prices};
use crate::units::{MicroUsd, Timestamp};
use crate::verify::VerificationLevel;
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
    vendor: &'static str,
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
    isolation: &'static str,
    verification: &'static str,
    ecc: Option<bool>,
    is_linked: bool,
    has_display: bool,
    /// The kind of slice, or that it is none.
    partition: String,
    /// Words of names, each with a space on both sides of it.
    cpu: String,
    os: String,
    runtime: String,
    instructions: String,
    mainboard: String,
    disk: String,
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
        let model = gpu.map_or_else(ModelName::none, |gpu| {
            ModelName::reported(&gpu.model, gpu.vram)
        });
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
            vendor: gpu.map_or("none", |gpu| gpu.vendor.word()),
            numbers: numbers(offer, gpus, &model),
            gpu: model,
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
            isolation: isolation(offer.partition.as_ref()),
            verification: UNVERIFIED,
            // What one of them has not, is not promised.
            ecc: share.gpus.iter().map(|gpu| gpu.ecc).min().flatten(),
            is_linked: are_linked(offer, gpus),
            has_display: share.gpus.iter().any(|gpu| gpu.has_display),
            partition: offer.partition.as_ref().map_or_else(
                || WHOLE.to_owned(),
                |slice| slice.profile.to_ascii_lowercase(),
            ),
            cpu: spaced(&machine.cpu_model),
            os: spaced(&machine.system),
            runtime: spaced(&machine.runtime),
            instructions: gpu.map_or_else(String::new, |gpu| spaced(&instructions(gpu))),
            mainboard: spaced(&machine.mainboard),
            disk: spaced(&machine.disk_model),
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

    /// The facts of an offer whose hardware is proved so far; not at all unless it is said.
    #[must_use]
    pub const fn with_verification(mut self, level: &VerificationLevel) -> Self {
        self.set_verification(level);
        self
    }

    /// Says how far the hardware is proved now.
    pub const fn set_verification(&mut self, level: &VerificationLevel) {
        self.verification = match level {
            VerificationLevel::Unverified => UNVERIFIED,
            VerificationLevel::Verified { .. } => VERIFIED,
            VerificationLevel::Withdrawn { .. } => "deverified",
        };
    }

    /// Whether it is a slice of a GPU.
    #[must_use]
    pub fn is_slice(&self) -> bool {
        self.partition != WHOLE
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
    #[expect(
        clippy::too_many_lines,
        reason = "an arm for each field: the compiler sees that none is left out"
    )]
    pub fn fact(&self, field: Field, need: Need) -> Fact<'_> {
        let version = |known: Option<[u32; 4]>| known.map_or(Fact::Unknown, Fact::Version);
        match field {
            Field::GpuName => Fact::Model(self.gpu.base()),
            Field::GpuArch => Fact::Choice(self.vendor),
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
            Field::Isolation => Fact::Choice(self.isolation),
            Field::Verification => Fact::Choice(self.verification),
            Field::Verified => Fact::Flag(self.verification == VERIFIED),
            Field::Ecc => self.ecc.map_or(Fact::Unknown, Fact::Flag),
            Field::Linked => Fact::Flag(self.is_linked),
            Field::DisplayActive => Fact::Flag(self.has_display),
            Field::Partition => Fact::Words(&self.partition),
            Field::CpuName => Fact::Words(&self.cpu),
            Field::Os => Fact::Words(&self.os),
            Field::Runtime => Fact::Words(&self.runtime),
            Field::Instructions => words(&self.instructions),
            Field::Mainboard => words(&self.mainboard),
            Field::DiskName => words(&self.disk),
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
            | Field::Reliability
            | Field::CpuGhz
            | Field::NumaNodes
            | Field::LinkBandwidth
            | Field::TotalFlops
            | Field::TotalFlopsHalf
            | Field::GpuMemoryBandwidth
            | Field::PcieBandwidth
            | Field::DiskBandwidth
            | Field::UploadSpeed
            | Field::DownloadSpeed
            | Field::TotalFlopsDouble
            | Field::GpuMaxTemperature
            | Field::Score
            | Field::ScorePerDollar
            | Field::FlopsPerDollar => self
                .numbers
                .get(field as usize)
                .copied()
                .flatten()
                .map_or(Fact::Unknown, Fact::Number),
        }
    }
}

const UNVERIFIED: &str = "unverified";
const VERIFIED: &str = "verified";

/// What an instruction set is called: AMD's `gfx942`, CUDA's `sm_90` by its capability.
fn instructions(gpu: &Gpu) -> String {
    match gpu.compute_capability {
        (0, 0) => gpu.architecture.to_string(),
        (major, minor) => format!("sm_{major}{minor}"),
    }
}

const fn isolation(partition: Option<&Partition>) -> &'static str {
    match partition {
        None => "whole",
        Some(slice) => match slice.isolation {
            Isolation::Hardware => "hardware",
            Isolation::Shared => "shared",
        },
    }
}

/// Words, if there are any.
fn words(words: &str) -> Fact<'_> {
    if words.trim().is_empty() {
        Fact::Unknown
    } else {
        Fact::Words(words)
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
