//! What the driver itself wants done goes before the table.

use super::stage::{Stage, alarms, ended, gpu, resets};
use crate::unit::{Fitness, Until};
use host_nvml::sample::RecoveryAction;
use protocol::lease::FaultClass::{Driver, Hardware};
use protocol::units::Millis;

#[test]
fn each_verdict_is_obeyed() {
    let obeyed = |verdict| {
        let mut stage = Stage::new();
        stage.take(1, &[0]);
        stage.take(2, &[1]);
        stage.wants(0, verdict);
        let acts = stage.sample(&gpu(0));
        assert!(stage.has(2) && stage.is_fit(1));
        (ended(&acts), stage.until(0))
    };
    assert_eq!(obeyed(RecoveryAction::None), (vec![], None));
    assert_eq!(
        obeyed(RecoveryAction::Reset),
        (vec![(1, 0, Driver)], Some(Until::Reset))
    );
    assert_eq!(
        obeyed(RecoveryAction::Reboot),
        (vec![(1, 0, Driver)], Some(Until::Reboot))
    );
    assert_eq!(obeyed(RecoveryAction::DrainPeers), (vec![], None));
    assert_eq!(
        obeyed(RecoveryAction::DrainAndReset),
        (vec![], Some(Until::Reset))
    );
    assert_eq!(obeyed(RecoveryAction::Other(5)), (vec![], None));
    assert_eq!(
        obeyed(RecoveryAction::Other(9)),
        (vec![], Some(Until::Checked))
    );
}

#[test]
fn drain_p2p_keeps_a_gpu_from_leases_of_more_than_one() {
    use crate::machine::Place;
    let mut stage = Stage::new();
    stage.wants(6, RecoveryAction::DrainPeers);
    stage.sample(&gpu(6));
    let alone = [Place::whole(&gpu(6))];
    let pair = [Place::whole(&gpu(6)), Place::whole(&gpu(0))];
    assert_eq!(stage.health.unfit(&alone), None);
    assert!(stage.health.unfit(&pair).is_some());
    assert!(
        stage
            .health
            .unfit(&[Place::whole(&gpu(7)), Place::whole(&gpu(0))])
            .is_none()
    );
    // It takes it back.
    stage.wants(6, RecoveryAction::None);
    stage.sample(&gpu(6));
    assert_eq!(stage.health.unfit(&pair), None);
}

#[test]
fn a_154_is_read_and_not_guessed() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    assert_eq!(ended(&stage.xid(0, 154, None)), []);
    assert!(!stage.is_fit(0));
    stage.wants(0, RecoveryAction::DrainAndReset);
    stage.run(2);
    assert_eq!(stage.until(0), Some(Until::Reset));
    assert!(stage.has(1));
    stage.leave(1);
    assert_eq!(resets(&stage.run(12)), 1);
    assert!(stage.is_fit(0));
    // Nothing is wanted any more: nothing happens.
    let mut stage = Stage::new();
    stage.wants(0, RecoveryAction::None);
    stage.xid(0, 154, None);
    stage.run(4);
    assert!(stage.is_fit(0));
}

#[test]
fn an_error_that_is_not_known_is_asked_of_the_driver() {
    for (verdict, wanted) in [
        (Some(RecoveryAction::None), None),
        (Some(RecoveryAction::DrainAndReset), Some(Until::Reset)),
        // A driver that has no such word: its lease goes on, and then it is tested.
        (None, Some(Until::Tested)),
    ] {
        let mut stage = Stage::new();
        stage.take(1, &[0]);
        stage.reads(0, |reading| reading.recovery = verdict);
        stage.xid(0, 999, None);
        // Until that is known it is not leased.
        assert!(!stage.is_fit(0));
        let acts = stage.run(4);
        assert_eq!(ended(&acts), [], "{verdict:?}");
        assert_eq!(stage.until(0), wanted, "{verdict:?}");
        assert_eq!(stage.fit().len(), if wanted.is_some() { 7 } else { 8 });
    }
}

#[test]
fn a_reset_that_the_driver_does_not_want_is_a_test() {
    let mut stage = Stage::new();
    stage.wants(0, RecoveryAction::None);
    stage.run(2);
    stage.take(1, &[0]);
    assert_eq!(ended(&stage.xid(0, 46, None)), [(1, 46, Hardware)]);
    let acts = stage.run(12);
    assert_eq!(resets(&acts), 0);
    assert!(stage.is_fit(0));
}

#[test]
fn a_verdict_that_comes_late_counts() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.xid(0, 31, None);
    stage.run(10);
    assert!(stage.has(1));
    stage.now = stage.now.plus(Millis(60_000));
    stage.wants(0, RecoveryAction::Reset);
    // It is not put down to a program of a minute ago.
    assert_eq!(ended(&stage.sample(&gpu(0))), [(1, 0, Driver)]);
}

#[test]
fn a_reboot_is_told_once() {
    let mut stage = Stage::new();
    stage.wants(0, RecoveryAction::Reboot);
    let acts = stage.run(60);
    assert_eq!(alarms(&acts).len(), 1);
    assert!(matches!(
        stage.fitness(0),
        Fitness::Quarantined {
            until: Until::Reboot,
            ..
        }
    ));
    assert_eq!(resets(&acts), 0);
}

#[test]
fn a_driver_that_still_wants_a_reset_after_two_is_for_the_owner() {
    let mut stage = Stage::new();
    stage.cures = false;
    stage.wants(0, RecoveryAction::Reset);
    let acts = stage.run(600);
    assert_eq!(resets(&acts), 2);
    assert_eq!(stage.until(0), Some(Until::Checked));
}
