//! Small files that are written whole or not at all. Must not know what stands in them.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Writes a file that only its owner may read. Whether it was written now; one that is there is left as it is.
///
/// # Errors
/// What the system said.
pub fn write_new(path: &Path, text: &str) -> io::Result<bool> {
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match opened {
        Ok(mut file) => {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes a file that only its owner may read over one that is there, durably: after a crash it is the old one or
/// the new one.
///
/// # Errors
/// What the system said.
pub fn write_over(path: &Path, text: &str) -> io::Result<()> {
    let beside = beside(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}

/// Writes a file for another process that waits for it: it sees all of it or nothing.
///
/// # Errors
/// What the system said.
pub fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let beside = beside(path);
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}
