//! `feira-host gpu-helper`: the process that asks the NVIDIA library for the agent, which starts and kills it.

use super::Place;
use crate::args::GpuHelper;
use host_nvml::serve::{MIG_MINORS, Settings, serve};
use protocol::operator::{Exit, Failure};
use std::fs::File;
use std::path::PathBuf;

/// Answers until the agent closes the pipe or kills it.
pub(super) fn run(_place: &Place, asked: GpuHelper) -> Result<Exit, Failure> {
    let failed = |error: rustix::io::Errno| {
        Failure::new(Exit::Failed, format!("the pipe to the agent: {error}"))
    };
    // What the library itself prints must not get between the answers.
    let answers = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3).map_err(failed)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr()).map_err(failed)?;
    let settings = Settings {
        library: asked.library,
        mig_minors: asked
            .mig_minors
            .unwrap_or_else(|| PathBuf::from(MIG_MINORS)),
    };
    serve(std::io::stdin(), File::from(answers), &settings, end);
    Ok(Exit::Done)
}

/// The agent is gone, or wants no more: also a thread that hangs in the driver ends with the process.
fn end() {
    std::process::exit(0);
}
