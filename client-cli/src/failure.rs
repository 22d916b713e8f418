//! The one error of all commands: a stable code, what is wrong, and what to type next.
//!
//! A failure is made where the facts are known, and shown in one place by the printer. The operations below
//! the commands have error types of their own, which become a failure here or beside themselves.

mod code;
mod refused;

pub(crate) use code::Code;
pub(crate) use refused::{end_in_words, problem_in_words};

use crate::exit::Exit;
use protocol::abridged::abridged;
use protocol::bounded::BoundError;
use protocol::codec::CodecError;
use std::io;

/// Why a command did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    code: Code,
    what: String,
    help: Vec<String>,
    exit: Exit,
}

impl Failure {
    /// A failure of this kind; `what` is one sentence without a full stop.
    pub(crate) fn new(code: Code, what: impl Into<String>) -> Self {
        Self {
            code,
            what: what.into(),
            help: Vec::new(),
            exit: code.exit(),
        }
    }

    /// Adds a line of help: best a command that can be pasted.
    #[must_use]
    pub(crate) fn help(mut self, line: impl Into<String>) -> Self {
        self.help.push(line.into());
        self
    }

    /// The same failure, ending the program with 255: the lease was found and no remote code is known.
    /// What the shell would have returned for a program that is not there stays.
    #[must_use]
    pub(crate) fn not_run(mut self) -> Self {
        if !matches!(self.exit, Exit::Remote(_)) {
            self.exit = Exit::NotRun;
        }
        self
    }

    /// The same failure, ending the program as a shell in the container would have.
    #[must_use]
    pub(crate) fn ending_as_in_a_shell(mut self, code: u8) -> Self {
        self.exit = Exit::Remote(code);
        self
    }

    /// Its code.
    pub(crate) const fn code(&self) -> Code {
        self.code
    }

    /// What is wrong.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// What to do about it, a line each.
    pub(crate) fn help_lines(&self) -> &[String] {
        &self.help
    }

    /// How the program ends with it.
    pub(crate) const fn exit(&self) -> Exit {
        self.exit
    }

    /// For people: code, what, help.
    pub(crate) fn for_people(&self) -> String {
        let mut text = format!("Error: {code} (feira help {code})\n", code = self.code);
        text.push_str(&format!("  × {}\n", abridged(&self.what)));
        for (index, line) in self.help.iter().enumerate() {
            let lead = if index == 0 { "help:" } else { "     " };
            text.push_str(&format!("  {lead} {line}\n"));
        }
        text
    }

    /// For programs: one problem object (RFC 9457) with the same code.
    pub(crate) fn for_programs(&self) -> serde_json::Value {
        serde_json::json!({
            "type": format!("urn:feira:error:{}", self.code),
            "title": self.code.summary(),
            "detail": abridged(&self.what),
            "code": self.code.to_string(),
            "exit": self.exit.code(),
            "help": self.help,
        })
    }
}

/// A file that could not be read or written.
pub(crate) fn file_failed(doing: &str, path: &std::path::Path, error: &io::Error) -> Failure {
    Failure::new(
        Code::FileFailed,
        format!("could not {doing} {}: {error}", path.display()),
    )
}

impl From<io::Error> for Failure {
    /// Of writing the answer: a reader that went away is no failure.
    fn from(error: io::Error) -> Self {
        let is_reader_gone = error.kind() == io::ErrorKind::BrokenPipe;
        let code = if is_reader_gone {
            Code::ReaderGone
        } else {
            Code::FileFailed
        };
        Self::new(code, format!("could not write the answer: {error}"))
    }
}

impl From<CodecError> for Failure {
    fn from(error: CodecError) -> Self {
        Self::new(Code::MessageTooBig, error.to_string())
    }
}

impl From<BoundError> for Failure {
    fn from(error: BoundError) -> Self {
        Self::new(Code::BadValue, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_the_code_the_reason_and_what_to_type() {
        let failure = Failure::new(Code::NothingMatches, "no offer at or under $0.38/h matches")
            .help("raise the ceiling: feira rent --max-price 0.41")
            .help("or look wider: feira search");
        let wanted = "Error: E0307 (feira help E0307)\n  \
                      × no offer at or under $0.38/h matches\n  \
                      help: raise the ceiling: feira rent --max-price 0.41\n        \
                      or look wider: feira search\n";
        assert_eq!(failure.for_people(), wanted);
    }

    #[test]
    fn programs_see_one_object_with_the_same_code() {
        let object = Failure::new(Code::NoSuchLease, "no lease named 'x'").for_programs();
        assert_eq!(object["code"], "E0301");
        assert_eq!(object["exit"], 3);
        assert_eq!(object["detail"], "no lease named 'x'");
    }

    #[test]
    fn a_reader_that_went_away_ends_with_success() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(failure.exit(), Exit::Done);
    }
}
