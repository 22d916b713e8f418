//! `feira-broker`: reads what was typed and runs it; everything else is in the library.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    broker::commands::run(broker::args::Arguments::parse())
}
