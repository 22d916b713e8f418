//! `feira-host gpu-scrub`: the process that writes a GPU's memory between two leases for the agent, which starts and
//! kills it.

use protocol::operator::{Exit, Failure};
use std::fs::File;
use std::io::Write;

/// Scrubs the first device that the driver shows, and says what was done as a line of JSON.
pub(super) fn run() -> Result<Exit, Failure> {
    let failed = |error: rustix::io::Errno| {
        Failure::new(Exit::Failed, format!("the pipe to the agent: {error}"))
    };
    // What a driver prints must not get into the answer.
    let answer = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3).map_err(failed)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr()).map_err(failed)?;
    let broken = |error: std::io::Error| {
        Failure::new(Exit::Failed, format!("the pipe to the agent: {error}"))
    };
    let scrub = gpu_bench::scrub().map_err(|error| {
        Failure::new(Exit::Failed, format!("the GPU was not scrubbed: {error}"))
    })?;
    let line = serde_json::to_string(&scrub)
        .map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    File::from(answer)
        .write_all(line.as_bytes())
        .map_err(broken)?;
    Ok(Exit::Done)
}
