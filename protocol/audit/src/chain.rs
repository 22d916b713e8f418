//! How one round's key follows from the round before, and which cells are audited.

use crate::keystream::{Keystream, Purpose};
use crate::message::{CELLS_MAX, Cell, Node, Nonce};
use protocol_pure::bounded::List;
use protocol_pure::verify::Parameters;

/// The key of the round after the one of `nonce`, whose root was `root`: BLAKE3 of both. So no round can begin
/// before the one before it is through.
#[must_use]
pub fn next(nonce: &Nonce, root: &Node) -> Nonce {
    Nonce(hash_of_both(&nonce.0, &root.0))
}

/// The keys of all rounds, and behind them the one that would follow.
#[must_use]
pub fn nonces(first: Nonce, roots: &[Node]) -> Vec<Nonce> {
    let mut nonces = vec![first];
    let mut nonce = first;
    for root in roots {
        nonce = next(&nonce, root);
        nonces.push(nonce);
    }
    nonces
}

/// The audited cells: drawn with the verifier's `secret` and what follows the last round, so the prover cannot
/// know them before it is through, and whoever checks again sees that they were not picked.
///
/// Cell c is the c-th little-endian 64-bit word of the keystream of (BLAKE3(secret ‖ last), `C`, 0, 0) modulo
/// R · T · n, counted through the rows, then the tiles, then the rounds. R · T · n < 2³², so no cell is
/// likelier than another by more than a part 2⁻³².
#[must_use]
pub fn cells(secret: &[u8; 32], last: &Nonce, parameters: &Parameters) -> List<Cell, CELLS_MAX> {
    let key = hash_of_both(secret, &last.0);
    let mut stream = Keystream::new(&key, Purpose::Cells, 0, 0);
    let side = u64::from(parameters.tile_side);
    let rows = side * u64::from(parameters.tiles);
    let all = (rows * u64::from(parameters.rounds)).max(1);
    List::first((0..parameters.audits).map(|_| {
        let mut word = [0; 8];
        stream.read(&mut word);
        let at = u64::from_le_bytes(word) % all;
        Cell {
            round: u16::try_from(at / rows).unwrap_or(u16::MAX),
            tile: u32::try_from(at % rows / side).unwrap_or(u32::MAX),
            row: u32::try_from(at % side).unwrap_or(u32::MAX),
        }
    }))
}

fn hash_of_both(first: &[u8; 32], second: &[u8; 32]) -> [u8; 32] {
    *blake3::Hasher::new()
        .update(first)
        .update(second)
        .finalize()
        .as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::SMALL;
    use std::collections::BTreeSet;

    #[test]
    fn each_key_needs_all_roots_before_it() {
        let roots = [Node([1; 32]), Node([2; 32])];
        let chain = nonces(Nonce([9; 32]), &roots);
        assert_eq!(chain.len(), 3);
        let both = [[9_u8; 32], [1; 32]].concat();
        assert_eq!(chain[1].0, *blake3::hash(&both).as_bytes());
        assert_eq!(chain[2], next(&chain[1], &roots[1]));
        let other = nonces(Nonce([9; 32]), &[Node([3; 32]), roots[1]]);
        assert_ne!(other[2], chain[2]);
    }

    #[test]
    fn cells_are_everywhere_and_not_known_before() {
        let parameters = Parameters {
            audits: 128,
            ..SMALL
        };
        let of = |secret, last| cells(&[secret; 32], &Nonce([last; 32]), &parameters);
        let drawn = of(1, 1);
        assert_eq!(drawn.len(), 128);
        // Two rounds of 4 tiles of 16 rows: all are hit by 128 · 8 draws, and nothing outside.
        let mut seen = BTreeSet::new();
        for secret in 0..16 {
            for cell in &of(secret, 1) {
                assert!(cell.round < 2 && cell.tile < 4 && cell.row < 16, "{cell:?}");
                seen.insert(*cell);
            }
        }
        assert_eq!(seen.len(), 128);
        assert_ne!(of(2, 1), drawn);
        assert_ne!(of(1, 2), drawn);
    }
}
