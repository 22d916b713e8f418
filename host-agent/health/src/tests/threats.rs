//! Rows of the threat model that faults are about, and complaints about others' handling of them.

use super::stage::{GIB, Stage, alarms, ended, gpu, renter, restored, withdrawn};
use crate::between::Dirty;
use crate::input::{Act, Input};
use crate::unit::{Fitness, Settings, Until};
use host_nvml::news::GpuState;
use host_nvml::sample::{ClockReasons, Process, ProcessKind};
use protocol::lease::FaultClass::{Hardware, Program};
use protocol::lease::{FaultClass, Party};
use protocol::units::Bytes;

/// Row 10: throttled after it was verified.
#[test]
fn row_10_a_clock_at_40_percent_lowers_the_grade() {
    let mut stage = Stage::new();
    stage.reads(0, |reading| {
        reading.clock_reasons = Some(ClockReasons(0x4));
        reading.graphics_clock_mhz = Some(800);
    });
    let acts = stage.run(70);
    let graded = acts
        .iter()
        .any(|act| matches!(act, Act::Grade { lowered: Some(why), .. } if why.contains("40 %")));
    assert!(graded);
    assert!(stage.is_fit(0));
    stage.reads(0, |reading| reading.graphics_clock_mhz = Some(1_900));
    let acts = stage.run(70);
    assert!(
        acts.iter()
            .any(|act| matches!(act, Act::Grade { lowered: None, .. }))
    );
}

/// Heat for more than a minute is told, and lowers the grade; nothing is ended.
#[test]
fn heat_lowers_the_grade_and_ends_nothing() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.reads(0, |reading| {
        reading.clock_reasons = Some(ClockReasons(0x40))
    });
    let acts = stage.run(58);
    assert!(!acts.iter().any(|act| matches!(act, Act::Grade { .. })));
    let acts = stage.run(10);
    assert!(acts.iter().any(|act| matches!(
        act,
        Act::Grade {
            lowered: Some(_),
            ..
        }
    )));
    assert_eq!(alarms(&acts).len(), 1);
    assert!(stage.has(1));
}

/// Row 44: what a lease leaves behind. peers 77: leftover processes are looked for before it is listed again.
#[test]
fn row_44_memory_that_is_still_in_use_is_not_leased_again() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.reads(0, |reading| reading.memory_used = Some(Bytes(5 * GIB)));
    assert_eq!(withdrawn(&stage.leave(1)), ["GPU-0"]);
    assert_eq!(stage.fitness(0), Fitness::Cleaning);
    let acts = stage.run(12);
    assert!(matches!(
        stage.fitness(0),
        Fitness::Quarantined {
            until: Until::Tested,
            ..
        }
    ));
    assert_eq!(alarms(&acts).len(), 1);
    assert!(!acts.iter().any(|act| matches!(act, Act::Scrub { .. })));
    // It is looked at again by itself, and fit once the memory is free.
    stage.reads(0, |reading| reading.memory_used = Some(Bytes(0)));
    let acts = stage.run(70);
    assert!(stage.is_fit(0));
    assert_eq!(restored(&acts), ["GPU-0"]);
    assert_eq!(stage.fit().len(), 8);
}

#[test]
fn row_44_a_driver_that_does_not_clear_memory_gets_no_second_lease() {
    let mut stage = Stage::new();
    stage.scrub = Err(Dirty::DriverKeeps);
    stage.take(1, &[0]);
    stage.leave(1);
    let acts = stage.run(20);
    assert!(alarms(&acts)[0].contains("RMDisableScrubOnFree"));
    assert!(
        stage
            .health
            .unfit(&[crate::machine::Place::whole(&gpu(0))])
            .is_some()
    );
}

/// Row 45: settings that a lease changed are told of, and set back.
#[test]
fn row_45_settings_that_drift_are_repaired() {
    let before = Settings {
        power_limit_mw: Some(700_000),
        ecc: Some(true),
        persistence: Some(true),
        divided: Some(false),
    };
    let hear = |stage: &mut Stage, settings: &Settings| {
        stage.hear(Input::Settings {
            gpu: gpu(0),
            settings: settings.clone(),
        })
    };
    let mut stage = Stage::new();
    hear(&mut stage, &before);
    stage.take(1, &[0]);
    assert_eq!(hear(&mut stage, &before), []);
    let changed = Settings {
        power_limit_mw: Some(300_000),
        ..before.clone()
    };
    let acts = hear(&mut stage, &changed);
    assert_eq!(alarms(&acts).len(), 1);
    let repair = Act::Repair {
        gpu: gpu(0),
        settings: before,
    };
    assert!(acts.contains(&repair));
    // What its owner sets while nobody has it is no drift.
    let mut stage = Stage::new();
    hear(&mut stage, &changed);
    assert_eq!(hear(&mut stage, &Settings::default()), []);
}

/// Row 46: errors that a program brings about give no refund, and are counted.
#[test]
fn row_46_a_program_that_fails_pays_for_itself() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    for xid in [31, 13, 43, 69] {
        assert_eq!(ended(&stage.xid(0, xid, None)), []);
    }
    assert!(stage.has(1) && stage.is_fit(0));
    assert_eq!(stage.health.provoked(renter(1)), 4);
    assert_eq!(stage.health.provoked(renter(2)), 0);
    // Where the driver wants a reset for it, the lease ends at its renter's expense.
    stage.wants(0, host_nvml::sample::RecoveryAction::Reset);
    let acts = stage.sample(&gpu(0));
    assert_eq!(ended(&acts), [(1, 69, Program)]);
    assert_eq!(FaultClass::Program.party(), Party::Renter);
    assert_eq!(FaultClass::Hardware.party(), Party::Host);
}

/// Row 47: `0 95` ends leases of GPU 0 alone, `0 94` in slice 3 that slice's.
#[test]
fn row_47_no_fault_reaches_beyond_its_domain() {
    let mut stage = Stage::new();
    stage.take_slice(1, 0, 3);
    stage.take_slice(2, 0, 5);
    stage.take(3, &[1]);
    stage.take(4, &[6, 7]);
    assert_eq!(ended(&stage.xid(0, 94, Some(3))), [(1, 94, Hardware)]);
    stage.run(10);
    assert!(stage.has(2) && stage.has(3) && stage.has(4));
    assert_eq!(ended(&stage.xid(0, 95, None)), [(2, 95, Hardware)]);
    stage.run(10);
    assert!(stage.has(3) && stage.has(4));
    // A slice that nobody has is nobody's.
    let mut stage = Stage::new();
    stage.take_slice(1, 0, 3);
    assert_eq!(ended(&stage.xid(0, 94, Some(9))), []);
}

/// Row 48: a driver that hangs on one GPU. peers 81: one lost GPU does not block all. peers 47: unknown is not dead.
#[test]
fn row_48_a_gpu_that_does_not_answer_is_unknown_and_its_lease_goes_on() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.take(2, &[1]);
    let hangs = GpuState::Unknown {
        reason: "it did not answer within 2 s".to_owned(),
    };
    let acts = stage.state(0, hangs.clone());
    assert_eq!(withdrawn(&acts), ["GPU-0"]);
    let acts = stage.run(600);
    assert_eq!(ended(&acts), []);
    assert_eq!(withdrawn(&acts), [""; 0]);
    assert!(stage.has(1) && stage.has(2));
    assert_eq!(stage.fit(), [1, 2, 3, 4, 5, 6, 7]);
    // peers 82: it is fit again when it answers, without a restart.
    assert_eq!(restored(&stage.state(0, GpuState::Ready)), ["GPU-0"]);
    assert_eq!(stage.fit().len(), 8);
}

/// peers 83: health is each GPU's own.
#[test]
fn health_is_kept_by_gpu() {
    for number in 0..8 {
        let mut stage = Stage::new();
        stage.xid(number, 79, None);
        let others: Vec<usize> = (0..8).filter(|other| *other != number).collect();
        assert_eq!(stage.fit(), others);
    }
}

/// peers 84: what is not sound is not advertised. peers 89: an Xid 79 is told, withdrawn and credited.
#[test]
fn a_gpu_off_the_bus_is_withdrawn_and_its_lease_is_the_hosts_fault() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    let acts = stage.line("NVRM: Xid (PCI:0000:00:00): 79, pid=1122, GPU has fallen off the bus.");
    assert_eq!(ended(&acts), [(1, 79, Hardware)]);
    assert_eq!(withdrawn(&acts), ["GPU-0"]);
    assert_eq!(stage.until(0), Some(Until::Reboot));
    let mut stage = Stage::new();
    stage.line("NVRM: GPU 0000:00:00.0: GPU has fallen off the bus.");
    assert_eq!(stage.until(0), Some(Until::Reboot));
}

/// peers 76: a container that cannot be killed because its GPU fell off: billing stops with the lease, the GPU is
/// not leased again, and the host is degraded, not dead.
#[test]
fn a_container_that_cannot_be_killed_keeps_its_gpu_from_the_next() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.reads(0, |reading| {
        reading.processes = Some(vec![Process {
            pid: 31,
            kind: ProcessKind::Compute,
            memory: None,
            gpu_instance: None,
            compute_instance: None,
        }]);
    });
    assert_eq!(ended(&stage.xid(0, 79, None)), [(1, 79, Hardware)]);
    let acts = stage.run(600);
    assert!(
        alarms(&acts).iter().any(|text| text.contains("[31]")),
        "{acts:?}"
    );
    assert!(!stage.is_fit(0));
    assert_eq!(stage.fit(), [1, 2, 3, 4, 5, 6, 7]);
}

/// peers 126, 123: a reset waits for who holds the GPU, and its failure is told.
#[test]
fn a_reset_that_fails_is_tried_again_and_then_left_to_a_reboot() {
    let mut stage = Stage::new();
    stage.reset = Err("GPU is in use by nvidia-persistenced".to_owned());
    let mut acts = stage.xid(0, 95, None);
    acts.extend(stage.run(600));
    assert_eq!(super::stage::resets(&acts), 3);
    assert!(alarms(&acts)[0].contains("nvidia-persistenced"));
    assert_eq!(stage.until(0), Some(Until::Reboot));
}
