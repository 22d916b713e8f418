//! Which way the GPUs of a lease come into their container, and what is asked of the engine for it. Pure.
//!
//! ```text
//!   the engine lists every device, and hooks can be trusted ───▶ CDI, by name
//!   the engine has NVIDIA's runtime, and hooks can be trusted ─▶ its device request, by UUID
//!   nodes and libraries are here ──────────────────────────────▶ our own list: no hook runs at all
//!   GPUs of AMD and Intel ─────────────────────────────────────▶ their nodes
//! ```
//!
//! Hooks run as the host's root and see what an image says. Those of a toolkit below [`TOOLKIT_FLOOR`] are known to do
//! what it says (CVE-2025-23266), and are not used.

use super::given::{Expected, Given, Way};
use super::host::{HostGpus, Node};
use super::{DRIVER_FOLDER, LIBRARY_FOLDER, LeasedGpu, PROGRAM_FOLDER};
use crate::runtime::EngineFacts;
use crate::version::Version;
use protocol::machine::Vendor;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// First version of NVIDIA's container toolkit whose hooks do not run what an image says.
pub const TOOLKIT_FLOOR: [u64; 3] = [1, 17, 8];
/// First engine with CDI.
const ENGINE_WITH_CDI: u64 = 25;
/// What every program of NVIDIA's opens beside the GPU. Without the first two nothing can be computed.
const CONTROL: [&str; 3] = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"];
const CONTROL_NEEDED: usize = 2;

/// What a container is made with for its GPUs. The default is for a container without any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Injection {
    /// Names that the engine is asked for, where it is asked.
    pub names: Vec<String>,
    /// Device nodes.
    pub nodes: Vec<GivenNode>,
    /// Files that are mounted read-only: where on the host, and where in the container.
    pub files: Vec<(PathBuf, String)>,
    /// Groups of the host that may use the nodes.
    pub groups: BTreeSet<u32>,
    /// The same as a label says it; nothing without GPUs.
    pub given: Option<Given>,
}

/// A device node that a container gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenNode {
    /// Where it is on the host.
    pub path: PathBuf,
    /// Its name below `/dev` in the container.
    pub name: String,
    /// Whether it may be written, and not only read.
    pub is_written: bool,
}

impl Injection {
    /// The way, where there are GPUs.
    #[must_use]
    pub fn way(&self) -> Option<Way> {
        self.given.as_ref().map(|given| given.way)
    }
}

/// How `gpus` come into a container.
///
/// # Errors
/// Why none of the ways leads there, in words.
pub fn injection(
    gpus: &[LeasedGpu],
    engine: &EngineFacts,
    host: &HostGpus,
) -> Result<Injection, String> {
    let Some(first) = gpus.first() else {
        return Ok(Injection::default());
    };
    let vendor = first.card.vendor;
    if gpus.iter().any(|gpu| gpu.card.vendor != vendor) {
        return Err("GPUs of two vendors are not given to one container".to_owned());
    }
    match vendor {
        Vendor::Nvidia => nvidia(gpus, engine, host),
        Vendor::Amd => render(gpus, host, &["kfd"]),
        Vendor::Intel => render(gpus, host, &[]),
    }
}

/// Whether, and why not, each way is open to NVIDIA's GPUs in general: for an owner's eyes and for the choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ways {
    /// By the engine's list, for devices that are in it.
    pub cdi: Result<(), String>,
    /// By NVIDIA's runtime.
    pub request: Result<(), String>,
    /// By our own list.
    pub nodes: Result<(), String>,
}

impl Ways {
    /// What engine and machine allow.
    #[must_use]
    pub fn of(engine: &EngineFacts, host: &HostGpus) -> Self {
        let hooks = hooks(host);
        let version = Version::find(&engine.version);
        let is_new = version.is_some_and(|it| it >= Version::of(&[ENGINE_WITH_CDI]));
        let cdi = if !is_new {
            Err(format!(
                "the engine is {}, and CDI needs {ENGINE_WITH_CDI}",
                engine.version
            ))
        } else if engine.cdi_spec_dirs.is_empty() {
            Err("the engine has CDI switched off".to_owned())
        } else {
            hooks.clone()
        };
        let has_runtime = engine.runtimes.iter().any(|name| name == "nvidia");
        let request = if has_runtime {
            hooks
        } else {
            Err("the engine has no NVIDIA runtime".to_owned())
        };
        Self {
            cdi,
            request,
            nodes: own(host),
        }
    }

    /// The way that `names` of devices are given, the first that is open.
    ///
    /// # Errors
    /// Why none is.
    pub fn choose(&self, names: &[&str], host: &HostGpus) -> Result<Way, String> {
        let listed = |name: &&str| host.cdi.contains(&cdi_name(name));
        let cdi = self.cdi.clone().and_then(|()| {
            let missing = names.iter().find(|name| !listed(name));
            missing.map_or(Ok(()), |name| Err(format!("no list has {name}")))
        });
        let ways = [
            (Way::Cdi, "device list", cdi),
            (Way::Request, "runtime", self.request.clone()),
            (Way::Nodes, "own list", self.nodes.clone()),
        ];
        let mut reasons = Vec::new();
        for (way, word, is_open) in ways {
            match is_open {
                Ok(()) => return Ok(way),
                Err(reason) => reasons.push(format!("{word}: {reason}")),
            }
        }
        Err(reasons.join("; "))
    }
}

/// Whether hooks of the toolkit may run. One whose version is not known is the owner's choice.
fn hooks(host: &HostGpus) -> Result<(), String> {
    let floor = Version::of(&TOOLKIT_FLOOR);
    match &host.toolkit {
        Some(version) if *version < floor => Err(format!(
            "toolkit {version} runs what an image says as root, and {floor} does not"
        )),
        Some(_) | None => Ok(()),
    }
}

fn own(host: &HostGpus) -> Result<(), String> {
    if host.minors.is_none() {
        return Err("the kernel shows no NVIDIA driver".to_owned());
    }
    let needed = CONTROL.iter().take(CONTROL_NEEDED);
    let mut missing = needed.filter(|name| !host.nodes.contains_key(**name));
    if let Some(name) = missing.next() {
        return Err(format!("there is no /dev/{name}"));
    }
    if host.libraries.is_empty() {
        return Err(
            "libcuda.so.1 and libnvidia-ml.so.1 are in none of the usual folders".to_owned(),
        );
    }
    Ok(())
}

fn cdi_name(device: &str) -> String {
    format!("nvidia.com/gpu={device}")
}

fn nvidia(gpus: &[LeasedGpu], engine: &EngineFacts, host: &HostGpus) -> Result<Injection, String> {
    let devices: Vec<&str> = gpus.iter().map(|gpu| gpu.device.as_str()).collect();
    let way = Ways::of(engine, host).choose(&devices, host)?;
    let own = own_nodes(gpus, host)?;
    let expected = match &own {
        Some(nodes) => Expected::Nodes(nodes.iter().cloned().collect()),
        None => Expected::Count(gpus.len()),
    };
    let given = Some(Given {
        way,
        devices: devices.iter().map(|device| (*device).to_owned()).collect(),
        expected,
    });
    let asked = match way {
        Way::Cdi => Injection {
            names: devices.iter().map(|device| cdi_name(device)).collect(),
            ..Injection::default()
        },
        Way::Request => Injection {
            names: devices.iter().map(|device| (*device).to_owned()).collect(),
            ..Injection::default()
        },
        Way::Nodes => listed(&own.unwrap_or_default(), host)?,
    };
    Ok(Injection { given, ..asked })
}

/// The nodes of single GPUs and slices; nothing where the kernel does not show whose is which.
fn own_nodes(gpus: &[LeasedGpu], host: &HostGpus) -> Result<Option<BTreeSet<String>>, String> {
    let Some(minors) = &host.minors else {
        return Ok(None);
    };
    let mut nodes = BTreeSet::new();
    for gpu in gpus {
        let uuid = gpu.card.uuid.as_str();
        let minor = minors.get(uuid);
        let minor = *minor.ok_or_else(|| format!("the driver shows no {uuid}"))?;
        nodes.insert(format!("nvidia{minor}"));
        let Some(instance) = gpu.gpu_instance else {
            continue;
        };
        let device = gpu.device.as_str();
        let slice = host.slices.get(&(minor, instance));
        let slice = slice.ok_or_else(|| format!("the driver shows no capability of {device}"))?;
        let [compute] = slice.compute_instances.as_slice() else {
            let count = slice.compute_instances.len();
            return Err(format!(
                "{device} is cut into {count} compute instances, and not one"
            ));
        };
        nodes.extend(
            [slice.gpu_instance, *compute].map(|minor| format!("nvidia-caps/nvidia-cap{minor}")),
        );
    }
    Ok(Some(nodes))
}

/// Our own list: these nodes, those that all programs open, and the driver's files.
fn listed(own: &BTreeSet<String>, host: &HostGpus) -> Result<Injection, String> {
    let control = CONTROL
        .iter()
        .filter(|name| host.nodes.contains_key(**name));
    let names = own.iter().map(String::as_str).chain(control.copied());
    let (nodes, groups) = nodes(names, host)?;
    let libraries = host.libraries.iter().map(|file| (LIBRARY_FOLDER, file));
    let programs = host.programs.iter().map(|file| (PROGRAM_FOLDER, file));
    let files = libraries.chain(programs);
    Ok(Injection {
        nodes,
        groups,
        files: files
            .map(|(folder, (name, path))| (path.clone(), format!("{folder}/{name}")))
            .collect(),
        ..Injection::default()
    })
}

fn nodes<'a>(
    names: impl Iterator<Item = &'a str>,
    host: &HostGpus,
) -> Result<(Vec<GivenNode>, BTreeSet<u32>), String> {
    let mut nodes = Vec::new();
    let mut groups = BTreeSet::new();
    for name in names {
        let found: Option<&Node> = host.nodes.get(name);
        let node = found.ok_or_else(|| format!("there is no /dev/{name}"))?;
        groups.extend(node.group);
        nodes.push(GivenNode {
            path: node.path.clone(),
            name: name.to_owned(),
            // A capability is had by whoever can open its node to read.
            is_written: !name.starts_with("nvidia-caps/"),
        });
    }
    Ok((nodes, groups))
}

/// GPUs by their render nodes, beside the nodes that all of their programs open.
fn render(gpus: &[LeasedGpu], host: &HostGpus, shared: &[&str]) -> Result<Injection, String> {
    let mut own = BTreeSet::new();
    for gpu in gpus {
        // A part of a GPU is its render node; a whole one has those that its device on the bus has.
        if gpu.device.starts_with("renderD") {
            own.insert(format!("dri/{}", gpu.device.as_str()));
            continue;
        }
        let address = gpu.card.pci_address.as_str();
        let found = host.render.get(address);
        own.extend(
            found
                .ok_or_else(|| format!("the GPU at {address} has no render node"))?
                .iter()
                .cloned(),
        );
    }
    let names = own.iter().map(String::as_str).chain(shared.iter().copied());
    let (nodes, groups) = nodes(names, host)?;
    let given = Given {
        way: Way::Nodes,
        devices: gpus.iter().map(|gpu| gpu.device.to_string()).collect(),
        expected: Expected::Nodes(own),
    };
    Ok(Injection {
        nodes,
        groups,
        given: Some(given),
        ..Injection::default()
    })
}

/// Whether a path in a container is one that our own list fills.
#[must_use]
pub fn is_drivers(path: &str) -> bool {
    path.strip_prefix(DRIVER_FOLDER)
        .is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
