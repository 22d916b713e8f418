//! Sets of events: each hears what is added to the scenario after it was made.

use super::put;
use crate::scenario::Happening;
use crate::world::{Answer, Code, Handle, begin, call, call_for, code, next_happening};
use nvml_wrapper_sys::bindings as c;
use std::ffi::c_uint;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often a wait looks at the scenario.
const LOOK: Duration = Duration::from_millis(5);

/// A set of this process.
struct Set {
    /// The handle that the caller has.
    id: usize,
    /// The GPUs that were registered.
    gpus: Vec<u32>,
    /// How many events of the scenario it will not hear (again).
    seen: usize,
}

static SETS: Mutex<Vec<Set>> = Mutex::new(Vec::new());

fn with_set<T>(set: c::nvmlEventSet_t, look: impl FnOnce(&mut Set) -> T) -> Result<T, Code> {
    let mut sets = SETS.lock().unwrap_or_else(PoisonError::into_inner);
    sets.iter_mut()
        .find(|known| known.id == set.addr())
        .map(look)
        .ok_or(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetCreate(to: *mut c::nvmlEventSet_t) -> Code {
    call("nvmlEventSetCreate", |scenario| {
        let mut sets = SETS.lock().unwrap_or_else(PoisonError::into_inner);
        let id = sets.last().map_or(1, |set| set.id + 1);
        sets.push(Set {
            id,
            gpus: Vec::new(),
            seen: scenario.events.len(),
        });
        put(to, std::ptr::without_provenance_mut(id))
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetFree(set: c::nvmlEventSet_t) -> Code {
    SETS.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|known| known.id != set.addr());
    c::nvmlReturn_enum_NVML_SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetSupportedEventTypes(device: c::nvmlDevice_t, to: *mut u64) -> Code {
    let name = "nvmlDeviceGetSupportedEventTypes";
    call_for(name, Handle::of(device), |_, _| {
        put(to, u64::from(c::nvmlEventTypeAll))
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceRegisterEvents(
    device: c::nvmlDevice_t,
    _bits: u64,
    set: c::nvmlEventSet_t,
) -> Code {
    let handle = Handle::of(device);
    call_for("nvmlDeviceRegisterEvents", handle, |_, _| {
        with_set(set, |set| set.gpus.push(handle.gpu))
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetWait_v2(
    set: c::nvmlEventSet_t,
    to: *mut c::nvmlEventData_t,
    milliseconds: c_uint,
) -> Code {
    code(wait("nvmlEventSetWait_v2", set, milliseconds, |data| {
        put(to, data)
    }))
}

/// The older name knows nothing of instances, and leaves their part of the structure alone.
#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetWait(
    set: c::nvmlEventSet_t,
    to: *mut c::nvmlEventData_t,
    milliseconds: c_uint,
) -> Code {
    code(wait("nvmlEventSetWait", set, milliseconds, |data| {
        if to.is_null() {
            return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
        }
        // SAFETY: not null, and by the library's contract one structure that the caller owns.
        let old = unsafe { &mut *to };
        old.device = data.device;
        old.eventType = data.eventType;
        old.eventData = data.eventData;
        Ok(())
    }))
}

fn wait(
    name: &str,
    set: c::nvmlEventSet_t,
    milliseconds: u32,
    put: impl FnOnce(c::nvmlEventData_t) -> Answer,
) -> Answer {
    let mut left = Duration::from_millis(u64::from(milliseconds));
    loop {
        let scenario = begin(name, None)?;
        let next = with_set(set, |set| {
            let next = next_happening(&scenario, set.seen, &set.gpus);
            if let Some((seen, _)) = &next {
                set.seen = *seen;
            }
            next
        })?;
        match next {
            Some((_, Happening::WaitFails { code })) => return Err(code),
            Some((
                _,
                Happening::Event {
                    gpu,
                    bit,
                    data,
                    instance,
                },
            )) => {
                let at = (0..)
                    .zip(&scenario.gpus)
                    .find(|(_, known)| known.uuid == gpu);
                return put(c::nvmlEventData_t {
                    device: Handle::of_gpu(at.map_or(0, |(at, _)| at)).pointer(),
                    eventType: bit,
                    eventData: data,
                    gpuInstanceId: instance.map_or(u32::MAX, |(gi, _)| gi),
                    computeInstanceId: instance.map_or(u32::MAX, |(_, ci)| ci),
                });
            }
            None if left.is_zero() => return Err(c::nvmlReturn_enum_NVML_ERROR_TIMEOUT),
            None => {
                thread::sleep(LOOK.min(left));
                left = left.saturating_sub(LOOK);
            }
        }
    }
}
