//! Who uses a GPU, under the three names that the functions had.

use super::put_list;
use crate::scenario::{FakeProcess, FakeProcessKind};
use crate::world::{Code, Handle, call_for};
use nvml_wrapper_sys::bindings as c;
use std::ffi::c_uint;

const NONE: u32 = u32::MAX;

macro_rules! lists {
    ($($name:ident: $kind:ident as $row:ident;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            device: c::nvmlDevice_t,
            count: *mut c_uint,
            to: *mut c::$row,
        ) -> Code {
            call_for(stringify!($name), Handle::of(device), |_, gpu| {
                let of_kind = gpu.processes.iter().filter(|process| process.kind == FakeProcessKind::$kind);
                put_list(to, count, of_kind.map(Row::row).collect())
            })
        }
    )*};
}

lists! {
    nvmlDeviceGetComputeRunningProcesses_v3: Compute as nvmlProcessInfo_v2_t;
    nvmlDeviceGetComputeRunningProcesses_v2: Compute as nvmlProcessInfo_v2_t;
    nvmlDeviceGetComputeRunningProcesses: Compute as nvmlProcessInfo_v1_t;
    nvmlDeviceGetGraphicsRunningProcesses_v3: Graphics as nvmlProcessInfo_v2_t;
    nvmlDeviceGetGraphicsRunningProcesses_v2: Graphics as nvmlProcessInfo_v2_t;
    nvmlDeviceGetGraphicsRunningProcesses: Graphics as nvmlProcessInfo_v1_t;
    nvmlDeviceGetMPSComputeRunningProcesses_v3: Mps as nvmlProcessInfo_v2_t;
    nvmlDeviceGetMPSComputeRunningProcesses_v2: Mps as nvmlProcessInfo_v2_t;
}

/// A row of one of the lists.
trait Row {
    fn row(process: &FakeProcess) -> Self;
}

impl Row for c::nvmlProcessInfo_v2_t {
    fn row(process: &FakeProcess) -> Self {
        Self {
            pid: process.pid,
            usedGpuMemory: process.memory,
            gpuInstanceId: process.gpu_instance.unwrap_or(NONE),
            computeInstanceId: process.gpu_instance.map_or(NONE, |_| 0),
        }
    }
}

impl Row for c::nvmlProcessInfo_v1_t {
    fn row(process: &FakeProcess) -> Self {
        Self {
            pid: process.pid,
            usedGpuMemory: process.memory,
        }
    }
}
