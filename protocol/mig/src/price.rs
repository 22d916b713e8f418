//! What a slice costs, from the price of its whole GPU.
//!
//! Integers only: micro-dollars and basis points.

use crate::chip::{Chip, ProfileIndex};

/// Basis points in the whole.
const WHOLE_BP: u32 = 10_000;

/// The price of a slice in micro-dollars an hour: `ceil(gpu × max(SM / SM_total, memory / total) × (1 +
/// premium))`. A slice that takes the whole axis is the whole GPU, at its price. Where the multiprocessors
/// are unknown, the memory counts.
///
/// A premium of at least nothing means that a GPU sold in slices that fill it never earns less than whole:
/// their memory adds up to the axis, but for the eighth unit that seven smallest ones cannot reach.
///
/// Nothing for a profile that the chip does not have, or a price that leaves the range.
#[must_use]
pub fn slice_price(
    chip: &Chip,
    profile: ProfileIndex,
    gpu_price: u64,
    premium_bp: u32,
) -> Option<u64> {
    let profile = chip.profile(profile)?;
    let geometry = chip.geometry();
    let memory = (u128::from(profile.size), u128::from(geometry.axis));
    if profile.size >= geometry.axis {
        return Some(gpu_price);
    }
    let sm = (u128::from(profile.sm), u128::from(geometry.sm_total));
    // a/b > c/d as a×d > c×b.
    let (part, whole) = if sm.1 > 0 && sm.0 * memory.1 > memory.0 * sm.1 {
        sm
    } else {
        memory
    };
    let with_premium = u128::from(WHOLE_BP) + u128::from(premium_bp);
    let above = u128::from(gpu_price)
        .checked_mul(part)?
        .checked_mul(with_premium)?;
    u64::try_from(above.div_ceil(whole * u128::from(WHOLE_BP))).ok()
}
