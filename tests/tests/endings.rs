//! What dies or is cut off while a lease stops, resumes or ends, or before it ever ran: the same rests, and
//! the same exact money.

#![cfg(test)]

use feira_tests::market::Market;
use feira_tests::stage::Stage;
use std::time::Duration;

/// Moments of a command at which something is killed or cut.
const MOMENTS_MS: [u64; 3] = [10, 80, 300];

#[derive(Debug, Clone, Copy)]
enum Victim {
    Broker,
    Agent,
    Client,
}

/// Runs `command` on a running (or, to be resumed, stopped) lease, kills the victim a moment later, starts
/// it again, and lets the market come to rest.
fn kill_during(market: &mut Market, command: &str, victim: Victim, moment: u64) {
    let stage = format!("{victim:?} killed {moment} ms into {command}");
    let name = format!("{}{moment}", command);
    market.renter.wait_for_offers(1);
    let _ = market.renter.rent(&name, &[]).ok();
    if command == "resume" {
        let _ = market.renter.feira(&["stop", &name]).ok();
    }
    let arguments = [command, name.as_str(), "--yes"];
    let length = if command == "end" { 3 } else { 2 };
    let mut child = market.begin(&arguments[..length]);
    std::thread::sleep(Duration::from_millis(moment));
    match victim {
        Victim::Broker => market.broker.kill(),
        Victim::Agent => market.host.kill(),
        Victim::Client => child.kill().unwrap(),
    }
    std::thread::sleep(Duration::from_millis(200));
    match victim {
        Victim::Broker => market.broker.start(),
        Victim::Agent => market.host.start(),
        Victim::Client => {}
    }
    child.wait().unwrap();
    market.settle(&stage);
}

fn kill_at_every_step(victim: Victim) {
    let mut market = Market::on(Stage::new(), &[]);
    for command in ["stop", "resume", "end"] {
        for moment in MOMENTS_MS {
            kill_during(&mut market, command, victim, moment);
        }
    }
}

#[test]
fn the_broker_is_killed_while_a_lease_stops_resumes_and_ends() {
    kill_at_every_step(Victim::Broker);
}

#[test]
fn the_agent_is_killed_while_a_lease_stops_resumes_and_ends() {
    kill_at_every_step(Victim::Agent);
}

#[test]
fn the_client_is_killed_while_a_lease_stops_resumes_and_ends() {
    kill_at_every_step(Victim::Client);
}

#[test]
fn a_host_cut_off_while_it_starts_loses_the_lease_or_runs_it_and_never_both() {
    let (market, proxy) = Market::on_a_line(&[("accept_within_s", "4")], &["--price", "0.36"]);
    for moment in [0, 60, 250] {
        let mut rent = market.start_rent(&format!("cut{moment}"));
        std::thread::sleep(Duration::from_millis(moment));
        proxy.cut();
        // Longer than a host has to accept.
        std::thread::sleep(Duration::from_secs(6));
        proxy.heal();
        rent.wait().unwrap();
        market.settle(&format!("cut {moment} ms into a start"));
        market.renter.wait_for_offers(1);
    }
}

#[test]
fn a_host_that_is_gone_is_said_and_never_a_hang() {
    let mut market = Market::on(Stage::new(), &[]);
    let offer = market.renter.feira(&["search", "-o", "id"]).ok();
    let _ = market.renter.rent("alone", &[]).ok();
    market.host.kill();
    let said = market.renter.feira(&["exec", "alone", "--", "true"]);
    assert_eq!(said.code, 255, "{said}");
    let said = market.renter.feira(&["logs", "alone"]);
    assert_eq!(said.code, 8, "{said}");
    // Ending needs no host: the money is settled and the container goes when the host is back.
    let _ = market.renter.feira(&["end", "alone", "--yes"]).ok();
    let image = format!("{}/feira-demo:1", feira_tests::programs::registry());
    let offer = offer.out.trim();
    let rent = ["rent", offer, "--image", &image, "--yes", "--budget", "1"];
    let said = market.renter.feira(&rent);
    assert_eq!(said.code, 7, "{said}");
    market.host.start();
    market.settle("the host is back");
}
