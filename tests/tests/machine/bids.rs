//! Bids and interruptible work on slices, which are as on GPUs.

use crate::play::{
    PRICE, SEVEN, SOON, check_money, ended, inside, rent_slice, rival, stands, wait_to_stand,
};
use fake_nvml::models::Model;
use feira_tests::machine::GpuMarket;
use feira_tests::programs::registry;
use feira_tests::programs::wait_for;
use feira_tests::renter::{Renter, micro_usd};
use serde_json::Value;

/// One H100 that is cut into what is asked for; interruptible from $0.40 for all of it.
fn interruptible() -> GpuMarket {
    let listing = [
        "--price",
        PRICE,
        "--partition-layout",
        "dynamic",
        "--floor",
        "0.40",
        "--notice",
        "30s",
        "--storage",
        "0",
    ];
    let all = GpuMarket::new(&[Model::H100], &listing, 0);
    all.renter()
        .wait_for_goods_of(&["--partition", "4g.40gb"], 1);
    all
}

/// Orders a slice with these words, and a program that goes when it is told.
#[track_caller]
fn order(renter: &Renter, words: &str) -> Value {
    let image = format!("{}/feira-demo:1", registry());
    let mut all: Vec<&str> = words.split_whitespace().collect();
    all.extend([
        "--image", &image, "--budget", "5", "--disk", "0.2", "--yes", "--json",
    ]);
    let obeys = "echo $NVIDIA_VISIBLE_DEVICES; trap 'exit 0' TERM; while :; do sleep 0.2; done";
    all.extend(["--", "sh", "-c", obeys]);
    renter.feira(&all).ok().json()
}

/// A bid below the price of a slice rests until its host asks less, and pays what the host asks.
#[test]
fn a_bid_for_a_slice_is_met_when_the_host_asks_less() {
    let all = interruptible();
    let renter = all.renter();
    let waits = order(renter, "rent --bid 0.30 --name waits --partition 1g.10gb");
    assert_eq!(waits["state"], "resting", "{waits}");
    assert_eq!(waits["to_win_usd_per_gpu_hour"], "0.323438");
    assert_eq!(stands(&all, 0), []);
    let _ = all.market.host.command(&["list", "--price", "2.00"]).ok();
    // 2.00 × 1/8 × 1.15.
    let met = renter.wait_for_phase("waits", "running", SOON);
    assert_eq!(met["compute_usd_per_hour"], "0.287500", "{met}");
    assert_eq!(met["partition"]["profile"], "1g.10gb");
    assert_eq!(stands(&all, 0).len(), 1);
    let cost = ended(&all, renter, "waits");
    check_money(&all, renter, &[cost]);
}

/// Who wants the whole GPU pushes out who works on a slice of it at a bid, and gives the place back: the same one.
#[test]
fn interruptible_work_on_a_slice_makes_room_and_comes_back() {
    let all = interruptible();
    let renter = all.renter();
    let rival = rival(&all);
    let low = order(
        renter,
        "bid --max-price 0.60 --name low --partition 4g.40gb",
    );
    assert_eq!(
        (&low["kind"], &low["state"]),
        (&"interruptible".into(), &"running".into())
    );
    let had = inside(renter, "low");
    let four = stands(&all, 0);
    assert_eq!(four.len(), 1);

    let seven = rent_slice(&rival, "seven", "7g.80gb");
    assert_eq!(seven["state"], "running", "{seven}");
    assert_eq!(stands(&all, 0), [(SEVEN, 0)]);
    let low = renter.wait_for_phase("low", "stopped", SOON);
    assert_eq!(low["resumes_by_itself"], true, "{low}");
    let theirs = ended(&all, &rival, "seven");

    let again = renter.wait_for_phase("low", "running", SOON);
    // What a lease on demand cut short within its first ten minutes costs nothing.
    assert_eq!(
        again["rates"][0]["compute_usd_per_hour"], "0.000000",
        "{again}"
    );
    wait_to_stand(&all, 0, &four);
    assert_eq!(inside(renter, "low"), had);
    wait_for("its second run", SOON, || {
        let said = renter.feira(&["logs", "low"]).out;
        (said.matches("MIG-").count() == 2).then_some(())
    });
    let cost = ended(&all, renter, "low");
    check_money(&all, renter, &[cost]);
    assert_eq!(rival.balance(), (1_000_000_000 - theirs, 0));
    assert!(micro_usd(&again["bid_usd_per_gpu_hour"]) == 600_000);
}

/// Of two bids for slices that do not fit beside each other the higher one wins, and the other is told.
#[test]
fn the_higher_of_two_bids_has_the_slice() {
    let all = interruptible();
    let renter = all.renter();
    let rival = rival(&all);
    let low = order(
        renter,
        "bid --max-price 0.50 --name low --partition 7g.80gb",
    );
    assert_eq!(low["state"], "running", "{low}");
    // A bid for a part of it has to be worth more than all that it pushes out.
    let part = order(
        &rival,
        "bid --max-price 0.30 --name part --partition 1g.10gb",
    );
    assert_eq!(part["state"], "resting", "{part}");
    let _ = rival.feira(&["end", "part", "--yes"]).ok();
    assert_eq!(renter.lease("low")["state"], "running");
    let cost = ended(&all, renter, "low");
    check_money(&all, renter, &[cost]);
}
