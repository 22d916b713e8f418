//! What a broker says about hardware it put to the proof "Fill, Hold, Audit", and what an offer's level of
//! verification is. The proof itself (its messages, its arithmetic, how a transcript is checked again) is the
//! crate `audit`; here are only the words that are signed, kept and shown.

use crate::bounded::{Blob, List, Text};
use crate::codec;
use crate::ids::{Digest, HostId};
use crate::machine::GPUS_MAX;
use crate::offer::{Offer, ResourceName, WHOLE_MACHINE, parent};
use crate::signed::Statement;
use crate::units::{Bytes, Millis, Timestamp};
use serde::{Deserialize, Serialize};

/// Largest inner length K: products of int8 sum up exactly in an int32 while K · 127² < 2³¹.
pub const INNER_MAX: u32 = 133_144;
/// Largest side of a tile; one row of it is one frame of an answer.
pub const TILE_SIDE_MAX: u32 = 8192;
/// Most tiles: 4096 of the largest are 256 GiB.
pub const TILES_MAX: u32 = 4096;
/// Most rounds of one challenge.
pub const ROUNDS_MAX: u16 = 64;
/// Most rows that are audited.
pub const AUDITS_MAX: u16 = 128;

/// How large a challenge is, and how fast it must be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// Side n of a tile of n × n bytes: a power of two from 16 on.
    pub tile_side: u32,
    /// Inner length K of the products, a multiple of 64, at most [`INNER_MAX`].
    pub inner: u32,
    /// Tiles T that are held at once.
    pub tiles: u32,
    /// Passes R over all that is held.
    pub rounds: u16,
    /// Rows s that are audited.
    pub audits: u16,
    /// Most time from the challenge to its being filled.
    pub fill_max: Millis,
    /// Most time for all the passes.
    pub pass_max: Millis,
}

/// Which parameter of a challenge is out of its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// The tile's side.
    #[error("the tile's side {0} is not a power of two from 16 to {TILE_SIDE_MAX}")]
    TileSide(u32),
    /// The inner length; beyond the bound a sum of products may not fit an int32.
    #[error("the inner length {0} is not a multiple of 64 from 64 to {INNER_MAX}")]
    Inner(u32),
    /// The number of tiles.
    #[error("{0} tiles are not from 1 to {TILES_MAX}")]
    Tiles(u32),
    /// The number of rounds.
    #[error("{0} rounds are not from 1 to {ROUNDS_MAX}")]
    Rounds(u16),
    /// The number of audits.
    #[error("{0} audits are not from 1 to {AUDITS_MAX}")]
    Audits(u16),
}

impl Parameters {
    /// Whether every number is within its bounds.
    ///
    /// # Errors
    /// The first that is not.
    pub const fn check(&self) -> Result<(), ParameterError> {
        let side = self.tile_side;
        if !side.is_power_of_two() || side < 16 || side > TILE_SIDE_MAX {
            return Err(ParameterError::TileSide(side));
        }
        if self.inner == 0 || !self.inner.is_multiple_of(64) || self.inner > INNER_MAX {
            return Err(ParameterError::Inner(self.inner));
        }
        if self.tiles == 0 || self.tiles > TILES_MAX {
            return Err(ParameterError::Tiles(self.tiles));
        }
        if self.rounds == 0 || self.rounds > ROUNDS_MAX {
            return Err(ParameterError::Rounds(self.rounds));
        }
        if self.audits == 0 || self.audits > AUDITS_MAX {
            return Err(ParameterError::Audits(self.audits));
        }
        Ok(())
    }

    /// Bytes that are held: T · n².
    #[must_use]
    pub fn held(&self) -> u64 {
        u64::from(self.tiles) * u64::from(self.tile_side) * u64::from(self.tile_side)
    }
}

/// A broker's signed verdict on the challenge of one device. Anyone who has the transcript it names can judge again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whose hardware.
    pub host: HostId,
    /// Which of its resources was challenged.
    pub device: ResourceName,
    /// All of its resources that were challenged at the same time, this one among them: no card stood in for two.
    pub resources: List<ResourceName, GPUS_MAX>,
    /// What its host said the hardware is: [`hardware`].
    pub hardware: Digest,
    /// The class of GPU they were held to, like `H100-SXM`.
    pub class: Text<48>,
    /// What that class has to do.
    pub parameters: Parameters,
    /// What came of it.
    pub finding: Finding,
    /// BLAKE3 of the transcript's bytes.
    pub transcript: Digest,
    /// When, by the broker's clock.
    pub at: Timestamp,
}

impl Statement for Verdict {
    const TYPE: &'static str = "verdict/v2";
}

/// Most verdicts in one answer of a broker.
pub const VERDICTS_MAX: usize = 64;
/// Most bytes of a transcript in one answer of a broker.
pub const TRANSCRIPT_PART_MAX: usize = 128 * 1024;

/// A part of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptPart {
    /// Bytes of the whole transcript; 0 when the broker does not have it, or no longer.
    pub length: u32,
    /// Those from where it was asked.
    pub bytes: Blob<TRANSCRIPT_PART_MAX>,
}

/// BLAKE3 of what an offer says of the hardware behind one of its resources: of a GPU its maker, model, capability,
/// multiprocessors and memory in whole GiB, of a machine its processor, cores and memory. Drivers and clocks may
/// change without it being other hardware. Nothing where the offer has no such resource.
#[must_use]
pub fn hardware(offer: &Offer, resource: &str) -> Option<Digest> {
    let gib = |bytes: Bytes| bytes.0 / (1 << 30);
    let device = parent(resource);
    let said = if resource == WHOLE_MACHINE {
        let machine = &offer.machine;
        let (cpu, ram) = (&machine.cpu_model, gib(machine.ram));
        codec::encode(&(cpu, &machine.architecture, machine.cpu_cores, ram))
    } else {
        let gpu = offer.share.gpus.iter().find(|gpu| *gpu.uuid == *device)?;
        let (vendor, model, memory) = (gpu.vendor, &gpu.model, gib(gpu.vram));
        codec::encode(&(
            vendor,
            model,
            memory,
            gpu.compute_capability,
            gpu.multiprocessors,
        ))
    };
    said.ok().map(|said| Digest::of(&said))
}

/// What came of a challenge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finding {
    /// Everything was filled and held in time, and every audited row was right.
    Accepted {
        /// From the challenge to its being filled.
        fill: Millis,
        /// All the passes.
        pass: Millis,
    },
    /// Not accepted, because of this.
    Rejected(Flaw),
}

/// Why a proof was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Flaw {
    /// The prover said that it cannot, and why.
    #[error("the prover could not do it: {0}")]
    Unable(Text<256>),
    /// The conversation ended before the proof did.
    #[error("the prover fell silent")]
    Silent,
    /// What came was not the answer to what was asked.
    #[error("the prover answered something else than it was asked")]
    OutOfTurn,
    /// The memory was filled too slowly for the class: too little arithmetic.
    #[error("filling took {} ms, at most {} are allowed: less arithmetic than the class has", took.0, bound.0)]
    FillTooSlow {
        /// How long.
        took: Millis,
        /// How long it may.
        bound: Millis,
    },
    /// The passes took too long for the class: what has to be in memory was not, or memory is slow.
    #[error("the passes took {} ms, at most {} are allowed: not held in the memory of the class", took.0, bound.0)]
    PassTooSlow {
        /// How long.
        took: Millis,
        /// How long it may.
        bound: Millis,
    },
    /// An audited row is not what it should be.
    #[error("row {row} of tile {tile} is wrong")]
    WrongRow {
        /// The tile.
        tile: u32,
        /// The row.
        row: u32,
    },
    /// An audited row is right, and was not what the prover committed to in that round.
    #[error("row {row} of tile {tile} was not held in round {round}")]
    NotHeld {
        /// The round, from 0.
        round: u16,
        /// The tile.
        tile: u32,
        /// The row.
        row: u32,
    },
}

/// How far an offer's hardware is proved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum VerificationLevel {
    /// No challenge was met yet.
    Unverified,
    /// The last challenge was met.
    Verified {
        /// When.
        at: Timestamp,
        /// The signed verdict.
        verdict: Digest,
    },
    /// It was verified, or was put to the proof, and is not any more.
    Withdrawn {
        /// Why.
        reason: Withdrawal,
        /// When.
        at: Timestamp,
    },
}

/// Why an offer is not verified any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Withdrawal {
    /// A challenge was not met.
    #[error("it failed the proof of its hardware: {0}")]
    Failed(Flaw),
    /// The host describes its hardware differently than when it was proved.
    #[error("its hardware is not described as it was when it was proved")]
    Changed,
    /// The hardware reported a fault.
    #[error("its hardware reported a fault: {0}")]
    Fault(Text<128>),
    /// The last proof is too long ago.
    #[error("its last proof is too long ago")]
    Stale,
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: Parameters = Parameters {
        tile_side: 8192,
        inner: 48_128,
        tiles: 1096,
        rounds: 40,
        audits: 64,
        fill_max: Millis(14_000),
        pass_max: Millis(3_200),
    };

    #[test]
    fn the_bound_of_the_inner_length_is_where_int32_ends() {
        let sum = |inner: u32| u64::from(inner) * 127 * 127;
        assert!(sum(INNER_MAX) < 1 << 31 && sum(INNER_MAX + 1) >= 1 << 31);
        // The last multiple of 64 below it, and the first above.
        let with = |inner| Parameters { inner, ..H100 }.check();
        assert_eq!(with(133_120), Ok(()));
        assert_eq!(with(133_184), Err(ParameterError::Inner(133_184)));
        assert_eq!(with(65), Err(ParameterError::Inner(65)));
    }

    #[test]
    fn parameters_out_of_bounds_are_named() {
        assert_eq!(H100.check(), Ok(()));
        assert_eq!(H100.held(), 73_551_314_944);
        let wrong = Parameters {
            tile_side: 48,
            ..H100
        };
        assert_eq!(wrong.check(), Err(ParameterError::TileSide(48)));
        let wrong = Parameters { tiles: 0, ..H100 };
        assert_eq!(wrong.check(), Err(ParameterError::Tiles(0)));
        let wrong = Parameters { rounds: 65, ..H100 };
        assert_eq!(wrong.check(), Err(ParameterError::Rounds(65)));
        let wrong = Parameters { audits: 0, ..H100 };
        assert_eq!(wrong.check(), Err(ParameterError::Audits(0)));
    }
}
