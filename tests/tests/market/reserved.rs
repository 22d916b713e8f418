//! A prepaid term: what it costs and gives back is shown before, prepaid once, and returned when it is cancelled.

use crate::play::{DEPOSIT, Play, ended, order};
use feira_tests::renter::micro_usd;

#[test]
fn a_term_is_quoted_prepaid_cancelled_and_refunded() {
    let play = Play::new(&[]);
    let renter = play.renter();
    // $0.40 for 30 days less a fifth. After half: half of it left, 28.80 of discount received, and a twentieth
    // of that: 115.20 − 28.80 − 1.44.
    let words = "rent --reserve 30 --max-price 1 --budget 300 --name term";
    let shown = order(renter, &format!("{words} --dry-run"), &[])
        .ok()
        .json();
    assert_eq!(shown["prepaid_usd"], "230.400000", "{shown:#}");
    assert_eq!(shown["discount_basis_points"], 2000);
    assert_eq!(shown["refund_half_usd"], "84.960000");
    assert_eq!(renter.balance(), (DEPOSIT, 0));
    let little = order(renter, "rent --reserve 30 --max-price 1 --budget 200", &[]);
    let _ = little.code(6).says("$230.40 is prepaid for 30 days");
    assert_eq!(renter.balance(), (DEPOSIT, 0));

    let term = order(renter, words, &[]).ok().json();
    assert_eq!(
        (&term["kind"], &term["state"]),
        (&"reserved".into(), &"running".into())
    );
    assert_eq!(term["term"]["prepaid_usd"], "230.400000");
    let (available, held) = renter.balance();
    assert_eq!(available + held, DEPOSIT - 230_400_000);
    // Nobody pushes it out.
    let bid = order(&play.rival, "bid --max-price 0.90 --name bids", &[])
        .ok()
        .json();
    assert_eq!(bid["state"], "resting");
    let unsure = renter.feira(&["end", "term"]);
    let _ = unsure.code(2).says("needs a yes");

    let _ = play.rival.feira(&["end", "bids", "--yes"]).ok();
    let (cost, file) = ended(&play, renter, "term");
    let receipt = renter.feira(&["receipt", "term", "--json"]).ok().json();
    let part = |name: &str| micro_usd(&receipt["term"][name]);
    let (earned, refunded) = (part("earned_usd"), part("refunded_usd"));
    let kept = part("clawed_back_host_usd") + part("clawed_back_broker_usd");
    assert_eq!(earned + refunded + kept, 230_400_000, "{receipt:#}");
    // A quarter of what was earned is the discount on it, and a twentieth of that comes on top.
    assert!(kept.abs_diff(earned * 21 / 80) <= 2, "{receipt:#}");
    assert_eq!(cost, earned + kept + micro_usd(&receipt["storage_usd"]));
    // A second cancel changes nothing.
    let _ = renter
        .feira(&["end", "term", "--yes"])
        .ok()
        .says("over already");
    play.check_money(cost, 0);
    let _ = renter.feira(&["receipt", "--verify", &file]).ok();
}
