//! The prover's side: what a device has to be able to do, and the answers made of it.

use crate::chain;
use crate::message::{Answer, Ask, Cell, Challenge, Node, Nonce, ROOTS_MAX, Row, Seed};
use crate::tree;
use protocol_pure::bounded::{Blob, List, Text};
use protocol_pure::verify::Parameters;

/// Why a device cannot do what is asked, in words for whoever runs it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unable(pub String);

/// What a GPU, or a processor in its place, does in a proof.
pub trait Device {
    /// Makes and keeps all tiles. `parameters` have been checked.
    ///
    /// # Errors
    /// When the device has no room, or fails.
    fn fill(&mut self, seed: &Seed, parameters: &Parameters) -> Result<(), Unable>;

    /// Hashes every row that is held, with the key of `nonce`: the root of each tile's leaves, in order.
    ///
    /// # Errors
    /// When the device fails.
    fn pass(&mut self, nonce: &Nonce) -> Result<Vec<Node>, Unable>;

    /// The n leaves of one tile, hashed again with the key of `nonce`.
    ///
    /// # Errors
    /// When the device fails.
    fn leaves(&mut self, nonce: &Nonce, tile: u32) -> Result<Vec<Node>, Unable>;

    /// The bytes of a row that is held.
    ///
    /// # Errors
    /// When the device fails.
    fn row(&mut self, tile: u32, row: u32) -> Result<Vec<u8>, Unable>;
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn fill(&mut self, seed: &Seed, parameters: &Parameters) -> Result<(), Unable> {
        (**self).fill(seed, parameters)
    }

    fn pass(&mut self, nonce: &Nonce) -> Result<Vec<Node>, Unable> {
        (**self).pass(nonce)
    }

    fn leaves(&mut self, nonce: &Nonce, tile: u32) -> Result<Vec<Node>, Unable> {
        (**self).leaves(nonce, tile)
    }

    fn row(&mut self, tile: u32, row: u32) -> Result<Vec<u8>, Unable> {
        (**self).row(tile, row)
    }
}

/// One proof on one device.
#[derive(Debug)]
pub struct Prover<D> {
    device: D,
    held: Option<Parameters>,
    /// Of each round that was passed: its key, and the roots of its tiles.
    rounds: Vec<(Nonce, Vec<Node>)>,
}

impl<D: Device> Prover<D> {
    /// A prover that holds nothing yet.
    pub const fn new(device: D) -> Self {
        Self {
            device,
            held: None,
            rounds: Vec::new(),
        }
    }

    /// What is answered to `ask`, in order.
    pub fn answer(&mut self, ask: &Ask) -> Vec<Answer> {
        let answered = match ask {
            Ask::Challenge(challenge) => self.fill(challenge).map(|()| vec![Answer::Filled]),
            Ask::Nonce(nonce) => self.pass_all(*nonce).map(|roots| vec![Answer::Done(roots)]),
            Ask::Audit(cells) => cells.iter().map(|cell| self.show(*cell)).collect(),
        };
        answered.unwrap_or_else(|unable| vec![Answer::Unable(Text::cut(&unable.0))])
    }

    fn fill(&mut self, challenge: &Challenge) -> Result<(), Unable> {
        let parameters = challenge.parameters;
        parameters
            .check()
            .map_err(|error| Unable(format!("the challenge is not one: {error}")))?;
        self.rounds.clear();
        self.device.fill(&challenge.seed, &parameters)?;
        self.held = Some(parameters);
        Ok(())
    }

    fn pass_all(&mut self, first: Nonce) -> Result<List<Node, ROOTS_MAX>, Unable> {
        let parameters = self.held.ok_or_else(out_of_turn)?;
        self.rounds.clear();
        let mut nonce = first;
        let mut roots = Vec::new();
        for _ in 0..parameters.rounds {
            let tile_roots = self.device.pass(&nonce)?;
            let root = tree::root(&tile_roots);
            self.rounds.push((nonce, tile_roots));
            roots.push(root);
            nonce = chain::next(&nonce, &root);
        }
        Ok(List::first(roots))
    }

    fn show(&mut self, cell: Cell) -> Result<Answer, Unable> {
        let (nonce, tile_roots) = self
            .rounds
            .get(usize::from(cell.round))
            .ok_or_else(out_of_turn)?;
        let leaves = self.device.leaves(nonce, cell.tile)?;
        let path = tree::path(&leaves, cell.row, tile_roots, cell.tile);
        let bytes = self.device.row(cell.tile, cell.row)?;
        let bytes = Blob::new(bytes).map_err(|error| Unable(format!("a row: {error}")))?;
        Ok(Answer::Row(Row { bytes, path }))
    }
}

fn out_of_turn() -> Unable {
    Unable("it was asked for what comes later in a proof".to_owned())
}
