//! A clock that is an hour off, ahead or behind, of a renter, of a host, of a broker: what is signed by it is
//! refused, whoever can mend it is told by how much, and nobody pays for it.

#![cfg(test)]

use feira_tests::market::Market;
use feira_tests::programs::wait_for;
use feira_tests::renter::micro_usd;
use feira_tests::stage::Stage;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
/// An hour, and half a minute that passes between two looks at a clock.
const HOUR: i64 = 3630;
/// An hour ahead and an hour behind, and how that is said.
const OFF: [(i64, &str); 2] = [(HOUR, "1h 00m ahead"), (-HOUR, "1h 00m behind")];

#[test]
fn a_renter_whose_clock_is_off_is_told_both_times_and_nothing_is_signed_for_it() {
    let mut market = Market::on(Stage::new(), &[]);
    for (ahead, words) in OFF {
        market.renter.clock_ahead_s = ahead;
        // To look needs no signature.
        let _ = market.renter.feira(&["search"]).ok();
        let said = market.renter.rent("early", &[]).code(4);
        let _ = said.says("E0404").says(words).says("timedatectl");
        let said = market.renter.feira(&["doctor"]).code(1);
        let _ = said.says(words).says("the clock of").says("timedatectl");
    }
    market.renter.clock_ahead_s = 0;
    let _ = market.renter.feira(&["doctor"]).ok();
    assert_eq!(market.renter.balance(), (market.deposit, 0));
    let none = market.renter.feira(&["ls", "--all", "--json"]).ok().json();
    assert_eq!(none["items"], serde_json::json!([]));
}

#[test]
fn a_host_whose_clock_is_off_is_told_so_and_is_not_on_the_market() {
    let mut market = Market::on(Stage::new(), &[]);
    for (ahead, words) in OFF {
        market.host.kill();
        // What it said before, by the right clock, goes with its connection.
        market.renter.wait_for_offers(0);
        market.host.clock_ahead_s = ahead;
        market.host.start();
        let told = format!("this machine's clock is {words} of");
        let told = told.replace("behind of", "behind");
        wait_for("the host to be told", SOON, || {
            market.host.log().contains(&told).then_some(())
        });
        let said = market.host.command(&["doctor"]).code(1);
        let _ = said
            .says("from the broker's: its messages would be refused")
            .says("timedatectl");
        assert_eq!(market.renter.rent("nowhere", &[]).code, 5);
    }
    market.host.kill();
    market.host.clock_ahead_s = 0;
    market.host.start();
    market.renter.wait_for_offers(1);
    let _ = market.renter.rent("after", &[]).ok();
    market.settle("the host's clock is right again");
}

#[test]
fn a_broker_whose_clock_was_off_bills_the_time_that_passed_and_says_that_its_books_are_ahead() {
    let mut market = Market::on(Stage::new(), &[]);
    let _ = market.renter.rent("through", &[]).ok();
    market.broker.kill();
    market.broker.clock_ahead_s = HOUR;
    market.broker.start();
    // To everybody else it looks as if their own clocks were behind.
    let said = market.renter.feira(&["stop", "through"]).code(4);
    let _ = said.says("E0404").says("1h 00m behind");
    wait_for("the host to be told", SOON, || {
        let told = "this machine's clock is 1h 00m behind the broker's";
        market.host.log().contains(told).then_some(())
    });
    // Written by the wrong clock; it stays in the books.
    market.broker.deposit(&market.renter, "1");
    market.deposit += 1_000_000;
    market.broker.kill();
    market.broker.clock_ahead_s = 0;
    market.broker.start();
    let said = market.broker.command(&["doctor"]).code(1);
    let _ = said.says("ahead of this machine's clock");
    let _ = market.renter.wait_for_phase("through", "running", SOON);
    // An hour is $0.36; what ran is a minute at the most.
    let charged = micro_usd(&market.renter.lease("through")["charged_usd"]);
    assert!(charged < 10_000, "{charged}");
    market.settle("the broker's clock is right again");
}
