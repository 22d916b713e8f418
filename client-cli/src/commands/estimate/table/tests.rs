//! What people and programs see of estimates.

use super::*;
use crate::commands::estimate::ranked;
use protocol::cost::{Site, Work, estimate};
use protocol::terms::Prices;
use protocol::units::{Bytes, PricePerGb, PricePerGbMonth, PricePerHour, Seconds};
use std::num::NonZeroU64;

/// Five minutes of work behind 20 GB of image, with 150 GB of disk.
fn job() -> JobProfile {
    JobProfile {
        work: Work {
            units: NonZeroU64::new(300),
            ..Work::default()
        },
        image: Bytes::from_gb(20),
        data: Bytes(850_000_000),
        load: Bytes::from_gb(2),
        upload: Bytes::from_gb(1),
        disk: Bytes::from_gb(150),
        ..JobProfile::default()
    }
}

/// A host that does a piece a second, at this price, $0.10 a GB-month, and $0.02 a GB each way.
fn site(price: u64, has_image: Option<bool>) -> Site {
    Site {
        prices: Prices {
            compute: PricePerHour(price),
            storage: PricePerGbMonth(100_000),
            upload: PricePerGb(20_000),
            download: PricePerGb(20_000),
        },
        gpus: 1,
        rate: Some(1.0),
        boot: Some(20.0),
        download: Some(125e6),
        disk: Some(2e9),
        unpack: Some(200e6),
        has_image,
        hazard: Some(0.0),
        ..Site::default()
    }
}

fn of(short: &str, site: &Site) -> Estimate {
    Estimate {
        id: format!("{short}-in-full"),
        short: short.to_owned(),
        gpus: "1x RTX 4090 24 GB".to_owned(),
        hourly: site.prices.compute.amount(),
        cost: estimate(&job(), site),
        json: json!({ "id": short }),
    }
}

fn three() -> Vec<Estimate> {
    let impatient = Site {
        duration_max: Some(Seconds(60)),
        ..site(100_000, None)
    };
    ranked(vec![
        of("impatient", &impatient),
        of("cold", &site(400_000, None)),
        of("cached", &site(600_000, Some(true))),
    ])
}

#[test]
fn an_estimate_is_one_line_cheapest_job_first() {
    let listing = listing(&three(), String::new());
    let cells = |index: usize| &listing.rows[index].cells;
    // Start, data and weights 27.8 s, work 300 s, result 8 s: 335.8 s.
    // 600 000 × 335.8 / 3600 = 55 966; disk 15 × 10⁶ × 335.8 / 2 592 000 = 1943; 0.85 GB in 17 000, 1 GB out
    // 20 000: 94 909 µ$.
    let cached = [
        "cached",
        "1x RTX 4090 24 GB",
        "0.0949",
        "5m 36s",
        "0.60",
        "28s",
        "5m 00s",
        "0s",
        "0s",
        "8s",
        "0.0019",
        "0.0370",
    ];
    assert_eq!(*cells(0), cached);
    // 260 s more for the image: 400 000 × 595.8 / 3600 = 66 200; disk 3447; 20.85 GB in 417 000; out 20 000:
    // 506 647 µ$.
    assert_eq!(cells(1)[2..6], ["0.5066", "9m 56s", "0.40", "4m 48s"]);
    assert_eq!(
        cells(2)[..5],
        ["impatient", "1x RTX 4090 24 GB", "-", "-", "0.10"]
    );
    assert_eq!(cells(2).len(), listing.columns.len());
    let job = &listing.rows[0].json["job"];
    assert_eq!(job["cost_usd"], "0.094909");
    assert_eq!(job["compute_usd"], "0.055966");
    assert_eq!(job["seconds"], 335.8);
    assert_eq!(job["load_seconds"], 1.0);
    assert_eq!(job["assumed"], json!(["upload"]));
    assert_eq!(job["unfit"], Value::Null);
    assert_eq!(listing.rows[0].json["id"], "cached");
    let unfit = "it takes 9m 56s; leases here end after 1m 00s";
    assert_eq!(listing.rows[2].json["job"]["unfit"], unfit);
}

#[test]
fn what_was_assumed_and_what_cannot_be_is_said_below() {
    let lines = closing_lines(&three(), &job(), 3);
    let wanted = [
        "impatient: it takes 9m 56s; leases here end after 1m 00s.",
        "Assumed: uploads run at 1 Gb/s.",
        "Assumed (of 1 of 2): the host does not have the image yet.",
        "3 offers, cheapest job first, with 150 GB of disk. Setup counts as paid; pulling the image is not \
         billed.",
        "Rent the first: feira rent cached --disk 150 --image IMAGE",
    ];
    assert_eq!(lines, wanted);
    assert!(closing_lines(&three(), &job(), 40)[3].starts_with("3 of 40 offers,"));
    assert!(closing_lines(&[], &job(), 0).is_empty());
    let none_fits = vec![three().remove(2)];
    assert_eq!(closing_lines(&none_fits, &job(), 1).len(), 2);
}

#[test]
fn amounts_are_rounded_where_nobody_would_pay_for_more_digits() {
    for (micro, shown) in [
        (3_587_823, "3.59"),
        (999_999, "1.0000"),
        (56_649, "0.0566"),
        (0, "0.0000"),
        (1_234_995_000, "1235.00"),
    ] {
        assert_eq!(dollars(MicroUsd(micro)), shown);
    }
}
