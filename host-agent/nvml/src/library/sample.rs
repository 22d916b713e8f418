//! How a GPU is now.

use super::{Asker, Library, raw};
use crate::fault::Fault;
use crate::sample::{ClockReasons, EccCounters, PROCESSES_MAX, Reading, RecoveryAction};
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;

impl Library {
    /// One reading of the GPU at `pci`.
    ///
    /// # Errors
    /// When it is lost.
    pub fn sample(&self, pci: &str) -> Result<Reading, Fault> {
        let device = self.device(pci)?;
        let mut ask = Asker::default();
        let utilisation = ask.known(device.utilization_rates());
        let processes = ask.known(raw::processes(&device));
        let found = Reading {
            temperature_c: ask.known(device.temperature(TemperatureSensor::Gpu)),
            power_mw: ask.known(device.power_usage()),
            power_limit_mw: ask.known(device.enforced_power_limit()),
            energy_mj: ask.known(device.total_energy_consumption()),
            utilisation_percent: utilisation.as_ref().map(|found| found.gpu),
            memory_utilisation_percent: utilisation.as_ref().map(|found| found.memory),
            memory_used: ask.known(raw::memory(&device)).map(|(_, _, used)| used),
            graphics_clock_mhz: ask.known(device.clock_info(Clock::Graphics)),
            memory_clock_mhz: ask.known(device.clock_info(Clock::Memory)),
            pcie: ask
                .known(device.current_pcie_link_gen())
                .zip(ask.known(device.current_pcie_link_width())),
            pcie_replays: ask.known(device.pcie_replay_counter()),
            clock_reasons: ask.known(raw::clock_reasons(&device)).map(ClockReasons),
            ecc: ecc(&device, &mut ask),
            remapped: ask.known(raw::remapped(&device)),
            recovery: recovery(&device, &mut ask),
            processes: processes.map(|mut list| {
                list.truncate(PROCESSES_MAX);
                list
            }),
        };
        ask.unless_lost(found)
    }
}

fn ecc(device: &Device<'_>, ask: &mut Asker) -> Option<EccCounters> {
    let mut count = |error, counter| ask.known(device.total_ecc_errors(error, counter));
    Some(EccCounters {
        corrected: count(MemoryError::Corrected, EccCounter::Volatile)?,
        uncorrected: count(MemoryError::Uncorrected, EccCounter::Volatile)?,
        corrected_ever: count(MemoryError::Corrected, EccCounter::Aggregate)?,
        uncorrected_ever: count(MemoryError::Uncorrected, EccCounter::Aggregate)?,
    })
}

fn recovery(device: &Device<'_>, ask: &mut Asker) -> Option<RecoveryAction> {
    let fields = [FieldId(NVML_FI_DEV_GET_GPU_RECOVERY_ACTION)];
    let sample = ask.known(device.field_values_for(&fields))?.pop()?;
    let number = match ask.known(ask_value(sample))? {
        SampleValue::U32(number) => Some(number),
        SampleValue::U64(number) => u32::try_from(number).ok(),
        SampleValue::I64(number) => u32::try_from(number).ok(),
        SampleValue::F64(_) => None,
    };
    number.map(RecoveryAction::of_number)
}

type Field = nvml_wrapper::struct_wrappers::device::FieldValueSample;

fn ask_value(
    sample: Result<Field, nvml_wrapper::error::NvmlError>,
) -> Result<SampleValue, nvml_wrapper::error::NvmlError> {
    sample?.value
}
