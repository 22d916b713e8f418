//! Intel GPUs, as the `xe` and `i915` drivers' files under `/sys` show them. It reads and never writes.

use super::pci::{PciDevice, gpus, names, number, text};
use protocol::bounded::Text;
use protocol::machine::{GPUS_MAX, Gpu, Vendor};
use protocol::units::Bytes;
use std::path::{Path, PathBuf};

/// Intel's number on the bus.
const VENDOR: u16 = 0x8086;
/// Less memory of its own than any card has: what is smaller is a window, or a part of a processor.
const VRAM_MIN: u64 = 1 << 30;

/// An Intel GPU: what an offer says, and how it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntelGpu {
    /// As offers describe it.
    pub gpu: Gpu,
    /// Number of its render node `/dev/dri/renderD<N>`.
    pub render_minor: Option<u32>,
    /// NUMA node that it hangs on.
    pub numa_node: Option<u32>,
    /// At which temperature it is slowed down, in degrees Celsius.
    pub temperature_max_c: Option<u32>,
    /// How it is now.
    pub reading: IntelReading,
}

/// How a GPU is at one moment. What the driver does not say is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntelReading {
    /// Clock of the chip in MHz; 0 while it sleeps.
    pub clock_mhz: Option<u32>,
    /// Energy since the driver was loaded, in millijoules: two readings give the power.
    pub energy_mj: Option<u64>,
    /// In degrees Celsius.
    pub temperature_c: Option<u32>,
    /// PCIe generation and lanes in use.
    pub pcie: (u8, u8),
}

/// The Intel GPUs with memory of their own under `root`, which is `/sys`, in the order of the bus. `pci_ids`
/// is the text of the list of names; empty where there is no list.
#[must_use]
pub fn read(root: &Path, pci_ids: &str) -> Vec<IntelGpu> {
    gpus(root, VENDOR)
        .into_iter()
        .filter_map(|device| one(root, &device, pci_ids))
        .take(GPUS_MAX)
        .collect()
}

fn one(root: &Path, device: &PciDevice, pci_ids: &str) -> Option<IntelGpu> {
    let vram = vram(device).filter(|bytes| *bytes >= VRAM_MIN)?;
    let (pcie_generation, pcie_width) = device.link_max();
    let sensors = device.sensors();
    let sensor = |name: &str| number(&sensors.as_ref()?.join(name));
    let driver = ["xe", "i915"]
        .iter()
        .find_map(|name| text(&root.join("module").join(name).join("version")));
    let clock = |file: [&str; 2]| clocks(device, file).and_then(|clock| u32::try_from(clock).ok());
    let limit = sensor("power1_max").or_else(|| sensor("power1_rated_max"));
    let gpu = Gpu {
        model: Text::cut(&device.name(pci_ids)),
        uuid: Text::cut(&format!("PCI-{}", device.address)),
        vram: Bytes(vram),
        driver: Text::cut(&driver.unwrap_or_default()),
        clock_max_mhz: clock(["rp0_freq", "gt_RP0_freq_mhz"]).unwrap_or(0),
        pci_address: Text::cut(&device.address),
        pcie_generation,
        pcie_width,
        power_limit_mw: limit
            .and_then(|microwatts| u32::try_from(microwatts / 1000).ok())
            .unwrap_or(0),
        ..Gpu::unknown(Vendor::Intel)
    };
    let reading = IntelReading {
        clock_mhz: clock(["act_freq", "gt_act_freq_mhz"]),
        energy_mj: sensor("energy1_input").map(|microjoules| microjoules / 1000),
        temperature_c: sensor("temp2_input")
            .or_else(|| sensor("temp1_input"))
            .and_then(|millidegrees| u32::try_from(millidegrees / 1000).ok()),
        pcie: device.link_now(),
    };
    Some(IntelGpu {
        gpu,
        render_minor: device.render_minor(),
        numa_node: device.numa_node(),
        temperature_max_c: sensor("temp2_crit")
            .and_then(|millidegrees| u32::try_from(millidegrees / 1000).ok()),
        reading,
    })
}

/// Its memory: what a driver says where it does, else the window to it, which is as large as the memory
/// where the firmware permits that.
fn vram(device: &PciDevice) -> Option<u64> {
    let tiles = names(&device.folder)
        .filter(|name| name.starts_with("tile"))
        .filter_map(|tile| number(&device.folder.join(tile).join("physical_vram_size_bytes")));
    let of_tiles = Some(tiles.sum()).filter(|bytes: &u64| *bytes > 0);
    of_tiles
        .or_else(|| card(device).and_then(|card| number(&card.join("lmem_total_bytes"))))
        .or_else(|| window(&text(&device.folder.join("resource"))?))
}

/// Size of the third line of the bus's list of windows: first and last address, and flags.
fn window(resource: &str) -> Option<u64> {
    let line = resource.lines().nth(2)?;
    let mut parts = line
        .split_whitespace()
        .map(|part| u64::from_str_radix(part.trim_start_matches("0x"), 16).ok());
    let (first, last) = (parts.next()??, parts.next()??);
    last.checked_sub(first)?.checked_add(1).filter(|_| last > 0)
}

/// A clock under its name in `xe` or in `i915`, in MHz.
fn clocks(device: &PciDevice, [xe, i915]: [&str; 2]) -> Option<u64> {
    number(&device.folder.join("tile0/gt0/freq0").join(xe))
        .or_else(|| number(&card(device)?.join(i915)))
}

fn card(device: &PciDevice) -> Option<PathBuf> {
    let folder = device.folder.join("drm");
    let mut names = names(&folder);
    names
        .find(|name| name.starts_with("card"))
        .map(|name| folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::super::pci::tree::plant;
    use super::*;
    use tempfile::TempDir;

    const LIST: &str =
        "8086  Intel Corporation\n\te20b  Battlemage G21 [Arc B580]\n\t56a0  DG2 [Arc A770]\n";

    #[test]
    fn a_card_of_xe_is_read() {
        let root = TempDir::new().unwrap();
        plant(
            &root.path().join("bus/pci/devices/0000:03:00.0"),
            &[
                ("vendor", "0x8086\n"),
                ("device", "0xe20b\n"),
                ("class", "0x030000\n"),
                ("max_link_speed", "16.0 GT/s PCIe\n"),
                ("max_link_width", "8\n"),
                ("tile0/physical_vram_size_bytes", "12884901888\n"),
                ("tile0/gt0/freq0/rp0_freq", "2850\n"),
                ("tile0/gt0/freq0/act_freq", "0\n"),
                ("hwmon/hwmon3/power1_max", "190000000\n"),
                ("hwmon/hwmon3/energy1_input", "123456789\n"),
                ("hwmon/hwmon3/temp2_input", "47000\n"),
                ("hwmon/hwmon3/temp2_crit", "100000\n"),
                ("drm/renderD129/dev", "226:129\n"),
            ],
        );
        let found = read(root.path(), LIST);
        let gpu = &found[0].gpu;
        assert_eq!(gpu.model.as_str(), "Arc B580");
        assert_eq!(gpu.vendor, Vendor::Intel);
        assert_eq!(gpu.uuid.as_str(), "PCI-0000:03:00.0");
        assert_eq!(gpu.vram, Bytes(12_884_901_888));
        assert_eq!((gpu.pcie_generation, gpu.pcie_width), (4, 8));
        assert_eq!((gpu.clock_max_mhz, gpu.power_limit_mw), (2850, 190_000));
        assert_eq!(found[0].render_minor, Some(129));
        assert_eq!(found[0].temperature_max_c, Some(100));
        let reading = &found[0].reading;
        assert_eq!(
            (reading.clock_mhz, reading.energy_mj, reading.temperature_c),
            (Some(0), Some(123_456), Some(47))
        );
    }

    #[test]
    fn a_card_of_i915_is_known_by_its_window() {
        let root = TempDir::new().unwrap();
        let folder = root.path().join("bus/pci/devices/0000:04:00.0");
        // 16 GiB: 0x63fffffffff - 0x63c00000000 + 1.
        let windows = "0x0000000094000000 0x0000000094ffffff 0x0000000000140204\n\
                       0x0000000000000000 0x0000000000000000 0x0000000000000000\n\
                       0x0000063c00000000 0x0000063fffffffff 0x000000000014220c\n";
        plant(
            &folder,
            &[
                ("vendor", "0x8086"),
                ("device", "0x56a0"),
                ("class", "0x030000"),
                ("resource", windows),
                ("drm/card1/gt_RP0_freq_mhz", "2400\n"),
                ("drm/card1/gt_act_freq_mhz", "600\n"),
            ],
        );
        let found = read(root.path(), LIST);
        assert_eq!(found[0].gpu.vram, Bytes(17_179_869_184));
        assert_eq!(found[0].gpu.clock_max_mhz, 2400);
        assert_eq!(found[0].reading.clock_mhz, Some(600));
    }

    #[test]
    fn a_processors_gpu_is_not_for_lease() {
        let root = TempDir::new().unwrap();
        plant(
            &root.path().join("bus/pci/devices/0000:00:02.0"),
            &[
                ("vendor", "0x8086"),
                ("device", "0xa780"),
                ("class", "0x030000"),
                (
                    "resource",
                    "0x0 0x0 0x0\n0x0 0x0 0x0\n0x4000000000 0x400fffffff 0x14220c\n",
                ),
            ],
        );
        assert_eq!(read(root.path(), LIST), Vec::new());
    }
}
