//! Every device gives the bits of the reference: Vulkan on a device that is a program, the text of the CUDA kernels
//! run on the processor, and the program over its pipes.
//!
//! A device of Vulkan's that is a program is Mesa's, Debian's `mesa-vulkan-drivers`; `g++` compiles the kernels.
#![cfg(test)]

mod devices;
mod emulated;
mod program;

use audit::message::{Nonce, Seed};
use protocol_pure::units::Millis;
use protocol_pure::verify::Parameters;

const SEED: Seed = Seed([0x5e; 32]);
const NONCE: Nonce = Nonce([0x17; 32]);

const fn parameters(tile_side: u32, inner: u32, tiles: u32) -> Parameters {
    Parameters {
        tile_side,
        inner,
        tiles,
        rounds: 3,
        audits: 16,
        fill_max: Millis(60_000),
        pass_max: Millis(60_000),
    }
}
