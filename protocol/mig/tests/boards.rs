//! Which board a product is, and what a host may say of its slices.

#![expect(
    clippy::unwrap_used,
    reason = "what is around the tests is test code too"
)]

use mig::board::{Board, Cut, Reported, TableProblem, boards, find_board};
use mig::chip::{Chip, ChipError, Geometry, NvmlProfile, Profile};

fn chip(board: &Board) -> &Chip {
    match &board.cut {
        Cut::Known(chip) => chip,
        Cut::Named { .. } => panic!("{} has names only", board.id),
    }
}

fn board(id: &str) -> &'static Board {
    boards().iter().find(|board| board.id == id).unwrap()
}

fn reported(profile: &Profile) -> Reported {
    Reported {
        name: profile.name.clone(),
        id: profile.id,
        compute: profile.compute,
        size: profile.size,
        starts: profile.starts.clone(),
        count_max: profile.count_max,
        memory_mib: profile.memory_mib,
        sm: profile.sm,
    }
}

fn table(board: &Board) -> Vec<Reported> {
    chip(board)
        .profiles()
        .map(|(_, profile)| reported(profile))
        .collect()
}

#[test]
fn a_product_and_its_memory_tell_the_board() {
    assert_eq!(boards().len(), 15);
    // Names and MiB as `nvidia-smi` prints them.
    for (product, mib, wanted) in [
        ("NVIDIA A30", 24_576, Some("A30-24")),
        ("NVIDIA A100-SXM4-40GB", 40_960, Some("A100-40")),
        ("A100-SXM4-40GB", 40_537, Some("A100-40")),
        ("NVIDIA A100 80GB PCIe", 81_920, Some("A100-80")),
        ("NVIDIA A800-SXM4-80GB", 81_920, Some("A100-80")),
        ("NVIDIA H100 80GB HBM3", 81_559, Some("H100-80")),
        ("NVIDIA H100 PCIe", 81_559, Some("H100-80")),
        ("NVIDIA H100 NVL", 95_830, Some("H100-94")),
        ("NVIDIA GH200 480GB", 97_871, Some("GH200-96")),
        ("NVIDIA GH200 144G HBM3e", 146_831, Some("GH200-144")),
        ("NVIDIA H20", 97_871, Some("GH200-96")),
        ("NVIDIA H200", 143_771, Some("H200-141")),
        ("NVIDIA B200", 183_359, Some("B200-180")),
        ("NVIDIA GB200", 189_471, Some("GB200-186")),
        (
            "NVIDIA RTX PRO 6000 Blackwell Server Edition",
            97_887,
            Some("RTXPRO6000-96"),
        ),
        // An H20 with 141 GB is another one; a virtual GPU has less memory; no board is meant by a part.
        ("NVIDIA H20-3e", 143_771, None),
        ("GRID A100-10C", 10_240, None),
        ("NVIDIA RTX 6000 Ada Generation", 49_140, None),
        ("NVIDIA GeForce RTX 4090", 24_564, None),
        ("NVIDIA A3000", 24_576, None),
        ("", 0, None),
        ("NVIDIA A30", u64::MAX >> 20, None),
    ] {
        let found = find_board(product, mib << 20).map(|board| &*board.id);
        assert_eq!(found, wanted, "{product}");
    }
}

#[test]
fn the_numbers_of_nvml_and_of_nvidia_smi_are_told_apart() {
    let chip = chip(board("A100-40"));
    let of = |name: &str| {
        let profile = chip.profile(chip.find(name).unwrap()).unwrap();
        (profile.id, profile.nvml.unwrap().number())
    };
    assert_eq!(of("1g.5gb"), (19, 0x0));
    assert_eq!(of("1g.5gb+me"), (20, 0x7));
    assert_eq!(of("1g.10gb"), (15, 0x9));
    assert_eq!(of("2g.10gb"), (14, 0x1));
    assert_eq!(of("3g.20gb"), (9, 0x2));
    assert_eq!(of("4g.20gb"), (5, 0x3));
    assert_eq!(of("7g.40gb"), (0, 0x4));
    assert_eq!(NvmlProfile::TwoAllMedia.number(), 0x10);
}

#[test]
fn a_driver_may_differ_in_memory_and_in_nothing_else() {
    let board = board("A100-40");
    let honest = table(board);
    let chip = board.chip(&honest, 0).unwrap();
    assert_eq!(&chip, self::chip(board));

    // 20 091 MiB are known: 8 % are 1 607.28.
    let with = |change: &dyn Fn(&mut Reported)| {
        let mut table = honest.clone();
        change(table.iter_mut().find(|p| p.name == "3g.20gb").unwrap());
        board.chip(&table, 0)
    };
    for (mib, holds) in [
        (19_968, true),
        (21_698, true),
        (21_699, false),
        (18_484, true),
        (18_483, false),
    ] {
        let found = with(&|profile| profile.memory_mib = mib);
        assert_eq!(found.is_ok(), holds, "{mib}");
        if let Err(problem) = found {
            let wanted = TableProblem::Memory {
                profile: "3g.20gb".to_owned(),
                reported: mib,
                known: 20_091,
            };
            assert_eq!(problem, wanted);
            let text = problem.to_string();
            assert!(
                text.contains(&mib.to_string()) && text.contains("20091"),
                "{text}"
            );
        }
    }

    // The stand-in of a well-known library says this of a three-slice profile; no hardware does.
    let wrong = with(&|profile| (profile.size, profile.starts) = (3, vec![0, 4]));
    let wanted = TableProblem::Shape {
        profile: "3g.20gb".to_owned(),
        reported: (3, 3, 2, vec![0, 4]),
        known: (3, 4, 2, vec![0, 4]),
    };
    assert_eq!(wrong, Err(wanted));
    assert!(with(&|profile| profile.starts = vec![0]).is_err());
    assert!(with(&|profile| profile.count_max = 3).is_err());
    assert!(with(&|profile| profile.compute = 4).is_err());
    assert!(matches!(
        with(&|profile| profile.name = "3g.40gb".to_owned()),
        Err(TableProblem::Unknown { .. })
    ));
    let twice = [honest.clone(), honest.clone()].concat();
    assert_eq!(
        board.chip(&twice, 0),
        Err(TableProblem::Chip(ChipError::Twice("1g.5gb".to_owned())))
    );
}

#[test]
fn an_older_driver_and_another_board_of_the_chip_are_taken() {
    let board = board("H100-80");
    // Before 525 there was no profile of double memory; the PCIe board has 114 multiprocessors.
    let older: Vec<Reported> = table(board)
        .into_iter()
        .filter(|p| p.name != "1g.20gb")
        .collect();
    let chip = board.chip(&older, 114).unwrap();
    assert_eq!(chip.find("1g.20gb"), None);
    assert_eq!(chip.geometry().sm_total, 114);
    assert!(matches!(
        board.chip(&[], 114),
        Err(TableProblem::Chip(ChipError::Profiles(0)))
    ));
}

#[test]
fn of_a_board_known_by_name_the_driver_says_the_rest() {
    let board = board("B300-288");
    let of = |name: &str| Reported {
        name: name.to_owned(),
        id: 9,
        compute: 3,
        size: 4,
        starts: vec![0, 4],
        count_max: 2,
        memory_mib: 137_000,
        sm: 60,
    };
    let chip = board.chip(&[of("3g.135gb")], 0).unwrap();
    assert_eq!(
        chip.cap(chip.find("3g.135gb").unwrap(), Default::default()),
        2
    );
    assert!(board.chip(&[of("3g.136gb")], 0).is_err());
}

#[test]
fn no_table_of_a_stranger_does_harm() {
    let profile = |size: u8, starts: &[u8]| Profile {
        name: "1g.5gb".to_owned(),
        id: 19,
        nvml: None,
        compute: 1,
        size,
        starts: starts.to_vec(),
        count_max: 7,
        memory_mib: 0,
        sm: 0,
        engines: Default::default(),
    };
    let new = |axis: u8, profiles: Vec<Profile>| {
        let geometry = Geometry {
            axis,
            compute: 7,
            instances_max: 7,
            sm_total: 0,
        };
        Chip::new(geometry, profiles)
    };
    assert!(new(8, vec![profile(1, &[0, 1])]).is_ok());
    assert_eq!(new(0, vec![profile(1, &[0])]), Err(ChipError::Axis(0)));
    assert_eq!(new(255, vec![profile(1, &[0])]), Err(ChipError::Axis(255)));
    assert_eq!(new(16, vec![profile(1, &[0])]), Err(ChipError::Axis(16)));
    for wrong in [
        profile(0, &[0]),
        profile(1, &[]),
        profile(1, &[8]),
        profile(255, &[255]),
        profile(1, &[1, 0]),
    ] {
        let refused = new(8, vec![wrong]);
        assert_eq!(refused, Err(ChipError::Profile("1g.5gb".to_owned())));
    }
}
