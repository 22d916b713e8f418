//! A GPU is sold once: whole or in slices, by one broker or another.

use crate::play::{
    PRICE, SEVEN, SOON, check_money, ended, rent_slice, rent_whole, stands, try_slice, try_whole,
    words_of_slice,
};
use fake_nvml::models::Model;
use feira_tests::machine::{GpuMarket, Machine};
use feira_tests::programs::wait_for;
use feira_tests::renter::{Renter, micro_usd};
use std::process::Stdio;

// Threat 6: the whole GPU and its slices are never sold together, by the agent or the broker.
#[test]
fn whole_and_sliced_sales_of_one_gpu_exclude_each_other() {
    let listing = [
        "--price",
        PRICE,
        "--partition-layout",
        "dynamic",
        "--whole-beside",
        "idle",
    ];
    let all = GpuMarket::new(&[Model::H100], &listing, 1);
    let renter = all.renter();
    renter.wait_for_goods_of(&["--partition", "1g.10gb"], 1);

    let _ = rent_slice(renter, "one", "1g.10gb");
    assert!(all.machine.is_divided(0));
    renter.wait_for_goods(0);
    let refused = try_whole(renter, "whole", "1");
    assert_ne!(refused.code, 0, "{refused}");
    let one = ended(&all, renter, "one");

    // Nobody has a slice any more: it can be had whole, and is made whole for it.
    renter.wait_for_goods(1);
    let _ = rent_whole(renter, "whole", "1");
    assert!(!all.machine.is_divided(0));
    assert_eq!(stands(&all, 0), []);
    renter.wait_for_goods_of(&["--partition", "1g.10gb"], 0);
    let refused = try_slice(renter, "two", "1g.10gb");
    assert_ne!(refused.code, 0, "{refused}");
    let whole = ended(&all, renter, "whole");

    renter.wait_for_goods_of(&["--partition", "1g.10gb"], 1);
    check_money(&all, renter, &[one, whole]);
}

struct Side {
    broker: feira_tests::stage::Broker,
    renter: Renter,
}

/// Begins to rent a slice and gives the child.
fn begin(renter: &Renter, name: &str, profile: &str) -> std::process::Child {
    let mut command = renter.prepared();
    command
        .args(words_of_slice(name, profile))
        .stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("feira")
}

// Threat 5, as far as two honest brokers meet at one host: each resource goes to one lease.
#[test]
fn two_brokers_that_race_for_one_gpu_never_both_get_it() {
    let (machine, stage) = Machine::new(&[Model::H100]);
    let sides: Vec<Side> = ["first", "second"]
        .iter()
        .map(|name| {
            let broker = stage.broker(name, &[]);
            let renter = stage.renter(&format!("of-{name}"), &[&broker.address]);
            broker.deposit(&renter, "100");
            Side { broker, renter }
        })
        .collect();
    let addresses: Vec<&str> = sides
        .iter()
        .map(|side| side.broker.address.as_str())
        .collect();
    let listing = ["--price", PRICE, "--partition-layout", "dynamic"];
    let _host = machine.host(&stage, &addresses, &listing);
    for round in 0..3 {
        let name = format!("seven{round}");
        for side in &sides {
            side.renter
                .wait_for_goods_of(&["--partition", "7g.80gb"], 1);
        }
        // Both want all of it at the same moment.
        let racing: Vec<_> = sides
            .iter()
            .map(|side| begin(&side.renter, &name, "7g.80gb"))
            .collect();
        let outputs = racing
            .into_iter()
            .map(|child| child.wait_with_output().expect("feira"));
        let outputs: Vec<_> = outputs.collect();
        let won: Vec<bool> = outputs
            .iter()
            .map(|output| output.status.success())
            .collect();
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "{outputs:?}");
        assert_eq!(machine.slices(0), [(SEVEN, 0)]);
        for (side, won) in sides.iter().zip(&won) {
            if *won {
                let _ = side.renter.feira(&["end", &name, "--yes"]).ok();
                let _ = side.renter.wait_for_phase(&name, "ended", SOON);
            }
        }
        wait_for("the slice to be gone", SOON, || {
            machine.slices(0).is_empty().then_some(())
        });
    }
    // Whoever did not get it paid nothing for it; whoever did paid what its receipts say.
    for side in &sides {
        let leases = side.renter.feira(&["ls", "--all", "--json"]).ok().json();
        let leases = leases["items"].as_array().cloned().unwrap_or_default();
        let charged: i64 = leases
            .iter()
            .map(|lease| micro_usd(&lease["charged_usd"]))
            .sum();
        let lost = leases.iter().filter(|lease| lease["started_at"].is_null());
        for lease in lost {
            assert_eq!(lease["charged_usd"], "0.000000", "{lease}");
        }
        wait_for("money that was held", SOON, || {
            (side.renter.balance() == (100_000_000 - charged, 0)).then_some(())
        });
        side.broker.check_ledger();
    }
}

/// Two brokers sell two halves of one GPU, and what is left is a third's to both of them.
#[test]
fn two_brokers_sell_halves_of_one_gpu_side_by_side() {
    let (machine, stage) = Machine::new(&[Model::A100]);
    let first = stage.broker("first", &[]);
    let second = stage.broker("second", &[]);
    let one = stage.renter("one", &[&first.address]);
    let two = stage.renter("two", &[&second.address]);
    first.deposit(&one, "100");
    second.deposit(&two, "100");
    let listing = ["--price", "1.20", "--partition-layout", "dynamic"];
    let _host = machine.host(&stage, &[&first.address, &second.address], &listing);
    for renter in [&one, &two] {
        renter.wait_for_goods_of(&["--partition", "3g.20gb"], 1);
    }
    let _ = rent_slice(&one, "left", "3g.20gb");
    let _ = rent_slice(&two, "right", "3g.20gb");
    assert_eq!(machine.slices(0).len(), 2);
    // No memory is left, and both brokers know.
    for renter in [&one, &two] {
        renter.wait_for_goods_of(&["--partition", "1g.5gb"], 0);
    }
    let _ = one.feira(&["end", "left", "--yes"]).ok();
    for renter in [&one, &two] {
        renter.wait_for_goods_of(&["--partition", "1g.5gb"], 1);
    }
    let _ = two.feira(&["end", "right", "--yes"]).ok();
    let _ = two.wait_for_phase("right", "ended", SOON);
    first.check_ledger();
    second.check_ledger();
}

/// A slice that somebody made by hand is not sold and not touched.
#[test]
fn what_others_cut_is_left_alone() {
    let (machine, stage) = Machine::new(&[Model::H100]);
    machine.cut_by_hand(0, 14, 0);
    let broker = stage.broker("broker", &[]);
    let renter = stage.renter("renter", &[&broker.address]);
    broker.deposit(&renter, "100");
    let listing = ["--price", PRICE, "--partition-layout", "dynamic"];
    let _host = machine.host(&stage, &[&broker.address], &listing);
    // Beside it there is room for a 4g nowhere, and for a 3g at its upper half alone.
    renter.wait_for_goods_of(&["--partition", "3g.40gb"], 1);
    renter.wait_for_goods_of(&["--partition", "4g.40gb"], 0);
    let _ = rent_slice(&renter, "three", "3g.40gb");
    assert_eq!(machine.slices(0), [(9, 4), (14, 0)]);
    let _ = renter.feira(&["end", "three", "--yes"]).ok();
    wait_for("its slice to go", SOON, || {
        (machine.slices(0) == [(14, 0)]).then_some(())
    });
}
