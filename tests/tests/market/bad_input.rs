//! What must be refused, with a reason and its exit code, and without a movement of money.

use crate::play::{Play, SOON, order};
use feira_tests::programs::{Said, registry, wait_for};

/// The orders that no renter can mean.
const ORDERS: [(&str, i32, &str); 14] = [
    ("rent --max-price -1", 2, "more than 0 and at most 1000000"),
    ("rent --max-price 0", 2, "more than 0 and at most 1000000"),
    ("rent --max-price nan", 2, "more than 0 and at most 1000000"),
    ("bid --max-price inf", 2, "more than 0 and at most 1000000"),
    (
        "bid --max-price 1e400",
        2,
        "more than 0 and at most 1000000",
    ),
    (
        "bid --max-price 9223372036854.775808",
        2,
        "more than 0 and at most 1000000",
    ),
    (
        "rent --bid 99999999999999999999",
        2,
        "more than 0 and at most 1000000",
    ),
    ("rent --max-price 1 --budget 0", 2, "more than nothing"),
    (
        "rent --max-price 1 --budget -5",
        2,
        "is not an amount in dollars",
    ),
    ("bid --max-price 0.099999", 5, "bids from $0.10/h"),
    (
        "rent --max-price 1 --reserve 0 --budget 300",
        2,
        "a prepaid term is a whole number of days, from 1 to 365",
    ),
    (
        "rent --max-price 1 --reserve 366 --budget 300",
        2,
        "a prepaid term is a whole number of days, from 1 to 365",
    ),
    ("bid --max-price 0.2 --for 0h", 2, "--for"),
    (
        "rent --max-price 1 --max-hours 3",
        5,
        "the host promises to be there until",
    ),
];

#[test]
fn orders_that_cannot_be_meant_are_refused_and_nothing_changes() {
    let play = Play::new(&[]);
    let soon = in_two_hours();
    let _ = play.market.host.command(&["list", "--until", &soon]).ok();
    wait_for("the promise to be known", SOON, || {
        let found = play.renter().feira(&["search", "--json"]).ok().json();
        (!found["items"][0]["promised_until"].is_null()).then_some(())
    });
    let books = play.books();
    for (words, code, reason) in ORDERS {
        let _ = order(play.renter(), &format!("{words} --name never"), &[])
            .code(code)
            .says(reason);
    }
    let term = order(
        play.renter(),
        "rent --reserve 30 --max-price 1 --budget 300",
        &[],
    );
    let _ = term.code(5).says("30d 00h was asked");
    let long = "num_gpus>=0 ".repeat(850);
    let _ = play.renter().feira(&["search", &long]).code(2);
    let unknown = play.renter().feira(&["search", "vram_size>3"]);
    let _ = unknown.code(2).says("unknown field 'vram_size'");
    assert_eq!(play.books(), books);
    assert_eq!(
        play.renter().feira(&["ls", "--all", "-o", "id"]).ok().out,
        ""
    );
}

/// Two hours from now, as `feira-host list --until` takes it.
fn in_two_hours() -> String {
    let mut date = std::process::Command::new("date");
    let output = date
        .args(["-u", "-d", "+2 hours", "+%Y-%m-%dT%H:%M:%SZ"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// As the host's own key; the machine is named, and not.
fn as_the_host(play: &Play, words: &str) -> Said {
    let key = play.market.host.data.join("identity.key");
    let image = format!("{}/feira-demo:1", registry());
    let mut all = vec!["--key", key.to_str().unwrap()];
    all.extend(words.split_whitespace());
    all.extend(["--image", &image, "--budget", "5", "--disk", "1", "--yes"]);
    play.renter().feira(&all)
}

#[test]
fn nobody_rents_or_bids_on_a_machine_of_ones_own() {
    let play = Play::new(&[]);
    let found = play.renter().feira(&["search", "--json"]).ok().json();
    let host = found["items"][0]["host"].as_str().unwrap();
    let own = format!("r-{}", host.trim_start_matches("h-"));
    let _ = play.market.broker.command(&["deposit", &own, "10"]).ok();
    let books = play.books();
    let offer = found["items"][0]["id"].as_str().unwrap();
    for words in [
        "rent OFFER --max-price 1",
        "bid OFFER --max-price 0.20",
        "rent OFFER --bid 0.30",
    ] {
        let said = as_the_host(&play, &words.replace("OFFER", offer));
        let _ = said.code(1).says("this machine is your own");
    }
    assert_ne!(
        as_the_host(&play, "bid num_gpus=0 --max-price 0.20").code,
        0
    );
    assert_eq!(play.books(), books);
}

#[test]
fn an_order_of_an_hour_ago_is_refused_and_an_end_counts_once() {
    let mut play = Play::new(&[]);
    let books = play.books();
    play.market.renter.clock_ahead_s = -3600;
    let late = order(play.renter(), "rent --max-price 1 --name late", &[]);
    assert_ne!(late.code, 0, "{late}");
    assert_eq!(play.books(), books);
    play.market.renter.clock_ahead_s = 0;
    let _ = order(play.renter(), "rent --max-price 1 --name once", &[]).ok();
    let (cost, _) = crate::play::ended(&play, play.renter(), "once");
    let books = play.books();
    for _ in 0..2 {
        let _ = play
            .renter()
            .feira(&["end", "once", "--yes"])
            .ok()
            .says("over already");
    }
    let _ = play.renter().feira(&["resume", "once"]);
    let converted = play
        .renter()
        .feira(&["convert", "once", "on-demand", "--yes"]);
    let _ = converted.code(1).says("ended");
    assert_eq!(play.books(), books);
    play.check_money(cost, 0);
}
