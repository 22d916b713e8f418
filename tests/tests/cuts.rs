//! A host that is cut off from its broker, for a moment or for long, at every step of a rental at once: one lease
//! each is pulling, running, stopping, resuming and ending when the line goes. Afterwards each rests with one
//! container or none, nothing was billed for the silence, and the money is exact.

#![cfg(test)]

use feira_tests::market::Market;
use feira_tests::programs::{registry, run_within, wait_for};
use feira_tests::proxy::Proxy;
use feira_tests::renter::micro_usd;
use std::process::{Child, Command};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
/// A dollar an hour: what a second too many costs is seen.
const PRICE: [&str; 2] = ["--price", "1"];
/// The leases, by what is under way when the line is cut. `resumed` is told to resume while it is cut.
const STEPS: [&str; 6] = ["pull", "run", "stop", "resume", "resumed", "end"];

/// A host for each step, behind one line.
struct Cut {
    market: Market,
    proxy: Proxy,
    _hosts: Vec<feira_tests::stage::Host>,
    /// Commands under way.
    commands: Vec<Child>,
}

impl Cut {
    fn market(settings: &[(&str, &str)]) -> Self {
        let (market, proxy) = Market::on_a_line(settings, &PRICE);
        let address = market.broker.address_through(proxy.address());
        let more = STEPS.iter().skip(1);
        let hosts = more
            .map(|step| {
                market
                    .stage
                    .host(&format!("host-{step}"), &[&address], &PRICE)
            })
            .collect();
        market.renter.wait_for_offers(STEPS.len());
        Self {
            market,
            proxy,
            _hosts: hosts,
            commands: Vec::new(),
        }
    }

    fn begin(&mut self, arguments: &[&str]) {
        self.commands.push(self.market.begin(arguments));
    }

    /// Brings each lease to its step and cuts the line in the midst of it.
    fn cut_at_every_step(&mut self) {
        let renter = &self.market.renter;
        // It ignores the polite signal, so that stopping and ending take the ten seconds of the grace.
        let stubborn = format!("{}/feira-stubborn:1", registry());
        for (step, more) in [
            ("run", &[][..]),
            ("stop", &["--image", &stubborn]),
            ("resume", &[]),
            ("resumed", &[]),
            ("end", &["--image", &stubborn]),
        ] {
            // Six hosts of one machine share its disk.
            let small = [&["--disk", "1"][..], more].concat();
            let _ = renter.rent(step, &small).ok();
        }
        for step in ["resume", "resumed"] {
            let _ = renter.feira(&["stop", step]).ok();
            let _ = renter.wait_for_phase(step, "stopped", SOON);
        }
        let big = format!("{}/feira-big:1", registry());
        // It is pulled again, which takes a second or two.
        let mut forget = Command::new("docker");
        let _ = run_within(forget.args(["image", "rm", "--force", &big]), SOON);
        let rent = ["rent", "--name", "pull", "--image", &big, "--yes"];
        let more = ["--disk", "1", "--max-price", "5", "--budget", "5"];
        let rent = [&rent[..], &more].concat();
        self.begin(&rent);
        wait_for("the host to take it", SOON, || {
            let said = self.market.renter.feira(&["show", "pull", "--json"]);
            let state = (said.code == 0).then(|| said.json()["state"].clone())?;
            (state != "offered" && state != "accepted").then_some(())
        });
        self.begin(&["stop", "stop"]);
        self.begin(&["end", "end", "--yes"]);
        std::thread::sleep(Duration::from_millis(400));
        self.begin(&["resume", "resume"]);
        std::thread::sleep(Duration::from_millis(150));
        self.proxy.cut();
        self.begin(&["resume", "resumed"]);
    }

    /// Heals the line and lets everything come to rest.
    fn heal(mut self, stage: &str) {
        self.proxy.heal();
        for mut command in self.commands.drain(..) {
            wait_for("a command to end", SOON, || {
                command.try_wait().expect("a command")
            });
        }
        self.market.settle(stage);
    }

    /// A host has ten seconds to take up what is resumed; when they are over the lease is stopped as before, with
    /// the reason, and can be resumed once the host is back.
    fn resume_again(&self) {
        let renter = &self.market.renter;
        let lease = renter.wait_for_phase("resumed", "stopped", SOON);
        assert!(lease.to_string().contains("the host is silent"), "{lease}");
        let _ = renter.feira(&["resume", "resumed"]).ok();
        let _ = renter.wait_for_phase("resumed", "running", SOON);
    }

    fn charged(&self, lease: &str) -> i64 {
        micro_usd(&self.market.renter.lease(lease)["charged_usd"])
    }
}

#[test]
fn a_host_cut_off_for_ten_seconds_at_every_step_goes_on_as_if_nothing_had_been() {
    let mut cut = Cut::market(&[]);
    cut.cut_at_every_step();
    // And a moment more: for as long a host may leave an order unanswered.
    std::thread::sleep(Duration::from_secs(11));
    assert_eq!(cut.market.renter.lease("run")["state"], "running");
    cut.proxy.heal();
    let _ = cut.market.renter.wait_for_phase("stop", "stopped", SOON);
    let _ = cut.market.renter.wait_for_phase("end", "ended", SOON);
    assert_eq!(cut.market.renter.lease("run")["state"], "running");
    cut.resume_again();
    cut.heal("cut off for ten seconds");
}

#[test]
fn a_host_silent_for_longer_than_allowed_at_every_step_is_not_billed_for_it() {
    // Nine seconds stand for the ninety of a real broker; the real ones are below.
    let mut cut = Cut::market(&[("suspect_after_s", "9"), ("lost_after_s", "120")]);
    cut.cut_at_every_step();
    let _ = cut.market.renter.wait_for_phase("run", "unreachable", SOON);
    let before = cut.charged("run");
    std::thread::sleep(Duration::from_secs(20));
    assert_eq!(cut.charged("run"), before, "billed while unreachable");
    cut.proxy.heal();
    let _ = cut.market.renter.wait_for_phase("run", "running", SOON);
    // The silent twenty seconds, $0.0055, never come back.
    let after = cut.charged("run");
    assert!(after - before < 2_800, "{before} to {after}");
    cut.heal("cut off for longer than allowed");
}

#[test]
fn a_host_cut_off_for_five_minutes_at_every_step_of_a_market_with_its_real_times() {
    let mut cut = Cut::market(&[]);
    cut.cut_at_every_step();
    let begun = cut.charged("run");
    std::thread::sleep(Duration::from_secs(300));
    assert_eq!(cut.market.renter.lease("run")["state"], "unreachable");
    // It was heard until the line was cut; of the five minutes, $0.083, nothing is billed.
    let before = cut.charged("run");
    assert!(before - begun < 2_800, "{begun} to {before}");
    cut.proxy.heal();
    let _ = cut.market.renter.wait_for_phase("run", "running", SOON);
    let after = cut.charged("run");
    assert!(after - before < 2_800, "{before} to {after}");
    cut.heal("cut off for five minutes");
}
