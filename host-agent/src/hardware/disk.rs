//! Size and free space of a file system.

use super::HardwareError;
use protocol::units::Bytes;
use std::path::Path;

/// A file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// Its size.
    pub total: Bytes,
    /// What is free for those who are not root.
    pub free: Bytes,
}

/// The file system that `path` is on; where the path may not be entered or is not there yet, the one of
/// the nearest folder above it.
///
/// # Errors
/// When the system does not say.
pub fn of_path(path: &Path) -> Result<Disk, HardwareError> {
    let mut last = None;
    for folder in path.ancestors() {
        match rustix::fs::statvfs(folder) {
            Ok(found) => {
                let bytes = |blocks: u64| Bytes(blocks.saturating_mul(found.f_frsize));
                return Ok(Disk {
                    total: bytes(found.f_blocks),
                    free: bytes(found.f_bavail),
                });
            }
            Err(error) => {
                last.get_or_insert(error);
            }
        }
    }
    let source = last.unwrap_or(rustix::io::Errno::NOENT).into();
    Err(HardwareError::FileSystem {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_is_at_most_total() {
        let disk = of_path(Path::new("/")).unwrap();
        assert!(disk.total.0 > 0 && disk.free <= disk.total);
    }

    #[test]
    fn a_folder_to_be_made_is_on_the_file_system_above_it() {
        let root = of_path(Path::new("/tmp")).unwrap();
        let below = of_path(Path::new("/tmp/no/such/folder/at/all")).unwrap();
        assert_eq!(root.total, below.total);
    }
}
