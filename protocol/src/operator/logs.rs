//! The log: to stderr, as text or as JSON, filtered by `FEIRA_LOG`. Must not decide what is worth logging.

use super::{Exit, Failure, Program};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

impl Program {
    /// Starts the log of this process. Where nobody says otherwise it has the program's own words, and of the
    /// libraries what went wrong.
    ///
    /// # Errors
    /// When `FEIRA_LOG` is no filter.
    pub fn start_log(&self, format: LogFormat) -> Result<(), Failure> {
        let own = self.log_target;
        let filter = variable("FEIRA_LOG").unwrap_or(format!("warn,{own}=info,protocol=info"));
        let parsed = EnvFilter::try_new(&filter).map_err(|error| {
            let what = format!(
                "FEIRA_LOG: `{filter}` is not a log filter ({error}); write it like `info` or `{own}=debug,warn`"
            );
            Failure::new(Exit::Usage, what)
        })?;
        let builder = tracing_subscriber::fmt()
            .with_env_filter(parsed)
            .with_ansi(std::io::stderr().is_terminal() && variable("NO_COLOR").is_none())
            .with_writer(std::io::stderr);
        // A second start in one process, as tests make, keeps the first log.
        let _ = match format {
            LogFormat::Text => builder.with_target(false).try_init(),
            LogFormat::Json => builder.json().flatten_event(true).try_init(),
        };
        Ok(())
    }
}

/// A variable of the environment that says something.
#[expect(
    clippy::disallowed_methods,
    reason = "the log starts before there are settings, and is set by the environment alone"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
