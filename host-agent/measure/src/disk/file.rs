//! The file that a disk is measured with, and memory that direct reads and writes accept. Nothing is timed here.

use crate::MeasureError;
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open, statvfs};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Direct reads and writes are aligned to this on every disk in use.
const ALIGNMENT: usize = 4096;

/// Memory whose address is a multiple of [`ALIGNMENT`].
pub(super) struct Aligned {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    pub(super) fn new(length: usize) -> Self {
        let memory = vec![0; length + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Self {
            memory,
            start,
            length,
        }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        self.memory
            .get_mut(self.start..self.start + self.length)
            .unwrap_or_default()
    }
}

/// A file without a name.
#[derive(Debug)]
pub(super) struct Scratch {
    file: File,
    folder: PathBuf,
    size: u64,
}

impl Scratch {
    /// Makes one of `size` bytes in `folder`, if `reserve` stays free beside it.
    pub(super) fn make(folder: &Path, size: u64, reserve: u64) -> Result<Self, MeasureError> {
        let system = statvfs(folder).map_err(|error| of_errno("look", folder, error))?;
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        if free < size.saturating_add(reserve) {
            return Err(MeasureError::NoSpace {
                path: folder.to_owned(),
                free,
                needed: size,
                reserve,
            });
        }
        let name = folder.join(format!(".feira-bench.{}", std::process::id()));
        let flags = OFlags::RDWR
            | OFlags::CREATE
            | OFlags::EXCL
            | OFlags::CLOEXEC
            | OFlags::NOFOLLOW
            | OFlags::DIRECT;
        let opened = open(&name, flags, Mode::RUSR | Mode::WUSR);
        if opened.is_ok() || matches!(opened, Err(Errno::INVAL)) {
            // Without direct access the kernel may have made the file before it refuses to open it.
            let removed = std::fs::remove_file(&name);
            if opened.is_ok() {
                removed.map_err(|source| failed("delete the test file", folder, source))?;
            }
        }
        let file =
            File::from(opened.map_err(|error| of_errno("make the test file", folder, error))?);
        match fallocate(&file, FallocateFlags::empty(), 0, size) {
            // A file system that cannot set room aside finds it while it writes.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(error) => return Err(of_errno("set room aside", folder, error)),
        }
        Ok(Self {
            file,
            folder: folder.to_owned(),
            size,
        })
    }

    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn read(&self, block: &mut [u8], at: u64) -> Result<(), MeasureError> {
        self.file
            .read_exact_at(block, at)
            .map_err(|source| failed("read the test file", &self.folder, source))
    }

    pub(super) fn write(&self, block: &[u8], at: u64) -> Result<(), MeasureError> {
        self.file
            .write_all_at(block, at)
            .map_err(|source| failed("write the test file", &self.folder, source))
    }
}

fn of_errno(doing: &'static str, folder: &Path, error: Errno) -> MeasureError {
    failed(doing, folder, error.into())
}

fn failed(doing: &'static str, folder: &Path, source: io::Error) -> MeasureError {
    let path = folder.to_owned();
    match source.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => MeasureError::Denied { path },
        Some(Errno::INVAL) => MeasureError::NoDirect { path },
        Some(_) | None => MeasureError::File {
            doing,
            path,
            source,
        },
    }
}
