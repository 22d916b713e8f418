//! What a GPU can be cut into. The wrapper's own list of placements is always empty.

use super::raw::{check, symbol};
use crate::fault::Fault;
use crate::slices::{Placement, Profile};
use nvml_wrapper::Device;
use nvml_wrapper_sys::bindings as c;
use protocol::bounded::Text;
use protocol::units::Bytes;
use std::ptr;

/// Most placements of one profile: twice what any has.
const SLOTS: u32 = 32;

/// The profile that the library knows under `number`, without its placements.
pub(super) fn profile(device: &Device<'_>, number: u32) -> Result<Profile, Fault> {
    let lib = device.nvml().lib();
    let Ok(ask) = symbol(&lib.nvmlDeviceGetGpuInstanceProfileInfoV) else {
        return profile_of_old(device, number);
    };
    let size = u32::try_from(size_of::<c::nvmlGpuInstanceProfileInfo_v2_t>()).unwrap_or(0);
    let mut info = c::nvmlGpuInstanceProfileInfo_v2_t {
        // How every versioned structure of the library says which it is: size, and version in the top byte.
        version: size | 2 << 24,
        id: 0,
        isP2pSupported: 0,
        sliceCount: 0,
        instanceCount: 0,
        multiprocessorCount: 0,
        copyEngineCount: 0,
        decoderCount: 0,
        encoderCount: 0,
        jpegCount: 0,
        ofaCount: 0,
        memorySizeMB: 0,
        name: [0; 96],
    };
    // SAFETY: the device is this library's, and `info` is the structure of the version that it names.
    check(unsafe { ask(device.handle(), number, &raw mut info) })?;
    let name: Vec<u8> = info
        .name
        .iter()
        .map(|letter| letter.cast_unsigned())
        .take_while(|byte| *byte != 0)
        .collect();
    let name = String::from_utf8_lossy(&name);
    Ok(Profile {
        id: info.id,
        // Some drivers put the word before it that nvidia-smi prints.
        name: Text::cut(name.trim_start_matches("MIG ")),
        compute_slices: info.sliceCount,
        multiprocessors: info.multiprocessorCount,
        memory: Bytes(info.memorySizeMB << 20),
        count_max: info.instanceCount,
        remaining: None,
        placements: Vec::new(),
    })
}

fn profile_of_old(device: &Device<'_>, number: u32) -> Result<Profile, Fault> {
    let info = device.profile_info(number)?;
    Ok(Profile {
        id: info.id,
        name: Text::default(),
        compute_slices: info.slice_count,
        multiprocessors: info.multiprocessor_count,
        memory: Bytes(info.memory_size_mb << 20),
        count_max: info.instance_count,
        remaining: None,
        placements: Vec::new(),
    })
}

/// Where a profile may begin.
pub(super) fn placements(device: &Device<'_>, profile: u32) -> Result<Vec<Placement>, Fault> {
    let lib = device.nvml().lib();
    let ask = symbol(&lib.nvmlDeviceGetGpuInstancePossiblePlacements_v2)
        .or_else(|_| symbol(&lib.nvmlDeviceGetGpuInstancePossiblePlacements))?;
    let mut count = 0;
    // SAFETY: without a place to write to, the library only counts.
    check(unsafe { ask(device.handle(), profile, ptr::null_mut(), &raw mut count) })?;
    let room = count.min(SLOTS);
    let empty = c::nvmlGpuInstancePlacement_t { start: 0, size: 0 };
    // As many as it counted, and more if between the two calls there were more.
    let mut places = vec![empty; (room + SLOTS) as usize];
    let mut count = room + SLOTS;
    // SAFETY: there is room for more placements than the library counted.
    check(unsafe {
        ask(
            device.handle(),
            profile,
            places.as_mut_ptr(),
            &raw mut count,
        )
    })?;
    let place = |found: &c::nvmlGpuInstancePlacement_t| Placement {
        start: found.start,
        size: found.size,
    };
    Ok(places.iter().take(count as usize).map(place).collect())
}

/// How many of a profile can still be made.
pub(super) fn remaining(device: &Device<'_>, profile: u32) -> Result<u32, Fault> {
    let ask = symbol(
        &device
            .nvml()
            .lib()
            .nvmlDeviceGetGpuInstanceRemainingCapacity,
    )?;
    let mut count = 0;
    // SAFETY: the device is this library's, and `count` is one number.
    check(unsafe { ask(device.handle(), profile, &raw mut count) })?;
    Ok(count)
}
