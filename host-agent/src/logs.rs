//! The log: to stderr, as text or as JSON, filtered by `FEIRA_LOG`. Must not decide what is worth logging.

use crate::args::LogFormat;
use crate::config;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// What is logged when nobody says otherwise: the agent's own words, and of the libraries what went wrong.
const DEFAULT_FILTER: &str = "warn,host_agent=info,protocol=info";

/// Why the log was not started.
#[derive(Debug, thiserror::Error)]
#[error(
    "FEIRA_LOG: `{filter}` is not a log filter ({reason}); write it like `info` or `host_agent=debug,warn`"
)]
pub struct LogError {
    /// What was asked for.
    pub filter: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Starts the log of this process.
///
/// # Errors
/// When `FEIRA_LOG` is no filter.
pub fn start(format: LogFormat) -> Result<(), LogError> {
    let filter = config::log_filter().unwrap_or_else(|| DEFAULT_FILTER.to_owned());
    let parsed = EnvFilter::try_new(&filter).map_err(|error| LogError {
        filter,
        reason: error.to_string(),
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_ansi(std::io::stderr().is_terminal() && !config::is_colourless())
        .with_writer(std::io::stderr);
    // A second start in one process, as tests make, keeps the first log.
    let _ = match format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}
