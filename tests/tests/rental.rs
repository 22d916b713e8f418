//! One rental from search to receipt, with the real programs and the real engine, as their users run them.

#![cfg(test)]

use feira_tests::market::Market;
use feira_tests::programs::{registry, run_with_input, wait_for};
use feira_tests::renter::{Renter, containers_of_lease, micro_usd};
use feira_tests::stage::{Host, Stage};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_stranger_rents_works_and_can_check_the_bill() {
    let listing = ["--price", "0.36", "--storage", "0.72"];
    let market = Market::listed(Stage::new(), &[], &listing, 10);
    let (broker, host, renter) = (&market.broker, &market.host, &market.renter);

    let lease = renter.rent("first", &["--disk", "10"]).ok().json();
    assert_eq!(lease["name"], "first");
    assert_eq!(lease["kind"], "on_demand");
    let id = lease["id"].as_str().unwrap();
    assert_eq!(containers_of_lease(id).len(), 1);

    work_inside(renter);
    wait_for("the program's output", SOON, || {
        renter
            .feira(&["logs", "first"])
            .ok()
            .out
            .contains("feira-demo: tick 2")
            .then_some(())
    });

    let _ = renter.feira(&["stop", "first"]).ok();
    let stopped = renter.wait_for_phase("first", "stopped", SOON);
    let _ = renter.feira(&["resume", "first"]).ok();
    let _ = renter.wait_for_phase("first", "running", SOON);
    let _ = renter.feira(&["end", "first", "--yes"]).ok();
    wait_for("the container to be gone", SOON, || {
        containers_of_lease(id).is_empty().then_some(())
    });

    let _ = renter.wait_for_phase("first", "ended", SOON);

    // Logs survive the container.
    assert!(
        renter
            .feira(&["logs", "first"])
            .ok()
            .out
            .contains("feira-demo: ready")
    );

    let total = check_receipt(&market.stage, renter, host);
    assert!(micro_usd(&stopped["charged_usd"]) <= total);
    assert_eq!(renter.balance(), (10_000_000 - total, 0));
    broker.check_ledger();
}

/// Runs programs in the lease `first`: their own exit codes and their own streams.
fn work_inside(renter: &Renter) {
    let said = renter.feira(&[
        "exec",
        "first",
        "--",
        "sh",
        "-c",
        "echo out; echo err >&2; exit 7",
    ]);
    assert_eq!((said.code, said.out.as_str()), (7, "out\n"), "{said}");
    assert!(said.err.contains("err\n"), "{said}");
    let big = vec![b'x'; 3_000_000];
    let mut command = renter.prepared();
    command.args(["exec", "first", "--", "wc", "-c"]);
    assert_eq!(
        run_with_input(&mut command, &big, SOON).ok().out.trim(),
        "3000000"
    );
}

/// Saves and verifies the receipt of `first`; what the renter paid is what host and broker got. Gives it.
fn check_receipt(stage: &Stage, renter: &Renter, host: &Host) -> i64 {
    let file = stage.folder().join("receipt.json");
    let file = file.to_str().unwrap();
    let receipt = renter
        .feira(&["receipt", "first", "--save", file, "--json"])
        .ok()
        .json();
    let _ = renter.feira(&["receipt", "--verify", file]).ok();
    let (total, fee) = (
        micro_usd(&receipt["total_usd"]),
        micro_usd(&receipt["fee_usd"]),
    );
    assert!(total > 0, "{receipt}");
    assert_eq!(fee, total * 300 / 10_000);
    let earned = host.command(&["earnings", "--json"]).ok().json();
    let share = protocol::units::MicroUsd(total - fee).decimal();
    assert!(
        earned.to_string().contains(&format!("{share:?}")),
        "{earned}"
    );
    total
}

#[test]
fn a_tampered_receipt_does_not_verify() {
    let market = Market::on(Stage::new(), &[]);
    let (stage, renter) = (&market.stage, &market.renter);
    let _ = renter.rent("short", &[]).ok();
    let _ = renter.feira(&["end", "short", "--yes"]).ok();
    let file = stage.folder().join("receipt.json");
    let _ = renter
        .feira(&["receipt", "short", "--save", file.to_str().unwrap()])
        .ok();
    let text = std::fs::read_to_string(&file).unwrap();
    let _ = renter
        .feira(&["receipt", "--verify", file.to_str().unwrap()])
        .ok();
    // Every digit of the signed bytes counts, wherever the file keeps them.
    let longest = text.split('"').max_by_key(|part| part.len()).unwrap();
    let middle = longest.len() / 2;
    let flipped = if longest.as_bytes()[middle] == b'0' {
        "1"
    } else {
        "0"
    };
    let forged = format!("{}{flipped}{}", &longest[..middle], &longest[middle + 1..]);
    std::fs::write(&file, text.replace(longest, &forged)).unwrap();
    let said = renter.feira(&["receipt", "--verify", file.to_str().unwrap()]);
    assert_ne!(said.code, 0, "{said}");
}

#[test]
fn a_budget_ends_the_lease_by_itself_and_is_never_passed() {
    // A dollar in ten seconds.
    let market = Market::listed(Stage::new(), &[], &["--price", "360"], 100);
    let (broker, renter) = (&market.broker, &market.renter);
    let lease = renter
        .rent(
            "brief",
            &["--budget", "1", "--max-price", "400", "--disk", "1"],
        )
        .ok()
        .json();
    let id = lease["id"].as_str().unwrap();
    let _ = renter.wait_for_phase("brief", "ended", Duration::from_secs(60));
    assert_eq!(renter.balance(), (99_000_000, 0));
    wait_for("the container to be gone", SOON, || {
        containers_of_lease(id).is_empty().then_some(())
    });
    broker.check_ledger();
}

#[test]
fn a_program_that_ends_stops_the_meter_and_keeps_its_log() {
    let market = Market::on(Stage::new(), &[]);
    let (broker, renter) = (&market.broker, &market.renter);
    let image = format!("{}/feira-exit3:1", registry());
    let _ = renter.rent("done", &["--image", &image]).says("done");
    let lease = renter.wait_for_phase("done", "stopped", SOON);
    assert!(
        lease.to_string().contains('3'),
        "the exit code is told: {lease}"
    );
    assert!(!renter.feira(&["logs", "done"]).ok().out.is_empty());
    // The machine is free for others while this lease is stopped.
    renter.wait_for_offers(1);
    let _ = renter.feira(&["end", "done", "--yes"]).ok();
    broker.check_ledger();
}

#[test]
fn two_brokers_and_one_machine_start_one_lease() {
    let stage = Stage::new();
    let first = stage.broker("first", &[]);
    let second = stage.broker("second", &[]);
    let brokers = [first.address.as_str(), second.address.as_str()];
    let _host = stage.host("host", &brokers, &["--price", "0.36"]);
    let renters = [
        stage.renter("one", &[&first.address]),
        stage.renter("two", &[&second.address]),
    ];
    first.deposit(&renters[0], "10");
    second.deposit(&renters[1], "10");
    for renter in &renters {
        renter.wait_for_offers(1);
    }
    let codes: Vec<i32> = std::thread::scope(|scope| {
        let rents: Vec<_> = renters
            .iter()
            .map(|renter| scope.spawn(|| renter.rent("race", &[])))
            .collect();
        rents
            .into_iter()
            .map(|rent| rent.join().unwrap().code)
            .collect()
    });
    // One runs; the other is told that it is gone (7), or finds nothing any more (5).
    let winners: Vec<usize> = (0..2).filter(|index| codes[*index] == 0).collect();
    assert_eq!(winners.len(), 1, "{codes:?}");
    let loser = 1 - winners[0];
    assert!([5, 7].contains(&codes[loser]), "{codes:?}");
    assert_eq!(renters[loser].balance(), (10_000_000, 0));
    let _ = renters[winners[0]].feira(&["end", "race", "--yes"]).ok();
    first.check_ledger();
    second.check_ledger();
}

#[test]
fn a_renter_searches_all_its_brokers_at_once() {
    let stage = Stage::new();
    let first = stage.broker("first", &[]);
    let second = stage.broker("second", &[]);
    let _cheap = stage.host("cheap", &[&first.address], &["--price", "0.20"]);
    let _dear = stage.host("dear", &[&second.address], &["--price", "0.40"]);
    let _both = stage.host(
        "both",
        &[&first.address, &second.address],
        &["--price", "0.30"],
    );
    let renter = stage.renter("renter", &[&first.address, &second.address]);
    renter.wait_for_offers(3);
    let found = renter.feira(&["search", "--json"]).ok().json();
    let prices: Vec<i64> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|offer| micro_usd(&offer["price_usd_per_hour"]) / 10_000)
        .collect();
    assert_eq!(prices, [20, 30, 40], "{found}");
    // A broker that is down is said, and the others still answer.
    drop(second);
    let said = renter.feira(&["search"]).ok();
    assert!(!said.err.is_empty(), "{said}");
}
