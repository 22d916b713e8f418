//! Every kind of contract through the built program: what is sent for which words, and what is shown of it.

use crate::brokers::with;
use crate::market::{Broker, Script};
use crate::program::Ran;
use protocol::order::{Order, Target};
use protocol::terms::Deal;
use protocol::units::{Bytes, PricePerHour, Timestamp};
use std::error::Error;

type Test = Result<(), Box<dyn Error>>;

const IMAGE: &str =
    "127.0.0.1:1/demo@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

pub(crate) fn pool() -> Script {
    Script {
        pool: true,
        ..Script::default()
    }
}

pub(crate) fn resting() -> Script {
    Script {
        rests: true,
        ..pool()
    }
}

/// Runs these words with what every order needs.
pub(crate) fn order(broker: &Broker, words: &str) -> Result<Ran, Box<dyn Error>> {
    let mut all: Vec<&str> = words.split_whitespace().collect();
    all.extend(["--image", IMAGE, "--yes"]);
    with(broker, &all)
}

fn only_order(broker: &Broker) -> Result<Order, Box<dyn Error>> {
    let orders = broker.seen(|seen| seen.orders.clone());
    match orders.as_slice() {
        [only] => Ok(only.clone()),
        several => Err(format!("{} orders", several.len()).into()),
    }
}

#[test]
fn a_portion_is_ordered_with_its_number_and_no_price_is_on_demand() -> Test {
    let broker = Broker::start(1, pool())?;
    let ran = order(
        &broker,
        "rent --gpu rtx4090 --gpus 2 --max-price 1 --budget 3 --cpus 1.5 --ram 8",
    )?;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(
        ran.errors.contains("Renting 2 GPUs of o-")
            && ran.errors.contains("on demand at $0.801388/h"),
        "{ran:#?}"
    );
    let order = only_order(&broker)?;
    assert_eq!((order.gpus, order.deal), (2, Deal::OnDemand));
    assert_eq!(order.cpu_millicores, Some(1500));
    assert_eq!(order.ram, Some(Bytes::from_gb(8)));
    assert!(matches!(order.target, Target::Offer { .. }));
    Ok(())
}

// peers 3.2 #31: a price that was not typed is the offer's.
#[test]
fn a_named_offer_is_taken_in_a_portion_that_it_is_sold_in() -> Test {
    let broker = Broker::start(1, pool())?;
    let found = with(&broker, &["search", "--gpu", "rtx4090", "--json"])?.json()?;
    let id = found["items"][0]["id"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let sizes: Vec<_> = found["items"].as_array().into_iter().flatten().collect();
    assert_eq!(sizes.len(), 3, "{found:#}");
    assert_eq!(found["items"][0]["portions"], serde_json::json!([1, 2, 4]));
    let three = order(&broker, &format!("rent {id} --gpus 3 --budget 3"))?;
    assert_eq!(three.code, Some(5), "{three:#?}");
    assert!(
        three.errors.contains("E0424")
            && three
                .errors
                .contains("is not sold with 3 GPUs; it is with 1, 2, 4"),
        "{three:#?}"
    );
    let many = order(&broker, &format!("rent {id} --gpus 400 --budget 3"))?;
    assert_eq!(many.code, Some(5), "{many:#?}");
    // The fewest, unless more are asked for.
    let one = order(&broker, &format!("rent --offer {id} --budget 3"))?;
    assert_eq!(one.code, Some(0), "{one:#?}");
    assert_eq!(only_order(&broker)?.gpus, 1);
    Ok(())
}

#[test]
fn a_search_for_bidders_shows_what_wins_and_the_command_for_it() -> Test {
    let broker = Broker::start(1, pool())?;
    let words = ["search", "--kind", "interruptible", "--gpus", "2"];
    let shown = with(&broker, &words)?;
    // Two at $0.205 and 10 GB: 1 388.
    assert!(shown.answer.contains("0.411388"), "{shown:#?}");
    assert!(
        shown.errors.contains("feira bid o-")
            && shown.errors.contains("--gpus 2 --max-price 0.205"),
        "{shown:#?}"
    );
    let none = with(
        &Broker::start(2, Script::default())?,
        &["search", "--kind", "reserved"],
    )?;
    assert_eq!(none.code, Some(0), "{none:#?}");
    Ok(())
}

#[test]
fn a_bid_is_interruptible_and_waits_with_its_price_and_time() -> Test {
    let broker = Broker::start(1, resting())?;
    let ran = order(
        &broker,
        "bid --gpu rtx4090 --max-price 0.20 --for 8h --fallback 0.41 --max-hours 5 --budget 3 --json",
    )?;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let lease = ran.json()?;
    assert_eq!(
        (&lease["kind"], &lease["state"]),
        (&"interruptible".into(), &"resting".into())
    );
    assert_eq!(lease["bid_usd_per_gpu_hour"], "0.200000");
    assert_eq!(lease["to_win_usd_per_gpu_hour"], "0.205000");
    assert_eq!(lease["host"], serde_json::Value::Null);
    let order = only_order(&broker)?;
    let Target::Any(filter) = &order.target else {
        return Err(format!("{:?}", order.target).into());
    };
    assert_eq!(
        filter.to_string(),
        "gpu_name=RTX4090 disk_space>=10 num_gpus=1"
    );
    let Deal::Interruptible {
        bid,
        until,
        fallback,
    } = order.deal
    else {
        return Err(format!("{:?}", order.deal).into());
    };
    assert_eq!(
        (bid, fallback),
        (PricePerHour(200_000), Some(PricePerHour(410_000)))
    );
    let waits = until.since(order_time(&lease)?).0;
    assert!(waits.abs_diff(8 * 3_600_000) < 60_000, "{waits}");
    assert_eq!(order.duration_max.map(|most| most.0), Some(5 * 3600));
    // The fallback and 10 GB at up to $0.30 a month: 4 166.
    assert_eq!(order.price_max, PricePerHour(414_166));
    Ok(())
}

fn order_time(lease: &serde_json::Value) -> Result<Timestamp, Box<dyn Error>> {
    let text = lease["ordered_at"].as_str().ok_or("no ordered_at")?;
    let at: jiff::Timestamp = text.parse()?;
    Ok(Timestamp(u64::try_from(at.as_millisecond())?))
}

#[test]
fn a_bid_that_rests_says_until_when_and_what_would_win() -> Test {
    let broker = Broker::start(1, resting())?;
    let ran = order(
        &broker,
        "bid --gpu rtx4090 --max-price 0.20 --budget 3 --name otter",
    )?;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(
        ran.answer.starts_with("Bid placed: otter (l-") && ran.answer.contains(", valid until "),
        "{ran:#?}"
    );
    assert!(
        ran.errors
            .contains("interruptible, $0.20/h for a GPU while it runs")
            && ran.errors.contains("feira bid set otter --max-price 0.205"),
        "{ran:#?}"
    );
    Ok(())
}

#[test]
fn a_resting_bid_is_for_the_offer_and_buys_on_demand() -> Test {
    let broker = Broker::start(1, resting())?;
    let ran = order(
        &broker,
        "rent --gpu rtx4090 --gpus 2 --bid 0.38 --for 6h --budget 3 --json",
    )?;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(ran.json()?["kind"], "bid");
    let order = only_order(&broker)?;
    assert_eq!(order.gpus, 2);
    assert!(
        matches!(
            order.deal,
            Deal::Bid {
                limit: PricePerHour(380_000),
                ..
            }
        ),
        "{:?}",
        order.deal
    );
    Ok(())
}

#[test]
fn a_term_is_ordered_for_no_more_than_was_shown() -> Test {
    let broker = Broker::start(1, pool())?;
    let poor = order(
        &broker,
        "rent --gpu rtx4090 --reserve 30 --max-price 1 --budget 3",
    )?;
    assert_eq!(poor.code, Some(6), "{poor:#?}");
    // 0.40 × 720 h less a fifth.
    assert!(
        poor.errors.contains("E0603") && poor.errors.contains("$230.40 is prepaid for 30 days"),
        "{poor:#?}"
    );
    let words = [
        "rent",
        "--gpu",
        "rtx4090",
        "--reserve",
        "30",
        "--max-price",
        "1",
        "--budget",
        "300",
        "--image",
        IMAGE,
        "--dry-run",
        "--json",
    ];
    let shown = with(&broker, &words)?.json()?;
    assert_eq!(shown["kind"], "reserved");
    assert_eq!(shown["prepaid_usd"], "230.400000");
    assert_eq!(shown["discount_basis_points"], 2000);
    // Half of it is earned, 28.80 of discount received, and a twentieth of that.
    assert_eq!(shown["refund_half_usd"], "84.960000");
    assert_eq!(broker.seen(|seen| seen.orders.len()), 0);
    Ok(())
}

#[test]
fn a_bid_under_the_floor_is_refused_before_it_is_sent() -> Test {
    let broker = Broker::start(1, pool())?;
    let ran = order(&broker, "bid --gpu rtx4090 --max-price 0.09 --budget 3")?;
    assert_eq!(ran.code, Some(5), "{ran:#?}");
    assert!(
        ran.errors.contains("E0502") && ran.errors.contains("bids from $0.10/h"),
        "{ran:#?}"
    );
    assert_eq!(broker.seen(|seen| seen.orders.len()), 0);
    Ok(())
}

#[test]
fn conditions_of_ten_kilobytes_are_refused_before_anybody_is_asked() -> Test {
    let broker = Broker::start(1, pool())?;
    let expression = "num_gpus>=1 ".repeat(850);
    let long = "x".repeat(10_000);
    let many = vec!["rtx4090"; 1250].join(",");
    for words in [
        vec!["search", expression.as_str()],
        vec!["search", "--gpu", long.as_str()],
        vec!["search", "--gpu", many.as_str()],
        vec!["search", "--host", long.as_str()],
    ] {
        let ran = with(&broker, &words)?;
        assert_eq!(ran.code, Some(2), "{:.200}", ran.errors);
    }
    assert_eq!(broker.seen(|seen| seen.requests), 0);
    Ok(())
}
