//! How a command ends: the exit code, and for a failure what went wrong and what to do about it.

use std::fmt;
use std::process::ExitCode;

/// The exit codes of the operators' commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or an honest empty list.
    Done,
    /// Failed for a reason of this command.
    Failed,
    /// Used wrongly: an argument, a setting.
    Usage,
    /// Not found.
    NotFound,
    /// What must always be true is not.
    Broken,
    /// Not allowed: key, permissions.
    NotAllowed,
    /// Nothing answers: the program that should run, the engine, a broker.
    Unreachable,
    /// Broken off from outside: ctrl-C, SIGTERM.
    Interrupted,
}

impl Exit {
    /// The number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound | Self::Broken => 3,
            Self::NotAllowed => 4,
            Self::Unreachable => 8,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What went wrong, in one sentence.
    pub what: String,
    /// What to do about it, as a command where there is one.
    pub help: Option<String>,
}

impl Failure {
    /// A failure with nothing to advise yet.
    #[must_use]
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self {
            exit,
            what: what.into(),
            help: None,
        }
    }

    /// The same failure with advice.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self {
            help: Some(help.into()),
            ..self
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

/// The message of an error and of everything under it.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut under = error.source();
    while let Some(source) = under {
        let said = source.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        under = source.source();
    }
    text
}
