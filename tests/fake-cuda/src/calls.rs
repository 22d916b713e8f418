//! The functions of the library, by their real names.

use crate::memory;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Return codes of `CUresult`.
type Code = c_uint;
const SUCCESS: Code = 0;
const INVALID_VALUE: Code = 1;
const OUT_OF_MEMORY: Code = 2;
const NO_DEVICE: Code = 100;

/// Attributes of `CUdevice_attribute` that are asked for.
const MULTIPROCESSORS: c_int = 16;
const SHARED_MEMORY_MAX: c_int = 97;

/// The handle that everything but memory has: it stands for nothing.
const HANDLE: usize = 0x10;

static CURRENT: AtomicUsize = AtomicUsize::new(0);

/// Writes `value` where the caller wants it.
fn put<T>(to: *mut T, value: T) -> Code {
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null, and the library's contract is that it points to room for one `T`.
    unsafe { to.write(value) };
    SUCCESS
}

fn put_handle(to: *mut *mut c_void) -> Code {
    put(to, std::ptr::without_provenance_mut(HANDLE))
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(_flags: c_uint) -> Code {
    memory::open().map_or(NO_DEVICE, |_| SUCCESS)
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Code {
    if ordinal == 0 {
        put(device, 0)
    } else {
        INVALID_VALUE
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetAttribute(to: *mut c_int, attribute: c_int, _device: c_int) -> Code {
    let value = match attribute {
        MULTIPROCESSORS => 4,
        SHARED_MEMORY_MAX => 232_448,
        // Memory is not taken from pools.
        _ => 0,
    };
    put(to, value)
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRetain(to: *mut *mut c_void, _device: c_int) -> Code {
    put_handle(to)
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: c_int) -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetCurrent(to: *mut *mut c_void) -> Code {
    let current = CURRENT.load(Ordering::SeqCst);
    put(to, std::ptr::without_provenance_mut(current))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> Code {
    CURRENT.store(context.addr(), Ordering::SeqCst);
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuMemGetInfo_v2(free: *mut usize, all: *mut usize) -> Code {
    let (is_free, there_is) = memory::room();
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(0);
    match put(free, size(is_free)) {
        SUCCESS => put(all, size(there_is)),
        code => code,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamCreate(to: *mut *mut c_void, _flags: c_uint) -> Code {
    put_handle(to)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(_stream: *mut c_void) -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(_stream: *mut c_void) -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(_stream: *mut c_void, _event: *mut c_void, _flags: c_uint) -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuEventCreate(to: *mut *mut c_void, _flags: c_uint) -> Code {
    put_handle(to)
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(_event: *mut c_void, _stream: *mut c_void) -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(_event: *mut c_void) -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(_event: *mut c_void) -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleLoadData(to: *mut *mut c_void, _image: *const c_void) -> Code {
    put_handle(to)
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(_module: *mut c_void) -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleGetFunction(
    to: *mut *mut c_void,
    _module: *mut c_void,
    _name: *const c_char,
) -> Code {
    put_handle(to)
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetAttribute(_function: *mut c_void, _attribute: c_int, _value: c_int) -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchKernel(
    _function: *mut c_void,
    _grid_x: c_uint,
    _grid_y: c_uint,
    _grid_z: c_uint,
    _block_x: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    _shared_bytes: c_uint,
    _stream: *mut c_void,
    _parameters: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAlloc_v2(to: *mut u64, bytes: usize) -> Code {
    let given = u64::try_from(bytes).ok().and_then(memory::give);
    given.map_or(OUT_OF_MEMORY, |address| put(to, address))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(_address: u64) -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8Async(address: u64, byte: u8, bytes: usize, _stream: *mut c_void) -> Code {
    let filled = u64::try_from(bytes).ok();
    let filled = filled.and_then(|bytes| memory::fill(address, byte, bytes));
    filled.map_or(INVALID_VALUE, |()| SUCCESS)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut c_void,
    address: u64,
    bytes: usize,
    _stream: *mut c_void,
) -> Code {
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null, and by the library's contract room for `bytes` that nobody else uses until the call is over.
    let into = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), bytes) };
    memory::read(address, into).map_or(INVALID_VALUE, |()| SUCCESS)
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(code: Code, to: *mut *const c_char) -> Code {
    let name = match code {
        SUCCESS => c"CUDA_SUCCESS",
        OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
        NO_DEVICE => c"CUDA_ERROR_NO_DEVICE",
        _ => c"CUDA_ERROR_INVALID_VALUE",
    };
    put(to, name.as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(code: Code, to: *mut *const c_char) -> Code {
    cuGetErrorName(code, to)
}
