//! The price rule against amounts worked out by hand.

#![expect(
    clippy::unwrap_used,
    reason = "what is around the tests is test code too"
)]

use mig::board::{Cut, boards};
use mig::chip::{Chip, Profile};
use mig::layout::{Layout, layouts};
use mig::price::slice_price;

fn chip(id: &str) -> &'static Chip {
    let board = boards().iter().find(|board| board.id == id).unwrap();
    match &board.cut {
        Cut::Known(chip) => chip,
        Cut::Named { .. } => panic!("{id} has names only"),
    }
}

#[track_caller]
fn price(id: &str, profile: &str, gpu: u64, premium_bp: u32) -> u64 {
    let chip = chip(id);
    slice_price(chip, chip.find(profile).unwrap(), gpu, premium_bp).unwrap()
}

#[test]
fn an_h100_at_2_25_an_hour_and_15_percent() {
    let of = |profile| price("H100-80", profile, 2_250_000, 1500);
    assert_eq!(of("1g.10gb"), 323_438);
    assert_eq!(of("1g.20gb"), 646_875);
    assert_eq!(of("2g.20gb"), 646_875);
    assert_eq!(of("3g.40gb"), 1_293_750);
    assert_eq!(of("4g.40gb"), 1_293_750);
    assert_eq!(of("7g.80gb"), 2_250_000);
    assert_eq!(7 * of("1g.10gb"), 2_264_066);
    assert_eq!(of("4g.40gb") + of("3g.40gb"), 2_587_500);
    assert_eq!(3 * of("2g.20gb") + of("1g.10gb"), 2_264_063);
}

#[test]
fn the_larger_share_counts() {
    // 14 of 108 multiprocessors are more than 1 of 8 units: 1 080 000 × 14/108; 46 of 188 are less than 1 of 4.
    assert_eq!(price("A100-40", "1g.5gb", 1_080_000, 0), 140_000);
    assert_eq!(price("RTXPRO6000-96", "1g.24gb", 1_000_000, 0), 250_000);
    // Multiprocessors unknown: 4 of 8 units.
    assert_eq!(price("B200-180", "3g.90gb", 3_000_001, 0), 1_500_001);
    assert_eq!(price("A30-24", "4g.24gb", 600_000, 1500), 600_000);
}

#[test]
fn a_price_out_of_range_is_refused() {
    let chip = chip("H100-80");
    let small = chip.find("1g.10gb").unwrap();
    // 4 294 977 295 basis points of an eighth are 53 687 times the price.
    assert_eq!(slice_price(chip, small, u64::MAX, u32::MAX), None);
    assert_eq!(
        slice_price(chip, small, u64::MAX, 0),
        Some(u64::MAX.div_ceil(8))
    );
    assert_eq!(slice_price(chip, small, 0, u32::MAX), Some(0));
    let graphics = self::chip("RTXPRO6000-96").find("4g.96gb+gfx").unwrap();
    assert_eq!(slice_price(chip, graphics, 1, 0), None);
}

/// Whatever fills it: a GPU whose memory is all taken earns at least what it earns whole.
#[test]
fn a_full_gpu_never_earns_less_than_whole() {
    for board in boards() {
        let Cut::Known(chip) = &board.cut else {
            continue;
        };
        for layout in layouts(chip, &Layout::default(), |profile: &Profile| {
            !profile.is_marked()
        }) {
            if layout.mask().count() < u32::from(chip.cells()) {
                continue;
            }
            for premium_bp in [0, 1500] {
                let earned: u64 = layout
                    .placements()
                    .iter()
                    .map(|p| slice_price(chip, p.profile, 2_250_001, premium_bp).unwrap())
                    .sum();
                assert!(earned >= 2_250_001, "{} {layout:?}", board.id);
            }
        }
    }
}
