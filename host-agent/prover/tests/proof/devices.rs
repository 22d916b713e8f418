//! Devices beside the reference, bit by bit.

use crate::{NONCE, SEED, parameters};
use audit::processor::Processor;
use audit::prover::Device;
use protocol_pure::verify::Parameters;
use prover::vulkan::Vulkan;

/// Every row, leaf and root of `device` is that of the reference.
#[track_caller]
fn check(device: &mut impl Device, parameters: &Parameters) {
    let mut reference = Processor::new();
    reference.fill(&SEED, parameters).unwrap();
    device.fill(&SEED, parameters).unwrap();
    for tile in 0..parameters.tiles {
        for row in 0..parameters.tile_side {
            let (right, made) = (reference.row(tile, row), device.row(tile, row));
            assert_eq!(made, right, "row {row} of tile {tile}");
        }
        let (right, made) = (reference.leaves(&NONCE, tile), device.leaves(&NONCE, tile));
        assert_eq!(made, right, "leaves of tile {tile}");
    }
    let roots = reference.pass(&NONCE).unwrap();
    assert_eq!(roots.len(), usize::try_from(parameters.tiles).unwrap());
    assert_eq!(device.pass(&NONCE), Ok(roots));
}

/// Sides below, at and above a work group; one tile and several; inner lengths of one step and of many.
#[test]
fn vulkan_gives_the_bits_of_the_reference() {
    let mut vulkan = Vulkan::open(true).unwrap();
    for (side, inner, tiles) in [(16, 64, 1), (64, 192, 3), (128, 64, 2), (256, 1024, 1)] {
        check(&mut vulkan, &parameters(side, inner, tiles));
    }
}

/// More rows than one panel has, and more tiles than one call of the tree's lowest level.
#[test]
fn vulkan_puts_panels_and_many_tiles_together() {
    let mut vulkan = Vulkan::open(true).unwrap();
    check(&mut vulkan, &parameters(16, 64, 100));
    let mut reference = Processor::new();
    let wide = parameters(1024, 64, 1);
    reference.fill(&SEED, &wide).unwrap();
    vulkan.fill(&SEED, &wide).unwrap();
    assert_eq!(vulkan.pass(&NONCE), reference.pass(&NONCE));
    assert_eq!(vulkan.row(0, 1023), reference.row(0, 1023));
}

#[test]
fn what_is_not_held_is_not_shown() {
    let mut vulkan = Vulkan::open(true).unwrap();
    assert!(vulkan.pass(&NONCE).is_err());
    vulkan.fill(&SEED, &parameters(16, 64, 2)).unwrap();
    assert!(vulkan.row(2, 0).is_err());
    assert!(vulkan.leaves(&NONCE, 2).is_err());
}
