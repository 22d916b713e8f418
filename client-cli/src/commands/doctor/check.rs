//! One thing that was looked at, and how all of them are shown.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::{Column, Listing, Paint, Printer, Row, paint, plain};
use serde_json::json;

/// How it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    /// Right.
    Ok,
    /// Not what it should be, but one can work.
    Warn,
    /// Wrong.
    Fail,
}

impl Finding {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    const fn colour(self) -> Paint {
        match self {
            Self::Ok => Paint::Good,
            Self::Warn => Paint::Warning,
            Self::Fail => Paint::Bad,
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone)]
pub(super) struct Check {
    /// What.
    pub what: &'static str,
    /// How it was found.
    pub finding: Finding,
    found: String,
    fix: String,
}

impl Check {
    /// It is right.
    pub(super) fn ok(what: &'static str, found: String) -> Self {
        Self {
            what,
            finding: Finding::Ok,
            found,
            fix: String::new(),
        }
    }

    /// One can work, but it should be mended.
    pub(super) fn warn(what: &'static str, found: String, fix: &str) -> Self {
        Self {
            what,
            finding: Finding::Warn,
            found,
            fix: fix.to_owned(),
        }
    }

    /// It is wrong.
    pub(super) fn fail(what: &'static str, found: String, fix: &str) -> Self {
        Self {
            what,
            finding: Finding::Fail,
            found,
            fix: fix.to_owned(),
        }
    }
}

/// Shows all of them and the sum; fails when one is wrong.
pub(super) fn show(printer: &Printer, checks: &[Check]) -> Result<Exit, Failure> {
    let count = |finding| {
        checks
            .iter()
            .filter(|check| check.finding == finding)
            .count()
    };
    let failed = count(Finding::Fail);
    if printer.format().is_for_people() {
        for check in checks {
            let word = format!("{:<4}", check.finding.word());
            let word = paint(printer.answer_has_colour(), check.finding.colour(), &word);
            printer.line(&format!(
                "{word}  {:<8} {}",
                check.what,
                plain(&check.found)
            ))?;
            if !check.fix.is_empty() {
                printer.line(&format!("        fix: {}", plain(&check.fix)))?;
            }
        }
        let (ok, warned) = (count(Finding::Ok), count(Finding::Warn));
        printer.line(&format!("\n{ok} ok, {warned} warnings, {failed} failed"))?;
    } else {
        printer.list(&listing(checks))?;
    }
    Ok(if failed > 0 { Exit::Failed } else { Exit::Done })
}

fn listing(checks: &[Check]) -> Listing {
    let row = |check: &Check| Row {
        id: check.what.to_owned(),
        cells: vec![
            check.finding.word().into(),
            check.what.into(),
            check.found.clone(),
            check.fix.clone(),
        ],
        json: json!({
            "check": check.what,
            "finding": check.finding.word(),
            "found": check.found,
            "fix": if check.fix.is_empty() { None } else { Some(&check.fix) },
        }),
    };
    Listing {
        schema: "feira.checks/1",
        columns: ["FINDING", "CHECK", "FOUND", "FIX"]
            .map(Column::left)
            .to_vec(),
        rows: checks.iter().map(row).collect(),
        empty: String::new(),
        next: None,
    }
}
