//! Results as people and programs read them: the value in its unit, how and when it was measured, and what the GPU's
//! maker publishes.

use crate::bench::Run;
use crate::commands::Place;
use crate::core::bench::{Outcome, Part};
use protocol::catalogue::sheet_of_gpu;
use protocol::machine::{Gpu, Quantity};
use protocol::operator::{Align, chain, rfc3339};
use serde::Serialize;

/// Prints results, and for a run also what has none.
pub(super) fn print(place: &Place, outcomes: &[Outcome], run: &Run, gpus: &[Gpu]) {
    let rows: Vec<Row> = outcomes.iter().map(|one| Row::of(one, gpus)).collect();
    if place.printer.is_json() {
        let failed: Vec<_> = run
            .failed
            .iter()
            .map(|(part, error)| serde_json::json!({ "part": part.name(), "why": chain(error) }))
            .collect();
        place.printer.document(&serde_json::json!({
            "schema": "feira.host-bench/1",
            "items": rows,
            "skipped": run.skipped,
            "failed": failed,
        }));
        return;
    }
    if !rows.is_empty() {
        place.printer.table(
            &[
                ("PART", Align::Left),
                ("WHAT", Align::Left),
                ("VALUE", Align::Right),
                ("UNIT", Align::Left),
                ("PUBLISHED", Align::Right),
                ("ON", Align::Left),
                ("METHOD", Align::Left),
                ("MEASURED", Align::Left),
            ],
            &rows.iter().map(Row::cells).collect::<Vec<_>>(),
        );
    }
    for skipped in &run.skipped {
        place.printer.note(&format!("not measured: {skipped}"));
    }
    for (part, error) in &run.failed {
        place
            .printer
            .note(&format!("failed: {}: {}", part.name(), chain(error)));
    }
}

/// One result.
#[derive(Debug, Serialize)]
struct Row {
    part: &'static str,
    quantity: &'static str,
    /// A decimal, exactly.
    value: String,
    unit: &'static str,
    /// In the same unit; absent where no maker says.
    published: Option<String>,
    on: String,
    software: bool,
    method: String,
    version: u16,
    at: String,
}

impl Row {
    fn of(outcome: &Outcome, gpus: &[Gpu]) -> Self {
        let (quantity, unit) = words(outcome.quantity);
        let gpu = gpus.iter().find(|gpu| gpu.uuid.as_str() == outcome.on);
        let published = gpu.and_then(|gpu| published(outcome.quantity, gpu));
        Self {
            part: Part::of(outcome.quantity).name(),
            quantity,
            value: shown(outcome.quantity, outcome.value),
            unit,
            published: published.map(|value| shown(outcome.quantity, value)),
            on: outcome.on.clone(),
            software: outcome.software,
            method: outcome.method.to_string(),
            version: outcome.version,
            at: rfc3339(outcome.at),
        }
    }

    fn cells(&self) -> Vec<String> {
        let on = match (self.on.is_empty(), self.software) {
            (true, _) => "-".to_owned(),
            (false, true) => format!("{} (no GPU: never offered)", self.on),
            (false, false) => self.on.chars().take(16).collect(),
        };
        vec![
            self.part.to_owned(),
            self.quantity.to_owned(),
            self.value.clone(),
            self.unit.to_owned(),
            self.published.clone().unwrap_or_else(|| "-".to_owned()),
            on,
            format!("{} v{}", self.method, self.version),
            self.at.clone(),
        ]
    }
}

/// What a quantity is called, and its unit.
const fn words(quantity: Quantity) -> (&'static str, &'static str) {
    match quantity {
        Quantity::Fp32 => ("FP32", "TFLOP/s"),
        Quantity::Fp16Matrix => ("FP16 matrix", "TFLOP/s"),
        Quantity::Bf16Matrix => ("BF16 matrix", "TFLOP/s"),
        Quantity::GpuMemory => ("memory", "MB/s"),
        Quantity::HostToDevice => ("to the GPU", "MB/s"),
        Quantity::DeviceToHost => ("from the GPU", "MB/s"),
        Quantity::CpuSingle => ("one core", "events/s"),
        Quantity::CpuAll => ("all cores", "events/s"),
        Quantity::Ram => ("memory", "MB/s"),
        Quantity::DiskRead => ("read", "MB/s"),
        Quantity::DiskWrite => ("write", "MB/s"),
        Quantity::DiskRandomRead => ("4 KiB reads", "IO/s"),
        Quantity::Download => ("from the broker", "Mbit/s"),
        Quantity::Upload => ("to the broker", "Mbit/s"),
        Quantity::Fp64 => ("FP64", "TFLOP/s"),
        Quantity::PcieGeneration => ("PCIe under load", "generation"),
        Quantity::PcieLanes => ("PCIe under load", "lanes"),
        Quantity::GpuTemperatureMax => ("slows down at", "°C"),
    }
}

/// A value in the unit of [`words`].
fn shown(quantity: Quantity, value: u64) -> String {
    match quantity {
        Quantity::Fp32
        | Quantity::Fp64
        | Quantity::Fp16Matrix
        | Quantity::Bf16Matrix
        | Quantity::CpuSingle
        | Quantity::CpuAll
        | Quantity::Download
        | Quantity::Upload => format!("{}.{:03}", value / 1000, value % 1000),
        Quantity::GpuMemory
        | Quantity::HostToDevice
        | Quantity::DeviceToHost
        | Quantity::Ram
        | Quantity::DiskRead
        | Quantity::DiskWrite
        | Quantity::DiskRandomRead
        | Quantity::PcieGeneration
        | Quantity::PcieLanes
        | Quantity::GpuTemperatureMax => value.to_string(),
    }
}

/// What the maker publishes of it, in the quantity's own unit.
fn published(quantity: Quantity, gpu: &Gpu) -> Option<u64> {
    let sheet = sheet_of_gpu(gpu)?;
    let value = match quantity {
        Quantity::Fp32 => sheet.single,
        Quantity::Fp16Matrix | Quantity::Bf16Matrix => sheet.half,
        Quantity::GpuMemory => sheet.memory,
        Quantity::PcieGeneration => sheet.pcie.0.into(),
        Quantity::PcieLanes => sheet.pcie.1.into(),
        Quantity::HostToDevice
        | Quantity::DeviceToHost
        | Quantity::Fp64
        | Quantity::GpuTemperatureMax
        | Quantity::CpuSingle
        | Quantity::CpuAll
        | Quantity::Ram
        | Quantity::DiskRead
        | Quantity::DiskWrite
        | Quantity::DiskRandomRead
        | Quantity::Download
        | Quantity::Upload => 0,
    };
    (value > 0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tests::gpu;
    use protocol::bounded::Text;
    use protocol::units::{Bytes, Timestamp};

    #[test]
    fn a_result_stands_beside_what_its_maker_publishes() {
        let card = Gpu {
            model: Text::cut("NVIDIA GeForce RTX 4090"),
            vram: Bytes(25_757_220_864),
            ..gpu("GPU-0123456789abcdef")
        };
        let outcome = Outcome {
            quantity: Quantity::GpuMemory,
            value: 931_000,
            method: Text::cut("ptx-copy-both-counted"),
            version: 1,
            at: Timestamp(1_000_000_000_000),
            on: "GPU-0123456789abcdef".to_owned(),
            software: false,
        };
        // 1010 GB/s in the catalogue.
        assert_eq!(
            Row::of(&outcome, std::slice::from_ref(&card)).cells(),
            [
                "gpu",
                "memory",
                "931000",
                "MB/s",
                "1010000",
                "GPU-0123456789ab",
                "ptx-copy-both-counted v1",
                "2001-09-09T01:46:40Z"
            ]
        );
        assert_eq!(Row::of(&outcome, &[]).published, None);
    }

    #[test]
    fn values_are_exact_in_the_unit_that_is_shown() {
        assert_eq!(shown(Quantity::CpuSingle, 1_234_567), "1234.567");
        assert_eq!(shown(Quantity::Fp32, 82_580), "82.580");
        assert_eq!(shown(Quantity::Upload, 93_005), "93.005");
        assert_eq!(shown(Quantity::Ram, 21_000), "21000");
    }
}
