//! What each class of GPU has to do, and how fast.
//!
//! Peak figures are those of the makers' data sheets: int8 without sparsity, in tera-operations a second, and
//! memory in GB/s. A device that reaches 30 % of its peak passes. From them:
//!
//! - `T = ⌊0.92 · memory / n²⌋` tiles of n = 8192;
//! - `K`, so that 2 · T · n² · K operations take 12 s at 30 % of the peak, a multiple of 512;
//! - `T_fill` = 14 s: those 12 s, and 2 s for the way there and back and the start;
//! - `T_res` = 1 s + 1.5 · (40 · T · n² / 60 % of the bandwidth).
//!
//! The bounds come from data sheets and have not been calibrated on real cards.

use protocol_pure::units::{Bytes, Millis};
use protocol_pure::verify::{INNER_MAX, Parameters};

/// Side of a tile.
const TILE_SIDE: u32 = 8192;
/// Bytes of a tile.
const TILE_BYTES: u64 = 8192 * 8192;
/// Rounds of a challenge.
const ROUNDS: u16 = 40;
/// Rows that are audited.
const AUDITS: u16 = 64;
/// Time of a challenge's arithmetic at the floor, and what is allowed on top.
const FILL_MAX: Millis = Millis(14_000);
/// How much less memory than its class a device may report: what the driver and ECC keep.
const MEMORY_SHORT_PERCENT: u64 = 8;

/// A class of GPU: cards, or slices of them, that have to do the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// What it is called, like `H100-SXM` or `H100-SXM 1g.10gb`.
    pub name: String,
    /// Peak of int8 products, in 10⁹ operations a second.
    pub giga_ops: u64,
    /// Peak of the memory, in 10⁶ bytes a second.
    pub bandwidth_mb: u64,
    /// Tiles that are held.
    pub tiles: u32,
}

/// Why a device is of no known class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClassError {
    /// No class has this model.
    #[error("there is no class for '{model}' yet, so its hardware cannot be put to the proof")]
    Unknown {
        /// What it calls itself.
        model: String,
    },
    /// It says that it has less memory than its model.
    #[error("{model} has {wanted} of memory, and this one only {has}")]
    MemoryShort {
        /// What it calls itself.
        model: String,
        /// What the class has.
        wanted: Bytes,
        /// What it says it has.
        has: Bytes,
    },
    /// The slice is none that the class can be cut into.
    #[error("{class} has no slice '{slice}'")]
    Slice {
        /// The class of the whole card.
        class: &'static str,
        /// What the slice is called.
        slice: String,
    },
}

/// A row of the table: a whole card.
struct Card {
    name: &'static str,
    /// The driver's names for it.
    models: &'static [&'static str],
    tera_ops: u64,
    bandwidth_gb: u64,
    memory_gb: u64,
    /// Into how many slices of compute and of memory it can be cut; none where it cannot.
    slices: Option<(u64, u64)>,
}

const fn card(
    name: &'static str,
    models: &'static [&'static str],
    (tera_ops, bandwidth_gb, memory_gb): (u64, u64, u64),
    slices: Option<(u64, u64)>,
) -> Card {
    Card {
        name,
        models,
        tera_ops,
        bandwidth_gb,
        memory_gb,
        slices,
    }
}

const SEVENTHS: Option<(u64, u64)> = Some((7, 8));

const CARDS: [Card; 13] = [
    card("T4", &["Tesla T4", "NVIDIA T4"], (130, 320, 16), None),
    card("L4", &["NVIDIA L4"], (242, 300, 24), None),
    card("A10", &["NVIDIA A10"], (250, 600, 24), None),
    card(
        "RTX 3090",
        &["NVIDIA GeForce RTX 3090"],
        (284, 936, 24),
        None,
    ),
    card(
        "RTX 4090",
        &["NVIDIA GeForce RTX 4090"],
        (660, 1008, 24),
        None,
    ),
    card(
        "RTX 5090",
        &["NVIDIA GeForce RTX 5090"],
        (838, 1792, 32),
        None,
    ),
    card("L40S", &["NVIDIA L40S"], (733, 864, 48), None),
    card(
        "A100-40",
        &["NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"],
        (624, 1555, 40),
        SEVENTHS,
    ),
    card(
        "A100-80",
        &["NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe"],
        (624, 2039, 80),
        SEVENTHS,
    ),
    card(
        "H100-PCIe",
        &["NVIDIA H100 PCIe"],
        (1513, 2000, 80),
        SEVENTHS,
    ),
    card(
        "H100-SXM",
        &["NVIDIA H100 80GB HBM3"],
        (1979, 3350, 80),
        SEVENTHS,
    ),
    card("H200", &["NVIDIA H200"], (1979, 4800, 141), SEVENTHS),
    card("B200", &["NVIDIA B200"], (4500, 8000, 180), SEVENTHS),
];

/// The class of a device that calls itself `model` and says it has `memory`. A slice is known by the driver's
/// name for it, like `NVIDIA H100 80GB HBM3 MIG 1g.10gb`.
///
/// # Errors
/// When there is no class for it, or it admits to being less than one.
pub fn find(model: &str, memory: Bytes) -> Result<Class, ClassError> {
    let (whole, slice) = model
        .split_once(" MIG ")
        .map_or((model, None), |(whole, slice)| (whole, Some(slice)));
    let card = CARDS
        .iter()
        .find(|card| card.models.contains(&whole))
        .ok_or_else(|| ClassError::Unknown {
            model: model.to_owned(),
        })?;
    let class = match slice {
        None => whole_class(card),
        Some(slice) => slice_class(card, slice)?,
    };
    let wanted = class.memory();
    let least = wanted.0 / 100 * (100 - MEMORY_SHORT_PERCENT);
    if memory.0 < least {
        return Err(ClassError::MemoryShort {
            model: model.to_owned(),
            wanted,
            has: memory,
        });
    }
    Ok(class)
}

/// The class that is called so, like `H100-SXM` or `H100-SXM 1g.10gb`.
#[must_use]
pub fn named(name: &str) -> Option<Class> {
    CARDS.iter().find_map(|card| {
        if card.name == name {
            return Some(whole_class(card));
        }
        let slice = name.strip_prefix(card.name)?.strip_prefix(' ')?;
        slice_class(card, slice).ok()
    })
}

fn whole_class(card: &Card) -> Class {
    Class {
        name: card.name.to_owned(),
        giga_ops: card.tera_ops * 1000,
        bandwidth_mb: card.bandwidth_gb * 1000,
        tiles: tiles_of(card.memory_gb),
    }
}

/// A slice `Cg.Mgb` has C parts of the card's compute, and the memory and bandwidth of as many eighths as hold
/// M gigabytes.
fn slice_class(card: &Card, slice: &str) -> Result<Class, ClassError> {
    let unknown = || ClassError::Slice {
        class: card.name,
        slice: slice.to_owned(),
    };
    let (computes, memories) = card.slices.ok_or_else(unknown)?;
    let (compute, memory_gb) = parse_slice(slice).ok_or_else(unknown)?;
    // To the nearest: the name rounds 17.6 GB of 141 up to 18.
    let memory = (2 * memory_gb * memories + card.memory_gb) / (2 * card.memory_gb);
    if compute == 0 || compute > computes || memory_gb > card.memory_gb || memory == 0 {
        return Err(unknown());
    }
    Ok(Class {
        name: format!("{} {compute}g.{memory_gb}gb", card.name),
        giga_ops: card.tera_ops * 1000 * compute / computes,
        bandwidth_mb: card.bandwidth_gb * 1000 * memory / memories,
        tiles: tiles_of(memory_gb),
    })
}

fn parse_slice(slice: &str) -> Option<(u64, u64)> {
    let (compute, memory) = slice.split_once("g.")?;
    // `1g.10gb+me` has the media engines besides.
    let memory = memory.split('+').next()?.strip_suffix("gb")?;
    Some((compute.parse().ok()?, memory.parse().ok()?))
}

fn tiles_of(memory_gb: u64) -> u32 {
    u32::try_from(memory_gb * 920_000_000 / TILE_BYTES).unwrap_or(u32::MAX)
}

impl Class {
    /// The memory of a device of this class, as its maker counts it.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        Bytes(u64::from(self.tiles) * TILE_BYTES / 92 * 100)
    }

    /// The challenge that devices of this class are put to.
    #[must_use]
    pub fn parameters(&self) -> Parameters {
        Parameters {
            tile_side: TILE_SIDE,
            inner: self.inner(),
            tiles: self.tiles,
            rounds: ROUNDS,
            audits: AUDITS,
            fill_max: FILL_MAX,
            pass_max: Millis(1000 + self.pass_honest().0 * 3 / 2),
        }
    }

    /// Bytes that are held.
    #[must_use]
    pub fn held(&self) -> u64 {
        u64::from(self.tiles) * TILE_BYTES
    }

    /// 12 s at 30 % of the peak: 2 · held · K operations = 3.6 s at the peak.
    fn inner(&self) -> u32 {
        let operations = u128::from(self.giga_ops) * 3_600_000_000;
        let exact = operations / (2 * u128::from(self.held())).max(1);
        let most = INNER_MAX / 512;
        u32::try_from(exact / 512).map_or(most, |units| units.clamp(1, most)) * 512
    }

    /// How long filling takes at 60 % of the peak.
    #[must_use]
    pub fn fill_honest(&self) -> Millis {
        let operations = 2 * u128::from(self.held()) * u128::from(self.inner());
        let each_ms = u128::from(self.giga_ops) * 600_000;
        Millis(u64::try_from(operations / each_ms.max(1)).unwrap_or(u64::MAX))
    }

    /// How long the rounds take at 60 % of the bandwidth.
    #[must_use]
    pub fn pass_honest(&self) -> Millis {
        let bytes = self.held() * u64::from(ROUNDS);
        Millis(bytes / (self.bandwidth_mb * 600).max(1))
    }

    /// From how many parts of a thousand on it shows that rows lie behind a link of `link_mb` · 10⁶ bytes a
    /// second: σ > T_res · link / (R · held), even if the rest took no time at all.
    #[must_use]
    pub fn spill_seen_permille(&self, link_mb: u64) -> u64 {
        let through = u128::from(self.parameters().pass_max.0) * u128::from(link_mb) * 1000;
        let all = u128::from(self.held()) * u128::from(ROUNDS);
        u64::try_from(through * 1000 / all.max(1)).unwrap_or(u64::MAX)
    }

    /// How many 10⁶ bytes a second can be computed again instead of being held: 2K operations for each byte,
    /// at 60 % of the peak.
    #[must_use]
    pub fn recompute_mb(&self) -> u64 {
        self.giga_ops * 600 / (2 * u64::from(self.inner()))
    }
}

#[cfg(test)]
mod tests;
