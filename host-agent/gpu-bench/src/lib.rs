//! How fast a GPU is: arithmetic, matrix units, memory, and the way to and from the machine. It runs kernels of its
//! own, through NVIDIA's driver alone or, where there is none, through Vulkan; both are looked for when it runs, and
//! no toolkit is needed. A driver may hang or crash whoever calls it, so this runs in a process of its own: it says
//! what it found as lines of JSON ([`Said`]), and whoever started it ends it when its time is over.
//!
//! * [`run`]: everything about one GPU.
//! * `cuda`, `vulkan`: the two ways. Their kernels are in `kernels/`, PTX as text and SPIR-V beside its source.
//! * [`scrub()`]: all memory of a GPU written and read back, between two leases.
//! * `chains`: arithmetic in either precision.
//! * `settle`: how long a kernel is run until its figure holds.

mod chains;
mod cuda;
mod scrub;
mod settle;
mod vulkan;

pub use scrub::{Scrub, scrub};

use serde::{Deserialize, Serialize};

/// Which GPU, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The first GPU of NVIDIA's driver: which that is says `CUDA_VISIBLE_DEVICES`.
    Cuda,
    /// The Vulkan device at this address of the PCI bus, like `0000:05:00.0`.
    Pci(String),
    /// A Vulkan device that is a program on the CPU.
    Software,
}

/// What is measured, with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Single precision, in GFLOP/s.
    Fp32,
    /// Half precision on the matrix units, summed in single, in GFLOP/s.
    Fp16Matrix,
    /// BF16 on the matrix units, summed in single, in GFLOP/s.
    Bf16Matrix,
    /// Reading and writing its own memory, both counted, in MB/s.
    Memory,
    /// From the machine's memory to its own, in MB/s.
    HostToDevice,
    /// From its own memory to the machine's, in MB/s.
    DeviceToHost,
    /// Double precision, in GFLOP/s.
    Fp64,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    /// Of what.
    pub what: What,
    /// In its unit, rounded down.
    pub value: u64,
    /// By which method; at most 32 bytes.
    pub method: String,
    /// Version of the method: figures of two versions do not compare.
    pub version: u16,
}

/// A line of what is said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// What is measured on.
    Device {
        /// Its name, as its driver says it.
        name: String,
        /// Whether it is a program and no GPU.
        software: bool,
    },
    /// So many thousandths of everything are done.
    Progress(u16),
    /// A result.
    Figure(Figure),
    /// Something that this GPU does not have.
    Skipped {
        /// What.
        what: What,
        /// Why.
        why: String,
    },
    /// It ends here, because of this.
    Failed(String),
}

/// Why a GPU cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// NVIDIA's driver is not installed.
    #[error("NVIDIA's driver library (libcuda.so.1) cannot be loaded")]
    NoCuda,
    /// Its driver said no.
    #[error("the driver failed to {doing}: {reason}")]
    Driver {
        /// What was tried.
        doing: &'static str,
        /// What it said.
        reason: String,
    },
    /// There is no Vulkan loader.
    #[error("no Vulkan loader (libvulkan.so.1) can be loaded: {0}")]
    NoVulkan(String),
    /// No device of Vulkan's is the one.
    #[error("Vulkan has no such device; it has {found}")]
    NoDevice {
        /// Those that there are.
        found: String,
    },
    /// A kernel ran and its result is wrong: no figure of it means anything.
    #[error("{kernel} gave {found} where {expected} is right: the GPU computes wrongly")]
    Wrong {
        /// Which.
        kernel: &'static str,
        /// What it gave.
        found: f32,
        /// What it should have.
        expected: f32,
    },
    /// What was copied is not what arrived.
    #[error("{kernel} did not copy what it was given: the GPU's memory is wrong")]
    Corrupt {
        /// Which.
        kernel: &'static str,
    },
    /// There is not memory enough.
    #[error("{free} bytes of the GPU's memory are free, and {needed} are needed")]
    NoMemory {
        /// What is free.
        free: u64,
        /// What is needed.
        needed: u64,
    },
}

/// Measures everything of one GPU and says it as it comes.
///
/// # Errors
/// When it cannot be reached, fails, or computes wrongly.
pub fn run(target: &Target, say: &mut dyn FnMut(Said)) -> Result<(), GpuError> {
    match target {
        Target::Cuda => cuda::run(say),
        Target::Pci(address) => vulkan::run(vk_compute::Wanted::Pci(address), say),
        Target::Software => vulkan::run(vk_compute::Wanted::Software, say),
    }
}

/// As [`run`], each line as JSON; what went wrong is the last line. Returns whether all went well.
pub fn run_as_lines(target: &Target, out: &mut dyn std::io::Write) -> bool {
    let mut line = |said: &Said| {
        // Whoever does not read any more ends this process too.
        let _ = serde_json::to_writer(&mut *out, said);
        let _ = out.write_all(b"\n");
        let _ = out.flush();
    };
    match run(target, &mut |said| line(&said)) {
        Ok(()) => true,
        Err(error) => {
            line(&Said::Failed(error.to_string()));
            false
        }
    }
}

/// Operations of 64 fused multiply-adds, what a thread of the first kernel does in a round.
const FMA_ROUND: u64 = 128;

/// What a thread's chains add up to after so many rounds of `x = x × 1 + 1`, exact in single precision below 2^24.
fn fma_sum(thread: u32, rounds: u32) -> f32 {
    let sum = 8 * u64::from(thread) + 28 + 64 * u64::from(rounds);
    // The callers keep it below 2^24.
    u32::try_from(sum).map_or(f32::NAN, |sum| sum as f32)
}

/// Units of 10^9 a second from a count and nanoseconds, rounded down.
fn giga_per_second(count: u64, time: std::time::Duration) -> u64 {
    u128::from(count)
        .checked_div(time.as_nanos())
        .map_or(0, |rate| u64::try_from(rate).unwrap_or(u64::MAX))
}

/// MB/s, likewise.
fn megabytes_per_second(bytes: u64, time: std::time::Duration) -> u64 {
    giga_per_second(bytes.saturating_mul(1000), time)
}

#[cfg(test)]
mod tests;
