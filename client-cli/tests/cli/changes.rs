//! What becomes of leases of every kind: other bids, other kinds, notices, ends, refusals.

use crate::brokers::with;
use crate::kinds::{order, pool, resting};
use crate::market::{Broker, Script};
use protocol::bounded::Text;
use protocol::lease::{PauseCause, Phase};
use protocol::message::Rejection;
use protocol::order::LeaseAction;
use protocol::terms::{ContractKind, Deal};
use protocol::units::{MicroUsd, PricePerHour, Timestamp};
use std::error::Error;

type Test = Result<(), Box<dyn Error>>;

#[test]
fn a_bid_that_waits_is_changed_and_is_no_lease_yet() -> Test {
    let broker = Broker::start(1, resting())?;
    order(
        &broker,
        "bid --gpu rtx4090 --max-price 0.20 --budget 3 --name otter",
    )?;
    let set = with(&broker, &["bid", "set", "otter", "--max-price", "0.25"])?;
    assert_eq!(set.code, Some(0), "{set:#?}");
    assert!(
        set.errors.contains("otter: $0.25/h for a GPU, was $0.20/h"),
        "{set:#?}"
    );
    let waits = with(&broker, &["convert", "otter", "on-demand", "--yes"])?;
    assert_eq!(waits.code, Some(1), "{waits:#?}");
    assert!(waits.errors.contains("E0425"), "{waits:#?}");
    let receipt = with(&broker, &["receipt", "otter"])?;
    assert!(
        receipt
            .errors
            .contains("never started: nothing was charged"),
        "{receipt:#?}"
    );
    let actions = broker.seen(|seen| seen.commands.clone());
    assert_eq!(actions.len(), 1);
    assert_eq!(actions[0].1, LeaseAction::SetBid(PricePerHour(250_000)));
    Ok(())
}

#[test]
fn a_lease_that_runs_becomes_one_of_another_kind() -> Test {
    let script = Script {
        leases: vec![("otter", Phase::Running)],
        ..pool()
    };
    let broker = Broker::start(1, script)?;
    let convert = with(
        &broker,
        &["convert", "otter", "on-demand", "--yes", "--json"],
    )?;
    assert_eq!(convert.code, Some(0), "{convert:#?}");
    assert_eq!(convert.json()?["kind"], "on_demand");
    let actions = broker.seen(|seen| seen.commands.clone());
    // The price that was shown: what the lease costs an hour, all in with its disk.
    let LeaseAction::Convert { deal, price_max } = actions[0].1 else {
        panic!("{actions:?}")
    };
    let shown = convert.json()?["price_usd_per_hour"].to_string();
    let shown: MicroUsd = shown.trim_matches('"').parse()?;
    assert_eq!((deal, price_max.amount()), (Deal::OnDemand, shown));
    for (words, what) in [
        ("interruptible", "needs your bid: --price"),
        ("reserve", "needs its length: --days"),
        ("on-demand --price 0.2", "at the host's price"),
        ("reserve --days 30 --price 0.2", "at the host's price"),
    ] {
        let line = format!("convert otter {words} --yes");
        let ran = with(&broker, &line.split_whitespace().collect::<Vec<_>>())?;
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.errors.contains(what), "{ran:#?}");
    }
    let asks = with(&broker, &["convert", "otter", "on-demand"])?;
    assert_eq!(asks.code, Some(2), "{asks:#?}");
    assert!(asks.errors.contains("E0204"), "{asks:#?}");
    Ok(())
}

#[test]
fn whoever_waits_hears_of_the_notice_the_stop_and_the_resume() -> Test {
    let soon = Timestamp(u64::MAX / 2);
    let script = Script {
        leases: vec![("otter", Phase::Running)],
        course: vec![
            Phase::Noticed(PauseCause::Outbid, soon),
            Phase::Paused(PauseCause::Outbid),
            Phase::Preparing,
            Phase::Closed(protocol::lease::EndCause::Renter),
        ],
        ..pool()
    };
    let broker = Broker::start(1, script)?;
    let ran = with(&broker, &["wait", "otter", "--for", "ended"])?;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let news = [
        "otter has to go within ",
        "otter is stopped: somebody bid more",
        "started again",
    ];
    let mut from = 0;
    for words in news {
        let rest = ran.errors.get(from..).unwrap_or_default();
        let at = rest
            .find(words)
            .ok_or(format!("no '{words}' in {ran:#?}"))?;
        from += at;
    }
    let script = Script {
        leases: vec![("otter", Phase::Running)],
        course: vec![Phase::Noticed(PauseCause::Preempted, soon)],
        ..pool()
    };
    let broker = Broker::start(2, script)?;
    let ran = with(&broker, &["wait", "otter", "--for", "noticed", "--json"])?;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let lease = ran.json()?;
    assert_eq!(lease["state"], "noticed");
    assert_eq!(lease["resumes_by_itself"], true);
    Ok(())
}

#[test]
fn the_end_of_a_term_shows_what_comes_back() -> Test {
    let script = Script {
        leases: vec![("otter", Phase::Running)],
        term: Some(360),
        ..pool()
    };
    let broker = Broker::start(1, script)?;
    let shown = with(&broker, &["show", "otter"])?;
    assert!(
        shown
            .answer
            .contains("$576.00 (discount 20.00 %): $288.00 earned, $288.00 left"),
        "{shown:#?}"
    );
    let ran = with(&broker, &["end", "otter", "--yes"])?;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    // A moment of the second half has gone: 212.40 less a few micro-dollars.
    assert!(
        ran.errors
            .contains("$576.00 was prepaid for 30 days: $212.39"),
        "{ran:#?}"
    );
    Ok(())
}

#[test]
fn each_new_refusal_has_its_exit_code() -> Test {
    let text = || Text::cut("so it is");
    let refusals = [
        (Rejection::NothingMatches, 5, "E0307"),
        (
            Rejection::BidTooLow {
                bid: PricePerHour(1),
                needed: PricePerHour(151_500),
                reason: text(),
            },
            5,
            "bid at least 0.1515",
        ),
        (Rejection::NotSold(text()), 5, "E0424"),
        (
            Rejection::CannotConvert {
                from: ContractKind::OnDemand,
                to: ContractKind::Interruptible,
                reason: text(),
            },
            1,
            "E0425",
        ),
        (
            Rejection::PrepayAboveLimit {
                price: MicroUsd(2),
                allowed: MicroUsd(1),
            },
            5,
            "see what it costs now",
        ),
        (Rejection::OwnMachine, 1, "E0426"),
        (Rejection::HostSuspended(text()), 7, "E0416"),
        (
            Rejection::NotEnoughMoney {
                available: MicroUsd(1),
                needed: MicroUsd(2),
            },
            6,
            "E0602",
        ),
    ];
    for (rejection, code, words) in refusals {
        let script = Script {
            refuse: Some(rejection.clone()),
            ..pool()
        };
        let broker = Broker::start(1, script)?;
        let ran = order(&broker, "bid --gpu rtx4090 --max-price 0.2 --budget 3")?;
        assert_eq!(ran.code, Some(code), "{rejection:?}: {ran:#?}");
        assert!(ran.errors.contains(words), "{rejection:?}: {ran:#?}");
    }
    Ok(())
}
