//! The start of the library, the driver, and how a GPU is found.

use super::{put, put_text};
use crate::scenario::Scenario;
use crate::world::{
    Answer, Code, Handle, begin, call, code, is_there, remember, scenario, with_state,
};
use nvml_wrapper_sys::bindings as c;
use std::ffi::{CStr, c_char, c_int, c_uint};

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> Code {
    code(start())
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> Code {
    code(start())
}

fn start() -> Answer {
    let scenario = begin("nvmlInit_v2", None)?;
    let early = with_state(&scenario, |state| {
        let early = state.early_starts < scenario.starts_too_early;
        state.early_starts = state
            .early_starts
            .saturating_add(1)
            .min(scenario.starts_too_early);
        early
    })?;
    if early {
        return Err(c::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED);
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> Code {
    c::nvmlReturn_enum_NVML_SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(_code: Code) -> *const c_char {
    c"an error of the stand-in library".as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, length: c_uint) -> Code {
    call("nvmlSystemGetDriverVersion", |scenario| {
        put_text(to, length, scenario.driver.as_deref().unwrap_or_default())
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetNVMLVersion(to: *mut c_char, length: c_uint) -> Code {
    call("nvmlSystemGetNVMLVersion", |scenario| {
        let driver = scenario.driver.as_deref().unwrap_or_default();
        put_text(to, length, &format!("12.{driver}"))
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetCudaDriverVersion_v2(to: *mut c_int) -> Code {
    call("nvmlSystemGetCudaDriverVersion_v2", |scenario| {
        put(to, scenario.cuda)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCount_v2(to: *mut c_uint) -> Code {
    call("nvmlDeviceGetCount_v2", |scenario| {
        put(to, u32::try_from(present(scenario).count()).unwrap_or(0))
    })
}

/// The places of the GPUs that are on the bus.
fn present(scenario: &Scenario) -> impl Iterator<Item = u32> {
    (0..)
        .zip(&scenario.gpus)
        .filter(|(_, gpu)| gpu.present)
        .map(|(at, _)| at)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, to: *mut c::nvmlDevice_t) -> Code {
    let place = scenario().ok().and_then(|scenario| {
        let index = usize::try_from(index).ok()?;
        present(&scenario).nth(index)
    });
    found("nvmlDeviceGetHandleByIndex_v2", place, to)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, to: *mut c::nvmlDevice_t) -> Code {
    let place = place_of(uuid, |scenario, at| {
        Some(scenario.gpus.get(at)?.uuid.clone())
    });
    found("nvmlDeviceGetHandleByUUID", place, to)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(
    pci: *const c_char,
    to: *mut c::nvmlDevice_t,
) -> Code {
    let place = place_of(pci, |scenario, at| {
        let bus = scenario.gpus.get(at)?.bus;
        Some(format!("00000000:{bus:02X}:00.0"))
    });
    found("nvmlDeviceGetHandleByPciBusId_v2", place, to)
}

fn place_of(
    wanted: *const c_char,
    name: impl Fn(&Scenario, usize) -> Option<String>,
) -> Option<u32> {
    if wanted.is_null() {
        return None;
    }
    // SAFETY: not null, and by the library's contract a text that ends with a zero.
    let wanted = unsafe { CStr::from_ptr(wanted) }.to_str().ok()?;
    let scenario = scenario().ok()?;
    (0..)
        .zip(&scenario.gpus)
        .filter(|(place, gpu)| is_there(gpu, *place))
        .map(|(place, _)| place)
        .find(|place| {
            usize::try_from(*place)
                .ok()
                .and_then(|at| name(&scenario, at))
                .is_some_and(|name| name.eq_ignore_ascii_case(wanted))
        })
}

fn found(name: &str, place: Option<u32>, to: *mut c::nvmlDevice_t) -> Code {
    let answer = || {
        let known = begin(name, None)?;
        let place = place.ok_or(c::nvmlReturn_enum_NVML_ERROR_NOT_FOUND)?;
        let gpu = usize::try_from(place)
            .ok()
            .and_then(|at| known.gpus.get(at));
        begin(name, gpu.map(|gpu| gpu.uuid.as_str()))?;
        remember(place);
        put(to, Handle::of_gpu(place).pointer())
    };
    code(answer())
}
