//! What a host offers: a share of its machine at its prices, signed by the host and by nobody else.

use crate::bounded::{List, Text};
use crate::codec::{self, CodecError};
use crate::ids::{BrokerId, Digest, HostId, OfferId};
use crate::machine::{GPUS_MAX, Gpu, Machine};
use crate::signed::Statement;
use crate::terms::{Limits, Prices};
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

/// The share of a machine that an offer sells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// What the lease holds alone, in order, without repeats; never empty.
    pub resources: List<ResourceName, GPUS_MAX>,
    /// The GPUs among them; empty on a CPU machine.
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
    /// What part of it is sold.
    pub share: Share,
    /// At what price.
    pub prices: Prices,
    /// With what bounds.
    pub limits: Limits,
    /// Brokers that may make leases of it.
    pub brokers: List<BrokerId, BROKERS_MAX>,
}

impl Statement for Offer {
    const TYPE: &'static str = "offer/v1";
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
        let share = (&self.id, &self.share, &self.prices, &self.limits);
        Ok(Digest::of(&codec::encode(&share)?))
    }
}
