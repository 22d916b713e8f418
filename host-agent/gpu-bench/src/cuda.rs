//! NVIDIA's driver: kernels in PTX, which the driver translates for whatever GPU there is. Its library is loaded when
//! this runs; the wrapper panics on any call without it, so it is looked for first.

use crate::chains::{Chains, DOUBLE, SINGLE};
use crate::settle::settle;
use crate::{
    FMA_ROUND, Figure, GpuError, Said, What, fma_sum, giga_per_second, megabytes_per_second,
};
use cudarc::driver::sys::{CUdevice_attribute, CUevent_flags, is_culib_present};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DriverError, LaunchConfig,
    PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use std::sync::Arc;
use std::time::Duration;

const COPY: &str = include_str!("../kernels/copy.ptx");
const MATRIX_75: &str = include_str!("../kernels/matrix_sm75.ptx");
const MATRIX_80: &str = include_str!("../kernels/matrix_sm80.ptx");

const BLOCK: u32 = 256;
/// Full multiprocessors, a few times over.
const BLOCKS_EACH: u32 = 32;
/// Sums stay exact in single precision below 2^24: eight times the last thread's number, and 64 a round.
const THREADS_MAX: u32 = 1_500_000;
const CHECK_ROUNDS: u32 = 64;
const MIB: u64 = 1024 * 1024;
/// No cache holds it.
const COPIED: u64 = 1024 * MIB;
const COPIED_MIN: u64 = 64 * MIB;
const TRANSFERRED: usize = 256 * 1024 * 1024;

pub(crate) fn driver(doing: &'static str) -> impl Fn(DriverError) -> GpuError {
    move |error| GpuError::Driver {
        doing,
        reason: error.to_string(),
    }
}

/// Whether the driver's library can be loaded.
pub(crate) fn is_present() -> bool {
    // SAFETY: it loads the driver's library and calls nothing in it.
    unsafe { is_culib_present() }
}

/// Measures the first GPU that the driver shows.
pub(crate) fn run(say: &mut dyn FnMut(Said)) -> Result<(), GpuError> {
    if !is_present() {
        return Err(GpuError::NoCuda);
    }
    let gpu = Gpu::open()?;
    let name = gpu.context.name().map_err(driver("say its name"))?;
    say(Said::Device {
        name,
        software: false,
    });
    gpu.arithmetic(&SINGLE, &mut part(say, 0, 150))?;
    gpu.arithmetic(&DOUBLE, &mut part(say, 150, 300))?;
    gpu.matrices(&mut part(say, 300, 600))?;
    gpu.memory(&mut part(say, 600, 800))?;
    gpu.transfers(&mut part(say, 800, 1000))
}

/// Progress of a part as that of the whole.
fn part(say: &mut dyn FnMut(Said), from: u16, to: u16) -> impl FnMut(Said) {
    move |said| {
        say(match said {
            Said::Progress(done) => Said::Progress(scaled(done, from, to)),
            Said::Device { .. } | Said::Figure(_) | Said::Skipped { .. } | Said::Failed(_) => said,
        });
    }
}

fn scaled(done: u16, from: u16, to: u16) -> u16 {
    let span = u32::from(to.saturating_sub(from));
    from + u16::try_from(span * u32::from(done.min(1000)) / 1000).unwrap_or(0)
}

struct Gpu {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    capability: (i32, i32),
    grid: LaunchConfig,
    threads: u32,
}

impl Gpu {
    fn open() -> Result<Self, GpuError> {
        let context = CudaContext::new(0).map_err(driver("open the GPU"))?;
        let stream = context.new_stream().map_err(driver("make a stream"))?;
        let capability = context
            .compute_capability()
            .map_err(driver("say its compute capability"))?;
        let count = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let count = context
            .attribute(count)
            .map_err(driver("count its multiprocessors"))?;
        let blocks = u32::try_from(count)
            .unwrap_or(1)
            .saturating_mul(BLOCKS_EACH);
        let blocks = blocks.clamp(1, THREADS_MAX / BLOCK);
        Ok(Self {
            context,
            stream,
            capability,
            grid: LaunchConfig {
                grid_dim: (blocks, 1, 1),
                block_dim: (BLOCK, 1, 1),
                shared_mem_bytes: 0,
            },
            threads: blocks * BLOCK,
        })
    }

    fn module(&self, text: &str) -> Result<Arc<CudaModule>, GpuError> {
        self.context
            .load_module(Ptx::from_src(text))
            .map_err(driver("translate a kernel"))
    }

    fn function(&self, text: &str, name: &str) -> Result<CudaFunction, GpuError> {
        self.module(text)?
            .load_function(name)
            .map_err(driver("find a kernel"))
    }

    fn results(&self) -> Result<CudaSlice<f32>, GpuError> {
        let threads = usize::try_from(self.threads).unwrap_or(0);
        self.stream
            .alloc_zeros(threads)
            .map_err(driver("set memory aside"))
    }

    /// How long `work` takes on the GPU, by its own clock.
    fn timed(
        &self,
        work: impl FnOnce() -> Result<(), DriverError>,
    ) -> Result<Duration, DriverError> {
        let event = || {
            self.context
                .new_event(Some(CUevent_flags::CU_EVENT_DEFAULT))
        };
        let (began, ended) = (event()?, event()?);
        began.record(&self.stream)?;
        work()?;
        ended.record(&self.stream)?;
        let seconds = began.elapsed_ms(&ended)? / 1000.0;
        Ok(Duration::try_from_secs_f32(seconds).unwrap_or_default())
    }

    fn check(
        &self,
        kernel: &'static str,
        out: &CudaSlice<f32>,
        expected: impl Fn(u32) -> f32,
    ) -> Result<(), GpuError> {
        let found = self.stream.clone_dtoh(out);
        let found = found.map_err(driver("read a result back"))?;
        for (found, thread) in found.into_iter().zip(0..) {
            let expected = expected(thread);
            if found.to_bits() != expected.to_bits() {
                return Err(GpuError::Wrong {
                    kernel,
                    found,
                    expected,
                });
            }
        }
        Ok(())
    }

    fn arithmetic(&self, chains: &Chains, say: &mut dyn FnMut(Said)) -> Result<(), GpuError> {
        let function = self.function(chains.text, chains.kernel)?;
        let mut out = self.results()?;
        let mut launch = |rounds: u32, scale: f32, more: f32| {
            self.timed(|| {
                let mut launch = self.stream.launch_builder(&function);
                launch.arg(&mut out).arg(&rounds).arg(&scale).arg(&more);
                // SAFETY: these are the kernel's parameters in their order, and every thread of this grid writes its
                // own element of `out`, which has one for each.
                unsafe { launch.launch(self.grid) }.map(drop)
            })
            .map_err(driver("run a kernel"))
        };
        launch(CHECK_ROUNDS, 1.0, 1.0)?;
        let settled = settle(
            |rounds| launch(rounds, 0.75, 0.5),
            |done| say(Said::Progress(done)),
        )?;
        launch(CHECK_ROUNDS, 1.0, 1.0)?;
        // After the load: heat is what makes a GPU compute wrongly.
        self.check(chains.kernel, &out, |thread| fma_sum(thread, CHECK_ROUNDS))?;
        let operations = u64::from(settled.0) * u64::from(self.threads) * FMA_ROUND;
        say(Said::Figure(Figure {
            what: chains.what,
            value: giga_per_second(operations, settled.1),
            method: chains.method.to_owned(),
            version: 1,
        }));
        Ok(())
    }

    fn matrices(&self, say: &mut dyn FnMut(Said)) -> Result<(), GpuError> {
        let (text, depth) = if self.capability >= (8, 0) {
            (MATRIX_80, 16)
        } else {
            (MATRIX_75, 8)
        };
        let mut skip = |what, why: &str| {
            say(Said::Skipped {
                what,
                why: why.to_owned(),
            });
        };
        if self.capability < (7, 5) {
            skip(
                What::Fp16Matrix,
                "its matrix units, if any, are older than compute capability 7.5",
            );
        }
        if self.capability < (8, 0) {
            skip(What::Bf16Matrix, "BF16 needs compute capability 8.0");
        }
        if self.capability >= (7, 5) {
            let function = self.function(text, "matrix_f16")?;
            self.matrix(What::Fp16Matrix, &function, depth, &mut part(say, 0, 500))?;
        }
        if self.capability >= (8, 0) {
            let function = self.function(text, "matrix_bf16")?;
            self.matrix(
                What::Bf16Matrix,
                &function,
                depth,
                &mut part(say, 500, 1000),
            )?;
        }
        Ok(())
    }

    /// `depth` is that of a product of 16 × `depth` by `depth` × 8; a round of a warp has 16 of them.
    fn matrix(
        &self,
        what: What,
        function: &CudaFunction,
        depth: u32,
        say: &mut dyn FnMut(Said),
    ) -> Result<(), GpuError> {
        let mut out = self.results()?;
        let mut launch = |rounds: u32| {
            self.timed(|| {
                let mut launch = self.stream.launch_builder(function);
                launch.arg(&mut out).arg(&rounds);
                // SAFETY: these are the kernel's parameters in their order, and every thread of this grid writes its
                // own element of `out`, which has one for each.
                unsafe { launch.launch(self.grid) }.map(drop)
            })
            .map_err(driver("run a kernel"))
        };
        let settled = settle(&mut launch, |done| say(Said::Progress(done)))?;
        launch(CHECK_ROUNDS)?;
        // 32 elements, two products a round, each of them `depth` ones times ones.
        let sum = 64 * CHECK_ROUNDS * depth;
        self.check("matrix", &out, |_| sum as f32)?;
        let warps = u64::from(self.threads / 32);
        let operations = u64::from(settled.0) * warps * 16 * 2 * 16 * 8 * u64::from(depth);
        say(Said::Figure(Figure {
            what,
            value: giga_per_second(operations, settled.1),
            method: format!("ptx-mma-sync-m16n8k{depth}"),
            version: 1,
        }));
        Ok(())
    }

    fn memory(&self, say: &mut dyn FnMut(Said)) -> Result<(), GpuError> {
        let function = self.function(COPY, "copy")?;
        let (free, _) = self
            .context
            .mem_get_info()
            .map_err(driver("say what is free"))?;
        let free = u64::try_from(free).unwrap_or(u64::MAX);
        let bytes = COPIED.min(free / 4) / MIB * MIB;
        if bytes < COPIED_MIN {
            return Err(GpuError::NoMemory {
                free,
                needed: 4 * COPIED_MIN,
            });
        }
        let words = usize::try_from(bytes / 4).unwrap_or(0);
        let pattern: Vec<u32> = (0..words).map(mixed).collect();
        let from = self.stream.clone_htod(&pattern);
        let from = from.map_err(driver("set memory aside"))?;
        let mut to: CudaSlice<u32> = self
            .stream
            .alloc_zeros(words)
            .map_err(driver("set memory aside"))?;
        let count = bytes / 16;
        let settled = settle(
            |rounds| {
                self.timed(|| {
                    for _ in 0..rounds {
                        let mut launch = self.stream.launch_builder(&function);
                        launch.arg(&from).arg(&mut to).arg(&count);
                        // SAFETY: these are the kernel's parameters in their order, and it touches `count` times 16
                        // bytes of either buffer, which is what both have.
                        unsafe { launch.launch(self.grid) }?;
                    }
                    Ok(())
                })
                .map_err(driver("run a kernel"))
            },
            |done| say(Said::Progress(done)),
        )?;
        let copied = self.stream.clone_dtoh(&to);
        if copied.map_err(driver("read a result back"))? != pattern {
            return Err(GpuError::Corrupt { kernel: "copy" });
        }
        let moved = 2 * bytes * u64::from(settled.0);
        say(Said::Figure(Figure {
            what: What::Memory,
            value: megabytes_per_second(moved, settled.1),
            method: "ptx-copy-both-counted".to_owned(),
            version: 1,
        }));
        Ok(())
    }

    fn transfers(&self, say: &mut dyn FnMut(Said)) -> Result<(), GpuError> {
        // SAFETY: nothing reads it before the next line has filled it.
        let pinned = unsafe { self.context.alloc_pinned::<u8>(TRANSFERRED) };
        let mut pinned = pinned.map_err(driver("pin memory"))?;
        let filled = pinned.as_mut_slice().map_err(driver("pin memory"))?;
        filled.fill(0x5a);
        let mut device: CudaSlice<u8> = self
            .stream
            .alloc_zeros(TRANSFERRED)
            .map_err(driver("set memory aside"))?;
        let bytes = u64::try_from(TRANSFERRED).unwrap_or(0);
        let down = settle(
            |rounds| {
                self.timed(|| {
                    (0..rounds).try_for_each(|_| self.stream.memcpy_htod(&pinned, &mut device))
                })
                .map_err(driver("copy to the GPU"))
            },
            |done| say(Said::Progress(done / 2)),
        )?;
        pinned.as_mut_slice().map_err(driver("pin memory"))?.fill(0);
        let up = settle(
            |rounds| {
                self.timed(|| {
                    (0..rounds).try_for_each(|_| self.stream.memcpy_dtoh(&device, &mut pinned))
                })
                .map_err(driver("copy from the GPU"))
            },
            |done| say(Said::Progress(500 + done / 2)),
        )?;
        let back = pinned.as_slice().map_err(driver("read a result back"))?;
        if back.iter().any(|byte| *byte != 0x5a) {
            return Err(GpuError::Corrupt { kernel: "transfer" });
        }
        for (what, (rounds, time)) in [(What::HostToDevice, down), (What::DeviceToHost, up)] {
            say(Said::Figure(Figure {
                what,
                value: megabytes_per_second(bytes * u64::from(rounds), time),
                method: "pinned-256m".to_owned(),
                version: 1,
            }));
        }
        Ok(())
    }
}

/// A word that tells its place.
fn mixed(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(0).wrapping_mul(0x9e37_79b1)
}
