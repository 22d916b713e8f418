//! Errors as the table judges them, where the driver itself says nothing.

use super::stage::{Stage, alarms, ended, gpu, notes, renter, resets, withdrawn};
use crate::unit::{Fitness, Until};
use crate::xid::{OnGpu, OnLease, ROWS, Reach, Repeat, Special};
use host_nvml::event::EventKind;
use protocol::lease::FaultClass::{Driver, Hardware, Link, Program};
use protocol::units::Millis;

/// Every number of the table, on a GPU that one lease has alone: what it does at once.
#[test]
fn every_row_does_what_it_says() {
    for row in ROWS {
        for xid in row.xids.iter().flat_map(|(first, last)| *first..=*last) {
            let mut stage = Stage::new();
            stage.take(1, &[0]);
            stage.take(2, &[1]);
            let acts = stage.xid(0, xid, None);
            let is_late = matches!(row.special, Special::Followed | Special::Verdict);
            let ends = match row.lease {
                OnLease::Ends(Reach::Struck | Reach::Gpu) => {
                    row.repeat != Repeat::FirstIsNoted && !is_late
                }
                OnLease::Ends(Reach::Together) | OnLease::GoesOn => false,
            };
            let xid_16 = u16::try_from(xid).unwrap();
            let wanted = if ends {
                vec![(1, xid_16, row.class())]
            } else {
                vec![]
            };
            assert_eq!(ended(&acts), wanted, "Xid {xid}");
            let waits = match row.gpu {
                OnGpu::Waits(until) if row.repeat != Repeat::FirstIsNoted && !is_late => {
                    Some(until)
                }
                OnGpu::Waits(_) | OnGpu::Nothing | OnGpu::ResetWhenIdle => None,
            };
            let kept = stage.health.kept();
            let of = kept.gpus.iter().find(|kept| kept.gpu == gpu(0));
            let wait = of
                .and_then(|kept| kept.wait.as_ref())
                .map(|wait| wait.until);
            // A reset is done at once where nobody has the GPU any more, and a test follows it.
            if waits == Some(Until::Reset) && ends {
                assert!(
                    matches!(wait, Some(Until::Reset | Until::Tested)),
                    "Xid {xid}"
                );
            } else {
                assert_eq!(wait, waits, "Xid {xid}");
            }
            // The neighbour hears nothing of it.
            assert!(stage.has(2) && stage.is_fit(2), "Xid {xid}");
        }
    }
}

#[test]
fn a_gpu_that_stopped_three_times_in_an_hour_is_reset_after_its_lease() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    for minutes in [0, 40] {
        stage.now = stage.now.plus(Millis(minutes * 60_000));
        stage.xid(0, 8, None);
        assert!(stage.is_fit(0));
    }
    stage.run(61);
    stage.xid(0, 8, None);
    assert_eq!(stage.until(0), Some(Until::Reset));
    assert!(stage.has(1));
    stage.leave(1);
    let acts = stage.run(12);
    assert_eq!(resets(&acts), 1);
    assert!(stage.is_fit(0));
    // Two more within the hour after a long time are two.
    let mut stage = Stage::new();
    for minutes in [0, 61, 40] {
        stage.now = stage.now.plus(Millis(minutes * 60_000));
        stage.xid(0, 8, None);
    }
    assert!(stage.is_fit(0));
}

#[test]
fn a_burst_counts_once() {
    let mut stage = Stage::new();
    for _ in 0..5 {
        stage.xid(0, 8, None);
    }
    assert!(stage.is_fit(0));
}

#[test]
fn a_programs_error_is_the_gpus_only_under_two_leases() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    for _ in 0..10 {
        stage.xid(0, 13, None);
        stage.run(60);
    }
    assert!(stage.is_fit(0));
    stage.leave(1);
    stage.run(12);
    stage.take(2, &[0]);
    let acts = stage.xid(0, 13, None);
    assert_eq!(ended(&acts), []);
    assert!(matches!(
        stage.fitness(0),
        Fitness::Finishing {
            until: Until::Tested,
            ..
        }
    ));
    // Its memory is tested when the lease is over.
    stage.leave(2);
    stage.run(12);
    assert!(stage.is_fit(0));
}

#[test]
fn firmware_errors_count_within_a_day() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.xid(0, 44, None);
    assert!(stage.is_fit(0));
    stage.now = stage.now.plus(Millis(25 * 3_600_000));
    stage.xid(0, 44, None);
    assert!(stage.is_fit(0));
    stage.now = stage.now.plus(Millis(23 * 3_600_000));
    stage.xid(0, 44, None);
    assert_eq!(stage.until(0), Some(Until::Reset));
    assert!(stage.has(1));
}

#[test]
fn the_first_109_is_noted_and_the_second_is_not() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    assert_eq!(ended(&stage.xid(0, 109, None)), []);
    assert!(stage.is_fit(0));
    stage.run(60);
    assert_eq!(ended(&stage.xid(0, 109, None)), [(1, 109, Hardware)]);
    assert!(!stage.is_fit(0));
}

#[test]
fn what_follows_a_48_says_what_it_is() {
    // Alone: after three seconds its lease ends, and the offer was withdrawn at once.
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    let acts = stage.xid(0, 48, None);
    assert_eq!(ended(&acts), []);
    assert_eq!(withdrawn(&acts), ["GPU-0"]);
    assert_eq!(ended(&stage.run(2)), []);
    assert_eq!(ended(&stage.run(1)), [(1, 48, Hardware)]);
    assert!(!stage.is_fit(0));
    // Followed by a contained error of slice 3: that slice's.
    let mut stage = Stage::new();
    stage.take_slice(1, 0, 3);
    stage.take_slice(2, 0, 5);
    stage.xid(0, 48, None);
    assert_eq!(ended(&stage.xid(0, 94, Some(3))), [(1, 94, Hardware)]);
    assert_eq!(ended(&stage.run(10)), []);
    assert!(stage.has(2));
    // By an uncontained one: everybody's. By a retired row: nobody's.
    let mut stage = Stage::new();
    stage.take_slice(1, 0, 3);
    stage.take_slice(2, 0, 5);
    stage.xid(0, 48, None);
    assert_eq!(ended(&stage.xid(0, 95, None)).len(), 2);
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.xid(0, 48, None);
    stage.xid(0, 63, None);
    assert_eq!(ended(&stage.run(10)), []);
    // A 94 of another GPU does not explain it.
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.xid(0, 48, None);
    stage.xid(1, 94, None);
    assert_eq!(ended(&stage.run(4)), [(1, 48, Hardware)]);
}

#[test]
fn channels_that_were_cleared_away_are_put_down_to_what_came_before() {
    // After our own kill.
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.leave(1);
    stage.run(30);
    assert_eq!(
        notes(&stage.xid(0, 45, None)).last().unwrap(),
        "Xid 45: channels were cleared away after another error, after its lease was ended"
    );
    stage.run(1);
    let late = notes(&stage.xid(0, 45, None));
    assert!(
        late.last().unwrap().ends_with("with no error before it"),
        "{late:?}"
    );
    // On GPU 1 within five seconds of a 79 on GPU 0: its lease goes on.
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.take(2, &[1]);
    stage.xid(0, 79, None);
    stage.now = stage.now.plus(Millis(5_000));
    let acts = stage.xid(1, 45, None);
    assert_eq!(ended(&acts), []);
    assert!(
        notes(&acts)
            .last()
            .unwrap()
            .ends_with("after Xid 79 of GPU-0")
    );
    assert!(stage.has(2) && stage.is_fit(1));
}

#[test]
fn a_link_concerns_leases_of_more_than_one_gpu() {
    let mut stage = Stage::new();
    stage.take(1, &[6]);
    assert_eq!(ended(&stage.xid(6, 74, None)), []);
    let mut stage = Stage::new();
    stage.take(1, &[6, 7]);
    assert_eq!(ended(&stage.xid(6, 74, None)), [(1, 74, Link)]);
    stage.run(12);
    assert_eq!(stage.fit().len(), 8);
    // Again, and the other end had it too: the pair is not leased until it was reset.
    stage.take(2, &[0]);
    stage.xid(7, 74, None);
    let mut acts = stage.xid(6, 74, None);
    acts.extend(stage.run(12));
    assert_eq!(resets(&acts), 2);
    assert!(stage.has(2));
}

#[test]
fn an_nvlink_unit_says_how_bad_it_is() {
    let line = |severity: &str| {
        format!("NVRM: Xid (PCI:0000:06:00): 149, NETIR_LINK_EVT {severity} XC0 i0 Link 08")
    };
    let mut stage = Stage::new();
    stage.take(1, &[6, 7]);
    stage.take(2, &[0]);
    assert_eq!(ended(&stage.line(&line("Nonfatal"))), []);
    // The library's event says nothing of it.
    assert_eq!(ended(&stage.xid(6, 149, None)), []);
    assert_eq!(ended(&stage.line(&line("Fatal"))), [(1, 149, Link)]);
    assert!(stage.has(2));
}

#[test]
fn another_lease_that_reaches_for_its_memory_is_an_alarm() {
    let mut stage = Stage::new();
    stage.take(1, &[6]);
    assert_eq!(alarms(&stage.xid(6, 137, None)).len(), 0);
    stage.run(10);
    stage.take(2, &[7]);
    assert_eq!(alarms(&stage.xid(6, 137, None)).len(), 1);
}

#[test]
fn the_same_error_from_two_sources_is_one() {
    // The log says no slice, the library does: whichever comes first.
    for log_first in [true, false] {
        let mut stage = Stage::new();
        stage.take_slice(1, 0, 3);
        stage.take_slice(2, 0, 5);
        let line = "NVRM: Xid (PCI:0000:00:00): 94, pid=7194, name=x";
        let mut acts = Vec::new();
        if log_first {
            acts.extend(stage.line(line));
            stage.run(1);
        }
        acts.extend(stage.xid(0, 94, Some(3)));
        if !log_first {
            stage.run(1);
            acts.extend(stage.line(line));
        }
        acts.extend(stage.run(10));
        assert_eq!(ended(&acts), [(1, 94, Hardware)], "log first: {log_first}");
        assert!(stage.has(2));
    }
    // The log alone counts, when nothing else comes.
    let mut stage = Stage::new();
    stage.take_slice(1, 0, 3);
    stage.line("NVRM: Xid (PCI:0000:00:00): 95, pid=1, name=x");
    assert_eq!(ended(&stage.run(3)), [(1, 95, Hardware)]);
}

#[test]
fn events_that_are_no_xid_mean_the_same() {
    for (kind, xid) in [
        (EventKind::FatalPoison, 95),
        (EventKind::DramRetirementFailed, 64),
        (EventKind::ContainedPoison, 94),
        (EventKind::Unavailable, 46),
    ] {
        let mut stage = Stage::new();
        stage.take(1, &[0]);
        assert_eq!(
            ended(&stage.event(0, kind, None)),
            [(1, xid, Hardware)],
            "{kind:?}"
        );
        // Its Xid comes too, and is the same.
        stage.take(2, &[1]);
        assert_eq!(ended(&stage.xid(0, u32::from(xid), None)), []);
    }
}

#[test]
fn a_processor_that_does_not_answer_twice_needs_a_reboot() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    assert_eq!(ended(&stage.xid(0, 119, None)), [(1, 119, Driver)]);
    stage.run(12);
    assert!(stage.is_fit(0));
    stage.xid(0, 119, None);
    assert_eq!(stage.until(0), Some(Until::Reboot));
}

#[test]
fn a_reset_that_helped_twice_today_does_not_help() {
    let mut stage = Stage::new();
    for _ in 0..2 {
        let mut acts = stage.xid(0, 95, None);
        acts.extend(stage.run(12));
        assert_eq!(resets(&acts), 1);
        assert!(stage.is_fit(0));
    }
    stage.xid(0, 95, None);
    assert_eq!(stage.until(0), Some(Until::Checked));
}

#[test]
fn a_row_that_could_not_be_replaced_is_for_the_owner_to_check() {
    let mut stage = Stage::new();
    stage.xid(0, 64, None);
    stage.run(600);
    assert_eq!(stage.until(0), Some(Until::Checked));
    stage.hear(crate::input::Input::Checked(gpu(0)));
    stage.run(12);
    assert!(stage.is_fit(0));
}

#[test]
fn many_errors_that_are_corrected_lower_the_grade() {
    let mut stage = Stage::new();
    stage.xid(0, 92, None);
    assert!(stage.is_fit(0));
    assert!(stage.health.lowered(&gpu(0)).is_some());
    assert_eq!(stage.health.lowered(&gpu(1)), None);
}

#[test]
fn a_link_to_the_processor_that_fails_again_empties_a_coherent_host() {
    for (coherent, is_drained) in [(false, false), (true, true)] {
        let mut devices = super::stage::devices();
        devices[0].coherent = coherent;
        let mut stage = Stage::with(Default::default(), super::stage::boot(1), devices);
        stage.xid(0, 121, None);
        assert_eq!(stage.health.drain(), None);
        stage.run(60);
        stage.xid(0, 121, None);
        assert_eq!(stage.health.drain().is_some(), is_drained);
    }
}

/// A program answers for itself; what ends others beside it is not put down to them.
#[test]
fn a_neighbour_does_not_answer_for_anothers_program() {
    let mut stage = Stage::new();
    stage.take_slice(1, 0, 3);
    stage.take_slice(2, 0, 5);
    stage.xid(0, 31, Some(3));
    stage.wants(0, host_nvml::sample::RecoveryAction::Reset);
    let acts = stage.sample(&gpu(0));
    assert_eq!(ended(&acts), [(1, 31, Driver), (2, 31, Driver)]);
    // One that had it alone does.
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.xid(0, 31, None);
    stage.wants(0, host_nvml::sample::RecoveryAction::Reset);
    assert_eq!(ended(&stage.sample(&gpu(0))), [(1, 31, Program)]);
    assert_eq!(stage.health.provoked(renter(1)), 1);
    assert!(!stage.has(1));
}
