//! What a verifier and a prover say to each other, in the order of the proof.
//!
//! Closed enums, bounded, each with the version in front; see [`crate::frame`] for how they cross a pipe.

use protocol_pure::bounded::{Blob, List, Text};
use protocol_pure::ids::MessageId;
use protocol_pure::offer::ResourceName;
use protocol_pure::verify::Parameters;
use serde::{Deserialize, Serialize};

/// Version of all messages here, and of every definition in this crate that both sides have to compute alike.
pub const VERSION: u16 = 1;
/// Most nodes of a path: 13 levels in the largest tile and 12 above 4096 tiles.
pub const PATH_MAX: usize = 25;
/// Most rows of one audit; [`protocol_pure::verify::AUDITS_MAX`] as a length.
pub const CELLS_MAX: usize = 128;
/// Most rounds; [`protocol_pure::verify::ROUNDS_MAX`] as a length.
pub const ROOTS_MAX: usize = 64;
/// Bytes of the longest row.
pub const ROW_BYTES_MAX: usize = 8192;

/// 32 random bytes from which a challenge's matrices are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seed(pub [u8; 32]);

/// The key of one round's hashes. The first is random, each further one follows from the round before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nonce(pub [u8; 32]);

/// A leaf, an inner node or the root of a round's tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Node(pub [u8; 32]);

/// One row in one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// The round, from 0.
    pub round: u16,
    /// The tile, from 0.
    pub tile: u32,
    /// The row of the tile, from 0.
    pub row: u32,
}

/// What is to be filled, and with what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// Random: names the challenge.
    pub id: MessageId,
    /// The device that is challenged, like `GPU-…` or `MIG-…`; `machine` for the first that there is.
    pub device: ResourceName,
    /// How large and how fast.
    pub parameters: Parameters,
    /// What the matrices are made of.
    pub seed: Seed,
}

/// What a verifier asks, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// Fill the memory. The first message.
    Challenge(Challenge),
    /// Pass over all of it, round by round, beginning with this key.
    Nonce(Nonce),
    /// Show these rows and what they were part of.
    Audit(List<Cell, CELLS_MAX>),
}

/// What a prover answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The device is open and its kernels are translated: the first message of all, before anything is asked.
    Ready,
    /// To [`Ask::Challenge`].
    Filled,
    /// To [`Ask::Nonce`]: the root of each round's tree.
    Done(List<Node, ROOTS_MAX>),
    /// To [`Ask::Audit`]: one for each cell, in the order of the cells.
    Row(Row),
    /// It cannot, because. The last message.
    Unable(Text<256>),
}

/// A row, and what proves that it was part of its round's tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its n bytes.
    pub bytes: Blob<ROW_BYTES_MAX>,
    /// The other child at each level, from the leaf up; where a node has no other child, nothing.
    pub path: List<Node, PATH_MAX>,
}
