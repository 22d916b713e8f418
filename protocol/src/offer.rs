//! What a host offers: a share of its machine at its prices, signed by the host and by nobody else.

use crate::bounded::{List, Text};
use crate::codec::{self, CodecError};
use crate::ids::{BrokerId, Digest, HostId, OfferId};
use crate::machine::{GPUS_MAX, Gpu, Machine};
use crate::signed::Statement;
use crate::terms::{Limits, Prices, Sales};
use crate::units::{Bytes, Timestamp};
use serde::{Deserialize, Serialize};

/// Most offers of one host.
pub const OFFERS_MAX: usize = 32;
/// Most brokers that one offer may be shown by.
pub const BROKERS_MAX: usize = 16;

/// A thing that one lease holds alone: a GPU's UUID, or `machine` for a machine without one.
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

/// A share of a machine: all that an offer sells, or all that a lease has of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// What a lease holds alone, in order, without repeats; never empty.
    pub resources: List<ResourceName, GPUS_MAX>,
    /// The GPUs that they are, in their order, all of one model; empty on a CPU machine.
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
    /// What of it is sold: GPUs of one model, or the machine.
    pub share: Share,
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
    /// Brokers that may make leases of it.
    pub brokers: List<BrokerId, BROKERS_MAX>,
}

impl Share {
    /// What `part` is of this share: with its GPUs, in order.
    #[must_use]
    pub fn part(&self, part: &Part) -> Self {
        let is_in = |gpu: &&Gpu| part.resources.iter().any(|name| **name == *gpu.uuid);
        Self {
            resources: part.resources.clone(),
            gpus: List::first(self.gpus.iter().filter(is_in).cloned()),
            cpu_millicores: part.cpu_millicores,
            ram: part.ram,
            shared_memory: part.shared_memory,
        }
    }
}

impl Statement for Offer {
    const TYPE: &'static str = "offer/v2";
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
    /// What an order binds itself to: the digest of everything a renter relies on. Signing the same offer
    /// again, later, does not change it, and neither does free disk space that moved.
    ///
    /// # Errors
    /// Never for an offer that was decoded; the encoding has a size limit.
    pub fn terms_digest(&self) -> Result<Digest, CodecError> {
        let relied_on = (
            &self.id,
            &self.share,
            (self.chunks, self.gpus_min),
            &self.prices,
            &self.sales,
            &self.limits,
        );
        Ok(Digest::of(&codec::encode(&relied_on)?))
    }

    /// How many GPUs are sold together, fewest first: 0 alone on a machine without one.
    pub fn counts(&self) -> impl Iterator<Item = u16> + '_ {
        let all = u16::try_from(self.share.gpus.len()).unwrap_or(u16::MAX);
        (0..=all).filter(move |count| self.is_sold_as(*count))
    }

    /// Whether `gpus` GPUs are sold together.
    #[must_use]
    pub fn is_sold_as(&self, gpus: u16) -> bool {
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
    /// largest disk)`, each rounded down; all of it where there are no GPUs.
    #[must_use]
    pub fn proportion(&self, gpus: u16) -> (u32, Bytes, Bytes, Bytes) {
        let all = u64::try_from(self.share.gpus.len().max(1)).unwrap_or(1);
        let part = if self.share.gpus.is_empty() {
            1
        } else {
            u64::from(gpus)
        };
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
