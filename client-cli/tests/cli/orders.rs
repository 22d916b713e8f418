//! Renting has one effect: however often an answer is lost, and wherever the program is killed.

use crate::market::{Broker, Script};
use crate::program::{Home, Ran};
use crate::registry::Registry;
use protocol::message::Rejection;
use std::error::Error;
use std::time::Duration;

type Test = Result<(), Box<dyn Error>>;

const IMAGE: &str =
    "127.0.0.1:1/demo@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

/// The words of a rent of `image`, with these brokers.
fn words<'a>(brokers: &[&'a Broker], image: &'a str) -> Vec<&'a str> {
    let mut words = vec![
        "rent",
        "gpu=none",
        "--max-price",
        "0.50",
        "--budget",
        "3",
        "--yes",
    ];
    words.extend(["--image", image, "--json"]);
    for broker in brokers {
        words.extend(["--broker", broker.address.as_str()]);
    }
    words
}

fn rent(home: &Home, brokers: &[&Broker]) -> Result<Ran, Box<dyn Error>> {
    home.run(&words(brokers, IMAGE))
}

#[test]
fn a_rent_is_one_order_with_what_was_asked() -> Test {
    let (home, broker) = (Home::with_key()?, Broker::start(1, Script::default())?);
    let ran = rent(&home, &[&broker])?;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let lease = ran.json()?;
    assert_eq!(
        (&lease["state"], &lease["budget_usd"]),
        (&"running".into(), &"3.000000".into())
    );
    let orders = broker.seen(|seen| seen.orders.clone());
    assert_eq!(orders.len(), 1);
    assert_eq!(orders[0].price_max.0, 500_000);
    assert_eq!(orders[0].budget.0, 3_000_000);
    assert_eq!(orders[0].job.image.to_string(), IMAGE);
    assert_eq!(lease["order"], orders[0].id.to_string());
    // Its outcome was shown: the same words are a new order.
    assert_eq!(rent(&home, &[&broker])?.code, Some(0));
    assert_eq!(broker.seen(|seen| seen.leases()), 2);
    Ok(())
}

// peers 3.2 #26: an answer that was lost is asked for again, under the same id.
#[test]
fn a_lost_answer_repeats_the_same_order() -> Test {
    let script = Script {
        swallow: 2,
        ..Script::default()
    };
    let (home, broker) = (Home::with_key()?, Broker::start(1, script)?);
    let ran = rent(&home, &[&broker])?;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let orders = broker.seen(|seen| seen.orders.clone());
    assert_eq!(orders.len(), 3);
    assert!(
        orders.iter().all(|order| order == &orders[0]),
        "{orders:#?}"
    );
    assert_eq!(broker.seen(|seen| seen.leases()), 1);
    Ok(())
}

#[test]
fn a_killed_rent_that_is_run_again_goes_on_with_its_order() -> Test {
    let script = Script {
        stall: true,
        ..Script::default()
    };
    let (home, broker) = (Home::with_key()?, Broker::start(1, script)?);
    let mut child = home.start(&words(&[&broker], IMAGE))?;
    for _ in 0..200 {
        if broker.seen(|seen| !seen.orders.is_empty()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill()?;
    child.wait()?;
    assert_eq!(broker.seen(|seen| seen.leases()), 1);
    // Listing shows the lease of the killed run.
    let ls = home.run(&["ls", "-o", "id", "--broker", &broker.address])?;
    assert_eq!(ls.answer.lines().count(), 1, "{ls:?}");
    // The same wish once more: the broker is told the same order, and makes no second lease of it.
    let mut again = words(&[&broker], IMAGE);
    again.push("--detach");
    let ran = home.run(&again)?;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(
        ran.errors.contains("Going on with your order of"),
        "{ran:#?}"
    );
    let orders = broker.seen(|seen| seen.orders.clone());
    assert_eq!(orders.len(), 2);
    assert_eq!(orders[1], orders[0]);
    assert_eq!(broker.seen(|seen| seen.leases()), 1);
    Ok(())
}

#[test]
fn the_next_broker_of_the_same_offer_is_asked_when_one_says_taken() -> Test {
    let taken = Script {
        refuse: Some(Rejection::OfferTaken),
        ..Script::default()
    };
    let (first, second) = (
        Broker::start(1, taken)?,
        Broker::start(2, Script::default())?,
    );
    let ran = rent(&Home::with_key()?, &[&first, &second])?;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(
        first.seen(|seen| (seen.orders.len(), seen.leases())),
        (1, 0)
    );
    assert_eq!(
        second.seen(|seen| (seen.orders.len(), seen.leases())),
        (1, 1)
    );
    Ok(())
}

#[test]
fn another_refusal_is_final() -> Test {
    let no = Script {
        refuse: Some(Rejection::HostGone),
        ..Script::default()
    };
    let poor = Script {
        refuse: Some(Rejection::IdReused),
        ..Script::default()
    };
    let (first, second) = (Broker::start(1, poor)?, Broker::start(2, no)?);
    let ran = rent(&Home::with_key()?, &[&first, &second])?;
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert_eq!(second.seen(|seen| seen.orders.len()), 0);
    Ok(())
}

#[test]
fn a_dry_run_shows_the_terms_and_signs_nothing() -> Test {
    let (home, broker) = (Home::with_key()?, Broker::start(1, Script::default())?);
    let mut dry = words(&[&broker], IMAGE);
    dry.push("--dry-run");
    let ran = home.run(&dry)?;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let terms = ran.json()?;
    assert_eq!(terms["schema"], "feira.order/1");
    assert_eq!(terms["price_usd_per_hour"], "0.401388");
    assert_eq!(terms["hold_usd"], "0.401388");
    assert_eq!(broker.seen(|seen| seen.orders.len()), 0);
    Ok(())
}

#[test]
fn an_image_is_checked_before_anything_is_signed() -> Test {
    let (home, broker) = (Home::with_key()?, Broker::start(1, Script::default())?);
    let registry = Registry::start()?;
    let digest = format!("sha256:{}", registry.digest());
    let at = |image: &str| format!("127.0.0.1:{}/{image}", registry.port());
    let cases = [
        (at("unknown:1"), 3, "E0701"),
        (at("private:1"), 4, "E0702"),
        (at("broken:1"), 8, "E0703"),
        ("127.0.0.1:1/demo:1".to_owned(), 8, "E0703"),
        (at(&format!("demo@sha256:{}", "00".repeat(32))), 3, "E0701"),
    ];
    for (image, code, number) in &cases {
        let ran = home.run(&words(&[&broker], image))?;
        assert_eq!(ran.code, Some(*code), "{image}: {ran:#?}");
        assert!(ran.errors.contains(number), "{image}: {ran:#?}");
    }
    assert_eq!(broker.seen(|seen| seen.orders.len()), 0);
    let tag = home.run(&words(&[&broker], &at("demo:1")))?;
    assert_eq!(tag.code, Some(0), "{tag:#?}");
    let image = broker.seen(|seen| seen.orders[0].job.image.clone());
    assert_eq!(
        (image.digest(), image.name.to_string()),
        (digest, at("demo"))
    );
    Ok(())
}
