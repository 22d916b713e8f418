//! `feira-broker`: reads what was typed and runs it; everything else is in the library.

use broker::program::Allocator;
use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static MEMORY: Allocator = Allocator;

fn main() -> ExitCode {
    broker::commands::run(broker::args::Arguments::parse())
}
