//! The offers of slices: one for each profile of the GPUs of one model, with every place where one would be made.
//!
//! Must not know what is leased: a broker is told of that beside the offers.

use super::policy::PartitionLayout;
use super::{Divisible, Divisibles, Mode, slice_name};
use crate::core::offer::Listing;
use mig::chip::{Chip, Profile};
use protocol::bounded::{List, Text};
use protocol::machine::Gpu;
use protocol::offer::{Isolation, Partition, ResourceName, Share};
use protocol::terms::{Prices, Sales};
use protocol::units::Bytes;
use std::collections::BTreeMap;

/// One kind of slice that is sold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceSale {
    /// Which.
    pub partition: Partition,
    /// Where, and what one of them has.
    pub share: Share,
    /// What one of them costs.
    pub prices: Prices,
    /// How else than on demand.
    pub sales: Sales,
    /// Most disk of one of them.
    pub disk_max: Bytes,
}

/// Places of one profile, on the GPUs of one model and size.
struct Kind<'a> {
    chip: &'a Chip,
    profile: &'a Profile,
    gpus: BTreeMap<ResourceName, Gpu>,
    places: Vec<ResourceName>,
}

/// All kinds of slices that a listing sells on GPUs that are divided now. A GPU that is still whole sells none.
#[must_use]
pub fn sales(listing: &Listing, gpus: &[Gpu], divisibles: &Divisibles) -> Vec<SliceSale> {
    let mut kinds: BTreeMap<(&str, Bytes, &str), Kind<'_>> = BTreeMap::new();
    for gpu in gpus
        .iter()
        .filter(|gpu| listing.resources.contains(&gpu.uuid))
    {
        let divided = divisibles
            .get(&gpu.uuid)
            .filter(|divisible| divisible.mode == Mode::Divided);
        let (Some(divisible), Some(layout)) = (divided, listing.slices.layout(&gpu.uuid)) else {
            continue;
        };
        // What is not divided so yet, or by somebody else in another way, is not sold.
        let is_so = match layout {
            PartitionLayout::Uniform(modes) => divisible.is_in(*modes),
            PartitionLayout::Fixed(_) | PartitionLayout::Dynamic(_) => divisible.uniform.is_none(),
        };
        if !is_so {
            continue;
        }
        // It was checked when it was listed; another GPU may sit there since.
        for (profile, start) in layout.places(&divisible.chip).unwrap_or_default() {
            let Some(name) = slice_name(&gpu.uuid, profile, start) else {
                continue;
            };
            let kind = kinds
                .entry((&gpu.model, gpu.vram, &profile.name))
                .or_insert_with(|| Kind::new(divisible, profile));
            kind.gpus.insert(gpu.uuid.clone(), gpu.clone());
            kind.places.push(name);
        }
    }
    kinds
        .into_values()
        .filter_map(|kind| kind.sale(listing))
        .collect()
}

impl<'a> Kind<'a> {
    const fn new(divisible: &'a Divisible, profile: &'a Profile) -> Self {
        Self {
            chip: &divisible.chip,
            profile,
            gpus: BTreeMap::new(),
            places: Vec::new(),
        }
    }

    /// Nothing for a profile whose name is too long to be sold.
    fn sale(mut self, listing: &Listing) -> Option<SliceSale> {
        self.places.sort_unstable();
        let (chip, profile) = (self.chip, self.profile);
        let geometry = chip.geometry();
        let part = |whole: u64| part_of(whole, profile.size, geometry.axis, listing);
        let ram = Bytes(part(listing.ram.0));
        let policy = &listing.slices;
        let compute = policy.price(chip, profile, listing.prices.compute);
        let floor = listing.sales.floor;
        let floor = floor.map(|floor| policy.by_rule(chip, profile, floor).min(compute));
        Some(SliceSale {
            partition: Partition {
                profile: Text::new(profile.name.clone()).ok()?,
                vram: Bytes(u64::from(profile.memory_mib) << 20),
                multiprocessors: (profile.sm, geometry.sm_total.max(profile.sm)),
                memory_slices: (profile.size, geometry.axis),
                isolation: Isolation::Hardware,
            },
            share: Share {
                resources: List::first(self.places),
                gpus: List::first(self.gpus.into_values()),
                cpu_millicores: u32::try_from(part(listing.cpu_millicores.into()))
                    .unwrap_or(u32::MAX),
                ram,
                shared_memory: Bytes(ram.0 / 2),
            },
            prices: Prices {
                compute,
                ..listing.prices
            },
            sales: Sales {
                floor,
                ..listing.sales
            },
            disk_max: Bytes(part(listing.limits.disk_max.0)),
        })
    }
}

/// The part of what is sold in all that a slice of `size` of `axis` units of one GPU has, rounded down.
fn part_of(whole: u64, size: u8, axis: u8, listing: &Listing) -> u64 {
    let gpus = u128::try_from(listing.resources.len().max(1)).unwrap_or(1);
    let all = gpus * u128::from(axis.max(1));
    u64::try_from(u128::from(whole) * u128::from(size) / all).unwrap_or(u64::MAX)
}
