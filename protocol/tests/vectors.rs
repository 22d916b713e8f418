//! The market's worked examples, computed by this crate: meters M1 to M3, independence of ticks, reserved
//! money aside. The numbers were worked out elsewhere.
#![cfg(test)]

use protocol::terms::{Need, Prices, Rates, compute_due, fee_of};
use protocol::units::{
    BasisPoints, Bytes, MicroUsd, Millis, PricePerGb, PricePerGbMonth, PricePerHour,
};
use protocol::usage::{Usage, amounts_due};
use serde_json::Value;

fn vectors() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/vectors/market_vectors.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn number(case: &Value, name: &str) -> u64 {
    case[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} of {case}"))
}

fn amount(case: &Value, name: &str) -> MicroUsd {
    MicroUsd(i64::try_from(number(case, name)).unwrap())
}

/// A stopped lease's disk is kept and its container does not run; both stand in one figure there.
fn usage(case: &Value) -> Usage {
    let elapsed = Millis(number(case, "sec") * 1000);
    Usage {
        running: elapsed,
        stored: elapsed,
        uploaded: Bytes(number(case, "up_bytes")),
        downloaded: Bytes(number(case, "down_bytes")),
    }
}

fn prices(case: &Value) -> Prices {
    Prices {
        compute: PricePerHour(number(case, "gpu_uh")),
        storage: PricePerGbMonth(number(case, "disk_ugbmo")),
        upload: PricePerGb(number(case, "up_ugb")),
        download: PricePerGb(number(case, "down_ugb")),
    }
}

#[test]
fn each_metered_lease_costs_what_the_vectors_say() {
    let vectors = vectors();
    let cases = vectors["meter"].as_array().unwrap();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let disk = Bytes::from_gb(number(case, "disk_gb"));
        let prices = prices(case);
        let rates = Rates::flat(prices.compute);
        let due = amounts_due(&prices, &rates, disk, &usage(case));
        let name = &case["name"];
        assert_eq!(due.compute, amount(case, "compute"), "{name}");
        assert_eq!(due.storage, amount(case, "storage"), "{name}");
        assert_eq!(due.upload, amount(case, "net_up"), "{name}");
        assert_eq!(due.download, amount(case, "net_down"), "{name}");
        assert_eq!(due.total(), amount(case, "total"), "{name}");
        let rate = BasisPoints(u16::try_from(number(case, "fee_bps")).unwrap());
        let fee = fee_of(due.total(), rate);
        assert_eq!(fee, amount(case, "fee"), "{name}");
        assert_eq!(
            due.total().saturating_sub(fee),
            amount(case, "host"),
            "{name}"
        );
    }
}

#[test]
fn what_is_charged_does_not_depend_on_how_often_it_is_metered() {
    let tick = &vectors()["tick"];
    let rate = PricePerHour(number(tick, "rate"));
    let end = number(tick, "sec");
    let due = |seconds: u64| compute_due(rate, Millis(seconds * 1000));
    assert_eq!(due(end), amount(tick, "single"));
    let (mut posted, mut naive, mut at) = (MicroUsd::ZERO, MicroUsd::ZERO, 0);
    while at < end {
        let next = (at + 7).min(end);
        posted = posted.saturating_add(due(next).saturating_sub(posted));
        naive = naive.saturating_add(due(next - at));
        at = next;
    }
    assert_eq!(posted, amount(tick, "cumulative"));
    // What a floor for each tick would lose, so that the vector is known to tell the two apart.
    assert_eq!(naive, amount(tick, "naive_per_tick_floor"));
}

#[test]
fn a_start_holds_an_hour_all_in() {
    // M1: 400 000 µ$ and 50 GB at 100 000 µ$ a GB-month: floor(5 000 000 / 720) = 6 944.
    let m1 = &vectors()["meter"][0];
    let disk = Bytes::from_gb(number(m1, "disk_gb"));
    assert_eq!(prices(m1).all_in_hour(Need::disk(disk)), MicroUsd(406_944));
}
