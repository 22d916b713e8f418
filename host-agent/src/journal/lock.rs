//! One agent for each data folder: a file that is locked for as long as the agent lives. The kernel lets go
//! of it however the agent ends.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Name of the file that is locked.
const FILE_NAME: &str = "agent.lock";

/// Why a folder cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another agent has it.
    #[error("another agent{} uses {folder}: stop it, or give this one another folder with --data", process(.pid))]
    Taken {
        /// The folder.
        folder: PathBuf,
        /// The other agent's process, if it said so.
        pid: Option<u32>,
    },
    /// The file cannot be made or locked.
    #[error("could not lock {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

fn process(pid: &Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

/// A folder that this process has alone.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes `folder`.
    ///
    /// # Errors
    /// When another process has it.
    pub fn take(folder: &Path) -> Result<Self, LockError> {
        let path = folder.join(FILE_NAME);
        let failed = |source| LockError::Io {
            path: path.clone(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let folder = folder.to_owned();
                return Err(LockError::Taken {
                    folder,
                    pid: read_pid(&mut file),
                });
            }
            Err(error) => return Err(failed(error.into())),
        }
        write_pid(&mut file).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}
