//! What an operator does with money and hosts, each thing once; and what anybody can compute again.

use crate::play::{DEPOSIT, Play, SOON, ended, order};
use feira_tests::programs::{Said, wait_for};
use feira_tests::renter::micro_usd;
use serde_json::Value;

/// $36 an hour: a cent a second.
const DEAR: [&str; 6] = ["--price", "36", "--storage", "0", "--disk-max", "20"];

fn account(books: &Value, kind: &str) -> i64 {
    let amount = &books["by_kind_usd"][kind];
    if amount.is_null() {
        0
    } else {
        micro_usd(amount)
    }
}

/// An amount that may be less than nothing.
fn signed(amount: &Value) -> i64 {
    let text = amount.as_str().unwrap();
    match text.strip_prefix('-') {
        Some(rest) => -micro_usd(&rest.into()),
        None => micro_usd(amount),
    }
}

fn operator(play: &Play, words: &str) -> Said {
    let words: Vec<&str> = words.split_whitespace().collect();
    play.market.broker.command(&words)
}

/// A lease of a second or two, ended; its id, its host and what it cost.
fn a_lease(play: &Play) -> (String, String, i64) {
    let lease = order(play.renter(), "rent --max-price 40 --name work", &[])
        .ok()
        .json();
    let text = |name: &str| lease[name].as_str().unwrap().to_owned();
    wait_for("something to be charged", SOON, || {
        (play.renter().lease("work")["running_seconds"].as_i64()? >= 1).then_some(())
    });
    let (cost, _) = ended(play, play.renter(), "work");
    assert!(cost >= 10_000, "{cost}");
    (text("id"), text("host"), cost)
}

// peers 3.2 #34: what a host earned is free and paid out on a schedule, not when somebody remembers.
// peers 3.2 #39: each is paid once: a payout under one id, however often it is put down.
#[test]
fn earnings_are_paid_out_once_and_a_refund_afterwards_comes_from_the_bond() {
    let play = Play::listed(&[("dispute_s", "1"), ("dispute_trusted_s", "1")], &DEAR);
    let (lease, host, cost) = a_lease(&play);
    let earned = cost - cost * 300 / 10_000;
    wait_for("the earnings to be free", SOON, || {
        (account(&play.books(), "host-available") == earned).then_some(())
    });
    let exported = operator(&play, "payouts export --minimum 0").ok();
    let row = exported.out.lines().nth(1).unwrap().to_owned();
    let columns: Vec<&str> = row.split(',').collect();
    assert_eq!(columns[1], host);
    assert_eq!(micro_usd(&columns[2].into()), earned);
    // Exported again, it is the same payout.
    let again = operator(&play, "payouts export --minimum 0").ok();
    assert_eq!(again.out, exported.out);
    let payout = columns[0];
    let _ = operator(&play, &format!("payouts paid {payout} --note wire-1")).ok();
    let books = play.books();
    assert_eq!(account(&books, "cash"), 2 * DEPOSIT - earned);
    for words in [
        format!("payouts paid {payout} --note wire-1"),
        format!("payouts drop {payout}"),
    ] {
        let _ = operator(&play, &words)
            .code(1)
            .says("it was marked as paid before");
        assert_eq!(play.books(), books);
    }

    let _ = operator(&play, &format!("bond deposit {host} 5")).ok();
    let refund = operator(&play, &format!("refund {lease} 0.005 --note slow")).ok();
    let id = refund
        .err
        .split_whitespace()
        .find(|word| word.starts_with("p-"))
        .unwrap();
    let id = id.trim_end_matches(';');
    let books = play.books();
    // The broker's part is what 3 % of the rest are; the host's part comes from its bond.
    let fee = (cost - 5000) * 300 / 10_000;
    assert_eq!(account(&books, "broker-fee"), fee);
    assert_eq!(
        account(&books, "host-bond"),
        5_000_000 - (5000 - (cost * 300 / 10_000 - fee))
    );
    assert_eq!(play.renter().balance(), (DEPOSIT - cost + 5000, 0));
    let _ = operator(
        &play,
        &format!("refund {lease} 0.005 --note slow --id {id}"),
    )
    .ok();
    assert_eq!(play.books()["by_kind_usd"], books["by_kind_usd"]);
    let _ = operator(&play, &format!("refund {lease} 5 --note slow"))
        .code(1)
        .says("of it can be given back");
    let _ = operator(&play, &format!("bond return {host} 50"))
        .code(1)
        .says("the host's bond is $4.99");
    assert_eq!(play.books()["by_kind_usd"], books["by_kind_usd"]);
    play.check_money(cost - 5000, 0);
    receipt_says(&play, 5000);
}

/// The receipt of `work` says what was given back.
fn receipt_says(play: &Play, refunded: i64) {
    let receipt = play
        .renter()
        .feira(&["receipt", "work", "--json"])
        .ok()
        .json();
    assert_eq!(micro_usd(&receipt["refunded_usd"]), refunded);
}

// peers 3.2 #28: what was paid in and what was used are different words of one statement, and add up.
// peers 3.2 #38: the balance is what the movements make.
#[test]
fn a_statement_leads_to_the_balance_movement_by_movement() {
    let play = Play::listed(&[], &DEAR);
    let (_, _, cost) = a_lease(&play);
    let said = play
        .renter()
        .feira(&["balance", "--statement", "--json"])
        .ok()
        .json();
    let rows = said["items"].as_array().unwrap();
    let amounts = |what: &str| -> i64 {
        let of = rows.iter().filter(|row| row["what"] == what);
        of.map(|row| signed(&row["amount_usd"])).sum()
    };
    assert_eq!(
        (amounts("deposit"), amounts("charge")),
        (DEPOSIT, -cost),
        "{said:#}"
    );
    assert_eq!(
        amounts("hold") + amounts("release") + amounts("charge"),
        -cost,
        "{said:#}"
    );
    assert_eq!(play.renter().balance(), (DEPOSIT - cost, 0));
    play.check_money(cost, 0);
}

#[test]
fn a_suspended_host_takes_no_leases_until_that_is_lifted() {
    let play = Play::new(&[]);
    let lease = order(play.renter(), "rent --max-price 1 --name stays", &[])
        .ok()
        .json();
    let host = lease["host"].as_str().unwrap().to_owned();
    let _ = operator(&play, &format!("suspend {host}"))
        .code(2)
        .says("--why");
    let _ = play
        .market
        .broker
        .command(&["suspend", &host, "--why", "sold twice"])
        .ok();
    // What runs there goes on.
    assert_eq!(play.renter().lease("stays")["state"], "running");
    let (cost, _) = ended(&play, play.renter(), "stays");
    let refused = order(&play.rival, "rent --max-price 1 --name new", &[]);
    assert_ne!(refused.code, 0, "{refused}");
    let _ = operator(&play, &format!("suspend {host} --lift")).ok();
    play.rival.wait_for_offers(1);
    let _ = order(&play.rival, "rent --max-price 1 --name new", &[]).ok();
    let (rivals, _) = ended(&play, &play.rival, "new");
    play.check_money(cost, rivals);
}

#[test]
fn a_score_is_shown_with_its_evidence_and_computed_again_by_anyone() {
    let play = Play::new(&[]);
    let lease = order(play.renter(), "rent --max-price 1 --name work", &[])
        .ok()
        .json();
    let host = lease["host"].as_str().unwrap();
    let (cost, _) = ended(&play, play.renter(), "work");
    let file = play.market.stage.folder().join("score.json");
    let file = file.to_str().unwrap();
    let shown = play
        .rival
        .feira(&["host", "show", host, "--why", "--save", file])
        .ok();
    // (8 + 1) / (10 + 1) of its starts; 36 of 60 hours.
    let _ = shown.says("1 in time, 0 not: 81.81 %");
    let again = play.rival.feira(&["host", "score", file]).ok();
    let _ = again.says("and the score follows from them");
    // Evidence that was changed is none.
    let text = std::fs::read_to_string(file).unwrap();
    let (before, signed) = text.split_once(r#""standing": ""#).unwrap();
    let digit = if &signed[200..201] == "0" { "1" } else { "0" };
    let forged = format!(
        r#"{before}"standing": "{}{digit}{}"#,
        &signed[..200],
        &signed[201..]
    );
    std::fs::write(file, forged).unwrap();
    let _ = play
        .rival
        .feira(&["host", "score", file])
        .code(1)
        .says("E0652");
    play.check_money(cost, 0);
}

#[test]
fn a_scenario_happens_without_a_broker_that_runs() {
    let play = Play::new(&[]);
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../broker/tests/scenarios/i1.json"
    );
    let said = operator(&play, &format!("simulate {file}")).ok();
    let last: Value = serde_json::from_str(said.out.lines().last().unwrap()).unwrap();
    // 1320 s at 150 000 µ$ an hour: 55 000.
    assert_eq!(
        last["summary"]["balances"]["r1"]["available"],
        1_000_000_000 - 55_000
    );
    let broken = play.market.stage.folder().join("broken.json");
    std::fs::write(
        &broken,
        r#"{"settings":{"nonsense":1},"until_s":10,"hosts":[],"steps":[]}"#,
    )
    .unwrap();
    let said = operator(&play, &format!("simulate {}", broken.display()));
    let _ = said.code(2).says("unknown field `nonsense`");
    play.check_money(0, 0);
}
