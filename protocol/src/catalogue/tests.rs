//! The catalogue as it is compiled in, names as drivers print them, and claims at both sides of every bound.

use super::*;
use crate::bounded::{List, Text};
use crate::ids::OfferId;
use crate::machine::{Machine, Measure, Quantity};
use crate::offer::{Chunks, Isolation, Offer, Partition, Share};
use crate::terms::{Limits, Prices, Sales};
use crate::units::{Seconds, Timestamp};
use proptest::prelude::*;

fn text<const N: usize>(words: &str) -> Text<N> {
    Text::new(words).unwrap()
}

fn list<T, const N: usize>(items: Vec<T>) -> List<T, N> {
    List::new(items).ok().unwrap()
}

fn gpu(model: &str, mib: u64) -> Gpu {
    Gpu {
        model: text(model),
        uuid: text("GPU-a"),
        vram: Bytes(mib << 20),
        ..Gpu::unknown(Vendor::Nvidia)
    }
}

pub(super) fn offer(gpu: Gpu) -> Offer {
    Offer {
        id: OfferId::from_bytes([1; 16]),
        sequence: 1,
        listed_at: Timestamp(1),
        machine: Machine::unknown(),
        share: Share {
            resources: list(vec![gpu.uuid.clone()]),
            gpus: list(vec![gpu]),
            cpu_millicores: 1000,
            ram: Bytes(1),
            shared_memory: Bytes(0),
        },
        partition: None,
        chunks: Chunks::Any,
        gpus_min: 1,
        prices: Prices::default(),
        sales: Sales::default(),
        limits: Limits {
            start_within: Seconds(1),
            duration_min: Seconds(0),
            duration_max: None,
            until: None,
            stop_grace: Seconds(1),
            notice: Seconds(1),
            disk_max: Bytes(1),
        },
        measures: List::default(),
        brokers: List::default(),
    }
}

fn measured(gpu: Gpu, quantity: Quantity, value: u64) -> Offer {
    let measure = Measure {
        quantity,
        value,
        method: text("fma"),
        version: 1,
        at: Timestamp(1),
    };
    Offer {
        measures: list(vec![measure]),
        ..offer(gpu)
    }
}

fn h100() -> Gpu {
    Gpu {
        compute_capability: (9, 0),
        multiprocessors: 132,
        ..gpu("NVIDIA H100 80GB HBM3", 81_559)
    }
}

/// Slices of an H100 with this profile at these places.
fn sliced(profile: &str, places: &[(u8, u8)], mib: u64, sm: u16, slices: u8) -> Offer {
    let names = places.iter().map(|(start, size)| {
        let name = mig::name::SliceName::new("GPU-a", profile, *start, *size).unwrap();
        text(&name.to_string())
    });
    let mut offer = offer(h100());
    offer.share.resources = list(names.collect());
    offer.partition = Some(Partition {
        profile: text(profile),
        vram: Bytes(mib << 20),
        multiprocessors: (sm, 132),
        memory_slices: (slices, 8),
        isolation: Isolation::Hardware,
    });
    offer
}

#[track_caller]
fn refused(offer: &Offer, words: &str) {
    assert_eq!(plausible(offer).unwrap_err().to_string(), words);
}

#[test]
fn the_data_is_read_and_every_model_found_by_its_own_names() {
    assert_eq!(sheets().len(), 117);
    for sheet in sheets() {
        for name in &sheet.spellings {
            let found = sheet_of(name, sheet.vram).unwrap();
            assert_eq!(found.id, sheet.id);
        }
    }
    assert!(read::sheets("schema = 1\n[[gpu]]\nid = \"x\"").is_err());
}

#[test]
fn names_as_drivers_print_them_are_found() {
    let id = |model: &str, mib: u64| sheet_of_gpu(&gpu(model, mib)).map(|sheet| sheet.id.as_str());
    for (model, mib, wanted) in [
        ("NVIDIA GeForce RTX 4090", 24_564, "rtx-4090"),
        ("GeForce RTX 3090", 24_268, "rtx-3090"),
        ("NVIDIA GeForce RTX 3080", 10_240, "rtx-3080-10"),
        ("NVIDIA GeForce RTX 3080", 12_288, "rtx-3080-12"),
        ("NVIDIA GeForce RTX 4060 Ti", 8188, "rtx-4060-ti-16"),
        ("NVIDIA H100 80GB HBM3", 81_559, "h100-sxm5-80"),
        ("NVIDIA H100 PCIe", 81_559, "h100-pcie-80"),
        ("NVIDIA H100 NVL", 95_830, "h100-nvl-94"),
        ("NVIDIA H200", 143_771, "h200-sxm5-141"),
        ("NVIDIA H200 NVL", 143_771, "h200-nvl-141"),
        ("NVIDIA A100-SXM4-40GB", 40_960, "a100-sxm4-40"),
        ("A100-SXM4-80GB", 81_920, "a100-sxm4-80"),
        ("NVIDIA A100 80GB PCIe", 81_920, "a100-pcie-80"),
        ("NVIDIA GH200 480GB", 97_871, "gh200-96"),
        ("NVIDIA B300 SXM6 AC", 275_040, "b300-288"),
        (
            "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
            97_887,
            "rtx-pro-6000-bw-maxq",
        ),
        (
            "NVIDIA RTX PRO 5000 72GB Blackwell",
            73_415,
            "rtx-pro-5000-bw-72",
        ),
        ("Quadro RTX 6000", 24_576, "quadro-rtx-6000"),
        ("AMD Instinct MI300X OAM", 196_592, "mi300x"),
        ("AMD Instinct MI250X / MI250", 65_520, "mi250x"),
        ("Intel(R) Arc(TM) A770 Graphics", 16_288, "arc-a770-16"),
    ] {
        assert_eq!(id(model, mib), Some(wanted), "{model}");
    }
    // Others with like names, and what is in no catalogue.
    for model in [
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA RTX 4000 SFF Ada Generation",
        "AMD Radeon Graphics",
        "Voodoo 2",
        "",
    ] {
        assert_eq!(id(model, 24_564), None, "{model}");
    }
}

/// 24 GiB and 8 % are 26 542 MiB.
#[test]
fn memory_beyond_the_models_is_refused_with_both_numbers() {
    assert_eq!(
        plausible(&offer(gpu("NVIDIA GeForce RTX 4090", 26_542))),
        Ok(())
    );
    refused(
        &offer(gpu("NVIDIA GeForce RTX 4090", 49_140)),
        "memory of 47.9 GiB is beyond the 25.9 GiB of NVIDIA GeForce RTX 4090",
    );
    assert!(plausible(&offer(gpu("NVIDIA GeForce RTX 4090", 26_543))).is_err());
    // The name says 40 GB, whatever else is sold with 80.
    refused(
        &offer(gpu("NVIDIA A100-SXM4-40GB", 81_920)),
        "memory of 80.0 GiB is beyond the 43.1 GiB of NVIDIA A100-SXM4-40GB",
    );
}

// peers 3.5 #86, #87: what is in no catalogue is what its driver says, and so is less memory than is sold.
#[test]
fn what_is_unknown_or_merely_little_is_believed() {
    assert_eq!(plausible(&offer(gpu("NVIDIA Next 1", 999_999))), Ok(()));
    assert_eq!(
        plausible(&offer(gpu("NVIDIA H100 80GB HBM3", 40_000))),
        Ok(())
    );
    let fast = measured(gpu("NVIDIA Next 1", 999_999), Quantity::Fp32, 9_999_999);
    assert_eq!(plausible(&fast), Ok(()));
}

/// The sheet's 82.6, 165.2 and 1010 with 15, 15 and 5 %: 94 990, 189 980 GFLOP/s, 1 060 500 MB/s; PCIe 4 × 16 is
/// 31 520 MB/s.
#[test]
fn speeds_beyond_the_sheet_are_refused() {
    let rtx4090 = || gpu("NVIDIA GeForce RTX 4090", 24_564);
    for (quantity, most) in [
        (Quantity::Fp32, 94_990),
        (Quantity::Fp64, 94_990),
        (Quantity::PcieGeneration, 4),
        (Quantity::PcieLanes, 16),
        (Quantity::GpuTemperatureMax, 130),
        (Quantity::Fp16Matrix, 189_980),
        (Quantity::Bf16Matrix, 189_980),
        (Quantity::GpuMemory, 1_060_500),
        (Quantity::HostToDevice, 31_520),
        (Quantity::DeviceToHost, 31_520),
    ] {
        assert_eq!(plausible(&measured(rtx4090(), quantity, most)), Ok(()));
        let beyond = plausible(&measured(rtx4090(), quantity, most + 1)).unwrap_err();
        let wanted = Implausible::Beyond {
            figure: Figure::Measured(quantity),
            claimed: most + 1,
            most,
            model: text("NVIDIA GeForce RTX 4090"),
        };
        assert_eq!(beyond, wanted);
    }
    refused(
        &measured(rtx4090(), Quantity::Fp32, 120_000),
        "speed in FP32 of 120.0 TFLOP/s is beyond the 94.9 TFLOP/s of NVIDIA GeForce RTX 4090",
    );
    // Eight lanes of the third generation carry 7880 MB/s, whatever the card could.
    let narrow = Gpu {
        pcie_generation: 3,
        pcie_width: 8,
        ..rtx4090()
    };
    refused(
        &measured(narrow, Quantity::HostToDevice, 12_000),
        "transfer to the GPU of 12.0 GB/s is beyond the 7.8 GB/s of NVIDIA GeForce RTX 4090",
    );
    // No matrix units: twice the 11.8 TFLOP/s of a P40.
    let p40 = || gpu("Tesla P40", 22_919);
    assert_eq!(
        plausible(&measured(p40(), Quantity::Fp16Matrix, 27_140)),
        Ok(())
    );
    assert!(plausible(&measured(p40(), Quantity::Fp16Matrix, 27_141)).is_err());
    // A superchip's memory is no PCIe away.
    let grace = measured(
        gpu("NVIDIA GH200 480GB", 97_871),
        Quantity::HostToDevice,
        380_000,
    );
    assert_eq!(plausible(&grace), Ok(()));
}

#[test]
fn a_link_or_a_capability_that_the_card_has_not_is_refused() {
    let with = |change: fn(&mut Gpu)| {
        let mut gpu = gpu("NVIDIA GeForce RTX 4090", 24_564);
        (gpu.compute_capability, gpu.pcie_generation, gpu.pcie_width) = ((8, 9), 4, 16);
        change(&mut gpu);
        offer(gpu)
    };
    assert_eq!(plausible(&with(|_| ())), Ok(()));
    refused(
        &with(|gpu| gpu.pcie_generation = 5),
        "PCIe generation of 5 is beyond the 4 of NVIDIA GeForce RTX 4090",
    );
    refused(
        &with(|gpu| gpu.pcie_width = 32),
        "PCIe width of 32 lanes is beyond the 16 lanes of NVIDIA GeForce RTX 4090",
    );
    refused(
        &with(|gpu| gpu.compute_capability = (9, 0)),
        "compute capability 9.0 is not the 8.9 of NVIDIA GeForce RTX 4090",
    );
    refused(
        &with(|gpu| gpu.vendor = Vendor::Amd),
        "vendor amd is not the nvidia of NVIDIA GeForce RTX 4090",
    );
    let mut amd = gpu("AMD Instinct MI300X", 196_592);
    amd.vendor = Vendor::Amd;
    amd.architecture = text("gfx90a");
    refused(
        &offer(amd),
        "instruction set gfx90a is not the gfx942 of AMD Instinct MI300X",
    );
    let mut unknown = gpu("NVIDIA Next 1", 1);
    unknown.pcie_generation = 200;
    refused(
        &offer(unknown),
        "PCIe generation of 200 is beyond the 7 of NVIDIA Next 1",
    );
}

// peers 3.9 #132: a driver's own figures stand within 8 %; names and places do not move with the driver.
#[test]
fn slices_are_those_that_the_board_has() {
    // 39.50 GiB are printed, 40 448 MiB; 37 213 and 43 683 are 8 % off, rounded inwards.
    let places = [(0, 4), (4, 4)];
    for mib in [37_213, 40_448, 43_683] {
        let driver = sliced("3g.40gb", &places, mib, 60, 4);
        assert_eq!(plausible(&driver), Ok(()), "{mib}");
    }
    for (offer, words) in [
        (
            sliced("3g.40gb", &places, 43_684, 60, 4),
            "3g.40gb has 40448 MiB within 8 %, not 43684: NVIDIA H100 80GB HBM3",
        ),
        (
            sliced("3g.40gb", &[(2, 4)], 40_448, 60, 4),
            "3g.40gb starts at [0, 4] with size 4, not as in 'GPU-a/3g.40gb@2+4': NVIDIA H100 80GB HBM3",
        ),
        (
            sliced("3g.40gb", &[(4, 3)], 40_448, 60, 4),
            "3g.40gb starts at [0, 4] with size 4, not as in 'GPU-a/3g.40gb@4+3': NVIDIA H100 80GB HBM3",
        ),
        (
            sliced("3g.20gb", &[(4, 4)], 20_000, 60, 4),
            "it has no profile 3g.20gb: NVIDIA H100 80GB HBM3",
        ),
        (
            sliced("3g.40gb", &places, 40_448, 61, 4),
            "3g.40gb has 60 of 132 multiprocessors, not 61 of 132: NVIDIA H100 80GB HBM3",
        ),
        (
            sliced("3g.40gb", &places, 40_448, 60, 3),
            "3g.40gb has 4 of 8 memory slices, not 3 of 8: NVIDIA H100 80GB HBM3",
        ),
    ] {
        refused(&offer, words);
    }
    let mut none = sliced("3g.40gb", &places, 40_448, 60, 4);
    none.share.gpus = List::default();
    assert!(plausible(&none).is_err());
    let mut plain = sliced("3g.40gb", &places, 40_448, 60, 4);
    plain.share.resources = list(vec![text("GPU-a")]);
    refused(
        &plain,
        "'GPU-a' is no such slice of its GPUs: NVIDIA H100 80GB HBM3",
    );
    let mut other = sliced("3g.40gb", &places, 40_448, 60, 4);
    other.share.resources = list(vec![text("GPU-b/3g.40gb@0+4")]);
    assert!(plausible(&other).is_err());
}

#[test]
fn what_cannot_be_cut_sells_no_slice_and_a_slice_does_no_more_than_its_part() {
    let mut card = sliced("1g.10gb", &[(0, 1)], 9984, 16, 1);
    card.share.gpus = list(vec![gpu("NVIDIA GeForce RTX 4090", 24_564)]);
    refused(
        &card,
        "slices are sold of what cannot be cut: NVIDIA GeForce RTX 4090",
    );
    // 66.9 TFLOP/s and 15 % are 76 935; 16 of 132 multiprocessors 9325. 3350 GB/s and 5 % are 3 517 500; an
    // eighth 439 687.
    for (quantity, most) in [(Quantity::Fp32, 9325), (Quantity::GpuMemory, 439_687)] {
        let of = |value| Offer {
            measures: measured(h100(), quantity, value).measures,
            ..sliced("1g.10gb", &[(0, 1)], 9984, 16, 1)
        };
        assert_eq!(plausible(&of(most)), Ok(()));
        assert!(plausible(&of(most + 1)).is_err());
    }
    // The whole is what the driver says that it is.
    let mut few = sliced("1g.10gb", &[(0, 1)], 9984, 16, 1);
    if let Some(partition) = &mut few.partition {
        partition.multiprocessors = (16, 16);
    }
    assert!(plausible(&few).is_err());
}

proptest! {
    /// Whatever a stranger writes is judged, and what the sheets say is plausible.
    #[test]
    fn any_claim_is_judged_and_every_sheet_is_plausible(
        index in 0_usize..117,
        value in any::<u64>(),
        profile in "[1-7]g\\.[0-9]{1,3}gb",
        parts in any::<(u16, u16, u8, u8)>(),
    ) {
        let sheet = &sheets()[index];
        let mut gpu = gpu(&sheet.name, 0);
        (gpu.vendor, gpu.vram) = (sheet.vendor, sheet.vram);
        (gpu.pcie_generation, gpu.pcie_width) = sheet.pcie;
        gpu.compute_capability = sheet.capability.unwrap_or_default();
        prop_assert_eq!(plausible(&measured(gpu.clone(), Quantity::Fp32, sheet.single)), Ok(()));
        prop_assert_eq!(plausible(&measured(gpu.clone(), Quantity::GpuMemory, sheet.memory)), Ok(()));
        let mut wild = measured(gpu, Quantity::HostToDevice, value);
        wild.partition = Some(Partition {
            profile: text(&profile),
            vram: Bytes(value),
            multiprocessors: (parts.0, parts.1),
            memory_slices: (parts.2, parts.3),
            isolation: Isolation::Hardware,
        });
        if let Err(problem) = plausible(&wild) {
            prop_assert!(!problem.to_string().is_empty());
        }
    }
}
