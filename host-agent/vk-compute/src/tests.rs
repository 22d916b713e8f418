//! What a device does, on one that is a program; where there is none, what is said.

use super::*;
use std::rc::Rc;

/// The device that is a program; nothing on a machine without one.
fn software() -> Option<Rc<Device>> {
    match Device::open(Wanted::Software) {
        Ok(device) => Some(Rc::new(device)),
        Err(VulkanError::NoLoader(_) | VulkanError::NoDevice { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn groups_in_two_directions_are_enough_and_allowed_everywhere() {
    assert_eq!(spread(0), (1, 1));
    assert_eq!(spread(65_535), (65_535, 1));
    for count in [65_536, 1_000_000, u64::from(u32::MAX)] {
        let (across, down) = spread(count);
        assert!(across <= 65_535 && down <= 65_538);
        assert!(u64::from(across) * u64::from(down) >= count);
    }
}

#[test]
fn what_is_beyond_a_buffer_is_refused_before_the_driver_hears_of_it() {
    let Some(device) = software() else { return };
    let small = Buffer::new(&device, 64, Place::Shared).unwrap();
    let large = Buffer::new(&device, 128, Place::Device).unwrap();
    let beyond = |asked, holds| Err(VulkanError::Beyond { asked, holds });
    assert_eq!(small.copy_from(&large, 0, 65), beyond(65, 64));
    assert_eq!(small.copy_from(&large, 65, 64), beyond(129, 128));
    assert_eq!(small.read(65).map(drop), beyond(65, 64));
    assert_eq!(small.write(&[0; 65]), beyond(65, 64));
}

#[test]
fn bytes_come_back_from_the_device() {
    let Some(device) = software() else { return };
    let shared = Buffer::new(&device, 64, Place::Shared).unwrap();
    let own = Buffer::new(&device, 64, Place::Device).unwrap();
    own.fill(0x0102_0304).unwrap();
    shared.copy_from(&own, 4, 60).unwrap();
    assert_eq!(shared.read(4).unwrap(), 0x0102_0304_u32.to_ne_bytes());
    let bytes: Vec<u8> = (0..64).collect();
    shared.write(&bytes).unwrap();
    own.copy_from(&shared, 0, 64).unwrap();
    shared.write(&[0; 64]).unwrap();
    shared.copy_from(&own, 32, 32).unwrap();
    assert_eq!(shared.read(32).unwrap(), bytes[32..]);
}

#[test]
fn a_device_that_is_not_there_is_named_beside_those_that_are() {
    let Some(_) = software() else { return };
    let refused = Device::open(Wanted::Pci("ffff:ff:1f.7")).unwrap_err();
    let VulkanError::NoDevice { wanted, found } = refused else {
        panic!("{refused}")
    };
    assert_eq!(wanted, "at ffff:ff:1f.7");
    assert!(!found.is_empty() && found != "none");
}
