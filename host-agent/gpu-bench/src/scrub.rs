//! All memory of a GPU written and read back, between two leases. What is left of the last lease is gone after it,
//! and memory that does not keep what is written to it is found. NVIDIA's driver alone is used, and it clears memory
//! that is freed besides.

use crate::GpuError;
use crate::cuda::{driver, is_present};
use cudarc::driver::result;
use cudarc::driver::sys::{CUdevice_attribute, CUfunction_attribute_enum};
use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, DevicePtrMut, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const WIPE: &str = include_str!("../kernels/wipe.ptx");
/// What is written first: bits that stand apart.
const PATTERN: u8 = 0x5a;
/// Memory is taken in pieces of this, and in smaller ones where there is no such piece left.
const PIECE: usize = 1024 * 1024 * 1024;
const PIECE_MIN: usize = 2 * 1024 * 1024;
/// Of each piece, so much is read back at its beginning, in its middle and at its end.
const SAMPLE: usize = 1024 * 1024;
const BLOCK: u32 = 256;
/// Blocks for each multiprocessor, so that none is left out.
const BLOCKS_EACH: u32 = 4;

/// What a scrub did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scrub {
    /// Bytes that were written.
    pub written: u64,
    /// Bytes of its memory in all.
    pub memory: u64,
    /// Bytes of the sample that read otherwise than they were written.
    pub wrong: u64,
}

/// Scrubs the first GPU or slice that NVIDIA's driver shows: which that is says `CUDA_VISIBLE_DEVICES`.
///
/// # Errors
/// When it cannot be reached, or its driver fails.
pub fn scrub() -> Result<Scrub, GpuError> {
    if !is_present() {
        return Err(GpuError::NoCuda);
    }
    let context = CudaContext::new(0).map_err(driver("open the GPU"))?;
    let stream = context.new_stream().map_err(driver("make a stream"))?;
    let (_, memory) = context.mem_get_info().map_err(driver("say what is free"))?;
    // Before memory is taken: a kernel needs some.
    wipe_shared(&context, &stream)?;
    let mut pieces = Vec::new();
    let mut size = PIECE;
    while size >= PIECE_MIN {
        // SAFETY: it is written before it is read.
        match unsafe { stream.alloc::<u8>(size) } {
            Ok(piece) => pieces.push(piece),
            // There is no piece of this size left.
            Err(_) => size /= 2,
        }
    }
    let mut written = 0_u64;
    for piece in &mut pieces {
        set(&stream, piece, PATTERN)?;
        written = written.saturating_add(u64::try_from(piece.len()).unwrap_or(0));
    }
    let mut wrong = 0_u64;
    for piece in &pieces {
        wrong = wrong.saturating_add(differing(&stream, piece, PATTERN)?);
    }
    for piece in &mut pieces {
        set(&stream, piece, 0)?;
    }
    for piece in &pieces {
        wrong = wrong.saturating_add(differing(&stream, piece, 0)?);
    }
    stream.synchronize().map_err(driver("write its memory"))?;
    Ok(Scrub {
        written,
        memory: u64::try_from(memory).unwrap_or(u64::MAX),
        wrong,
    })
}

fn set(stream: &Arc<CudaStream>, piece: &mut CudaSlice<u8>, byte: u8) -> Result<(), GpuError> {
    let bytes = piece.len();
    let (pointer, _in_use) = piece.device_ptr_mut(stream);
    // SAFETY: the piece is `bytes` long, lives until the stream has done this, and every pattern is a byte.
    unsafe { result::memset_d8_async(pointer, byte, bytes, stream.cu_stream()) }
        .map_err(driver("write its memory"))
}

/// How many bytes of the sample are not `byte`.
fn differing(stream: &Arc<CudaStream>, piece: &CudaSlice<u8>, byte: u8) -> Result<u64, GpuError> {
    let length = piece.len();
    let sample = SAMPLE.min(length);
    let mut wrong = 0_u64;
    for from in [0, (length - sample) / 2, length - sample] {
        let read = stream.clone_dtoh(&piece.slice(from..from + sample));
        let read = read.map_err(driver("read its memory back"))?;
        let count = read.iter().filter(|found| **found != byte).count();
        wrong = wrong.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
    }
    Ok(wrong)
}

/// Writes zeros to the shared memory of every multiprocessor, all that a block may have.
fn wipe_shared(context: &Arc<CudaContext>, stream: &Arc<CudaStream>) -> Result<(), GpuError> {
    let attribute = |attribute, doing| context.attribute(attribute).map_err(driver(doing));
    let count = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    let count = attribute(count, "count its multiprocessors")?;
    let room = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    let room = attribute(room, "say how much shared memory it has")?;
    let module = context.load_module(Ptx::from_src(WIPE));
    let module = module.map_err(driver("translate a kernel"))?;
    let function = module
        .load_function("wipe")
        .map_err(driver("find a kernel"))?;
    function
        .set_attribute(
            CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            room,
        )
        .map_err(driver("give a kernel all shared memory"))?;
    let bytes = u32::try_from(room).unwrap_or(0) / 4 * 4;
    let blocks = u32::try_from(count)
        .unwrap_or(1)
        .saturating_mul(BLOCKS_EACH);
    let grid = LaunchConfig {
        grid_dim: (blocks.max(1), 1, 1),
        block_dim: (BLOCK, 1, 1),
        shared_mem_bytes: bytes,
    };
    let mut launch = stream.launch_builder(&function);
    launch.arg(&bytes);
    // SAFETY: this is the kernel's one parameter, and it writes `bytes` of shared memory, which the launch gives it.
    unsafe { launch.launch(grid) }
        .map(drop)
        .map_err(driver("run a kernel"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_the_driver_says_so() {
        if !is_present() {
            assert!(matches!(scrub(), Err(GpuError::NoCuda)));
        }
    }

    #[test]
    fn what_is_said_is_a_line_and_is_read_again() {
        let scrub = Scrub {
            written: 79,
            memory: 80,
            wrong: 0,
        };
        let line = serde_json::to_string(&scrub).unwrap();
        assert_eq!(line, r#"{"written":79,"memory":80,"wrong":0}"#);
        assert_eq!(serde_json::from_str::<Scrub>(&line).unwrap(), scrub);
    }
}
