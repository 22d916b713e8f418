//! What this machine is sold as: one offer for each model of its GPUs, or one of the whole machine where
//! there is no GPU, sold in portions; and one for each kind of slice of the GPUs that are cut. Nothing here signs or
//! sends.

use super::slices::Divisibles;
use super::slices::policy::SlicePolicy;
use super::slices::sold::sales;
use protocol::bounded::List;
use protocol::codec::CodecError;
use protocol::ids::{BrokerId, Digest, HostId};
use protocol::machine::{ContainerNetwork, GPUS_MAX, Gpu, Machine};
use protocol::offer::{BROKERS_MAX, Chunks, Offer, ResourceName, Share, WHOLE_MACHINE, offer_id};
use protocol::terms::{Limits, Prices, Sales};
use protocol::units::{Bytes, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the owner of the machine decided to sell, and for how much. Everything a renter relies on is
/// fixed here, so that an offer's terms do not change with what is measured from minute to minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// What is sold: GPUs by their UUID, or the machine as a whole.
    pub resources: List<ResourceName, GPUS_MAX>,
    /// In which portions the GPUs of one model are sold.
    pub chunks: Chunks,
    /// Fewest GPUs of one lease; an offer of fewer is sold as a whole.
    pub gpus_min: u16,
    /// Prices: `compute` is for each GPU, or for the machine.
    pub prices: Prices,
    /// How else than on demand.
    pub sales: Sales,
    /// Limits of each lease; the disk is of all that is sold together.
    pub limits: Limits,
    /// The network of containers.
    pub network: ContainerNetwork,
    /// CPU time of all that is sold together, in thousandths of a core.
    pub cpu_millicores: u32,
    /// RAM of all that is sold together.
    pub ram: Bytes,
    /// When it was first listed.
    pub listed_at: Timestamp,
    /// Which of the GPUs are sold in slices.
    pub slices: SlicePolicy,
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
/// is not there any more is not offered. `divisibles` are its GPUs that can be cut, as they are cut now.
///
/// # Errors
/// When an offer is too large to encode, which no machine within the bounds of its type is.
pub fn offers(
    host: HostId,
    machine: &Machine,
    divisibles: &Divisibles,
    listing: &Listing,
    brokers: &[BrokerId],
) -> Result<Vec<Listed>, CodecError> {
    let measured = Machine {
        network: listing.network,
        ..machine.clone()
    };
    let offer = |share: Share| Offer {
        id: offer_id(host, &share.resources),
        sequence: 0,
        listed_at: listing.listed_at,
        machine: measured.clone(),
        chunks: listing.chunks,
        gpus_min: listing.gpus_min,
        partition: None,
        measures: List::default(),
        prices: listing.prices,
        sales: listing.sales,
        limits: listing.limits,
        share,
        brokers: List::<BrokerId, BROKERS_MAX>::first(brokers.iter().copied()),
    };
    let wholes = groups(listing, machine, divisibles)
        .into_iter()
        .map(|(resources, gpus)| {
            let share = share(listing, &resources, gpus);
            let all = u16::try_from(share.gpus.len()).unwrap_or(u16::MAX);
            Offer {
                gpus_min: listing.gpus_min.min(all),
                limits: Limits {
                    disk_max: part_of(listing.limits.disk_max, resources.len(), listing),
                    ..listing.limits
                },
                ..offer(share)
            }
        });
    let slices = sales(listing, &machine.gpus, divisibles).into_iter();
    let slices = slices.map(|sale| Offer {
        partition: Some(sale.partition),
        chunks: Chunks::Any,
        gpus_min: 1,
        prices: sale.prices,
        sales: sale.sales,
        limits: Limits {
            disk_max: sale.disk_max,
            ..listing.limits
        },
        ..offer(sale.share)
    });
    let listed = |offer: Offer| {
        let terms = offer.terms_digest()?;
        Ok(Listed { offer, terms })
    };
    wholes.chain(slices).map(listed).collect()
}

/// What is sold together, each in the order of its names: the GPUs of one model and size, or the machine
/// without any.
fn groups(
    listing: &Listing,
    machine: &Machine,
    divisibles: &Divisibles,
) -> Vec<(Vec<ResourceName>, Vec<Gpu>)> {
    let is_listed = |name: &ResourceName| listing.resources.contains(name);
    if machine.gpus.is_empty() {
        let whole = ResourceName::cut(WHOLE_MACHINE);
        return if is_listed(&whole) {
            vec![(vec![whole], Vec::new())]
        } else {
            Vec::new()
        };
    }
    let mut models: BTreeMap<_, BTreeMap<ResourceName, Gpu>> = BTreeMap::new();
    let is_whole = |name: &ResourceName| {
        is_listed(name) && listing.slices.is_whole(name, divisibles.get(name))
    };
    for gpu in machine.gpus.iter().filter(|gpu| is_whole(&gpu.uuid)) {
        models
            .entry((gpu.model.clone(), gpu.vram))
            .or_default()
            .insert(gpu.uuid.clone(), gpu.clone());
    }
    models
        .into_values()
        .map(|gpus| gpus.into_iter().unzip())
        .collect()
}

/// The part of what is sold in all that `resources` of it have, rounded down.
fn part_of(whole: Bytes, resources: usize, listing: &Listing) -> Bytes {
    let all = u128::try_from(listing.resources.len().max(1)).unwrap_or(1);
    let part = u128::try_from(resources).unwrap_or(u128::MAX).min(all);
    Bytes(u64::try_from(u128::from(whole.0) * part / all).unwrap_or(u64::MAX))
}

fn share(listing: &Listing, resources: &[ResourceName], gpus: Vec<Gpu>) -> Share {
    let cpu = part_of(
        Bytes(listing.cpu_millicores.into()),
        resources.len(),
        listing,
    );
    let ram = part_of(listing.ram, resources.len(), listing);
    Share {
        resources: List::first(resources.iter().cloned()),
        gpus: List::first(gpus),
        cpu_millicores: u32::try_from(cpu.0).unwrap_or(u32::MAX),
        ram,
        // Shared memory counts against the container's memory; half of it is what tmpfs gives by default.
        shared_memory: Bytes(ram.0 / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tests::{gpu, listing, machine};
    use protocol::bounded::Text;

    const HOST: HostId = HostId::from_bytes([3; 32]);

    #[test]
    fn a_machine_without_gpus_is_one_offer() {
        let machine = machine(&[]);
        let listed = offers(HOST, &machine, &Divisibles::new(), &listing(&machine), &[]).unwrap();
        assert_eq!(listed.len(), 1);
        let share = &listed[0].offer.share;
        assert_eq!(share.resources[0].as_str(), "machine");
        assert!(share.gpus.is_empty());
        assert_eq!((share.cpu_millicores, share.ram), (8_000, Bytes(16 << 30)));
        assert_eq!(share.shared_memory, Bytes(8 << 30));
    }

    #[test]
    fn the_gpus_of_one_model_are_one_offer_in_the_order_of_their_names() {
        let machine = machine(&[gpu("GPU-b"), gpu("GPU-a")]);
        let listed = offers(HOST, &machine, &Divisibles::new(), &listing(&machine), &[]).unwrap();
        assert_eq!(listed.len(), 1);
        let share = &listed[0].offer.share;
        assert_eq!(
            share.resources,
            List::first(["GPU-a", "GPU-b"].map(ResourceName::cut))
        );
        let gpus: Vec<&str> = share.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
        assert_eq!(gpus, ["GPU-a", "GPU-b"]);
        assert_eq!((share.cpu_millicores, share.ram), (8_000, Bytes(16 << 30)));
        assert_eq!(listed[0].offer.counts().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(listed[0].offer.id, offer_id(HOST, &share.resources));
    }

    #[test]
    fn each_model_is_an_offer_with_its_part_of_the_machine() {
        let other = Gpu {
            model: Text::cut("NVIDIA Other"),
            ..gpu("GPU-b")
        };
        let smaller = Gpu {
            vram: Bytes(12 << 30),
            ..gpu("GPU-d")
        };
        let machine = machine(&[gpu("GPU-c"), other, gpu("GPU-a"), smaller]);
        let sold = Listing {
            gpus_min: 2,
            ..listing(&machine)
        };
        let listed = offers(HOST, &machine, &Divisibles::new(), &sold, &[]).unwrap();
        let names = |listed: &Listed| {
            let names = listed.offer.share.resources.iter();
            names
                .map(ResourceName::as_str)
                .collect::<Vec<_>>()
                .join(",")
        };
        let offers: Vec<String> = listed.iter().map(names).collect();
        assert_eq!(offers, ["GPU-b", "GPU-d", "GPU-a,GPU-c"]);
        // A quarter of 8 cores, of 16 GiB and of 100 GB for each GPU.
        let parts: Vec<_> = listed
            .iter()
            .map(|listed| {
                let offer = &listed.offer;
                let disk = offer.limits.disk_max;
                (
                    offer.share.cpu_millicores,
                    offer.share.ram,
                    disk,
                    offer.gpus_min,
                )
            })
            .collect();
        let one = (2_000, Bytes(4 << 30), Bytes::from_gb(25), 1);
        let two = (4_000, Bytes(8 << 30), Bytes::from_gb(50), 2);
        assert_eq!(parts, [one, one, two]);
    }

    #[test]
    fn a_gpu_that_fell_off_is_not_offered_and_the_others_have_what_they_had() {
        let both = machine(&[gpu("GPU-a"), gpu("GPU-b")]);
        let sold = listing(&both);
        let before = offers(HOST, &both, &Divisibles::new(), &sold, &[]).unwrap();
        let after = offers(
            HOST,
            &machine(&[gpu("GPU-b")]),
            &Divisibles::new(),
            &sold,
            &[],
        )
        .unwrap();
        assert_eq!(after.len(), 1);
        let (was, is) = (&before[0].offer, &after[0].offer);
        assert_eq!(
            is.share.resources,
            List::first(["GPU-b"].map(ResourceName::cut))
        );
        assert_eq!(is.proportion(1), was.proportion(1));
        assert_ne!(is.id, was.id);
    }

    #[test]
    fn a_gpu_that_is_not_listed_is_not_offered() {
        let both = machine(&[gpu("GPU-a"), gpu("GPU-b")]);
        let sold = Listing {
            resources: List::first(["GPU-b"].map(ResourceName::cut)),
            ..listing(&both)
        };
        let listed = offers(HOST, &both, &Divisibles::new(), &sold, &[]).unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].offer.share.gpus.len(), 1);
        assert_eq!(listed[0].offer.share.cpu_millicores, 8_000);
    }

    #[test]
    fn free_disk_does_not_change_the_terms_and_the_price_does() {
        let now = machine(&[]);
        let sold = listing(&now);
        let before = offers(HOST, &now, &Divisibles::new(), &sold, &[]).unwrap();
        let fuller = Machine {
            disk_free: Bytes(1),
            ..now.clone()
        };
        assert_eq!(
            offers(HOST, &fuller, &Divisibles::new(), &sold, &[]).unwrap()[0].terms,
            before[0].terms
        );
        let mut dearer = sold;
        dearer.prices.compute.0 += 1;
        assert_ne!(
            offers(HOST, &now, &Divisibles::new(), &dearer, &[]).unwrap()[0].terms,
            before[0].terms
        );
    }
}
