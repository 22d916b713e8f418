//! Vulkan: GPUs that have no other driver which needs no toolkit, and devices that are programs. The kernels are
//! GLSL in `kernels/`, with the SPIR-V made of it beside it.
//!
//! A product of int8 is made of ordinary integers: what every device can do, and a tenth of what some could. So
//! a card passes at its class's speed through CUDA only; here it is the bits that count.

use audit::hash::RowKey;
use audit::message::{Node, Nonce, Seed};
use audit::prover::{Device, Unable};
use protocol_pure::units::Bytes;
use protocol_pure::verify::Parameters;
use std::rc::Rc;
use vk_compute::{
    Buffer, CALLS_MAX, Call, Device as Context, Kernel, Place, VulkanError, Wanted, spread,
};

/// Rows of either matrix in one buffer: 512 of the longest are 68 MB, and every device binds 128 MiB.
const PANEL: u32 = 512;
/// Bytes of tiles in one buffer.
const STORE_BYTES: u64 = 1 << 30;
/// Leaves that are hashed upwards together.
const LEAVES_AT_ONCE: u32 = 1 << 19;
const LEFT: u32 = 0x41;
const RIGHT: u32 = 0x42;

fn unable(error: VulkanError) -> Unable {
    Unable(error.to_string())
}

fn run(context: &Context, calls: &[Call<'_>]) -> Result<(), Unable> {
    vk_compute::run(context, calls).map(drop).map_err(unable)
}

/// A device of Vulkan's.
#[derive(Debug)]
pub struct Vulkan {
    context: Rc<Context>,
    operand: Kernel,
    multiply: Kernel,
    leaves: Kernel,
    parents: Kernel,
    held: Option<Held>,
}

/// Tiles, and what the passes need.
#[derive(Debug)]
struct Held {
    parameters: Parameters,
    /// The tiles, so many in each.
    stores: Vec<Buffer>,
    tiles_each: u32,
    key: Buffer,
    /// Leaves of some tiles, and the levels above them, in turns.
    levels: [Buffer; 2],
    tiles_at_once: u32,
    /// Where the machine reads results.
    results: Buffer,
}

impl Vulkan {
    /// The first device that is a GPU, or the first that is a program.
    ///
    /// # Errors
    /// When there is none, or it cannot be opened.
    pub fn open(software: bool) -> Result<Self, Unable> {
        let wanted = if software {
            Wanted::Software
        } else {
            Wanted::Gpu
        };
        let context = Rc::new(Context::open(wanted).map_err(unable)?);
        let kernel = |code, buffers| Kernel::new(&context, code, buffers).map_err(unable);
        Ok(Self {
            operand: kernel(include_bytes!("../kernels/operand.spv"), 1)?,
            multiply: kernel(include_bytes!("../kernels/multiply.spv"), 3)?,
            leaves: kernel(include_bytes!("../kernels/leaves.spv"), 3)?,
            parents: kernel(include_bytes!("../kernels/parents.spv"), 2)?,
            held: None,
            context,
        })
    }

    fn held(&self) -> Result<&Held, Unable> {
        self.held
            .as_ref()
            .ok_or_else(|| Unable("nothing is held".to_owned()))
    }

    /// The call that makes some rows of a matrix.
    fn make<'a>(&'a self, out: &'a Buffer, seed: &Seed, place: Matrix, rows: Rows) -> Call<'a> {
        let mut push: Vec<u32> = words(&seed.0).collect();
        push.extend([
            place.purpose,
            place.tile,
            rows.first,
            rows.count,
            rows.blocks,
        ]);
        let blocks = u64::from(rows.count) * u64::from(rows.blocks);
        Call {
            kernel: &self.operand,
            buffers: vec![out],
            push,
            groups: spread(blocks.div_ceil(64)),
            times: 1,
        }
    }

    fn fill_tile(
        &self,
        seed: &Seed,
        held: &Held,
        panels: &Panels,
        tile: u32,
    ) -> Result<(), Unable> {
        let parameters = &held.parameters;
        let (side, blocks) = (parameters.tile_side, parameters.inner / 64);
        let rows = |first| Rows {
            first,
            count: panels.rows,
            blocks,
        };
        let of = |purpose| Matrix { purpose, tile };
        let starts = || {
            (0..)
                .step_by(step(panels.rows))
                .take_while(|start| *start < side)
        };
        let right: Vec<Call<'_>> = starts()
            .zip(&panels.right)
            .map(|(first, buffer)| self.make(buffer, seed, of(RIGHT), rows(first)))
            .collect();
        run(&self.context, &right)?;
        let (store, base) = held.place(tile)?;
        for row in starts() {
            let mut calls = vec![self.make(&panels.left, seed, of(LEFT), rows(row))];
            calls.extend(starts().zip(&panels.right).map(|(column, right)| Call {
                kernel: &self.multiply,
                buffers: vec![&panels.left, right, store],
                push: vec![
                    parameters.inner / 4,
                    panels.rows,
                    panels.rows,
                    row,
                    column,
                    side,
                    base,
                ],
                groups: (panels.rows.div_ceil(64), panels.rows.div_ceil(64)),
                times: 1,
            }));
            run(&self.context, &calls)?;
        }
        Ok(())
    }

    /// The call that hashes a tile's rows to `leaf`, counted in leaves, of the lowest level.
    fn hash<'a>(&'a self, held: &'a Held, tile: u32, leaf: u32) -> Result<Call<'a>, Unable> {
        let (store, base) = held.place(tile)?;
        let side = held.parameters.tile_side;
        Ok(Call {
            kernel: &self.leaves,
            buffers: vec![store, &held.key, &held.levels[0]],
            push: vec![tile, side / 4, base, leaf * 8],
            groups: (side, 1),
            times: 1,
        })
    }

    /// The roots of `count` tiles from `first` on.
    fn roots(&self, held: &Held, first: u32, count: u32) -> Result<Vec<Node>, Unable> {
        let side = held.parameters.tile_side;
        for start in (0..count).step_by(CALLS_MAX) {
            let end = count.min(start + u32::try_from(CALLS_MAX).unwrap_or(1));
            let calls = (start..end)
                .map(|slot| self.hash(held, first + slot, slot * side))
                .collect::<Result<Vec<_>, _>>()?;
            run(&self.context, &calls)?;
        }
        let mut calls = Vec::new();
        let (mut nodes, mut below) = (side, 0);
        while nodes > 1 {
            nodes /= 2;
            let above = u64::from(nodes) * u64::from(count);
            calls.push(Call {
                kernel: &self.parents,
                buffers: vec![&held.levels[below], &held.levels[1 - below]],
                push: vec![u32::try_from(above).unwrap_or(u32::MAX)],
                groups: spread(above.div_ceil(64)),
                times: 1,
            });
            below = 1 - below;
        }
        run(&self.context, &calls)?;
        held.nodes(&held.levels[below], count)
    }
}

/// Of which matrix of which tile.
#[derive(Debug, Clone, Copy)]
struct Matrix {
    purpose: u32,
    tile: u32,
}

/// Which rows of a matrix.
#[derive(Debug, Clone, Copy)]
struct Rows {
    first: u32,
    count: u32,
    blocks: u32,
}

/// Both matrices of a tile: some rows of the left one, all of the right one in parts.
#[derive(Debug)]
struct Panels {
    rows: u32,
    left: Buffer,
    right: Vec<Buffer>,
}

impl Panels {
    fn new(context: &Rc<Context>, parameters: &Parameters) -> Result<Self, Unable> {
        let rows = PANEL.min(parameters.tile_side);
        let bytes = u64::from(rows) * u64::from(parameters.inner);
        let buffer = || Buffer::new(context, bytes, Place::Device).map_err(unable);
        Ok(Self {
            rows,
            left: buffer()?,
            right: (0..parameters.tile_side / rows)
                .map(|_| buffer())
                .collect::<Result<_, _>>()?,
        })
    }
}

impl Held {
    fn new(context: &Rc<Context>, parameters: &Parameters) -> Result<Self, Unable> {
        let buffer = |bytes, place| Buffer::new(context, bytes, place).map_err(unable);
        let side = u64::from(parameters.tile_side);
        let tile_bytes = side * side;
        // A driver may give away more than there is, and fetch it from elsewhere.
        let (has, needed) = (context.own_memory(), parameters.held());
        if has < needed {
            let (has, needed) = (Bytes(has), Bytes(needed));
            return Err(Unable(format!(
                "the device has {has} of memory, {needed} are needed"
            )));
        }
        let bindable = context.largest_buffer();
        let fitting = (STORE_BYTES.min(bindable) / tile_bytes).clamp(1, 1 << 20);
        let tiles_each = u32::try_from(fitting).unwrap_or(1).min(parameters.tiles);
        let stores = (0..parameters.tiles)
            .step_by(step(tiles_each))
            .map(|first| {
                let tiles = tiles_each.min(parameters.tiles - first);
                buffer(u64::from(tiles) * tile_bytes, Place::Device)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let tiles_at_once = (LEAVES_AT_ONCE / parameters.tile_side).clamp(1, parameters.tiles);
        let leaves = u64::from(tiles_at_once) * side * 32;
        let level = || buffer(leaves, Place::Device);
        let results = leaves.min(side.max(u64::from(tiles_at_once)) * 32);
        Ok(Self {
            parameters: *parameters,
            stores,
            tiles_each,
            key: buffer(side + 32, Place::Shared)?,
            levels: [level()?, level()?],
            tiles_at_once,
            results: buffer(results, Place::Shared)?,
        })
    }

    /// The buffer of a tile, and the word at which it begins there.
    fn place(&self, tile: u32) -> Result<(&Buffer, u32), Unable> {
        let words = self.parameters.tile_side * self.parameters.tile_side / 4;
        let store = self.stores.get(step(tile / self.tiles_each));
        let store = store.filter(|_| tile < self.parameters.tiles);
        store
            .map(|store| (store, tile % self.tiles_each * words))
            .ok_or_else(|| Unable(format!("tile {tile} is not held")))
    }

    fn set_key(&self, nonce: &Nonce) -> Result<(), Unable> {
        let key = RowKey::new(nonce, step(self.parameters.tile_side));
        let bytes: Vec<u8> = key
            .words()
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        self.key.write(&bytes).map_err(unable)
    }

    /// The first nodes of a level.
    fn nodes(&self, level: &Buffer, count: u32) -> Result<Vec<Node>, Unable> {
        let copied = self.results.copy_from(level, 0, u64::from(count) * 32);
        let bytes = copied.and_then(|()| self.results.read(step(count) * 32));
        let bytes = bytes.map_err(unable)?;
        let nodes = bytes.chunks_exact(32).map(|chunk| {
            let mut node = [0; 32];
            node.copy_from_slice(chunk);
            Node(node)
        });
        Ok(nodes.collect())
    }
}

impl Device for Vulkan {
    fn fill(&mut self, seed: &Seed, parameters: &Parameters) -> Result<(), Unable> {
        self.held = None;
        let held = Held::new(&self.context, parameters)?;
        let panels = Panels::new(&self.context, parameters)?;
        for tile in 0..parameters.tiles {
            self.fill_tile(seed, &held, &panels, tile)?;
        }
        self.held = Some(held);
        Ok(())
    }

    fn pass(&mut self, nonce: &Nonce) -> Result<Vec<Node>, Unable> {
        let held = self.held()?;
        held.set_key(nonce)?;
        let tiles = held.parameters.tiles;
        let mut roots = Vec::new();
        for first in (0..tiles).step_by(step(held.tiles_at_once)) {
            let count = held.tiles_at_once.min(tiles - first);
            roots.extend(self.roots(held, first, count)?);
        }
        Ok(roots)
    }

    fn leaves(&mut self, nonce: &Nonce, tile: u32) -> Result<Vec<Node>, Unable> {
        let held = self.held()?;
        held.set_key(nonce)?;
        run(&self.context, &[self.hash(held, tile, 0)?])?;
        held.nodes(&held.levels[0], held.parameters.tile_side)
    }

    fn row(&mut self, tile: u32, row: u32) -> Result<Vec<u8>, Unable> {
        let held = self.held()?;
        let (store, base) = held.place(tile)?;
        let side = held.parameters.tile_side;
        let at = u64::from(base) * 4 + u64::from(row) * u64::from(side);
        let copied = held.results.copy_from(store, at, u64::from(side));
        let row = copied.and_then(|()| held.results.read(step(side)));
        row.map_err(unable)
    }
}

fn step(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes
        .chunks_exact(4)
        .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}
