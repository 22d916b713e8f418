//! The frame of `doctor`: what was looked at, how good it is, how to mend it. Must not look at anything itself.

use super::{Exit, Failure, Place, Printer, SettingsError, counted};
use crate::ids::PublicKey;
use crate::net::{Identity, IdentityError};
use serde::Serialize;
use std::fmt::Display;

/// How good something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// As it should be.
    Ok,
    /// Doubtful.
    Warn,
    /// Wrong.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What, in a word.
    pub name: &'static str,
    /// How good it is.
    pub grade: Grade,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub fix: Option<String>,
}

impl Check {
    /// It is as it should be.
    pub fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            grade: Grade::Ok,
            found: found.into(),
            fix: None,
        }
    }

    /// It is doubtful.
    pub fn warn(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name,
            grade: Grade::Warn,
            found: found.into(),
            fix: Some(fix.into()),
        }
    }

    /// It is wrong.
    pub fn fail(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name,
            grade: Grade::Fail,
            found: found.into(),
            fix: Some(fix.into()),
        }
    }

    /// A failed command as a failed check.
    #[must_use]
    pub fn failed(name: &'static str, failure: Failure) -> Self {
        Self {
            name,
            grade: Grade::Fail,
            found: failure.what,
            fix: failure.help,
        }
    }
}

/// Whether the settings can be used.
pub fn settings<T>(place: &Place, read: &Result<T, SettingsError>) -> Check {
    let file = place.folder.config();
    match read {
        Ok(_) => Check::ok("settings", format!("{}, no unknown fields", file.display())),
        Err(error) => Check::failed("settings", place.settings_failed(error)),
    }
}

/// Whether the key can be used; `shown` is the id that goes with it.
pub fn key<I: Display>(
    place: &Place,
    read: &Result<Identity, IdentityError>,
    shown: impl FnOnce(PublicKey) -> I,
) -> Check {
    match read {
        Ok(identity) => {
            let id = shown(identity.public());
            Check::ok("key", format!("{id}, closed to others"))
        }
        Err(error) => Check::failed("key", place.identity_failed(error)),
    }
}

/// Says all of them, and in the last line what they come to; `when_wrong` is added there when something is wrong.
/// How the command ends.
#[must_use]
pub fn report(printer: &Printer, checks: &[Check], when_wrong: &str) -> Exit {
    if printer.is_json() {
        printer.document(&serde_json::json!({ "schema": "feira.doctor/1", "checks": checks }));
    } else {
        for line in lines(checks, when_wrong) {
            printer.line(&line);
        }
    }
    let wrong = checks.iter().any(|check| check.grade == Grade::Fail);
    if wrong { Exit::Failed } else { Exit::Done }
}

fn lines(checks: &[Check], when_wrong: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for check in checks {
        let word = match check.grade {
            Grade::Ok => "ok",
            Grade::Warn => "warn",
            Grade::Fail => "fail",
        };
        lines.push(format!("{word:<6}{:<12}{}", check.name, check.found));
        if let Some(fix) = &check.fix {
            let fix = fix.replace('\n', "\n             ");
            lines.push(format!("        fix: {fix}"));
        }
    }
    let count = |grade| {
        let found = checks.iter().filter(|check| check.grade == grade).count();
        u64::try_from(found).unwrap_or(u64::MAX)
    };
    let (ok, warn, fail) = (count(Grade::Ok), count(Grade::Warn), count(Grade::Fail));
    let verdict = if fail > 0 { when_wrong } else { "" };
    let warnings = counted(warn, "warning");
    lines.push(format!("\n{ok} ok, {warnings}, {fail} failed{verdict}"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_is_a_line_and_the_last_line_counts_them() {
        let fine = Check::ok("key", "h-1, closed to others");
        let doubtful = Check::warn("listing", "not listed yet", "feira-host list");
        let wrong = Check::fail("engine", "not there", "start it\nor name another");
        assert_eq!(
            lines(&[fine.clone(), doubtful.clone(), wrong], ": not ready"),
            [
                "ok    key         h-1, closed to others",
                "warn  listing     not listed yet",
                "        fix: feira-host list",
                "fail  engine      not there",
                "        fix: start it\n             or name another",
                "\n1 ok, 1 warning, 1 failed: not ready",
            ]
        );
        assert_eq!(
            lines(&[fine, doubtful], ": not ready").last().unwrap(),
            "\n1 ok, 1 warning, 0 failed"
        );
    }
}
