//! The devices of the PCI bus, as the kernel's files under `/sys` show them. What cannot be read is unknown.

use std::fs;
use std::path::{Path, PathBuf};

/// One device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciDevice {
    /// Like `0000:05:00.0`.
    pub address: String,
    /// Vendor's number.
    pub vendor: u16,
    /// Device's number.
    pub device: u16,
    /// Where its files are.
    pub folder: PathBuf,
}

/// Display controllers, and what computes without a display.
const CLASSES: [u32; 2] = [0x03, 0x12];

/// The GPUs of `vendor` under `root`, which is `/sys`, in the order of the bus. None where there is no bus.
#[must_use]
pub fn gpus(root: &Path, vendor: u16) -> Vec<PciDevice> {
    let Ok(entries) = fs::read_dir(root.join("bus/pci/devices")) else {
        return Vec::new();
    };
    let mut found: Vec<PciDevice> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let folder = entry.path();
            let class = hexadecimal(&folder.join("class"))?;
            let device = PciDevice {
                address: entry.file_name().into_string().ok()?,
                vendor: u16::try_from(hexadecimal(&folder.join("vendor"))?).ok()?,
                device: u16::try_from(hexadecimal(&folder.join("device"))?).ok()?,
                folder,
            };
            (device.vendor == vendor && CLASSES.contains(&(class >> 16))).then_some(device)
        })
        .collect();
    found.sort_by(|one, other| one.address.cmp(&other.address));
    found
}

impl PciDevice {
    /// Highest PCIe generation and lanes of card and slot; zeros when unknown.
    #[must_use]
    pub fn link_max(&self) -> (u8, u8) {
        link(&self.folder, "max_link_speed", "max_link_width")
    }

    /// PCIe generation and lanes in use now; zeros when unknown.
    #[must_use]
    pub fn link_now(&self) -> (u8, u8) {
        link(&self.folder, "current_link_speed", "current_link_width")
    }

    /// The NUMA node that it hangs on; nothing where there is one only.
    #[must_use]
    pub fn numa_node(&self) -> Option<u32> {
        node_of(&self.folder)
    }

    /// Number of its render node `/dev/dri/renderD<N>`.
    #[must_use]
    pub fn render_minor(&self) -> Option<u32> {
        let mut names = names(&self.folder.join("drm"));
        names.find_map(|name| name.strip_prefix("renderD")?.parse().ok())
    }

    /// A folder of its sensors.
    #[must_use]
    pub fn sensors(&self) -> Option<PathBuf> {
        let folder = self.folder.join("hwmon");
        let mut names = names(&folder);
        names
            .find(|name| name.starts_with("hwmon"))
            .map(|name| folder.join(name))
    }

    /// Its name in the text of `pci.ids`, what stands in brackets where something does, or its numbers.
    #[must_use]
    pub fn name(&self, pci_ids: &str) -> String {
        let vendor = format!("{:04x}  ", self.vendor);
        let device = format!("\t{:04x}  ", self.device);
        let name = pci_ids
            .lines()
            .skip_while(|line| !line.starts_with(&vendor))
            .skip(1)
            .take_while(|line| line.starts_with('\t') || line.starts_with('#') || line.is_empty())
            .find_map(|line| line.strip_prefix(&device));
        let Some(name) = name else {
            return format!("GPU {:04x}:{:04x}", self.vendor, self.device);
        };
        let bracketed = name
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'));
        bracketed
            .map_or(name, |(inside, _)| inside)
            .trim()
            .to_owned()
    }
}

/// The NUMA node of the device at `address` of the bus under `root`, which is `/sys`.
#[must_use]
pub fn numa_node(root: &Path, address: &str) -> Option<u32> {
    // Without an address it would be the folder of all of them.
    let is_one = !address.is_empty() && !address.contains('/');
    is_one
        .then(|| node_of(&root.join("bus/pci/devices").join(address)))
        .flatten()
}

fn link(folder: &Path, speed: &str, width: &str) -> (u8, u8) {
    let generation = text(&folder.join(speed)).map_or(0, |text| generation(&text));
    // The kernel writes 255 where the link is unknown.
    let lanes = number(&folder.join(width)).filter(|lanes| *lanes <= 32);
    let lanes = lanes.and_then(|lanes| u8::try_from(lanes).ok());
    (generation, lanes.unwrap_or(0))
}

fn node_of(folder: &Path) -> Option<u32> {
    // The kernel writes -1 for none.
    u32::try_from(number(&folder.join("numa_node"))?).ok()
}

/// PCIe generation and lanes that the link of the device at `address` has now; zeros when unknown.
#[must_use]
pub fn link_now(root: &Path, address: &str) -> (u8, u8) {
    if address.is_empty() || address.contains('/') {
        return (0, 0);
    }
    let folder = root.join("bus/pci/devices").join(address);
    link(&folder, "current_link_speed", "current_link_width")
}

/// The generation of a link speed like `16.0 GT/s PCIe`; 0 of one that is none.
fn generation(speed: &str) -> u8 {
    let speeds = ["2.5", "5.0", "8.0", "16.0", "32.0", "64.0"];
    let first = speed.split(' ').next().unwrap_or_default();
    (1..)
        .zip(speeds)
        .find(|(_, known)| *known == first || known.strip_suffix(".0") == Some(first))
        .map_or(0, |(generation, _)| generation)
}

/// What a file says, without white space around it.
#[must_use]
pub fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The whole number that a file says.
#[must_use]
pub fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

fn hexadecimal(path: &Path) -> Option<u32> {
    u32::from_str_radix(text(path)?.trim_start_matches("0x"), 16).ok()
}

/// What is in a folder, in order.
pub fn names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names.into_iter()
}

/// A made-up `/sys` for the tests of the readers.
#[cfg(test)]
pub(in crate::hardware) mod tree {
    use std::fs;
    use std::path::Path;

    /// Writes files with their text under `folder`.
    pub(in crate::hardware) fn plant(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_generations() {
        for (speed, wanted) in [
            ("2.5 GT/s PCIe", 1),
            ("8.0 GT/s PCIe", 3),
            ("16.0 GT/s PCIe", 4),
            ("32.0 GT/s PCIe", 5),
            // Kernels before 5.6 write no fraction.
            ("8 GT/s", 3),
            ("Unknown", 0),
        ] {
            assert_eq!(generation(speed), wanted, "{speed}");
        }
    }

    #[test]
    fn names_are_those_of_the_list() {
        let list = "1002  Advanced Micro Devices, Inc. [AMD/ATI]\n\
                    \t744c  Navi 31 [Radeon RX 7900 XT/7900 XTX]\n\
                    \t\t1002 0e3b  RX 7900 GRE\n\
                    \t74a1  Aqua Vanjaram [Instinct MI300X]\n\
                    8086  Intel Corporation\n\t74a1  Not this\n";
        let device = |vendor, device| PciDevice {
            address: String::new(),
            vendor,
            device,
            folder: PathBuf::new(),
        };
        assert_eq!(device(0x1002, 0x74a1).name(list), "Instinct MI300X");
        assert_eq!(
            device(0x1002, 0x744c).name(list),
            "Radeon RX 7900 XT/7900 XTX"
        );
        assert_eq!(device(0x1002, 0x0001).name(list), "GPU 1002:0001");
        assert_eq!(device(0x8086, 0x74a1).name(list), "Not this");
    }

    #[test]
    fn only_gpus_of_the_vendor_are_found() {
        let root = tempfile::TempDir::new().unwrap();
        let bus = root.path().join("bus/pci/devices");
        for (address, vendor, class) in [
            ("0000:83:00.0", "0x1002", "0x120000"),
            ("0000:03:00.0", "0x1002", "0x030000"),
            ("0000:03:00.1", "0x1002", "0x040300"),
            ("0000:04:00.0", "0x10de", "0x030200"),
        ] {
            tree::plant(
                &bus.join(address),
                &[("vendor", vendor), ("device", "0x74a1\n"), ("class", class)],
            );
        }
        let found = gpus(root.path(), 0x1002);
        let addresses: Vec<&str> = found.iter().map(|gpu| gpu.address.as_str()).collect();
        assert_eq!(addresses, ["0000:03:00.0", "0000:83:00.0"]);
        assert_eq!(found[0].device, 0x74a1);
        assert!(gpus(Path::new("/nonexistent"), 0x1002).is_empty());
    }
}
