//! The scenario as the library sees it now, and what every call begins with: is the driver there, is the GPU,
//! and does this call go wrong?

use crate::SCENARIO;
use crate::scenario::{FakeGpu, Happening, Misdeed, Scenario};
use crate::state::{self, State};
use nvml_wrapper_sys::bindings as c;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A return code that is not success.
pub(crate) type Code = c::nvmlReturn_t;
/// What a call does or why it does not.
pub(crate) type Answer = Result<(), Code>;

/// What was read last, and of which file.
struct Read {
    stamp: (u64, i64, i64, u64),
    scenario: Scenario,
}

static READ: Mutex<Option<Read>> = Mutex::new(None);

/// The scenario as it is now.
pub(crate) fn scenario() -> Result<Scenario, Code> {
    let path = path()?;
    let unknown = |_| c::nvmlReturn_enum_NVML_ERROR_UNKNOWN;
    let found = fs::metadata(&path).map_err(unknown)?;
    let stamp = (found.ino(), found.mtime(), found.mtime_nsec(), found.size());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = read.as_ref().filter(|known| known.stamp == stamp) {
        return Ok(known.scenario.clone());
    }
    let text = fs::read(&path).map_err(unknown)?;
    let scenario: Scenario =
        serde_json::from_slice(&text).map_err(|_| c::nvmlReturn_enum_NVML_ERROR_UNKNOWN)?;
    *read = Some(Read {
        stamp,
        scenario: scenario.clone(),
    });
    Ok(scenario)
}

/// Looks at what programs changed, or changes it.
pub(crate) fn with_state<T>(
    scenario: &Scenario,
    change: impl FnOnce(&mut State) -> T,
) -> Result<T, Code> {
    let path = path()?;
    state::with(&path, scenario, change).map_err(|_| c::nvmlReturn_enum_NVML_ERROR_UNKNOWN)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the library has no other way to be told where its scenario is"
)]
fn path() -> Result<PathBuf, Code> {
    std::env::var(SCENARIO)
        .map(PathBuf::from)
        .map_err(|_| c::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED)
}

/// A call that is for no GPU.
pub(crate) fn call(name: &str, answer: impl FnOnce(&Scenario) -> Answer) -> Code {
    code(begin(name, None).and_then(|scenario| answer(&scenario)))
}

/// A call for one GPU, which may be given by the handle of one of its slices.
pub(crate) fn call_for(
    name: &str,
    handle: Handle,
    answer: impl FnOnce(&Scenario, &FakeGpu) -> Answer,
) -> Code {
    code(begin_for(name, handle).and_then(|(scenario, at)| {
        let gpu = &scenario.gpus[at];
        answer(&scenario, gpu)
    }))
}

fn begin_for(name: &str, handle: Handle) -> Result<(Scenario, usize), Code> {
    let known = scenario()?;
    let at = usize::try_from(handle.gpu).unwrap_or(usize::MAX);
    let gpu = known
        .gpus
        .get(at)
        .ok_or(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)?;
    let scenario = begin(name, Some(&gpu.uuid))?;
    match scenario.gpus.get(at) {
        Some(gpu) if is_there(gpu, handle.gpu) => Ok((scenario, at)),
        Some(_) | None => Err(c::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST),
    }
}

/// The places of the GPUs that this program found.
static FOUND: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Remembers that this program found the GPU at that place.
pub(crate) fn remember(place: u32) {
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if !found.contains(&place) {
        found.push(place);
    }
}

/// Whether this program gets answers about a GPU.
pub(crate) fn is_there(gpu: &FakeGpu, place: u32) -> bool {
    let found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    gpu.present || (gpu.remembered && found.contains(&place))
}

/// What every call begins with; what goes wrong goes wrong here.
pub(crate) fn begin(name: &str, gpu: Option<&str>) -> Result<Scenario, Code> {
    let known = scenario()?;
    if known.driver.is_none() {
        return Err(c::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED);
    }
    let fault = known.faults.iter().find(|fault| {
        (fault.call == name || (fault.call == "*" && gpu.is_some()))
            && (fault.gpu.is_none() || fault.gpu.as_deref() == gpu)
    });
    match fault.map(|fault| &fault.does) {
        Some(Misdeed::Hangs { milliseconds }) => {
            thread::sleep(Duration::from_millis(*milliseconds));
            Ok(known)
        }
        Some(Misdeed::Fails { code }) => Err(*code),
        Some(Misdeed::Crashes) => std::process::abort(),
        None => Ok(known),
    }
}

/// The code of an answer.
pub(crate) fn code(answer: Answer) -> Code {
    match answer {
        Ok(()) => c::nvmlReturn_enum_NVML_SUCCESS,
        Err(code) => code,
    }
}

/// What happened after the first `seen`, to any of these GPUs: the next, and how many are seen with it.
pub(crate) fn next_happening(
    scenario: &Scenario,
    seen: usize,
    gpus: &[u32],
) -> Option<(usize, Happening)> {
    scenario
        .events
        .iter()
        .enumerate()
        .skip(seen)
        .find(|(_, happening)| match happening {
            Happening::WaitFails { .. } => true,
            Happening::Event { gpu, .. } => gpus.iter().any(|at| {
                usize::try_from(*at)
                    .ok()
                    .and_then(|at| scenario.gpus.get(at))
                    .is_some_and(|known| known.uuid == *gpu)
            }),
        })
        .map(|(at, happening)| (at + 1, happening.clone()))
}

/// What a handle means. A handle is a number made of the GPU's place in the scenario and the ids in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle {
    /// The GPU's place.
    pub(crate) gpu: u32,
    /// The GPU instance.
    pub(crate) instance: Option<u32>,
    /// The compute instance.
    pub(crate) compute: Option<u32>,
}

impl Handle {
    /// A whole GPU.
    pub(crate) const fn of_gpu(gpu: u32) -> Self {
        Self {
            gpu,
            instance: None,
            compute: None,
        }
    }

    /// As the pointer that the caller keeps.
    pub(crate) fn pointer<T>(self) -> *mut T {
        let part = |id: Option<u32>| id.map_or(0, |id| id + 1);
        let number = (self.gpu + 1) << 16 | part(self.instance) << 8 | part(self.compute);
        std::ptr::without_provenance_mut(usize::try_from(number).unwrap_or(0))
    }

    /// What the caller's pointer means.
    pub(crate) fn of<T>(pointer: *const T) -> Self {
        let number = u32::try_from(pointer.addr()).unwrap_or(u32::MAX);
        let part = |bits: u32| (bits & 0xff).checked_sub(1);
        Self {
            // No GPU has the place of a null pointer.
            gpu: (number >> 16).checked_sub(1).unwrap_or(u32::MAX),
            instance: part(number >> 8),
            compute: part(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_means_what_it_was_made_of() {
        let handle = Handle {
            gpu: 7,
            instance: Some(0),
            compute: Some(3),
        };
        assert_eq!(Handle::of(handle.pointer::<u8>()), handle);
        let gpu = Handle::of_gpu(0);
        assert_eq!(Handle::of(gpu.pointer::<u8>()), gpu);
        assert_eq!(Handle::of(std::ptr::null::<u8>()).gpu, u32::MAX);
    }
}
