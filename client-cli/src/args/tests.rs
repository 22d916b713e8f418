//! What command lines are read as.

use super::*;
use crate::commands::search::FilterArgs;
use clap::{CommandFactory, Parser};
use protocol::units::{PricePerHour, Seconds};

fn read(words: &[&str]) -> Arguments {
    Arguments::try_parse_from(words).unwrap()
}

fn rent(words: &[&str]) -> RentArgs {
    let Command::Rent(rent) = read(words).command else {
        panic!("{words:?}")
    };
    *rent
}

#[test]
fn the_definition_is_consistent() {
    Arguments::command().debug_assert();
}

#[test]
fn flags_for_all_work_before_and_after_the_command() {
    for words in [["feira", "--json", "ls"], ["feira", "ls", "--json"]] {
        assert!(read(&words).everywhere.json);
    }
    let tsv = read(&["feira", "ls", "-o", "tsv"]).everywhere.output;
    assert_eq!(tsv, Some(Format::Tsv));
}

#[test]
fn an_offer_and_an_expression_are_told_apart() {
    let offer = rent(&["feira", "rent", "o-7k3f", "--image", "debian"]);
    assert_eq!(offer.offer(), Some("o-7k3f"));
    let filter = rent(&[
        "feira",
        "rent",
        "gpu_name=H100",
        "dph<3",
        "--image",
        "debian",
    ]);
    assert_eq!(filter.offer(), None);
    assert_eq!(filter.filter.expression, ["gpu_name=H100", "dph<3"]);
}

#[test]
fn the_command_of_a_rent_is_what_follows_the_dashes() {
    let rent = rent(&[
        "feira",
        "rent",
        "o-7k3f",
        "--image",
        "debian",
        "--max-price",
        "0.40",
        "--budget",
        "3",
        "--for",
        "90m",
        "-e",
        "A=1",
        "--yes",
        "--",
        "sh",
        "-c",
        "echo --yes",
    ]);
    assert_eq!(rent.work.command, ["sh", "-c", "echo --yes"]);
    assert_eq!(rent.filter.max_price, Some(PricePerHour(400_000)));
    assert_eq!(rent.work.budget, Some(MicroUsd(3_000_000)));
    assert_eq!(rent.work.duration, Some(Seconds(5400)));
    assert!(rent.work.yes);
}

fn bid(words: &str) -> Result<BidArgs, clap::Error> {
    let line = format!("feira bid {words}");
    let command = Arguments::try_parse_from(line.split_whitespace())?.command;
    let Command::Bid(bid) = command else {
        panic!("{command:?}")
    };
    Ok(*bid)
}

#[test]
fn a_bid_is_an_interruptible_lease_at_the_price_that_was_typed() {
    let rent = bid("--gpu rtx4090 --max-price 0.22 --for 8h --image i --fallback 0.4")
        .unwrap()
        .rent();
    assert_eq!(rent.deal.interruptible, Some(PricePerHour(220_000)));
    assert_eq!(rent.deal.fallback, Some(PricePerHour(400_000)));
    assert_eq!((rent.deal.bid, rent.filter.max_price), (None, None));
    assert_eq!(rent.work.duration, Some(Seconds(28_800)));
}

#[test]
fn a_bid_without_a_price_is_no_command() {
    assert!(bid("--gpu rtx4090 --image i").is_err());
    assert!(bid("set brave-otter").is_err());
    let set = bid("set brave-otter --max-price 0.25").unwrap();
    let Some(BidCommand::Set(set)) = set.command else {
        panic!("{set:?}")
    };
    assert_eq!(
        (set.name.as_str(), set.max_price),
        ("brave-otter", PricePerHour(250_000))
    );
}

#[test]
fn a_contract_is_of_one_kind() {
    for words in [
        "--bid 0.2 --interruptible 0.2",
        "--bid 0.2 --reserve 30",
        "--fallback 0.4",
        "--reserve 0",
        "--reserve -1",
        "--reserve 366",
        "--bid 0",
        "--bid -0.2",
        "--bid inf",
        "--interruptible 1000001",
    ] {
        let line = format!("feira rent o-7k3f --image i {words}");
        assert!(
            Arguments::try_parse_from(line.split_whitespace()).is_err(),
            "{words}"
        );
    }
}

#[test]
fn no_time_and_more_than_a_life_are_refused() {
    for hours in ["0", "-1", "87601", "18446744073709551615"] {
        let words = [
            "feira",
            "rent",
            "o-7k3f",
            "--image",
            "i",
            "--max-hours",
            hours,
        ];
        assert!(Arguments::try_parse_from(words).is_err(), "{hours}");
    }
    let words = [
        "feira",
        "rent",
        "o-7k3f",
        "--image",
        "i",
        "--max-hours",
        "87600",
    ];
    assert_eq!(rent(&words).work.hours(), Some(Seconds(315_360_000)));
}

#[test]
fn a_rent_can_be_typed_again_with_another_filter() {
    let typed = rent(&[
        "feira",
        "rent",
        "dph<3",
        "--image",
        "debian:12",
        "--budget",
        "3",
        "--for",
        "90m",
        "--yes",
        "-e",
        "TOKEN=secret",
        "--",
        "sh",
        "-c",
        "echo it's",
    ]);
    let other = FilterArgs {
        max_price: Some(PricePerHour(361_388)),
        ..typed.filter.clone()
    };
    assert_eq!(
        typed.again(&other),
        "feira rent 'dph<3' --max-price 0.361388 --image debian:12 --budget 3 --for 5400s --yes … \
         -- sh -c 'echo it'\\''s'"
    );
}

#[test]
fn flags_of_every_command_stand_apart_and_short() {
    let mut whole = Arguments::command();
    whole.build();
    let help = whole
        .find_subcommand_mut("search")
        .unwrap()
        .render_long_help();
    let help = help.to_string();
    let (own, everywhere) = help.split_once("Everywhere:").unwrap();
    for flag in [
        "--output", "--json", "--quiet", "--color", "--broker", "--key",
    ] {
        assert!(!own.contains(flag) && everywhere.contains(flag), "{flag}");
    }
    assert!(own.contains("--max-price") && !help.contains("Possible values"));
}

#[test]
fn exec_takes_its_command_with_and_without_dashes() {
    let lines: [&[&str]; 2] = [
        &["feira", "exec", "-it", "brave-otter", "ls", "-l"],
        &["feira", "exec", "-it", "brave-otter", "--", "ls", "-l"],
    ];
    for words in lines {
        let Command::Exec(exec) = read(words).command else {
            panic!("{words:?}")
        };
        assert_eq!(
            (exec.name.as_str(), exec.command),
            ("brave-otter", vec!["ls".into(), "-l".into()])
        );
        assert!(exec.interactive && exec.tty);
    }
}

#[test]
fn ending_has_the_words_people_bring() {
    for word in ["end", "destroy", "terminate", "down", "rm"] {
        let Command::End(end) = read(&["feira", word, "a", "b", "--yes"]).command else {
            panic!("{word}");
        };
        assert_eq!(end.names, ["a", "b"]);
    }
}

#[test]
fn abbreviations_are_not_guessed() {
    assert!(Arguments::try_parse_from(["feira", "sea"]).is_err());
    assert!(Arguments::try_parse_from(["feira", "ls", "--js"]).is_err());
}

#[test]
fn a_receipt_is_shown_or_verified() {
    let Command::Receipt(receipt) = read(&["feira", "receipt", "verify", "r.json"]).command else {
        panic!();
    };
    assert_eq!(receipt.words, ["verify", "r.json"]);
    assert!(Arguments::try_parse_from(["feira", "receipt"]).is_err());
    assert!(Arguments::try_parse_from(["feira", "receipt", "--verify", "r.json"]).is_ok());
}
