//! The program `feira`: gives the library the words it was called with, and the shell its answer.

use std::process::ExitCode;

fn main() -> ExitCode {
    client_cli::run_safely(std::env::args_os(), client_cli::Surroundings::of_process()).into()
}
