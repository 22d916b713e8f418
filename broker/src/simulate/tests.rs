//! The worked examples of the market rules as scenarios: their amounts were worked out by hand.

use super::{BadScenario, City, Scenario};
use serde_json::{Value, json};

fn lines_of(text: &str) -> Vec<Value> {
    let scenario = Scenario::read(text).unwrap();
    let mut out = Vec::new();
    City::new(&scenario, &mut out).run().unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn summary(lines: &[Value]) -> &Value {
    &lines.last().unwrap()["summary"]
}

/// When which of these events happened to an order: `(at_s, event)`.
fn course<'l>(lines: &'l [Value], order: &str, events: &[&str]) -> Vec<(u64, &'l str)> {
    let of_order = lines.iter().filter(|line| line["order"] == order);
    of_order
        .filter_map(|line| Some((line["at_s"].as_u64()?, line["event"].as_str()?)))
        .filter(|(_, event)| events.contains(event))
        .collect()
}

#[test]
fn m1_compute_storage_and_traffic() {
    let lines = lines_of(include_str!("../../tests/scenarios/m1.json"));
    let summary = summary(&lines);
    let charge = &summary["charges"]["o1"];
    assert_eq!(
        charge,
        &json!({ "compute": 600_000, "storage": 10_416, "up": 123_456, "down": 0,
            "total": 733_872, "fee": 73_387, "host": 660_485 })
    );
    assert_eq!(summary["balances"]["r1"]["available"], 10_000_000 - 733_872);
    assert_eq!(summary["balances"]["h1"]["pending"], 660_485);
    assert_eq!(summary["sum"], 0);
}

#[test]
fn b1_resting_bids_by_price_and_time_at_the_ask() {
    let lines = lines_of(include_str!("../../tests/scenarios/b1.json"));
    let steps = ["lease_started", "lease_closed"];
    assert_eq!(course(&lines, "b1", &steps), []);
    assert_eq!(
        course(&lines, "b2", &steps),
        [(20, "lease_started"), (7220, "lease_closed")]
    );
    assert_eq!(course(&lines, "b3", &steps), [(7220, "lease_started")]);
    let summary = summary(&lines);
    assert_eq!(summary["charges"]["b2"]["total"], 780_000);
    // One hour of the limit is held while it rests, and 10 000 come back at the ask.
    assert_eq!(summary["balances"]["r1"]["held"], 380_000);
    let released: Vec<i64> = lines
        .iter()
        .filter(|line| line["order"] == "b2" && line["event"] == "released" && line["at_s"] == 20)
        .filter_map(|line| line["amount"].as_i64())
        .collect();
    assert_eq!(released, [10_000]);
}

#[test]
fn i1_the_whole_timeline_of_interruptible_leases() {
    let lines = lines_of(include_str!("../../tests/scenarios/i1.json"));
    let steps = [
        "lease_started",
        "lease_notice",
        "lease_paused",
        "lease_resumed",
        "lease_closed",
    ];
    assert_eq!(
        course(&lines, "R1", &steps),
        [
            (0, "lease_started"),
            (1200, "lease_notice"),
            (1320, "lease_paused")
        ]
    );
    assert_eq!(course(&lines, "R2", &steps), []);
    assert_eq!(
        course(&lines, "R3", &steps),
        [
            (1320, "lease_started"),
            (5000, "lease_notice"),
            (5120, "lease_paused"),
            (12_320, "lease_resumed")
        ]
    );
    assert_eq!(
        course(&lines, "OD", &steps),
        [(5120, "lease_started"), (12_320, "lease_closed")]
    );
    let summary = summary(&lines);
    assert_eq!(summary["charges"]["R1"]["total"], 55_000);
    assert_eq!(summary["charges"]["OD"]["total"], 800_000);
    // 3800 s, and 80 s more at the end: floor(160 000 × 3880 / 3600).
    assert_eq!(summary["charges"]["R3"]["total"], 172_444);
    let charged: i64 = lines
        .iter()
        .filter(|line| line["order"] == "R3" && line["event"] == "charged")
        .filter(|line| line["at_s"].as_u64().unwrap() <= 5120)
        .filter_map(|line| line["amount"].as_i64())
        .sum();
    assert_eq!(charged, 168_888);
}

#[test]
fn i2_preempted_inside_the_minimum_run_it_is_free() {
    let lines = lines_of(include_str!("../../tests/scenarios/i2.json"));
    let summary = summary(&lines);
    assert_eq!(summary["charges"]["R1"]["total"], 0);
    assert_eq!(summary["balances"]["r1"]["available"], 1_000_000_000);
    // From 540 s to 1000 s at 400 000: floor(51 111.1).
    assert_eq!(summary["charges"]["OD"]["total"], 51_111);
}

#[test]
fn c2_greedy_with_skip_pays_as_bid() {
    let lines = lines_of(include_str!("../../tests/scenarios/c2.json"));
    for order in ["a", "b", "d"] {
        assert_eq!(
            course(&lines, order, &["lease_started"]),
            [(100, "lease_started")]
        );
    }
    for order in ["c", "e"] {
        assert_eq!(course(&lines, order, &["lease_started"]), []);
    }
    let hourly: u64 = lines
        .iter()
        .filter(|line| line["event"] == "lease_offered")
        .filter_map(|line| line["price_uh"].as_u64())
        .sum();
    assert_eq!(hourly, 1_050_000);
    let totals = ["a", "b", "d"].map(|order| summary(&lines)["charges"][order]["total"].clone());
    // 3500 s at 620 000, 250 000 and 180 000 an hour, each rounded down.
    assert_eq!(totals, [json!(602_777), json!(243_055), json!(175_000)]);
}

#[test]
fn x_a_term_that_its_renter_cancels_half_way() {
    let lines = lines_of(include_str!("../../tests/scenarios/x360.json"));
    let summary = summary(&lines);
    // Prepaid 576 000 000, back 212 400 000.
    assert_eq!(
        summary["balances"]["r1"]["available"],
        1_000_000_000_i64 - 576_000_000 + 212_400_000
    );
    assert_eq!(summary["balances"]["broker"]["clawback"], 3_600_000);
    let charge = &summary["charges"]["o"];
    // Earned 288 000 000 and the discount of 72 000 000 are shared, the claw-back is not.
    assert_eq!(charge["total"], 363_600_000);
    assert_eq!(charge["fee"], 36_000_000);
    assert_eq!(charge["host"], 324_000_000);
}

#[test]
fn f_a_host_that_breaks_a_term_off_half_way() {
    let lines = lines_of(include_str!("../../tests/scenarios/f360.json"));
    let summary = summary(&lines);
    assert_eq!(
        summary["balances"]["r1"]["available"],
        1_000_000_000_i64 - 576_000_000 + 288_000_000 + 28_800_000
    );
    assert_eq!(summary["balances"]["h1"]["bond"], 50_000_000 - 28_800_000);
    assert_eq!(summary["charges"]["o"]["total"], 288_000_000);
}

/// Slices beside a whole GPU: 3g and 4g fill it, the whole waits for both, and each is charged its own price.
#[test]
fn slices_and_whole_gpus_keep_each_other_out() {
    let text = r#"{
        "settings": { "fee_bps": 1000 },
        "hosts": [ { "id": "h1", "cpu_cores": 32, "ram_gb": 128, "disk_gb": 1000, "ask_uh": 2250000,
            "gpus": [ { "model": "H100 80GB HBM3", "count": 1, "slices": [
                { "profile": "3g.40gb", "ask_uh": 1293750 }, { "profile": "4g.40gb", "ask_uh": 1293750 } ] } ] } ],
        "steps": [
            { "at_s": 0, "do": "deposit", "renter": "r1", "amount": 100000000 },
            { "at_s": 0, "do": "rent", "order": "three", "renter": "r1", "kind": "on_demand", "gpus": 1, "filter": "partition=3g.40gb" },
            { "at_s": 0, "do": "rent", "order": "four", "renter": "r1", "kind": "on_demand", "gpus": 1, "filter": "partition=4g.40gb" },
            { "at_s": 0, "do": "rent", "order": "other", "renter": "r1", "kind": "on_demand", "gpus": 1, "filter": "partition=3g.40gb" },
            { "at_s": 0, "do": "bid", "order": "whole", "renter": "r1", "kind": "resting", "limit_uh": 2250000, "gpus": 1 },
            { "at_s": 3600, "do": "destroy", "order": "three" },
            { "at_s": 7200, "do": "destroy", "order": "four" },
            { "at_s": 10800, "do": "destroy", "order": "whole" } ],
        "until_s": 10900 }"#;
    let lines = lines_of(text);
    let started = |order| course(&lines, order, &["lease_started", "order_rejected"]);
    assert_eq!(started("three"), [(0, "lease_started")]);
    assert_eq!(started("four"), [(0, "lease_started")]);
    assert_eq!(started("other"), [(0, "order_rejected")]);
    assert_eq!(started("whole"), [(7200, "lease_started")]);
    let charges = &summary(&lines)["charges"];
    assert_eq!(charges["three"]["compute"], 1_293_750);
    assert_eq!(charges["four"]["compute"], 2 * 1_293_750);
    assert_eq!(charges["whole"]["compute"], 2_250_000);
}

#[test]
fn a_scenario_gives_the_same_bytes_each_time() {
    let text = include_str!("../../tests/scenarios/i1.json");
    assert_eq!(lines_of(text), lines_of(text));
}

fn problem(text: &str) -> String {
    Scenario::read(text).unwrap_err().to_string()
}

#[test]
fn what_is_wrong_with_a_scenario_is_named_with_its_line() {
    let unknown = problem("{\n\"hosts\": [],\n\"steps\": [],\n\"until\": 3\n}");
    assert!(
        unknown.contains("line 4") && unknown.contains("`until`"),
        "{unknown}"
    );
    let step = problem(
        "{\"hosts\": [], \"until_s\": 9, \"steps\": [\n{\"at_s\": 1, \"do\": \"dance\"}\n]}",
    );
    assert!(
        step.contains("line 2") && step.contains("`dance`"),
        "{step}"
    );
    let key = problem(
        "{\"hosts\": [], \"until_s\": 9, \"steps\": [\n\n{\"at_s\": 1, \"do\": \"stop\", \"order\": \"o\", \"why\": 1}\n]}",
    );
    assert!(key.contains("line 3") && key.contains("`why`"), "{key}");
    let filter = problem(
        "{\"hosts\": [], \"until_s\": 9, \"steps\": [\n{\"at_s\": 1, \"do\": \"rent\", \"order\": \"o\", \"renter\": \"r\", \"filter\": \"gpu_nam=RTX_4090\"}]}",
    );
    assert!(
        filter.contains("line 2") && filter.contains("gpu_nam"),
        "{filter}"
    );
    let negative = problem(
        "{\"hosts\": [], \"until_s\": 9, \"steps\": [\n{\"at_s\": -1, \"do\": \"pay_out\"}]}",
    );
    assert!(negative.contains("at_s: -1"), "{negative}");
}

#[test]
fn a_scenario_that_contradicts_itself_is_refused_with_the_place() {
    let wrong = |text: &str| match Scenario::read(text).unwrap_err() {
        BadScenario::Wrong { place, problem } => (place, problem),
        BadScenario::Unreadable { problem, .. } => panic!("{problem}"),
    };
    let order =
        r#"{"hosts": [], "until_s": 9, "steps": [{"at_s": 1, "do": "stop", "order": "o"}]}"#;
    assert_eq!(
        wrong(order),
        ("steps[0]".to_owned(), "there is no order o".to_owned())
    );
    let host = r#"{"hosts": [], "until_s": 9, "steps": [{"at_s": 1, "do": "set_ask", "host": "h", "ask_uh": 1}]}"#;
    assert_eq!(wrong(host).1, "there is no host h");
    let late = r#"{"hosts": [], "until_s": 9, "steps": [{"at_s": 10, "do": "pay_out"}]}"#;
    assert_eq!(wrong(late).1, "it is after until_s");
    let fee = r#"{"settings": {"fee_bps": 10001}, "hosts": [], "until_s": 9, "steps": []}"#;
    assert_eq!(
        wrong(fee).1,
        "fee_bps is more than the whole, which is 10000"
    );
    let dear = r#"{"hosts": [{"id": "h", "cpu_cores": 1, "ram_gb": 1, "disk_gb": 1, "ask_uh": 1,
        "disk_ugbmo": 9223372036854775807}], "until_s": 9, "steps": []}"#;
    let (place, problem) = wrong(dear);
    assert_eq!(place, "hosts[0]");
    assert_eq!(problem, "disk_ugbmo is above a million dollars");
}
