//! Waiting for events. The wrapper's events say neither in which slice an Xid happened nor work on drivers
//! that have only the older name, so the library's own functions are called.

use super::Library;
use super::raw::{NONE_U32, check, symbol};
use crate::event::EventKind;
use crate::fault::Fault;
use nvml_wrapper_sys::bindings as c;
use std::ffi::c_uint;
use std::ptr;

/// Bits that are listened to, where the GPU knows them.
const WANTED: u32 = c::nvmlEventTypeXidCriticalError
    | c::nvmlEventTypeDoubleBitEccError
    | c::nvmlEventTypeDramRetirementEvent
    | c::nvmlEventTypeDramRetirementFailure
    | c::nvmlEventTypeNonFatalPoisonError
    | c::nvmlEventTypeFatalPoisonError
    | c::nvmlEventTypeGpuUnavailableError
    | c::nvmlEventTypeGpuRecoveryAction
    | c::nvmlEventMigConfigChange;

/// One event as the library gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// What happened.
    pub kind: EventKind,
    /// In which GPU instance.
    pub gpu_instance: Option<u32>,
    /// In which compute instance.
    pub compute_instance: Option<u32>,
}

/// A registration for the events of one GPU. Freed when dropped; stays on the thread that made it.
#[derive(Debug)]
pub struct Watcher<'library> {
    library: &'library Library,
    set: c::nvmlEventSet_t,
}

type Wait =
    unsafe extern "C" fn(c::nvmlEventSet_t, *mut c::nvmlEventData_t, c_uint) -> c::nvmlReturn_t;

impl<'library> Watcher<'library> {
    /// Begins to listen to the GPU at `pci`.
    ///
    /// # Errors
    /// When the GPU or the driver has no events, or the GPU is lost.
    pub fn begin(library: &'library Library, pci: &str) -> Result<Self, Fault> {
        let device = library.device(pci)?;
        let lib = library.nvml.lib();
        let create = symbol(&lib.nvmlEventSetCreate)?;
        let mut set: c::nvmlEventSet_t = ptr::null_mut();
        // SAFETY: `set` is written before the call returns.
        check(unsafe { create(&raw mut set) })?;
        // From here on the set is freed with the watcher, also when registering fails.
        let watcher = Self { library, set };
        let mut known = 0;
        let ask = symbol(&lib.nvmlDeviceGetSupportedEventTypes)?;
        // SAFETY: the device is this library's, and `known` is one number.
        check(unsafe { ask(device.handle(), &raw mut known) })?;
        let register = symbol(&lib.nvmlDeviceRegisterEvents)?;
        // SAFETY: device and set are this library's.
        check(unsafe { register(device.handle(), known & u64::from(WANTED), set) })?;
        Ok(watcher)
    }

    /// Waits for an event at most so long; nothing when there was none.
    ///
    /// # Errors
    /// When the wait broke. The set is then to be dropped and made anew.
    pub fn wait(&self, milliseconds: u32) -> Result<Option<Heard>, Fault> {
        let lib = self.library.nvml.lib();
        // The older name fills the beginning of the same structure and leaves the ids alone.
        let wait: Wait =
            symbol(&lib.nvmlEventSetWait_v2).or_else(|_| symbol(&lib.nvmlEventSetWait))?;
        let mut data = c::nvmlEventData_t {
            device: ptr::null_mut(),
            eventType: 0,
            eventData: 0,
            gpuInstanceId: NONE_U32,
            computeInstanceId: NONE_U32,
        };
        // SAFETY: the set is this library's, and `data` is the structure that both names fill.
        let code = unsafe { wait(self.set, &raw mut data, milliseconds) };
        if code == c::nvmlReturn_enum_NVML_ERROR_TIMEOUT {
            return Ok(None);
        }
        check(code)?;
        Ok(Some(Heard {
            kind: kind(data.eventType, data.eventData),
            gpu_instance: Some(data.gpuInstanceId).filter(|id| *id != NONE_U32),
            compute_instance: Some(data.computeInstanceId).filter(|id| *id != NONE_U32),
        }))
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        if let Ok(free) = symbol(&self.library.nvml.lib().nvmlEventSetFree) {
            // SAFETY: the set was made by this library and is freed once. What freeing it says helps nobody.
            let _ = unsafe { free(self.set) };
        }
    }
}

fn kind(bit: u64, data: u64) -> EventKind {
    let other = EventKind::Other { bit, data };
    let Ok(narrow) = u32::try_from(bit) else {
        return other;
    };
    match narrow {
        c::nvmlEventTypeXidCriticalError => u32::try_from(data).map_or(other, EventKind::Xid),
        c::nvmlEventTypeDoubleBitEccError => EventKind::DoubleBitEcc,
        c::nvmlEventTypeDramRetirementEvent => EventKind::DramRetirement,
        c::nvmlEventTypeDramRetirementFailure => EventKind::DramRetirementFailed,
        c::nvmlEventTypeNonFatalPoisonError => EventKind::ContainedPoison,
        c::nvmlEventTypeFatalPoisonError => EventKind::FatalPoison,
        c::nvmlEventTypeGpuUnavailableError => EventKind::Unavailable,
        c::nvmlEventTypeGpuRecoveryAction => EventKind::RecoveryActionChanged,
        c::nvmlEventMigConfigChange => EventKind::MigChanged,
        _ => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_known_by_their_bit() {
        assert_eq!(kind(8, 79), EventKind::Xid(79));
        assert_eq!(kind(2, 0), EventKind::DoubleBitEcc);
        assert_eq!(kind(32_768, 1), EventKind::RecoveryActionChanged);
        assert_eq!(kind(4, 1), EventKind::Other { bit: 4, data: 1 });
        assert_eq!(
            kind(1 << 40, 1),
            EventKind::Other {
                bit: 1 << 40,
                data: 1
            }
        );
    }
}
