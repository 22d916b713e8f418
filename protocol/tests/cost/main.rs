//! What jobs cost, against sums worked out elsewhere: the formula, the worked examples, what is assumed and
//! what is refused.
#![cfg(test)]

mod assumed;
mod bounds;
mod examples;
mod formulas;
#[path = "../sample/mod.rs"]
mod sample;
mod sites;

use protocol::cost::{JobProfile, Site, Work};
use protocol::terms::Prices;
use protocol::units::{Bytes, PricePerGb, PricePerGbMonth, PricePerHour};
use serde_json::Value;
use std::num::NonZeroU64;

fn vectors() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/vectors/cost_vectors.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn number(case: &Value, name: &str) -> f64 {
    case[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} of {case}"))
}

/// `found` is what `wanted` was rounded from, to so many places.
#[track_caller]
fn same(found: f64, wanted: f64, places: i32) {
    let half = 0.5 * 10_f64.powi(-places);
    assert!(
        (found - wanted).abs() <= half + 1e-9,
        "{found} is not {wanted} to {places} places"
    );
}

/// Megabytes.
fn mb(megabytes: u64) -> Bytes {
    Bytes(megabytes * 1_000_000)
}

fn some(number: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(number)
}

/// Work of so many times 10⁹ operations.
fn operations(gigaflops: u64) -> Work {
    Work {
        gigaflops: some(gigaflops),
        ..Work::default()
    }
}

/// Work of so many pieces.
fn pieces(units: u64) -> Work {
    Work {
        units: some(units),
        ..Work::default()
    }
}

/// The host of the examples at this price, with 150 GB of disk at $0.10 a GB-month: starts in 20 s, 1 Gb/s
/// each way, reads 2 GB/s, unpacks 200 MB/s, never fails.
fn site(compute: u64) -> Site {
    Site {
        prices: Prices {
            compute: PricePerHour(compute),
            storage: PricePerGbMonth(100_000),
            upload: PricePerGb(0),
            download: PricePerGb(0),
        },
        gpus: 1,
        boot: Some(20.0),
        download: Some(125e6),
        upload: Some(125e6),
        disk: Some(2e9),
        unpack: Some(200e6),
        has_image: Some(false),
        hazard: Some(0.0),
        ..Site::default()
    }
}

/// A job with the disk of the examples.
fn job(work: Work) -> JobProfile {
    JobProfile {
        work,
        disk: Bytes::from_gb(150),
        ..JobProfile::default()
    }
}
