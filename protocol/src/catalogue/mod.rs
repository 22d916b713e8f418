//! What data sheets say of GPUs, by the product names that drivers print, and which claims no such GPU can keep.
//!
//! One owner of the names of models: what a job costs and what a broker believes are worked out from the same
//! sheets. Must not be used to say what a host has: hosts measure that.

mod plausible;
mod read;
mod slices;
#[cfg(test)]
mod tests;

pub use plausible::{
    ARITHMETIC_PERCENT, BANDWIDTH_PERCENT, Figure, Implausible, MEMORY_PERCENT, plausible,
};
pub use slices::SliceProblem;

use crate::filter::ModelName;
use crate::machine::{Gpu, Vendor};
use crate::units::Bytes;
use std::sync::LazyLock;

/// The data sheet of one model. What no maker publishes is 0, or absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    /// A short name of our own, like `h100-sxm5-80`.
    pub id: String,
    /// As the driver prints it, like `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// The same and its other spellings, taken apart.
    spellings: Vec<ModelName>,
    /// Whose it is.
    pub vendor: Vendor,
    /// Instruction set, like `sm_90` or `gfx942`.
    pub instructions: String,
    /// CUDA compute capability.
    pub capability: Option<(u16, u16)>,
    /// Memory, as it is sold.
    pub vram: Bytes,
    /// Between the GPU and its memory, in MB/s.
    pub memory: u64,
    /// 32-bit numbers, in GFLOP/s.
    pub single: u64,
    /// 16-bit numbers, dense, summed in 32 bits, in GFLOP/s; 0 when there is no fast way.
    pub half: u64,
    /// 8-bit floats, dense, in GFLOP/s; 0 when there are none.
    pub quarter: u64,
    /// Board power in watts.
    pub power: u16,
    /// Highest PCIe generation, and lanes.
    pub pcie: (u8, u8),
    /// To other GPUs past PCIe, all links, both ways, in MB/s; 0 when there are none.
    pub links: u64,
    /// From the machine's memory where that is no PCIe, one way, in MB/s; else 0.
    pub host_link: u64,
    /// Whether it can be divided into slices of hardware by its driver (MIG).
    pub is_divisible: bool,
}

/// All sheets that there are.
#[must_use]
pub fn sheets() -> &'static [Sheet] {
    // The text is part of the program, and a test reads it.
    static SHEETS: LazyLock<Vec<Sheet>> =
        LazyLock::new(|| read::sheets(read::DATA).unwrap_or_default());
    &SHEETS
}

/// The sheet of what a driver reports by this name with so much memory: of those that the name can mean the most
/// detailed one; of several sizes of memory under one name the smallest that is large enough, else the largest.
#[must_use]
pub fn sheet_of(model: &ModelName, vram: Bytes) -> Option<&'static Sheet> {
    let detail = |sheet: &Sheet| {
        let meant = sheet
            .spellings
            .iter()
            .filter(|name| model.is_meant_by(name));
        meant.map(ModelName::forms).max()
    };
    let known = sheets()
        .iter()
        .filter_map(|sheet| Some((detail(sheet)?, sheet)));
    let (_, sheet) = known.min_by_key(|(detail, sheet)| {
        let is_too_small = vram > sheet.vram_max();
        let smallest = if is_too_small {
            u64::MAX - sheet.vram.0
        } else {
            sheet.vram.0
        };
        (std::cmp::Reverse(*detail), is_too_small, smallest)
    })?;
    Some(sheet)
}

/// The sheet of a GPU, by its name and the memory that it reports. The name alone decides what it can be: a
/// 40 GB card that reports 80 GB is no 80 GB card.
#[must_use]
pub fn sheet_of_gpu(gpu: &Gpu) -> Option<&'static Sheet> {
    sheet_of(&ModelName::reported(&gpu.model, Bytes(0)), gpu.vram)
}

impl Sheet {
    /// Most memory that one of them can report.
    fn vram_max(&self) -> Bytes {
        Bytes(plausible::percent(self.vram.0, MEMORY_PERCENT))
    }
}
