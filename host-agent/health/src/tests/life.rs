//! A machine with eight GPUs through a life: every kind of fault, one after the other, and whose lease it costs.

use super::stage::{Stage, boot, devices, ended, gpu, renter};
use crate::input::{Act, Input};
use crate::unit::{Fitness, Kept, Until};
use host_nvml::news::GpuState;
use protocol::lease::FaultClass::Hardware;

/// Everybody but those in `gone` still has what it had.
fn only_gone(stage: &Stage, gone: &[u8]) {
    for number in 1..=9 {
        assert_eq!(stage.has(number), !gone.contains(&number), "lease {number}");
    }
}

fn full() -> Stage {
    let mut stage = Stage::new();
    for number in 0..4_u8 {
        stage.take(number + 1, &[usize::from(number)]);
    }
    // Two GPUs in slices, two together.
    stage.take_slice(5, 4, 3);
    stage.take_slice(6, 4, 5);
    stage.take_slice(7, 5, 3);
    stage.take_slice(8, 5, 5);
    stage.take(9, &[6, 7]);
    stage
}

#[test]
fn a_host_of_eight_gpus() {
    let mut stage = full();
    only_gone(&stage, &[]);

    // One falls off the bus: its lease, and no other.
    let before = stage.now;
    assert_eq!(ended(&stage.xid(0, 79, None)), [(1, 79, Hardware)]);
    stage.state(0, GpuState::Gone);
    let withdrawn = stage
        .acts
        .iter()
        .rev()
        .find(|(_, act)| matches!(act, Act::Withdraw { resource, .. } if *resource == gpu(0)));
    assert!(withdrawn.unwrap().0.0 - before.0 <= 5_000);
    stage.run(30);
    only_gone(&stage, &[1]);
    assert_eq!(stage.fitness(0), Fitness::Gone);

    // A contained error in one slice, whose neighbour goes on.
    assert_eq!(ended(&stage.xid(4, 94, Some(3))), [(5, 94, Hardware)]);
    stage.run(30);
    only_gone(&stage, &[1, 5]);

    // An uncontained one on another GPU: both of its slices.
    assert_eq!(ended(&stage.xid(5, 95, Some(3))).len(), 2);
    let acts = stage.run(30);
    only_gone(&stage, &[1, 5, 7, 8]);
    assert_eq!(super::stage::resets(&acts), 1);
    assert!(stage.is_fit(5));

    // The driver hangs on a GPU: nothing ends. One GPU is off the bus already, so the machine takes no more.
    let acts = stage.state(
        3,
        GpuState::Unknown {
            reason: "it hangs".to_owned(),
        },
    );
    assert_eq!(ended(&acts), []);
    assert!(acts.iter().any(|act| matches!(act, Act::DrainHost { .. })));
    stage.run(120);
    only_gone(&stage, &[1, 5, 7, 8]);
    assert!(
        stage
            .health
            .unfit(&[crate::machine::Place::whole(&gpu(5))])
            .is_some()
    );

    // A reboot in the middle: the driver comes late, containers are gone.
    let kept = stage.health.kept();
    let mut booted = Stage::with(kept, boot(2), Vec::new());
    booted.run(30);
    assert_eq!(booted.health.standings(), []);
    booted.readings = devices()
        .iter()
        .map(|device| (device.gpu.clone(), super::stage::sound()))
        .collect();
    booted.hear(Input::Machine(devices()));
    booted.hear(Input::Tenants(Vec::new()));
    booted.run(30);
    // All is cleaned, and the one that was off the bus tested; the machine takes leases again.
    assert_eq!(booted.fit().len(), 8);
    assert_eq!(booted.health.drain(), None);
    assert_eq!(booted.health.kept().used, []);
}

#[test]
fn a_gpu_that_vanishes_without_a_word_is_noticed() {
    let mut stage = full();
    assert_eq!(ended(&stage.state(2, GpuState::Gone)), [(3, 0, Hardware)]);
    only_gone(&stage, &[3]);
    assert_eq!(stage.health.drain(), None);
    stage.run(60);
    stage.state(2, GpuState::Ready);
    stage.run(12);
    assert!(stage.is_fit(2));
}

/// A part of a group costs the group, and nobody else.
#[test]
fn a_lease_of_two_gpus_ends_with_either() {
    let mut stage = full();
    assert_eq!(ended(&stage.xid(7, 46, None)), [(9, 46, Hardware)]);
    only_gone(&stage, &[9]);
    stage.run(20);
    assert!(stage.is_fit(6) && stage.is_fit(7));
}

/// A driver that is not there says nothing of GPUs, and nothing is decided of them.
#[test]
fn a_driver_that_is_not_there_yet() {
    let mut stage = Stage::with(Kept::default(), boot(1), Vec::new());
    let acts = stage.run(300);
    assert_eq!(acts, []);
    stage.xid(0, 79, None);
    assert_eq!(stage.health.provoked(renter(1)), 0);
    stage.hear(Input::Machine(devices()));
    assert_eq!(stage.until(0), Some(Until::Reboot));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]

    /// Whatever happens to one GPU, leases that have nothing of it go on, and nothing panics.
    #[test]
    fn no_fault_reaches_another_gpu(xids in proptest::collection::vec((0_u32..180, proptest::option::of(0_u32..8), 0_u64..4_000), 1..40)) {
        let mut stage = full();
        for (xid, instance, wait) in xids {
            stage.now = stage.now.plus(protocol::units::Millis(wait));
            stage.xid(4, xid, instance);
            stage.run(1);
        }
        stage.run(10);
        for number in [1, 2, 3, 4, 7, 8, 9] {
            proptest::prop_assert!(stage.has(number));
        }
        for number in [0, 1, 2, 3, 5, 6, 7] {
            proptest::prop_assert!(stage.is_fit(number));
        }
    }
}
