//! Calls through the library's own table of functions: those that the wrapper hides or gets wrong, and those
//! that an older driver knows under an older name. The only file with `unsafe` besides [`super::events`],
//! [`super::profiles`] and [`super::slices`].

use crate::fault::Fault;
use crate::sample::{Process, ProcessKind, RemappedRows};
use nvml_wrapper::Device;
use nvml_wrapper_sys::bindings as c;
use protocol::units::Bytes;
use std::ffi::c_uint;

/// What the library writes where a number is not available.
pub(super) const NONE_U32: u32 = u32::MAX;
const NONE_U64: u64 = u64::MAX;

/// Room for processes: more than a GPU has ever run.
const PROCESS_SLOTS: u32 = 512;

/// The function of that name, or that this driver does not have it.
pub(super) fn symbol<F: Copy, E>(found: &Result<F, E>) -> Result<F, Fault> {
    found.as_ref().copied().map_err(|_| Fault::NotSupported)
}

/// What a return code means.
pub(super) fn check(code: c::nvmlReturn_t) -> Result<(), Fault> {
    let fault = match code {
        c::nvmlReturn_enum_NVML_SUCCESS => return Ok(()),
        c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED
        | c::nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND => Fault::NotSupported,
        c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT => Fault::Refused {
            detail: "an argument of the call".to_owned(),
        },
        c::nvmlReturn_enum_NVML_ERROR_NO_PERMISSION => Fault::NoPermission,
        c::nvmlReturn_enum_NVML_ERROR_NOT_FOUND => Fault::NotFound,
        c::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED => Fault::DriverNotLoaded,
        c::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST => Fault::Lost,
        c::nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED => Fault::ResetRequired,
        c::nvmlReturn_enum_NVML_ERROR_IN_USE => Fault::InUse,
        c::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_RESOURCES => Fault::NoRoom,
        other => Fault::Other {
            detail: format!("code {other}"),
        },
    };
    Err(fault)
}

/// Total, reserved and used memory; what is reserved is known from R510 on.
pub(super) fn memory(device: &Device<'_>) -> Result<(Bytes, Option<Bytes>, Bytes), Fault> {
    match device.memory_info().map_err(Fault::from) {
        Ok(found) => Ok((
            Bytes(found.total),
            Some(Bytes(found.reserved)),
            Bytes(found.used),
        )),
        Err(Fault::NotSupported) => memory_of_old(device),
        Err(fault) => Err(fault),
    }
}

fn memory_of_old(device: &Device<'_>) -> Result<(Bytes, Option<Bytes>, Bytes), Fault> {
    let ask = symbol(&device.nvml().lib().nvmlDeviceGetMemoryInfo)?;
    let mut memory = c::nvmlMemory_t {
        total: 0,
        free: 0,
        used: 0,
    };
    // SAFETY: the handle is of a device of this library's, and `memory` is the structure it fills.
    check(unsafe { ask(device.handle(), &raw mut memory) })?;
    Ok((Bytes(memory.total), None, Bytes(memory.used)))
}

/// The clock event reasons, under either of their names.
pub(super) fn clock_reasons(device: &Device<'_>) -> Result<u64, Fault> {
    let lib = device.nvml().lib();
    let ask = symbol(&lib.nvmlDeviceGetCurrentClocksEventReasons)
        .or_else(|_| symbol(&lib.nvmlDeviceGetCurrentClocksThrottleReasons))?;
    let mut bits = 0;
    // SAFETY: the handle is of a device of this library's, and both names take a pointer to one u64.
    check(unsafe { ask(device.handle(), &raw mut bits) })?;
    Ok(bits)
}

/// Rows of memory that were replaced.
pub(super) fn remapped(device: &Device<'_>) -> Result<RemappedRows, Fault> {
    let ask = symbol(&device.nvml().lib().nvmlDeviceGetRemappedRows)?;
    let (mut corrected, mut uncorrected, mut pending, mut failed) = (0, 0, 0, 0);
    // SAFETY: the handle is of a device of this library's; the others point to one number each.
    check(unsafe {
        ask(
            device.handle(),
            &raw mut corrected,
            &raw mut uncorrected,
            &raw mut pending,
            &raw mut failed,
        )
    })?;
    Ok(RemappedRows {
        corrected,
        uncorrected,
        pending: pending != 0,
        failed: failed != 0,
    })
}

/// Everyone who uses the GPU. A driver that cannot list one kind of use is asked for the others.
pub(super) fn processes(device: &Device<'_>) -> Result<Vec<Process>, Fault> {
    let lib = device.nvml().lib();
    let compute = symbol(&lib.nvmlDeviceGetComputeRunningProcesses_v3)
        .or_else(|_| symbol(&lib.nvmlDeviceGetComputeRunningProcesses_v2));
    let graphics = symbol(&lib.nvmlDeviceGetGraphicsRunningProcesses_v3)
        .or_else(|_| symbol(&lib.nvmlDeviceGetGraphicsRunningProcesses_v2));
    let mps = symbol(&lib.nvmlDeviceGetMPSComputeRunningProcesses_v3)
        .or_else(|_| symbol(&lib.nvmlDeviceGetMPSComputeRunningProcesses_v2));
    let mut found = match compute {
        Ok(ask) => listed(device, ask, ProcessKind::Compute)?,
        Err(_) => listed_by_old(
            device,
            symbol(&lib.nvmlDeviceGetComputeRunningProcesses)?,
            ProcessKind::Compute,
        )?,
    };
    let graphics = match graphics {
        Ok(ask) => listed(device, ask, ProcessKind::Graphics),
        Err(_) => symbol(&lib.nvmlDeviceGetGraphicsRunningProcesses)
            .and_then(|ask| listed_by_old(device, ask, ProcessKind::Graphics)),
    };
    found.extend(supported(graphics)?);
    found.extend(supported(
        mps.and_then(|ask| listed(device, ask, ProcessKind::Mps)),
    )?);
    Ok(found)
}

fn supported(found: Result<Vec<Process>, Fault>) -> Result<Vec<Process>, Fault> {
    match found {
        Err(Fault::NotSupported) => Ok(Vec::new()),
        found => found,
    }
}

type ListProcesses = unsafe extern "C" fn(
    c::nvmlDevice_t,
    *mut c_uint,
    *mut c::nvmlProcessInfo_t,
) -> c::nvmlReturn_t;
type ListProcessesOld = unsafe extern "C" fn(
    c::nvmlDevice_t,
    *mut c_uint,
    *mut c::nvmlProcessInfo_v1_t,
) -> c::nvmlReturn_t;

fn listed(
    device: &Device<'_>,
    ask: ListProcesses,
    kind: ProcessKind,
) -> Result<Vec<Process>, Fault> {
    let empty = c::nvmlProcessInfo_t {
        pid: 0,
        usedGpuMemory: 0,
        gpuInstanceId: NONE_U32,
        computeInstanceId: NONE_U32,
    };
    let mut slots = vec![empty; PROCESS_SLOTS as usize];
    let mut count = PROCESS_SLOTS;
    // SAFETY: `slots` has as many places as `count` says, and the library writes no more.
    check(unsafe { ask(device.handle(), &raw mut count, slots.as_mut_ptr()) })?;
    let process = |found: &c::nvmlProcessInfo_t| Process {
        pid: found.pid,
        kind,
        memory: Some(found.usedGpuMemory)
            .filter(|bytes| *bytes != NONE_U64)
            .map(Bytes),
        gpu_instance: Some(found.gpuInstanceId).filter(|id| *id != NONE_U32),
        compute_instance: Some(found.computeInstanceId).filter(|id| *id != NONE_U32),
    };
    Ok(slots.iter().take(count as usize).map(process).collect())
}

fn listed_by_old(
    device: &Device<'_>,
    ask: ListProcessesOld,
    kind: ProcessKind,
) -> Result<Vec<Process>, Fault> {
    let empty = c::nvmlProcessInfo_v1_t {
        pid: 0,
        usedGpuMemory: 0,
    };
    let mut slots = vec![empty; PROCESS_SLOTS as usize];
    let mut count = PROCESS_SLOTS;
    // SAFETY: `slots` has as many places as `count` says, of the structure that this name is for.
    check(unsafe { ask(device.handle(), &raw mut count, slots.as_mut_ptr()) })?;
    let process = |found: &c::nvmlProcessInfo_v1_t| Process {
        pid: found.pid,
        kind,
        memory: Some(found.usedGpuMemory)
            .filter(|bytes| *bytes != NONE_U64)
            .map(Bytes),
        gpu_instance: None,
        compute_instance: None,
    };
    Ok(slots.iter().take(count as usize).map(process).collect())
}

/// What is at the other end of an NVLink link, by its place on the bus.
pub(super) fn remote_of_link(device: &Device<'_>, link: u32) -> Result<String, Fault> {
    let lib = device.nvml().lib();
    let ask = symbol(&lib.nvmlDeviceGetNvLinkRemotePciInfo_v2)
        .or_else(|_| symbol(&lib.nvmlDeviceGetNvLinkRemotePciInfo))?;
    let mut pci = c::nvmlPciInfo_t {
        busIdLegacy: [0; 16],
        domain: 0,
        bus: 0,
        device: 0,
        pciDeviceId: 0,
        pciSubSystemId: 0,
        busId: [0; 32],
    };
    // SAFETY: the handle is of a device of this library's, and `pci` is the structure that both names fill.
    check(unsafe { ask(device.handle(), link, &raw mut pci) })?;
    // Numbers rather than the texts: older drivers fill only the short one.
    Ok(format!(
        "{:08X}:{:02X}:{:02X}.0",
        pci.domain, pci.bus, pci.device
    ))
}
