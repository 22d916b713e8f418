//! What the data sheets say of GPUs: memory bandwidth and peak speed of the models that are known.
//!
//! Peaks are not reached: an estimate says that it took one, and how much of it it counted on. Figures are
//! those of public data sheets; where a maker publishes none, units × clock × operations a clock. Must not
//! be used to say what a host has: hosts measure that.

use super::profile::Precision;
use crate::filter::ModelName;
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

/// The data sheet of the GPU that a driver reports by this name. A model that is sold with several sizes of
/// memory under one name has one sheet.
#[must_use]
pub fn card_of(model: &ModelName) -> Option<Card> {
    let mut meant = SHEETS.iter().filter(|(name, _)| model.is_meant_by(name));
    meant.next().map(|(_, card)| *card)
}

/// The catalogue, its names read.
static SHEETS: LazyLock<Vec<(ModelName, Card)>> = LazyLock::new(|| {
    let read = |(name, card): &(&str, Card)| (ModelName::asked(name), *card);
    CARDS.iter().map(read).collect()
});

/// Name, bandwidth in GB/s, TFLOP/s with 32, 16 and 8 bits.
const fn data_sheet(
    name: &'static str,
    memory: f64,
    [single, half, quarter]: [f64; 3],
) -> (&'static str, Card) {
    let card = Card {
        memory: memory * 1e9,
        single: single * 1e12,
        half: half * 1e12,
        quarter: quarter * 1e12,
    };
    (name, card)
}

/// A model whose name is the beginning of another's form stands after it.
#[rustfmt::skip]
const CARDS: [(&str, Card); 114] = [
    data_sheet("Tesla P4", 192.0, [5.5, 0.0, 0.0]),
    data_sheet("Tesla P40", 346.0, [11.8, 0.0, 0.0]),
    data_sheet("Tesla P100-PCIE-16GB", 732.0, [9.5, 19.0, 0.0]),
    data_sheet("Tesla V100-PCIE-16GB", 900.0, [14.0, 112.0, 0.0]),
    data_sheet("Tesla V100-SXM2-16GB", 900.0, [15.7, 125.0, 0.0]),
    data_sheet("Tesla V100-SXM2-32GB", 900.0, [15.7, 125.0, 0.0]),
    data_sheet("Tesla V100S-PCIE-32GB", 1134.0, [16.4, 130.0, 0.0]),
    data_sheet("Tesla T4", 320.0, [8.1, 65.0, 0.0]),
    data_sheet("NVIDIA A2", 200.0, [4.5, 18.0, 0.0]),
    data_sheet("NVIDIA A10", 600.0, [31.2, 125.0, 0.0]),
    data_sheet("NVIDIA A10G", 600.0, [35.0, 70.0, 0.0]),
    data_sheet("NVIDIA A16", 200.0, [4.5, 18.0, 0.0]),
    data_sheet("NVIDIA A30", 933.0, [10.3, 165.0, 0.0]),
    data_sheet("NVIDIA A40", 696.0, [37.4, 149.7, 0.0]),
    data_sheet("NVIDIA A100-PCIE-40GB", 1555.0, [19.5, 312.0, 0.0]),
    data_sheet("NVIDIA A100-SXM4-40GB", 1555.0, [19.5, 312.0, 0.0]),
    data_sheet("NVIDIA A100 80GB PCIe", 1935.0, [19.5, 312.0, 0.0]),
    data_sheet("NVIDIA A100-SXM4-80GB", 2039.0, [19.5, 312.0, 0.0]),
    data_sheet("NVIDIA A800-SXM4-80GB", 2039.0, [19.5, 312.0, 0.0]),
    data_sheet("NVIDIA L4", 300.0, [30.3, 121.0, 242.0]),
    data_sheet("NVIDIA L20", 864.0, [59.8, 119.5, 239.0]),
    data_sheet("NVIDIA L40", 864.0, [90.5, 181.0, 362.0]),
    data_sheet("NVIDIA L40S", 864.0, [91.6, 362.0, 733.0]),
    data_sheet("NVIDIA H100 PCIe", 2000.0, [51.0, 756.0, 1513.0]),
    data_sheet("NVIDIA H100 80GB HBM3", 3350.0, [66.9, 989.0, 1979.0]),
    data_sheet("NVIDIA H100 NVL", 3938.0, [60.0, 835.0, 1671.0]),
    data_sheet("NVIDIA H800", 3350.0, [66.9, 989.0, 1979.0]),
    data_sheet("NVIDIA H20", 4000.0, [44.0, 148.0, 296.0]),
    data_sheet("NVIDIA GH200 480GB", 4000.0, [67.0, 989.0, 1979.0]),
    data_sheet("NVIDIA H200 NVL", 4800.0, [60.0, 835.0, 1671.0]),
    data_sheet("NVIDIA H200", 4800.0, [66.9, 989.0, 1979.0]),
    data_sheet("NVIDIA B200", 8000.0, [75.0, 2250.0, 4500.0]),
    data_sheet("NVIDIA GB200", 8000.0, [80.0, 2500.0, 5000.0]),
    data_sheet("NVIDIA B300 SXM6", 8000.0, [75.0, 2250.0, 4500.0]),
    data_sheet("NVIDIA GB300", 8000.0, [80.0, 2500.0, 5000.0]),
    data_sheet("Quadro RTX 6000", 672.0, [16.3, 130.5, 0.0]),
    data_sheet("Quadro RTX 8000", 672.0, [16.3, 130.5, 0.0]),
    data_sheet("NVIDIA RTX A2000 12GB", 288.0, [8.0, 31.9, 0.0]),
    data_sheet("NVIDIA RTX A4000", 448.0, [19.2, 76.7, 0.0]),
    data_sheet("NVIDIA RTX A4500", 640.0, [23.7, 94.6, 0.0]),
    data_sheet("NVIDIA RTX A5000", 768.0, [27.8, 111.1, 0.0]),
    data_sheet("NVIDIA RTX A6000", 768.0, [38.7, 154.8, 0.0]),
    data_sheet("NVIDIA RTX 2000 Ada Generation", 224.0, [12.0, 48.0, 96.0]),
    data_sheet("NVIDIA RTX 4000 Ada Generation", 360.0, [26.7, 106.9, 213.8]),
    data_sheet("NVIDIA RTX 4500 Ada Generation", 432.0, [39.6, 158.5, 317.0]),
    data_sheet("NVIDIA RTX 5000 Ada Generation", 576.0, [65.3, 261.1, 522.2]),
    data_sheet("NVIDIA RTX 6000 Ada Generation", 960.0, [91.1, 364.2, 728.5]),
    data_sheet("NVIDIA RTX PRO 4000 Blackwell", 672.0, [46.9, 147.3, 294.6]),
    data_sheet("NVIDIA RTX PRO 4500 Blackwell", 896.0, [54.9, 202.1, 404.2]),
    data_sheet("NVIDIA RTX PRO 5000 Blackwell", 1344.0, [73.7, 267.7, 535.4]),
    data_sheet("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 1792.0, [125.0, 500.0, 1000.0]),
    data_sheet("NVIDIA RTX PRO 6000 Blackwell Server Edition", 1597.0, [120.0, 480.0, 960.0]),
    data_sheet("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 1792.0, [110.0, 439.0, 878.0]),
    data_sheet("NVIDIA GeForce GTX 1080 Ti", 484.0, [11.3, 0.0, 0.0]),
    data_sheet("NVIDIA TITAN V", 653.0, [14.9, 119.2, 0.0]),
    data_sheet("NVIDIA GeForce RTX 2060", 336.0, [6.5, 25.8, 0.0]),
    data_sheet("NVIDIA GeForce RTX 2070", 448.0, [7.5, 29.9, 0.0]),
    data_sheet("NVIDIA GeForce RTX 2080", 448.0, [10.1, 40.3, 0.0]),
    data_sheet("NVIDIA GeForce RTX 2080 Ti", 616.0, [13.4, 53.8, 0.0]),
    data_sheet("NVIDIA TITAN RTX", 672.0, [16.3, 130.5, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3050", 224.0, [9.1, 18.2, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3060", 360.0, [12.7, 25.5, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3060 Ti", 448.0, [16.2, 32.4, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3070", 448.0, [20.3, 40.6, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3070 Ti", 608.0, [21.8, 43.5, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3080", 760.0, [29.8, 59.5, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3080 Ti", 912.0, [34.1, 68.2, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3090", 936.0, [35.6, 71.2, 0.0]),
    data_sheet("NVIDIA GeForce RTX 3090 Ti", 1010.0, [40.0, 80.0, 0.0]),
    data_sheet("NVIDIA GeForce RTX 4060", 272.0, [15.1, 30.2, 60.4]),
    data_sheet("NVIDIA GeForce RTX 4060 Ti", 288.0, [22.1, 44.1, 88.2]),
    data_sheet("NVIDIA GeForce RTX 4070", 504.0, [29.1, 58.3, 116.6]),
    data_sheet("NVIDIA GeForce RTX 4070 SUPER", 504.0, [35.5, 71.0, 142.0]),
    data_sheet("NVIDIA GeForce RTX 4070 Ti", 504.0, [40.1, 80.2, 160.4]),
    data_sheet("NVIDIA GeForce RTX 4070 Ti SUPER", 672.0, [44.1, 88.2, 176.4]),
    data_sheet("NVIDIA GeForce RTX 4080", 717.0, [48.7, 97.5, 195.0]),
    data_sheet("NVIDIA GeForce RTX 4080 SUPER", 736.0, [52.2, 104.4, 208.8]),
    data_sheet("NVIDIA GeForce RTX 4090", 1010.0, [82.6, 165.2, 330.4]),
    data_sheet("NVIDIA GeForce RTX 4090 D", 1010.0, [73.5, 147.1, 294.2]),
    data_sheet("NVIDIA GeForce RTX 5060", 448.0, [19.2, 38.4, 76.8]),
    data_sheet("NVIDIA GeForce RTX 5060 Ti", 448.0, [23.7, 47.4, 94.8]),
    data_sheet("NVIDIA GeForce RTX 5070", 672.0, [30.9, 61.7, 123.4]),
    data_sheet("NVIDIA GeForce RTX 5070 Ti", 896.0, [43.9, 87.9, 175.8]),
    data_sheet("NVIDIA GeForce RTX 5080", 960.0, [56.3, 112.6, 225.2]),
    data_sheet("NVIDIA GeForce RTX 5090", 1790.0, [104.8, 209.5, 419.0]),
    data_sheet("AMD Instinct MI50", 1024.0, [13.3, 26.5, 0.0]),
    data_sheet("AMD Radeon VII", 1024.0, [13.4, 26.9, 0.0]),
    data_sheet("AMD Instinct MI100", 1229.0, [23.1, 184.6, 0.0]),
    data_sheet("AMD Instinct MI210", 1638.0, [22.6, 181.0, 0.0]),
    data_sheet("AMD Instinct MI250", 3277.0, [45.3, 362.1, 0.0]),
    data_sheet("AMD Instinct MI250X", 3277.0, [47.9, 383.0, 0.0]),
    data_sheet("AMD Instinct MI300A", 5300.0, [122.6, 980.6, 1961.2]),
    data_sheet("AMD Instinct MI300X", 5300.0, [163.4, 1307.4, 2614.9]),
    data_sheet("AMD Instinct MI325X", 6000.0, [163.4, 1307.4, 2614.9]),
    data_sheet("AMD Instinct MI350X", 8000.0, [144.2, 2309.6, 4614.0]),
    data_sheet("AMD Instinct MI355X", 8000.0, [157.3, 2516.6, 5033.2]),
    data_sheet("AMD Radeon RX 6800 XT", 512.0, [20.7, 41.5, 0.0]),
    data_sheet("AMD Radeon RX 7800 XT", 624.0, [37.3, 74.7, 0.0]),
    data_sheet("AMD Radeon RX 7900 GRE", 576.0, [46.0, 92.0, 0.0]),
    data_sheet("AMD Radeon RX 7900 XT", 800.0, [51.5, 103.0, 0.0]),
    data_sheet("AMD Radeon RX 7900 XTX", 960.0, [61.4, 122.8, 0.0]),
    data_sheet("AMD Radeon PRO W7800", 576.0, [45.2, 90.5, 0.0]),
    data_sheet("AMD Radeon PRO W7900", 864.0, [61.3, 122.6, 0.0]),
    data_sheet("AMD Radeon RX 9060 XT", 320.0, [25.6, 103.0, 205.0]),
    data_sheet("AMD Radeon RX 9070", 640.0, [36.1, 145.0, 289.0]),
    data_sheet("AMD Radeon RX 9070 XT", 640.0, [48.7, 195.0, 389.0]),
    data_sheet("AMD Radeon AI PRO R9700", 640.0, [47.8, 191.0, 383.0]),
    data_sheet("Intel Arc A770", 560.0, [19.7, 137.6, 0.0]),
    data_sheet("Intel Arc B580", 456.0, [14.6, 116.5, 0.0]),
    data_sheet("Intel Arc Pro B60", 456.0, [12.3, 98.5, 0.0]),
    data_sheet("Intel Data Center GPU Max 1100", 1229.0, [22.2, 352.0, 0.0]),
    data_sheet("Intel Data Center GPU Max 1550", 3277.0, [52.4, 839.0, 0.0]),
    data_sheet("Intel Gaudi 2", 2450.0, [0.0, 432.0, 865.0]),
    data_sheet("Intel Gaudi 3", 3700.0, [0.0, 1835.0, 1835.0]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    fn card(model: &str, mebibytes: u64) -> Option<Card> {
        card_of(&ModelName::reported(model, Bytes(mebibytes << 20)))
    }

    #[test]
    fn every_model_is_found_by_its_own_name() {
        for (name, wanted) in CARDS {
            assert_eq!(card(name, 0), Some(wanted), "{name}");
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
