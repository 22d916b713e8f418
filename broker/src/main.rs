//! `feira-broker`: reads what was typed and runs it; everything else is in the library.

use broker::program::Allocator;
use protocol::operator::command_line;
use std::process::ExitCode;

#[global_allocator]
static MEMORY: Allocator = Allocator;

fn main() -> ExitCode {
    match command_line() {
        Ok(arguments) => broker::commands::run(arguments),
        Err(code) => code,
    }
}
