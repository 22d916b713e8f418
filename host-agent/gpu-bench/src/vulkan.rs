//! Vulkan: for GPUs that have no other driver that needs no toolkit, and for a device that is a program. Kernels are
//! SPIR-V, compiled from the source beside them. Time is the caller's, from handing work over to its end.

use crate::settle::settle;
use crate::{
    FMA_ROUND, Figure, GpuError, Said, What, fma_sum, giga_per_second, megabytes_per_second,
};
use std::rc::Rc;
use vk_compute::{Buffer, Call, Device, Kernel, Place, VulkanError, Wanted};

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

impl From<VulkanError> for GpuError {
    fn from(error: VulkanError) -> Self {
        match error {
            VulkanError::NoLoader(reason) => Self::NoVulkan(reason),
            VulkanError::NoDevice { found, .. } => Self::NoDevice { found },
            VulkanError::Driver { doing, reason } => Self::Driver { doing, reason },
            VulkanError::Beyond { .. } => Self::Driver {
                doing: "reach a buffer",
                reason: error.to_string(),
            },
        }
    }
}

/// Measures the device that is wanted.
pub(crate) fn run(wanted: Wanted<'_>, say: &mut dyn FnMut(Said)) -> Result<(), GpuError> {
    let device = Rc::new(Device::open(wanted)?);
    say(Said::Device {
        name: device.name().to_owned(),
        software: device.is_software(),
    });
    let none = "Vulkan has none that all drivers share";
    for what in [What::Fp64, What::Fp16Matrix, What::Bf16Matrix] {
        say(Said::Skipped {
            what,
            why: none.to_owned(),
        });
    }
    arithmetic(&device, say)?;
    memory(&device, say)
}

fn arithmetic(device: &Rc<Device>, say: &mut dyn FnMut(Said)) -> Result<(), GpuError> {
    let threads = GROUPS * GROUP;
    let out = Buffer::new(device, u64::from(threads) * 4, Place::Shared)?;
    let kernel = Kernel::new(device, FMA, 1)?;
    let run = |rounds, scale: f32, more: f32| {
        let call = Call {
            kernel: &kernel,
            buffers: vec![&out],
            push: vec![rounds, scale.to_bits(), more.to_bits()],
            groups: (GROUPS, 1),
            times: 1,
        };
        vk_compute::run(device, &[call])
    };
    let (rounds, time) = settle(
        |rounds| run(rounds, 0.75, 0.5),
        |done| say(Said::Progress(done / 2)),
    )?;
    run(CHECK_ROUNDS, 1.0, 1.0)?;
    let sums = out.read(usize::try_from(threads).unwrap_or(0) * 4)?;
    for (found, thread) in words(&sums).zip(0..) {
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

fn memory(device: &Rc<Device>, say: &mut dyn FnMut(Said)) -> Result<(), GpuError> {
    let free = device.own_memory();
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
    let kernel = Kernel::new(device, COPY, 2)?;
    let count = u32::try_from(bytes / 16).unwrap_or(u32::MAX);
    let copy = |times| {
        let call = Call {
            kernel: &kernel,
            buffers: vec![&from, &to],
            push: vec![count, 0, 0],
            groups: (GROUPS, 1),
            times,
        };
        vk_compute::run(device, &[call])
    };
    let (rounds, time) = settle(copy, |done| say(Said::Progress(500 + done / 2)))?;
    let look = Buffer::new(device, LOOKED_AT, Place::Shared)?;
    for at in [0, bytes - LOOKED_AT] {
        look.copy_from(&to, at, LOOKED_AT)?;
        let seen = look.read(usize::try_from(LOOKED_AT).unwrap_or(0))?;
        if words(&seen).any(|word| word != PATTERN) {
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

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_ne_bytes(*word))
}
