//! What this machine shows of its GPUs to whoever gives them to a container: the driver's numbers of them, device
//! nodes, libraries. It reads and never writes.

use super::cdi;
use crate::hardware::toolkit;
use crate::version::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where libraries are, by distribution; Debian's own driver has a folder for them.
const FOLDERS: [&str; 6] = [
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu/nvidia/current",
    "usr/lib/aarch64-linux-gnu/nvidia/current",
    "usr/lib",
];
/// What computing and looking need of the driver, by the names that programs load them by. Without the first two there
/// is nothing to compute with.
const LIBRARIES: [&str; 9] = [
    "libcuda.so.1",
    "libnvidia-ml.so.1",
    "libnvidia-ptxjitcompiler.so.1",
    "libnvidia-nvvm.so.4",
    "libnvidia-nvvm70.so.4",
    "libcudadebugger.so.1",
    "libnvidia-opencl.so.1",
    "libnvidia-allocator.so.1",
    "libnvidia-cfg.so.1",
];
const NEEDED: usize = 2;
/// The same for libraries that are loaded by the driver's whole version.
const VERSIONED: [&str; 5] = [
    "libnvidia-gpucomp.so",
    "libnvidia-compiler.so",
    "libnvidia-fatbinaryloader.so",
    "libnvidia-pkcs11.so",
    "libnvidia-pkcs11-openssl3.so",
];
/// Programs of the driver that tenants look with.
const PROGRAMS: [&str; 1] = ["usr/bin/nvidia-smi"];

/// What is known of the machine's GPUs without asking them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostGpus {
    /// Numbers of NVIDIA's device nodes by UUID; nothing where the kernel shows no driver of theirs.
    pub minors: Option<BTreeMap<String, u32>>,
    /// Numbers of the capability nodes of slices, by number of the GPU's node and of the slice.
    pub slices: BTreeMap<(u32, u32), SliceNodes>,
    /// Names that the engine can be asked for through CDI.
    pub cdi: BTreeSet<String>,
    /// Version of NVIDIA's container toolkit, as its program says it.
    pub toolkit: Option<Version>,
    /// Device nodes that are there, by their names below `/dev`.
    pub nodes: BTreeMap<String, Node>,
    /// Names below `/dev` of the render nodes of devices on the bus.
    pub render: BTreeMap<String, Vec<String>>,
    /// Files of the driver, by the names that they get in a container; empty where not all that is needed was found.
    pub libraries: BTreeMap<String, PathBuf>,
    /// The same for its programs.
    pub programs: BTreeMap<String, PathBuf>,
}

/// The capability nodes of a slice: that of itself, and those of the compute instances in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SliceNodes {
    /// Of the GPU instance.
    pub gpu_instance: u32,
    /// Of its compute instances: one where the slice is of one piece.
    pub compute_instances: Vec<u32>,
}

/// A device node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Where it is on the host.
    pub path: PathBuf,
    /// Its number.
    pub number: Number,
    /// The group that may use it where not everybody may.
    pub group: Option<u32>,
}

/// A device's number: of its driver, and among the driver's devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number {
    /// Of the driver.
    pub major: u32,
    /// Of the device.
    pub minor: u32,
}

impl Number {
    /// As the kernel packs it.
    #[must_use]
    pub fn of(device: u64) -> Self {
        Self {
            major: rustix::fs::major(device),
            minor: rustix::fs::minor(device),
        }
    }
}

impl HostGpus {
    /// What the machine under `root` shows, which is `/` but for tests; `lists` are the folders of the engine's CDI.
    pub async fn read(root: &Path, lists: &[String]) -> Self {
        let toolkit = Version::find(&toolkit::version().await);
        let (root, lists) = (root.to_owned(), lists.to_vec());
        let read = tokio::task::spawn_blocking(move || Self::read_now(&root, &lists));
        // It does not panic; and what cannot be seen is not given.
        let read = read.await.unwrap_or_default();
        Self { toolkit, ..read }
    }

    fn read_now(root: &Path, lists: &[String]) -> Self {
        let folders: Vec<PathBuf> = lists.iter().map(|list| under(root, list)).collect();
        Self {
            minors: minors(root),
            slices: slices(root),
            cdi: cdi::read(folders.iter().map(PathBuf::as_path)),
            toolkit: None,
            nodes: nodes(root),
            render: render(root),
            libraries: libraries(root),
            programs: programs(root),
        }
    }
}

/// `path` as it is under another root.
fn under(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

fn entries(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
}

/// The value of a line like `GPU UUID: GPU-5a1e`.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.strip_prefix(':')?.trim())
}

fn minors(root: &Path) -> Option<BTreeMap<String, u32>> {
    let folder = under(root, "/proc/driver/nvidia/gpus");
    if !folder.is_dir() {
        return None;
    }
    let one = |(_, path): (String, PathBuf)| {
        let text = fs::read_to_string(path.join("information")).ok()?;
        let minor = value(&text, "Device Minor")?.parse().ok()?;
        Some((value(&text, "GPU UUID")?.to_owned(), minor))
    };
    Some(entries(&folder).filter_map(one).collect())
}

fn slices(root: &Path) -> BTreeMap<(u32, u32), SliceNodes> {
    let folder = under(root, "/proc/driver/nvidia/capabilities");
    let number = |name: &str, prefix: &str| name.strip_prefix(prefix)?.parse::<u32>().ok();
    let minor = |folder: &Path| {
        let text = fs::read_to_string(folder.join("access")).ok()?;
        value(&text, "DeviceFileMinor")?.parse::<u32>().ok()
    };
    let mut all = BTreeMap::new();
    for (gpu, path) in entries(&folder) {
        let Some(gpu) = number(&gpu, "gpu") else {
            continue;
        };
        for (instance, path) in entries(&path.join("mig")) {
            let (Some(instance), Some(own)) = (number(&instance, "gi"), minor(&path)) else {
                continue;
            };
            let of_compute = entries(&path).filter(|(name, _)| number(name, "ci").is_some());
            let mut compute: Vec<u32> = of_compute.filter_map(|(_, path)| minor(&path)).collect();
            compute.sort_unstable();
            let nodes = SliceNodes {
                gpu_instance: own,
                compute_instances: compute,
            };
            all.insert((gpu, instance), nodes);
        }
    }
    all
}

/// All nodes that may be of a GPU.
fn nodes(root: &Path) -> BTreeMap<String, Node> {
    let folder = under(root, "/dev");
    let is_gpus = |name: &str| name.starts_with("nvidia") || name == "kfd";
    let flat = entries(&folder).filter(|(name, _)| is_gpus(name));
    let in_folder = |name: &'static str| {
        entries(&folder.join(name)).map(move |(node, path)| (format!("{name}/{node}"), path))
    };
    let all = flat.chain(in_folder("nvidia-caps")).chain(in_folder("dri"));
    all.filter_map(|(name, path)| Some((name, Node::read(path)?)))
        .collect()
}

impl Node {
    /// The node of that name below `/dev`, where there is one.
    #[must_use]
    pub fn at(root: &Path, name: &str) -> Option<Self> {
        Self::read(under(root, "/dev").join(name))
    }

    fn read(path: PathBuf) -> Option<Self> {
        let found = fs::metadata(&path).ok()?;
        let is_everybodys = found.mode() & 0o006 == 0o006;
        let group = (!is_everybodys && found.gid() != 0).then_some(found.gid());
        found.file_type().is_char_device().then(|| Self {
            number: Number::of(found.rdev()),
            group,
            path,
        })
    }
}

fn render(root: &Path) -> BTreeMap<String, Vec<String>> {
    let folder = under(root, "/sys/bus/pci/devices");
    let of_device = |(address, path): (String, PathBuf)| {
        let drm = entries(&path.join("drm"));
        let mut nodes: Vec<String> = drm
            .filter(|(name, _)| name.starts_with("renderD"))
            .map(|(name, _)| format!("dri/{name}"))
            .collect();
        nodes.sort();
        (!nodes.is_empty()).then_some((address, nodes))
    };
    entries(&folder).filter_map(of_device).collect()
}

/// The driver's files; links are followed on the host, where they are trusted.
fn libraries(root: &Path) -> BTreeMap<String, PathBuf> {
    let find = |name: &str| {
        let mut places = FOLDERS.iter().map(|folder| root.join(folder).join(name));
        places.find_map(|path| {
            let file = fs::canonicalize(path).ok()?;
            file.is_file().then_some(file)
        })
    };
    let found = LIBRARIES.map(|name| (name, find(name)));
    if found.iter().take(NEEDED).any(|(_, file)| file.is_none()) {
        return BTreeMap::new();
    }
    let mut all: BTreeMap<String, PathBuf> = found
        .into_iter()
        .filter_map(|(name, file)| Some((name.to_owned(), file?)))
        .collect();
    let cuda = all.get("libcuda.so.1").cloned();
    let version = cuda.as_deref().and_then(version_of);
    for name in VERSIONED {
        let Some(version) = &version else { break };
        let name = format!("{name}.{version}");
        if let Some(file) = find(&name) {
            all.insert(name, file);
        }
    }
    // Compilers of kernels look for it without its number.
    all.extend(cuda.map(|file| ("libcuda.so".to_owned(), file)));
    all
}

/// `570.124.06` of `libcuda.so.570.124.06`.
fn version_of(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    name.strip_prefix("libcuda.so.").map(str::to_owned)
}

fn programs(root: &Path) -> BTreeMap<String, PathBuf> {
    let found = PROGRAMS.iter().filter_map(|path| {
        let file = fs::canonicalize(root.join(path)).ok()?;
        let name = path.rsplit('/').next()?;
        file.is_file().then(|| (name.to_owned(), file))
    });
    found.collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// A machine in files: two NVIDIA GPUs, the first with a slice, and one of AMD. Its nodes are links to what every
    /// machine has.
    pub(crate) fn machine() -> TempDir {
        let root = TempDir::new().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let information = |minor: u32, uuid: &str| {
            format!("Model: \t\t NVIDIA H100\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n")
        };
        let gpus = "proc/driver/nvidia/gpus";
        write(
            &format!("{gpus}/0000:05:00.0/information"),
            &information(1, "GPU-1b"),
        );
        write(
            &format!("{gpus}/0000:15:00.0/information"),
            &information(0, "GPU-0a"),
        );
        let access = |minor: u32| format!("DeviceFileMinor: {minor}\nDeviceFileMode: 292\n");
        let mig = "proc/driver/nvidia/capabilities/gpu0/mig";
        write(&format!("{mig}/config"), &access(1));
        write(&format!("{mig}/gi3/access"), &access(30));
        write(&format!("{mig}/gi3/ci0/access"), &access(31));
        write(
            "sys/bus/pci/devices/0000:63:00.0/drm/renderD129/dev",
            "226:129",
        );
        write("usr/lib64/libcuda.so.570.124.06", "cuda");
        write("usr/lib64/libnvidia-ml.so.570.124.06", "nvml");
        write("usr/lib64/libnvidia-gpucomp.so.570.124.06", "compiler");
        write("usr/bin/nvidia-smi", "");
        let link = |to: &str, path: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(to, path).unwrap();
        };
        link("libcuda.so.570.124.06", "usr/lib64/libcuda.so.1");
        link("libnvidia-ml.so.570.124.06", "usr/lib64/libnvidia-ml.so.1");
        for node in [
            "nvidia0",
            "nvidiactl",
            "nvidia-uvm",
            "nvidia-caps/nvidia-cap30",
        ] {
            link("/dev/null", &format!("dev/{node}"));
        }
        link("/dev/full", "dev/nvidia1");
        link("/dev/zero", "dev/nvidia-caps/nvidia-cap31");
        link("/dev/random", "dev/kfd");
        link("/dev/zero", "dev/dri/renderD129");
        write("dev/nvidia-notes", "no node");
        root
    }

    #[tokio::test]
    async fn a_machine_shows_numbers_nodes_and_libraries() {
        let root = machine();
        let found = HostGpus::read(root.path(), &[]).await;
        let minors = [("GPU-0a".to_owned(), 0), ("GPU-1b".to_owned(), 1)];
        assert_eq!(found.minors, Some(BTreeMap::from(minors)));
        let slice = SliceNodes {
            gpu_instance: 30,
            compute_instances: vec![31],
        };
        assert_eq!(found.slices, BTreeMap::from([((0, 3), slice)]));
        // By the kernel's list of devices: 1:3 null, 1:5 zero, 1:7 full.
        let number = |name: &str| found.nodes[name].number;
        assert_eq!(number("nvidia0"), Number { major: 1, minor: 3 });
        assert_eq!(number("nvidia1"), Number { major: 1, minor: 7 });
        assert_eq!(number("dri/renderD129"), Number { major: 1, minor: 5 });
        assert!(!found.nodes.contains_key("nvidia-notes"));
        assert_eq!(found.render["0000:63:00.0"], ["dri/renderD129"]);
        let names: Vec<&str> = found.libraries.keys().map(String::as_str).collect();
        let wanted = [
            "libcuda.so",
            "libcuda.so.1",
            "libnvidia-gpucomp.so.570.124.06",
            "libnvidia-ml.so.1",
        ];
        assert_eq!(names, wanted);
        assert!(found.libraries["libcuda.so"].ends_with("usr/lib64/libcuda.so.570.124.06"));
        assert_eq!(found.programs.len(), 1);
    }

    #[tokio::test]
    async fn a_machine_without_a_gpu_shows_none() {
        let root = TempDir::new().unwrap();
        let found = HostGpus::read(root.path(), &[]).await;
        let toolkit = found.toolkit.clone();
        assert_eq!(
            found,
            HostGpus {
                toolkit,
                ..HostGpus::default()
            }
        );
        // Without the one that computes, the others are of no use.
        let root = machine();
        fs::remove_file(root.path().join("usr/lib64/libcuda.so.1")).unwrap();
        assert!(HostGpus::read(root.path(), &[]).await.libraries.is_empty());
    }
}
