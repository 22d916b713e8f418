//! What a host offers: a share of its machine at its prices, signed by the host and by nobody else.

use crate::bounded::{List, Text};
use crate::codec::{self, CodecError};
use crate::ids::{BrokerId, Digest, HostId, OfferId};
use crate::machine::{GPUS_MAX, Gpu, MEASURES_MAX, Machine, Measure, Quantity};
use crate::signed::Statement;
use crate::terms::{Limits, Prices, Sales};
use crate::units::{Bytes, Timestamp};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Most offers of one host.
pub const OFFERS_MAX: usize = 32;
/// Most resources of one offer: 7 places for a slice on each of 16 GPUs, and some to spare.
pub const RESOURCES_MAX: usize = 128;
/// Most brokers that one offer may be shown by.
pub const BROKERS_MAX: usize = 16;

/// A thing that one lease holds alone: a GPU's UUID, a slice of one (`GPU-…/3g.40gb@4+4`), or `machine` for a
/// machine without a GPU. [`mig::name::excludes`] says which of them cannot be held beside each other.
pub type ResourceName = Text<64>;

/// The resource of a machine that is leased as a whole.
pub const WHOLE_MACHINE: &str = "machine";

/// In which portions the GPUs of an offer are sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Chunks {
    /// Any number.
    Any,
    /// 1, 2, 4, 8, 16, and all of them.
    PowersOfTwo,
    /// All of them together, or nothing.
    Whole,
}

/// The name of a kind of slice, like `3g.40gb`.
pub type ProfileName = Text<32>;

/// Which slice of a GPU each of an offer's resources is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Its profile, in the vendor's own words, like `3g.40gb`.
    pub profile: ProfileName,
    /// Memory of one slice.
    pub vram: Bytes,
    /// Multiprocessors of one slice, and of the whole GPU.
    pub multiprocessors: (u16, u16),
    /// Memory slices of one slice, and of the whole GPU.
    pub memory_slices: (u8, u8),
    /// What keeps it apart from its neighbours.
    pub isolation: Isolation,
}

/// What keeps the slices of one GPU apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Isolation {
    /// The hardware divides memory and multiprocessors (MIG, compute partitions).
    Hardware,
    /// Nothing but the driver: one fault can end all (MPS, time slicing). Only for one renter beside itself.
    Shared,
}

/// The part of an offer's share that one lease has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What it holds alone, in the order of the offer.
    pub resources: List<ResourceName, GPUS_MAX>,
    /// CPU time in thousandths of a core.
    pub cpu_millicores: u32,
    /// RAM.
    pub ram: Bytes,
    /// Shared memory (`/dev/shm`).
    pub shared_memory: Bytes,
}

/// A share of a machine: all that an offer sells, or all that a lease has of it. An offer of slices sells them one
/// by one, and all but `resources` and `gpus` is what one of them has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// What a lease holds alone, in order, without repeats; never empty.
    pub resources: List<ResourceName, RESOURCES_MAX>,
    /// The GPUs that they are, or are slices of, in the order of their names, all of one model; empty on a CPU
    /// machine.
    pub gpus: List<Gpu, GPUS_MAX>,
    /// CPU time in thousandths of a core.
    pub cpu_millicores: u32,
    /// RAM.
    pub ram: Bytes,
    /// Shared memory (`/dev/shm`).
    pub shared_memory: Bytes,
}

/// A host's offer. Signed with a short validity and signed again while it stands; it is withdrawn by not
/// signing it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// See [`offer_id`].
    pub id: OfferId,
    /// Rises with every signature; an older one never replaces a newer one.
    pub sequence: u64,
    /// When these resources were first listed, for ties in ranking.
    pub listed_at: Timestamp,
    /// The machine, as measured.
    pub machine: Machine,
    /// What of it is sold: GPUs of one model, slices of one profile of them, or the machine.
    pub share: Share,
    /// Which slice of a GPU each resource is; nothing when they are whole. A slice's resources are all places
    /// where the host would make one, and a lease has one of them.
    pub partition: Option<Partition>,
    /// In which portions.
    pub chunks: Chunks,
    /// Fewest GPUs of one lease; 0 on a machine without one.
    pub gpus_min: u16,
    /// At what price: compute for each GPU.
    pub prices: Prices,
    /// How else than on demand.
    pub sales: Sales,
    /// With what bounds.
    pub limits: Limits,
    /// What the host measured of it.
    pub measures: List<Measure, MEASURES_MAX>,
    /// Brokers that may make leases of it.
    pub brokers: List<BrokerId, BROKERS_MAX>,
}

/// The GPU that a resource is, or is a slice of.
#[must_use]
pub fn parent(resource: &str) -> &str {
    mig::name::SliceName::parse(resource).map_or(resource, |slice| slice.gpu())
}

impl Share {
    /// What `part` is of this share: with its GPUs, in order.
    #[must_use]
    pub fn part(&self, part: &Part) -> Self {
        let is_in = |gpu: &&Gpu| {
            let mut names = part.resources.iter();
            names.any(|name| parent(name) == gpu.uuid.as_str())
        };
        Self {
            resources: List::first(part.resources.iter().cloned()),
            gpus: List::first(self.gpus.iter().filter(is_in).cloned()),
            cpu_millicores: part.cpu_millicores,
            ram: part.ram,
            shared_memory: part.shared_memory,
        }
    }
}

impl Statement for Offer {
    const TYPE: &'static str = "offer/v3";
}

/// The id of the offer of `resources` by `host`: BLAKE3 of both, cut to 16 bytes.
#[must_use]
pub fn offer_id(host: HostId, resources: &[ResourceName]) -> OfferId {
    let mut bytes = b"feira offer 1".to_vec();
    bytes.extend_from_slice(host.as_bytes());
    for resource in resources {
        // A name has at most 64 bytes.
        bytes.push(u8::try_from(resource.len()).unwrap_or(u8::MAX));
        bytes.extend_from_slice(resource.as_bytes());
    }
    OfferId::from_bytes(Digest::of(&bytes).half())
}

impl Offer {
    /// Whether `other` is this offer signed anew: nothing of it differs but its sequence.
    #[must_use]
    pub fn is_again(&self, other: &Self) -> bool {
        let Self {
            id,
            sequence: _,
            listed_at,
            machine,
            share,
            partition,
            chunks,
            gpus_min,
            prices,
            sales,
            limits,
            measures,
            brokers,
        } = self;
        (id, listed_at, chunks, gpus_min, prices, sales, limits)
            == (
                &other.id,
                &other.listed_at,
                &other.chunks,
                &other.gpus_min,
                &other.prices,
                &other.sales,
                &other.limits,
            )
            && (share, partition, measures) == (&other.share, &other.partition, &other.measures)
            && (machine, brokers) == (&other.machine, &other.brokers)
    }

    /// What an order binds itself to: the digest of everything a renter relies on. Signing the same offer
    /// again, later, does not change it, and neither does free disk space that moved.
    ///
    /// # Errors
    /// Never for an offer that was decoded; the encoding has a size limit.
    pub fn terms_digest(&self) -> Result<Digest, CodecError> {
        let relied_on = (
            &self.id,
            &self.share,
            &self.partition,
            (self.chunks, self.gpus_min),
            &self.prices,
            &self.sales,
            &self.limits,
        );
        Ok(Digest::of(&codec::encode(&relied_on)?))
    }

    /// What a benchmark measured, in the quantity's unit: by the newest version of its method, the least where
    /// there are several.
    #[must_use]
    pub fn measured(&self, quantity: Quantity) -> Option<u64> {
        let of_it = self.measures.iter().filter(|one| one.quantity == quantity);
        let newest = of_it.min_by_key(|one| (Reverse(one.version), one.value));
        newest.map(|one| one.value).filter(|value| *value > 0)
    }

    /// How many GPUs are sold together, fewest first: 0 alone on a machine without one, 1 alone of slices.
    pub fn counts(&self) -> impl Iterator<Item = u16> + '_ {
        let all = u16::try_from(self.share.gpus.len()).unwrap_or(u16::MAX);
        (0..=all).filter(move |count| self.is_sold_as(*count))
    }

    /// Whether `gpus` GPUs are sold together.
    #[must_use]
    pub fn is_sold_as(&self, gpus: u16) -> bool {
        if self.partition.is_some() {
            return gpus == 1;
        }
        let all = u16::try_from(self.share.gpus.len()).unwrap_or(u16::MAX);
        if gpus == 0 || gpus == all {
            return gpus == all;
        }
        let is_portion = match self.chunks {
            Chunks::Any => true,
            Chunks::PowersOfTwo => gpus.is_power_of_two(),
            Chunks::Whole => false,
        };
        is_portion && gpus < all && gpus >= self.gpus_min
    }

    /// What `gpus` GPUs have of the machine in proportion, as `(CPU in thousandths, RAM, shared memory,
    /// largest disk)`, each rounded down; all of it where there are no GPUs, and of a slice.
    #[must_use]
    pub fn proportion(&self, gpus: u16) -> (u32, Bytes, Bytes, Bytes) {
        let is_whole = self.share.gpus.is_empty() || self.partition.is_some();
        let all = if is_whole { 1 } else { self.share.gpus.len() };
        let all = u64::try_from(all).unwrap_or(u64::MAX);
        let part = if is_whole { 1 } else { u64::from(gpus) };
        let of = |bytes: Bytes| Bytes(floor_part(bytes.0, part, all));
        let cpu = floor_part(self.share.cpu_millicores.into(), part, all);
        (
            u32::try_from(cpu).unwrap_or(u32::MAX),
            of(self.share.ram),
            of(self.share.shared_memory),
            of(self.limits.disk_max),
        )
    }
}

/// `floor(whole × part / parts)`.
fn floor_part(whole: u64, part: u64, parts: u64) -> u64 {
    let exact = u128::from(whole) * u128::from(part) / u128::from(parts.max(1));
    u64::try_from(exact).unwrap_or(u64::MAX)
}
