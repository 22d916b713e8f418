//! CUDA, through NVIDIA's driver alone: no toolkit on the machine, kernels as PTX that the driver translates. Their
//! source is `kernels/prover.cu`; which PTX is taken follows from the compute capability.

mod context;

use audit::hash::RowKey;
use audit::message::{Node, Nonce, Seed};
use audit::prover::{Device, Unable};
use cudarc::driver::result::DriverError;
use cudarc::driver::{
    CudaFunction, CudaModule, CudaSlice, CudaStream, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use protocol_pure::verify::Parameters;
use std::sync::Arc;

/// Products of four bytes by ordinary threads: compute capability 7.0 and 7.2.
const DOT: &str = include_str!("../kernels/dot.ptx");
/// The matrix units of Turing.
const MATRIX_75: &str = include_str!("../kernels/matrix_75.ptx");
/// The matrix units of Ampere and later.
const MATRIX_80: &str = include_str!("../kernels/matrix_80.ptx");

/// Rows of the left matrix that are made at once: 2048 of the longest are 273 MB.
const PANEL: u32 = 2048;
/// Leaves that are hashed upwards together, 32 bytes each.
const LEAVES_AT_ONCE: u32 = 1 << 19;
const LEFT: u32 = 0x41;
const RIGHT: u32 = 0x42;

/// Whether NVIDIA's driver is here.
#[must_use]
pub fn is_present() -> bool {
    // SAFETY: it looks for the driver's library by name and loads it; its start code may run before anything else.
    unsafe { cudarc::driver::sys::is_culib_present() }
}

/// What a call of the driver's that failed is said as.
fn failed(doing: &'static str) -> impl Fn(DriverError) -> Unable {
    move |error| Unable(format!("NVIDIA's driver could not {doing}: {error}"))
}

/// A GPU of NVIDIA's, or a slice of one.
#[derive(Debug)]
pub struct Cuda {
    stream: Arc<CudaStream>,
    operand: CudaFunction,
    multiply: CudaFunction,
    leaves: CudaFunction,
    parents: CudaFunction,
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    parameters: Parameters,
    /// All tiles, one behind the other.
    tiles: CudaSlice<u8>,
    key: CudaSlice<u32>,
    /// Leaves of some tiles, and the levels above them, in turns; words of 32 bits.
    levels: [CudaSlice<u32>; 2],
    tiles_at_once: u32,
}

/// Both matrices of a tile: some rows of the left one, and the right one whole.
struct Panels {
    rows: u32,
    seed: CudaSlice<u32>,
    left: CudaSlice<u32>,
    right: CudaSlice<u32>,
}

impl Cuda {
    /// The device called `wanted` (`GPU-…`, `MIG-…`), or the only one there is.
    ///
    /// # Errors
    /// When there is none, or it is too old for products of bytes.
    pub fn open(wanted: &str) -> Result<Self, Unable> {
        if !is_present() {
            return Err(Unable(
                "NVIDIA's driver (libcuda.so.1) is not here".to_owned(),
            ));
        }
        let context = context::find(wanted)?;
        let capability = context
            .compute_capability()
            .map_err(failed("say its compute capability"))?;
        let kernels = match capability {
            (8.., _) => MATRIX_80,
            (7, 5..) => MATRIX_75,
            (7, _) => DOT,
            (major, minor) => {
                return Err(Unable(format!(
                    "compute capability {major}.{minor} is too old: 7.0 is needed"
                )));
            }
        };
        let module = context
            .load_module(Ptx::from_src(kernels))
            .map_err(failed("translate the kernels"))?;
        let stream = context.new_stream().map_err(failed("make a stream"))?;
        let function = |name| find_function(&module, name);
        Ok(Self {
            stream,
            operand: function("operand")?,
            multiply: function("multiply")?,
            leaves: function("leaves")?,
            parents: function("parents")?,
            held: None,
        })
    }

    /// Memory whose content is nothing yet.
    fn memory<T: cudarc::driver::DeviceRepr>(&self, count: u64) -> Result<CudaSlice<T>, Unable> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        // SAFETY: every kernel that reads it runs after one that wrote all that is read.
        unsafe { self.stream.alloc(count) }.map_err(failed("set memory aside"))
    }

    fn make(&self, panels: &mut Panels, which: u32, tile: u32, rows: Rows) -> Result<(), Unable> {
        let Panels {
            seed, left, right, ..
        } = panels;
        let out = if which == LEFT { left } else { right };
        let blocks = u64::from(rows.count) * u64::from(rows.blocks);
        let mut launch = self.stream.launch_builder(&self.operand);
        launch.arg(out).arg(&*seed).arg(&which).arg(&tile);
        launch.arg(&rows.first).arg(&rows.count).arg(&rows.blocks);
        // SAFETY: these are the kernel's parameters in their order; it writes 16 words for each of count · blocks
        // threads, which is what the matrix has, and reads eight words of the seed.
        unsafe { launch.launch(threads(blocks, 256)) }
            .map(drop)
            .map_err(failed("make a matrix"))
    }

    fn fill_tile(&self, held: &mut Held, panels: &mut Panels, tile: u32) -> Result<(), Unable> {
        let Parameters {
            tile_side: side,
            inner,
            ..
        } = held.parameters;
        let (blocks, words) = (inner / 64, inner / 4);
        let all = Rows {
            first: 0,
            count: side,
            blocks,
        };
        self.make(panels, RIGHT, tile, all)?;
        for first in (0..side).step_by(size(panels.rows)) {
            let count = panels.rows;
            self.make(
                panels,
                LEFT,
                tile,
                Rows {
                    first,
                    count,
                    blocks,
                },
            )?;
            let begin = size(tile) * size(side) * size(side) + size(first) * size(side);
            let mut out = held
                .tiles
                .try_slice_mut(begin..begin + size(count) * size(side))
                .ok_or_else(|| Unable(format!("tile {tile} is not held")))?;
            let grid = LaunchConfig {
                grid_dim: (side.div_ceil(128), count.div_ceil(128), 1),
                block_dim: (128, 1, 1),
                shared_mem_bytes: 0,
            };
            let mut launch = self.stream.launch_builder(&self.multiply);
            launch.arg(&mut out).arg(&panels.left).arg(&panels.right);
            launch.arg(&words).arg(&count).arg(&side);
            // SAFETY: these are the kernel's parameters in their order; it reads count rows of the left and side rows
            // of the right matrix, `words` words each, and writes count · side bytes of the tile.
            unsafe { launch.launch(grid) }.map_err(failed("multiply"))?;
        }
        Ok(())
    }

    /// Hashes a tile's rows to place `slot` of the lowest level.
    fn hash(&self, held: &mut Held, tile: u32, slot: u32) -> Result<(), Unable> {
        let side = held.parameters.tile_side;
        let begin = size(tile) * size(side) * size(side);
        let rows = held
            .tiles
            .try_slice(begin..begin + size(side) * size(side))
            .ok_or_else(|| Unable(format!("tile {tile} is not held")))?;
        let begin = size(slot) * size(side) * 8;
        let mut out = held.levels[0]
            .try_slice_mut(begin..begin + size(side) * 8)
            .ok_or_else(|| Unable("there is no room for leaves".to_owned()))?;
        let quads = side / 16;
        let grid = LaunchConfig {
            grid_dim: (side.div_ceil(32), 1, 1),
            block_dim: (256, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut launch = self.stream.launch_builder(&self.leaves);
        launch.arg(&mut out).arg(&rows).arg(&held.key);
        launch.arg(&tile).arg(&side).arg(&quads);
        // SAFETY: these are the kernel's parameters in their order; it reads the tile's side · side bytes and the
        // key's side / 4 + 8 words, and writes four sums of eight bytes for each row.
        unsafe { launch.launch(grid) }
            .map(drop)
            .map_err(failed("hash a tile"))
    }

    /// The roots of `count` tiles from `first` on.
    fn roots(&self, held: &mut Held, first: u32, count: u32) -> Result<Vec<Node>, Unable> {
        for slot in 0..count {
            self.hash(held, first + slot, slot)?;
        }
        let (mut nodes, mut in_second) = (held.parameters.tile_side, false);
        while nodes > 1 {
            nodes /= 2;
            let above = nodes * count;
            let [first, second] = &mut held.levels;
            let (below, out) = if in_second {
                (&*second, first)
            } else {
                (&*first, second)
            };
            let mut launch = self.stream.launch_builder(&self.parents);
            launch.arg(out).arg(below).arg(&above);
            // SAFETY: these are the kernel's parameters in their order; it reads 16 words for each of `above` threads
            // and writes eight, of levels that have room for the leaves of as many tiles.
            unsafe { launch.launch(threads(above.into(), 128)) }.map_err(failed("hash a level"))?;
            in_second = !in_second;
        }
        self.nodes(&held.levels[usize::from(in_second)], count)
    }

    /// The first nodes of a level.
    fn nodes(&self, level: &CudaSlice<u32>, count: u32) -> Result<Vec<Node>, Unable> {
        let view = level
            .try_slice(..size(count) * 8)
            .ok_or_else(|| Unable("a level is shorter than it should be".to_owned()))?;
        let words = self
            .stream
            .clone_dtoh(&view)
            .map_err(failed("read a result back"))?;
        let nodes = words.chunks_exact(8).map(|words| {
            let mut node = [0; 32];
            for (bytes, word) in node.chunks_exact_mut(4).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            Node(node)
        });
        Ok(nodes.collect())
    }

    fn set_key(&self, held: &mut Held, nonce: &Nonce) -> Result<(), Unable> {
        let key = RowKey::new(nonce, size(held.parameters.tile_side));
        self.stream
            .memcpy_htod(key.words(), &mut held.key)
            .map_err(failed("copy to the GPU"))
    }

    fn with_held<T>(
        &mut self,
        work: impl FnOnce(&Self, &mut Held) -> Result<T, Unable>,
    ) -> Result<T, Unable> {
        let mut held = self
            .held
            .take()
            .ok_or_else(|| Unable("nothing is held".to_owned()))?;
        let done = work(self, &mut held);
        self.held = Some(held);
        done
    }
}

/// Which rows of a matrix.
#[derive(Debug, Clone, Copy)]
struct Rows {
    first: u32,
    count: u32,
    blocks: u32,
}

impl Device for Cuda {
    fn fill(&mut self, seed: &Seed, parameters: &Parameters) -> Result<(), Unable> {
        self.held = None;
        let side = u64::from(parameters.tile_side);
        let row = u64::from(parameters.inner / 4);
        let tiles_at_once = (LEAVES_AT_ONCE / parameters.tile_side).clamp(1, parameters.tiles);
        let level = u64::from(tiles_at_once) * side * 8;
        let mut held = Held {
            parameters: *parameters,
            tiles: self.memory(parameters.held())?,
            key: self.memory(side / 4 + 8)?,
            levels: [self.memory(level)?, self.memory(level)?],
            tiles_at_once,
        };
        let rows = PANEL.min(parameters.tile_side);
        let seed: Vec<u32> = words(&seed.0).collect();
        let mut panels = Panels {
            rows,
            seed: self
                .stream
                .clone_htod(&seed)
                .map_err(failed("copy to the GPU"))?,
            left: self.memory(u64::from(rows) * row)?,
            right: self.memory(side * row)?,
        };
        for tile in 0..parameters.tiles {
            self.fill_tile(&mut held, &mut panels, tile)?;
        }
        self.stream
            .synchronize()
            .map_err(failed("fill its memory"))?;
        self.held = Some(held);
        Ok(())
    }

    fn pass(&mut self, nonce: &Nonce) -> Result<Vec<Node>, Unable> {
        self.with_held(|cuda, held| {
            cuda.set_key(held, nonce)?;
            let (tiles, step) = (held.parameters.tiles, held.tiles_at_once);
            let mut roots = Vec::new();
            for first in (0..tiles).step_by(size(step)) {
                roots.extend(cuda.roots(held, first, step.min(tiles - first))?);
            }
            Ok(roots)
        })
    }

    fn leaves(&mut self, nonce: &Nonce, tile: u32) -> Result<Vec<Node>, Unable> {
        self.with_held(|cuda, held| {
            cuda.set_key(held, nonce)?;
            cuda.hash(held, tile, 0)?;
            cuda.nodes(&held.levels[0], held.parameters.tile_side)
        })
    }

    fn row(&mut self, tile: u32, row: u32) -> Result<Vec<u8>, Unable> {
        self.with_held(|cuda, held| {
            let side = size(held.parameters.tile_side);
            let begin = (size(tile) * side + size(row)) * side;
            let view = held
                .tiles
                .try_slice(begin..begin + side)
                .ok_or_else(|| Unable(format!("row {row} of tile {tile} is not held")))?;
            cuda.stream
                .clone_dtoh(&view)
                .map_err(failed("read a row back"))
        })
    }
}

fn find_function(module: &Arc<CudaModule>, name: &str) -> Result<CudaFunction, Unable> {
    module.load_function(name).map_err(failed("find a kernel"))
}

/// Blocks of `each` threads for `count` of them.
fn threads(count: u64, each: u32) -> LaunchConfig {
    let blocks = count.div_ceil(u64::from(each)).max(1);
    LaunchConfig {
        grid_dim: (u32::try_from(blocks).unwrap_or(u32::MAX), 1, 1),
        block_dim: (each, 1, 1),
        shared_mem_bytes: 0,
    }
}

fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes
        .chunks_exact(4)
        .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_driver_it_says_so() {
        if !is_present() {
            let unable = Cuda::open("machine").unwrap_err();
            assert!(unable.0.contains("libcuda.so.1"), "{unable}");
        }
    }
}
