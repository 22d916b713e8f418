//! Vulkan: for GPUs that have no other driver that needs no toolkit, and for a device that is a program. Kernels are
//! SPIR-V, compiled from the source beside them. Time is the caller's, from handing work over to its end.

mod device;
mod memory;
mod pipeline;

use crate::settle::settle;
use crate::{
    FMA_ROUND, Figure, GpuError, Said, What, fma_sum, giga_per_second, megabytes_per_second,
};
use ash::vk;
use device::Device;
use memory::{Buffer, Place};
use pipeline::{Pipeline, Push};

const FMA: &[u8] = include_bytes!("../kernels/fma.spv");
const COPY: &[u8] = include_bytes!("../kernels/copy.spv");

const GROUP: u32 = 256;
/// A million threads fill the largest GPU, and keep their sums exact (see [`fma_sum`]).
const GROUPS: u32 = 4096;
const CHECK_ROUNDS: u32 = 64;
const MIB: u64 = 1024 * 1024;
const COPIED: u64 = 512 * MIB;
const COPIED_MIN: u64 = 16 * MIB;
/// How much of a copy is looked at, at either end.
const LOOKED_AT: u64 = 4096;
const PATTERN: u32 = 0x5eed_f00d;

/// Which device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted<'a> {
    /// The one at this address of the PCI bus.
    Pci(&'a str),
    /// One that is a program.
    Software,
}

/// What a call of Vulkan's that failed is said as.
fn failed(doing: &'static str) -> impl Fn(vk::Result) -> GpuError {
    move |error| GpuError::Driver {
        doing,
        reason: error.to_string(),
    }
}

/// Measures the device that is wanted.
pub(crate) fn run(wanted: Wanted<'_>, say: &mut dyn FnMut(Said)) -> Result<(), GpuError> {
    let device = Device::open(wanted)?;
    say(Said::Device {
        name: device.name().to_owned(),
        software: device.is_software(),
    });
    for what in [What::Fp16Matrix, What::Bf16Matrix] {
        say(Said::Skipped {
            what,
            why: "Vulkan has no matrix units that all drivers share".to_owned(),
        });
    }
    arithmetic(&device, say)?;
    memory(&device, say)
}

fn arithmetic(device: &Device, say: &mut dyn FnMut(Said)) -> Result<(), GpuError> {
    let threads = GROUPS * GROUP;
    let out = Buffer::new(device, u64::from(threads) * 4, Place::Readable)?;
    let pipeline = Pipeline::new(device, FMA, &[&out])?;
    let push = |rounds, scale: f32, more: f32| Push([rounds, scale.to_bits(), more.to_bits()]);
    let run = |push| pipeline.run(push, GROUPS, 1);
    let (rounds, time) = settle(
        |rounds| run(push(rounds, 0.75, 0.5)),
        |done| say(Said::Progress(done / 2)),
    )?;
    run(push(CHECK_ROUNDS, 1.0, 1.0))?;
    for (found, thread) in out.read()?.into_iter().zip(0..) {
        let (found, expected) = (f32::from_bits(found), fma_sum(thread, CHECK_ROUNDS));
        if found.to_bits() != expected.to_bits() {
            return Err(GpuError::Wrong {
                kernel: "fma",
                found,
                expected,
            });
        }
    }
    let operations = u64::from(rounds) * u64::from(threads) * FMA_ROUND;
    say(Said::Figure(Figure {
        what: What::Fp32,
        value: giga_per_second(operations, time),
        method: "vulkan-fma-chains".to_owned(),
        version: 1,
    }));
    Ok(())
}

fn memory(device: &Device, say: &mut dyn FnMut(Said)) -> Result<(), GpuError> {
    let free = device.largest_heap();
    let bytes = COPIED.min(device.largest_buffer()).min(free / 8) / MIB * MIB;
    if bytes < COPIED_MIN {
        return Err(GpuError::NoMemory {
            free,
            needed: 8 * COPIED_MIN,
        });
    }
    let from = Buffer::new(device, bytes, Place::Device)?;
    let to = Buffer::new(device, bytes, Place::Device)?;
    from.fill(PATTERN)?;
    to.fill(0)?;
    let pipeline = Pipeline::new(device, COPY, &[&from, &to])?;
    let count = u32::try_from(bytes / 16).unwrap_or(u32::MAX);
    let (rounds, time) = settle(
        |rounds| pipeline.run(Push([count, 0, 0]), GROUPS, rounds),
        |done| say(Said::Progress(500 + done / 2)),
    )?;
    let look = Buffer::new(device, LOOKED_AT, Place::Readable)?;
    for at in [0, bytes - LOOKED_AT] {
        look.copy_from(&to, at)?;
        if look.read()?.iter().any(|word| *word != PATTERN) {
            return Err(GpuError::Corrupt { kernel: "copy" });
        }
    }
    say(Said::Figure(Figure {
        what: What::Memory,
        value: megabytes_per_second(2 * bytes * u64::from(rounds), time),
        method: "vulkan-copy-both-counted".to_owned(),
        version: 1,
    }));
    Ok(())
}
