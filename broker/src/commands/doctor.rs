//! `feira-broker doctor`: what is right, what is doubtful, what is wrong, and how to mend it. Changes nothing.

mod checks;

use super::Place;
use crate::exit::{Exit, Failure};
use crate::printer::counted;
use serde::Serialize;

/// How good something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Grade {
    Ok,
    Warn,
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    grade: Grade,
    found: String,
    fix: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            grade: Grade::Ok,
            found: found.into(),
            fix: None,
        }
    }

    fn warn(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name,
            grade: Grade::Warn,
            found: found.into(),
            fix: Some(fix.into()),
        }
    }

    fn fail(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name,
            grade: Grade::Fail,
            found: found.into(),
            fix: Some(fix.into()),
        }
    }

    /// A failed command as a failed check.
    fn failed(name: &'static str, failure: Failure) -> Self {
        Self {
            name,
            grade: Grade::Fail,
            found: failure.what,
            fix: failure.help,
        }
    }
}

/// Looks at everything; fails when something is wrong.
pub(super) fn doctor(place: &Place) -> Result<Exit, Failure> {
    let checks = checks::all(place);
    if place.printer.is_json() {
        place
            .printer
            .document(&serde_json::json!({ "schema": "feira.doctor/1", "checks": checks }));
    } else {
        print(place, &checks);
    }
    let wrong = checks.iter().any(|check| check.grade == Grade::Fail);
    Ok(if wrong { Exit::Failed } else { Exit::Done })
}

fn print(place: &Place, checks: &[Check]) {
    for check in checks {
        let word = match check.grade {
            Grade::Ok => "ok",
            Grade::Warn => "warn",
            Grade::Fail => "fail",
        };
        place
            .printer
            .line(&format!("{word:<6}{:<12}{}", check.name, check.found));
        if let Some(fix) = &check.fix {
            place.printer.line(&format!(
                "        fix: {}",
                fix.replace('\n', "\n             ")
            ));
        }
    }
    let count = |grade| {
        let found = checks.iter().filter(|check| check.grade == grade).count();
        u64::try_from(found).unwrap_or(u64::MAX)
    };
    let (ok, warn, fail) = (count(Grade::Ok), count(Grade::Warn), count(Grade::Fail));
    place.printer.line(&format!(
        "\n{ok} ok, {}, {fail} failed",
        counted(warn, "warning")
    ));
}
