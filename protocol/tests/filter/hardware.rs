//! What is searched of hardware: measured speeds, slices, proof; each by its own attribute.

use crate::sample::{cpu_offer, gpu_offer, host, list, pair_offer, text};
use crate::{NO_DISK, check_reads, parse};
use protocol::filter::{Fact, Facts, Field, fields};
use protocol::ids::Digest;
use protocol::machine::{Gpu, Measure, Quantity, Vendor};
use protocol::offer::{Isolation, Offer, Partition};
use protocol::terms::Need;
use protocol::units::{Bytes, Timestamp};
use protocol::verify::{VerificationLevel, Withdrawal};

fn measure(quantity: Quantity, value: u64, version: u16) -> Measure {
    Measure {
        quantity,
        value,
        method: text("own"),
        version,
        at: Timestamp(1),
    }
}

fn measured() -> Offer {
    let measures = [
        (Quantity::Fp32, 80_123),
        (Quantity::Fp16Matrix, 150_000),
        (Quantity::GpuMemory, 926_700),
        (Quantity::HostToDevice, 24_560),
        (Quantity::DiskRead, 3456),
        (Quantity::Download, 940_999),
        (Quantity::Upload, 88_000),
        (Quantity::Fp64, 1_290),
        (Quantity::PcieGeneration, 3),
        (Quantity::PcieLanes, 8),
        (Quantity::GpuTemperatureMax, 87),
    ];
    let measures = measures.map(|(quantity, value)| measure(quantity, value, 1));
    Offer {
        measures: list(measures.to_vec()),
        ..gpu_offer()
    }
}

/// A slice 3g.40gb of an H100, with 60 of its 132 multiprocessors.
fn slice() -> Offer {
    let h100 = Gpu {
        model: text("NVIDIA H100 80GB HBM3"),
        uuid: text("GPU-1"),
        vram: Bytes(81_559 << 20),
        ..Gpu::unknown(Vendor::Nvidia)
    };
    let mut offer = gpu_offer();
    offer.share.resources = list(vec![text("GPU-1/3g.40gb@0+4"), text("GPU-1/3g.40gb@4+4")]);
    offer.share.gpus = list(vec![h100.clone()]);
    offer.machine.gpus = list(vec![h100]);
    offer.partition = Some(Partition {
        profile: text("3g.40gb"),
        vram: Bytes(40_448 << 20),
        multiprocessors: (60, 132),
        memory_slices: (4, 8),
        isolation: Isolation::Hardware,
    });
    offer
}

#[track_caller]
fn check(offer: &Offer, gpus: u16, expressions: &[&str], wanted: bool) {
    let facts = Facts::of(host(), offer, gpus);
    for expression in expressions {
        let found = parse(expression).prepare(NO_DISK).matches(&facts);
        assert_eq!(found, wanted, "{expression}");
    }
}

/// Speeds to three digits. The score: 100 × √(150 / 71.2 × 926.7 / 936) = 144.4, so 144; for $0.318, 452. Of FP32:
/// 80.1 / 0.318 = 251.8.
#[test]
fn what_was_measured_is_searched_in_the_field_s_unit() {
    let fields = [
        "total_flops=80.1",
        "fp16=150",
        "gpu_mem_bw=926",
        "gpu_mem_bw>=0.9gb",
        "pcie_bw=24.5",
        "disk_bw=3450",
        "disk_bw>=3.4gb",
        "inet_down=940",
        "inet_down>=0.9gbps",
        "inet_up=88",
        "score=144",
        "score_per_dollar=452",
        "flops_usd=251",
        "flops_per_dphtotal>=250",
        "fp64=1.29",
        "gpu_max_temp<=87c",
        // Its card and slot could do the fourth generation on 16 lanes.
        "pci_gen=3",
        "gpu_lanes=8",
    ];
    check(&measured(), 1, &fields, true);
    // Both GPUs do twice as much for twice the price; their memory is not faster for that.
    let pair = Offer {
        measures: measured().measures,
        ..pair_offer()
    };
    let two = [
        "total_flops=160.2",
        "score=288",
        "score_per_dollar=452",
        "gpu_mem_bw=926",
    ];
    check(&pair, 2, &two, true);
    // A link that seems to run faster than card and slot can is not believed.
    let mut fast = measured();
    fast.measures = list(vec![measure(Quantity::PcieGeneration, 6, 1)]);
    check(&fast, 1, &["pci_gen=4", "gpu_lanes=16"], true);
    // A newer method's result counts, and of two the lower.
    let mut again = measured();
    again.measures = list(vec![
        measure(Quantity::Fp32, 90_000, 1),
        measure(Quantity::Fp32, 70_000, 2),
        measure(Quantity::Fp32, 60_000, 2),
    ]);
    check(&again, 1, &["total_flops=60"], true);
}

#[test]
fn what_nobody_measured_meets_nothing() {
    let unknown = [
        "total_flops>=0",
        "fp64>=0",
        "gpu_max_temp>=0",
        "total_flops!=1",
        "fp16<999",
        "gpu_mem_bw>=0",
        "pcie_bw>=0",
        "disk_bw>=0",
        "inet_up>=0",
        "inet_down>=0",
        "score<9999",
        "score_per_dollar>=0",
        "flops_usd>=0",
        "cpu_ghz>=0",
        "ecc=false",
        "mobo_name!=x",
        "disk_name!=x",
    ];
    check(&gpu_offer(), 1, &unknown, false);
    check(&cpu_offer(), 0, &["isa!=x", "bw_nvlink>=0"], false);
    check(
        &gpu_offer(),
        1,
        &["bw_nvlink=0", "linked=false", "numa=1"],
        true,
    );
}

// peers 3.9 #133: GPUs and slices are both there, each where it is asked for.
#[test]
fn slices_are_found_where_partition_is_named_and_nowhere_else() {
    check(
        &slice(),
        1,
        &[
            "",
            "gpu=h100",
            "num_gpus=1",
            "partition=none",
            "partition=whole",
        ],
        false,
    );
    let named = [
        "partition=3g.40gb",
        "partition=MIG-3g.40gb gpu=h100",
        "partition in [1g.10gb,3g.40gb]",
        "partition!=1g.10gb",
        "partition!=none",
        "partition=any",
        "partition=*",
    ];
    check(&slice(), 1, &named, true);
    check(
        &gpu_offer(),
        1,
        &["", "partition=none", "partition=any", "partition!=3g.40gb"],
        true,
    );
    check(
        &gpu_offer(),
        1,
        &["partition=3g.40gb", "partition!=none"],
        false,
    );
    check(
        &cpu_offer(),
        0,
        &["partition=none", "isolation=whole"],
        true,
    );
    // Its own memory, its part of one GPU (60 / 132), all of the share's CPUs.
    let of_it = [
        "partition=any gpu_ram=40",
        "partition=any gpu_total_ram=40",
        "partition=any gpu_frac=0.454545",
        "partition=any isolation=hardware",
        "partition=any cpus=32",
        "partition=any num_gpus=1",
    ];
    check(&slice(), 1, &of_it, true);
    check_reads("partition = any", "partition=any");
    check_reads("slice in [any, 3g.40gb]", "partition=any");
    check_reads("mig_profile=MIG-1g.24gb+ME", "partition=1g.24gb+me");
    check_reads("partition=whole", "partition=none");
}

#[test]
fn proof_is_a_level_with_vast_s_words() {
    let new = Facts::of(host(), &gpu_offer(), 1);
    let matches = |facts: &Facts, text: &str| parse(text).prepare(NO_DISK).matches(facts);
    assert!(matches(&new, "verified=false verification=unverified"));
    let proved = new.clone().with_verification(&VerificationLevel::Verified {
        at: Timestamp(1),
        verdict: Digest::of(b"verdict"),
    });
    assert!(matches(&proved, "verified=true verification=verified"));
    let failed = new.with_verification(&VerificationLevel::Withdrawn {
        reason: Withdrawal::Changed,
        at: Timestamp(2),
    });
    assert!(matches(&failed, "verified=no verification=deverified"));
    assert!(!matches(&failed, "verification in [verified,unverified]"));
}

// peers 3.5 #91: who made a GPU is what its driver says, and no guess by its name.
#[test]
fn the_vendor_is_the_driver_s() {
    let mut offer = gpu_offer();
    offer.share.gpus = list(vec![Gpu {
        model: text("Graphics Device"),
        architecture: text("gfx942"),
        ..Gpu::unknown(Vendor::Amd)
    }]);
    check(
        &offer,
        1,
        &["vendor=amd", "gpu_arch=amd", "gfx=gfx942"],
        true,
    );
    check(&gpu_offer(), 1, &["vendor=nvidia", "isa=sm_89"], true);
}

/// An attribute of an offer, and the fields that say it.
type Attribute = (fn(&mut Offer), &'static [Field]);

fn gpus(offer: &mut Offer, change: fn(&mut Gpu)) {
    let mut all = offer.share.gpus.clone().into_vec();
    all.iter_mut().for_each(change);
    offer.share.gpus = list(all);
}

#[rustfmt::skip]
const ATTRIBUTES: [Attribute; 19] = [
    (|offer| gpus(offer, |gpu| gpu.vram = Bytes(80 << 30)), &[Field::GpuRam, Field::GpuTotalRam, Field::GpuName]),
    (|offer| gpus(offer, |gpu| gpu.vendor = Vendor::Intel), &[Field::GpuArch]),
    (|offer| gpus(offer, |gpu| gpu.power_limit_mw = 1), &[Field::GpuMaxPower]),
    (|offer| gpus(offer, |gpu| gpu.pcie_generation = 3), &[Field::PciGeneration]),
    (|offer| gpus(offer, |gpu| gpu.pcie_width = 8), &[Field::PciLanes]),
    (|offer| gpus(offer, |gpu| gpu.cuda = (11, 0)), &[Field::CudaVersion]),
    (|offer| gpus(offer, |gpu| gpu.driver = text("1.2")), &[Field::DriverVersion]),
    (|offer| gpus(offer, |gpu| gpu.compute_capability = (7, 5)), &[Field::ComputeCap, Field::Instructions]),
    (|offer| gpus(offer, |gpu| gpu.ecc = Some(true)), &[Field::Ecc]),
    (|offer| gpus(offer, |gpu| gpu.has_display = true), &[Field::DisplayActive]),
    (|offer| gpus(offer, |gpu| gpu.link_group = 1), &[Field::Linked, Field::LinkBandwidth]),
    (|offer| offer.machine.cpu_mhz = 3675, &[Field::CpuGhz]),
    (|offer| offer.machine.numa_nodes = 2, &[Field::NumaNodes]),
    (|offer| offer.machine.mainboard = text("H12SSL"), &[Field::Mainboard]),
    (|offer| offer.machine.disk_model = text("PM9A3"), &[Field::DiskName]),
    (|offer| offer.machine.cpu_cores = 1, &[Field::CpuCores]),
    (|offer| offer.share.ram = Bytes(1), &[Field::CpuRam]),
    (|offer| offer.share.shared_memory = Bytes(1), &[Field::SharedMemory]),
    (|offer| offer.limits.disk_max = Bytes(1), &[Field::DiskSpace]),
];

// peers 3.5 #88: an attribute moves the fields that say it, and no other.
#[test]
fn each_attribute_moves_its_own_fields_alone() {
    let before = Facts::of(host(), &pair_offer(), 2);
    for (index, (change, moved)) in ATTRIBUTES.iter().enumerate() {
        let mut offer = pair_offer();
        change(&mut offer);
        let after = Facts::of(host(), &offer, 2);
        for info in fields() {
            let fact = |facts: &Facts| {
                let fact = facts.fact(info.field, Need::default());
                if matches!(fact, Fact::Model(_)) {
                    return format!("{:?}", facts.model());
                }
                format!("{fact:?}")
            };
            let is_moved = fact(&before) != fact(&after);
            assert_eq!(
                is_moved,
                moved.contains(&info.field),
                "{index}: {}",
                info.name
            );
        }
    }
}
