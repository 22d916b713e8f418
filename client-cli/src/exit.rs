//! How the program ends: one number for each kind of outcome, the same in every command.
//!
//! Nothing here decides which outcome it was, and nothing ends the process; `main` returns this.

use std::process::ExitCode;

/// Why the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or an honest empty list.
    Done,
    /// Failed for a reason of this command.
    Failed,
    /// Used wrongly: an unknown word, an ambiguous name, a question that nobody could answer.
    Usage,
    /// What was named does not exist.
    NotFound,
    /// No key, an unsafe key, or one that was refused.
    NotAuthorised,
    /// Nothing matches what was asked.
    NothingMatches,
    /// Balance, budget or limit would be exceeded.
    Money,
    /// Gone or changed meanwhile: try again with another offer.
    Gone,
    /// A broker, host or registry does not answer: try again later.
    Unreachable,
    /// The user answered no.
    Declined,
    /// A fault of this program.
    Bug,
    /// Ctrl-C.
    Interrupted,
    /// The code of a program that ran in a container.
    Remote(u8),
    /// No code of the remote program is known, because Feira failed: what `ssh` returns too.
    NotRun,
}

impl Exit {
    /// The number that the shell sees.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::NotAuthorised => 4,
            Self::NothingMatches => 5,
            Self::Money => 6,
            Self::Gone => 7,
            Self::Unreachable => 8,
            Self::Declined => 9,
            Self::Bug => 70,
            Self::Interrupted => 130,
            Self::Remote(code) => code,
            Self::NotRun => 255,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// What `feira help exit-codes` shows: the number, what it means, an example.
pub(crate) const EXIT_CODES: [(&str, &str, &str); 16] = [
    ("0", "done, or an honest empty list", "feira ls"),
    (
        "1",
        "failed for a reason of this command",
        "the image's command does not exist",
    ),
    (
        "2",
        "used wrongly, or a question that nobody could answer",
        "feira end x </dev/null",
    ),
    ("3", "not found", "feira show nosuch"),
    (
        "4",
        "not authorised: no key, an unsafe key, a refused one",
        "feira ls before feira init",
    ),
    (
        "5",
        "nothing matches (rent; a search that finds nothing is 0)",
        "the price ceiling is too low",
    ),
    (
        "6",
        "money: balance, budget or limit would be exceeded",
        "feira rent with an empty balance",
    ),
    (
        "7",
        "gone or changed meanwhile: take another offer",
        "someone else rented it",
    ),
    (
        "8",
        "broker, host or registry unreachable, or a timeout",
        "try again later",
    ),
    ("9", "you answered no", "Sign and rent? [y/N] n"),
    ("70", "a fault in feira", "please report it"),
    ("130", "interrupted", "Ctrl-C"),
    (
        "N",
        "exec and shell: the remote program's own code",
        "feira exec x -- false",
    ),
    (
        "126",
        "exec: the program is there but cannot be run",
        "feira exec x -- /etc/passwd",
    ),
    (
        "127",
        "exec: the container has no such program",
        "feira exec x -- nosuch",
    ),
    (
        "255",
        "exec and shell: the lease was found, but Feira failed",
        "the host does not answer",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_documented_ones() {
        let documented = [
            (Exit::Done, "0"),
            (Exit::Failed, "1"),
            (Exit::Usage, "2"),
            (Exit::NotFound, "3"),
            (Exit::NotAuthorised, "4"),
            (Exit::NothingMatches, "5"),
            (Exit::Money, "6"),
            (Exit::Gone, "7"),
            (Exit::Unreachable, "8"),
            (Exit::Declined, "9"),
            (Exit::Bug, "70"),
            (Exit::Interrupted, "130"),
            (Exit::NotRun, "255"),
        ];
        for (exit, number) in documented {
            assert_eq!(exit.code().to_string(), number);
            assert!(
                EXIT_CODES.iter().any(|(known, ..)| *known == number),
                "{number}"
            );
        }
        assert_eq!(Exit::Remote(7).code(), 7);
    }
}
