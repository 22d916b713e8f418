//! The reference: a device made of ordinary memory and one thread. What it computes is what every other device
//! has to compute, bit for bit.

use crate::hash::RowKey;
use crate::message::{Node, Nonce, Seed};
use crate::prover::{Device, Unable};
use crate::row;
use crate::tree;
use protocol_pure::verify::Parameters;

/// Rows of a tile that are made together, so that their left matrix takes a few megabytes.
const ROWS_AT_ONCE: usize = 64;

/// The memory of a proof without a GPU.
#[derive(Debug, Default)]
pub struct Processor {
    /// Bytes of a row.
    side: usize,
    /// The rows of each tile, one behind the other.
    tiles: Vec<Vec<u8>>,
}

impl Processor {
    /// Nothing held yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            side: 0,
            tiles: Vec::new(),
        }
    }

    fn tile(&self, tile: u32) -> Result<&[u8], Unable> {
        usize::try_from(tile)
            .ok()
            .and_then(|at| self.tiles.get(at))
            .map(Vec::as_slice)
            .ok_or_else(|| Unable(format!("tile {tile} is not held")))
    }

    fn hashed(&self, key: &RowKey, tile: u32) -> Result<Vec<Node>, Unable> {
        let rows = self.tile(tile)?.chunks_exact(self.side.max(1));
        Ok((0..)
            .zip(rows)
            .map(|(row, bytes)| key.leaf(tile, row, bytes))
            .collect())
    }
}

impl Device for Processor {
    fn fill(&mut self, seed: &Seed, parameters: &Parameters) -> Result<(), Unable> {
        self.tiles.clear();
        self.side = usize::try_from(parameters.tile_side).unwrap_or(0);
        let all: Vec<u32> = (0..parameters.tile_side).collect();
        for tile in 0..parameters.tiles {
            let made = all
                .chunks(ROWS_AT_ONCE)
                .flat_map(|some| row::rows(seed, parameters, tile, some));
            self.tiles.push(made.flatten().collect());
        }
        Ok(())
    }

    fn pass(&mut self, nonce: &Nonce) -> Result<Vec<Node>, Unable> {
        let key = RowKey::new(nonce, self.side);
        (0..)
            .take(self.tiles.len())
            .map(|tile| Ok(tree::root(&self.hashed(&key, tile)?)))
            .collect()
    }

    fn leaves(&mut self, nonce: &Nonce, tile: u32) -> Result<Vec<Node>, Unable> {
        self.hashed(&RowKey::new(nonce, self.side), tile)
    }

    fn row(&mut self, tile: u32, row: u32) -> Result<Vec<u8>, Unable> {
        let at = usize::try_from(row).unwrap_or(usize::MAX);
        self.tile(tile)?
            .chunks_exact(self.side.max(1))
            .nth(at)
            .map(<[u8]>::to_vec)
            .ok_or_else(|| Unable(format!("row {row} is not held")))
    }
}
