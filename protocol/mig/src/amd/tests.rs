//! Which divisions there are, what each is sold as, and what a change takes.

use super::*;

#[track_caller]
fn of(compute: ComputeMode, memory: MemoryMode) -> (u8, u16, u16) {
    let division = Division::new(Model::Mi300x, compute, memory).unwrap();
    (
        division.devices(),
        division.compute_units(),
        division.memory_gb(),
    )
}

#[test]
fn an_mi300x_divides_evenly() {
    assert_eq!(of(ComputeMode::Spx, MemoryMode::Nps1), (1, 304, 192));
    assert_eq!(of(ComputeMode::Dpx, MemoryMode::Nps1), (2, 152, 96));
    assert_eq!(of(ComputeMode::Qpx, MemoryMode::Nps1), (4, 76, 48));
    assert_eq!(of(ComputeMode::Cpx, MemoryMode::Nps1), (8, 38, 24));
    assert_eq!(of(ComputeMode::Cpx, MemoryMode::Nps4), (8, 38, 24));
}

#[test]
fn what_the_driver_refuses_is_invalid() {
    use ComputeMode::{Cpx, Dpx, Qpx, Spx, Tpx};
    for compute in [Spx, Dpx, Qpx] {
        let refused = Division::new(Model::Mi300x, compute, MemoryMode::Nps4);
        assert_eq!(refused, Err(Invalid::Memory(compute)));
    }
    let dies = |model, compute| Err(Invalid::Dies(model, compute));
    for (model, compute) in [
        (Model::Mi300x, Tpx),
        (Model::Mi300a, Dpx),
        (Model::Mi300a, Qpx),
    ] {
        let refused = Division::new(model, compute, MemoryMode::Nps1);
        assert_eq!(refused, dies(model, compute));
    }
    let refused = Division::new(Model::Mi300a, Cpx, MemoryMode::Nps4);
    assert_eq!(refused, Err(Invalid::Undivided(Model::Mi300a)));
    let thirds = Division::new(Model::Mi300a, Tpx, MemoryMode::Nps1).unwrap();
    assert_eq!((thirds.devices(), thirds.compute_units()), (3, 76));
}

#[test]
fn a_change_of_memory_is_for_the_whole_host() {
    let of = |compute, memory| Division::new(Model::Mi300x, compute, memory).unwrap();
    let whole = of(ComputeMode::Spx, MemoryMode::Nps1);
    let eighths = of(ComputeMode::Cpx, MemoryMode::Nps1);
    let domains = of(ComputeMode::Cpx, MemoryMode::Nps4);
    assert_eq!(whole.needs(&whole), Needs::Nothing);
    assert_eq!(whole.needs(&eighths), Needs::IdleGpu);
    assert_eq!(eighths.needs(&domains), Needs::IdleHostAndRestart);
    assert_eq!(domains.to_string(), "CPX/NPS4");
}

#[test]
fn each_mode_is_one_profile_at_every_place() {
    // 192 GB as the driver counts them: 196 592 MiB.
    let chip = Model::Mi300x.chip(196_592).unwrap();
    let profiles: Vec<_> = chip
        .profiles()
        .map(|(_, it)| {
            (
                it.name.as_str(),
                it.size,
                it.starts.clone(),
                it.memory_mib,
                it.sm,
            )
        })
        .collect();
    assert_eq!(
        profiles,
        [
            ("4g.96gb", 4, vec![0, 4], 98_296, 152),
            ("2g.48gb", 2, vec![0, 2, 4, 6], 49_148, 76),
            ("1g.24gb", 1, (0..8).collect(), 24_574, 38),
        ]
    );
    let chip = Model::Mi300a.chip(131_072).unwrap();
    let names: Vec<&str> = chip.profiles().map(|(_, it)| it.name.as_str()).collect();
    assert_eq!(names, ["2g.42gb", "1g.21gb"]);
    assert_eq!(chip.geometry().sm_total, 228);
}

#[test]
fn a_part_has_a_slices_name_that_excludes_its_whole_and_what_overlaps() {
    use crate::name::{excludes, is_well_formed};
    let gpu = "GPU-fc23a1b4d5e6f708";
    let part = |slice: &str| format!("{gpu}/{slice}");
    let eighth = part("1g.24gb@3+1");
    assert!(is_well_formed(&eighth));
    assert!(excludes(gpu, &eighth) && excludes(&part("4g.96gb@0+4"), &eighth));
    assert!(!excludes(&part("1g.24gb@4+1"), &eighth));
    assert!(!excludes(&part("4g.96gb@4+4"), &eighth));
}

#[test]
fn modes_are_read_as_they_are_written_and_models_by_their_names() {
    for text in ["SPX", "CPX/NPS4", "DPX/NPS1"] {
        assert_eq!(text.parse::<Modes>().unwrap().to_string(), text);
    }
    assert_eq!("cpx/nps4".parse::<Modes>().unwrap().to_string(), "CPX/NPS4");
    for text in ["", "CPX/", "/NPS1", "1g.24gb", "CPX/NPS2", "CPX/NPS4/NPS1"] {
        assert!(text.parse::<Modes>().is_err(), "{text}");
    }
    assert_eq!(Model::find("AMD Instinct MI300X"), Some(Model::Mi300x));
    assert_eq!(Model::find("Instinct MI300A"), Some(Model::Mi300a));
    assert_eq!(Model::find("Radeon RX 7900 XTX"), None);
}

#[test]
fn memory_stays_as_it_is_where_none_is_asked_for() {
    let domains = Division::new(Model::Mi300x, ComputeMode::Cpx, MemoryMode::Nps4).unwrap();
    let with = |text: &str| domains.with(text.parse().unwrap());
    assert_eq!(with("CPX"), Ok(domains));
    assert_eq!(with("SPX"), Err(Invalid::Memory(ComputeMode::Spx)));
    assert_eq!(with("SPX/NPS1").unwrap().to_string(), "SPX/NPS1");
}
