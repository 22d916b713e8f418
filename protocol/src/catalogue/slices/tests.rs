//! Parts of AMD's GPUs, and parts that nothing keeps apart.

use super::super::plausible;
use super::super::tests::offer;
use super::*;
use crate::bounded::{List, Text};
use crate::units::Bytes;

/// Parts of an MI300X of 192 GB, which its driver counts as 196 592 MiB, at these places of its 8 dies.
fn parts(profile: &str, places: &[(u8, u8)], mib: u64, units: u16) -> Offer {
    let gpu = Gpu {
        vendor: Vendor::Amd,
        model: Text::cut("Instinct MI300X"),
        uuid: Text::cut("GPU-a"),
        vram: Bytes(196_592 << 20),
        multiprocessors: 304,
        ..Gpu::unknown(Vendor::Amd)
    };
    let mut offer = offer(gpu);
    let name = |(start, size): &(u8, u8)| Text::cut(&format!("GPU-a/{profile}@{start}+{size}"));
    offer.share.resources = List::first(places.iter().map(name));
    offer.partition = Some(Partition {
        profile: Text::cut(profile),
        vram: Bytes(mib << 20),
        multiprocessors: (units, 304),
        memory_slices: (places[0].1, 8),
        isolation: Isolation::Hardware,
    });
    offer
}

#[track_caller]
fn refused(offer: &Offer, words: &str) {
    let refused = plausible(offer).unwrap_err().to_string();
    assert_eq!(refused, format!("{words}: Instinct MI300X"));
}

#[test]
fn equal_parts_are_those_of_a_mode_of_the_model() {
    let eighths: Vec<(u8, u8)> = (0..8).map(|die| (die, 1)).collect();
    assert_eq!(plausible(&parts("1g.24gb", &eighths, 24_574, 38)), Ok(()));
    assert_eq!(
        plausible(&parts("4g.96gb", &[(0, 4), (4, 4)], 98_296, 152)),
        Ok(())
    );
    refused(
        &parts("3g.72gb", &[(0, 3)], 24_574, 114),
        "it has no profile 3g.72gb",
    );
    refused(
        &parts("4g.96gb", &[(2, 4)], 98_296, 152),
        "4g.96gb starts at [0, 4] with size 4, not as in 'GPU-a/4g.96gb@2+4'",
    );
    // 24 574 MiB and 8 %.
    refused(
        &parts("1g.24gb", &eighths, 26_541, 38),
        "1g.24gb has 24574 MiB within 8 %, not 26541",
    );
    refused(
        &parts("1g.24gb", &eighths, 24_574, 39),
        "1g.24gb has 38 of 304 multiprocessors, not 39 of 304",
    );
}

/// Threat: a GPU that is shared in time or by a server of its driver is sold to two renters.
#[test]
fn what_only_a_driver_keeps_apart_is_not_sold() {
    let mut shared = parts("1g.24gb", &[(0, 1)], 24_574, 38);
    if let Some(partition) = &mut shared.partition {
        partition.isolation = Isolation::Shared;
    }
    refused(
        &shared,
        "parts of a GPU that only its driver keeps apart are for one renter beside itself, and are not sold",
    );
}
