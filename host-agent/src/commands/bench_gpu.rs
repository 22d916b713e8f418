//! `feira-host bench-gpu`: the process that has one GPU's driver for `bench`, which starts and kills it.

use crate::args::BenchGpu;
use gpu_bench::{Target, run_as_lines};
use protocol::operator::{Exit, Failure};
use std::fs::File;

/// Measures, and says it as lines of JSON.
pub(super) fn run(asked: BenchGpu) -> Result<Exit, Failure> {
    let failed = |error: rustix::io::Errno| {
        Failure::new(Exit::Failed, format!("the pipe to the benchmark: {error}"))
    };
    // What a driver prints must not get between the lines.
    let lines = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3).map_err(failed)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr()).map_err(failed)?;
    let target = match asked.pci {
        Some(address) => Target::Pci(address),
        None if asked.cuda => Target::Cuda,
        None => Target::Software,
    };
    if run_as_lines(&target, &mut File::from(lines)) {
        Ok(Exit::Done)
    } else {
        Ok(Exit::Failed)
    }
}
