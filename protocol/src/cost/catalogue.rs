//! What the data sheets say of GPUs: memory bandwidth and peak speed of the models that are known.
//!
//! Peaks are not reached: an estimate says that it took one, and how much of it it counted on. Figures are
//! those of public data sheets; where a maker publishes none, units × clock × operations a clock. Must not
//! be used to say what a host has: hosts measure that.

use super::profile::Precision;
use crate::filter::ModelName;
use crate::units::Bytes;
use std::sync::LazyLock;

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
}

/// The data sheet of the GPU that a driver reports by this name.
#[must_use]
pub fn card_of(model: &ModelName) -> Option<Card> {
    let with_size = |entry: &&Entry| model.is_meant_by(&entry.reported);
    let by_name = |entry: &&Entry| model.is_meant_by(&entry.name);
    let found = ENTRIES.iter().find(with_size);
    found
        .or_else(|| ENTRIES.iter().find(by_name))
        .map(|entry| entry.card)
}

/// A line of the catalogue, its name read.
struct Entry {
    /// With the size of its memory: models of one name differ by it.
    reported: ModelName,
    /// Without.
    name: ModelName,
    card: Card,
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let entries = CARDS.iter().map(|(name, gigabytes, card)| Entry {
        reported: ModelName::reported(name, Bytes(gigabytes << 30)),
        name: ModelName::asked(name),
        card: *card,
    });
    entries.collect()
});

/// Name, memory in gigabytes as sold, bandwidth in GB/s, TFLOP/s with 32, 16 and 8 bits.
const fn data_sheet(
    name: &'static str,
    gigabytes: u64,
    memory: f64,
    [single, half, quarter]: [f64; 3],
) -> (&'static str, u64, Card) {
    let card = Card {
        memory: memory * 1e9,
        single: single * 1e12,
        half: half * 1e12,
        quarter: quarter * 1e12,
    };
    (name, gigabytes, card)
}

/// A model whose name is the beginning of another's form stands after it.
#[rustfmt::skip]
const CARDS: [(&str, u64, Card); 114] = [
    data_sheet("Tesla P4", 8, 192.0, [5.5, 0.0, 0.0]),
    data_sheet("Tesla P40", 24, 346.0, [11.8, 0.0, 0.0]),
    data_sheet("Tesla P100-PCIE-16GB", 16, 732.0, [9.5, 19.0, 0.0]),
    data_sheet("Tesla V100-PCIE-16GB", 16, 900.0, [14.0, 112.0, 0.0]),
    data_sheet("Tesla V100-SXM2-16GB", 16, 900.0, [15.7, 125.0, 0.0]),
    data_sheet("Tesla V100-SXM2-32GB", 32, 900.0, [15.7, 125.0, 0.0]),
    data_sheet("Tesla V100S-PCIE-32GB", 32, 1134.0, [16.4, 130.0, 0.0]),
    data_sheet("Tesla T4", 16, 320.0, [8.1, 65.0, 0.0]),
    data_sheet("NVIDIA A2", 16, 200.0, [4.5, 18.0, 0.0]),
    data_sheet("NVIDIA A10", 24, 600.0, [31.2, 125.0, 0.0]),
    data_sheet("NVIDIA A10G", 24, 600.0, [35.0, 70.0, 0.0]),
    data_sheet("NVIDIA A16", 16, 200.0, [4.5, 18.0, 0.0]),
    data_sheet("NVIDIA A30", 24, 933.0, [10.3, 165.0, 0.0]),
    data_sheet("NVIDIA A40", 48, 696.0, [37.4, 149.7, 0.0]),
    data_sheet("NVIDIA A100-PCIE-40GB", 40, 1555.0, [19.5, 312.0, 0.0]),
    data_sheet("NVIDIA A100-SXM4-40GB", 40, 1555.0, [19.5, 312.0, 0.0]),
    data_sheet("NVIDIA A100 80GB PCIe", 80, 1935.0, [19.5, 312.0, 0.0]),
    data_sheet("NVIDIA A100-SXM4-80GB", 80, 2039.0, [19.5, 312.0, 0.0]),
    data_sheet("NVIDIA A800-SXM4-80GB", 80, 2039.0, [19.5, 312.0, 0.0]),
    data_sheet("NVIDIA L4", 24, 300.0, [30.3, 121.0, 242.0]),
    data_sheet("NVIDIA L20", 48, 864.0, [59.8, 119.5, 239.0]),
    data_sheet("NVIDIA L40", 48, 864.0, [90.5, 181.0, 362.0]),
    data_sheet("NVIDIA L40S", 48, 864.0, [91.6, 362.0, 733.0]),
    data_sheet("NVIDIA H100 PCIe", 80, 2000.0, [51.0, 756.0, 1513.0]),
    data_sheet("NVIDIA H100 80GB HBM3", 80, 3350.0, [66.9, 989.0, 1979.0]),
    data_sheet("NVIDIA H100 NVL", 94, 3938.0, [60.0, 835.0, 1671.0]),
    data_sheet("NVIDIA H800", 80, 3350.0, [66.9, 989.0, 1979.0]),
    data_sheet("NVIDIA H20", 96, 4000.0, [44.0, 148.0, 296.0]),
    data_sheet("NVIDIA GH200 480GB", 96, 4000.0, [67.0, 989.0, 1979.0]),
    data_sheet("NVIDIA H200 NVL", 141, 4800.0, [60.0, 835.0, 1671.0]),
    data_sheet("NVIDIA H200", 141, 4800.0, [66.9, 989.0, 1979.0]),
    data_sheet("NVIDIA B200", 180, 8000.0, [75.0, 2250.0, 4500.0]),
    data_sheet("NVIDIA GB200", 186, 8000.0, [80.0, 2500.0, 5000.0]),
    data_sheet("NVIDIA B300 SXM6", 288, 8000.0, [75.0, 2250.0, 4500.0]),
    data_sheet("NVIDIA GB300", 288, 8000.0, [80.0, 2500.0, 5000.0]),
    data_sheet("Quadro RTX 6000", 24, 672.0, [16.3, 130.5, 0.0]),
    data_sheet("Quadro RTX 8000", 48, 672.0, [16.3, 130.5, 0.0]),
    data_sheet("NVIDIA RTX A2000 12GB", 12, 288.0, [8.0, 31.9, 0.0]),
    data_sheet("NVIDIA RTX A4000", 16, 448.0, [19.2, 76.7, 0.0]),
    data_sheet("NVIDIA RTX A4500", 20, 640.0, [23.7, 94.6, 0.0]),
    data_sheet("NVIDIA RTX A5000", 24, 768.0, [27.8, 111.1, 0.0]),
    data_sheet("NVIDIA RTX A6000", 48, 768.0, [38.7, 154.8, 0.0]),
    data_sheet("NVIDIA RTX 2000 Ada Generation", 16, 224.0, [12.0, 48.0, 96.0]),
    data_sheet("NVIDIA RTX 4000 Ada Generation", 20, 360.0, [26.7, 106.9, 213.8]),
    data_sheet("NVIDIA RTX 4500 Ada Generation", 24, 432.0, [39.6, 158.5, 317.0]),
    data_sheet("NVIDIA RTX 5000 Ada Generation", 32, 576.0, [65.3, 261.1, 522.2]),
    data_sheet("NVIDIA RTX 6000 Ada Generation", 48, 960.0, [91.1, 364.2, 728.5]),
    data_sheet("NVIDIA RTX PRO 4000 Blackwell", 24, 672.0, [46.9, 147.3, 294.6]),
    data_sheet("NVIDIA RTX PRO 4500 Blackwell", 32, 896.0, [54.9, 202.1, 404.2]),
    data_sheet("NVIDIA RTX PRO 5000 Blackwell", 48, 1344.0, [73.7, 267.7, 535.4]),
    data_sheet("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 96, 1792.0, [125.0, 500.0, 1000.0]),
    data_sheet("NVIDIA RTX PRO 6000 Blackwell Server Edition", 96, 1597.0, [120.0, 480.0, 960.0]),
    data_sheet("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 96, 1792.0, [110.0, 439.0, 878.0]),
    data_sheet("NVIDIA GeForce GTX 1080 Ti", 11, 484.0, [11.3, 0.0, 0.0]),
    data_sheet("NVIDIA TITAN V", 12, 653.0, [14.9, 119.2, 0.0]),
    data_sheet("NVIDIA GeForce RTX 2060", 6, 336.0, [6.5, 25.8, 0.0]),
    data_sheet("NVIDIA GeForce RTX 2070", 8, 448.0, [7.5, 29.9, 0.0]),
    data_sheet("NVIDIA GeForce RTX 2080", 8, 448.0, [10.1, 40.3, 0.0]),
    data_sheet("NVIDIA GeForce RTX 2080 Ti", 11, 616.0, [13.4, 53.8, 0.0]),
    data_sheet("NVIDIA TITAN RTX", 24, 672.0, [16.3, 130.5, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3050", 8, 224.0, [9.1, 18.2, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3060", 12, 360.0, [12.7, 25.5, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3060 Ti", 8, 448.0, [16.2, 32.4, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3070", 8, 448.0, [20.3, 40.6, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3070 Ti", 8, 608.0, [21.8, 43.5, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3080", 10, 760.0, [29.8, 59.5, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3080 Ti", 12, 912.0, [34.1, 68.2, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3090", 24, 936.0, [35.6, 71.2, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3090 Ti", 24, 1010.0, [40.0, 80.0, 0.0]),
    data_sheet("NVIDIA GeForce RTX 4060", 8, 272.0, [15.1, 30.2, 60.4]),
    data_sheet("NVIDIA GeForce RTX 4060 Ti", 16, 288.0, [22.1, 44.1, 88.2]),
    data_sheet("NVIDIA GeForce RTX 4070", 12, 504.0, [29.1, 58.3, 116.6]),
    data_sheet("NVIDIA GeForce RTX 4070 SUPER", 12, 504.0, [35.5, 71.0, 142.0]),
    data_sheet("NVIDIA GeForce RTX 4070 Ti", 12, 504.0, [40.1, 80.2, 160.4]),
    data_sheet("NVIDIA GeForce RTX 4070 Ti SUPER", 16, 672.0, [44.1, 88.2, 176.4]),
    data_sheet("NVIDIA GeForce RTX 4080", 16, 717.0, [48.7, 97.5, 195.0]),
    data_sheet("NVIDIA GeForce RTX 4080 SUPER", 16, 736.0, [52.2, 104.4, 208.8]),
    data_sheet("NVIDIA GeForce RTX 4090", 24, 1010.0, [82.6, 165.2, 330.4]),
    data_sheet("NVIDIA GeForce RTX 4090 D", 24, 1010.0, [73.5, 147.1, 294.2]),
    data_sheet("NVIDIA GeForce RTX 5060", 8, 448.0, [19.2, 38.4, 76.8]),
    data_sheet("NVIDIA GeForce RTX 5060 Ti", 16, 448.0, [23.7, 47.4, 94.8]),
    data_sheet("NVIDIA GeForce RTX 5070", 12, 672.0, [30.9, 61.7, 123.4]),
    data_sheet("NVIDIA GeForce RTX 5070 Ti", 16, 896.0, [43.9, 87.9, 175.8]),
    data_sheet("NVIDIA GeForce RTX 5080", 16, 960.0, [56.3, 112.6, 225.2]),
    data_sheet("NVIDIA GeForce RTX 5090", 32, 1790.0, [104.8, 209.5, 419.0]),
    data_sheet("AMD Instinct MI50", 16, 1024.0, [13.3, 26.5, 0.0]),
    data_sheet("AMD Radeon VII", 16, 1024.0, [13.4, 26.9, 0.0]),
    data_sheet("AMD Instinct MI100", 32, 1229.0, [23.1, 184.6, 0.0]),
    data_sheet("AMD Instinct MI210", 64, 1638.0, [22.6, 181.0, 0.0]),
    data_sheet("AMD Instinct MI250", 128, 3277.0, [45.3, 362.1, 0.0]),
    data_sheet("AMD Instinct MI250X", 128, 3277.0, [47.9, 383.0, 0.0]),
    data_sheet("AMD Instinct MI300A", 128, 5300.0, [122.6, 980.6, 1961.2]),
    data_sheet("AMD Instinct MI300X", 192, 5300.0, [163.4, 1307.4, 2614.9]),
    data_sheet("AMD Instinct MI325X", 256, 6000.0, [163.4, 1307.4, 2614.9]),
    data_sheet("AMD Instinct MI350X", 288, 8000.0, [144.2, 2309.6, 4614.0]),
    data_sheet("AMD Instinct MI355X", 288, 8000.0, [157.3, 2516.6, 5033.2]),
    data_sheet("AMD Radeon RX 6800 XT", 16, 512.0, [20.7, 41.5, 0.0]),
    data_sheet("AMD Radeon RX 7800 XT", 16, 624.0, [37.3, 74.7, 0.0]),
    data_sheet("AMD Radeon RX 7900 GRE", 16, 576.0, [46.0, 92.0, 0.0]),
    data_sheet("AMD Radeon RX 7900 XT", 20, 800.0, [51.5, 103.0, 0.0]),
    data_sheet("AMD Radeon RX 7900 XTX", 24, 960.0, [61.4, 122.8, 0.0]),
    data_sheet("AMD Radeon PRO W7800", 32, 576.0, [45.2, 90.5, 0.0]),
    data_sheet("AMD Radeon PRO W7900", 48, 864.0, [61.3, 122.6, 0.0]),
    data_sheet("AMD Radeon RX 9060 XT", 16, 320.0, [25.6, 103.0, 205.0]),
    data_sheet("AMD Radeon RX 9070", 16, 640.0, [36.1, 145.0, 289.0]),
    data_sheet("AMD Radeon RX 9070 XT", 16, 640.0, [48.7, 195.0, 389.0]),
    data_sheet("AMD Radeon AI PRO R9700", 32, 640.0, [47.8, 191.0, 383.0]),
    data_sheet("Intel Arc A770", 16, 560.0, [19.7, 137.6, 0.0]),
    data_sheet("Intel Arc B580", 12, 456.0, [14.6, 116.5, 0.0]),
    data_sheet("Intel Arc Pro B60", 24, 456.0, [12.3, 98.5, 0.0]),
    data_sheet("Intel Data Center GPU Max 1100", 48, 1229.0, [22.2, 352.0, 0.0]),
    data_sheet("Intel Data Center GPU Max 1550", 128, 3277.0, [52.4, 839.0, 0.0]),
    data_sheet("Intel Gaudi 2", 96, 2450.0, [0.0, 432.0, 865.0]),
    data_sheet("Intel Gaudi 3", 128, 3700.0, [0.0, 1835.0, 1835.0]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn card(model: &str, mebibytes: u64) -> Option<Card> {
        card_of(&ModelName::reported(model, Bytes(mebibytes << 20)))
    }

    #[test]
    fn every_model_is_found_by_its_own_name() {
        for (name, gigabytes, wanted) in CARDS {
            assert_eq!(card(name, gigabytes << 10), Some(wanted), "{name}");
        }
    }

    #[test]
    fn names_as_drivers_report_them_are_found() {
        // Bandwidths of three data sheets: 1010, 3350 and 3938 GB/s.
        let found = |model, mebibytes| card(model, mebibytes).map(|card| card.memory);
        assert_eq!(found("NVIDIA GeForce RTX 4090", 24_564), Some(1010e9));
        assert_eq!(found("NVIDIA H100 80GB HBM3", 81_559), Some(3350e9));
        assert_eq!(found("NVIDIA H100 NVL", 95_830), Some(3938e9));
        assert_eq!(found("NVIDIA H200 NVL", 143_771), Some(4800e9));
        // Of a size that is not listed, the one of that name.
        assert_eq!(found("NVIDIA GeForce RTX 4060 Ti", 8188), Some(288e9));
        assert_eq!(found("Voodoo 2", 12), None);
        assert_eq!(card_of(&ModelName::none()), None);
    }

    #[test]
    fn forms_of_one_model_are_told_apart() {
        let half = |model, mebibytes| card(model, mebibytes).map(|card| card.half);
        assert_eq!(half("NVIDIA H200", 143_771), Some(989e12));
        assert_eq!(half("NVIDIA H200 NVL", 143_771), Some(835e12));
        assert_eq!(half("NVIDIA H100 PCIe", 81_559), Some(756e12));
        assert_eq!(half("NVIDIA GeForce RTX 4090 D", 24_564), Some(147.1e12));
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
}
