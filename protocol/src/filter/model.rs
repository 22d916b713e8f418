//! Names of GPUs: the driver's, the vendors', Vast's and those that people type meet in one form.
//!
//! `RTX 4090`, `rtx4090`, `RTX_4090`, `4090` and `NVIDIA GeForce RTX 4090` are one model; `RTX 4090 D` is
//! another. A name without form factor or memory size means all forms: `H100` finds `H100 PCIe`,
//! `H100 NVL` and `H100 80GB HBM3`; `H100_SXM` finds the last alone.

use crate::units::Bytes;
use std::collections::BTreeSet;

/// A GPU's name taken apart: what model it is, and which form of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelName {
    /// Letters and digits of the model, like `rtx4090` or `h100`.
    base: String,
    /// Form factor, memory size, edition, like `pcie`, `80gb`, `ws`.
    forms: BTreeSet<String>,
}

/// Words that say who made a GPU or what it is sold as, and never tell two apart.
const MAKERS: [&str; 14] = [
    "nvidia",
    "geforce",
    "tesla",
    "quadro",
    "q",
    "amd",
    "radeon",
    "instinct",
    "intel",
    "gpu",
    "graphics",
    "generation",
    "edition",
    "corporation",
];

/// Models whose name says the form only when it is not the one on a module.
const ON_MODULES: [&str; 6] = ["h100", "h200", "h800", "h20", "b200", "b300"];

impl ModelName {
    /// The name that a driver reports for a GPU with `vram`.
    #[must_use]
    pub fn reported(model: &str, vram: Bytes) -> Self {
        let mut name = Self::asked(model);
        if ON_MODULES.contains(&name.base.as_str())
            && !name.forms.contains("pcie")
            && !name.forms.contains("nvl")
        {
            name.forms.insert("sxm".to_owned());
        }
        let gigabytes = gigabytes_as_sold(vram);
        if gigabytes > 0 && gigabytes.is_multiple_of(1000) {
            name.forms.insert(format!("{}gb", gigabytes / 1000));
        }
        name
    }

    /// The name of a machine without a GPU.
    #[must_use]
    pub fn none() -> Self {
        Self {
            base: "none".to_owned(),
            forms: BTreeSet::new(),
        }
    }

    /// A name as somebody typed it.
    #[must_use]
    pub fn asked(text: &str) -> Self {
        let lower = text.to_ascii_lowercase();
        let joined = lower
            .replace("(r)", " ")
            .replace("(tm)", " ")
            .replace("max-q", "maxq")
            .replace("max_q", "maxq")
            .replace("max q", "maxq");
        let words = joined
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty());
        let mut base = String::new();
        let mut forms = BTreeSet::new();
        for word in words.clone().filter(|word| !MAKERS.contains(word)) {
            let (model, form) = split_form(word);
            base.push_str(&super_in_full(model));
            forms.extend(form.map(one_form));
        }
        if base.is_empty() {
            base = words.collect();
        }
        // Vast writes `RTX_4070S_Ti` for what the driver calls `RTX 4070 Ti SUPER`.
        if let Some(front) = base.strip_suffix("superti") {
            base = format!("{front}tisuper");
        }
        // A Max-Q card is sold as a workstation edition too, and is not what that means alone.
        if forms.contains("maxq") {
            forms.remove("ws");
        }
        Self { base, forms }
    }

    /// Whether a GPU of this name is one that `asked` means.
    #[must_use]
    pub fn is_meant_by(&self, asked: &Self) -> bool {
        let short = self
            .base
            .strip_prefix("rtx")
            .or_else(|| self.base.strip_prefix("gtx"));
        let same = self.base == asked.base || short == Some(asked.base.as_str());
        same && asked.forms.is_subset(&self.forms)
    }

    /// How many forms it names: a name that says more means less.
    pub(crate) fn forms(&self) -> usize {
        self.forms.len()
    }

    /// Letters and digits of the model: what names are ordered by.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }
}

/// A word's model part and the form that it names or ends in.
fn split_form(word: &str) -> (&str, Option<&str>) {
    const WHOLE: [&str; 12] = [
        "pcie",
        "nvl",
        "oam",
        "hbm2",
        "hbm2e",
        "hbm3",
        "hbm3e",
        "blackwell",
        "workstation",
        "server",
        "ws",
        "se",
    ];
    let is_size = word.strip_suffix("gb").is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    if is_size || WHOLE.contains(&word) {
        return ("", Some(word));
    }
    let without_digit = word
        .strip_suffix(|c: char| c.is_ascii_digit())
        .unwrap_or(word);
    if let Some(model) = without_digit.strip_suffix("sxm") {
        return (model, Some("sxm"));
    }
    for form in ["pcie", "nvl", "maxq"] {
        if let Some(model) = word.strip_suffix(form) {
            return (model, Some(form));
        }
    }
    (word, None)
}

fn one_form(form: &str) -> String {
    match form {
        "workstation" => "ws",
        "server" => "se",
        other => other,
    }
    .to_owned()
}

/// `4070s` as `4070super`; `v100s` and `l40s` are models of their own.
fn super_in_full(word: &str) -> String {
    let number = word.strip_prefix("rtx").unwrap_or(word).strip_suffix('s');
    match number {
        Some(digits) if digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{word}uper")
        }
        _ => word.to_owned(),
    }
}

/// Sizes in which GPU memory is sold, in gigabytes.
const SOLD: [u64; 27] = [
    1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 94, 96, 128, 141, 180, 186,
    192, 256, 288,
];

/// Thousandths of a gigabyte that a GPU with `vram` is sold as: the next size that cards are sold in, when
/// at least 93 % of it is reported, else what is reported in GiB. Drivers report less than what is on the box
/// (ECC takes a sixteenth, firmware some more): an L4 sold with 24 GB reports 23 034 MiB.
#[must_use]
pub fn gigabytes_as_sold(vram: Bytes) -> u64 {
    const GIB: u128 = 1 << 30;
    let reported = u128::from(vram.0);
    let next = SOLD
        .iter()
        .find(|size| reported <= u128::from(**size) * GIB);
    match next {
        Some(size) if reported * 100 >= u128::from(*size) * GIB * 93 => size * 1000,
        _ => u64::try_from(reported * 1000 / GIB).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[track_caller]
    fn check(reported: &str, mib: u64, meant: &[&str], not_meant: &[&str]) {
        let name = ModelName::reported(reported, Bytes(mib * MIB));
        for text in meant {
            assert!(
                name.is_meant_by(&ModelName::asked(text)),
                "{reported} is {text}: {name:?}"
            );
        }
        for text in not_meant {
            assert!(
                !name.is_meant_by(&ModelName::asked(text)),
                "{reported} is not {text}"
            );
        }
    }

    #[test]
    fn the_ways_to_write_a_geforce_meet() {
        let ways = [
            "RTX 4090",
            "rtx4090",
            "RTX_4090",
            "NVIDIA GeForce RTX 4090",
            "4090",
            "rtx-4090",
        ];
        check(
            "NVIDIA GeForce RTX 4090",
            24_564,
            &ways,
            &["RTX 4090 D", "RTX 4080", "RTX", "409"],
        );
        check(
            "NVIDIA GeForce RTX 4090 D",
            24_564,
            &["RTX_4090D", "rtx 4090 d"],
            &ways,
        );
    }

    #[test]
    fn ti_and_super_are_other_models() {
        let super_ways = ["RTX_4070_Ti_SUPER", "rtx4070tisuper", "RTX_4070S_Ti"];
        check(
            "NVIDIA GeForce RTX 4070 Ti SUPER",
            16_376,
            &super_ways,
            &["RTX 4070", "RTX 4070 Ti"],
        );
        check(
            "NVIDIA GeForce RTX 4070 SUPER",
            12_282,
            &["RTX_4070S", "4070 super"],
            &super_ways,
        );
    }

    // peers 3.1 #13: H100 is the PCIe, the SXM and the NVL.
    #[test]
    fn a_name_without_form_means_all_forms() {
        check(
            "NVIDIA H100 80GB HBM3",
            81_559,
            &["H100", "H100_SXM", "h100 sxm5", "H100 80GB"],
            &["H100_PCIE", "H100 NVL", "H200"],
        );
        check(
            "NVIDIA H100 PCIe",
            81_559,
            &["h100", "H100_PCIE", "h100pcie"],
            &["H100_SXM"],
        );
        check(
            "NVIDIA H100 NVL",
            95_830,
            &["h100", "h100nvl", "H100 94GB"],
            &["H100 80GB"],
        );
        check(
            "NVIDIA A100-SXM4-80GB",
            81_920,
            &["A100", "A100_SXM4", "a100-sxm4-80gb"],
            &["A100 40GB", "A100_PCIE", "A10"],
        );
        check(
            "NVIDIA A100-PCIE-40GB",
            40_536,
            &["A100 40GB"],
            &["A100 80GB"],
        );
    }

    #[test]
    fn workstation_cards_with_like_names_stay_apart() {
        check(
            "NVIDIA RTX 6000 Ada Generation",
            49_140,
            &["RTX_6000Ada", "rtx 6000 ada"],
            &["RTX_A6000", "Quadro RTX 6000"],
        );
        check(
            "Quadro RTX 6000",
            24_576,
            &["Q_RTX_6000", "Quadro RTX 6000"],
            &["RTX 6000 Ada"],
        );
        check(
            "NVIDIA RTX A6000",
            49_140,
            &["RTX_A6000", "a6000"],
            &["RTX 6000 Ada"],
        );
        check(
            "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
            97_887,
            &["RTX_PRO_6000", "RTX_PRO_6000_WS", "rtx pro 6000 blackwell"],
            &["RTX_PRO_6000_SE", "RTX 6000"],
        );
    }

    #[test]
    fn other_makers_and_no_gpu() {
        check(
            "AMD Instinct MI300X",
            196_592,
            &["MI300X", "mi300x 192GB"],
            &["MI300A"],
        );
        assert!(ModelName::none().is_meant_by(&ModelName::asked("None")));
        assert!(!ModelName::none().is_meant_by(&ModelName::asked("4090")));
    }

    #[test]
    fn memory_counts_as_it_is_sold() {
        // Reported sizes in MiB by public nvidia-smi outputs, and what is on the box.
        let cards = [
            (23_034, 24),   // L4
            (24_564, 24),   // RTX 4090
            (22_919, 24),   // P40
            (15_360, 16),   // T4
            (46_068, 48),   // L40S
            (11_264, 11),   // GTX 1080 Ti
            (81_559, 80),   // H100
            (95_830, 94),   // H100 NVL
            (97_871, 96),   // H20
            (143_771, 141), // H200
            (183_359, 180), // B200
            (196_592, 192), // MI300X
            (275_040, 288), // B300
        ];
        for (mib, sold) in cards {
            assert_eq!(
                gigabytes_as_sold(Bytes(mib * MIB)),
                sold * 1000,
                "{mib} MiB"
            );
        }
        // A card with exchanged memory: no size of the list is near, so it counts as it is.
        assert_eq!(gigabytes_as_sold(Bytes(22 * 1024 * MIB)), 22_000);
        assert_eq!(gigabytes_as_sold(Bytes(0)), 0);
        assert_eq!(
            gigabytes_as_sold(Bytes(u64::MAX)),
            u64::MAX / (1 << 30) * 1000 + 999
        );
    }
}
