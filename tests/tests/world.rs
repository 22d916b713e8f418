//! Two hundred worlds that are each full of other troubles, and the seeds that once broke.
//!
//! `cargo run -p feira-tests --bin world -- --seed N` lets one of them happen again.

use feira_tests::world::{Outcome, Size, run};

const SIZE: Size = Size {
    brokers: 2,
    hosts: 5,
    renters: 10,
    hours: 6,
};

fn worlds(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        if let Err(violation) = run(seed, SIZE) {
            panic!("{violation}\nput the seed into tests/data/world-regressions.txt");
        }
    }
}

#[test]
fn worlds_0_to_49() {
    worlds(0..50);
}

#[test]
fn worlds_50_to_99() {
    worlds(50..100);
}

#[test]
fn worlds_100_to_149() {
    worlds(100..150);
}

#[test]
fn worlds_150_to_199() {
    worlds(150..200);
}

#[test]
fn seeds_that_broke_once() {
    for line in include_str!("../data/world-regressions.txt").lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let seed = line.parse().unwrap();
        if let Err(violation) = run(seed, SIZE) {
            panic!("{violation}");
        }
    }
}

#[test]
fn the_same_seed_is_the_same_world() {
    let once: Outcome = run(7, SIZE).unwrap();
    let again = run(7, SIZE).unwrap();
    assert_eq!(once, again);
    assert!(once.events > 100 && once.leases > 0, "{once:?}");
    let other = run(8, SIZE).unwrap();
    assert_ne!(once.log, other.log);
}
