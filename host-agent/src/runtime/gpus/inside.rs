//! Whether a container that runs has its GPUs, and no others: seen from outside, in the kernel's files about its first
//! process, so that it takes no program of the image's. A look of a few files, and no call to the engine.
//!
//! The file system that the process sees says which nodes are there; the first version of the control groups also says
//! which may be used, and the second does not.

use super::given::Expected;
use super::host::Number;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Nodes that all programs of NVIDIA's open.
const CONTROL: [&str; 2] = ["nvidiactl", "nvidia-uvm"];
/// Where the first version of the control groups keeps devices.
const GROUPS: &str = "sys/fs/cgroup/devices";

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inside {
    /// Device nodes of GPUs, by name below `/dev`.
    pub nodes: BTreeMap<String, Number>,
    /// What of devices may be read or written; nothing where that cannot be seen.
    pub granted: Option<Vec<Grant>>,
    /// Whether the driver's library is mounted.
    pub has_library: bool,
}

/// Devices that a control group may use; nothing for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Number of the driver.
    pub major: Option<u32>,
    /// Number of the device.
    pub minor: Option<u32>,
}

/// Looks at what the process sees. `root` is `/` but for tests.
///
/// # Errors
/// When this process may not look, or that one is gone.
pub fn look(root: &Path, process: i64) -> io::Result<Inside> {
    let own = root.join(format!("proc/{process}"));
    let devices = own.join("root/dev");
    let mut inside = Inside {
        has_library: has_library(&fs::read_to_string(own.join("mountinfo"))?),
        granted: granted(root, &fs::read_to_string(own.join("cgroup"))?),
        ..Inside::default()
    };
    for (prefix, folder) in [
        ("", devices.clone()),
        ("nvidia-caps/", devices.join("nvidia-caps")),
        ("dri/", devices.join("dri")),
    ] {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if !prefix.is_empty() && error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_gpus = !prefix.is_empty() || name.starts_with("nvidia") || name == "kfd";
            // Links of the image are not followed: they would lead this process elsewhere.
            let found = entry.metadata()?;
            if is_gpus && found.file_type().is_char_device() {
                inside
                    .nodes
                    .insert(format!("{prefix}{name}"), Number::of(found.rdev()));
            }
        }
    }
    Ok(inside)
}

/// Whether a mount of `/proc/PID/mountinfo` is the library that computes.
fn has_library(mounts: &str) -> bool {
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    points
        .filter_map(|point| point.rsplit('/').next())
        .any(|name| name.starts_with("libcuda.so"))
}

/// What the devices' control group allows, as far as it can be read. `groups` is `/proc/PID/cgroup`.
fn granted(root: &Path, groups: &str) -> Option<Vec<Grant>> {
    let mut lines = groups.lines().map(|line| line.splitn(3, ':').skip(1));
    let path = lines.find_map(|mut line| {
        let is_devices = line.next()?.split(',').any(|it| it == "devices");
        line.next().filter(|_| is_devices)
    })?;
    let folder = root.join(GROUPS).join(path.trim_start_matches('/'));
    let list = fs::read_to_string(folder.join("devices.list")).ok()?;
    Some(grants(&list))
}

/// Lines like `c 195:0 rw`; those that only let nodes be made grant nothing here.
fn grants(list: &str) -> Vec<Grant> {
    let one = |line: &str| {
        let mut words = line.split(' ');
        let kind = words.next()?;
        let (major, minor) = words.next()?.split_once(':')?;
        let is_used = words.next()?.contains(['r', 'w']);
        let number = |text: &str| text.parse().ok();
        (is_used && kind != "b").then(|| Grant {
            major: number(major),
            minor: number(minor),
        })
    };
    list.lines().filter_map(one).collect()
}

/// Whether a node is of one GPU or slice, and not of all.
fn is_single(name: &str) -> bool {
    let is_number = |rest: &str| !rest.is_empty() && rest.chars().all(|it| it.is_ascii_digit());
    let prefixes = [
        "nvidia",
        "nvidia-caps/nvidia-cap",
        "dri/renderD",
        "dri/card",
    ];
    let mut rests = prefixes.iter().map(|prefix| name.strip_prefix(prefix));
    rests.any(|rest| rest.is_some_and(is_number))
}

/// Whether what was seen is what was given; `number` is what the host has under a name.
///
/// # Errors
/// What is missing or too much, in words.
pub fn check(
    inside: &Inside,
    expected: &Expected,
    number: impl Fn(&str) -> Option<Number>,
) -> Result<(), String> {
    let seen: BTreeSet<&str> = inside.nodes.keys().map(String::as_str).collect();
    let is_nvidia = |name: &str| name.starts_with("nvidia");
    let wanted: BTreeSet<&str> = match expected {
        Expected::Nodes(nodes) => nodes.iter().map(String::as_str).collect(),
        Expected::Count(count) => {
            let is_gpu = |name: &&&str| is_single(name) && !name.contains('/');
            let gpus = seen.iter().filter(is_gpu).count();
            return if gpus == *count {
                Ok(())
            } else {
                Err(format!(
                    "the container sees {gpus} GPUs, and {count} are leased"
                ))
            };
        }
    };
    let is_of_nvidia = wanted.iter().any(|name| is_nvidia(name));
    // NVIDIA's own lists add the nodes that draw, which are of no use without the others.
    let is_looked_at = |name: &&str| is_single(name) && is_nvidia(name) == is_of_nvidia;
    let single: BTreeSet<&str> = seen.iter().copied().filter(is_looked_at).collect();
    if let Some(missing) = wanted.difference(&single).next() {
        return Err(format!("the container does not see /dev/{missing}"));
    }
    if let Some(other) = single.difference(&wanted).next() {
        return Err(format!(
            "the container sees /dev/{other}, which is not leased"
        ));
    }
    for name in &wanted {
        let here = number(name);
        let there = inside.nodes.get(*name);
        if here.is_none() || there != here.as_ref() {
            return Err(format!(
                "/dev/{name} in the container is another device than the host's"
            ));
        }
    }
    if is_of_nvidia {
        if let Some(missing) = CONTROL.iter().find(|name| !seen.contains(**name)) {
            return Err(format!("the container does not see /dev/{missing}"));
        }
        if !inside.has_library {
            return Err("the container does not see libcuda.so".to_owned());
        }
    }
    let wanted: Vec<Number> = wanted.iter().filter_map(|name| number(name)).collect();
    let shared = inside.nodes.iter().filter(|(name, _)| !is_single(name));
    let shared: Vec<Number> = shared.map(|(_, number)| *number).collect();
    let granted = inside.granted.as_deref();
    granted.map_or(Ok(()), |granted| may_use(granted, &wanted, &shared))
}

/// Whether a control group may use the wanted devices, and of their drivers no others but those that all share.
fn may_use(granted: &[Grant], wanted: &[Number], shared: &[Number]) -> Result<(), String> {
    for &Number { major, minor } in wanted {
        let fits = |grant: &&Grant| {
            grant.major.is_none_or(|it| it == major) && grant.minor.is_none_or(|it| it == minor)
        };
        if !granted.iter().any(|grant| fits(&grant)) {
            return Err(format!("the container may not use device {major}:{minor}"));
        }
    }
    let majors: BTreeSet<u32> = wanted.iter().map(|number| number.major).collect();
    for grant in granted {
        let is_theirs = grant.major.is_none_or(|major| majors.contains(&major));
        let is_wanted = match (grant.major, grant.minor) {
            (Some(major), Some(minor)) => {
                let number = Number { major, minor };
                wanted.contains(&number) || shared.contains(&number)
            }
            (None, _) | (_, None) => false,
        };
        if is_theirs && !is_wanted {
            let word = |part: Option<u32>| part.map_or("*".to_owned(), |part| part.to_string());
            let (major, minor) = (word(grant.major), word(grant.minor));
            return Err(format!(
                "the container may use device {major}:{minor}, which is not leased"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn gpu(minor: u32) -> Number {
        Number { major: 195, minor }
    }

    fn host(name: &str) -> Option<Number> {
        match name {
            "nvidia0" => Some(gpu(0)),
            "nvidia1" => Some(gpu(1)),
            "nvidia-caps/nvidia-cap30" => Some(Number {
                major: 236,
                minor: 30,
            }),
            _ => None,
        }
    }

    fn inside(names: &[&str]) -> Inside {
        let control = [
            ("nvidiactl", gpu(255)),
            (
                "nvidia-uvm",
                Number {
                    major: 510,
                    minor: 0,
                },
            ),
        ];
        let single = names
            .iter()
            .map(|name| (*name, host(name).unwrap_or(gpu(9))));
        let nodes = single.chain(control);
        Inside {
            nodes: nodes
                .map(|(name, number)| (name.to_owned(), number))
                .collect(),
            granted: None,
            has_library: true,
        }
    }

    fn wanted(names: &[&str]) -> Expected {
        Expected::Nodes(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn what_was_given_is_seen_and_nothing_else() {
        let one = wanted(&["nvidia0"]);
        assert_eq!(check(&inside(&["nvidia0"]), &one, host), Ok(()));
        let said = |seen: &Inside| check(seen, &one, host).unwrap_err();
        assert_eq!(
            said(&inside(&[])),
            "the container does not see /dev/nvidia0"
        );
        assert_eq!(
            said(&inside(&["nvidia0", "nvidia1"])),
            "the container sees /dev/nvidia1, which is not leased"
        );
        assert_eq!(
            said(&inside(&["nvidia0", "nvidia-caps/nvidia-cap30"])),
            "the container sees /dev/nvidia-caps/nvidia-cap30, which is not leased"
        );
        let mut other = inside(&["nvidia0"]);
        other.nodes.insert("nvidia0".to_owned(), gpu(1));
        assert!(said(&other).contains("another device than the host's"));
        let mut blind = inside(&["nvidia0"]);
        blind.nodes.remove("nvidia-uvm");
        assert_eq!(said(&blind), "the container does not see /dev/nvidia-uvm");
        let bare = Inside {
            has_library: false,
            ..inside(&["nvidia0"])
        };
        assert_eq!(said(&bare), "the container does not see libcuda.so");
        let counted = |count: usize| check(&inside(&["nvidia3"]), &Expected::Count(count), host);
        assert_eq!(counted(1), Ok(()));
        assert_eq!(
            counted(2).unwrap_err(),
            "the container sees 1 GPUs, and 2 are leased"
        );
    }

    #[test]
    fn a_control_group_may_use_the_leased_gpu_and_no_other() {
        let list = "c 1:3 rwm\nc 195:0 rw\nc 195:255 rw\nc *:* m\nb *:* m\nc 510:0 rw";
        let one = wanted(&["nvidia0"]);
        let said = |list: &str| {
            let seen = Inside {
                granted: Some(grants(list)),
                ..inside(&["nvidia0"])
            };
            check(&seen, &one, host)
        };
        assert_eq!(said(list), Ok(()));
        assert_eq!(
            said(&list.replace("195:0", "195:1")).unwrap_err(),
            "the container may not use device 195:0"
        );
        assert_eq!(
            said(&format!("{list}\nc 195:1 rw")).unwrap_err(),
            "the container may use device 195:1, which is not leased"
        );
        assert_eq!(
            said(&format!("{list}\nc 195:* rw")).unwrap_err(),
            "the container may use device 195:*, which is not leased"
        );
        assert_eq!(
            said(&format!("{list}\na *:* rwm")).unwrap_err(),
            "the container may use device *:*, which is not leased"
        );
    }

    #[test]
    fn a_process_is_looked_at_through_the_kernels_files() {
        let root = tempfile::TempDir::new().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/7/cgroup", "5:cpuset:/x\n4:devices:/docker/ab\n");
        write(
            "sys/fs/cgroup/devices/docker/ab/devices.list",
            "c 195:0 rw\n",
        );
        let mount = "9 8 8:1 /usr/lib64/libcuda.so.570 /usr/local/nvidia/lib64/libcuda.so.1 ro - ext4 /dev/sda1 ro\n";
        write("proc/7/mountinfo", mount);
        write("proc/7/root/dev/nvidia0", "no node");
        let seen = look(root.path(), 7).unwrap();
        let granted = Grant {
            major: Some(195),
            minor: Some(0),
        };
        assert_eq!(seen.granted, Some(vec![granted]));
        assert!(seen.has_library && seen.nodes.is_empty());
        assert_eq!(
            look(root.path(), 8).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
