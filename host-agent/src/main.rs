//! `feira-host`: reads what was typed and runs it; everything else is in the library.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    host_agent::commands::run(host_agent::args::Arguments::parse())
}
