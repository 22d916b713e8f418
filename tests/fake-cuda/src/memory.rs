//! The memory of the one device that this process sees: a file of fixed size. It is given out from its beginning on and
//! not taken back: the process that scrubs ends when it is done.

use crate::VRAM;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Bytes of every device's memory.
pub const SIZE: u64 = 64 << 20;
/// What the driver keeps of it.
const RESERVED: u64 = 2 << 20;
/// Where addresses of the device begin: nothing of the host's is there.
const BASE: u64 = 0x7000_0000_0000;

static GIVEN: Mutex<u64> = Mutex::new(0);

/// The device's memory, made empty when it is not there yet; nothing when this process sees no device.
pub(crate) fn open() -> Option<File> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path()?)
        .ok()?;
    if file.metadata().ok()?.len() != SIZE {
        file.set_len(SIZE).ok()?;
    }
    Some(file)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the library has no other way to be told which device it has"
)]
fn path() -> Option<PathBuf> {
    let folder = std::env::var(VRAM).ok()?;
    let device = std::env::var("CUDA_VISIBLE_DEVICES").ok()?;
    let is_name = device.starts_with("GPU-") || device.starts_with("MIG-");
    // Drivers before R470 call a slice MIG-GPU-…/1/0.
    is_name.then(|| PathBuf::from(folder).join(device.replace('/', "_")))
}

/// What is free of it, and how much there is.
pub(crate) fn room() -> (u64, u64) {
    let given = *GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    (SIZE - RESERVED - given, SIZE)
}

/// An address of so many bytes that nobody has; nothing when there are no more.
pub(crate) fn give(bytes: u64) -> Option<u64> {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let at = *given;
    let next = at.checked_add(bytes)?;
    (next <= SIZE - RESERVED).then(|| {
        *given = next;
        BASE + at
    })
}

/// Writes a byte so many times from an address on.
pub(crate) fn fill(address: u64, byte: u8, bytes: u64) -> Option<()> {
    let file = open()?;
    let mut at = address.checked_sub(BASE)?;
    let end = at.checked_add(bytes).filter(|end| *end <= SIZE)?;
    let piece = vec![byte; 1 << 20];
    while at < end {
        let left = usize::try_from(end - at).ok()?.min(piece.len());
        file.write_all_at(&piece[..left], at).ok()?;
        at += u64::try_from(left).ok()?;
    }
    Some(())
}

/// What is there from an address on.
pub(crate) fn read(address: u64, into: &mut [u8]) -> Option<()> {
    open()?.read_exact_at(into, address.checked_sub(BASE)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_out_until_there_is_no_more() {
        assert_eq!(give(SIZE), None);
        assert_eq!(give(32 << 20), Some(BASE));
        assert_eq!(give(30 << 20), Some(BASE + (32 << 20)));
        assert_eq!(room(), (0, SIZE));
        assert_eq!(give(1), None);
    }
}
