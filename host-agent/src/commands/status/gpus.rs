//! GPUs and slices for an owner's eyes: one line each, who has it, how it works, what it earned, how long it was idle.

use crate::admin::wire::{GpuRow, ReadingRow, SliceRow};
use protocol::operator::usd;
use protocol::units::Bytes;

/// What stands where a driver says nothing.
const UNKNOWN: &str = "-";

/// All of them, slices below their GPU.
pub(super) fn lines(gpus: &[GpuRow]) -> Vec<String> {
    let all = gpus.iter().flat_map(|gpu| {
        let slices = gpu.slices.iter().map(slice);
        [whole(gpu)].into_iter().chain(slices)
    });
    all.collect()
}

/// `0 NVIDIA H100 80GB HBM3 GPU-5a1e…: l-3k…; 87 %, 61 °C, 412 of 700 W, 1.2 of 85.5 GB; earned $1.50; idle 50.0 %`.
fn whole(gpu: &GpuRow) -> String {
    let id: String = gpu.uuid.chars().take(12).collect();
    let holder = holder(gpu.lease.as_ref());
    let is_cut = gpu.lease.is_none() && !gpu.slices.is_empty();
    let who = if is_cut {
        format!("{} slices", gpu.slices.len())
    } else {
        holder
    };
    let how = match &gpu.reading {
        Some(reading) => reading_words(reading, gpu.memory_bytes),
        None => "not read yet".to_owned(),
    };
    let xid = gpu.last_xid.map(|xid| format!("; last Xid {xid}"));
    format!(
        "{} {} {id}: {who}; {how}; {}{}",
        gpu.number,
        gpu.model,
        money_words(&gpu.earned_usd, gpu.idle_permille),
        xid.unwrap_or_default()
    )
}

/// How busy a slice is, no driver says; that is said too.
fn slice(slice: &SliceRow) -> String {
    let place = slice.resource.rsplit('/').next().unwrap_or_default();
    let memory = memory_words(slice.memory_used_bytes, slice.memory_bytes);
    format!(
        "  {place}: {}; utilisation not measurable, {memory}; {}",
        holder(slice.lease.as_ref()),
        money_words(&slice.earned_usd, slice.idle_permille)
    )
}

fn holder(lease: Option<&String>) -> String {
    lease.map_or_else(
        || "free".to_owned(),
        |lease| lease.chars().take(10).collect(),
    )
}

fn money_words(earned: &str, idle_permille: Option<u32>) -> String {
    let idle = idle_permille.map(|permille| format!("{}.{} %", permille / 10, permille % 10));
    format!(
        "earned {}, idle {}",
        usd(earned),
        idle.as_deref().unwrap_or(UNKNOWN)
    )
}

fn reading_words(reading: &ReadingRow, memory: u64) -> String {
    let unit = |value: Option<u32>, unit: &str| {
        value.map_or_else(
            || format!("{UNKNOWN} {unit}"),
            |value| format!("{value} {unit}"),
        )
    };
    let power = reading.power_mw.map(|milliwatts| milliwatts / 1000);
    let limit = reading.power_limit_mw.map(|milliwatts| milliwatts / 1000);
    let power = match (power, limit) {
        (Some(power), Some(limit)) => format!("{power} of {limit} W"),
        (power, _) => unit(power, "W"),
    };
    format!(
        "{}, {}, {power}, {}",
        unit(reading.utilisation_percent, "%"),
        unit(reading.temperature_c, "°C"),
        memory_words(reading.memory_used_bytes, Some(memory))
    )
}

fn memory_words(used: Option<u64>, all: Option<u64>) -> String {
    let words = |bytes: Option<u64>| {
        bytes.map_or_else(|| UNKNOWN.to_owned(), |bytes| Bytes(bytes).to_string())
    };
    format!("{} of {}", words(used), words(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu() -> GpuRow {
        GpuRow {
            number: 0,
            uuid: "GPU-5a1e0000-1111".to_owned(),
            model: "NVIDIA H100 80GB HBM3".to_owned(),
            vendor: "nvidia".to_owned(),
            driver: "570.124.06".to_owned(),
            pci_address: "0000:05:00.0".to_owned(),
            memory_bytes: 85_520_000_000,
            lease: Some("l-3kq7x2abcdef".to_owned()),
            reading: Some(ReadingRow {
                utilisation_percent: Some(87),
                temperature_c: Some(61),
                power_mw: Some(412_900),
                power_limit_mw: Some(700_000),
                memory_used_bytes: Some(1_250_000_000),
                ..ReadingRow::default()
            }),
            last_xid: None,
            earned_usd: "1.500000".to_owned(),
            idle_permille: Some(505),
            slices: Vec::new(),
        }
    }

    #[test]
    fn a_gpu_is_one_line() {
        assert_eq!(
            lines(&[gpu()]),
            [
                "0 NVIDIA H100 80GB HBM3 GPU-5a1e0000: l-3kq7x2ab; 87 %, 61 °C, 412 of 700 W, 1.2 GB of 85.5 GB; \
              earned $1.50, idle 50.5 %"
            ]
        );
        let quiet = GpuRow {
            lease: None,
            reading: None,
            idle_permille: None,
            last_xid: Some(79),
            ..gpu()
        };
        let lines = lines(&[quiet]);
        assert!(
            lines[0].ends_with(": free; not read yet; earned $1.50, idle -; last Xid 79"),
            "{lines:?}"
        );
    }

    #[test]
    fn a_slice_says_what_cannot_be_measured() {
        let slice = SliceRow {
            resource: "GPU-5a1e/3g.40gb@4+4".to_owned(),
            profile: "3g.40gb".to_owned(),
            gpu_instance: 2,
            device: None,
            memory_bytes: Some(42_000_000_000),
            memory_used_bytes: None,
            lease: None,
            earned_usd: "0.250000".to_owned(),
            idle_permille: Some(1000),
        };
        let cut = GpuRow {
            lease: None,
            slices: vec![slice],
            ..gpu()
        };
        let lines = lines(&[cut]);
        assert!(lines[0].contains(": 1 slices; 87 %"), "{lines:?}");
        assert_eq!(
            lines[1],
            "  3g.40gb@4+4: free; utilisation not measurable, - of 42.0 GB; earned $0.25, idle 100.0 %"
        );
    }
}
