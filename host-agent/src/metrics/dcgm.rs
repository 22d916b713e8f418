//! GPUs under the names and labels of NVIDIA's exporter (dcgm-exporter), with its units: percent, degrees Celsius,
//! watts, MiB, MHz, millijoules.
//!
//! Of a slice the driver says what is in its memory and nothing of how much it works; it says that of the whole GPU
//! alone. So a slice has lines for its memory, under `GPU_I_ID` and `GPU_I_PROFILE`, and none for the rest.

use super::{Gauges, Labels, float};
use crate::admin::wire::{GpuRow, ReadingRow, SliceRow};
use prometheus_client::registry::Registry;

/// A metric of a reading.
type Metric = (&'static str, &'static str, fn(&ReadingRow) -> Option<f64>);

const METRICS: [Metric; 20] = [
    ("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %)", |it| {
        plain(it.utilisation_percent)
    }),
    (
        "DCGM_FI_DEV_MEM_COPY_UTIL",
        "Memory utilization (in %)",
        |it| plain(it.memory_utilisation_percent),
    ),
    ("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C)", |it| {
        plain(it.temperature_c)
    }),
    ("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W)", |it| {
        thousandth(it.power_mw)
    }),
    ("DCGM_FI_DEV_POWER_MGMT_LIMIT", "Power limit (in W)", |it| {
        thousandth(it.power_limit_mw)
    }),
    (
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "Total energy consumption since boot (in mJ)",
        |it| it.energy_mj.map(float),
    ),
    (
        "DCGM_FI_DEV_SM_CLOCK",
        "SM clock frequency (in MHz)",
        |it| plain(it.graphics_clock_mhz),
    ),
    (
        "DCGM_FI_DEV_MEM_CLOCK",
        "Memory clock frequency (in MHz)",
        |it| plain(it.memory_clock_mhz),
    ),
    (
        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
        "Why clocks are low (bitmask)",
        |it| it.clock_reasons.map(float),
    ),
    (
        "DCGM_FI_DEV_PCIE_LINK_GEN",
        "PCIe generation in use",
        |it| plain(it.pcie_generation),
    ),
    ("DCGM_FI_DEV_PCIE_LINK_WIDTH", "PCIe lanes in use", |it| {
        plain(it.pcie_width)
    }),
    (
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
        "Total number of PCIe retries",
        |it| plain(it.pcie_replays),
    ),
    (
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
        "Single-bit volatile ECC errors",
        |it| it.ecc.map(|ecc| float(ecc.corrected)),
    ),
    (
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "Double-bit volatile ECC errors",
        |it| it.ecc.map(|ecc| float(ecc.uncorrected)),
    ),
    (
        "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
        "Single-bit persistent ECC errors",
        |it| it.ecc.map(|ecc| float(ecc.corrected_ever)),
    ),
    (
        "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
        "Double-bit persistent ECC errors",
        |it| it.ecc.map(|ecc| float(ecc.uncorrected_ever)),
    ),
    (
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
        "Rows remapped for correctable errors",
        |it| it.remapped.map(|rows| f64::from(rows.corrected)),
    ),
    (
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "Rows remapped for uncorrectable errors",
        |it| it.remapped.map(|rows| f64::from(rows.uncorrected)),
    ),
    (
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        "Whether remapping of rows has failed",
        |it| it.remapped.map(|rows| flag(rows.failed)),
    ),
    (
        "DCGM_FI_DEV_ROW_REMAP_PENDING",
        "Whether remapping of rows waits for a reset",
        |it| it.remapped.map(|rows| flag(rows.pending)),
    ),
];

fn plain(value: Option<u32>) -> Option<f64> {
    value.map(f64::from)
}

fn thousandth(value: Option<u32>) -> Option<f64> {
    value.map(|value| f64::from(value) / 1000.0)
}

const fn flag(is_set: bool) -> f64 {
    if is_set { 1.0 } else { 0.0 }
}

fn mebibytes(bytes: u64) -> f64 {
    float(bytes >> 20)
}

/// Puts all GPUs under their names.
pub(super) fn register(registry: &mut Registry, gpus: &[GpuRow], hostname: &str) {
    for (name, help, read) in METRICS {
        let gauges = Gauges::default();
        for gpu in gpus {
            if let Some(value) = gpu.reading.as_ref().and_then(read) {
                gauges
                    .get_or_create(&labels(gpu, None, hostname))
                    .set(value);
            }
        }
        registry.register(name, help, gauges);
    }
    let xids = Gauges::default();
    // Zero is what the exporter says before the first.
    for gpu in gpus.iter().filter(|gpu| gpu.vendor == "nvidia") {
        let value = f64::from(gpu.last_xid.unwrap_or(0));
        xids.get_or_create(&labels(gpu, None, hostname)).set(value);
    }
    let help = "Value of the last XID error encountered";
    registry.register("DCGM_FI_DEV_XID_ERRORS", help, xids);
    memory(registry, gpus, hostname);
}

fn memory(registry: &mut Registry, gpus: &[GpuRow], hostname: &str) {
    let (used, free) = (Gauges::default(), Gauges::default());
    let note = |labels: &Labels, total: Option<u64>, now: Option<u64>| {
        let Some(now) = now else { return };
        used.get_or_create(labels).set(mebibytes(now));
        if let Some(total) = total {
            free.get_or_create(labels)
                .set(mebibytes(total.saturating_sub(now)));
        }
    };
    for gpu in gpus {
        let now = gpu.reading.as_ref().and_then(|it| it.memory_used_bytes);
        note(&labels(gpu, None, hostname), Some(gpu.memory_bytes), now);
        for slice in &gpu.slices {
            let labels = labels(gpu, Some(slice), hostname);
            note(&labels, slice.memory_bytes, slice.memory_used_bytes);
        }
    }
    registry.register(
        "DCGM_FI_DEV_FB_USED",
        "Framebuffer memory used (in MiB)",
        used,
    );
    registry.register(
        "DCGM_FI_DEV_FB_FREE",
        "Framebuffer memory free (in MiB)",
        free,
    );
}

fn labels(gpu: &GpuRow, slice: Option<&SliceRow>, hostname: &str) -> Labels {
    let mut labels = vec![
        ("gpu", gpu.number.to_string()),
        ("UUID", gpu.uuid.clone()),
        ("pci_bus_id", gpu.pci_address.clone()),
        ("modelName", gpu.model.clone()),
    ];
    if let Some(slice) = slice {
        labels.push(("GPU_I_PROFILE", slice.profile.clone()));
        labels.push(("GPU_I_ID", slice.gpu_instance.to_string()));
    }
    labels.push(("Hostname", hostname.to_owned()));
    labels.push(("DCGM_FI_DRIVER_VERSION", gpu.driver.clone()));
    labels
}
