//! One writer a journal: an advisory lock that the kernel gives back however the process ends, and a file
//! that nobody else can read.

use crate::store::StoreError;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// As long as it lives, no other process writes the journal.
#[derive(Debug)]
pub(super) struct JournalLock {
    _file: File,
}

impl JournalLock {
    pub(super) fn take(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join("journal.lock");
        let file = open_private(&path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::InUse {
                folder: folder.to_owned(),
            }),
            Err(error) => Err(StoreError::Io {
                what: "lock",
                path,
                source: error.into(),
            }),
        }
    }
}

/// Makes the file, if it is not there, for its owner alone.
pub(super) fn make_private(path: &Path) -> Result<(), StoreError> {
    open_private(path).map(drop)
}

fn open_private(path: &Path) -> Result<File, StoreError> {
    let opened = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path);
    opened.map_err(|source| StoreError::Io {
        what: "open",
        path: path.to_owned(),
        source,
    })
}
