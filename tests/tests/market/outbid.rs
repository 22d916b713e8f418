//! Interruptible leases that lose their place, and get it back.

use crate::play::{Play, SOON, ended, order, wait_for_log};
use feira_tests::programs::{registry, wait_for};
use feira_tests::renter::{Renter, containers_of_lease, micro_usd};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Writes that it began; told to go, shows and keeps what it was told, and ends.
const LISTENS: &str = r#"
echo began >> /workspace/runs
trap 'echo told; cat /run/feira/notice.json | tee /workspace/notice; exit 0' TERM
echo working
while :; do sleep 0.2; done"#;

/// Told to go, it stays.
const IS_DEAF: &str = r#"
trap '' TERM
echo working
while :; do sleep 0.2; done"#;

/// `feira wait NAME --for noticed`, begun before there is anything to notice.
fn watches(renter: &Renter, name: &str) -> Child {
    let mut command = renter.prepared();
    command.args(["wait", name, "--for", "noticed"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// What the watching client said; it has to end by itself, within seconds of the notice.
fn was_told(mut watching: Child) -> String {
    let within = Duration::from_secs(10);
    wait_for("a watching client to be told", within, || {
        watching.try_wait().unwrap()
    });
    let output = watching.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap()
}

// peers 3.2 #21: a bid that lost is seen to have lost, as a state of its own with its reason.
// peers 3.2 #22: within seconds, pushed to a client that watches.
// peers 3.2 #23: what is to happen then is in the contract, and happens: it resumes by itself.
#[test]
fn a_higher_bid_tells_pauses_and_gives_the_place_back_at_its_end() {
    let mut play = Play::new(&[("min_run_s", "1")]);
    let renter = play.renter();
    let low = order(
        renter,
        "bid --max-price 0.20 --name low",
        &["sh", "-c", LISTENS],
    )
    .ok()
    .json();
    assert_eq!(
        (&low["kind"], &low["state"]),
        (&"interruptible".into(), &"running".into())
    );
    let id = low["id"].as_str().unwrap();
    wait_for_log(renter, "low", "working");
    let watching = watches(renter, "low");

    let high = order(&play.rival, "bid --max-price 0.30 --name high", &[])
        .ok()
        .json();
    // It may have to wait for the end of a second that nobody can be outbid in.
    assert!(
        high["state"] == "running" || high["state"] == "resting",
        "{high}"
    );
    let said = was_told(watching);
    assert!(
        said.contains("low has to go within") && said.contains("somebody bid more"),
        "{said}"
    );
    wait_for_log(renter, "low", r#"{"reason":"outbid","stop_at":"#);
    let paused = renter.wait_for_phase("low", "stopped", SOON);
    assert_eq!(paused["resumes_by_itself"], true);
    assert_eq!(
        paused["reason"],
        "somebody bid more; it resumes by itself when its bid wins"
    );
    assert_eq!(containers_of_lease(id).len(), 1);
    let _ = play.rival.wait_for_phase("high", "running", SOON);
    // It ended by itself long before it had to; what ran was paid at its bid, to the microdollar.
    assert!(paused["running_seconds"].as_i64().unwrap() < 25, "{paused}");

    let (rivals, rivals_file) = ended(&play, &play.rival, "high");
    let again = renter.wait_for_phase("low", "running", SOON);
    assert_eq!(again["bid_usd_per_gpu_hour"], "0.200000");
    wait_for("its second run", SOON, || {
        let runs = renter.feira(&["exec", "low", "--", "cat", "/workspace/runs"]);
        (runs.out == "began\nbegan\n").then_some(())
    });
    let kept = renter
        .feira(&["exec", "low", "--", "cat", "/workspace/notice"])
        .ok();
    let notice: serde_json::Value = kept.json();
    assert_eq!(notice["reason"], "outbid");
    assert!(notice["seconds"].as_i64().unwrap() <= 30, "{notice}");
    // The old notice is not there any more.
    let _ = renter
        .feira(&[
            "exec",
            "low",
            "--",
            "test",
            "!",
            "-e",
            "/run/feira/notice.json",
        ])
        .ok();

    let (cost, file) = ended(&play, renter, "low");
    play.check_money(cost, rivals);
    play.market.broker.kill();
    play.market.host.kill();
    for (renter, file) in [(&play.market.renter, &file), (&play.rival, &rivals_file)] {
        let _ = renter.feira(&["receipt", "--verify", file]).ok();
    }
}

#[test]
fn a_program_that_stays_is_stopped_when_its_notice_is_over_and_pays_until_then() {
    let play = Play::new(&[("min_run_s", "1")]);
    let renter = play.renter();
    let program = ["sh", "-c", IS_DEAF];
    let _ = order(renter, "bid --max-price 0.20 --name low", &program).ok();
    wait_for_log(renter, "low", "working");
    let watching = watches(renter, "low");
    let mut bids = play.rival.prepared();
    let image = format!("{}/feira-demo:1", registry());
    bids.args([
        "bid",
        "num_gpus=0",
        "--max-price",
        "0.30",
        "--name",
        "high",
        "--budget",
        "5",
    ]);
    bids.args(["--disk", "2", "--yes", "--image", &image]);
    let mut bidding = bids
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();

    let _ = was_told(watching);
    let noticed = renter.lease("low");
    assert_eq!(
        (&noticed["state"], noticed["must_go_by"].is_null()),
        (&"noticed".into(), false)
    );
    let notice = renter.feira(&["exec", "low", "--", "cat", "/run/feira/notice.json"]);
    let notice = notice.ok().json();
    assert_eq!(notice["reason"], "outbid");
    let _ = renter.wait_for_phase("low", "stopped", Duration::from_secs(50));
    // What its host measured comes a moment after the end of the notice.
    let paused = wait_for("the whole notice to be billed", SOON, || {
        let lease = renter.lease("low");
        (lease["running_seconds"].as_i64()? >= 29).then_some(lease)
    });
    let ran = paused["running_seconds"].as_i64().unwrap();
    assert!(ran < 60, "{paused}");
    // At 200 000 µ$ an hour, until it was gone.
    assert!(
        micro_usd(&paused["charged_usd"]) >= ran * 200_000 / 3600,
        "{paused}"
    );
    assert!(bidding.wait().unwrap().success());
    let _ = play.rival.wait_for_phase("high", "running", SOON);
    let (rivals, _) = ended(&play, &play.rival, "high");
    let _ = renter.wait_for_phase("low", "running", SOON);
    let (cost, _) = ended(&play, renter, "low");
    play.check_money(cost, rivals);
}

// peers 3.2 #44: a bid that would be pushed out again and again may go on on demand instead.
// peers 3.2 #32: a bid that lost is withdrawn with all that was held for it.
#[test]
fn with_a_fallback_it_goes_on_on_demand_and_the_higher_bid_waits() {
    let play = Play::new(&[("min_run_s", "1")]);
    let renter = play.renter();
    let words = "bid --max-price 0.20 --fallback 0.45 --name low";
    let _ = order(renter, words, &["sh", "-c", LISTENS]).ok();
    wait_for_log(renter, "low", "working");
    let high = order(&play.rival, "bid --max-price 0.30 --name high", &[])
        .ok()
        .json();
    assert_eq!(high["state"], "resting");
    let low = wait_for("the lease to be on demand", SOON, || {
        let low = renter.lease("low");
        (low["kind"] == "on_demand").then_some(low)
    });
    assert_eq!(
        (&low["state"], &low["compute_usd_per_hour"]),
        (&"running".into(), &"0.400000".into())
    );
    let rates: Vec<_> = low["rates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rate| &rate["compute_usd_per_hour"])
        .collect();
    assert_eq!(rates, ["0.200000", "0.400000"]);

    // An hour of the bid is held for what waits, and all of it comes back.
    assert_eq!(play.rival.balance(), (999_700_000, 300_000));
    let _ = play.rival.feira(&["end", "high", "--yes"]).ok();
    assert_eq!(play.rival.balance(), (1_000_000_000, 0));
    let (cost, _) = ended(&play, renter, "low");
    play.check_money(cost, 0);
}
