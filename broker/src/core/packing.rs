//! Where a slice goes, so that least is lost for others: by the loss tables of its chip ([`mig::lost`]), over all GPUs
//! of the host, beside what leases have of them now or next.
//!
//! Must not say what is free or who goes: the places are given.

use crate::core::book::Listing;
use crate::core::desk::Desk;
use mig::chip::Chip;
use mig::layout::Mask;
use mig::name::SliceName;
use protocol::ids::{HostId, LeaseId};
use protocol::offer::ResourceName;
use protocol::units::Timestamp;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

impl Desk {
    /// The best of `places` for a slice of `listing` when `gone` are: where least is lost, then on the GPU of which
    /// most is taken, then the first GPU, then the lowest start. On a chip that is not known nothing is lost anywhere.
    pub(super) fn best_place<'a>(
        &self,
        listing: &Listing,
        places: &[&'a ResourceName],
        gone: &[LeaseId],
    ) -> Option<&'a ResourceName> {
        let gpus = &listing.offer().share.gpus;
        let mut taken: BTreeMap<&str, Mask> = BTreeMap::new();
        let ranked = places.iter().filter_map(|name| {
            let slice = SliceName::parse(name).ok()?;
            let gpu = gpus
                .iter()
                .position(|gpu| gpu.uuid.as_str() == slice.gpu())?;
            let units = *taken
                .entry(slice.gpu())
                .or_insert_with(|| self.units_taken(listing.host(), slice.gpu(), gone));
            let loss = listing.chip().map_or(0, |chip| loss(chip, &slice, units));
            Some(((loss, Reverse(units.count()), gpu, slice.start()), *name))
        });
        ranked.min_by_key(|(key, _)| *key).map(|(_, name)| name)
    }

    /// The units of a GPU's memory axis that leases have now or next, or that its host withholds.
    fn units_taken(&self, host: HostId, gpu: &str, gone: &[LeaseId]) -> Mask {
        let all = [self.market.holdings(host), self.market.claims(host)];
        let all = all.into_iter().flatten();
        let had = all
            .flat_map(|holdings| holdings.on_gpu(gpu))
            .filter(|(_, lease)| !gone.contains(lease))
            .map(|(name, _)| name);
        let withheld = self.book.withheld(host).iter();
        let slices = had
            .chain(withheld)
            .filter_map(|name| SliceName::parse(name).ok());
        slices
            .filter(|slice| slice.gpu() == gpu)
            .fold(Mask::default(), |mask, slice| {
                mask.with(Mask::span(slice.start(), slice.size()))
            })
    }

    /// Free whole GPUs in the order in which they are let: those first of which no slices are sold.
    pub(super) fn spare_divided<'a>(
        &self,
        host: HostId,
        now: Timestamp,
        free: &'a [ResourceName],
    ) -> Vec<&'a ResourceName> {
        if free.len() < 2 {
            return free.iter().collect();
        }
        let offers = self.book.host_offers(host, self.wall(now));
        let divided: BTreeSet<&str> = offers
            .map(Listing::offer)
            .filter(|offer| offer.partition.is_some())
            .flat_map(|offer| offer.share.gpus.iter())
            .map(|gpu| gpu.uuid.as_str())
            .collect();
        let mut order: Vec<&ResourceName> = free.iter().collect();
        order.sort_by_key(|name| divided.contains(name.as_str()));
        order
    }
}

/// What taking the slice loses on a GPU of which those units are taken.
fn loss(chip: &Chip, slice: &SliceName<'_>, units: Mask) -> u16 {
    let Some(profile) = chip.find(slice.profile()) else {
        return 0;
    };
    let cells = (0..chip.cells()).filter(|cell| {
        let window = Mask::span(cell * chip.cell(), chip.cell());
        !window.is_disjoint(units)
    });
    let mask = cells.fold(Mask::default(), |mask, cell| mask.with(Mask::span(cell, 1)));
    chip.loss(profile, slice.start(), mask)
}
