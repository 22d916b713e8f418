//! Size, free space and device of a file system.

use super::HardwareError;
use super::pci::{names, text};
use protocol::units::Bytes;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Its size.
    pub total: Bytes,
    /// What is free for those who are not root.
    pub free: Bytes,
    /// The model of the disk that it is on; empty when nobody says, as of a guest's disk.
    pub model: String,
}

/// Below a mapped disk are others, and below these too; deeper than this nobody stacks them.
const LAYERS_MAX: usize = 8;

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
                    model: model_of(folder),
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

fn model_of(folder: &Path) -> String {
    let Ok(found) = fs::metadata(folder) else {
        return String::new();
    };
    let number = (
        rustix::fs::major(found.dev()),
        rustix::fs::minor(found.dev()),
    );
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let device = device(Path::new("/sys"), number, &mounts, folder);
    device
        .and_then(|device| model(&device, LAYERS_MAX))
        .unwrap_or_default()
}

/// The folder about the device with this number under `root`, which is `/sys`. File systems over several disks (btrfs,
/// zfs) have a number of their own, and only `mounts`, which is `/proc/self/mountinfo`, says on what they are.
fn device(root: &Path, (major, minor): (u32, u32), mounts: &str, folder: &Path) -> Option<PathBuf> {
    if major != 0 {
        return fs::canonicalize(root.join(format!("dev/block/{major}:{minor}"))).ok();
    }
    let on = |line: &&str| {
        let point = line.split(' ').nth(4);
        point.is_some_and(|point| folder.starts_with(point))
    };
    let length = |line: &&str| line.split(' ').nth(4).map_or(0, str::len);
    let line = mounts.lines().filter(on).max_by_key(length)?;
    let (_, system) = line.split_once(" - ")?;
    let source = Path::new(system.split(' ').nth(1)?);
    let source = fs::canonicalize(source).unwrap_or_else(|_| source.to_owned());
    let name = source.strip_prefix("/dev").ok()?.file_name()?;
    fs::canonicalize(root.join("class/block").join(name)).ok()
}

/// The model of a disk, of the disk that a part is of, or of the first of those that a mapped one lies on.
fn model(device: &Path, layers: usize) -> Option<String> {
    if device.join("partition").exists() {
        return model(device.parent()?, layers);
    }
    let below = names(&device.join("slaves")).next();
    match below {
        Some(below) if layers > 0 => {
            let below = fs::canonicalize(device.join("slaves").join(below)).ok()?;
            model(&below, layers - 1)
        }
        Some(_) => None,
        None => text(&device.join("device/model")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::pci::tree::plant;
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

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

    /// A disk of two parts; the second is under an encrypted volume.
    fn tree() -> TempDir {
        let root = TempDir::new().unwrap();
        let devices = root.path().join("devices");
        plant(
            &devices,
            &[
                ("nvme0n1/device/model", "SAMSUNG MZQL23T8HCLS-00A07  \n"),
                ("nvme0n1/nvme0n1p1/partition", "1\n"),
                ("nvme0n1/nvme0n1p2/partition", "2\n"),
                ("virtual/dm-0/size", "1\n"),
                ("vda/device/vendor", "0x1af4\n"),
            ],
        );
        let link = |from: &str, to: &Path| {
            let from = root.path().join(from);
            fs::create_dir_all(from.parent().unwrap()).unwrap();
            symlink(to, from).unwrap();
        };
        let part = |number: u8| devices.join(format!("nvme0n1/nvme0n1p{number}"));
        link("devices/virtual/dm-0/slaves/nvme0n1p2", &part(2));
        link("dev/block/259:1", &part(1));
        link("dev/block/253:0", &devices.join("virtual/dm-0"));
        link("dev/block/254:0", &devices.join("vda"));
        link("class/block/nvme0n1p2", &part(2));
        root
    }

    #[test]
    fn a_disk_is_known_by_what_lies_under_the_file_system() {
        let root = tree();
        let samsung = Some("SAMSUNG MZQL23T8HCLS-00A07".to_owned());
        let mounts = "30 1 0:26 /@ / rw,relatime shared:1 - btrfs /dev/nvme0n1p2 rw,subvol=/@\n\
            31 30 0:40 / /srv rw - zfs tank/srv rw\n";
        for (number, folder, wanted) in [
            ((259, 1), "/", samsung.clone()),
            ((253, 0), "/", samsung.clone()),
            // Made for a guest: it has no model.
            ((254, 0), "/", None),
            ((8, 0), "/", None),
            ((0, 26), "/var/lib/docker", samsung),
            ((0, 40), "/srv/docker", None),
        ] {
            let device = device(root.path(), number, mounts, Path::new(folder));
            let model = device.and_then(|device| model(&device, LAYERS_MAX));
            assert_eq!(model, wanted, "{number:?} {folder}");
        }
    }

    #[test]
    fn disks_that_lie_on_each_other_end_the_search() {
        let root = TempDir::new().unwrap();
        let (one, other) = (root.path().join("dm-0"), root.path().join("dm-1"));
        for (folder, below) in [(&one, &other), (&other, &one)] {
            fs::create_dir_all(folder.join("slaves")).unwrap();
            symlink(below, folder.join("slaves/below")).unwrap();
        }
        assert_eq!(model(&one, LAYERS_MAX), None);
    }
}
