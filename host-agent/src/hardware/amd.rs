//! AMD GPUs, as the `amdgpu` driver's files under `/sys` and the compute driver's topology (KFD) show them.
//! It reads and never writes; [`parts`] changes how they are divided.

pub mod parts;

use super::pci::{PciDevice, gpus, names, number, text};
use protocol::bounded::Text;
use protocol::machine::{GPUS_MAX, Gpu, Vendor};
use protocol::units::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// AMD's number on the bus.
const VENDOR: u16 = 0x1002;

/// An AMD GPU: what an offer says, and how it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmdGpu {
    /// As offers describe it.
    pub gpu: Gpu,
    /// Number of its render node `/dev/dri/renderD<N>`.
    pub render_minor: Option<u32>,
    /// NUMA node that it hangs on.
    pub numa_node: Option<u32>,
    /// At which temperature its hottest place is slowed down, in degrees Celsius.
    pub temperature_max_c: Option<u32>,
    /// The XGMI hive that it is in: what resets one member resets all.
    pub hive: Option<u64>,
    /// How it is divided; nothing where it cannot be.
    pub partition: Option<AmdPartition>,
    /// How it is now.
    pub reading: AmdReading,
}

/// How a GPU is divided: the same on all GPUs of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmdPartition {
    /// `SPX`, `DPX`, `QPX`, `CPX`, `TPX`.
    pub compute: String,
    /// What it could be.
    pub compute_available: Vec<String>,
    /// `NPS1`, `NPS4`; nothing when the driver does not say.
    pub memory: Option<String>,
    /// Devices that programs see of it.
    pub devices: u32,
    /// Their render nodes `/dev/dri/renderD<N>`, in the order of the devices; none where the compute driver does not say.
    pub render_minors: Vec<u32>,
    /// Whether a program has some of its memory.
    pub in_use: bool,
}

/// How a GPU is at one moment. What the driver does not say is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AmdReading {
    /// Memory in use.
    pub memory_used: Option<Bytes>,
    /// Share of time in which it worked, in percent.
    pub utilisation_percent: Option<u32>,
    /// Power drawn, in milliwatts.
    pub power_mw: Option<u32>,
    /// Hottest place of the chip, or else its edge, in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Clocks of chip and memory in MHz.
    pub clocks_mhz: (Option<u32>, Option<u32>),
    /// PCIe generation and lanes in use.
    pub pcie: (u8, u8),
    /// Errors by block, like `umc` for the memory.
    pub errors: BTreeMap<String, RasErrors>,
    /// Pages of memory that were taken out of use.
    pub bad_pages: Option<u32>,
}

/// Errors of one block of a GPU since the driver was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RasErrors {
    /// Corrected.
    pub corrected: u64,
    /// Not corrected.
    pub uncorrected: u64,
}

/// The AMD GPUs under `root`, which is `/sys`, in the order of the bus. `pci_ids` is the text of the list of
/// names, for cards whose driver has none; empty where there is no list. A GPU without memory of its own is
/// a part of a processor, and not for lease.
#[must_use]
pub fn read(root: &Path, pci_ids: &str) -> Vec<AmdGpu> {
    let nodes = topology(root);
    let users = users(root);
    let driver = text(&root.join("module/amdgpu/version")).unwrap_or_default();
    let mut found: Vec<AmdGpu> = gpus(root, VENDOR)
        .into_iter()
        .filter_map(|device| one(&device, &nodes, &users, &driver, pci_ids))
        .take(GPUS_MAX)
        .collect();
    group(&mut found);
    found
}

fn one(
    device: &PciDevice,
    nodes: &[Node],
    users: &BTreeSet<u64>,
    driver: &str,
    pci_ids: &str,
) -> Option<AmdGpu> {
    let file = |name: &str| device.folder.join(name);
    let vram = number(&file("mem_info_vram_total")).filter(|bytes| *bytes >= 1 << 30)?;
    let mine: Vec<&Node> = nodes
        .iter()
        .filter(|node| node.is_of(&device.address))
        .collect();
    let (pcie_generation, pcie_width) = device.link_max();
    let unique = text(&file("unique_id")).map(|id| format!("GPU-{id}"));
    let model = text(&file("product_name")).unwrap_or_else(|| device.name(pci_ids));
    let partition = partition(device, &mine, users);
    let sensors = device.sensors();
    let microwatts = |name: &str| number(&sensors.as_ref()?.join(name));
    let limit = microwatts("power1_cap").and_then(|power| u32::try_from(power / 1000).ok());
    let hive = text(&file("xgmi_hive_info/xgmi_hive_id"))
        .and_then(|id| id.parse().ok())
        .or_else(|| mine.first().and_then(|node| node.number("hive_id")))
        .filter(|hive| *hive != 0);
    let links = mine.first().map_or(0, |node| node.xgmi_links);
    let gpu = Gpu {
        model: Text::cut(&model),
        uuid: Text::cut(&unique.unwrap_or_else(|| format!("PCI-{}", device.address))),
        vram: Bytes(vram),
        driver: Text::cut(driver),
        architecture: Text::cut(&mine.first().map_or_else(String::new, |node| node.gfx())),
        multiprocessors: mine
            .iter()
            .map(|node| node.compute_units())
            .fold(0, u16::saturating_add),
        clock_max_mhz: levels(&file("pp_dpm_sclk")).0.unwrap_or(0),
        memory_clock_max_mhz: levels(&file("pp_dpm_mclk")).0.unwrap_or(0),
        pci_address: Text::cut(&device.address),
        pcie_generation,
        pcie_width,
        power_limit_mw: limit.unwrap_or(0),
        ecc: text(&file("ras/features")).map(|features| features != "feature mask: 0x0"),
        links,
        is_divided: partition
            .as_ref()
            .map(|partition| partition.compute != "SPX"),
        ..Gpu::unknown(Vendor::Amd)
    };
    Some(AmdGpu {
        gpu,
        render_minor: device.render_minor(),
        numa_node: device.numa_node(),
        temperature_max_c: sensors.as_ref().and_then(|sensors| {
            let limit =
                number(&sensors.join("temp2_crit")).or_else(|| number(&sensors.join("temp1_crit")));
            u32::try_from(limit? / 1000).ok()
        }),
        hive,
        partition,
        reading: reading(device),
    })
}

fn partition(device: &PciDevice, nodes: &[&Node], users: &BTreeSet<u64>) -> Option<AmdPartition> {
    let minor = |node: &&Node| u32::try_from(node.number("drm_render_minor")?).ok();
    let id = |node: &&Node| node.id;
    let file = |name: &str| device.folder.join(name);
    let available = text(&file("available_compute_partition")).unwrap_or_default();
    Some(AmdPartition {
        compute: text(&file("current_compute_partition"))?,
        compute_available: available
            .split(',')
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect(),
        memory: text(&file("current_memory_partition")),
        devices: u32::try_from(nodes.len().max(1)).unwrap_or(u32::MAX),
        render_minors: nodes.iter().filter_map(minor).collect(),
        in_use: nodes.iter().filter_map(id).any(|id| users.contains(&id)),
    })
}

fn reading(device: &PciDevice) -> AmdReading {
    let file = |name: &str| device.folder.join(name);
    let sensors = device.sensors();
    let sensor = |name: &str| number(&sensors.as_ref()?.join(name));
    let small = |value: u64| u32::try_from(value).ok();
    AmdReading {
        memory_used: number(&file("mem_info_vram_used")).map(Bytes),
        utilisation_percent: number(&file("gpu_busy_percent")).and_then(small),
        power_mw: sensor("power1_average")
            .or_else(|| sensor("power1_input"))
            .and_then(|microwatts| small(microwatts / 1000)),
        // The second sensor is the junction where there is one.
        temperature_c: sensor("temp2_input")
            .or_else(|| sensor("temp1_input"))
            .and_then(|millidegrees| small(millidegrees / 1000)),
        clocks_mhz: (
            levels(&file("pp_dpm_sclk")).1,
            levels(&file("pp_dpm_mclk")).1,
        ),
        pcie: device.link_now(),
        errors: errors(device),
        bad_pages: text(&file("ras/gpu_vram_bad_pages"))
            .map(|list| u32::try_from(list.lines().count()).unwrap_or(u32::MAX)),
    }
}

/// The counters in `ras/<block>_err_count`, whose lines are `ue: 0` and `ce: 0`.
fn errors(device: &PciDevice) -> BTreeMap<String, RasErrors> {
    let folder = device.folder.join("ras");
    names(&folder)
        .filter_map(|name| {
            let block = name.strip_suffix("_err_count")?.to_owned();
            let text = text(&folder.join(&name))?;
            let count = |key: &str| {
                text.lines()
                    .find_map(|line| line.trim().strip_prefix(key)?.trim().parse().ok())
            };
            let errors = RasErrors {
                corrected: count("ce:")?,
                uncorrected: count("ue:")?,
            };
            Some((block, errors))
        })
        .collect()
}

/// The highest level and the one in use of a list like `0: 500Mhz` and `1: 2100Mhz *`, in MHz.
fn levels(path: &Path) -> (Option<u32>, Option<u32>) {
    let text = text(path).unwrap_or_default();
    let level = |line: &str| {
        let value = line.split_once(':')?.1.trim();
        let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    };
    let highest = text.lines().filter_map(level).max();
    let current = text.lines().find(|line| line.trim_end().ends_with('*'));
    (highest, current.and_then(level))
}

/// GPUs of one hive are one group; a hive of one is none.
fn group(found: &mut [AmdGpu]) {
    let mut members: BTreeMap<u64, u32> = BTreeMap::new();
    for hive in found.iter().filter_map(|gpu| gpu.hive) {
        *members.entry(hive).or_default() += 1;
    }
    members.retain(|_, count| *count > 1);
    let number: BTreeMap<u64, u8> = members.into_keys().zip(1..).collect();
    for gpu in found {
        let group = gpu.hive.and_then(|hive| number.get(&hive).copied());
        gpu.gpu.link_group = group.unwrap_or(0);
    }
}

/// A node of the compute driver's topology: a GPU, or a part of one that is divided.
#[derive(Debug)]
struct Node {
    /// The compute driver's number of it.
    id: Option<u64>,
    properties: BTreeMap<String, u64>,
    /// Links to other GPUs over XGMI.
    xgmi_links: u8,
}

/// The compute driver's number for a link over XGMI (`CRAT_IOLINK_TYPE_XGMI`).
const LINK_XGMI: u64 = 11;

fn topology(root: &Path) -> Vec<Node> {
    let folder = root.join("class/kfd/kfd/topology/nodes");
    // By number: the tenth is not the second.
    let mut nodes: Vec<String> = names(&folder).collect();
    nodes.sort_by_key(|name| name.parse::<u32>().unwrap_or(u32::MAX));
    nodes
        .into_iter()
        .filter_map(|name| {
            let node = folder.join(name);
            let links = node.join("io_links");
            let xgmi = names(&links)
                .filter_map(|link| text(&links.join(link).join("properties")))
                .filter(|text| properties(text).get("type") == Some(&LINK_XGMI))
                .count();
            Some(Node {
                id: number(&node.join("gpu_id")),
                properties: properties(&text(&node.join("properties"))?),
                xgmi_links: u8::try_from(xgmi).unwrap_or(u8::MAX),
            })
        })
        .filter(|node| node.number("simd_count").is_some_and(|count| count > 0))
        .collect()
}

/// The compute driver's numbers of GPUs of which some program has memory.
fn users(root: &Path) -> BTreeSet<u64> {
    let processes = root.join("class/kfd/kfd/proc");
    let of_one = |process: String| {
        let folder = processes.join(process);
        names(&folder).filter_map(move |file| {
            let id = file.strip_prefix("vram_")?.parse().ok()?;
            (number(&folder.join(&file))? > 0).then_some(id)
        })
    };
    names(&processes).flat_map(of_one).collect()
}

/// Lines like `simd_count 304`.
fn properties(text: &str) -> BTreeMap<String, u64> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs
        .filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?)))
        .collect()
}

impl Node {
    fn number(&self, name: &str) -> Option<u64> {
        self.properties.get(name).copied()
    }

    /// Whether it is (a part of) the GPU at this address: bus, device and function are in `location_id`. The
    /// function is left out: parts of a divided GPU have others.
    fn is_of(&self, address: &str) -> bool {
        let domain = self.number("domain").unwrap_or(0);
        let Some(location) = self.number("location_id") else {
            return false;
        };
        let (bus, device) = (location >> 8 & 0xff, location >> 3 & 0x1f);
        address.starts_with(&format!("{domain:04x}:{bus:02x}:{device:02x}."))
    }

    /// `gfx942` of 90402: major, minor and stepping, the last two as hexadecimal digits.
    fn gfx(&self) -> String {
        match self.number("gfx_target_version") {
            Some(version) if version > 0 => format!(
                "gfx{}{:x}{:x}",
                version / 10_000,
                version / 100 % 100,
                version % 100
            ),
            Some(_) | None => String::new(),
        }
    }

    fn compute_units(&self) -> u16 {
        let each = self.number("simd_per_cu").unwrap_or(4).max(1);
        let units = self.number("simd_count").unwrap_or(0) / each;
        u16::try_from(units).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
