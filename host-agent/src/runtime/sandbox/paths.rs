//! Paths that an image names: where it wants to run, and what it wants kept apart from its layers.

use std::collections::HashMap;

use protocol::lease::{Problem, ProblemKind, Stage};
use protocol::units::Bytes;

use super::{NOTICES_PATH, problem};

const MEBIBYTE: u64 = 1 << 20;
const GIBIBYTE: u64 = 1 << 30;
/// An image that declares more volumes than this is not run.
const VOLUMES_MAX: usize = 32;
/// Where the kernel's own file systems are: nothing of an image is put over them.
const KERNEL_ROOTS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The path without `.`, `..` and doubled slashes; nothing when it is not absolute or has other than
/// printable characters. By its letters alone: links of the image are not followed.
pub(super) fn clean(path: &str) -> Option<String> {
    if !path.starts_with('/') || path.chars().any(char::is_control) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

/// Whether a clean path is `root` or below it.
pub(super) fn is_within(path: &str, root: &str) -> bool {
    path.strip_prefix(root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Refuses a working directory below `/proc`: with a descriptor that leaked into it, it would be the host's.
pub(super) fn check_working_directory(path: &str) -> Result<(), Problem> {
    let safe = path.is_empty() || clean(path).is_some_and(|clean| !is_within(&clean, "/proc"));
    if safe {
        return Ok(());
    }
    let detail = format!("the image wants to run in '{path}', which is not a directory of its own");
    Err(problem(
        Stage::Creating,
        ProblemKind::ImageUnusable,
        &detail,
    ))
}

/// What is mounted in memory, by path: `/tmp`, `/run`, and each volume that the image declares, which would
/// else be a folder of the host's disk that no limit holds and no removal of the container clears.
pub(super) fn memory_file_systems(
    ram: Bytes,
    volumes: &[String],
) -> Result<HashMap<String, String>, Problem> {
    let unusable = |detail: String| problem(Stage::Creating, ProblemKind::ImageUnusable, &detail);
    if volumes.len() > VOLUMES_MAX {
        let count = volumes.len();
        return Err(unusable(format!(
            "the image declares {count} volumes; {VOLUMES_MAX} are allowed"
        )));
    }
    // Jobs compile and run things in /tmp, so it may execute; /run holds sockets and numbers.
    let temporary = size_of(ram, 2, 4 * GIBIBYTE);
    let mut mounts = HashMap::from([
        ("/tmp".to_owned(), options("exec", temporary, "1777")),
        (
            "/run".to_owned(),
            options("noexec", size_of(ram, 2, 64 * MEBIBYTE), "755"),
        ),
    ]);
    for volume in volumes {
        let path = clean(volume)
            .filter(|path| may_be_covered(path))
            .ok_or_else(|| {
                unusable(format!(
                    "the image declares the volume '{volume}', which cannot be covered"
                ))
            })?;
        // Whoever the image runs as must be able to write there, as to the volume that it stands for.
        let size = size_of(ram, 4, GIBIBYTE);
        mounts
            .entry(path)
            .or_insert_with(|| options("exec", size, "1777"));
    }
    Ok(mounts)
}

fn may_be_covered(path: &str) -> bool {
    let mut roots = KERNEL_ROOTS.iter().chain([&NOTICES_PATH]);
    path != "/" && !roots.any(|root| is_within(path, root))
}

/// A part of the lease's RAM, where it counts, and at most `most`.
fn size_of(ram: Bytes, part: u64, most: u64) -> u64 {
    (ram.0 / part).clamp(MEBIBYTE, most)
}

fn options(executing: &str, size: u64, mode: &str) -> String {
    // A file of a page is the smallest that costs memory; more inodes than pages are for empty files.
    let inodes = (size / 4096).max(1024);
    format!("rw,{executing},nosuid,nodev,size={size},nr_inodes={inodes},mode={mode}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_by_their_letters() {
        assert_eq!(clean("/a//b/./c/"), Some("/a/b/c".to_owned()));
        assert_eq!(clean("/a/../../proc"), Some("/proc".to_owned()));
        assert_eq!(clean("a"), None);
        assert_eq!(clean("/a\nb"), None);
        assert!(is_within("/proc/self", "/proc") && !is_within("/process", "/proc"));
    }

    #[test]
    fn a_working_directory_below_proc_is_refused() {
        for wrong in ["/proc/self/fd/8", "/x/../proc", "//proc/", "relative"] {
            let problem = check_working_directory(wrong).unwrap_err();
            assert_eq!(problem.kind, ProblemKind::ImageUnusable, "{wrong}");
        }
        assert_eq!(check_working_directory(""), Ok(()));
        assert_eq!(check_working_directory("/workspace"), Ok(()));
    }

    #[test]
    fn every_volume_is_covered_or_refused() {
        let ram = Bytes(8 * GIBIBYTE);
        let volumes = ["/var/data/".to_owned(), "/tmp".to_owned()];
        let mounts = memory_file_systems(ram, &volumes).unwrap();
        assert_eq!(mounts.len(), 3);
        assert!(mounts["/var/data"].contains("size=1073741824"));
        assert!(
            mounts["/tmp"].contains("size=4294967296"),
            "the volume does not replace /tmp"
        );
        for wrong in ["/", "/proc/x", "/dev", "relative", "/a/../sys"] {
            assert!(
                memory_file_systems(ram, &[wrong.to_owned()]).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_small_lease_has_small_file_systems() {
        let mounts = memory_file_systems(Bytes(64 * MEBIBYTE), &[]).unwrap();
        assert!(mounts["/tmp"].contains("size=33554432"));
        assert!(mounts["/run"].contains("size=33554432"));
    }
}
