//! `feira`, the renter's program: search, rent, work inside, end, and check what it cost.
//!
//! ```text
//!  args (what was typed) ─▶ settings (what it means) ─▶ commands/<one file each> ─▶ printer (stdout, stderr)
//!                                                            │
//!                                   session (brokers)  tunnel (hosts)  image (registries)  orders (disk)
//! ```
//!
//! [`run`] is the whole program; it ends no process, reads no global stream, and can run many times in one.

mod amounts;
mod args;
mod ask;
mod cache;
mod clock;
mod commands;
mod context;
mod exit;
mod failure;
mod files;
#[cfg(test)]
mod fixtures;
mod follow;
mod foreign;
mod image;
mod names;
mod news;
mod orders;
mod preview;
mod printer;
mod session;
mod settings;
mod stages;
mod terminal;
mod topics;
mod tunnel;
mod view;

pub use exit::Exit;
pub use settings::{Environment, Folders};

use args::{Arguments, Command};
use clap::Parser;
use context::Context;
use failure::{Code, Failure};
use printer::{Format, Printer, Stream};
use protocol::abridged::abridged;
use settings::{Appearance, Settings};
use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal, Read, Write};

/// What a run of the program reads.
pub struct Input {
    reader: Box<dyn Read + Send>,
    is_terminal: bool,
}

/// What a run of the program writes to.
pub struct Output {
    writer: Box<dyn Write + Send>,
    width: Option<usize>,
}

/// All that surrounds a run of the program.
#[derive(Debug)]
pub struct Surroundings {
    /// Variables and folders.
    pub environment: Environment,
    /// Standard input.
    pub input: Input,
    /// Standard output: the answer.
    pub output: Output,
    /// Standard error: talk.
    pub talk: Output,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("is_terminal", &self.is_terminal)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

impl Input {
    /// Input from a pipe or a file.
    #[must_use]
    pub fn piped(reader: Box<dyn Read + Send>) -> Self {
        Self {
            reader,
            is_terminal: false,
        }
    }

    const fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Input from somebody who can be asked, if the talk's stream is a terminal too.
    #[must_use]
    pub fn terminal(reader: Box<dyn Read + Send>) -> Self {
        Self {
            reader,
            is_terminal: true,
        }
    }

    /// One line, read byte by byte: what stands behind it is for whoever reads next.
    fn read_line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        let mut byte = [0];
        while self.reader.read(&mut byte)? == 1 && byte != *b"\n" {
            line.extend_from_slice(&byte);
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

impl Output {
    /// Output into a pipe or a file.
    #[must_use]
    pub fn piped(writer: Box<dyn Write + Send>) -> Self {
        Self {
            writer,
            width: None,
        }
    }

    /// Output to a terminal of this many columns.
    #[must_use]
    pub fn terminal(writer: Box<dyn Write + Send>, columns: usize) -> Self {
        Self {
            writer,
            width: Some(columns),
        }
    }
}

impl Surroundings {
    /// Those of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let input = Input {
            reader: Box::new(io::stdin()),
            is_terminal: io::stdin().is_terminal(),
        };
        Self {
            environment: Environment::of_process(),
            input,
            output: Output {
                writer: Box::new(anstream::AutoStream::always(io::stdout())),
                width: terminal::width(rustix::stdio::stdout()),
            },
            talk: Output {
                writer: Box::new(anstream::AutoStream::always(io::stderr())),
                width: terminal::width(rustix::stdio::stderr()),
            },
        }
    }
}

/// Runs the program with these words, the first of which is its own name.
pub fn run(words: impl IntoIterator<Item = OsString>, surroundings: Surroundings) -> Exit {
    let words: Vec<OsString> = words.into_iter().collect();
    if let Some(question) = foreign::question(&words) {
        return refuse(&words, surroundings, &question);
    }
    match Arguments::try_parse_from(&words) {
        Ok(arguments) => run_command(arguments, surroundings),
        Err(error) => explain(&words, surroundings, &error),
    }
}

/// As [`run`], and a fault of the program ends it in order: with exit code 70, and the terminal as it was.
pub fn run_safely(words: impl IntoIterator<Item = OsString>, surroundings: Surroundings) -> Exit {
    let whole = std::panic::AssertUnwindSafe(|| run(words, surroundings));
    std::panic::catch_unwind(whole).unwrap_or(Exit::Bug)
}

fn run_command(arguments: Arguments, surroundings: Surroundings) -> Exit {
    let Surroundings {
        environment,
        input,
        output,
        talk,
    } = surroundings;
    let appearance = Appearance::of(&arguments.everywhere, &environment);
    let look = appearance.clone().unwrap_or(Appearance {
        format: Format::Table,
        verbosity: printer::Verbosity::Normal,
        color: arguments.everywhere.color,
    });
    let can_ask = input.is_terminal() && talk.width.is_some();
    let printer = printer_over(look, &environment, output, talk);
    let finished = match (appearance, &arguments.command) {
        (Err(failure), _) => Err(failure),
        (Ok(_), Command::Help { topic }) => topics::show(&printer, topic),
        (Ok(_), Command::Completions { shell }) => commands::completions::run(&printer, *shell),
        (Ok(_), _) => match Settings::resolve(&arguments.everywhere, &environment, can_ask) {
            Ok(settings) => {
                let mut context = Context::new(settings, printer, input);
                let finished = commands::run(&mut context, &arguments.command);
                return end(&context.printer, finished);
            }
            Err(failure) => Err(failure),
        },
    };
    end(&printer, finished)
}

fn printer_over(
    look: Appearance,
    environment: &Environment,
    output: Output,
    talk: Output,
) -> Printer {
    let stream = |output: Output| {
        let colour = look.colour(environment, output.width.is_some());
        Stream::new(output.writer, colour, output.width)
    };
    Printer::new(stream(output), stream(talk), look.format, look.verbosity)
}

fn end(printer: &Printer, finished: Result<Exit, Failure>) -> Exit {
    match finished {
        Ok(exit) => exit,
        Err(failure) => {
            if failure.code() != Code::ReaderGone {
                printer.failure(&failure);
            }
            failure.exit()
        }
    }
}

/// Words that were not even read: a failure in the form that they seem to ask for.
fn refuse(words: &[OsString], surroundings: Surroundings, failure: &Failure) -> Exit {
    let wants_json = words
        .windows(2)
        .any(|pair| pair[0] == "-o" && pair[1] == "json")
        || words
            .iter()
            .any(|word| word == "--json" || word == "-ojson" || word == "--output=json");
    let format = if wants_json {
        Format::Json
    } else {
        Format::Table
    };
    let look = Appearance {
        format,
        verbosity: printer::Verbosity::Normal,
        color: None,
    };
    let Surroundings {
        environment,
        output,
        talk,
        ..
    } = surroundings;
    end(
        &printer_over(look, &environment, output, talk),
        Err(failure.clone()),
    )
}

/// Help, the version, or what was wrong with the words.
fn explain(words: &[OsString], mut surroundings: Surroundings, error: &clap::Error) -> Exit {
    let is_error = error.use_stderr();
    let is_help = error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    let output = if is_error {
        &mut surroundings.talk
    } else {
        &mut surroundings.output
    };
    let text = error.render();
    let colour = surroundings
        .environment
        .allows_colour(output.width.is_some());
    let text = if colour {
        text.ansi().to_string()
    } else {
        text.to_string()
    };
    // What was typed stands in a mistake, twice where its reader says it again. Help is shown whole.
    let text = if is_error && !is_help {
        abridged(&text)
    } else {
        text
    };
    if is_error && !is_help && words.iter().any(|word| word == "--json") {
        let what = error.render().to_string();
        let first = what
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned();
        return refuse(words, surroundings, &Failure::new(Code::BadValue, first));
    }
    // Nobody can be told that the stream is gone.
    let _ = output
        .writer
        .write_all(text.as_bytes())
        .and_then(|()| output.writer.flush());
    if is_error { Exit::Usage } else { Exit::Done }
}
