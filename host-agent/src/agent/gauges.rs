//! What the owner is shown of each GPU: its last reading, its last Xid, who has it, what it earned, how long it was
//! idle. It decides nothing, and nothing else depends on it.

use super::desk::Desk;
use crate::admin::wire::{EccRow, GpuRow, ReadingRow, RemappedRow, SliceRow};
use crate::core::slices::Divisible;
use crate::core::tally::Tally;
use crate::hardware::amd::AmdReading;
use crate::hardware::nvidia::Nvidia;
use crate::hardware::{Hardware, Measured};
use crate::runtime::Runtime;
use gpu_health::input::Input;
use host_nvml::news::GpuNews;
use host_nvml::sample::{GpuSample, Reading};
use mig::name::SliceName;
use protocol::bounded::Text;
use protocol::machine::Gpu;
use protocol::offer::{ResourceName, parent};
use protocol::operator::rfc3339;
use protocol::signed::Verified;
use protocol::terms::compute_due;
use protocol::units::{Bytes, MicroUsd, Millis};
use std::collections::BTreeMap;

/// What was last heard of each GPU.
#[derive(Debug)]
pub(super) struct Gauges {
    samples: BTreeMap<Text<64>, GpuSample>,
    xids: BTreeMap<Text<64>, u32>,
    tally: Tally,
}

impl Gauges {
    pub(super) const fn new(now: Millis) -> Self {
        Self {
            samples: BTreeMap::new(),
            xids: BTreeMap::new(),
            tally: Tally::new(now),
        }
    }

    /// Keeps what is shown of it.
    pub(super) fn hear(&mut self, input: &Input) {
        let Input::News(news) = input else { return };
        match news {
            GpuNews::Sample(sample) => {
                self.samples.insert(sample.gpu.clone(), sample.clone());
            }
            GpuNews::Event(event) => {
                if let Some(xid) = event.xid() {
                    self.xids.insert(event.gpu.clone(), xid);
                }
            }
            // What it was before says nothing of how it is now.
            GpuNews::State { gpu, .. } => {
                self.samples.remove(gpu);
            }
            GpuNews::EventsBroke { .. } => {}
        }
    }
}

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// Counts the time since the last turn as leased for what is held.
    pub(super) fn tally(&mut self) {
        let now = self.now().monotonic;
        let held = self.leases.capacity().held();
        self.gauges.tally.note(held.map(|(name, _)| name), now);
    }

    /// All GPUs, those that do not answer too.
    pub(super) fn gpu_rows(&self) -> Vec<GpuRow> {
        let Some(measured) = &self.standing.measured else {
            return Vec::new();
        };
        let troubled = match &measured.nvidia {
            Nvidia::Ready { troubled, .. } => troubled.as_slice(),
            Nvidia::LibraryMissing { .. }
            | Nvidia::DriverNotLoaded
            | Nvidia::Failed { .. }
            | Nvidia::Hangs => &[],
        };
        let earned = self.earned();
        let mut gpus: Vec<&Gpu> = measured.gpus().collect();
        gpus.extend(troubled.iter().map(|one| &one.gpu));
        gpus.sort_by(|one, other| one.pci_address.cmp(&other.pci_address));
        let numbered = (0_u32..).zip(gpus);
        numbered
            .map(|(number, gpu)| self.gpu_row(number, gpu, measured, &earned))
            .collect()
    }

    fn gpu_row(
        &self,
        number: u32,
        gpu: &Gpu,
        measured: &Measured,
        earned: &BTreeMap<ResourceName, MicroUsd>,
    ) -> GpuRow {
        let uuid = gpu.uuid.as_str();
        let sample = self.gauges.samples.get(&gpu.uuid);
        let divided = self.slicing.divisibles().get(uuid);
        let of_gpu = earned.iter().filter(|(name, _)| parent(name) == uuid);
        let sum = of_gpu.fold(MicroUsd(0), |sum, (_, one)| sum.saturating_add(*one));
        let reading = match sample {
            Some(sample) => Some(of_sample(sample)),
            None => {
                let amd = measured.amd.iter().find(|amd| amd.gpu.uuid == gpu.uuid);
                amd.map(|amd| of_amd(&amd.reading))
            }
        };
        GpuRow {
            number,
            uuid: uuid.to_owned(),
            model: gpu.model.to_string(),
            vendor: gpu.vendor.word().to_owned(),
            driver: gpu.driver.to_string(),
            pci_address: gpu.pci_address.to_string(),
            memory_bytes: gpu.vram.0,
            lease: self.holder(&gpu.uuid),
            reading,
            last_xid: self.gauges.xids.get(&gpu.uuid).copied(),
            earned_usd: sum.decimal(),
            idle_permille: self.gauges.tally.idle_permille(uuid),
            slices: divided.map_or_else(Vec::new, |divided| {
                self.slice_rows(divided, sample.map(|sample| &sample.reading), earned)
            }),
        }
    }

    fn slice_rows(
        &self,
        divided: &Divisible,
        reading: Option<&Reading>,
        earned: &BTreeMap<ResourceName, MicroUsd>,
    ) -> Vec<SliceRow> {
        let rows = divided.standing.iter().filter_map(|standing| {
            let resource = divided.name_of(standing)?;
            let profile = SliceName::parse(&resource).ok()?.profile().to_owned();
            let found = divided.chip.find(&profile);
            let memory = found.and_then(|index| divided.chip.profile(index));
            let memory = memory.map(|profile| u64::from(profile.memory_mib) << 20);
            let money = earned.get(&resource).copied().unwrap_or_default();
            Some(SliceRow {
                profile,
                gpu_instance: standing.number,
                device: standing.device.as_ref().map(ToString::to_string),
                memory_bytes: memory,
                memory_used_bytes: reading.and_then(|it| used_in(it, standing.number)),
                lease: self.holder(&resource),
                earned_usd: money.decimal(),
                idle_permille: self.gauges.tally.idle_permille(&resource),
                resource: resource.to_string(),
            })
        });
        rows.collect()
    }

    fn holder(&self, resource: &ResourceName) -> Option<String> {
        let holder = self.leases.capacity().holder(resource);
        holder.map(|lease| lease.to_string())
    }

    /// What each resource earned by running, over all leases on record, at the prices that they were taken at.
    fn earned(&self) -> BTreeMap<ResourceName, MicroUsd> {
        let mut all: BTreeMap<ResourceName, MicroUsd> = BTreeMap::new();
        for record in self.leases.records().values() {
            let Ok(award) = record.award.verify().map(Verified::into_body) else {
                continue;
            };
            // The price is of all its GPUs together.
            let due = compute_due(award.prices.compute, record.running()).0;
            let count = i64::try_from(record.share.resources.len()).unwrap_or(i64::MAX);
            let due = MicroUsd(due / count.max(1));
            for resource in &record.share.resources {
                let sum = all.entry(resource.clone()).or_default();
                *sum = sum.saturating_add(due);
            }
        }
        all
    }
}

/// Memory of the processes in a slice; nothing when the driver does not say of one.
fn used_in(reading: &Reading, instance: u32) -> Option<u64> {
    let processes = reading.processes.as_ref()?.iter();
    let inside = processes.filter(|process| process.gpu_instance == Some(instance));
    inside
        .map(|process| process.memory.map(|Bytes(used)| used))
        .sum()
}

fn of_sample(sample: &GpuSample) -> ReadingRow {
    let reading = &sample.reading;
    ReadingRow {
        at: Some(rfc3339(sample.at)),
        utilisation_percent: reading.utilisation_percent,
        memory_utilisation_percent: reading.memory_utilisation_percent,
        memory_used_bytes: reading.memory_used.map(|used| used.0),
        temperature_c: reading.temperature_c,
        power_mw: reading.power_mw,
        power_limit_mw: reading.power_limit_mw,
        energy_mj: reading.energy_mj,
        graphics_clock_mhz: reading.graphics_clock_mhz,
        memory_clock_mhz: reading.memory_clock_mhz,
        clock_reasons: reading.clock_reasons.map(|reasons| reasons.0),
        pcie_generation: reading.pcie.map(|(generation, _)| generation),
        pcie_width: reading.pcie.map(|(_, width)| width),
        pcie_replays: reading.pcie_replays,
        ecc: reading.ecc.map(|ecc| EccRow {
            corrected: ecc.corrected,
            uncorrected: ecc.uncorrected,
            corrected_ever: ecc.corrected_ever,
            uncorrected_ever: ecc.uncorrected_ever,
        }),
        remapped: reading.remapped.map(|rows| RemappedRow {
            corrected: rows.corrected,
            uncorrected: rows.uncorrected,
            pending: rows.pending,
            failed: rows.failed,
        }),
    }
}

fn of_amd(reading: &AmdReading) -> ReadingRow {
    let known = |value: u8| (value > 0).then_some(u32::from(value));
    ReadingRow {
        utilisation_percent: reading.utilisation_percent,
        memory_used_bytes: reading.memory_used.map(|used| used.0),
        temperature_c: reading.temperature_c,
        power_mw: reading.power_mw,
        graphics_clock_mhz: reading.clocks_mhz.0,
        memory_clock_mhz: reading.clocks_mhz.1,
        pcie_generation: known(reading.pcie.0),
        pcie_width: known(reading.pcie.1),
        ..ReadingRow::default()
    }
}
