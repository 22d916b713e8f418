//! What is read from a right `broker.toml`, and what is said about a wrong one.

use super::*;
use crate::args::{Arguments, Command};
use clap::Parser;

fn init(line: &[&str]) -> crate::args::Init {
    let words = ["feira-broker", "init"].iter().chain(line);
    let Command::Init(init) = Arguments::try_parse_from(words).unwrap().command else {
        panic!("another command")
    };
    init
}

fn parse(text: &str) -> Result<Config, SettingsError> {
    Config::parse(Path::new("broker.toml"), text)
}

#[track_caller]
fn check_wrong(text: &str, line: usize, field: &str, says: &str) {
    let message = parse(text).unwrap_err().to_string();
    let start = format!("broker.toml, line {line}, field `{field}`: ");
    assert!(
        message.starts_with(&start) && message.contains(says),
        "{message}"
    );
}

#[test]
fn the_written_file_says_what_the_defaults_are() {
    let written = parse(&template(&init(&[]))).unwrap();
    assert_eq!(written, parse("").unwrap());
    assert_eq!(written.market, MarketSettings::default());
    assert_eq!(written.market.fee, BasisPoints(300));
    assert_eq!(written.metrics, MetricsAddress::Usual);
    assert_eq!(
        written.listen[1].to_string(),
        "/ip4/0.0.0.0/udp/7700/quic-v1"
    );
}

#[test]
fn what_was_typed_is_in_the_file() {
    let typed = init(&[
        "--listen=/ip4/127.0.0.1/tcp/0",
        "--announce=/dns4/b.example/tcp/7700",
        "--fee-bps=150",
        "--name=the \"best\"",
        "--metrics=127.0.0.1:0",
    ]);
    let written = parse(&template(&typed)).unwrap();
    assert_eq!(written.market.fee, BasisPoints(150));
    assert_eq!(written.name.as_str(), "the \"best\"");
    assert_eq!(written.announce[0].to_string(), "/dns4/b.example/tcp/7700");
    assert_eq!(difference(&written, &typed), None);
    assert_eq!(
        difference(&written, &init(&["--fee-bps=200"])),
        Some("--fee-bps")
    );
}

#[test]
fn mistakes_are_named_by_line_and_field() {
    check_wrong("name = \"x\"\n\nfee = 3\n", 3, "fee", "unknown field `fee`");
    check_wrong("# rules\nfee_bps = \"3 %\"\n", 2, "fee_bps", "expected u16");
    check_wrong(
        "hold_s = 60\nfee_bps = 10001\n",
        2,
        "fee_bps",
        "more than the whole",
    );
    check_wrong("hold_s = -1\n", 1, "hold_s", "-1");
    check_wrong("# x\nlisten = [\"0.0.0.0:7700\"]\n", 2, "listen", "/ip4/");
    check_wrong("listen = []\n", 1, "listen", "at least one");
    check_wrong("metrics = \"0.0.0.0:9640\"\n", 1, "metrics", "no login");
    check_wrong("metrics = \"here\"\n", 1, "metrics", "127.0.0.1:9640");
    check_wrong(
        "lost_after_s = 10\n",
        1,
        "lost_after_s",
        "before it is suspect",
    );
    check_wrong("stop_below_s = 90\n", 1, "stop_below_s", "suspect_after_s");
    check_wrong(
        "accept_within_s = 0\n",
        1,
        "accept_within_s",
        "at least one second",
    );
    check_wrong(
        "watches = 2000\nrequests_in_flight = 9\n",
        2,
        "requests_in_flight",
        "2000",
    );
    check_wrong("name = \"a\"\nlisten [\n", 2, "listen [", "");
    let times = [
        "accept_within_s",
        "hold_s",
        "disk_keep_s",
        "dispute_s",
        "min_run_s",
        "meter_every_s",
    ];
    for field in times {
        let text = format!("# x\n{field} = 9223372036854775807\n");
        check_wrong(&text, 2, field, "more than a year");
    }
    for (field, value, says) in [
        ("connections", "0", "between 1 and 65536"),
        ("connections", "65537", "between 1 and 65536"),
        ("requests_per_second", "4294967295", "between 1 and 65536"),
        (
            "requests_in_flight",
            "9223372036854775807",
            "between 1 and 65536",
        ),
        ("watches", "0", "between 1 and 65536"),
        ("drain_s", "0", "between 1 and 240"),
        ("drain_s", "241", "between 1 and 240"),
    ] {
        check_wrong(&format!("{field} = {value}\n"), 1, field, says);
    }
}
