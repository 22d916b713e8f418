//! GPUs that are divided into equal parts: changed only while idle, sold part by part, and never whole meanwhile.

use super::*;
use crate::core::slices::acts::{Act, Device, Wanted, acts, device};
use crate::core::slices::known::{Known, foreign};
use crate::hardware::amd::parts::parts;
use mig::amd::{ComputeMode, Division, MemoryMode, Model, Modes};

fn division(text: &str) -> Division {
    let modes: Modes = text.parse().unwrap();
    let memory = modes.memory.unwrap_or(MemoryMode::Nps1);
    Division::new(Model::Mi300x, modes.compute, memory).unwrap()
}

fn layout(text: &str) -> PartitionLayout {
    PartitionLayout::Uniform(text.parse().unwrap())
}

fn mi300x(gpu: &str, now: &str) -> Divisible {
    let chip = Model::Mi300x.chip(196_592).unwrap();
    let now = division(now);
    let standing = parts(&chip, now, |part| {
        Some(Text::cut(&format!("renderD{}", 128 + part)))
    });
    Divisible {
        gpu: name(gpu),
        mode: if standing.is_empty() {
            Mode::Whole
        } else {
            Mode::Divided
        },
        chip,
        standing,
        in_use: false,
        uniform: Some(now),
    }
}

fn host_of(gpus: &[Divisible]) -> Divisibles {
    gpus.iter()
        .map(|gpu| (gpu.gpu.clone(), gpu.clone()))
        .collect()
}

/// Which GPUs are divided now, with what is held.
fn divided(gpus: &[Divisible], wanted: &str, held: &[&str]) -> Vec<String> {
    let layouts: Vec<(&str, PartitionLayout)> = gpus
        .iter()
        .map(|gpu| (gpu.gpu.as_str(), layout(wanted)))
        .collect();
    let (policy, held) = (policy(&layouts), names(held));
    let all = Wanted {
        policy: &policy,
        held: &held,
        planned: &BTreeSet::new(),
    };
    let acts = acts(all, &host_of(gpus), &Known::new());
    let said = acts.into_values().map(|act| match act {
        Act::Divide { gpu, division } => format!("{gpu} {division}"),
        other @ (Act::SetMode { .. } | Act::Make { .. } | Act::End { .. }) => panic!("{other:?}"),
    });
    said.collect()
}

#[test]
fn compute_is_divided_while_the_gpu_is_idle() {
    let gpus = [mi300x("GPU-a", "SPX"), mi300x("GPU-b", "SPX")];
    let both = ["GPU-a CPX/NPS1", "GPU-b CPX/NPS1"];
    assert_eq!(divided(&gpus, "CPX", &[]), both);
    assert_eq!(divided(&gpus, "CPX", &["GPU-a"]), both[1..]);
    assert_eq!(divided(&gpus, "CPX", &["machine"]), [""; 0]);
    let used = Divisible {
        in_use: true,
        ..mi300x("GPU-b", "SPX")
    };
    assert_eq!(divided(&[gpus[0].clone(), used], "CPX", &[]), both[..1]);
    // A part that is leased keeps its GPU as it is; what is so already is not touched.
    let gpus = [mi300x("GPU-a", "CPX"), mi300x("GPU-b", "CPX")];
    assert_eq!(
        divided(&gpus, "SPX", &["GPU-a/1g.24gb@3+1"]),
        ["GPU-b SPX/NPS1"]
    );
    assert_eq!(divided(&gpus, "CPX", &[]), [""; 0]);
}

#[test]
fn memory_is_divided_while_the_whole_host_is_idle() {
    let gpus = [mi300x("GPU-a", "CPX"), mi300x("GPU-b", "CPX")];
    let both = ["GPU-a CPX/NPS4", "GPU-b CPX/NPS4"];
    assert_eq!(divided(&gpus, "CPX/NPS4", &[]), both);
    assert_eq!(divided(&gpus, "CPX/NPS4", &["GPU-b/1g.24gb@0+1"]), [""; 0]);
}

#[test]
fn parts_are_sold_where_the_gpu_is_divided_so_and_it_is_not_sold_whole() {
    let policy = policy(&[("GPU-a", layout("CPX")), ("GPU-b", layout("CPX"))]);
    let (mut machine, mut listing) = host(&["GPU-a", "GPU-b"], policy);
    let mut gpus = machine.gpus.clone().into_vec();
    for gpu in &mut gpus {
        gpu.vendor = protocol::machine::Vendor::Amd;
        gpu.model = Text::cut("Instinct MI300X");
        gpu.vram = Bytes(196_592 << 20);
        gpu.multiprocessors = 304;
    }
    machine.gpus = List::first(gpus);
    let half = host_of(&[mi300x("GPU-a", "CPX"), mi300x("GPU-b", "SPX")]);
    let offers = offered(&machine, &listing, &half);
    assert_eq!(offers.len(), 1);
    let partition = offers[0].partition.as_ref().unwrap();
    assert_eq!(partition.profile.as_str(), "1g.24gb");
    assert_eq!(partition.vram, Bytes(24_574 << 20));
    assert_eq!(
        (partition.multiprocessors, partition.memory_slices),
        ((38, 304), (1, 8))
    );
    assert_eq!(offers[0].share.resources.len(), 8);
    assert_eq!(protocol::catalogue::plausible(&offers[0]), Ok(()));
    // Divided by somebody else in another way, it is sold in no way, also where wholes are sold beside slices.
    listing.slices.also_whole = true;
    let other = host_of(&[mi300x("GPU-a", "DPX"), mi300x("GPU-b", "DPX")]);
    assert!(offered(&machine, &listing, &other).is_empty());
}

#[test]
fn a_part_has_its_device_and_is_nobodys_instance() {
    let gpus = host_of(&[mi300x("GPU-a", "CPX")]);
    let known = Known::new();
    assert!(foreign(&known, &gpus).is_empty());
    assert_eq!(
        device(&name("GPU-a/1g.24gb@3+1"), &gpus, &known),
        Device::Ready(name("renderD131"))
    );
    assert_eq!(
        device(&name("GPU-a"), &gpus, &known),
        Device::Never("the GPU is divided")
    );
    assert_eq!(
        device(&name("GPU-a/4g.96gb@0+4"), &gpus, &known),
        Device::Never("the GPU is not divided so any more")
    );
    let whole = host_of(&[mi300x("GPU-a", "SPX")]);
    assert_eq!(
        device(&name("GPU-a"), &whole, &known),
        Device::Ready(name("GPU-a"))
    );
}

#[test]
fn each_way_of_dividing_is_for_its_own_gpus() {
    let (nvidia, amd) = (divisible("GPU-a", Mode::Whole), mi300x("GPU-b", "SPX"));
    for (layout, gpu, fits) in [
        (layout("CPX"), &amd, true),
        (layout("CPX/NPS4"), &amd, true),
        (layout("TPX"), &amd, false),
        (layout("DPX/NPS4"), &amd, false),
        (fixed(&["1g.24gb"]), &amd, false),
        (dynamic(&[]), &amd, false),
        (layout("CPX"), &nvidia, false),
        (fixed(&["3g.40gb"]), &nvidia, true),
    ] {
        assert_eq!(layout.check(gpu).is_ok(), fits, "{layout:?} {}", gpu.gpu);
    }
    assert_eq!(division("SPX").modes().compute, ComputeMode::Spx);
}

/// The driver's twin and the rules together: divided once, left alone while a part is leased, whole again after that.
#[test]
fn a_layout_is_reached_kept_and_left() {
    let driver = SimDriver::default();
    driver.put(mi300x("GPU-a", "SPX"));
    let turn = |wanted: &str, held: &[&str]| {
        let (policy, held) = (policy(&[("GPU-a", layout(wanted))]), names(held));
        let all = Wanted {
            policy: &policy,
            held: &held,
            planned: &BTreeSet::new(),
        };
        let next = acts(all, &driver.seen(), &Known::new());
        for act in next.values() {
            driver.told_to(act).unwrap();
        }
        next.len()
    };
    assert_eq!(turn("QPX", &[]), 1);
    assert_eq!(turn("QPX", &[]), 0);
    assert!(driver.has(&name("GPU-a/2g.48gb@6+2")));
    assert_eq!(turn("SPX", &["GPU-a/2g.48gb@6+2"]), 0);
    assert_eq!(turn("SPX", &[]), 1);
    assert_eq!(driver.seen()[&name("GPU-a")].mode, Mode::Whole);
}
