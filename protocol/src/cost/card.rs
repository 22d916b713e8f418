//! What a job's sum takes of a data sheet: memory bandwidth and peak speed.
//!
//! Peaks are not reached: an estimate says that it took one, and how much of it it counted on. Must not be used
//! to say what a host has: hosts measure that.

use super::number::float;
use super::profile::Precision;
use crate::catalogue::{Sheet, sheet_of};
use crate::filter::ModelName;
use crate::offer::Partition;
use crate::units::Bytes;

/// What a data sheet says of one GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Card {
    /// Bytes a second between the GPU and its memory.
    pub memory: f64,
    /// Operations a second with 32-bit numbers; 0 when unknown.
    pub single: f64,
    /// With 16-bit numbers, dense, summed in 32 bits; 0 when the GPU has no fast way.
    pub half: f64,
    /// With 8-bit floats, dense; 0 when the GPU has none.
    pub quarter: f64,
}

impl Card {
    /// Operations a second at this precision, and whether it is a longer one's because the GPU has none or
    /// nobody published it; nothing when no speed is known.
    #[must_use]
    pub fn peak(&self, precision: Precision) -> Option<(f64, bool)> {
        let longer_last = [self.quarter, self.half, self.single];
        let skipped = match precision {
            Precision::Quarter => 0,
            Precision::Half => 1,
            Precision::Single => 2,
        };
        let candidates = longer_last.into_iter().skip(skipped);
        let mut fast = candidates.enumerate().filter(|(_, speed)| *speed > 0.0);
        fast.next().map(|(longer, speed)| (speed, longer > 0))
    }

    /// What a slice of it has: its part of the multiprocessors and of the memory.
    #[must_use]
    pub fn slice(&self, partition: &Partition) -> Self {
        let part = |part: u16, whole: u16| match whole {
            0 => 1.0,
            _ => f64::from(part) / f64::from(whole),
        };
        let processors = part(partition.multiprocessors.0, partition.multiprocessors.1);
        let (slices, all) = partition.memory_slices;
        Self {
            memory: self.memory * part(slices.into(), all.into()),
            single: self.single * processors,
            half: self.half * processors,
            quarter: self.quarter * processors,
        }
    }
}

impl From<&Sheet> for Card {
    fn from(sheet: &Sheet) -> Self {
        Self {
            memory: float(sheet.memory) * 1e6,
            single: float(sheet.single) * 1e9,
            half: float(sheet.half) * 1e9,
            quarter: float(sheet.quarter) * 1e9,
        }
    }
}

/// The data sheet of the GPU that a driver reports by this name; of a model that is sold with several sizes of
/// memory under one name, that of the smallest.
#[must_use]
pub fn card_of(model: &ModelName) -> Option<Card> {
    sheet_of(model, Bytes(0)).map(Card::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounded::Text;
    use crate::offer::Isolation;

    fn card(model: &str, mebibytes: u64) -> Option<Card> {
        card_of(&ModelName::reported(model, Bytes(mebibytes << 20)))
    }

    #[test]
    fn forms_of_one_model_are_told_apart() {
        let half = |model, mebibytes| card(model, mebibytes).map(|card| card.half);
        assert_eq!(half("NVIDIA H200", 143_771), Some(989e12));
        assert_eq!(half("NVIDIA H200 NVL", 143_771), Some(835e12));
        assert_eq!(half("NVIDIA H100 PCIe", 81_559), Some(756e12));
        assert_eq!(half("NVIDIA GeForce RTX 4090 D", 24_564), Some(147.1e12));
        assert_eq!(card_of(&ModelName::none()), None);
    }

    #[test]
    fn what_a_gpu_cannot_do_is_done_in_longer_numbers() {
        // The A100 has no 8-bit floats and does 312 TFLOP/s with 16 bits; a P40 does 11.8 with 32 alone.
        let a100 = card("NVIDIA A100-SXM4-80GB", 81_920).unwrap();
        assert_eq!(a100.peak(Precision::Quarter), Some((312e12, true)));
        assert_eq!(a100.peak(Precision::Half), Some((312e12, false)));
        assert_eq!(a100.peak(Precision::Single), Some((19.5e12, false)));
        let p40 = card("Tesla P40", 24_576).unwrap();
        assert_eq!(p40.peak(Precision::Half), Some((11.8e12, true)));
        // Gaudi publishes nothing for 32 bits.
        let gaudi = card("Intel Gaudi 2", 98_304).unwrap();
        assert_eq!(gaudi.peak(Precision::Single), None);
    }

    /// 60 of 132 multiprocessors, half of the memory: 989 × 60 / 132 = 449.5 TFLOP/s, 3350 / 2 = 1675 GB/s.
    #[test]
    fn a_slice_has_its_part_of_multiprocessors_and_of_memory() {
        let h100 = card("NVIDIA H100 80GB HBM3", 81_559).unwrap();
        let slice = h100.slice(&Partition {
            profile: Text::new("3g.40gb").unwrap(),
            vram: Bytes(40_448 << 20),
            multiprocessors: (60, 132),
            memory_slices: (4, 8),
            isolation: Isolation::Hardware,
        });
        assert!((slice.half - 449.545e12).abs() < 1e9, "{}", slice.half);
        assert!((slice.memory - 1675e9).abs() < 1.0);
    }
}
