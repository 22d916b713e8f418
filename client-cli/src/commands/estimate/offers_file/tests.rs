//! What files of offers are read as, and what is said of those that cannot be.

use super::*;
use protocol::bounded::{List, Text};
use protocol::cost::{Rate, Work};
use std::num::NonZeroU64;

fn job() -> JobProfile {
    let rates = List::first([Rate {
        gpu: Text::cut("rtx4090"),
        milliunits_per_second: NonZeroU64::MIN,
    }]);
    JobProfile {
        work: Work {
            units: NonZeroU64::new(1),
            rates,
            ..Work::default()
        },
        disk: Bytes::from_gb(60),
        ..JobProfile::default()
    }
}

fn one(item: &str) -> Listed {
    let text = format!("{{\"schema\":\"feira.offers/1\",\"items\":[{item}],\"next\":null}}");
    parse(&text, &job()).unwrap().remove(0)
}

const PAIR: &str = r#"{
    "id": "o-7k3f", "gpus": [
        {"model": "NVIDIA GeForce RTX 4090", "vram_bytes": 25757220864},
        {"model": "NVIDIA GeForce RTX 4090", "vram_bytes": 25757220864}],
    "compute_usd_per_hour": "0.318000", "storage_usd_per_gb_month": "0.10",
    "upload_usd_per_gb": "0.005", "download_usd_per_gb": "0",
    "disk_max_bytes": 500000000000, "max_seconds": 604800, "failures_per_hour": 0.0073529, "reliability": 0.85, "more": 1}"#;

#[test]
fn an_item_of_a_search_is_read_as_the_search_meant_it() {
    let offer = one(PAIR);
    assert_eq!(
        (offer.id.as_str(), offer.gpus.as_str()),
        ("o-7k3f", "2x RTX 4090")
    );
    let site = offer.site;
    // Two at $0.318.
    assert_eq!(site.prices.compute, PricePerHour(636_000));
    assert_eq!(site.prices.storage, PricePerGbMonth(100_000));
    assert_eq!(
        (site.prices.upload, site.prices.download),
        (PricePerGb(5000), PricePerGb(0))
    );
    // And 60 GB: 8333 µ$.
    assert_eq!(offer.hourly, MicroUsd(644_333));
    assert_eq!(site.card.map(|card| card.half), Some(165.2e12));
    assert_eq!(site.rate, Some(0.001));
    // One failure in 136 h.
    assert!((site.hazard.unwrap() * 136.0 - 1.0).abs() < 1e-5);
    assert_eq!(site.duration_max, Some(Seconds(604_800)));
    assert_eq!(site.disk_max, Some(Bytes::from_gb(500)));
    assert_eq!(site.interruption, None);
    assert_eq!(offer.json["more"], 1);
}

#[test]
fn what_somebody_measured_takes_the_place_of_what_follows() {
    let site = one(
        r#"{"id": "x", "compute_usd_per_hour": "1", "contract_usd_per_hour": "0.18", "num_gpus": 1,
            "kind": "interruptible", "interruptions_per_hour": 0.1666, "notice_seconds": 60,
            "failures_per_hour": 0.002, "reliability": 0.6, "units_per_second": 54.3, "has_image": true,
            "boot_seconds": 5, "download_bytes_per_second": 1e8, "upload_bytes_per_second": 2e8,
            "disk_bytes_per_second": 3e9, "unpack_bytes_per_second": 4e8}"#,
    )
    .site;
    assert_eq!(site.prices.compute, PricePerHour(180_000));
    assert_eq!(
        (site.gpus, site.rate, site.has_image),
        (1, Some(54.3), Some(true))
    );
    assert_eq!((site.hazard, site.boot), (Some(0.002), Some(5.0)));
    assert_eq!((site.download, site.upload), (Some(1e8), Some(2e8)));
    assert_eq!((site.disk, site.unpack), (Some(3e9), Some(4e8)));
    let wanted = Interruption {
        per_hour: Some(0.1666),
        notice: Seconds(60),
    };
    assert_eq!(site.interruption, Some(wanted));
}

#[test]
fn what_is_no_file_of_offers_is_refused_with_the_place() {
    let item = |change: (&str, &str)| {
        let text = format!("{{\n\"items\": [\n{PAIR}]}}").replace(change.0, change.1);
        parse(&text, &job()).unwrap_err().to_string()
    };
    for (change, wanted) in [
        (("\"0.318000\"", "-1"), "line 7"),
        (("\"0.318000\"", "\"-1\""), "not an amount in dollars"),
        (("\"0.318000\"", "\"1e300\""), "not an amount in dollars"),
        (("0.007", "-0.007"), "at least 0"),
        (("0.0073529", "1e999"), "number out of range"),
        (("\"id\"", "\"di\""), "missing field `id`"),
        (("604800", "-5"), "invalid value"),
    ] {
        let said = item(change);
        assert!(said.contains(wanted) && said.contains("line "), "{said}");
    }
    for text in ["", "[]", "{}", "{\"items\": 5}", "nonsense"] {
        assert!(parse(text, &job()).is_err(), "{text}");
    }
    assert!(parse("{\"items\": []}", &job()).unwrap().is_empty());
}
