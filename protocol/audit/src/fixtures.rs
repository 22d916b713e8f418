//! What the tests of this crate begin with.

use crate::message::Seed;
use protocol_pure::units::Millis;
use protocol_pure::verify::Parameters;

pub(crate) const SEED: Seed = Seed([0x5e; 32]);

/// Four tiles of 256 bytes, two rounds.
pub(crate) const SMALL: Parameters = Parameters {
    tile_side: 16,
    inner: 64,
    tiles: 4,
    rounds: 2,
    audits: 8,
    fill_max: Millis(1000),
    pass_max: Millis(500),
};
