//! Compute instances, and the devices that programs see of them.

use super::slices::{divided, row, slice_of};
use super::{put, put_all, supported};
use crate::scenario::{FakeGpu, Scenario};
use crate::world::{Code, Handle, call_for};
use nvml_wrapper_sys::bindings as c;
use std::ffi::c_uint;

/// Slices of the library's numbers of compute profiles, from 0; the last is the second of one slice. Here the
/// numbers are the profiles' ids too.
const COMPUTE_SLICES: [u32; 8] = [1, 2, 3, 4, 7, 8, 6, 1];

/// The slices of a compute profile that fits into a GPU instance.
fn slices_of(
    scenario: &Scenario,
    gpu: &FakeGpu,
    instance: Option<u32>,
    profile: u32,
) -> Result<u32, Code> {
    let slice = divided(scenario, gpu, |divided| {
        slice_of(&mut divided.instances, instance).cloned()
    })?;
    let most = row(gpu, slice.profile)?.compute_slices;
    let number = usize::try_from(profile).ok();
    let slices = number.and_then(|number| COMPUTE_SLICES.get(number));
    supported(slices.copied().filter(|slices| *slices <= most))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpuInstanceGetComputeInstanceProfileInfo(
    instance: c::nvmlGpuInstance_t,
    number: c_uint,
    _engines: c_uint,
    to: *mut c::nvmlComputeInstanceProfileInfo_t,
) -> Code {
    let handle = Handle::of(instance);
    let name = "nvmlGpuInstanceGetComputeInstanceProfileInfo";
    call_for(name, handle, |scenario, gpu| {
        let slices = slices_of(scenario, gpu, handle.instance, number)?;
        put(
            to,
            c::nvmlComputeInstanceProfileInfo_t {
                id: number,
                sliceCount: slices,
                instanceCount: 1,
                multiprocessorCount: 0,
                sharedCopyEngineCount: 1,
                sharedDecoderCount: 0,
                sharedEncoderCount: 0,
                sharedJpegCount: 0,
                sharedOfaCount: 0,
            },
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpuInstanceCreateComputeInstance(
    instance: c::nvmlGpuInstance_t,
    profile: c_uint,
    to: *mut c::nvmlComputeInstance_t,
) -> Code {
    let handle = Handle::of(instance);
    let name = "nvmlGpuInstanceCreateComputeInstance";
    call_for(name, handle, |scenario, gpu| {
        let slices = slices_of(scenario, gpu, handle.instance, profile)?;
        let id = divided(scenario, gpu, |divided| {
            let slice = slice_of(&mut divided.instances, handle.instance)?;
            let most = row(gpu, slice.profile)?.compute_slices;
            let used = slice.compute.iter().filter_map(|(_, profile)| {
                let number = usize::try_from(*profile).ok()?;
                COMPUTE_SLICES.get(number)
            });
            if used.sum::<u32>() + slices > most {
                return Err(c::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_RESOURCES);
            }
            let id = (0..).find(|id| slice.compute.iter().all(|(other, _)| other != id));
            let id = id.ok_or(c::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_RESOURCES)?;
            slice.compute.push((id, profile));
            Ok(id)
        })?;
        let compute = Handle {
            compute: Some(id),
            ..handle
        };
        put(to, compute.pointer())
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlComputeInstanceDestroy(compute: c::nvmlComputeInstance_t) -> Code {
    let handle = Handle::of(compute);
    call_for("nvmlComputeInstanceDestroy", handle, |scenario, gpu| {
        let mut users = gpu.processes.iter();
        if users.any(|process| process.gpu_instance == handle.instance) {
            return Err(c::nvmlReturn_enum_NVML_ERROR_IN_USE);
        }
        divided(scenario, gpu, |divided| {
            let slice = slice_of(&mut divided.instances, handle.instance)?;
            slice.compute.retain(|(id, _)| Some(*id) != handle.compute);
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpuInstanceGetComputeInstances(
    instance: c::nvmlGpuInstance_t,
    profile: c_uint,
    to: *mut c::nvmlComputeInstance_t,
    count: *mut c_uint,
) -> Code {
    let handle = Handle::of(instance);
    let name = "nvmlGpuInstanceGetComputeInstances";
    call_for(name, handle, |scenario, gpu| {
        let slice = divided(scenario, gpu, |divided| {
            slice_of(&mut divided.instances, handle.instance).cloned()
        })?;
        let of_profile = slice.compute.iter().filter(|(_, other)| *other == profile);
        let handles = of_profile.map(|(id, _)| Handle {
            compute: Some(*id),
            ..handle
        });
        put_all(to, count, handles.map(Handle::pointer).collect())
    })
}

macro_rules! infos {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            compute: c::nvmlComputeInstance_t,
            to: *mut c::nvmlComputeInstanceInfo_t,
        ) -> Code {
            let handle = Handle::of(compute);
            call_for(stringify!($name), handle, |scenario, gpu| {
                put(to, info(scenario, gpu, handle)?)
            })
        }
    )*};
}
infos! { nvmlComputeInstanceGetInfo nvmlComputeInstanceGetInfo_v2 }

fn info(
    scenario: &Scenario,
    gpu: &FakeGpu,
    handle: Handle,
) -> Result<c::nvmlComputeInstanceInfo_t, Code> {
    let slice = divided(scenario, gpu, |divided| {
        slice_of(&mut divided.instances, handle.instance).cloned()
    })?;
    let known = slice
        .compute
        .iter()
        .find(|(id, _)| Some(*id) == handle.compute);
    let (id, profile) = known.ok_or(c::nvmlReturn_enum_NVML_ERROR_NOT_FOUND)?;
    let instance = Handle {
        compute: None,
        ..handle
    };
    Ok(c::nvmlComputeInstanceInfo_t {
        device: Handle::of_gpu(handle.gpu).pointer(),
        gpuInstance: instance.pointer(),
        id: *id,
        profileId: *profile,
        placement: c::nvmlComputeInstancePlacement_t {
            start: 0,
            size: slices_of(scenario, gpu, handle.instance, *profile)?,
        },
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMaxMigDeviceCount(device: c::nvmlDevice_t, to: *mut c_uint) -> Code {
    let name = "nvmlDeviceGetMaxMigDeviceCount";
    call_for(name, Handle::of(device), |_, gpu| {
        // Seven, where it can be divided: the most there can be, not those that are.
        put(to, gpu.mig_table.as_ref().map_or(0, |_| 7))
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    device: c::nvmlDevice_t,
    index: c_uint,
    to: *mut c::nvmlDevice_t,
) -> Code {
    let handle = Handle::of(device);
    let name = "nvmlDeviceGetMigDeviceHandleByIndex";
    call_for(name, handle, |scenario, gpu| {
        let slices = divided(scenario, gpu, |divided| Ok(divided.instances.clone()))?;
        let mut devices = slices.iter().flat_map(|slice| {
            let ids = slice.compute.iter();
            ids.map(move |(id, _)| Handle {
                instance: Some(slice.id),
                compute: Some(*id),
                ..handle
            })
        });
        let found = usize::try_from(index).ok().and_then(|at| devices.nth(at));
        let found = found.ok_or(c::nvmlReturn_enum_NVML_ERROR_NOT_FOUND)?;
        put(to, found.pointer())
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceIsMigDeviceHandle(device: c::nvmlDevice_t, to: *mut c_uint) -> Code {
    let handle = Handle::of(device);
    call_for("nvmlDeviceIsMigDeviceHandle", handle, |_, _| {
        put(to, u32::from(handle.instance.is_some()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(
    device: c::nvmlDevice_t,
    to: *mut c::nvmlDevice_t,
) -> Code {
    let handle = Handle::of(device);
    let name = "nvmlDeviceGetDeviceHandleFromMigDeviceHandle";
    call_for(name, handle, |_, _| {
        put(to, Handle::of_gpu(handle.gpu).pointer())
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstanceId(device: c::nvmlDevice_t, to: *mut c_uint) -> Code {
    let handle = Handle::of(device);
    call_for("nvmlDeviceGetGpuInstanceId", handle, |_, _| {
        put(to, supported(handle.instance)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetComputeInstanceId(device: c::nvmlDevice_t, to: *mut c_uint) -> Code {
    let handle = Handle::of(device);
    call_for("nvmlDeviceGetComputeInstanceId", handle, |_, _| {
        put(to, supported(handle.compute)?)
    })
}
