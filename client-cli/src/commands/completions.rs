//! `feira completions`: a script for a shell, from the definition of the words themselves.

use crate::args::Arguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use clap::CommandFactory;
use clap_complete::Shell;

/// Prints the script.
pub(crate) fn run(printer: &Printer, shell: Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "feira", &mut script);
    printer.raw(&script)?;
    Ok(Exit::Done)
}
