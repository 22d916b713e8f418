//! The keyed hash of a row, which has to run as fast as memory is read.
//!
//! NH (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, 1999) over 32-bit words in four passes with shifted
//! keys. With the message `m = [t, i, D_t[i] as little-endian words]`, an even number of words, and key words
//! `w` (the keystream of (ν, `H`, 0, 0), little-endian), lane L = 0..3 is
//!
//! ```text
//! N_L = Σ_j ((m[2j] + w[2j + 2L]) mod 2³²) · ((m[2j+1] + w[2j+1 + 2L]) mod 2³²)   mod 2⁶⁴
//! ```
//!
//! and the hash is the four sums as little-endian 64-bit words. Two different messages of equal length have the
//! same hash for at most a part 2⁻¹²⁸ of the keys. Every byte counts, in one multiplication per lane and two
//! words, and sums can be added in any order: a device uses as many threads as it likes.

use crate::keystream::{Keystream, Purpose};
use crate::message::{Node, Nonce};

/// Lanes of the hash.
const LANES: usize = 4;
/// Words of the message in front of the row: which row it is.
const HEAD_WORDS: usize = 2;
/// Key words beyond those of the message, for the shifted lanes.
const SHIFT_WORDS: usize = 2 * (LANES - 1);

/// The key words of one round.
#[derive(Debug, Clone)]
pub struct RowKey {
    words: Vec<u32>,
}

impl RowKey {
    /// The key of the round of `nonce`, for rows of `row_bytes` bytes, a multiple of 8.
    #[must_use]
    pub fn new(nonce: &Nonce, row_bytes: usize) -> Self {
        let mut bytes = vec![0; row_bytes + 4 * (HEAD_WORDS + SHIFT_WORDS)];
        Keystream::new(&nonce.0, Purpose::Hash, 0, 0).read(&mut bytes);
        Self {
            words: words(&bytes).collect(),
        }
    }

    /// The words: two for which row it is, one for every four bytes of a row, and six more.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The leaf of a row.
    #[must_use]
    pub fn leaf(&self, tile: u32, row: u32, bytes: &[u8]) -> Node {
        let message: Vec<u32> = [tile, row].into_iter().chain(words(bytes)).collect();
        let mut leaf = [0; 32];
        for (lane, sum) in leaf.chunks_exact_mut(8).enumerate() {
            let key = self.words.get(2 * lane..).unwrap_or(&[]);
            sum.copy_from_slice(&lane_sum(&message, key).to_le_bytes());
        }
        Node(leaf)
    }
}

fn lane_sum(message: &[u32], key: &[u32]) -> u64 {
    message
        .chunks_exact(2)
        .zip(key.chunks_exact(2))
        .map(|(pair, key)| {
            let first = u64::from(pair[0].wrapping_add(key[0]));
            let second = u64::from(pair[1].wrapping_add(key[1]));
            first.wrapping_mul(second)
        })
        .fold(0, u64::wrapping_add)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes
        .chunks_exact(4)
        .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum_of(node: &Node, lane: usize) -> u64 {
        u64::from_le_bytes(node.0[8 * lane..8 * lane + 8].try_into().unwrap())
    }

    #[test]
    fn a_leaf_worked_out_by_hand() {
        // Words 1, 2, 3 ... of the key; the message is tile 10, row 20, then 1 and 0xffff_ffff.
        let key = RowKey {
            words: (1..=10).collect(),
        };
        let leaf = key.leaf(10, 20, &[1, 0, 0, 0, 255, 255, 255, 255]);
        // (10+1)(20+2) + (1+3)(2^32 - 1 + 4 = 3) = 242 + 12; then keys 3, 4, 5, 6; 5 to 8; 7 to 10.
        assert_eq!(sum_of(&leaf, 0), 254);
        assert_eq!(sum_of(&leaf, 1), 13 * 24 + 6 * 5);
        assert_eq!(sum_of(&leaf, 2), 15 * 26 + 8 * 7);
        assert_eq!(sum_of(&leaf, 3), 17 * 28 + 10 * 9);
    }

    #[test]
    fn products_have_sixty_four_bits() {
        let key = RowKey { words: vec![0; 10] };
        let leaf = key.leaf(0, 0, &[255; 8]);
        assert_eq!(sum_of(&leaf, 0), u64::from(u32::MAX).pow(2));
    }

    #[test]
    fn every_byte_the_place_and_the_key_count() {
        let key = RowKey::new(&Nonce([3; 32]), 64);
        assert_eq!(key.words().len(), 16 + 8);
        let row = [7_u8; 64];
        let leaf = key.leaf(1, 2, &row);
        for at in 0..64 {
            let mut other = row;
            other[at] ^= 1;
            assert_ne!(key.leaf(1, 2, &other), leaf, "byte {at}");
        }
        assert_ne!(key.leaf(0, 2, &row), leaf);
        assert_ne!(key.leaf(1, 3, &row), leaf);
        assert_ne!(RowKey::new(&Nonce([4; 32]), 64).leaf(1, 2, &row), leaf);
    }
}
