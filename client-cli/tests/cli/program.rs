//! The built program, run with a home of its own and nothing of this process's environment.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) answer: String,
    pub(crate) errors: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Result<serde_json::Value, Box<dyn Error>> {
        serde_json::from_str(&self.answer).map_err(|error| format!("{error}: {self:#?}").into())
    }
}

/// A folder for everything that a renter keeps.
#[derive(Debug)]
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self(tempfile::tempdir()?))
    }

    pub(crate) fn with_key() -> Result<Self, Box<dyn Error>> {
        let home = Self::new()?;
        protocol::net::Identity::create(&home.path("data/feira/keys/default"))?;
        Ok(home)
    }

    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.0.path().join(inside)
    }

    pub(crate) fn run(&self, words: &[&str]) -> Result<Ran, Box<dyn Error>> {
        let output = self.command(words).output()?;
        Ok(Ran {
            code: output.status.code(),
            answer: String::from_utf8(output.stdout)?,
            errors: String::from_utf8(output.stderr)?,
        })
    }

    /// Runs with a standard output that nobody reads.
    pub(crate) fn run_closed(&self, words: &[&str]) -> Result<Ran, Box<dyn Error>> {
        let (reader, writer) = std::io::pipe()?;
        drop(reader);
        let output = self
            .command(words)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()?;
        let errors = String::from_utf8(output.stderr)?;
        Ok(Ran {
            code: output.status.code(),
            answer: String::new(),
            errors,
        })
    }

    pub(crate) fn start(&self, words: &[&str]) -> Result<Child, Box<dyn Error>> {
        let mut command = self.command(words);
        Ok(command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_feira")));
        command
            .args(words)
            .stdin(Stdio::null())
            .env_clear()
            .env("TZ", "UTC");
        for (variable, folder) in [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
        ] {
            command.env(variable, self.path(folder));
        }
        command
    }
}
