//! Speed of the disk under a folder: one file, written and read past the page cache, as `fio --direct=1
//! --ioengine=psync` does it. The file has no name from the moment it is open, so nothing is left of it however the
//! measurement ends.

mod file;

use crate::clock::now;
use crate::control::{Control, Portion, check, part_of};
use crate::pattern::Pattern;
use crate::{MeasureError, Method, Rate};
use file::{Aligned, Scratch};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Blocks of a sequential pass.
pub const BLOCK: usize = 1024 * 1024;
/// Blocks of a random read.
pub const SMALL: usize = 4096;
/// Random reads at once.
pub const DEPTH: usize = 16;
/// Size of the file.
pub const FILE: u64 = 1024 * 1024 * 1024;

/// Sequential writes.
pub const WRITE: Method = Method {
    name: "direct-write-1m",
    about: "1 MiB blocks in order, direct, 1 GiB file (as fio rw=write)",
    version: 1,
};
/// Sequential reads.
pub const READ: Method = Method {
    name: "direct-read-1m",
    about: "1 MiB blocks in order, direct, 1 GiB file (as fio rw=read)",
    version: 1,
};
/// Random reads.
pub const RANDOM: Method = Method {
    name: "direct-randread-4k-16",
    about: "4 KiB reads at random, direct, 16 at once, 1 GiB file (as fio rw=randread)",
    version: 1,
};

/// What to measure with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Size of the file, in whole [`BLOCK`]s.
    pub file: u64,
    /// What has to stay free beside it.
    pub reserve: u64,
    /// How long each of the three takes, beside making the file.
    pub length: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            file: FILE,
            reserve: FILE,
            length: Duration::from_secs(5),
        }
    }
}

/// The three rates: bytes, bytes, and reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Bytes written in order.
    pub write: Rate,
    /// Bytes read in order.
    pub read: Rate,
    /// Reads of [`SMALL`] bytes at random.
    pub random: Rate,
}

/// Measures the disk under `folder`.
///
/// # Errors
/// When there is no room, the folder may not be written in, its file system has no direct access, the file fails, or
/// it is cancelled.
pub fn rates(
    folder: &Path,
    settings: Settings,
    control: &dyn Control,
) -> Result<Rates, MeasureError> {
    check(control)?;
    let scratch = Scratch::make(folder, settings.file, settings.reserve)?;
    // Every block is written once before anything is timed: blocks that were only set aside are made on the first
    // write, and are read without the disk.
    in_order(
        &scratch,
        Way::Write,
        Stop::AtEnd,
        &Portion::of(control, 0, 250),
    )?;
    let for_length = Stop::After(settings.length);
    let write = in_order(
        &scratch,
        Way::Write,
        for_length,
        &Portion::of(control, 250, 500),
    )?;
    let read = in_order(
        &scratch,
        Way::Read,
        for_length,
        &Portion::of(control, 500, 750),
    )?;
    let random = at_random(&scratch, settings.length, &Portion::of(control, 750, 1000))?;
    Ok(Rates {
        write,
        read,
        random,
    })
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Read,
    Write,
}

#[derive(Debug, Clone, Copy)]
enum Stop {
    AtEnd,
    After(Duration),
}

/// One block after the other, from the start again at the end.
fn in_order(
    scratch: &Scratch,
    way: Way,
    stop: Stop,
    control: &dyn Control,
) -> Result<Rate, MeasureError> {
    let mut block = Aligned::new(BLOCK);
    Pattern::new(1).fill(block.bytes());
    let size = u64::try_from(BLOCK).unwrap_or(u64::MAX);
    let blocks = scratch.size() / size;
    let began = now();
    let mut done = 0_u64;
    loop {
        check(control)?;
        let at = done.checked_rem(blocks).unwrap_or(0) * size;
        match way {
            Way::Read => scratch.read(block.bytes(), at)?,
            Way::Write => scratch.write(block.bytes(), at)?,
        }
        done += 1;
        let elapsed = now().saturating_duration_since(began);
        let (ended, part) = match stop {
            Stop::AtEnd => (done >= blocks, thousandths(done, blocks)),
            Stop::After(length) => (elapsed >= length, part_of(began, now(), length)),
        };
        control.progress(part);
        if ended {
            return Ok(Rate {
                count: done * size,
                elapsed,
            });
        }
    }
}

fn thousandths(done: u64, all: u64) -> u16 {
    let part = (done * 1000).checked_div(all).unwrap_or(1000);
    u16::try_from(part.min(1000)).unwrap_or(1000)
}

/// [`DEPTH`] threads, each with one read under way.
fn at_random(
    scratch: &Scratch,
    length: Duration,
    control: &dyn Control,
) -> Result<Rate, MeasureError> {
    let stop = AtomicBool::new(false);
    let began = now();
    let reads = thread::scope(|scope| {
        let mut readers = Vec::with_capacity(DEPTH);
        for reader in 0..DEPTH {
            let stop = &stop;
            let seed = u64::try_from(reader).unwrap_or(0);
            let spawned = thread::Builder::new()
                .spawn_scoped(scope, move || read_at_random(scratch, seed, stop));
            match spawned {
                Ok(reader) => readers.push(reader),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    return Err(MeasureError::Thread(error));
                }
            }
        }
        let waited = wait(length, control, || {
            readers.iter().any(|reader| reader.is_finished())
        });
        stop.store(true, Ordering::Relaxed);
        let mut reads = 0_u64;
        for reader in readers {
            // A reader that panicked has read nothing; none can.
            reads = reads.saturating_add(reader.join().unwrap_or(Ok(0))?);
        }
        waited.map(|()| reads)
    })?;
    control.progress(1000);
    Ok(Rate {
        count: reads,
        elapsed: now().saturating_duration_since(began),
    })
}

/// Until `length` has passed, or one of those waited for has ended before.
fn wait(
    length: Duration,
    control: &dyn Control,
    ended: impl Fn() -> bool,
) -> Result<(), MeasureError> {
    let began = now();
    while now().saturating_duration_since(began) < length && !ended() {
        check(control)?;
        control.progress(part_of(began, now(), length));
        thread::sleep(crate::control::LOOK.min(length / 20));
    }
    Ok(())
}

fn read_at_random(scratch: &Scratch, seed: u64, stop: &AtomicBool) -> Result<u64, MeasureError> {
    let mut block = Aligned::new(SMALL);
    let mut pattern = Pattern::new(seed);
    let size = u64::try_from(SMALL).unwrap_or(u64::MAX);
    let blocks = scratch.size() / size;
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        let at = pattern.next().checked_rem(blocks).unwrap_or(0) * size;
        scratch.read(block.bytes(), at)?;
        done += 1;
    }
    Ok(done)
}

#[cfg(test)]
mod tests;
