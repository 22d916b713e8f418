//! What a GPU is.

use super::{letters, put, put_text, supported, values};
use crate::scenario::{FakeGpu, Scenario};
use crate::world::{Code, Handle, call_for};
use nvml_wrapper_sys::bindings as c;
use std::ffi::{c_char, c_int, c_uint};

values! {
    nvmlDeviceGetMinorNumber() -> c_uint = |gpu| Ok(gpu.minor);
    nvmlDeviceGetNumGpuCores() -> c_uint = |gpu| Ok(gpu.cores);
    nvmlDeviceGetMemoryBusWidth() -> c_uint = |gpu| Ok(gpu.memory_bus_bits);
    nvmlDeviceGetMaxPcieLinkGeneration() -> c_uint = |gpu| Ok(gpu.pcie_max.0);
    nvmlDeviceGetMaxPcieLinkWidth() -> c_uint = |gpu| Ok(gpu.pcie_max.1);
    nvmlDeviceGetCurrPcieLinkGeneration() -> c_uint = |gpu| Ok(gpu.pcie.0);
    nvmlDeviceGetCurrPcieLinkWidth() -> c_uint = |gpu| Ok(gpu.pcie.1);
    nvmlDeviceGetPcieReplayCounter() -> c_uint = |gpu| Ok(gpu.pcie_replays);
    nvmlDeviceGetEnforcedPowerLimit() -> c_uint = |gpu| Ok(gpu.power_limit_mw);
    nvmlDeviceGetDisplayActive() -> c::nvmlEnableState_t = |gpu| Ok(u32::from(gpu.display_active));
    nvmlDeviceGetPersistenceMode() -> c::nvmlEnableState_t = |gpu| Ok(u32::from(gpu.persistence));
    nvmlDeviceGetMaxClockInfo(domain: c::nvmlClockType_t) -> c_uint
        = |gpu| clock(domain, gpu.clocks_max_mhz);
    nvmlDeviceGetClockInfo(domain: c::nvmlClockType_t) -> c_uint
        = |gpu| clock(domain, gpu.clocks_mhz);
    nvmlDeviceGetNvLinkState(link: c_uint) -> c::nvmlEnableState_t
        = |gpu| link_of(gpu, link).map(|bus| u32::from(bus.is_some()));
    nvmlDeviceGetNvLinkVersion(link: c_uint) -> c_uint = |gpu| link_of(gpu, link).map(|_| 4);
    nvmlDeviceGetNvLinkRemotePciInfo_v2(link: c_uint) -> c::nvmlPciInfo_t = |gpu| remote(gpu, link);
    nvmlDeviceGetNvLinkRemotePciInfo(link: c_uint) -> c::nvmlPciInfo_t = |gpu| remote(gpu, link);
    nvmlDeviceGetPciInfo_v3() -> c::nvmlPciInfo_t = |gpu| Ok(pci(gpu.bus, gpu.pci_device));
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetName(device: c::nvmlDevice_t, to: *mut c_char, length: c_uint) -> Code {
    call_for("nvmlDeviceGetName", Handle::of(device), |_, gpu| {
        put_text(to, length, &gpu.name)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetUUID(device: c::nvmlDevice_t, to: *mut c_char, length: c_uint) -> Code {
    let handle = Handle::of(device);
    call_for("nvmlDeviceGetUUID", handle, |scenario, gpu| {
        put_text(to, length, &uuid(scenario, gpu, handle))
    })
}

/// First driver that gives slices UUIDs of their own; before they were told by their GPU's and their numbers in it.
const OWN_UUIDS: u32 = 470;

/// A slice's UUID is made of its GPU's and its place, so that a slice made again has the same.
fn uuid(scenario: &Scenario, gpu: &FakeGpu, handle: Handle) -> String {
    let driver = scenario.driver.as_deref().unwrap_or_default();
    let driver = driver.split('.').next().and_then(|text| text.parse().ok());
    match (handle.instance, handle.compute) {
        (Some(instance), Some(compute)) if driver.is_some_and(|it: u32| it < OWN_UUIDS) => {
            format!("MIG-{}/{instance}/{compute}", gpu.uuid)
        }
        (Some(instance), Some(compute)) => {
            let tail = gpu.uuid.rsplit('-').next().unwrap_or_default();
            format!("MIG-{instance:08x}-{compute:04x}-5000-8000-{tail}")
        }
        (None | Some(_), None) | (None, Some(_)) => gpu.uuid.clone(),
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetSerial(
    device: c::nvmlDevice_t,
    to: *mut c_char,
    length: c_uint,
) -> Code {
    call_for("nvmlDeviceGetSerial", Handle::of(device), |_, gpu| {
        // Cards for players have none.
        supported(gpu.mig_table.as_ref())?;
        put_text(to, length, &format!("16500{:08}", gpu.bus))
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCudaComputeCapability(
    device: c::nvmlDevice_t,
    major: *mut c_int,
    minor: *mut c_int,
) -> Code {
    let name = "nvmlDeviceGetCudaComputeCapability";
    call_for(name, Handle::of(device), |_, gpu| {
        put(major, gpu.compute_capability.0)?;
        put(minor, gpu.compute_capability.1)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPowerManagementLimitConstraints(
    device: c::nvmlDevice_t,
    least: *mut c_uint,
    most: *mut c_uint,
) -> Code {
    let name = "nvmlDeviceGetPowerManagementLimitConstraints";
    call_for(name, Handle::of(device), |_, gpu| {
        put(least, gpu.power_limit_mw / 2)?;
        put(most, gpu.power_limit_mw)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetEccMode(
    device: c::nvmlDevice_t,
    current: *mut c::nvmlEnableState_t,
    pending: *mut c::nvmlEnableState_t,
) -> Code {
    call_for("nvmlDeviceGetEccMode", Handle::of(device), |_, gpu| {
        let ecc = supported(gpu.ecc)?;
        put(current, u32::from(ecc))?;
        put(pending, u32::from(ecc))
    })
}

fn clock(domain: c::nvmlClockType_t, clocks: (u32, u32)) -> Result<c_uint, Code> {
    match domain {
        c::nvmlClockType_enum_NVML_CLOCK_GRAPHICS | c::nvmlClockType_enum_NVML_CLOCK_SM => {
            Ok(clocks.0)
        }
        c::nvmlClockType_enum_NVML_CLOCK_MEM => Ok(clocks.1),
        _ => Err(c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED),
    }
}

/// The bus at the other end of a link; nothing when it is down. A GPU without links has none that is down.
fn link_of(gpu: &FakeGpu, link: c_uint) -> Result<Option<u32>, Code> {
    if gpu.links.is_empty() {
        return Err(c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED);
    }
    if link >= c::NVML_NVLINK_MAX_LINKS {
        return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
    }
    let up = gpu.links.iter().find(|(number, _)| *number == link);
    Ok(up.map(|(_, bus)| *bus))
}

fn remote(gpu: &FakeGpu, link: c_uint) -> Result<c::nvmlPciInfo_t, Code> {
    let bus = supported(link_of(gpu, link)?)?;
    Ok(pci(bus, 0))
}

fn pci(bus: u32, device: u32) -> c::nvmlPciInfo_t {
    c::nvmlPciInfo_t {
        busIdLegacy: letters(&format!("0000:{bus:02X}:00.0")),
        domain: 0,
        bus,
        device: 0,
        pciDeviceId: device,
        pciSubSystemId: device,
        busId: letters(&format!("00000000:{bus:02X}:00.0")),
    }
}
