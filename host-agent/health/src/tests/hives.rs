//! AMD's GPUs, and switches of links.

use super::stage::{Stage, alarms, boot, devices, ended, gpu, lease};
use crate::input::{Act, AmdEvent, Input};
use crate::unit::{Fitness, Kept, Until};
use protocol::lease::FaultClass::{Hardware, Link};
use protocol::machine::Vendor;

/// Eight GPUs of AMD's, of which all but the first are one hive.
fn hive() -> Stage {
    let mut all = devices();
    for (number, device) in all.iter_mut().enumerate() {
        device.vendor = Vendor::Amd;
        device.link_group = u8::from(number > 0);
        device.cleanable = false;
    }
    let mut stage = Stage::with(Kept::default(), boot(1), all);
    // Nobody samples them.
    stage.silent = stage.readings.keys().cloned().collect();
    stage
}

fn amd(stage: &mut Stage, number: usize, event: AmdEvent) -> Vec<Act> {
    let gpu = gpu(number);
    stage.hear(Input::Amd { gpu, event })
}

#[test]
fn a_reset_freezes_the_whole_hive_until_each_was_looked_at() {
    let mut stage = hive();
    stage.take(1, &[1]);
    stage.take(2, &[2, 3]);
    stage.take(3, &[0]);
    let acts = amd(&mut stage, 1, AmdEvent::PreReset);
    assert!(acts.contains(&Act::Freeze(vec![lease(1), lease(2)])));
    assert_eq!(ended(&acts), []);
    assert_eq!(stage.fit(), [0]);
    assert_eq!(stage.fitness(7), Fitness::Resetting);
    // Looked at before the reset is over: that says nothing.
    amd(&mut stage, 2, AmdEvent::Healthy);
    assert!(!stage.is_fit(2));
    amd(&mut stage, 1, AmdEvent::PostReset);
    for number in 1..7 {
        let acts = amd(&mut stage, number, AmdEvent::Healthy);
        assert_eq!(acts.contains(&Act::LetGoOn(vec![lease(1)])), number == 1);
        assert_eq!(acts.contains(&Act::LetGoOn(vec![lease(2)])), number == 3);
    }
    assert_eq!(stage.fit(), [0, 1, 2, 3, 4, 5, 6]);
    amd(&mut stage, 7, AmdEvent::Healthy);
    assert_eq!(stage.fit().len(), 8);
    assert!(stage.has(1) && stage.has(2) && stage.has(3));
}

#[test]
fn what_amds_driver_tells_is_of_the_gpu_it_tells_it_of() {
    for event in [AmdEvent::VmFault, AmdEvent::Throttled, AmdEvent::RingHang] {
        let mut stage = hive();
        stage.take(1, &[1]);
        assert_eq!(ended(&amd(&mut stage, 1, event)), []);
        assert_eq!(stage.fit().len(), 8);
    }
    let mut stage = hive();
    stage.take(1, &[1]);
    stage.take(2, &[2]);
    assert_eq!(
        ended(&amd(&mut stage, 1, AmdEvent::Poison)),
        [(1, 0, Hardware)]
    );
    assert!(stage.has(2));
    assert_eq!(ended(&amd(&mut stage, 2, AmdEvent::EccThreshold)), []);
    assert_eq!(stage.until(2), Some(Until::Checked));
    assert!(stage.has(2));
}

#[test]
fn a_switch_that_fails_ends_leases_of_more_than_one_gpu() {
    let mut stage = Stage::new();
    stage.take(1, &[6, 7]);
    stage.take(2, &[0, 1]);
    stage.take(3, &[2]);
    let line = |severity: &str| {
        format!(
            "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, {severity}, Link 48 LTSSM Fault Up"
        )
    };
    assert_eq!(ended(&stage.line(&line("Non-fatal"))), []);
    let acts = stage.line(&line("Fatal"));
    // Two GPUs without a link do not need one.
    assert_eq!(ended(&acts), [(1, 0, Link)]);
    assert_eq!(alarms(&acts).len(), 1);
    stage.run(12);
    assert_eq!(stage.fit().len(), 8);
    let pair = [6, 7].map(|number| crate::machine::Place::whole(&gpu(number)));
    assert!(stage.health.unfit(&pair).is_some());
    assert!(stage.health.unfit(&pair[..1]).is_none());
    stage.hear(Input::FabricUp);
    assert!(stage.health.unfit(&pair).is_none());
}

/// Its driver writes to the kernel's log what it does; the machine is looked at after it.
#[test]
fn the_kernels_log_tells_of_a_reset_of_amds() {
    let mut stage = hive();
    stage.take(1, &[1]);
    let acts = stage.line("amdgpu 0000:01:00.0: amdgpu: GPU reset begin!");
    assert!(acts.contains(&Act::Freeze(vec![lease(1)])));
    // Lines of a GPU elsewhere on the bus are nobody's.
    stage.line("amdgpu 0000:31:00.0: amdgpu: GPU reset(1) succeeded!");
    amd(&mut stage, 1, AmdEvent::Healthy);
    assert!(!stage.is_fit(1));
    stage.line("amdgpu 0000:01:00.0: amdgpu: GPU reset(1) succeeded!");
    let acts = amd(&mut stage, 1, AmdEvent::Healthy);
    assert!(acts.contains(&Act::LetGoOn(vec![lease(1)])));
    assert!(stage.is_fit(1));
}

/// Nobody tells whether it answers, and this host has no test for it: its owner's word is enough.
#[test]
fn a_gpu_of_amds_that_its_owner_has_checked_is_leased_again() {
    let mut stage = hive();
    amd(&mut stage, 0, AmdEvent::EccThreshold);
    stage.run(60);
    assert_eq!(stage.until(0), Some(Until::Checked));
    stage.hear(Input::Checked(gpu(0)));
    assert!(stage.is_fit(0));
}
