//! What is read of AMD GPUs, from made-up trees with the files that the driver makes.

use super::super::pci::tree::plant;
use super::*;
use tempfile::TempDir;

/// An MI300X, undivided, in a hive.
pub(super) fn mi300x(root: &Path, address: &str, unique: &str) {
    plant(
        &root.join("bus/pci/devices").join(address),
        &[
            ("vendor", "0x1002\n"),
            ("device", "0x74a1\n"),
            ("class", "0x120000\n"),
            ("unique_id", unique),
            ("mem_info_vram_total", "206141652992\n"),
            ("mem_info_vram_used", "297000960\n"),
            ("gpu_busy_percent", "3\n"),
            ("max_link_speed", "32.0 GT/s PCIe\n"),
            ("max_link_width", "16\n"),
            ("current_link_speed", "32.0 GT/s PCIe\n"),
            ("current_link_width", "16\n"),
            ("pp_dpm_sclk", "0: 132Mhz *\n1: 2100Mhz\n"),
            ("pp_dpm_mclk", "0: 900Mhz *\n1: 1300Mhz\n"),
            ("xgmi_hive_info/xgmi_hive_id", "1234567890123\n"),
            ("current_compute_partition", "SPX\n"),
            ("available_compute_partition", "SPX, DPX, QPX, CPX\n"),
            ("current_memory_partition", "NPS1\n"),
            ("numa_node", "1\n"),
            ("ras/features", "feature mask: 0x4fff\n"),
            ("ras/umc_err_count", "ue: 1\nce: 12\n"),
            ("ras/gfx_err_count", "ue: 0\nce: 0\n"),
            ("ras/gpu_vram_bad_pages", "0x00000abc : 0x00001000 : R\n"),
            ("hwmon/hwmon4/power1_input", "138000000\n"),
            ("hwmon/hwmon4/power1_cap", "750000000\n"),
            ("hwmon/hwmon4/temp2_input", "41000\n"),
            ("hwmon/hwmon4/temp2_crit", "100000\n"),
            ("drm/card1/dev", "226:1\n"),
            ("drm/renderD128/dev", "226:128\n"),
        ],
    );
}

fn node(root: &Path, number: &str, location: u32, more: &str) {
    let folder = root.join("class/kfd/kfd/topology/nodes").join(number);
    let properties = format!(
        "simd_count 1216\nsimd_per_cu 4\ngfx_target_version 90402\nlocation_id {location}\n\
         domain 0\nvendor_id 4098\n{more}"
    );
    plant(
        &folder,
        &[
            ("properties", properties.as_str()),
            ("io_links/0/properties", "type 2\nnode_to 0\n"),
            ("io_links/1/properties", "type 11\nnode_to 3\n"),
        ],
    );
}

#[test]
fn a_hive_of_two_is_read_as_the_driver_shows_it() {
    let root = TempDir::new().unwrap();
    mi300x(root.path(), "0000:83:00.0", "6e5a8d1b2c3f4a5e\n");
    mi300x(root.path(), "0000:05:00.0", "fc23a1b4d5e6f708\n");
    // The processor's node has no SIMD units.
    plant(
        &root.path().join("class/kfd/kfd/topology/nodes/0"),
        &[("properties", "simd_count 0\ncpu_cores_count 96\n")],
    );
    node(root.path(), "2", 0x0500, "");
    node(root.path(), "3", 0x8300, "");
    plant(root.path(), &[("module/amdgpu/version", "6.10.5\n")]);
    let found = read(
        root.path(),
        "1002  AMD\n\t74a1  Aqua Vanjaram [Instinct MI300X]\n",
    );
    assert_eq!(found.len(), 2);
    let AmdGpu { gpu, reading, .. } = &found[0];
    assert_eq!(gpu.uuid.as_str(), "GPU-fc23a1b4d5e6f708");
    assert_eq!(gpu.model.as_str(), "Instinct MI300X");
    assert_eq!(gpu.vendor, Vendor::Amd);
    assert_eq!(gpu.vram, Bytes(206_141_652_992));
    // 304 compute units by the data sheet.
    assert_eq!(
        (gpu.architecture.as_str(), gpu.multiprocessors),
        ("gfx942", 304)
    );
    assert_eq!((gpu.pcie_generation, gpu.pcie_width), (5, 16));
    assert_eq!((gpu.clock_max_mhz, gpu.memory_clock_max_mhz), (2100, 1300));
    assert_eq!((gpu.power_limit_mw, gpu.ecc), (750_000, Some(true)));
    assert_eq!((gpu.link_group, gpu.links), (1, 1));
    assert_eq!(found[1].gpu.link_group, 1);
    assert_eq!(gpu.driver.as_str(), "6.10.5");
    assert_eq!(gpu.is_divided, Some(false));
    assert_eq!(reading.power_mw, Some(138_000));
    assert_eq!(reading.temperature_c, Some(41));
    assert_eq!(reading.clocks_mhz, (Some(132), Some(900)));
    let memory = reading.errors["umc"];
    assert_eq!((memory.corrected, memory.uncorrected), (12, 1));
    assert_eq!(reading.bad_pages, Some(1));
    assert_eq!(
        (found[0].render_minor, found[0].numa_node),
        (Some(128), Some(1))
    );
    assert_eq!(found[0].temperature_max_c, Some(100));
}

#[test]
fn a_divided_gpu_is_one_gpu_of_several_devices() {
    let root = TempDir::new().unwrap();
    mi300x(root.path(), "0000:05:00.0", "fc23a1b4d5e6f708\n");
    plant(
        &root.path().join("bus/pci/devices/0000:05:00.0"),
        &[
            ("current_compute_partition", "CPX\n"),
            ("current_memory_partition", "NPS4\n"),
        ],
    );
    for part in 0..8 {
        // Parts differ in the function of their address; each has 38 compute units.
        let folder = root
            .path()
            .join(format!("class/kfd/kfd/topology/nodes/{}", part + 1));
        let text = format!(
            "simd_count 152\nsimd_per_cu 4\ngfx_target_version 90402\nlocation_id {}\n",
            0x0500 + part
        );
        plant(&folder, &[("properties", text.as_str())]);
    }
    let found = read(root.path(), "");
    let partition = found[0].partition.clone().unwrap();
    assert_eq!((partition.compute.as_str(), partition.devices), ("CPX", 8));
    assert_eq!(partition.memory.as_deref(), Some("NPS4"));
    assert_eq!(partition.compute_available, ["SPX", "DPX", "QPX", "CPX"]);
    assert_eq!(found[0].gpu.is_divided, Some(true));
    assert_eq!(found[0].gpu.multiprocessors, 304);
    // Alone in its hive, it is linked with nothing.
    assert_eq!(found[0].gpu.link_group, 0);
}

#[test]
fn a_card_for_players_says_less_and_a_processors_gpu_is_none() {
    let root = TempDir::new().unwrap();
    let bus = root.path().join("bus/pci/devices");
    plant(
        &bus.join("0000:0b:00.0"),
        &[
            ("vendor", "0x1002"),
            ("device", "0x744c"),
            ("class", "0x030000"),
            ("mem_info_vram_total", "25753026560"),
            ("max_link_speed", "16.0 GT/s PCIe"),
            ("max_link_width", "16"),
        ],
    );
    plant(
        &bus.join("0000:0c:00.0"),
        &[
            ("vendor", "0x1002"),
            ("device", "0x164e"),
            ("class", "0x030000"),
            ("mem_info_vram_total", "536870912"),
        ],
    );
    let found = read(root.path(), "");
    assert_eq!(found.len(), 1);
    let gpu = &found[0].gpu;
    assert_eq!(gpu.uuid.as_str(), "PCI-0000:0b:00.0");
    assert_eq!(gpu.model.as_str(), "GPU 1002:744c");
    assert_eq!((gpu.architecture.as_str(), gpu.multiprocessors), ("", 0));
    assert_eq!((gpu.ecc, gpu.is_divided), (None, None));
    assert!(found[0].reading.errors.is_empty() && found[0].reading.power_mw.is_none());
}

#[test]
fn architectures_are_named_as_compilers_name_them() {
    for (version, wanted) in [
        (90_402, "gfx942"),
        (90_010, "gfx90a"),
        (100_300, "gfx1030"),
        (110_000, "gfx1100"),
        (120_001, "gfx1201"),
        (0, ""),
    ] {
        let node = Node {
            id: None,
            properties: properties(&format!("gfx_target_version {version}")),
            xgmi_links: 0,
        };
        assert_eq!(node.gfx(), wanted);
    }
}
