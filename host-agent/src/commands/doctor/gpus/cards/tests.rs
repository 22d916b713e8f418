//! Each thing that can be wrong with a card: one line of its own, with what is there and what is needed.

use super::*;
use host_nvml::facts::Identity;
use host_nvml::sample::{EccCounters, RemappedRows};
use host_nvml::slices::MigMode;
use protocol::bounded::Text;
use protocol::machine::Vendor;
use protocol::operator::doctor::Grade;

fn gpu() -> Gpu {
    Gpu {
        model: Text::cut("NVIDIA H100 80GB HBM3"),
        uuid: Text::cut("GPU-0a"),
        vram: Bytes(85_520_000_000),
        pci_address: Text::cut("0000:05:00.0"),
        pcie_generation: 5,
        pcie_width: 16,
        ecc: Some(true),
        is_divided: Some(false),
        ..Gpu::unknown(Vendor::Nvidia)
    }
}

fn reading() -> Reading {
    Reading {
        temperature_c: Some(61),
        power_mw: Some(412_500),
        power_limit_mw: Some(700_000),
        memory_used: Some(Bytes(1_250_000_000)),
        pcie: Some((1, 16)),
        ecc: Some(EccCounters::default()),
        remapped: Some(RemappedRows::default()),
        recovery: Some(RecoveryAction::None),
        ..Reading::default()
    }
}

fn description() -> Description {
    Description {
        identity: Identity {
            uuid: Text::cut("GPU-0a"),
            pci: Text::cut("00000000:05:00.0"),
        },
        name: Text::cut("NVIDIA H100 80GB HBM3"),
        driver: Text::cut("580.178.04"),
        cuda: None,
        compute_capability: None,
        cores: None,
        memory: Bytes(0),
        memory_reserved: None,
        memory_bus_bits: None,
        pci_device: None,
        minor: None,
        pcie_max: None,
        power_limit_mw: None,
        power_limits_mw: None,
        graphics_clock_max_mhz: None,
        memory_clock_max_mhz: None,
        temperature_max_c: Some(87),
        ecc: None,
        display_active: None,
        persistence: Some(true),
        mig: None,
        links: Vec::new(),
        serial: None,
    }
}

fn card<'a>(gpu: &'a Gpu, reading: &'a Reading) -> Card<'a> {
    Card {
        number: 0,
        gpu,
        description: Some(description()),
        reading: Some(reading),
        foreign: Vec::new(),
        pcie_under_load: Some((5, 16)),
    }
}

#[test]
fn a_sound_card_is_two_lines() {
    let (gpu, reading) = (gpu(), reading());
    let found = checks(&card(&gpu, &reading));
    let name = "0 NVIDIA H100 80GB HBM3";
    let wanted = [
        Check::ok(
            "gpu",
            format!("{name}: 61 °C, 412 W of 700 W, 1.2 GB of 85.5 GB in use, ECC on, MIG off"),
        ),
        Check::ok("pcie", format!("{name}: PCIe 5.0 x16 under load")),
    ];
    assert_eq!(found, wanted);
}

/// The line that is not as it should be: its name, grade, what was found and the fix.
#[track_caller]
fn wrong(card: &Card<'_>) -> (&'static str, Grade, String, String) {
    let found = checks(card);
    let mut wrong = found.into_iter().filter(|check| check.grade != Grade::Ok);
    let one = wrong.next().unwrap();
    assert_eq!(wrong.next(), None, "one thing is wrong");
    (one.name, one.grade, one.found, one.fix.unwrap())
}

#[track_caller]
fn says(card: &Card<'_>, name: &str, grade: Grade, found: &str, fix: &str) {
    let (is_name, is_grade, is_found, is_fix) = wrong(card);
    assert_eq!((is_name, is_grade), (name, grade));
    assert!(is_found.contains(found), "{is_found}");
    assert!(is_fix.contains(fix), "{is_fix}");
}

#[test]
fn each_thing_that_is_wrong_has_its_line() {
    let (gpu, reading) = (gpu(), reading());
    let mut used = card(&gpu, &reading);
    used.foreign.push(Held {
        process: 4211,
        name: "python".to_owned(),
        memory: Some(Bytes(3_100_000_000)),
    });
    let found = "process 4211 \"python\" holds 3.1 GB of it and is of no lease; needed none";
    says(&used, "leftover", Grade::Fail, found, "kill 4211");

    let mut pending = card(&gpu, &reading);
    let mig = MigMode {
        current: false,
        pending: true,
    };
    pending.description = Some(Description {
        mig: Some(mig),
        ..description()
    });
    let found = "MIG is off and waits for a reset to be on";
    says(
        &pending,
        "mig",
        Grade::Fail,
        found,
        "nvidia-smi --gpu-reset -i 0000:05:00.0",
    );

    let mut late = card(&gpu, &reading);
    late.description = Some(Description {
        persistence: Some(false),
        ..description()
    });
    says(
        &late,
        "persistence",
        Grade::Warn,
        "needed on",
        "nvidia-persistenced",
    );

    let mut slow = card(&gpu, &reading);
    slow.pcie_under_load = Some((3, 16));
    let found = "PCIe 3.0 x16 under load; card and slot can PCIe 5.0 x16";
    says(&slow, "pcie", Grade::Warn, found, "riser");

    let silent = Card {
        reading: None,
        ..card(&gpu, &reading)
    };
    says(
        &silent,
        "gpu",
        Grade::Warn,
        "did not say how it is",
        "dmesg",
    );
}

#[test]
fn lanes_are_looked_at_also_at_rest() {
    let (gpu, full) = (gpu(), reading());
    let rest = Card {
        pcie_under_load: None,
        ..card(&gpu, &full)
    };
    // At rest the first generation is no fault.
    assert!(checks(&rest).iter().all(|check| check.grade == Grade::Ok));
    let half = Reading {
        pcie: Some((1, 8)),
        ..reading()
    };
    let rest = Card {
        pcie_under_load: None,
        ..card(&gpu, &half)
    };
    says(
        &rest,
        "pcie",
        Grade::Warn,
        "8 lanes; card and slot can PCIe 5.0 x16",
        "slot",
    );
}

#[test]
fn errors_of_memory_have_their_lines() {
    let gpu = gpu();
    let with = |change: fn(&mut Reading)| {
        let mut reading = reading();
        change(&mut reading);
        reading
    };
    let broken = with(|it| {
        it.ecc = Some(EccCounters {
            uncorrected: 2,
            ..EccCounters::default()
        });
    });
    let found = "2 errors that were not corrected since the driver was loaded; needed 0";
    says(
        &card(&gpu, &broken),
        "ecc",
        Grade::Fail,
        found,
        "--gpu-reset",
    );
    let failed = with(|it| {
        it.remapped = Some(RemappedRows {
            failed: true,
            ..RemappedRows::default()
        });
    });
    says(
        &card(&gpu, &failed),
        "ecc",
        Grade::Fail,
        "could not be replaced",
        "return the card",
    );
    let waits = with(|it| {
        it.remapped = Some(RemappedRows {
            pending: true,
            ..RemappedRows::default()
        });
    });
    says(
        &card(&gpu, &waits),
        "ecc",
        Grade::Fail,
        "wait for a reset",
        "--gpu-reset",
    );
}

#[test]
fn heat_power_displays_and_the_drivers_own_word() {
    let gpu = gpu();
    let with = |change: fn(&mut Reading)| {
        let mut reading = reading();
        change(&mut reading);
        reading
    };
    let hot = with(|it| {
        it.temperature_c = Some(88);
        it.clock_reasons = Some(ClockReasons(ClockReasons::SOFTWARE_THERMAL));
    });
    says(
        &card(&gpu, &hot),
        "heat",
        Grade::Warn,
        "88 °C, and its clocks are lowered for it; needed below 87 °C",
        "fans",
    );
    let braked = with(|it| it.clock_reasons = Some(ClockReasons(ClockReasons::POWER_BRAKE)));
    says(
        &card(&gpu, &braked),
        "power",
        Grade::Warn,
        "needed no brake",
        "cables",
    );
    let asks = with(|it| it.recovery = Some(RecoveryAction::Reboot));
    says(
        &card(&gpu, &asks),
        "recovery",
        Grade::Fail,
        "wants a reboot of the machine",
        "dmesg",
    );
    let capped = with(|it| it.clock_reasons = Some(ClockReasons(ClockReasons::POWER_CAP)));
    assert!(
        checks(&card(&gpu, &capped))
            .iter()
            .all(|check| check.grade == Grade::Ok)
    );
    let unprotected = Gpu {
        ecc: Some(false),
        has_display: false,
        ..gpu.clone()
    };
    says(
        &card(&unprotected, &reading()),
        "ecc",
        Grade::Warn,
        "off, so errors",
        "-e 1",
    );
    let shown = Gpu {
        has_display: true,
        ..gpu
    };
    says(
        &card(&shown, &reading()),
        "display",
        Grade::Warn,
        "a display is driven by it",
        "multi-user.target",
    );
}

#[test]
fn the_system_around_them_has_its_lines() {
    let sound = System {
        driver: "580.178.04",
        parameters: Some("RegistryDwords: \"\"".to_owned()),
        iommu_groups: 42,
        is_root: true,
    };
    let wanted = [
        Check::ok("driver", "580.178.04"),
        Check::ok("iommu", "on, 42 groups of devices"),
    ];
    assert_eq!(system(&sound), wanted);
    let unsound = System {
        driver: "570.124.06",
        parameters: Some("RegistryDwords: \"RMDisableScrubOnFree=1;X=0\"".to_owned()),
        iommu_groups: 0,
        is_root: false,
    };
    let found = system(&unsound);
    let lines: Vec<(&str, Grade)> = found.iter().map(|it| (it.name, it.grade)).collect();
    let wanted = [
        ("driver", Grade::Warn),
        ("scrub", Grade::Fail),
        ("iommu", Grade::Warn),
        ("gpus inside", Grade::Warn),
    ];
    assert_eq!(lines, wanted);
    assert!(
        found[0]
            .found
            .contains("570.124.06: this branch is not mended; needed 580.178.04")
    );
}
