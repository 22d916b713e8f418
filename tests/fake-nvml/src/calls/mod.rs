//! The functions of the library, by their real names. Each answers from the scenario; none decides anything.

mod compute;
mod device;
mod events;
mod health;
mod processes;
mod slices;
mod system;

use crate::world::{Answer, Code};
use nvml_wrapper_sys::bindings as c;
use std::ffi::c_char;

/// Writes `value` where the caller wants it.
fn put<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
    }
    // SAFETY: not null, and the library's contract is that it points to room for one `T`.
    unsafe { to.write(value) };
    Ok(())
}

/// Writes `text` and a zero where the caller has `length` bytes.
fn put_text(to: *mut c_char, length: u32, text: &str) -> Answer {
    let bytes = text.as_bytes();
    if bytes.len() >= usize::try_from(length).unwrap_or(0) {
        return Err(c::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE);
    }
    if to.is_null() {
        return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
    }
    for (at, byte) in bytes.iter().chain([&0]).enumerate() {
        // SAFETY: not null, and by its length there is room for the text and its zero.
        unsafe { to.add(at).write(byte.cast_signed()) };
    }
    Ok(())
}

/// A text in a field of fixed length.
fn letters<const N: usize>(text: &str) -> [c_char; N] {
    let mut letters = [0; N];
    for (letter, byte) in letters.iter_mut().take(N - 1).zip(text.bytes()) {
        *letter = byte.cast_signed();
    }
    letters
}

/// Writes a list where the caller has room for `*count` items, or only counts where it has none. A list for
/// which there is too little room is not written.
fn put_list<T>(to: *mut T, count: *mut u32, items: Vec<T>) -> Answer {
    if count.is_null() {
        return Err(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
    }
    // SAFETY: not null, and by the library's contract it points to one number.
    let room = unsafe { count.read() };
    let length = u32::try_from(items.len()).unwrap_or(u32::MAX);
    put(count, length)?;
    if to.is_null() || room < length {
        return Err(c::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE);
    }
    for (at, item) in items.into_iter().enumerate() {
        // SAFETY: there is room for `length` items, by the caller's own count.
        unsafe { to.add(at).write(item) };
    }
    Ok(())
}

/// As [`put_list`] where the library asks for no count: the caller has room for all there can be.
fn put_all<T>(to: *mut T, count: *mut u32, items: Vec<T>) -> Answer {
    put(count, u32::try_from(items.len()).unwrap_or(u32::MAX))?;
    if to.is_null() {
        return Ok(());
    }
    for (at, item) in items.into_iter().enumerate() {
        // SAFETY: by the library's contract there is room for as many as the profile can have.
        unsafe { to.add(at).write(item) };
    }
    Ok(())
}

/// What a GPU does not have.
fn supported<T>(value: Option<T>) -> Result<T, Code> {
    value.ok_or(c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED)
}

/// Functions that write one value about a GPU: their name, what comes before the place to write to, what is
/// written, and how it is found.
macro_rules! values {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $out:ty = |$gpu:ident| $value:expr;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            device: nvml_wrapper_sys::bindings::nvmlDevice_t,
            $($arg: $kind,)*
            to: *mut $out,
        ) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            let handle = crate::world::Handle::of(device);
            crate::world::call_for(stringify!($name), handle, |_, $gpu| {
                let value: Result<$out, crate::world::Code> = $value;
                super::put(to, value?)
            })
        }
    )*};
}
use values;
