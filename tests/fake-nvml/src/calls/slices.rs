//! MIG: modes, profiles, and the instances that programs make and destroy.

use super::{letters, put, put_all, supported};
use crate::scenario::{FakeGpu, Scenario};
use crate::state::Slice;
use crate::tables::{Row, Table};
use crate::world::{Answer, Code, Handle, call_for, with_state};
use nvml_wrapper_sys::bindings as c;
use std::ffi::c_uint;

fn table(gpu: &FakeGpu) -> Result<&'static Table, Code> {
    supported(gpu.mig_table.as_deref().and_then(Table::named))
}

pub(super) fn row(gpu: &FakeGpu, profile: u32) -> Result<&'static Row, Code> {
    let row = table(gpu)?.by_id(profile);
    row.ok_or(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMigMode(
    device: c::nvmlDevice_t,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> Code {
    call_for(
        "nvmlDeviceGetMigMode",
        Handle::of(device),
        |scenario, gpu| {
            table(gpu)?;
            let mode = with_state(scenario, |state| {
                let divided = state.of(&gpu.uuid);
                (divided.current, divided.pending)
            })?;
            put(current, u32::from(mode.0))?;
            put(pending, u32::from(mode.1))
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceSetMigMode(
    device: c::nvmlDevice_t,
    mode: c_uint,
    activation: *mut Code,
) -> Code {
    call_for(
        "nvmlDeviceSetMigMode",
        Handle::of(device),
        |scenario, gpu| {
            table(gpu)?;
            let code = with_state(scenario, |state| {
                let divided = state.of(&gpu.uuid);
                if !divided.instances.is_empty() || !gpu.processes.is_empty() {
                    return c::nvmlReturn_enum_NVML_ERROR_IN_USE;
                }
                divided.pending = mode == c::NVML_DEVICE_MIG_ENABLE;
                if let Some(code) = gpu.mig_pending_code {
                    return code;
                }
                divided.current = divided.pending;
                c::nvmlReturn_enum_NVML_SUCCESS
            })?;
            put(activation, code)
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstanceProfileInfo(
    device: c::nvmlDevice_t,
    number: c_uint,
    to: *mut c::nvmlGpuInstanceProfileInfo_t,
) -> Code {
    let name = "nvmlDeviceGetGpuInstanceProfileInfo";
    call_for(name, Handle::of(device), |_, gpu| {
        let row = supported(table(gpu)?.numbered(number))?;
        put(
            to,
            c::nvmlGpuInstanceProfileInfo_t {
                id: row.profile_id,
                isP2pSupported: 0,
                sliceCount: row.compute_slices,
                instanceCount: row.max_instances,
                multiprocessorCount: row.sm,
                copyEngineCount: row.compute_slices,
                decoderCount: 0,
                encoderCount: 0,
                jpegCount: 0,
                ofaCount: 0,
                memorySizeMB: row.memory_mib,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstanceProfileInfoV(
    device: c::nvmlDevice_t,
    number: c_uint,
    to: *mut c::nvmlGpuInstanceProfileInfo_v2_t,
) -> Code {
    let name = "nvmlDeviceGetGpuInstanceProfileInfoV";
    call_for(name, Handle::of(device), |_, gpu| {
        let row = supported(table(gpu)?.numbered(number))?;
        if to.is_null() {
            return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
        }
        // SAFETY: not null, and by the library's contract a structure whose version the caller wrote.
        let version = unsafe { (*to).version };
        let size = u32::try_from(size_of::<c::nvmlGpuInstanceProfileInfo_v2_t>()).unwrap_or(0);
        if version != size | 2 << 24 {
            return Err(c::nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        }
        put(
            to,
            c::nvmlGpuInstanceProfileInfo_v2_t {
                version,
                id: row.profile_id,
                isP2pSupported: 0,
                sliceCount: row.compute_slices,
                instanceCount: row.max_instances,
                multiprocessorCount: row.sm,
                copyEngineCount: row.compute_slices,
                decoderCount: 0,
                encoderCount: 0,
                jpegCount: 0,
                ofaCount: 0,
                memorySizeMB: row.memory_mib,
                name: letters(&format!("MIG {}", row.name)),
            },
        )
    })
}

macro_rules! placements {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            device: c::nvmlDevice_t,
            profile: c_uint,
            to: *mut c::nvmlGpuInstancePlacement_t,
            count: *mut c_uint,
        ) -> Code {
            call_for(stringify!($name), Handle::of(device), |_, gpu| {
                let row = row(gpu, profile)?;
                let place = |start: &u32| c::nvmlGpuInstancePlacement_t { start: *start, size: row.mem_slices };
                put_all(to, count, row.placements.iter().map(place).collect())
            })
        }
    )*};
}
placements! { nvmlDeviceGetGpuInstancePossiblePlacements nvmlDeviceGetGpuInstancePossiblePlacements_v2 }

/// Looks at how a GPU that is divided is divided, or changes it.
pub(super) fn divided<T>(
    scenario: &Scenario,
    gpu: &FakeGpu,
    look: impl FnOnce(&mut crate::state::Divided) -> Result<T, Code>,
) -> Result<T, Code> {
    with_state(scenario, |state| {
        let divided = state.of(&gpu.uuid);
        if !divided.current {
            return Err(c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED);
        }
        look(divided)
    })?
}

pub(super) fn slice_of(slices: &mut [Slice], instance: Option<u32>) -> Result<&mut Slice, Code> {
    slices
        .iter_mut()
        .find(|slice| Some(slice.id) == instance)
        .ok_or(c::nvmlReturn_enum_NVML_ERROR_NOT_FOUND)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstanceRemainingCapacity(
    device: c::nvmlDevice_t,
    profile: c_uint,
    to: *mut c_uint,
) -> Code {
    let name = "nvmlDeviceGetGpuInstanceRemainingCapacity";
    call_for(name, Handle::of(device), |scenario, gpu| {
        let (table, row) = (table(gpu)?, row(gpu, profile)?);
        let count = divided(scenario, gpu, |divided| {
            let mut trial = divided.clone();
            let cuts = row.placements.iter().rev();
            Ok(cuts
                .filter_map(|start| trial.cut(table, row, *start))
                .count())
        })?;
        put(to, u32::try_from(count).unwrap_or(u32::MAX))
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceCreateGpuInstance(
    device: c::nvmlDevice_t,
    profile: c_uint,
    to: *mut c::nvmlGpuInstance_t,
) -> Code {
    let handle = Handle::of(device);
    call_for("nvmlDeviceCreateGpuInstance", handle, |scenario, gpu| {
        // The driver's own preference is the last place that is free.
        let starts = row(gpu, profile)?.placements.iter().rev().copied();
        cut(
            scenario,
            gpu,
            profile,
            &starts.collect::<Vec<_>>(),
            handle,
            to,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceCreateGpuInstanceWithPlacement(
    device: c::nvmlDevice_t,
    profile: c_uint,
    place: *const c::nvmlGpuInstancePlacement_t,
    to: *mut c::nvmlGpuInstance_t,
) -> Code {
    let handle = Handle::of(device);
    let name = "nvmlDeviceCreateGpuInstanceWithPlacement";
    call_for(name, handle, |scenario, gpu| {
        if place.is_null() {
            return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
        }
        // SAFETY: not null, and by the library's contract one placement.
        let place = unsafe { *place };
        let row = row(gpu, profile)?;
        if !row.placements.contains(&place.start) || place.size != row.mem_slices {
            return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
        }
        cut(scenario, gpu, profile, &[place.start], handle, to)
    })
}

fn cut(
    scenario: &Scenario,
    gpu: &FakeGpu,
    profile: u32,
    starts: &[u32],
    handle: Handle,
    to: *mut c::nvmlGpuInstance_t,
) -> Answer {
    let (table, row) = (table(gpu)?, row(gpu, profile)?);
    let id = divided(scenario, gpu, |divided| {
        let made = starts
            .iter()
            .find_map(|start| divided.cut(table, row, *start));
        made.ok_or(c::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_RESOURCES)
    })?;
    let instance = Handle {
        instance: Some(id),
        ..handle
    };
    put(to, instance.pointer())
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpuInstanceDestroy(instance: c::nvmlGpuInstance_t) -> Code {
    let handle = Handle::of(instance);
    call_for("nvmlGpuInstanceDestroy", handle, |scenario, gpu| {
        divided(scenario, gpu, |divided| {
            let slice = slice_of(&mut divided.instances, handle.instance)?;
            if !slice.compute.is_empty() {
                return Err(c::nvmlReturn_enum_NVML_ERROR_IN_USE);
            }
            divided
                .instances
                .retain(|slice| Some(slice.id) != handle.instance);
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstances(
    device: c::nvmlDevice_t,
    profile: c_uint,
    to: *mut c::nvmlGpuInstance_t,
    count: *mut c_uint,
) -> Code {
    let handle = Handle::of(device);
    call_for("nvmlDeviceGetGpuInstances", handle, |scenario, gpu| {
        row(gpu, profile)?;
        let ids = divided(scenario, gpu, |divided| {
            let of_profile = divided
                .instances
                .iter()
                .filter(|slice| slice.profile == profile);
            Ok(of_profile.map(|slice| slice.id).collect::<Vec<_>>())
        })?;
        let handles = ids.into_iter().map(|id| Handle {
            instance: Some(id),
            ..handle
        });
        put_all(to, count, handles.map(Handle::pointer).collect())
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstanceById(
    device: c::nvmlDevice_t,
    id: c_uint,
    to: *mut c::nvmlGpuInstance_t,
) -> Code {
    let instance = Handle {
        instance: Some(id),
        ..Handle::of(device)
    };
    call_for("nvmlDeviceGetGpuInstanceById", instance, |scenario, gpu| {
        divided(scenario, gpu, |divided| {
            slice_of(&mut divided.instances, Some(id)).map(|_| ())
        })?;
        put(to, instance.pointer())
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpuInstanceGetInfo(
    instance: c::nvmlGpuInstance_t,
    to: *mut c::nvmlGpuInstanceInfo_t,
) -> Code {
    let handle = Handle::of(instance);
    call_for("nvmlGpuInstanceGetInfo", handle, |scenario, gpu| {
        let slice = divided(scenario, gpu, |divided| {
            slice_of(&mut divided.instances, handle.instance).cloned()
        })?;
        put(
            to,
            c::nvmlGpuInstanceInfo_t {
                device: Handle::of_gpu(handle.gpu).pointer(),
                id: slice.id,
                profileId: slice.profile,
                placement: c::nvmlGpuInstancePlacement_t {
                    start: slice.start,
                    size: row(gpu, slice.profile)?.mem_slices,
                },
            },
        )
    })
}
