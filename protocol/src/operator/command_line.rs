//! How a program's words are read, and what is said about wrong ones.
//!
//! Must not know which words there are.

use crate::abridged::abridged;
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// What was typed; or, once help, the version or a mistake was said, the code to end with.
///
/// # Errors
/// The exit code, when there is nothing to run.
pub fn command_line<A: Parser>() -> Result<A, ExitCode> {
    A::try_parse().map_err(|error| {
        let text = error.render();
        let code = u8::try_from(error.exit_code()).unwrap_or(1);
        // A stream that is gone has nobody behind it to be told so.
        let _ = if error.use_stderr() {
            // What was typed stands in it, twice where its reader says it again.
            let text = abridged(&text.ansi().to_string());
            anstream::stderr().write_all(text.as_bytes())
        } else {
            let text = text.ansi().to_string();
            anstream::stdout().write_all(text.as_bytes())
        };
        ExitCode::from(code)
    })
}
