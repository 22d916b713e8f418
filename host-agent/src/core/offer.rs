//! What this machine is sold as: one offer for each GPU with its part of the machine, or one offer of
//! the whole machine where there is no GPU. Nothing here signs or sends.

use protocol::bounded::List;
use protocol::codec::CodecError;
use protocol::ids::{BrokerId, Digest, HostId};
use protocol::machine::{ContainerNetwork, GPUS_MAX, Gpu, Machine};
use protocol::offer::{BROKERS_MAX, Offer, ResourceName, Share, WHOLE_MACHINE, offer_id};
use protocol::terms::{Limits, Prices};
use protocol::units::{Bytes, Timestamp};
use serde::{Deserialize, Serialize};

/// What the owner of the machine decided to sell, and for how much. Everything a renter relies on is
/// fixed here, so that an offer's terms do not change with what is measured from minute to minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// What is sold: GPUs by their UUID, or the machine as a whole.
    pub resources: List<ResourceName, GPUS_MAX>,
    /// Prices: `compute` is for each GPU, or for the machine.
    pub prices: Prices,
    /// Limits of each lease.
    pub limits: Limits,
    /// The network of containers.
    pub network: ContainerNetwork,
    /// CPU time of all that is sold together, in thousandths of a core.
    pub cpu_millicores: u32,
    /// RAM of all that is sold together.
    pub ram: Bytes,
    /// When it was first listed.
    pub listed_at: Timestamp,
}

/// An offer and what orders bind themselves to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The offer; its `sequence` is set when it is signed.
    pub offer: Offer,
    /// [`Offer::terms_digest`].
    pub terms: Digest,
}

/// The resources that a machine can be sold as: its GPUs, or itself.
#[must_use]
pub fn resources_of(machine: &Machine) -> List<ResourceName, GPUS_MAX> {
    if machine.gpus.is_empty() {
        return List::first([ResourceName::cut(WHOLE_MACHINE)]);
    }
    List::first(machine.gpus.iter().map(|gpu| gpu.uuid.clone()))
}

/// The offers of a listing on this machine, whether they are free now or not. A GPU that was listed and
/// is not there any more is not offered.
///
/// # Errors
/// When an offer is too large to encode, which no machine within the bounds of its type is.
pub fn offers(
    host: HostId,
    machine: &Machine,
    listing: &Listing,
    brokers: &[BrokerId],
) -> Result<Vec<Listed>, CodecError> {
    let measured = Machine {
        network: listing.network,
        ..machine.clone()
    };
    let mut listed = Vec::new();
    for resource in &listing.resources {
        let Some(gpus) = gpus_of(resource, machine) else {
            continue;
        };
        let resources = List::first([resource.clone()]);
        let offer = Offer {
            id: offer_id(host, &resources),
            sequence: 0,
            listed_at: listing.listed_at,
            machine: measured.clone(),
            share: share(listing, resources, gpus),
            prices: listing.prices,
            limits: listing.limits,
            brokers: List::<BrokerId, BROKERS_MAX>::first(brokers.iter().copied()),
        };
        listed.push(Listed {
            terms: offer.terms_digest()?,
            offer,
        });
    }
    Ok(listed)
}

/// The GPUs that belong to a resource, if the machine has it: none for the whole machine.
fn gpus_of(resource: &ResourceName, machine: &Machine) -> Option<Vec<Gpu>> {
    if resource.as_str() == WHOLE_MACHINE {
        return Some(Vec::new());
    }
    let gpu = machine.gpus.iter().find(|gpu| gpu.uuid == *resource)?;
    Some(vec![gpu.clone()])
}

/// An equal part of what is sold in all.
fn share(listing: &Listing, resources: List<ResourceName, GPUS_MAX>, gpus: Vec<Gpu>) -> Share {
    let parts = u32::try_from(listing.resources.len()).unwrap_or(1).max(1);
    let ram = Bytes(listing.ram.0 / u64::from(parts));
    Share {
        resources,
        gpus: List::first(gpus),
        cpu_millicores: listing.cpu_millicores / parts,
        ram,
        // Shared memory counts against the container's memory; half of it is what tmpfs gives by default.
        shared_memory: Bytes(ram.0 / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tests::{gpu, listing, machine};

    const HOST: HostId = HostId::from_bytes([3; 32]);

    #[test]
    fn a_machine_without_gpus_is_one_offer() {
        let machine = machine(&[]);
        let listed = offers(HOST, &machine, &listing(&machine), &[]).unwrap();
        assert_eq!(listed.len(), 1);
        let share = &listed[0].offer.share;
        assert_eq!(share.resources[0].as_str(), "machine");
        assert!(share.gpus.is_empty());
        assert_eq!((share.cpu_millicores, share.ram), (8_000, Bytes(16 << 30)));
        assert_eq!(share.shared_memory, Bytes(8 << 30));
    }

    #[test]
    fn each_gpu_is_an_offer_with_its_part_of_the_machine() {
        let machine = machine(&[gpu("GPU-a"), gpu("GPU-b")]);
        let listed = offers(HOST, &machine, &listing(&machine), &[]).unwrap();
        assert_eq!(listed.len(), 2);
        assert_eq!(listed[1].offer.share.gpus[0].uuid.as_str(), "GPU-b");
        assert_eq!(listed[1].offer.share.cpu_millicores, 4_000);
        assert_eq!(listed[1].offer.share.ram, Bytes(8 << 30));
        assert_ne!(listed[0].offer.id, listed[1].offer.id);
    }

    #[test]
    fn a_gpu_that_fell_off_is_not_offered_and_the_others_keep_their_terms() {
        let both = machine(&[gpu("GPU-a"), gpu("GPU-b")]);
        let sold = listing(&both);
        let before = offers(HOST, &both, &sold, &[]).unwrap();
        let after = offers(HOST, &machine(&[gpu("GPU-b")]), &sold, &[]).unwrap();
        assert_eq!(after.len(), 1);
        assert_eq!(after[0].terms, before[1].terms);
    }

    #[test]
    fn free_disk_does_not_change_the_terms_and_the_price_does() {
        let now = machine(&[]);
        let sold = listing(&now);
        let before = offers(HOST, &now, &sold, &[]).unwrap();
        let fuller = Machine {
            disk_free: Bytes(1),
            ..now.clone()
        };
        assert_eq!(
            offers(HOST, &fuller, &sold, &[]).unwrap()[0].terms,
            before[0].terms
        );
        let mut dearer = sold;
        dearer.prices.compute.0 += 1;
        assert_ne!(
            offers(HOST, &now, &dearer, &[]).unwrap()[0].terms,
            before[0].terms
        );
    }
}
