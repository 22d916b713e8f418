//! MIG through the library's own table: the wrapper creates nothing, and its list of placements is empty.

use super::Library;
use super::profiles::{placements, profile, remaining};
use super::raw::{check, symbol};
use crate::fault::Fault;
use crate::slices::{Capabilities, ComputeInstance, Instance, MigMode, Placement, Profile};
use nvml_wrapper::Device;
use nvml_wrapper_sys::bindings as c;
use protocol::bounded::Text;
use std::fs;
use std::ptr;

/// Most instances of one GPU: twice what any has.
const SLOTS: u32 = 32;
/// Compute instances share the engines of their GPU instance; the library knows no other way.
const SHARED_ENGINES: u32 = 0;

impl Library {
    /// Whether the GPU at `pci` is divided.
    ///
    /// # Errors
    /// [`Fault::NotSupported`] when it cannot be.
    pub fn mig_mode(&self, pci: &str) -> Result<MigMode, Fault> {
        let found = self.device(pci)?.mig_mode()?;
        Ok(MigMode {
            current: found.current != 0,
            pending: found.pending != 0,
        })
    }

    /// Divides the GPU at `pci`, or makes it whole. Ampere resets for it, which takes seconds and an idle GPU.
    ///
    /// # Errors
    /// When it is in use, or has to be reset first; the mode is then only pending.
    pub fn set_mig_mode(&self, pci: &str, divided: bool) -> Result<MigMode, Fault> {
        let activation = self.device(pci)?.set_mig_mode(divided)?;
        check(activation)?;
        // Minor numbers and handles may have changed with it: everything is asked anew.
        self.mig_mode(pci)
    }

    /// The profiles that this GPU can be cut into, also while it is whole.
    ///
    /// # Errors
    /// When the GPU cannot be divided, or is lost.
    pub fn profiles(&self, pci: &str) -> Result<Vec<Profile>, Fault> {
        let device = self.device(pci)?;
        let mut profiles = Vec::new();
        for number in 0..c::NVML_GPU_INSTANCE_PROFILE_COUNT {
            let mut profile = match profile(&device, number) {
                Ok(profile) => profile,
                Err(Fault::NotSupported | Fault::Refused { .. }) => continue,
                Err(fault) => return Err(fault),
            };
            profile.placements = placements(&device, profile.id)?;
            profile.remaining = remaining(&device, profile.id).ok();
            profiles.push(profile);
        }
        if profiles.is_empty() {
            return Err(Fault::NotSupported);
        }
        Ok(profiles)
    }

    /// The instances that exist.
    ///
    /// # Errors
    /// When the GPU cannot be divided, or is lost. A whole GPU has none.
    pub fn instances(&self, pci: &str) -> Result<Vec<Instance>, Fault> {
        if !self.mig_mode(pci)?.current {
            return Ok(Vec::new());
        }
        let device = self.device(pci)?;
        let mut instances = Vec::new();
        for number in 0..c::NVML_GPU_INSTANCE_PROFILE_COUNT {
            let Ok(profile) = profile(&device, number) else {
                continue;
            };
            for handle in instances_of(&device, profile.id)? {
                instances.push(self.instance(&device, handle)?);
            }
        }
        instances.sort_by_key(|instance: &Instance| instance.gpu_instance);
        instances.dedup_by_key(|instance| instance.gpu_instance);
        Ok(instances)
    }

    /// Creates an instance of `profile` at `start` with one compute instance over all of it. When the second
    /// step fails the first is undone.
    ///
    /// # Errors
    /// [`Fault::NoRoom`] when something is there already, [`Fault::Refused`] for a place that the profile
    /// does not have.
    pub fn create_instance(&self, pci: &str, profile: u32, start: u32) -> Result<Instance, Fault> {
        let device = self.device(pci)?;
        let places = placements(&device, profile)?;
        let place = places.iter().find(|place| place.start == start);
        let Some(place) = place else {
            return Err(Fault::Refused {
                detail: format!("profile {profile} cannot begin at memory slice {start}"),
            });
        };
        let create = symbol(&device.nvml().lib().nvmlDeviceCreateGpuInstanceWithPlacement)?;
        let wanted = c::nvmlGpuInstancePlacement_t {
            start: place.start,
            size: place.size,
        };
        let mut handle: c::nvmlGpuInstance_t = ptr::null_mut();
        // SAFETY: the device is this library's; `wanted` is read and `handle` written before the call returns.
        check(unsafe { create(device.handle(), profile, &raw const wanted, &raw mut handle) })?;
        if let Err(fault) = self.fill(&device, handle) {
            let destroy = symbol(&device.nvml().lib().nvmlGpuInstanceDestroy)?;
            // SAFETY: the handle is of the instance that was just made, and nothing is in it.
            check(unsafe { destroy(handle) })?;
            return Err(fault);
        }
        self.instance(&device, handle)
    }

    /// Destroys a GPU instance with what is in it.
    ///
    /// # Errors
    /// [`Fault::InUse`] while a process runs in it, [`Fault::NotFound`] when it is not there.
    pub fn destroy_instance(&self, pci: &str, gpu_instance: u32) -> Result<(), Fault> {
        let device = self.device(pci)?;
        let lib = device.nvml().lib();
        let find = symbol(&lib.nvmlDeviceGetGpuInstanceById)?;
        let mut handle: c::nvmlGpuInstance_t = ptr::null_mut();
        // SAFETY: the device is this library's, and `handle` is written before the call returns.
        check(unsafe { find(device.handle(), gpu_instance, &raw mut handle) })?;
        let destroy_compute = symbol(&lib.nvmlComputeInstanceDestroy)?;
        for compute in compute_instances(&device, handle)? {
            // SAFETY: the handle was listed by the library for an instance that nobody else destroys.
            check(unsafe { destroy_compute(compute) })?;
        }
        let destroy = symbol(&lib.nvmlGpuInstanceDestroy)?;
        // SAFETY: the handle was found by the library above; its compute instances are gone.
        check(unsafe { destroy(handle) })
    }

    /// One compute instance over all of a GPU instance.
    fn fill(&self, device: &Device<'_>, handle: c::nvmlGpuInstance_t) -> Result<(), Fault> {
        let largest = compute_profiles(device, handle)?
            .into_iter()
            .max_by_key(|(_, slices)| *slices);
        let (profile, _) = largest.ok_or(Fault::NotSupported)?;
        let create = symbol(&self.nvml.lib().nvmlGpuInstanceCreateComputeInstance)?;
        let mut compute: c::nvmlComputeInstance_t = ptr::null_mut();
        // SAFETY: the GPU instance is this library's, and `compute` is written before the call returns.
        check(unsafe { create(handle, profile, &raw mut compute) })
    }

    fn instance(
        &self,
        device: &Device<'_>,
        handle: c::nvmlGpuInstance_t,
    ) -> Result<Instance, Fault> {
        let ask = symbol(&self.nvml.lib().nvmlGpuInstanceGetInfo)?;
        let mut info = c::nvmlGpuInstanceInfo_t {
            device: ptr::null_mut(),
            id: 0,
            profileId: 0,
            placement: c::nvmlGpuInstancePlacement_t { start: 0, size: 0 },
        };
        // SAFETY: the handle is an instance of this library's, and `info` the structure it fills.
        check(unsafe { ask(handle, &raw mut info) })?;
        let compute = match compute_instances(device, handle)?.first() {
            Some(compute) => Some(self.compute(device, info.id, *compute)?),
            None => None,
        };
        Ok(Instance {
            gpu_instance: info.id,
            profile: info.profileId,
            placement: Placement {
                start: info.placement.start,
                size: info.placement.size,
            },
            compute,
        })
    }

    fn compute(
        &self,
        device: &Device<'_>,
        gpu_instance: u32,
        handle: c::nvmlComputeInstance_t,
    ) -> Result<ComputeInstance, Fault> {
        let lib = self.nvml.lib();
        let ask = symbol(&lib.nvmlComputeInstanceGetInfo_v2)
            .or_else(|_| symbol(&lib.nvmlComputeInstanceGetInfo))?;
        let mut info = c::nvmlComputeInstanceInfo_t {
            device: ptr::null_mut(),
            gpuInstance: ptr::null_mut(),
            id: 0,
            profileId: 0,
            placement: c::nvmlComputeInstancePlacement_t { start: 0, size: 0 },
        };
        // SAFETY: the handle is an instance of this library's; both names fill this structure or its beginning.
        check(unsafe { ask(handle, &raw mut info) })?;
        Ok(ComputeInstance {
            id: info.id,
            uuid: uuid_of(device, gpu_instance, info.id),
            capabilities: self.capabilities(device, gpu_instance, info.id),
        })
    }

    fn capabilities(
        &self,
        device: &Device<'_>,
        gpu_instance: u32,
        compute_instance: u32,
    ) -> Option<Capabilities> {
        let gpu = device.minor_number().ok()?;
        let text = fs::read_to_string(&self.mig_minors).ok()?;
        minors(&text, gpu, gpu_instance, compute_instance)
    }
}

/// The minor numbers of a slice in the text of `/proc/driver/nvidia-caps/mig-minors`, whose lines are like
/// `gpu0/gi1/ci0/access 13`.
#[must_use]
pub(crate) fn minors(
    text: &str,
    gpu: u32,
    gpu_instance: u32,
    compute_instance: u32,
) -> Option<Capabilities> {
    let minor = |name: String| {
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .find(|(key, _)| *key == name)
            .and_then(|(_, minor)| minor.trim().parse().ok())
    };
    Some(Capabilities {
        gpu_instance_minor: minor(format!("gpu{gpu}/gi{gpu_instance}/access"))?,
        compute_instance_minor: minor(format!(
            "gpu{gpu}/gi{gpu_instance}/ci{compute_instance}/access"
        ))?,
    })
}

fn instances_of(device: &Device<'_>, profile: u32) -> Result<Vec<c::nvmlGpuInstance_t>, Fault> {
    let ask = symbol(&device.nvml().lib().nvmlDeviceGetGpuInstances)?;
    let mut handles: Vec<c::nvmlGpuInstance_t> = vec![ptr::null_mut(); SLOTS as usize];
    let mut count = SLOTS;
    // SAFETY: there is room for more instances than a GPU can have.
    check(unsafe {
        ask(
            device.handle(),
            profile,
            handles.as_mut_ptr(),
            &raw mut count,
        )
    })?;
    handles.truncate(count as usize);
    Ok(handles)
}

/// The profiles of compute instances in a GPU instance, by id and slices.
fn compute_profiles(
    device: &Device<'_>,
    handle: c::nvmlGpuInstance_t,
) -> Result<Vec<(u32, u32)>, Fault> {
    let lib = device.nvml().lib();
    let ask = symbol(&lib.nvmlGpuInstanceGetComputeInstanceProfileInfo)?;
    let mut found = Vec::new();
    for number in 0..c::NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1 {
        let mut info = c::nvmlComputeInstanceProfileInfo_t {
            id: 0,
            sliceCount: 0,
            instanceCount: 0,
            multiprocessorCount: 0,
            sharedCopyEngineCount: 0,
            sharedDecoderCount: 0,
            sharedEncoderCount: 0,
            sharedJpegCount: 0,
            sharedOfaCount: 0,
        };
        // SAFETY: the handle is an instance of this library's, and `info` the structure it fills.
        let code = unsafe { ask(handle, number, SHARED_ENGINES, &raw mut info) };
        match check(code) {
            Ok(()) => found.push((info.id, info.sliceCount)),
            Err(Fault::NotSupported | Fault::Refused { .. }) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(found)
}

fn compute_instances(
    device: &Device<'_>,
    handle: c::nvmlGpuInstance_t,
) -> Result<Vec<c::nvmlComputeInstance_t>, Fault> {
    let ask = symbol(&device.nvml().lib().nvmlGpuInstanceGetComputeInstances)?;
    let mut all = Vec::new();
    for (profile, _) in compute_profiles(device, handle)? {
        let mut handles: Vec<c::nvmlComputeInstance_t> = vec![ptr::null_mut(); SLOTS as usize];
        let mut count = SLOTS;
        // SAFETY: there is room for more compute instances than a GPU instance can have.
        check(unsafe { ask(handle, profile, handles.as_mut_ptr(), &raw mut count) })?;
        all.extend(handles.into_iter().take(count as usize));
    }
    Ok(all)
}

/// The UUID of the device that the library shows for an instance.
fn uuid_of(device: &Device<'_>, gpu_instance: u32, compute_instance: u32) -> Option<Text<64>> {
    let lib = device.nvml().lib();
    let gpu_instance_of = symbol(&lib.nvmlDeviceGetGpuInstanceId).ok()?;
    let compute_instance_of = symbol(&lib.nvmlDeviceGetComputeInstanceId).ok()?;
    // The largest number there could be, not the number that exist: gaps are normal.
    let most = device.mig_device_count().ok()?.min(SLOTS);
    (0..most)
        .filter_map(|index| device.mig_device_by_index(index).ok())
        .find(|slice| {
            let (mut gi, mut ci) = (0, 0);
            // SAFETY: the library gave this handle a moment ago; the others point to one number each.
            let codes = unsafe {
                [
                    gpu_instance_of(slice.handle(), &raw mut gi),
                    compute_instance_of(slice.handle(), &raw mut ci),
                ]
            };
            codes.into_iter().all(|code| check(code).is_ok())
                && (gi, ci) == (gpu_instance, compute_instance)
        })
        .and_then(|slice| slice.uuid().ok())
        .and_then(|uuid| Text::new(uuid).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minor_numbers_of_a_slice_are_found() {
        let text = "config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu0/gi0/ci0/access 4\n\
                    gpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\ngpu1/gi1/ci0/access 148\n";
        let found = minors(text, 0, 1, 0).unwrap();
        assert_eq!(
            (found.gpu_instance_minor, found.compute_instance_minor),
            (12, 13)
        );
        assert_eq!(minors(text, 1, 1, 0), None);
        assert_eq!(minors(text, 0, 0, 1), None);
    }
}
