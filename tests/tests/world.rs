//! Two hundred worlds that are each full of other troubles, and the seeds that once broke.
//!
//! `cargo run -p feira-tests --bin world -- --seed N` lets one of them happen again.

use feira_tests::world::{Outcome, Size, run};

const SIZE: Size = Size {
    brokers: 2,
    hosts: 5,
    renters: 10,
    hours: 6,
    idle_minutes: 30,
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

/// `scripts/planted-bugs` plants them: a place that moved would make it stop before it began.
#[test]
fn every_bug_to_be_planted_has_its_place() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let bugs: serde_json::Value =
        serde_json::from_str(include_str!("../data/planted-bugs.json")).unwrap();
    let bugs = bugs.as_array().unwrap();
    assert_eq!(bugs.len(), 11);
    for bug in bugs {
        let file = root.join(bug["file"].as_str().unwrap());
        let source = std::fs::read_to_string(&file).unwrap();
        let find = bug["find"].as_str().unwrap();
        assert_eq!(source.matches(find).count(), 1, "{}: {find}", bug["name"]);
    }
}
