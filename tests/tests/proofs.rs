//! A broker puts a host to the proof, with the real programs and the real engine. The host has no GPU: its processor
//! stands in for one, in a class of the operator's own, and runs the prover of the image.

#![cfg(test)]

use feira_tests::market::Market;
use feira_tests::programs::{program, registry, run_within, wait_for};
use feira_tests::renter::{containers_of_lease, micro_usd};
use feira_tests::stage::{Broker, Stage};
use protocol::ids::{BrokerId, PublicKey, RenterId};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(90);

/// What the processor has to do: tiles of `side`, so many of them, with K = 512, 4 times passed over, within `pass_ms`.
struct Class {
    side: u32,
    tiles: u32,
    pass_ms: u64,
}

/// 4 tiles of 256 · 256 bytes: a moment of any processor.
const SMALL: Class = Class {
    side: 256,
    tiles: 4,
    pass_ms: 60_000,
};

/// The image with the prover, by its digest.
fn image() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/images.sh");
    let mut command = Command::new(script);
    command
        .args([registry().as_str(), "prover"])
        .env("FEIRA_PROVER", program("feira-prover"));
    let said = run_within(&mut command, SOON).ok().out;
    let image = said
        .split_whitespace()
        .find(|word| word.contains("@sha256:"));
    image.expect("an image by digest").to_owned()
}

/// A market whose broker has money of its own, and makes proofs from its next start on.
struct Proving {
    market: Market,
    host: String,
    /// The account that proofs are paid from, and what was deposited there.
    account: String,
    cpu: String,
    image: String,
}

const DEPOSIT: i64 = 5_000_000;

impl Proving {
    fn new() -> Self {
        let market = Market::on(Stage::new(), &[]);
        let found = market.renter.feira(&["search", "--json"]).ok().json();
        let text = |name: &str| found["items"][0][name].as_str().expect(name).to_owned();
        let status = market.broker.command(&["status", "--json"]).ok().json();
        let broker: BrokerId = status["status"]["broker"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        let account = RenterId::from(PublicKey::from(broker)).to_string();
        let _ = market.broker.command(&["deposit", &account, "5"]).ok();
        Self {
            host: text("host"),
            cpu: text("cpu_name"),
            image: image(),
            account,
            market,
        }
    }

    /// The broker is killed, and starts again with these settings.
    fn restart(&mut self, class: &Class) {
        let Class {
            side,
            tiles,
            pass_ms,
        } = class;
        self.market.broker.kill();
        let settings = format!(
            "proof_images = [\"{}\"]\nproof_first_within_s = 1\nproof_classes = [{{ name = \"stand-in\", \
             models = [{:?}], memory_min_gb = 0, tile_side = {side}, inner = 512, tiles = {tiles}, rounds = 4, \
             audits = 64, fill_max_ms = 120000, pass_max_ms = {pass_ms} }}]\n",
            self.image, self.cpu
        );
        set(&self.market.broker, &settings);
        self.market.broker.start();
    }

    /// The level of the only offer, once it is `wanted`.
    fn level(&self, wanted: &str) -> serde_json::Value {
        wait_for(&format!("the offer to be {wanted}"), SOON, || {
            let said = self.market.renter.feira(&["search", "--json"]);
            let shown =
                (said.code == 0).then(|| said.json()["items"][0]["verification"].clone())?;
            (shown["level"] == wanted).then_some(shown)
        })
    }

    /// Once no lease of a proof is open and all money is back: what proofs cost is what the account lacks, and no
    /// container is left.
    fn is_settled(&self) {
        let broker = &self.market.broker;
        wait_for("the money of proofs to be back", SOON, || {
            let leases = broker.command(&["leases", "--all", "--json"]).ok().json();
            let leases = leases["items"].as_array()?.clone();
            let charged: i64 = leases
                .iter()
                .map(|row| micro_usd(&row["charged_usd"]))
                .sum();
            let is_over = leases.iter().all(|row| row["phase"] == "ended");
            let accounts = broker.command(&["accounts", "--json"]).ok().json();
            let own = accounts["items"]
                .as_array()?
                .iter()
                .find(|row| row["renter"] == self.account)?;
            let is_back = micro_usd(&own["available_usd"]) == DEPOSIT - charged;
            let ids = leases.iter().filter_map(|row| row["lease"].as_str());
            let is_empty = ids.map(containers_of_lease).all(|left| left.is_empty());
            (is_over && is_back && is_empty).then_some(())
        });
        broker.check_ledger();
    }
}

/// Puts lines into `broker.toml` in the place of those of the same name.
fn set(broker: &Broker, lines: &str) {
    let file = broker.data.join("broker.toml");
    let names: Vec<&str> = lines
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let before = fs::read_to_string(&file).unwrap();
    let kept = before.lines().filter(|line| {
        !names
            .iter()
            .any(|name| line.starts_with(&format!("{name} ")))
    });
    let kept: Vec<&str> = kept.collect();
    fs::write(&file, format!("{lines}{}\n", kept.join("\n"))).unwrap();
}

#[test]
fn a_host_is_proved_shown_judged_again_by_anybody_and_deverified_with_the_reason() {
    let mut proving = Proving::new();
    assert_eq!(proving.level("unverified")["level"], "unverified");
    let doctor = proving.market.broker.command(&["doctor"]).ok();
    let _ = doctor.says("names no image with the prover");
    proving.restart(&SMALL);
    let shown = proving.level("verified");
    assert!(shown["verdict"].is_string(), "{shown}");
    proving.is_settled();
    let renter = &proving.market.renter;
    let _ = renter.feira(&["search", "verified=true"]).ok();
    let host = &proving.host.clone();
    let _ = renter
        .feira(&["host", "show", host, "--why"])
        .ok()
        .says("verified, ");
    let _ = renter
        .feira(&["audit", "show", host])
        .ok()
        .says("proved as stand-in");

    // The file is judged without anybody: the broker is gone.
    let file = proving.market.stage.folder().join("proof.json");
    let path = file.to_str().unwrap();
    let _ = renter.feira(&["audit", "show", host, "--save", path]).ok();
    proving.market.broker.kill();
    let checked = renter.feira(&["audit", "check", path]).ok();
    let _ = checked
        .says("machine: every row, key and hash was computed again")
        .says("this program does not know the class stand-in");
    // A byte in the middle of the transcript is another one.
    let text = fs::read_to_string(&file).unwrap();
    let at = text.find("\"transcript_bytes\": \"").unwrap() + 2000;
    let other = if text[at..].starts_with('0') {
        "1"
    } else {
        "0"
    };
    let mut changed = text.clone();
    changed.replace_range(at..=at, other);
    fs::write(&file, changed).unwrap();
    let _ = renter
        .feira(&["audit", "check", path])
        .code(1)
        .says("the verdict names another transcript");

    // A millisecond is too short for any processor: it is not what such a class has to be.
    proving.restart(&Class {
        side: 1024,
        tiles: 8,
        pass_ms: 1,
    });
    let _ = proving.level("verified");
    let _ = proving.market.broker.command(&["verify", host]).ok();
    let shown = proving.level("deverified");
    let reason = shown["reason"].as_str().unwrap();
    assert!(reason.contains("at most 1 are allowed"), "{reason}");
    let hosts = proving.market.broker.command(&["hosts"]).ok();
    let _ = hosts.says("deverified: it failed the proof of its hardware");
    let why = proving
        .market
        .renter
        .feira(&["host", "show", host, "--why"]);
    let _ = why.ok().says("it failed the proof of its hardware");
    proving.is_settled();
}

#[test]
fn a_broker_that_is_killed_in_the_middle_of_a_proof_leaves_no_lease_and_no_wrong_money() {
    let mut proving = Proving::new();
    // Half a minute of a slow processor.
    proving.restart(&Class {
        side: 2048,
        tiles: 16,
        pass_ms: 60_000,
    });
    let running = || {
        let leases = proving
            .market
            .broker
            .command(&["leases", "--json"])
            .ok()
            .json();
        let first = leases["items"].as_array()?.first()?.clone();
        (first["phase"] == "running").then(|| first["lease"].as_str().unwrap().to_owned())
    };
    let lease = wait_for("a proof", SOON, running);
    assert_eq!(containers_of_lease(&lease).len(), 1);
    std::thread::sleep(Duration::from_secs(1));
    // It makes no more proofs that could be in the way: the next one is within the day.
    proving.restart(&SMALL);
    wait_for("its lease to end", SOON, || {
        let leases = proving
            .market
            .broker
            .command(&["leases", "--all", "--json"])
            .ok()
            .json();
        let rows = leases["items"].as_array()?.clone();
        let row = rows.iter().find(|row| row["lease"] == lease.as_str())?;
        (row["phase"] == "ended").then_some(())
    });
    let _ = proving.level("verified");
    proving.is_settled();
}
