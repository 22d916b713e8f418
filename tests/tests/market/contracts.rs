//! On demand before bids, bids that wait for a price, bids that are changed, and leases that become another kind.

use crate::play::{Play, SOON, ended, order, wait_for_log};
use feira_tests::programs::wait_for;
use feira_tests::renter::micro_usd;

/// Told to go, it goes.
const OBEYS: [&str; 3] = [
    "sh",
    "-c",
    "trap 'exit 0' TERM; echo working; while :; do sleep 0.2; done",
];

#[test]
fn on_demand_takes_the_place_and_what_it_cut_short_is_free() {
    // Nobody was outbid: in its first ten minutes a lease can only be preempted, and then pays nothing for them.
    let play = Play::new(&[]);
    let renter = play.renter();
    let _ = order(renter, "bid --max-price 0.20 --name low", &OBEYS).ok();
    wait_for_log(renter, "low", "working");
    let higher = order(&play.rival, "bid --max-price 0.39 --name higher", &[])
        .ok()
        .json();
    assert_eq!(higher["state"], "resting", "{higher}");
    let _ = play.rival.feira(&["end", "higher", "--yes"]).ok();

    let demand = order(&play.rival, "rent --max-price 0.5 --name demand", &[])
        .ok()
        .json();
    assert_eq!(demand["state"], "running");
    let low = renter.wait_for_phase("low", "stopped", SOON);
    assert_eq!(
        low["reason"],
        "a lease on demand took its place; it resumes by itself when its bid wins"
    );
    let (rivals, _) = ended(&play, &play.rival, "demand");
    let low = renter.wait_for_phase("low", "running", SOON);
    assert_eq!(low["rates"][0]["compute_usd_per_hour"], "0.000000", "{low}");
    let (cost, _) = ended(&play, renter, "low");
    play.check_money(cost, rivals);
}

#[test]
fn a_resting_bid_is_met_when_the_host_asks_less_and_pays_what_the_host_asks() {
    let play = Play::new(&[]);
    let renter = play.renter();
    let words = "rent --bid 0.30 --name waits";
    let waits = order(renter, words, &[]).ok().json();
    assert_eq!(
        (&waits["kind"], &waits["state"]),
        (&"bid".into(), &"resting".into())
    );
    assert_eq!(waits["to_win_usd_per_gpu_hour"], "0.400000");
    assert_eq!(renter.balance(), (999_700_000, 300_000));
    // Still more than the limit.
    play.list_at("0.35");
    wait_for("the new price to be known", SOON, || {
        (renter.lease("waits")["to_win_usd_per_gpu_hour"] == "0.350000").then_some(())
    });
    assert_eq!(renter.lease("waits")["state"], "resting");
    play.list_at("0.25");
    let met = renter.wait_for_phase("waits", "running", SOON);
    assert_eq!(
        (&met["kind"], &met["compute_usd_per_hour"]),
        (&"bid".into(), &"0.250000".into())
    );
    // Nobody can push it out, and a price that rises later is not its own.
    play.list_at("0.50");
    let bid = order(&play.rival, "bid --max-price 0.45 --name bids", &[])
        .ok()
        .json();
    assert_eq!(bid["state"], "resting");
    let (cost, _) = ended(&play, renter, "waits");
    let _ = play.rival.wait_for_phase("bids", "running", SOON);
    let (rivals, _) = ended(&play, &play.rival, "bids");
    play.check_money(cost, rivals);
}

#[test]
fn a_bid_is_raised_and_a_lease_becomes_another_kind_where_it_is() {
    let play = Play::new(&[]);
    let renter = play.renter();
    let _ = order(renter, "bid --max-price 0.20 --name otter", &OBEYS).ok();
    wait_for_log(renter, "otter", "working");
    let low = renter.feira(&["bid", "set", "otter", "--max-price", "0.05"]);
    let _ = low.code(5).says("at least $0.10/h is needed");
    let _ = renter
        .feira(&["bid", "set", "otter", "--max-price", "0.25"])
        .ok();
    assert_eq!(renter.lease("otter")["bid_usd_per_gpu_hour"], "0.250000");
    let shown = renter.feira(&["convert", "otter", "on-demand", "--dry-run"]);
    let _ = shown.ok().says("$0.40/h for running, frozen");
    assert_eq!(renter.lease("otter")["kind"], "interruptible");
    let _ = renter
        .feira(&["convert", "otter", "on-demand", "--yes"])
        .ok();
    assert_eq!(renter.lease("otter")["kind"], "on_demand");
    let no_bid = renter.feira(&["bid", "set", "otter", "--max-price", "0.30"]);
    let _ = no_bid.code(1).says("it has no bid");
    // Nobody bids for what is held on demand.
    let rests = order(&play.rival, "bid --max-price 0.39 --name rests", &[])
        .ok()
        .json();
    assert_eq!(rests["state"], "resting");
    let words = [
        "convert",
        "otter",
        "interruptible",
        "--price",
        "0.22",
        "--yes",
    ];
    let _ = renter.feira(&words).ok();
    let lease = renter.lease("otter");
    assert_eq!(
        (&lease["kind"], &lease["state"]),
        (&"interruptible".into(), &"running".into())
    );
    let rates: Vec<_> = lease["rates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rate| micro_usd(&rate["compute_usd_per_hour"]))
        .collect();
    assert_eq!(rates, [200_000, 250_000, 400_000, 220_000]);
    let _ = play.rival.feira(&["end", "rests", "--yes"]).ok();
    let (cost, _) = ended(&play, renter, "otter");
    play.check_money(cost, 0);
}
