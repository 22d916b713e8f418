//! A renter as a person at a command line: its own folders, and the commands that suites type most.

use crate::programs::{self, Said, program, run_within, set_clock_ahead, wait_for};
use crate::stage::{COMMAND, READY};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A renter: its own XDG folders.
#[derive(Debug)]
pub struct Renter {
    pub(crate) home: PathBuf,
    /// Its id, `r-…`.
    pub id: String,
    /// Seconds that its clock is ahead.
    pub clock_ahead_s: i64,
}

impl Renter {
    /// `feira` with this renter's folders, ready to be given arguments.
    #[must_use]
    pub fn prepared(&self) -> Command {
        let mut command = Command::new(program("feira"));
        for (name, folder) in [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
        ] {
            command.env(name, self.home.join(folder));
        }
        set_clock_ahead(&mut command, self.clock_ahead_s);
        command
    }

    /// Runs a command of the renter's.
    #[track_caller]
    pub fn feira(&self, arguments: &[&str]) -> Said {
        run_within(self.prepared().args(arguments), COMMAND)
    }

    /// Waits until a search finds `count` offers.
    ///
    /// # Panics
    /// When that takes too long.
    #[track_caller]
    pub fn wait_for_offers(&self, count: usize) {
        wait_for(&format!("{count} offers"), READY, || {
            let said = self.feira(&["search", "--json"]);
            let found = (said.code == 0).then(|| said.json()["items"].as_array().map(Vec::len));
            (found.flatten()? == count).then_some(())
        });
    }

    /// Rents the cheapest offer for the demo image unless `more` names another, and waits until it runs.
    #[track_caller]
    pub fn rent(&self, name: &str, more: &[&str]) -> Said {
        let image = format!("{}/feira-demo:1", programs::registry());
        let mut arguments = vec!["rent", "--name", name, "--yes", "--json"];
        for (flag, value) in [
            ("--image", image.as_str()),
            ("--max-price", "5"),
            ("--budget", "5"),
        ] {
            if !more.contains(&flag) {
                arguments.extend_from_slice(&[flag, value]);
            }
        }
        arguments.extend_from_slice(more);
        self.feira(&arguments)
    }

    /// What an image's name stands for now, by its digest.
    ///
    /// # Panics
    /// When its registry does not say.
    #[track_caller]
    #[must_use]
    pub fn by_digest(&self, image: &str) -> String {
        let preview = ["--max-price", "5", "--budget", "5", "--dry-run", "--json"];
        let rent = [&["rent", "num_gpus=0", "--image", image][..], &preview].concat();
        let shown = self.feira(&rent).ok().out;
        let digest = shown.split('"').find(|part| part.contains("@sha256:"));
        digest.expect("an image by digest").to_owned()
    }

    /// Its money with its only broker: free to spend, and held, in µ$.
    ///
    /// # Panics
    /// When it cannot be read.
    #[track_caller]
    #[must_use]
    pub fn balance(&self) -> (i64, i64) {
        let said = self.feira(&["balance", "--json"]).ok().json();
        let row = &said["items"][0];
        (
            micro_usd(&row["available_usd"]),
            micro_usd(&row["held_usd"]),
        )
    }

    /// One lease as JSON.
    #[track_caller]
    #[must_use]
    pub fn lease(&self, name: &str) -> serde_json::Value {
        self.feira(&["show", name, "--json"]).ok().json()
    }

    /// Waits until a lease is in `phase`.
    ///
    /// # Panics
    /// When that takes longer than `limit`.
    #[track_caller]
    pub fn wait_for_phase(&self, name: &str, phase: &str, limit: Duration) -> serde_json::Value {
        wait_for(&format!("{name} to be {phase}"), limit, || {
            let said = self.feira(&["show", name, "--json"]);
            let lease = (said.code == 0).then(|| said.json())?;
            (lease["state"] == phase).then_some(lease)
        })
    }
}

/// An amount as the programs print it in JSON, in µ$.
///
/// # Panics
/// When it is none.
#[track_caller]
#[must_use]
pub fn micro_usd(text: &serde_json::Value) -> i64 {
    let amount = text
        .as_str()
        .and_then(|text| text.parse::<protocol::units::MicroUsd>().ok());
    amount.unwrap_or_else(|| panic!("{text} is no amount")).0
}

/// The ids of all containers of the host with this label, running or not.
///
/// # Panics
/// When the engine's client cannot be run.
#[must_use]
pub fn containers_of_lease(lease: &str) -> Vec<String> {
    let mut command = Command::new("docker");
    command
        .args(["ps", "-aq", "--no-trunc", "--filter"])
        .arg(format!("label=feira.lease={lease}"));
    let said = run_within(&mut command, COMMAND).ok();
    said.out.lines().map(str::to_owned).collect()
}
