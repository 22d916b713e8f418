//! The one source of pseudo-random bytes of a proof: ChaCha8 as in RFC 8439 with 8 rounds, a 32-byte key, a
//! 96-bit nonce and a 32-bit block counter that begins at 0.
//!
//! The nonce is three little-endian words: what the bytes are for, and two numbers. So each row of each matrix
//! is a keystream of its own, and a device can make any part of any of them without the rest.

use chacha20::ChaCha8;
use chacha20::cipher::{KeyIvInit, StreamCipher};

/// What bytes are for: the first word of the nonce, a letter in ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// `A`: a row of the left matrix; tile and row follow.
    Left,
    /// `B`: a column of the right matrix; tile and column follow.
    Right,
    /// `H`: the key of a round's hashes.
    Hash,
    /// `C`: which cells are audited.
    Cells,
}

impl Purpose {
    const fn word(self) -> u32 {
        match self {
            Self::Left => 0x41,
            Self::Right => 0x42,
            Self::Hash => 0x48,
            Self::Cells => 0x43,
        }
    }
}

/// A keystream, read from its beginning on.
pub(crate) struct Keystream(ChaCha8);

impl Keystream {
    pub(crate) fn new(key: &[u8; 32], purpose: Purpose, first: u32, second: u32) -> Self {
        let mut nonce = [0; 12];
        for (bytes, word) in nonce
            .chunks_exact_mut(4)
            .zip([purpose.word(), first, second])
        {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Self(ChaCha8::new(key.into(), &nonce.into()))
    }

    /// Puts the next bytes into `bytes`. A keystream has 256 GiB; nothing here asks for more than a few
    /// hundred KiB.
    pub(crate) fn read(&mut self, bytes: &mut [u8]) {
        bytes.fill(0);
        self.0.apply_keystream(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_chacha_with_eight_rounds() {
        // Computed with a separate ChaCha of twelve lines, checked against RFC 8439 2.3.2 with 20 rounds.
        let key: [u8; 32] = std::array::from_fn(|at| u8::try_from(at).unwrap());
        let mut bytes = [0; 64];
        Keystream::new(&key, Purpose::Left, 3, 5).read(&mut bytes);
        assert_eq!(bytes[..8], BYTES_OF_A_3_5);
        Keystream::new(&key, Purpose::Right, 3, 5).read(&mut bytes);
        assert_ne!(bytes[..8], BYTES_OF_A_3_5);
    }

    const BYTES_OF_A_3_5: [u8; 8] = [0x4e, 0x8f, 0x33, 0xcd, 0x45, 0x27, 0x85, 0x56];
}
