//! Layouts as they are said, on three GPUs of which two can be cut; and on two of AMD's.

use super::*;
use crate::core::slices::{Divisible, Divisibles, Mode};
use crate::core::tests::{gpu as plain_gpu, machine};
use mig::amd::{ComputeMode, Division, MemoryMode, Model};
use mig::board::{Cut, find_board};
use protocol::machine::Machine;
use protocol::units::{BasisPoints, Bytes, Timestamp};

fn host() -> (Machine, Divisibles) {
    let machine = machine(&[plain_gpu("GPU-a"), plain_gpu("GPU-b"), plain_gpu("GPU-c")]);
    let board = find_board("NVIDIA H100 80GB HBM3", 80 << 30).unwrap();
    let Cut::Known(chip) = &board.cut else {
        panic!("an H100 is known")
    };
    let divisible = |gpu: &str| Divisible {
        gpu: ResourceName::cut(gpu),
        mode: Mode::Whole,
        chip: chip.clone(),
        standing: Vec::new(),
        in_use: false,
        uniform: None,
    };
    let all = ["GPU-a", "GPU-b"].map(|gpu| (ResourceName::cut(gpu), divisible(gpu)));
    (machine, all.into_iter().collect())
}

/// What is listed after these flags.
fn resolved(wishes: Wishes) -> Result<SlicePolicy, String> {
    resolved_on(wishes, host())
}

fn resolved_on(
    wishes: Wishes,
    (machine, divisibles): (Machine, Divisibles),
) -> Result<SlicePolicy, String> {
    let ground = Ground {
        machine: &machine,
        divisibles: &divisibles,
        disk_reserve: Bytes(0),
        data_root: "/",
        before: None,
        now: Timestamp(0),
    };
    let resources: Vec<ResourceName> = machine.gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
    policy(&wishes, ground, &resources)
}

fn layout(text: &str) -> Wishes {
    Wishes {
        partition_layout: Some(layouts(text).unwrap()),
        ..Wishes::default()
    }
}

fn cut(policy: &SlicePolicy) -> Vec<(&str, &PartitionLayout)> {
    let layouts = policy.layouts.iter();
    layouts
        .map(|(gpu, layout)| (gpu.as_str(), layout))
        .collect()
}

#[test]
fn layouts_are_said_for_all_gpus_or_for_each() {
    let fixed = PartitionLayout::Fixed(List::first(["3g.40gb", "4g.40gb"].map(ProfileName::cut)));
    let dynamic = PartitionLayout::Dynamic(List::default());
    let some = PartitionLayout::Dynamic(List::first([ProfileName::cut("1g.10gb")]));
    let said = resolved(layout("0=3g.40gb,mig-4g.40gb; GPU-b=dynamic")).unwrap();
    assert_eq!(cut(&said), [("GPU-a", &fixed), ("GPU-b", &dynamic)]);
    let said = resolved(layout("dynamic:1g.10gb; 2=off")).unwrap();
    assert_eq!(cut(&said), [("GPU-a", &some), ("GPU-b", &some)]);
    assert_eq!(said.premium, BasisPoints(1500));
    assert!(resolved(layout("off")).unwrap().layouts.is_empty());
}

#[test]
fn what_cannot_be_cut_is_refused_with_the_flag() {
    for (text, words) in [
        ("dynamic", "GPU-c cannot be divided"),
        ("7=dynamic", "--partition-layout 7: this machine has 3 GPUs"),
        ("0=4g.40gb,4g.40gb", "there is no room for 4g.40gb"),
        ("0=5g.50gb", "no profile '5g.50gb'"),
    ] {
        let problem = resolved(layout(text)).unwrap_err();
        assert!(problem.contains(words), "{text}: {problem}");
    }
    let kept = Wishes {
        keep_whole: Some(2),
        ..layout("0=dynamic")
    };
    let problem = resolved(kept).unwrap_err();
    assert!(problem.contains("--keep-whole 2: 1 GPUs"), "{problem}");
    let priced = Wishes {
        slice_price: Some(prices("7g.40gb=1").unwrap()),
        ..layout("0=dynamic")
    };
    let problem = resolved(priced).unwrap_err();
    assert!(problem.contains("--slice-price 7g.40gb"), "{problem}");
    for wrong in [
        "",
        "half",
        "0=",
        "3g.40gb,",
        "dynamic:",
        "dynamic:all",
        "3g.40gb;;off",
    ] {
        assert!(layouts(wrong).is_err(), "{wrong} was accepted");
    }
    for wrong in [
        "",
        "3g.40gb",
        "3g.40gb=",
        "3g.40gb=-1",
        "3g.40gb=1,3g.40gb=2",
        "3g=1",
    ] {
        assert!(prices(wrong).is_err(), "{wrong} was accepted");
    }
}

/// Two MI300X, whole.
fn equal_host() -> (Machine, Divisibles) {
    let names = ["GPU-a", "GPU-b"];
    let divisible = |gpu: &str| Divisible {
        gpu: ResourceName::cut(gpu),
        mode: Mode::Whole,
        chip: Model::Mi300x.chip(196_592).unwrap(),
        standing: Vec::new(),
        in_use: false,
        uniform: Division::new(Model::Mi300x, ComputeMode::Spx, MemoryMode::Nps1).ok(),
    };
    let all = names.map(|gpu| (ResourceName::cut(gpu), divisible(gpu)));
    (machine(&names.map(plain_gpu)), all.into_iter().collect())
}

#[test]
fn equal_parts_are_said_for_all_gpus_of_the_host_alike() {
    let said = |text: &str| resolved_on(layout(text), equal_host());
    let eighths = PartitionLayout::Uniform("CPX/NPS4".parse().unwrap());
    let policy = said("cpx/nps4").unwrap();
    assert_eq!(cut(&policy), [("GPU-a", &eighths), ("GPU-b", &eighths)]);
    for (text, words) in [
        ("0=CPX", "divided alike"),
        ("0=CPX;1=DPX", "divided alike"),
        ("DPX/NPS4", "NPS4 goes with CPX only"),
        ("TPX", "do not divide as TPX"),
        ("1g.24gb", "divided into equal parts at once"),
        ("dynamic", "divided into equal parts at once"),
    ] {
        let problem = said(text).unwrap_err();
        assert!(problem.contains(words), "{text}: {problem}");
    }
    let problem = resolved(layout("0=CPX")).unwrap_err();
    assert!(
        problem.contains("is cut into slices like 3g.40gb"),
        "{problem}"
    );
}

/// Between two renters there is then no wall, of memory or of faults.
#[test]
fn what_only_a_driver_keeps_apart_is_refused_with_the_reason() {
    for text in ["mps", "MPS:4", "time-slicing", "0=time_slicing:2", "shared"] {
        let problem = layouts(text).unwrap_err();
        assert!(
            problem.contains("keeps nothing of two renters apart"),
            "{text}: {problem}"
        );
    }
}
