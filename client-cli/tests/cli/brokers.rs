//! The program with brokers that do as a test says: listing, naming, ending, and what refusals become.

use crate::market::{Broker, Script};
use crate::program::{Home, Ran};
use protocol::bounded::Text;
use protocol::lease::{EndCause, Phase, Problem, ProblemKind, RefusalReason, Stage};
use protocol::message::Rejection;
use protocol::order::LeaseAction;
use protocol::units::{Bytes, MicroUsd, Timestamp};
use std::error::Error;

type Test = Result<(), Box<dyn Error>>;

/// An image by digest in a registry where nobody answers: taken as it is.
const IMAGE: &str =
    "127.0.0.1:1/demo@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

pub(crate) fn with(broker: &Broker, words: &[&str]) -> Result<Ran, Box<dyn Error>> {
    let mut all = words.to_vec();
    let separator = words
        .iter()
        .position(|word| *word == "--")
        .unwrap_or(words.len());
    all.splice(separator..separator, ["--broker", broker.address.as_str()]);
    Home::with_key()?.run(&all)
}

pub(crate) fn three() -> Script {
    Script {
        leases: vec![
            ("calm-heron", Phase::Running),
            ("calm-horse", Phase::Running),
            ("old-otter", Phase::Closed(EndCause::Budget)),
        ],
        ..Script::default()
    }
}

#[test]
fn leases_are_listed_for_people_and_programs() -> Test {
    let broker = Broker::start(1, three())?;
    let json = with(&broker, &["ls", "--json"])?.json()?;
    assert_eq!(json["schema"], "feira.leases/1");
    assert_eq!(json["items"].as_array().map(Vec::len), Some(3));
    let heron = with(&broker, &["show", "calm-heron", "--json"])?.json()?;
    assert_eq!(heron["schema"], "feira.lease/1");
    assert_eq!(heron["state"], "running");
    // $0.40 and 10 GB × $0.10 / 720 h = $0.001388.
    assert_eq!(heron["price_usd_per_hour"], "0.401388");
    assert_eq!(heron["reason"], serde_json::Value::Null);
    let table = with(&broker, &["ls"])?;
    assert!(
        table.answer.starts_with("NAME        ID          STATE"),
        "{table:?}"
    );
    assert!(
        table.answer.lines().all(|line| line.chars().count() <= 100),
        "{table:?}"
    );
    let ids = with(&broker, &["ls", "-o", "id"])?.answer;
    let quiet = with(&broker, &["ls", "-q"])?;
    assert_eq!((quiet.answer, quiet.errors), (ids.clone(), String::new()));
    assert!(
        ids.lines().all(|id| id.starts_with("l-") && id.len() == 28),
        "{ids}"
    );
    Ok(())
}

// peers 3.2 #29: looking for one lease finds it, or says why not.
#[test]
fn names_that_mean_nothing_or_too_much_are_refused() -> Test {
    let broker = Broker::start(1, three())?;
    let ambiguous = with(&broker, &["show", "calm"])?;
    assert_eq!(ambiguous.code, Some(2), "{ambiguous:?}");
    assert!(ambiguous.errors.contains("E0207") && ambiguous.errors.contains("calm-horse"));
    let unknown = with(&broker, &["show", "calm-heon"])?;
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    assert!(
        unknown.errors.contains("is running: 'calm-heron'"),
        "{unknown:?}"
    );
    let exec = with(&broker, &["exec", "nosuch", "--", "true"])?;
    assert_eq!(exec.code, Some(3), "{exec:?}");
    // Over: there is nothing to resume.
    let over = with(&broker, &["exec", "old-otter", "--", "true"])?;
    assert_eq!(over.code, Some(255), "{over:?}");
    assert!(
        over.errors
            .contains("old-otter is ended: it reached its budget")
            && !over.errors.contains("resume"),
        "{over:?}"
    );
    // Found, but its host cannot be reached: no code of the remote program is known.
    let lost = with(&broker, &["exec", "calm-heron", "--", "true"])?;
    assert_eq!(lost.code, Some(255), "{lost:?}");
    assert!(lost.errors.contains("E0803"), "{lost:?}");
    assert!(
        lost.errors
            .contains("the host of calm-heron does not answer (")
            && !lost.errors.contains("/ip4/"),
        "{lost:?}"
    );
    Ok(())
}

#[test]
fn offers_that_are_all_rented_are_not_called_none() -> Test {
    let script = Script {
        all_rented: true,
        ..Script::default()
    };
    let broker = Broker::start(1, script)?;
    let ran = rent(&broker)?;
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(
        ran.errors
            .contains("the only offer of your brokers is rented now"),
        "{ran:?}"
    );
    let search = with(&broker, &["search"])?;
    assert_eq!(search.code, Some(0), "{search:?}");
    assert!(search.errors.contains("is rented now"), "{search:?}");
    Ok(())
}

#[test]
fn nothing_is_ended_when_one_name_is_wrong() -> Test {
    let broker = Broker::start(1, three())?;
    let ran = with(&broker, &["end", "calm-heron", "nosuch", "--yes"])?;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let begun = with(&broker, &["end", "calm-he", "--yes"])?;
    assert_eq!(begun.code, Some(2), "{begun:?}");
    assert!(
        begun.errors.contains("feira end calm-heron --yes"),
        "{begun:?}"
    );
    let dry = with(&broker, &["end", "calm-heron", "-n", "-o", "id"])?;
    assert_eq!(
        (dry.code, dry.answer.lines().count()),
        (Some(0), 1),
        "{dry:?}"
    );
    assert_eq!(broker.seen(|seen| seen.commands.len()), 0);
    let both = with(&broker, &["end", "calm-heron", "calm-horse", "--yes"])?;
    assert_eq!(both.code, Some(0), "{both:?}");
    let actions = broker.seen(|seen| {
        seen.commands
            .iter()
            .map(|(_, action)| *action)
            .collect::<Vec<_>>()
    });
    assert_eq!(actions, [LeaseAction::End, LeaseAction::End]);
    Ok(())
}

// peers 3.2 #24: nor is what still runs shown as over.
#[test]
fn a_stop_does_not_promise_what_a_silent_host_has_not_done() -> Test {
    let heard = with(&Broker::start(1, three())?, &["stop", "calm-heron"])?;
    assert_eq!(heard.code, Some(0), "{heard:?}");
    assert!(heard.errors.contains("the machine is freed"), "{heard:?}");
    let script = Script {
        host_silent: true,
        ..three()
    };
    let broker = Broker::start(1, script)?;
    let ran = with(&broker, &["stop", "calm-heron"])?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(broker.seen(|seen| seen.commands.len()), 1);
    assert!(
        ran.errors
            .contains("warning: the host of calm-heron has still to say")
            && !ran.errors.contains("is freed"),
        "{ran:?}"
    );
    let words = ["wait", "calm-heron", "--for", "stopped", "--timeout", "1s"];
    let late = with(&broker, &words)?;
    assert_eq!(late.code, Some(8), "{late:?}");
    Ok(())
}

#[test]
fn ending_without_a_yes_asks_nobody() -> Test {
    let broker = Broker::start(1, three())?;
    let ran = with(&broker, &["end", "calm-heron"])?;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(broker.seen(|seen| seen.requests), 0);
    Ok(())
}

#[test]
fn a_name_that_is_taken_is_said_before_the_machine_is_looked_for() -> Test {
    let script = Script {
        all_rented: true,
        ..three()
    };
    let broker = Broker::start(1, script)?;
    let words = [
        "rent",
        "gpu=none",
        "--max-price",
        "0.50",
        "--budget",
        "3",
        "--image",
        IMAGE,
    ];
    let named = [words.as_slice(), &["--yes", "--name", "calm-heron"]].concat();
    let ran = with(&broker, &named)?;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.errors.contains("E0420") && ran.errors.contains("feira show calm-heron"),
        "{ran:?}"
    );
    Ok(())
}

#[test]
fn waiting_ends_when_it_has_become_pointless() -> Test {
    let broker = Broker::start(1, three())?;
    let there = with(&broker, &["wait", "calm-heron", "--for", "ready"])?;
    assert_eq!(there.code, Some(0), "{there:?}");
    let never = with(&broker, &["wait", "old-otter", "--for", "ready"])?;
    assert_eq!(never.code, Some(1), "{never:?}");
    assert!(
        never.errors.contains("E0808") && never.errors.contains("budget"),
        "{never:?}"
    );
    let late = with(
        &broker,
        &["wait", "calm-heron", "--for", "stopped", "--timeout", "1s"],
    )?;
    assert_eq!(late.code, Some(8), "{late:?}");
    assert!(late.errors.contains("E0804"), "{late:?}");
    Ok(())
}

fn rent(broker: &Broker) -> Result<Ran, Box<dyn Error>> {
    with(
        broker,
        &[
            "rent",
            "gpu=none",
            "--max-price",
            "0.50",
            "--budget",
            "3",
            "--image",
            IMAGE,
            "--yes",
        ],
    )
}

#[test]
fn each_refusal_of_a_broker_has_its_exit_code() -> Test {
    let micro = MicroUsd;
    let refusals = [
        (Rejection::OfferTaken, 7, "E0410"),
        (Rejection::OfferGone, 7, "E0411"),
        (Rejection::OfferChanged, 7, "E0412"),
        (Rejection::HostGone, 7, "E0413"),
        (
            Rejection::PriceAboveLimit {
                price: micro(2),
                allowed: micro(1),
            },
            5,
            "E0501",
        ),
        (
            Rejection::NotEnoughMoney {
                available: micro(1),
                needed: micro(2),
            },
            6,
            "E0602",
        ),
        (
            Rejection::DiskTooLarge {
                asked: Bytes(2),
                allowed: Bytes(1),
            },
            5,
            "E0423",
        ),
        (Rejection::IdReused, 1, "E0422"),
        (Rejection::WrongAudience, 4, "E0403"),
        (
            Rejection::TooMany(Text::cut("at most 64 leases")),
            8,
            "E0805",
        ),
    ];
    for (rejection, code, number) in refusals {
        let script = Script {
            refuse: Some(rejection.clone()),
            ..Script::default()
        };
        let ran = rent(&Broker::start(1, script)?)?;
        assert_eq!(ran.code, Some(code), "{rejection:?}: {ran:#?}");
        assert!(ran.errors.contains(number), "{rejection:?}: {ran:#?}");
        assert_eq!(ran.answer, "", "{rejection:?}");
    }
    Ok(())
}

#[test]
fn clocks_that_differ_are_said_with_both_times() -> Test {
    let refuse = Rejection::NotNow {
        detail: Text::cut("expired"),
        now: Timestamp(1_796_047_364_000),
    };
    let ran = rent(&Broker::start(
        1,
        Script {
            refuse: Some(refuse),
            ..Script::default()
        },
    )?)?;
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(
        ran.errors
            .contains("the broker's says 2026-11-30 14:02:44 UTC"),
        "{ran:?}"
    );
    assert!(ran.errors.contains("E0404") && ran.errors.contains("this machine's clock says"));
    Ok(())
}

// peers 3.2 #36: each end has its reason, and it is said.
#[test]
fn each_way_of_not_starting_has_its_exit_code() -> Test {
    let failed = Problem {
        stage: Stage::Starting,
        kind: ProblemKind::CommandUnknown,
        detail: Text::cut("exec: \"nosuch\": not found"),
    };
    let ends = [
        (
            EndCause::Refused(RefusalReason::Taken),
            7,
            "held by another lease",
        ),
        (EndCause::NotAccepted, 8, "did not accept it in time"),
        (EndCause::NotStarted, 8, "did not start it in time"),
        (
            EndCause::Failed(failed),
            1,
            "while starting the container: the command is not in the image",
        ),
    ];
    for (cause, code, words) in ends {
        let script = Script {
            instead: Some(Phase::Closed(cause)),
            ..Script::default()
        };
        let ran = rent(&Broker::start(1, script)?)?;
        assert_eq!(ran.code, Some(code), "{ran:#?}");
        assert!(ran.errors.contains(words), "'{words}' is not in {ran:#?}");
        assert!(ran.errors.contains("nothing was billed"), "{ran:#?}");
    }
    Ok(())
}
