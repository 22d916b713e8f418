//! How a GPU is: power, heat, memory, errors.

use super::{put, supported, values};
use crate::scenario::FakeGpu;
use crate::world::{Code, Handle, call_for, with_state};
use nvml_wrapper_sys::bindings as c;
use nvml_wrapper_sys::bindings::field_id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
use std::ffi::{c_int, c_uint, c_ulonglong};

values! {
    nvmlDeviceGetPowerUsage() -> c_uint = |gpu| Ok(gpu.power_mw);
    nvmlDeviceGetTotalEnergyConsumption() -> c_ulonglong = |gpu| Ok(gpu.energy_mj);
    nvmlDeviceGetTemperature(_sensor: c::nvmlTemperatureSensors_t) -> c_uint
        = |gpu| Ok(gpu.temperature_c);
    nvmlDeviceGetTemperatureThreshold(kind: c::nvmlTemperatureThresholds_t) -> c_uint = |gpu| threshold(gpu, kind);
    nvmlDeviceGetUtilizationRates() -> c::nvmlUtilization_t = |gpu| Ok(c::nvmlUtilization_t {
        gpu: gpu.utilisation.0,
        memory: gpu.utilisation.1,
    });
    nvmlDeviceGetCurrentClocksEventReasons() -> c_ulonglong = |gpu| Ok(gpu.clock_reasons);
    nvmlDeviceGetCurrentClocksThrottleReasons() -> c_ulonglong = |gpu| Ok(gpu.clock_reasons);
    nvmlDeviceGetTotalEccErrors(
        error: c::nvmlMemoryErrorType_t,
        counter: c::nvmlEccCounterType_t
    ) -> c_ulonglong = |gpu| ecc(gpu, error, counter);
    nvmlDeviceGetMemoryInfo() -> c::nvmlMemory_t = |gpu| Ok(c::nvmlMemory_t {
        total: gpu.memory,
        free: free(gpu),
        // What the driver keeps counts as used under this name.
        used: gpu.memory_used + gpu.memory_reserved,
    });
}

fn free(gpu: &FakeGpu) -> u64 {
    gpu.memory
        .saturating_sub(gpu.memory_used + gpu.memory_reserved)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryInfo_v2(
    device: c::nvmlDevice_t,
    to: *mut c::nvmlMemory_v2_t,
) -> Code {
    call_for(
        "nvmlDeviceGetMemoryInfo_v2",
        Handle::of(device),
        |_, gpu| {
            if to.is_null() {
                return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
            }
            // SAFETY: not null, and by the library's contract a structure whose version the caller wrote.
            let version = unsafe { (*to).version };
            let size = u32::try_from(size_of::<c::nvmlMemory_v2_t>()).unwrap_or(0);
            if version != size | 2 << 24 {
                return Err(c::nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
            }
            put(
                to,
                c::nvmlMemory_v2_t {
                    version,
                    total: gpu.memory,
                    reserved: gpu.memory_reserved,
                    free: free(gpu),
                    used: gpu.memory_used,
                },
            )
        },
    )
}

fn threshold(gpu: &FakeGpu, kind: c::nvmlTemperatureThresholds_t) -> Result<c_uint, Code> {
    let slowdown = c::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_SLOWDOWN;
    supported((kind == slowdown).then_some(gpu.slowdown_c))
}

fn ecc(
    gpu: &FakeGpu,
    error: c::nvmlMemoryErrorType_t,
    counter: c::nvmlEccCounterType_t,
) -> Result<u64, Code> {
    supported(gpu.ecc.filter(|enabled| *enabled))?;
    let [corrected, uncorrected, corrected_ever, uncorrected_ever] = gpu.ecc_errors;
    let is_corrected = error == c::nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_CORRECTED;
    let is_volatile = counter == c::nvmlEccCounterType_enum_NVML_VOLATILE_ECC;
    Ok(match (is_corrected, is_volatile) {
        (true, true) => corrected,
        (false, true) => uncorrected,
        (true, false) => corrected_ever,
        (false, false) => uncorrected_ever,
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetRemappedRows(
    device: c::nvmlDevice_t,
    corrected: *mut c_uint,
    uncorrected: *mut c_uint,
    pending: *mut c_uint,
    failed: *mut c_uint,
) -> Code {
    call_for(
        "nvmlDeviceGetRemappedRows",
        Handle::of(device),
        |scenario, gpu| {
            supported(gpu.ecc)?;
            let divided = with_state(scenario, |state| !state.of(&gpu.uuid).instances.is_empty())?;
            if divided {
                return Err(c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED);
            }
            put(corrected, gpu.remapped.0)?;
            put(uncorrected, gpu.remapped.1)?;
            put(pending, u32::from(gpu.remap_flags.0))?;
            put(failed, u32::from(gpu.remap_flags.1))
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetFieldValues(
    device: c::nvmlDevice_t,
    count: c_int,
    values: *mut c::nvmlFieldValue_t,
) -> Code {
    call_for("nvmlDeviceGetFieldValues", Handle::of(device), |_, gpu| {
        if values.is_null() {
            return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
        }
        for at in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: not null, and the caller says how many there are.
            let field = unsafe { &mut *values.add(at) };
            let known = gpu
                .recovery
                .filter(|_| field.fieldId == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION);
            field.nvmlReturn = match known {
                Some(_) => c::nvmlReturn_enum_NVML_SUCCESS,
                None => c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED,
            };
            field.valueType = c::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT;
            field.value = c::nvmlValue_t {
                uiVal: known.unwrap_or(0),
            };
        }
        Ok(())
    })
}
