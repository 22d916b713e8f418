//! Which claims of an offer its GPUs cannot keep.
//!
//! A host writes what it likes into its offer, and signs it. What the model by its own name cannot be is found
//! here, with both numbers; what it can be and is not is for proofs and renters to find. A model that is in no
//! catalogue is held to what every GPU is held to. Must not judge what is merely little.

use super::slices::{self, SliceProblem};
use super::{Sheet, sheet_of_gpu};
use crate::bounded::Text;
use crate::machine::{Gpu, Measure, Quantity};
use crate::offer::{Offer, Partition};
use std::fmt;

/// Most memory, in percent of what is sold: drivers report less than that, never more.
pub const MEMORY_PERCENT: u64 = 108;
/// Most speed, in percent of the sheet's: cards run above the clock that is printed, and some are sold so.
pub const ARITHMETIC_PERCENT: u64 = 115;
/// Most bandwidth of memory, in percent of the sheet's: copies reach nine tenths of it, and what overclocking
/// adds stays within this.
pub const BANDWIDTH_PERCENT: u64 = 105;

/// The highest generation of PCIe that there is, and the widest slot.
const PCIE_MAX: (u8, u8) = (7, 16);

/// No GPU works hotter than water boils, by far.
const TEMPERATURE_MAX: u64 = 130;

/// What a GPU is said to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Its memory, in bytes.
    Memory,
    /// Its PCIe generation.
    PcieGeneration,
    /// Its PCIe lanes.
    PcieLanes,
    /// A result of a benchmark.
    Measured(Quantity),
}

/// A claim that cannot be true.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Implausible {
    /// More than there is of it.
    #[error(
        "{} of {} is beyond the {} of {model}",
        figure.words(), figure.shown(*claimed), figure.shown(*most)
    )]
    Beyond {
        /// What.
        figure: Figure,
        /// What is claimed, in the figure's unit.
        claimed: u64,
        /// The most that is possible.
        most: u64,
        /// Of which model.
        model: Text<64>,
    },
    /// Another vendor, compute capability or instruction set than the model has.
    #[error("{what} {claimed} is not the {known} of {model}")]
    Other {
        /// What.
        what: &'static str,
        /// What is claimed.
        claimed: String,
        /// What the model has.
        known: String,
        /// Of which model.
        model: Text<64>,
    },
    /// Slices that the GPU cannot be cut into.
    #[error("{problem}: {model}")]
    Slice {
        /// What is wrong with them.
        problem: SliceProblem,
        /// Of which model.
        model: Text<64>,
    },
}

/// Whether the GPUs of an offer can be what is said of them.
///
/// # Errors
/// The first claim that no GPU of that model can keep.
pub fn plausible(offer: &Offer) -> Result<(), Implausible> {
    for gpu in &*offer.share.gpus {
        let sheet = sheet_of_gpu(gpu);
        check_gpu(gpu, sheet)?;
        for measure in &*offer.measures {
            check_measure(measure, gpu, sheet, offer.partition.as_ref())?;
        }
    }
    if let Some(partition) = &offer.partition {
        slices::check(offer, partition).map_err(|problem| Implausible::Slice {
            problem,
            model: offer
                .share
                .gpus
                .first()
                .map_or_else(Text::default, |gpu| gpu.model.clone()),
        })?;
    }
    Ok(())
}

fn check_gpu(gpu: &Gpu, sheet: Option<&Sheet>) -> Result<(), Implausible> {
    let (generation, lanes) = sheet.map_or(PCIE_MAX, |sheet| sheet.pcie);
    let figures = [
        (
            Figure::PcieGeneration,
            gpu.pcie_generation.into(),
            generation.into(),
        ),
        (Figure::PcieLanes, gpu.pcie_width.into(), lanes.into()),
        (
            Figure::Memory,
            gpu.vram.0,
            sheet.map_or(u64::MAX, |sheet| sheet.vram_max().0),
        ),
    ];
    for (figure, claimed, most) in figures {
        within(figure, claimed, most, gpu)?;
    }
    let Some(sheet) = sheet else {
        return Ok(());
    };
    let other = |what, claimed: String, known: String| Implausible::Other {
        what,
        claimed,
        known,
        model: gpu.model.clone(),
    };
    if gpu.vendor != sheet.vendor {
        let [claimed, known] = [gpu.vendor, sheet.vendor].map(|vendor| vendor.word().to_owned());
        return Err(other("vendor", claimed, known));
    }
    let claimed = gpu.compute_capability;
    if let Some(known) = sheet
        .capability
        .filter(|known| claimed != (0, 0) && claimed != *known)
    {
        let [claimed, known] = [claimed, known].map(|(major, minor)| format!("{major}.{minor}"));
        return Err(other("compute capability", claimed, known));
    }
    let instructions = gpu.architecture.as_str();
    // Makers without a compute capability name their instruction sets, and only AMD's names are the driver's.
    if instructions.starts_with("gfx") && instructions != sheet.instructions {
        let (claimed, known) = (instructions.to_owned(), sheet.instructions.clone());
        return Err(other("instruction set", claimed, known));
    }
    Ok(())
}

fn check_measure(
    measure: &Measure,
    gpu: &Gpu,
    sheet: Option<&Sheet>,
    partition: Option<&Partition>,
) -> Result<(), Implausible> {
    let part = |most: u64, (part, whole): (u64, u64)| {
        if part == 0 || whole == 0 {
            return most;
        }
        let share = u128::from(most) * u128::from(part.min(whole)) / u128::from(whole);
        u64::try_from(share).unwrap_or(most)
    };
    let processors = partition.map_or((1, 1), |of| {
        (of.multiprocessors.0.into(), of.multiprocessors.1.into())
    });
    let memory = partition.map_or((1, 1), |of| {
        (of.memory_slices.0.into(), of.memory_slices.1.into())
    });
    let arithmetic = |peak: u64| part(percent(peak, ARITHMETIC_PERCENT), processors);
    let most = match measure.quantity {
        // No GPU is faster with numbers of twice the length.
        Quantity::Fp32 | Quantity::Fp64 => {
            sheet.and_then(|sheet| known(sheet.single)).map(arithmetic)
        }
        Quantity::Fp16Matrix | Quantity::Bf16Matrix => sheet.and_then(half_peak).map(arithmetic),
        Quantity::GpuMemory => sheet
            .and_then(|sheet| known(sheet.memory))
            .map(|peak| part(percent(peak, BANDWIDTH_PERCENT), memory)),
        Quantity::HostToDevice | Quantity::DeviceToHost => host_link(gpu, sheet),
        Quantity::PcieGeneration => Some(sheet.map_or(PCIE_MAX, |sheet| sheet.pcie).0.into()),
        Quantity::PcieLanes => Some(sheet.map_or(PCIE_MAX, |sheet| sheet.pcie).1.into()),
        Quantity::GpuTemperatureMax => Some(TEMPERATURE_MAX),
        Quantity::CpuSingle
        | Quantity::CpuAll
        | Quantity::Ram
        | Quantity::DiskRead
        | Quantity::DiskWrite
        | Quantity::DiskRandomRead
        | Quantity::Download
        | Quantity::Upload => None,
    };
    match most {
        Some(most) => within(Figure::Measured(measure.quantity), measure.value, most, gpu),
        None => Ok(()),
    }
}

/// Without matrix units two 16-bit numbers take the place of one of 32 at best.
fn half_peak(sheet: &Sheet) -> Option<u64> {
    known(sheet.half).or_else(|| known(sheet.single.saturating_mul(2)))
}

/// What the link between machine and GPU carries before any protocol, in MB/s: no transfer reaches it.
fn host_link(gpu: &Gpu, sheet: Option<&Sheet>) -> Option<u64> {
    let claimed = |number: u8| (number > 0).then_some(number);
    let generation = claimed(gpu.pcie_generation).or(sheet.map(|sheet| sheet.pcie.0))?;
    let lanes = claimed(gpu.pcie_width).or(sheet.map(|sheet| sheet.pcie.1))?;
    // 8b/10b to the second generation, 128b/130b to the fifth, then packets of 236 bytes in 256.
    let lane = match generation {
        1 => 250,
        2 => 500,
        3 => 985,
        4 => 1970,
        5 => 3939,
        6 => 7563,
        7 => 15_125,
        _ => return None,
    };
    let beside = sheet.map_or(0, |sheet| sheet.host_link);
    Some((lane * u64::from(lanes)).max(beside))
}

fn within(figure: Figure, claimed: u64, most: u64, gpu: &Gpu) -> Result<(), Implausible> {
    if claimed <= most {
        return Ok(());
    }
    Err(Implausible::Beyond {
        figure,
        claimed,
        most,
        model: gpu.model.clone(),
    })
}

fn known(figure: u64) -> Option<u64> {
    (figure > 0).then_some(figure)
}

/// So many percent of a number, rounded down.
pub(super) fn percent(whole: u64, percent: u64) -> u64 {
    let exact = u128::from(whole) * u128::from(percent) / 100;
    u64::try_from(exact).unwrap_or(u64::MAX)
}

impl Figure {
    const fn words(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::PcieGeneration => "PCIe generation",
            Self::PcieLanes => "PCIe width",
            Self::Measured(quantity) => quantity.words(),
        }
    }

    /// A number in its unit.
    fn shown(self, number: u64) -> Shown {
        match self {
            Self::Memory => Shown(number / (1 << 20), 1024, "GiB"),
            Self::PcieGeneration => Shown(number, 1, ""),
            Self::PcieLanes => Shown(number, 1, "lanes"),
            Self::Measured(quantity) => {
                let (scale, unit) = quantity.unit();
                Shown(number, scale, unit)
            }
        }
    }
}

/// A number of parts, how many of them make one, and of what: to a tenth.
struct Shown(u64, u64, &'static str);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, scale, unit) = self;
        let space = if unit.is_empty() { "" } else { " " };
        if *scale == 1 {
            return write!(f, "{number}{space}{unit}");
        }
        let tenths = u128::from(*number) * 10 / u128::from(*scale);
        write!(f, "{}.{}{space}{unit}", tenths / 10, tenths % 10)
    }
}
