//! The table of classes, number by number.

use super::*;

/// Name, model, GB; T, K; tenths of a second: fill honest, pass honest, pass bound; recompute in 100 MB/s; the
/// spill seen behind 25 GB/s in percent.
type Expected = (
    &'static str,
    &'static str,
    u64,
    (u32, u32),
    (u64, u64, u64),
    (u64, u64),
);

const TABLE: [Expected; 14] = [
    ("T4", "Tesla T4", 16, (219, 15_872), (60, 31, 56), (25, 24)),
    ("L4", "NVIDIA L4", 24, (329, 19_456), (59, 49, 84), (37, 24)),
    (
        "A10",
        "NVIDIA A10",
        24,
        (329, 19_968),
        (59, 25, 47),
        (38, 13),
    ),
    (
        "RTX 3090",
        "NVIDIA GeForce RTX 3090",
        24,
        (329, 23_040),
        (60, 16, 34),
        (37, 10),
    ),
    (
        "RTX 4090",
        "NVIDIA GeForce RTX 4090",
        24,
        (329, 53_760),
        (60, 15, 32),
        (37, 9),
    ),
    (
        "RTX 5090",
        "NVIDIA GeForce RTX 5090",
        32,
        (438, 51_200),
        (60, 11, 26),
        (49, 6),
    ),
    (
        "L40S",
        "NVIDIA L40S",
        48,
        (658, 29_696),
        (60, 34, 61),
        (74, 9),
    ),
    (
        "A100-40",
        "NVIDIA A100-SXM4-40GB",
        40,
        (548, 30_208),
        (59, 16, 34),
        (62, 6),
    ),
    (
        "A100-80",
        "NVIDIA A100-SXM4-80GB",
        80,
        (1096, 14_848),
        (58, 24, 46),
        (126, 4),
    ),
    (
        "H100-PCIe",
        "NVIDIA H100 PCIe",
        80,
        (1096, 36_864),
        (60, 25, 47),
        (123, 4),
    ),
    (
        "H100-SXM",
        "NVIDIA H100 80GB HBM3",
        80,
        (1096, 48_128),
        (60, 15, 32),
        (123, 3),
    ),
    (
        "H200",
        "NVIDIA H200",
        141,
        (1932, 27_136),
        (59, 18, 37),
        (219, 2),
    ),
    (
        "B200",
        "NVIDIA B200",
        180,
        (2467, 48_640),
        (60, 14, 31),
        (278, 1),
    ),
    (
        "H100-SXM 1g.10gb",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        10,
        (137, 55_296),
        (60, 15, 32),
        (15, 22),
    ),
];

#[test]
fn every_class_has_the_figures_of_the_table() {
    let tenths = |time: Millis| (time.0 + 50) / 100;
    for (name, model, gb, (tiles, inner), times, (recompute, spill)) in TABLE {
        let class = find(model, Bytes::from_gb(gb)).unwrap();
        let parameters = class.parameters();
        assert_eq!(parameters.check(), Ok(()));
        assert_eq!(class.name, name);
        assert_eq!(
            (parameters.tiles, parameters.inner),
            (tiles, inner),
            "{name}"
        );
        assert_eq!(parameters.fill_max, Millis(14_000));
        let (fill, pass) = (tenths(class.fill_honest()), tenths(class.pass_honest()));
        assert_eq!((fill, pass, tenths(parameters.pass_max)), times, "{name}");
        assert_eq!((class.recompute_mb() + 50) / 100, recompute, "{name}");
        assert_eq!(
            (class.spill_seen_permille(25_000) + 5) / 10,
            spill,
            "{name}"
        );
    }
}

#[test]
fn slices_have_their_part_of_the_card() {
    let gb = Bytes::from_gb;
    let two = find("NVIDIA A100-SXM4-40GB MIG 2g.10gb", gb(10)).unwrap();
    assert_eq!(two.giga_ops, 624_000 * 2 / 7);
    assert_eq!(two.bandwidth_mb, 1_555_000 * 2 / 8);
    let media = find("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", gb(10)).unwrap();
    assert_eq!(media.name, "H100-SXM 1g.10gb");
    let h200 = find("NVIDIA H200 MIG 1g.18gb", gb(18)).unwrap();
    assert_eq!(h200.bandwidth_mb, 4_800_000 / 8);
    let whole = find("NVIDIA H100 80GB HBM3 MIG 7g.80gb", gb(80)).unwrap();
    assert_eq!(whole.bandwidth_mb, 3_350_000);
    for wrong in [
        "NVIDIA L4 MIG 1g.3gb",
        "NVIDIA H200 MIG 8g.141gb",
        "NVIDIA H200 MIG half",
    ] {
        assert!(
            matches!(find(wrong, gb(200)), Err(ClassError::Slice { .. })),
            "{wrong}"
        );
    }
}

#[test]
fn what_has_no_class_or_admits_too_little_is_told_so() {
    // A 4090 D and a laptop's 4090 are other cards.
    for model in [
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "H100",
    ] {
        let found = find(model, Bytes::from_gb(24));
        assert!(matches!(found, Err(ClassError::Unknown { .. })), "{model}");
    }
    let short = find("NVIDIA H100 80GB HBM3", Bytes::from_gb(48));
    assert!(matches!(short, Err(ClassError::MemoryShort { .. })));
    // What the driver of a real T4 reports: 15 360 MiB, of 16 GB.
    assert!(find("Tesla T4", Bytes(15_360 << 20)).is_ok());
}

#[test]
fn a_class_is_found_by_the_name_it_gives_itself() {
    let found = |model: &str, gb| find(model, Bytes::from_gb(gb)).unwrap();
    for class in [
        found("NVIDIA GeForce RTX 4090", 24),
        found("NVIDIA A100-SXM4-40GB", 40),
        found("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10),
    ] {
        assert_eq!(named(&class.name), Some(class));
    }
    assert_eq!(named("H100"), None);
    assert_eq!(named("T4 1g.4gb"), None);
}
