//! Questions to the person at the terminal. Nothing is asked when nobody could see or answer it.

use crate::context::Context;
use crate::failure::{Code, Failure, file_failed};
use std::path::Path;

/// A question that is answered yes or no; anything but a clear yes is no.
pub(crate) fn confirm(context: &Context, question: &str) -> Result<bool, Failure> {
    let answer = text(context, &format!("{question} [y/N]"))?;
    Ok(matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// A question that is answered with a line; empty at the end of input.
pub(crate) fn text(context: &Context, question: &str) -> Result<String, Failure> {
    context.printer.ask(question);
    let line = context
        .read_line()
        .map_err(|error| file_failed("read", Path::new("standard input"), &error))?;
    Ok(line.trim().to_owned())
}

/// What is left to say when the answer was no.
pub(crate) fn declined() -> Failure {
    Failure::new(Code::Declined, "you answered no; nothing was done")
}
