//! What a search shows, with sums worked out by hand.

use super::*;
use crate::fixtures::offers;
use protocol::bounded::{List, Text};
use protocol::filter::Filter;
use protocol::ids::Digest;
use protocol::machine::{Measure, Quantity};
use protocol::units::Timestamp;
use serde_json::{Value, json};

fn finding() -> Finding {
    Finding {
        candidates: vec![offers::candidate(1, 1, 318_000)],
        matching: 1,
        of: 1204,
        ..Finding::default()
    }
}

fn search(kind: ContractKind) -> Search {
    Search {
        filter: Filter::default(),
        sort: List::default(),
        need: Need::disk(Bytes::from_gb(60)),
        kind,
        limit: 20,
        job: None,
    }
}

#[test]
fn a_portion_is_one_line_with_the_price_all_in() {
    // 60 GB at $0.10 a GB-month: 8 333 µ$ an hour.
    let listing = listing(&finding(), &search(ContractKind::OnDemand), String::new());
    let row = &listing.rows[0];
    assert_eq!(
        row.cells[1..7],
        [
            "1x RTX 4090 24 GB",
            "0.326333",
            "99.8%",
            "16",
            "60.0 GiB",
            "500 GB"
        ]
    );
    assert_eq!(row.cells.len(), listing.columns.len());
    assert_eq!(row.id, finding().candidates[0].offer.body().id.to_string());
    assert_eq!(row.json["price_usd_per_hour"], "0.326333");
    assert_eq!(row.json["reliability"], json!(0.998_68));
    assert_eq!(row.json["max_seconds"], Value::Null);
    assert_eq!(row.json["floor_usd_per_gpu_hour"], Value::Null);
    assert_eq!(row.json["brokers"].as_array().map(Vec::len), Some(2));
}

/// Two of four at $0.205 for a GPU and hour, 60 GB, and 2 GB up an hour at $0.005: 410 000 + 8 333 + 10 000.
#[test]
fn a_portion_for_bidders_costs_what_wins_for_all_its_gpus_with_the_traffic() {
    let mut query = search(ContractKind::Interruptible);
    query.need.upload = Bytes::from_gb(2);
    let two = offers::portion_of(1, offers::pool(1, 4, 318_000), 2, 205_000);
    let finding = Finding {
        candidates: vec![two],
        ..finding()
    };
    let listing = listing(&finding, &query, String::new());
    let row = &listing.rows[0];
    assert_eq!(
        row.cells[1..8],
        [
            "2x RTX 4090 24 GB",
            "0.428333",
            "99.8%",
            "8",
            "30.0 GiB",
            "250 GB",
            &finding.candidates[0].host().short()
        ]
    );
    assert_eq!(
        row.cells[8..13],
        ["no", "0.205", "1,2,3,4", "0.10", "40.00 %"]
    );
    assert_eq!(row.json["kind"], "interruptible");
    assert_eq!(row.json["num_gpus"], 2);
    assert_eq!(row.json["gpus"].as_array().map(Vec::len), Some(2));
    assert_eq!(row.json["price_usd_per_gpu_hour"], "0.205000");
    assert_eq!(row.json["contract_usd_per_hour"], "0.410000");
    // Two at the $0.318 that is asked.
    assert_eq!(row.json["on_demand_usd_per_hour"], "0.654333");
    let closing = closing_lines(&finding, &query);
    let id = finding.candidates[0].offer.body().id.short();
    assert!(
        closing[0].ends_with("$/H is what wins now, all-in with 60 GB of disk, 2 GB an hour up.")
    );
    assert_eq!(
        closing[1],
        format!("Rent the first: feira bid {id} --gpus 2 --max-price 0.205 --image IMAGE")
    );
}

/// FP16 of 400 TFLOP/s and memory of 1500 GB/s: 100 × √(400 / 71.2 × 1500 / 936) = 300.05, so 300; for $1.30, 230.
#[test]
fn a_slice_says_what_it_is_what_was_measured_and_what_is_proved() {
    let measure = |quantity, value| Measure {
        quantity,
        value,
        method: Text::new("own").unwrap(),
        version: 1,
        at: Timestamp(0),
    };
    let mut offer = offers::sliced(1, 1_300_000);
    offer.measures = List::first([
        measure(Quantity::Fp16Matrix, 400_000),
        measure(Quantity::GpuMemory, 1_500_000),
    ]);
    let mut slice = offers::portion_of(1, offer, 1, 1_300_000);
    slice.verification = VerificationLevel::Verified {
        at: Timestamp(0),
        verdict: Digest::of(b"verdict"),
    };
    let finding = Finding {
        candidates: vec![slice],
        ..finding()
    };
    let listing = listing(&finding, &search(ContractKind::OnDemand), String::new());
    let row = &listing.rows[0];
    assert_eq!(
        (row.cells[1].as_str(), row.cells[8].as_str()),
        ("1x H100 80GB HBM3 3g.40gb", "yes")
    );
    assert_eq!(row.cells[row.cells.len() - 2..], ["300.0", "230.0"]);
    assert_eq!(row.cells.len(), listing.columns.len());
    let json = &row.json;
    assert_eq!(json["partition"]["profile"], "3g.40gb");
    assert_eq!(json["partition"]["multiprocessors_of_gpu"], 132);
    assert_eq!(
        (&json["isolation"], &json["verified"]),
        (&json!("hardware"), &json!(true))
    );
    assert_eq!(json["verification"]["level"], "verified");
    assert_eq!(json["verification"]["at"], "1970-01-01T00:00:00.000Z");
    assert_eq!(
        (&json["score"], &json["fp16_tflops"]),
        (&json!(300.0), &json!(400.0))
    );
    assert_eq!(json["fp32_tflops"], Value::Null);
    assert_eq!(
        json["measures"][1]["quantity"],
        "gpu_memory_mbytes_per_second"
    );
    assert_eq!(json["gpus"][0]["vendor"], "nvidia");
    // Nothing measured, nothing proved, nothing divided.
    let plain = finding_json(offers::candidate(1, 1, 1));
    assert_eq!(
        (&plain["partition"], &plain["score"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        (&plain["isolation"], &plain["verification"]["level"]),
        (&json!("whole"), &json!("unverified"))
    );
}

fn finding_json(candidate: Candidate) -> Value {
    offer_json(&candidate, &search(ContractKind::OnDemand))
}

// peers 3.1 #7: how many there are, how many are shown, and how to see more.
#[test]
fn the_closing_lines_say_what_was_counted_and_how_to_see_more() {
    let query = search(ContractKind::OnDemand);
    let mut finding = finding();
    let id = finding.candidates[0].offer.body().id.short();
    let next = format!("Rent the first: feira rent {id} --image IMAGE");
    let first = "1 of 1,204 offers. $/H is all-in with 60 GB of disk.".to_owned();
    assert_eq!(closing_lines(&finding, &query), [first, next]);
    finding.matching = 30;
    let line = &closing_lines(&finding, &query)[0];
    assert!(
        line.starts_with("1 of 30 that match, of 1,204 offers; more: --limit 30."),
        "{line}"
    );
    let shown = listing(&finding, &query, String::new());
    assert_eq!(shown.next.as_deref(), Some("--limit 30"));
    // Brokers answer with 64 at most.
    finding.matching = 1000;
    assert!(closing_lines(&finding, &query)[0].contains("more: --limit 64."));
    finding.candidates = vec![offers::candidate(1, 1, 318_000); 64];
    assert!(closing_lines(&finding, &query)[0].contains("more: narrower conditions."));
    assert_eq!(listing(&finding, &query, String::new()).next, None);
}

#[test]
fn no_promise_is_rounded_up() {
    assert_eq!(percent(998_999), "99.8%");
    assert_eq!(percent(600_000), "60.0%");
    assert_eq!(percent(1_000_000), "100.0%");
}
