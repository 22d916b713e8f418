//! The formula alone: Young and Daly, the expected time with and without checkpoints, the network of a
//! cluster, and a simulation of the failures that it stands for.

use super::{number, same, vectors};
use protocol::cost::formula::{Run, daly, protected, unprotected, young};
use protocol::cost::{Cluster, hazard_of};

#[test]
fn young_and_daly_give_the_intervals_of_the_vectors() {
    let vectors = vectors();
    let cases = vectors["daly"].as_array().unwrap();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let (checkpoint, mean) = (number(case, "C"), number(case, "M"));
        same(young(checkpoint, mean), number(case, "young"), 3);
        same(daly(checkpoint, mean), number(case, "daly"), 3);
    }
    // A checkpoint of ten minutes where ten hours pass between failures.
    same(young(600.0, 36_000.0), 6572.67, 2);
    same(daly(600.0, 36_000.0), 6178.76, 2);
}

#[test]
fn a_checkpoint_that_takes_twice_the_time_between_failures_is_made_once_in_that_time() {
    assert_eq!(daly(200.0, 100.0), 100.0);
    // sqrt(39 800) × (1 + 0.332499 + 0.110556) − 199.
    same(daly(199.0, 100.0), 88.888, 3);
}

#[test]
fn expected_times_are_those_of_the_vectors_and_near_their_simulations() {
    let vectors = vectors();
    let cases = vectors["wall_check"].as_array().unwrap();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let (work, hazard) = (number(case, "W"), 1.0 / number(case, "M"));
        let (checkpoint, restart) = (number(case, "C"), number(case, "R"));
        let with = protected(work, hazard, restart, checkpoint, number(case, "tau"));
        let places = if work < 20_000.0 { 1 } else { 2 };
        same(with, number(case, "formula"), places);
        same(unprotected(work, hazard, restart), number(case, "none"), 1);
        let simulated = number(case, "mc");
        assert!((with / simulated - 1.0).abs() < 0.0005, "{with}");
    }
}

/// Runs the work itself, ten thousand times, with failures drawn by a generator of its own.
#[test]
fn a_simulation_of_failures_takes_what_the_formula_expects() {
    let (work, mean, checkpoint, restart, interval) =
        (36_000.0_f64, 36_000.0_f64, 60.0, 300.0, 2000.0);
    let mut state: u64 = 0x5eed;
    let mut failure = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let bits = u32::try_from(state >> 32).unwrap();
        -mean * ((f64::from(bits) + 0.5) / 4_294_967_296.0).ln()
    };
    let runs = 10_000;
    let mut sum = 0.0;
    for _ in 0..runs {
        for _ in 0..18 {
            // One piece: begin, and after each failure begin again until the checkpoint is written.
            let mut needed = interval + checkpoint;
            loop {
                let fails = failure();
                if fails >= needed {
                    sum += needed;
                    break;
                }
                sum += fails;
                needed = restart + interval + checkpoint;
            }
        }
    }
    let simulated = sum / f64::from(runs);
    let expected = protected(work, 1.0 / mean, restart, checkpoint, interval);
    // One failure in ten hours, each about half an hour: 10 000 runs are within 0.15 % of the mean.
    assert!(
        (simulated / expected - 1.0).abs() < 0.003,
        "{simulated} {expected}"
    );
}

fn run() -> Run {
    Run {
        work: 36_000.0,
        hazard: 1.0 / 43_200.0,
        restart: 25.0,
        checkpoint: Some(10.0),
        interruptions: 0.0,
    }
}

#[test]
fn a_run_without_failures_is_its_work() {
    let never = Run {
        hazard: 0.0,
        ..run()
    };
    let expected = never.expected();
    assert_eq!((expected.checkpoints, expected.lost), (0.0, 0.0));
}

#[test]
fn work_that_is_over_before_a_checkpoint_is_due_makes_none() {
    // sqrt(2 × 10 × 43 200) = 930 s and a little less: 400 s of work round to none, 500 s to one.
    let short = Run {
        work: 400.0,
        ..run()
    };
    assert_eq!(short.expected().checkpoints, 0.0);
    // e^(25/43 200) × 43 200 × (e^(400/43 200) − 1) − 400 = 2.09 s.
    same(short.expected().lost, 2.09, 2);
    let longer = Run {
        work: 500.0,
        ..run()
    };
    assert_eq!(longer.expected().checkpoints, 10.0);
}

#[test]
fn checkpoints_that_take_no_time_leave_the_restarts_alone() {
    let free = Run {
        checkpoint: Some(0.0),
        ..run()
    };
    // 36 000 × (e^(25/43 200) − 1) = 20.84 s.
    same(free.expected().lost, 20.84, 2);
    assert_eq!(free.expected().checkpoints, 0.0);
}

#[test]
fn an_interruption_with_notice_costs_its_restart_alone() {
    let interrupted = Run {
        hazard: 0.0,
        interruptions: 4.0 / 86_400.0,
        ..run()
    };
    // 36 000 / (1 − 4 × 25/86 400) − 36 000 = 41.71 s.
    same(interrupted.expected().lost, 41.71, 2);
}

#[test]
fn restarts_that_eat_all_time_never_end() {
    for often in [1.0 / 25.0, 2.0 / 25.0] {
        let hopeless = Run {
            interruptions: often,
            ..run()
        };
        assert_eq!(hopeless.expected().lost, f64::INFINITY);
    }
}

#[test]
fn steps_on_several_machines_are_those_of_the_vectors() {
    let vectors = vectors();
    let cases = vectors["multinode"].as_array().unwrap();
    assert_eq!(cases.len(), 5);
    for case in cases {
        let machines = u16::try_from(case["nodes"].as_u64().unwrap()).unwrap();
        let step = cluster(machines, number(case, "gbps")).step();
        same(step.computing, number(case, "compute_s"), 4);
        same(step.exchanging, number(case, "comm_s"), 4);
        same(step.total, number(case, "step_s"), 4);
        same(step.efficiency, number(case, "eff"), 4);
        same(
            dollars(machines, step.total),
            number(case, "usd_per_1000_steps"),
            2,
        );
    }
}

#[test]
fn eight_machines_are_held_up_by_their_network_as_worked_out() {
    for (gigabits, seconds, usd) in [
        (100.0, 2.71, 108.56),
        (400.0, 1.03, 41.36),
        (3200.0, 0.95, 37.92),
    ] {
        let step = cluster(8, gigabits).step();
        same(step.total, seconds, 2);
        same(dollars(8, step.total), usd, 2);
    }
}

/// 8B parameters in 16 bits, half a million tokens a step at 0.4 of eight H100: 2.4e16 operations.
fn cluster(machines: u16, gigabits: f64) -> Cluster {
    Cluster {
        machines,
        network: gigabits * 125e6,
        gradients: 16e9,
        computing_alone: 2.4e16 / (8.0 * 989e12 * 0.4),
    }
}

/// Of a thousand steps, each machine at $18 an hour.
fn dollars(machines: u16, step: f64) -> f64 {
    1000.0 * step * f64::from(machines) * 18.0 / 3600.0
}

#[test]
fn a_hazard_is_sent_in_failures_in_a_billion_hours() {
    // New: one in 36 h. Ninety clean days: one in 36 + 1558.11 h.
    let hours = |sent| 1.0 / hazard_of(sent).unwrap();
    same(hours(27_777_778), 36.0, 6);
    same(hours(627_309), 1594.11, 2);
    assert_eq!(hazard_of(0), None);
}
