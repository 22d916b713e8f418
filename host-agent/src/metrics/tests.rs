//! The page has the names that dashboards rely on.

use super::*;
use crate::admin::wire::{EccRow, HealthRow, ReadingRow, SliceRow};
use std::collections::BTreeMap;

fn slice() -> SliceRow {
    SliceRow {
        resource: "GPU-0a/3g.40gb@4+4".to_owned(),
        profile: "3g.40gb".to_owned(),
        gpu_instance: 2,
        device: Some("MIG-77".to_owned()),
        memory_bytes: Some(40_448 << 20),
        memory_used_bytes: Some(1024 << 20),
        lease: Some("l-1".to_owned()),
        earned_usd: "0.250000".to_owned(),
        idle_permille: Some(625),
    }
}

fn status() -> Status {
    let gpu = GpuRow {
        number: 0,
        uuid: "GPU-0a".to_owned(),
        model: "NVIDIA H100 80GB HBM3".to_owned(),
        vendor: "nvidia".to_owned(),
        driver: "570.124.06".to_owned(),
        pci_address: "0000:05:00.0".to_owned(),
        memory_bytes: 81_559 << 20,
        lease: None,
        reading: Some(ReadingRow {
            utilisation_percent: Some(87),
            memory_used_bytes: Some(1200 << 20),
            temperature_c: Some(61),
            power_mw: Some(412_500),
            energy_mj: Some(9_007_199_254_740_991),
            pcie_replays: Some(3),
            ecc: Some(EccRow {
                corrected: 5,
                uncorrected: 0,
                corrected_ever: 9,
                uncorrected_ever: 1,
            }),
            ..ReadingRow::default()
        }),
        last_xid: Some(94),
        earned_usd: "1.500000".to_owned(),
        idle_permille: Some(500),
        slices: vec![slice()],
    };
    Status {
        host: "h-1".to_owned(),
        version: "0.1.0".to_owned(),
        pid: 1,
        started_at: String::new(),
        engine: Ok("28.2.2".to_owned()),
        gpus: Vec::new(),
        gpu_rows: vec![gpu],
        metrics: String::new(),
        listed: true,
        offers: 2,
        offers_free: 1,
        offered: Vec::new(),
        health: vec![HealthRow {
            resource: "GPU-0a".to_owned(),
            state: "fit".to_owned(),
            words: "fit".to_owned(),
            waits: None,
            lowered: None,
            reset_wanted: None,
            cleaning_ms: None,
        }],
        drained: None,
        disk_free_bytes: 4,
        leases: BTreeMap::from([("running".to_owned(), 3)]),
        brokers: Vec::new(),
        tunnels: 0,
        refusals: BTreeMap::from([("stale".to_owned(), 7)]),
    }
}

#[track_caller]
fn has(page: &str, line: &str) {
    assert!(
        page.lines().any(|found| found == line),
        "{line} is not on\n{page}"
    );
}

const CARD: &str =
    "gpu=\"0\",UUID=\"GPU-0a\",pci_bus_id=\"0000:05:00.0\",modelName=\"NVIDIA H100 80GB HBM3\"";
const REST: &str = "Hostname=\"rack1\",DCGM_FI_DRIVER_VERSION=\"570.124.06\"";

#[test]
fn gpus_have_the_names_of_nvidias_exporter_in_its_units() {
    let page = page(&status(), "rack1").unwrap();
    for (name, value) in [
        ("DCGM_FI_DEV_GPU_UTIL", "87.0"),
        ("DCGM_FI_DEV_GPU_TEMP", "61.0"),
        // 412.5 W of 412 500 mW.
        ("DCGM_FI_DEV_POWER_USAGE", "412.5"),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "9007199254740991.0"),
        ("DCGM_FI_DEV_FB_USED", "1200.0"),
        // 81 559 - 1200.
        ("DCGM_FI_DEV_FB_FREE", "80359.0"),
        ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "3.0"),
        ("DCGM_FI_DEV_XID_ERRORS", "94.0"),
        ("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "1.0"),
    ] {
        has(&page, &format!("{name}{{{CARD},{REST}}} {value}"));
    }
    assert!(
        !page.contains("DCGM_FI_DEV_SM_CLOCK{"),
        "the driver does not say it"
    );
}

/// Complaint 131: utilisation and memory of slices are missing. What the driver says of them is there, under the
/// exporter's labels, and what it does not say is no number.
#[test]
fn a_slice_has_lines_for_what_the_driver_says_of_it() {
    let page = page(&status(), "rack1").unwrap();
    let slice = "GPU_I_PROFILE=\"3g.40gb\",GPU_I_ID=\"2\"";
    has(
        &page,
        &format!("DCGM_FI_DEV_FB_USED{{{CARD},{slice},{REST}}} 1024.0"),
    );
    has(
        &page,
        &format!("DCGM_FI_DEV_FB_FREE{{{CARD},{slice},{REST}}} 39424.0"),
    );
    let of_slice = page.lines().filter(|line| line.contains("GPU_I_ID"));
    assert_eq!(of_slice.count(), 2);
}

#[test]
fn what_a_market_knows_has_names_of_its_own() {
    let page = page(&status(), "rack1").unwrap();
    for line in [
        "host_engine_up 1.0",
        "host_offers 2.0",
        "host_offers_free 1.0",
        "host_leases{state=\"running\"} 3.0",
        "host_refusals{reason=\"stale\"} 7.0",
        "host_gpu_idle_ratio{resource=\"GPU-0a\"} 0.5",
        "host_gpu_idle_ratio{resource=\"GPU-0a/3g.40gb@4+4\"} 0.625",
        "host_gpu_earned_usd{resource=\"GPU-0a\"} 1.5",
        "host_gpu_leased{resource=\"GPU-0a/3g.40gb@4+4\"} 1.0",
        "host_gpu_leased{resource=\"GPU-0a\"} 0.0",
        "host_gpu_fit{resource=\"GPU-0a\"} 1.0",
    ] {
        has(&page, line);
    }
    assert!(page.ends_with("# EOF\n"));
}

#[test]
fn a_machine_without_a_gpu_has_a_page() {
    let bare = Status {
        gpu_rows: Vec::new(),
        ..status()
    };
    let page = page(&bare, "rack1").unwrap();
    has(&page, "host_offers 2.0");
    assert!(
        page.lines().all(|line| !line.starts_with("DCGM_")),
        "{page}"
    );
}
