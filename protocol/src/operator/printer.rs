//! Where a command's words go: data to stdout, talk and failures to stderr, as text or as JSON.
//!
//! Must not decide what is said. A reader that has gone away (a closed pipe) is not a failure; an answer
//! that cannot be written for another reason (a full disk) is one, and the command says so at its end.

use super::{Exit, Failure};
use crate::abridged::abridged;
use crate::units::{MicroUsd, Timestamp};
use serde::Serialize;
use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use unicode_width::UnicodeWidthStr;

/// Writes what a command has to say.
#[derive(Debug, Clone)]
pub struct Printer {
    json: bool,
    /// Why data was lost, once some was.
    lost: Rc<RefCell<Option<io::Error>>>,
}

/// Which side a column's text stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

impl Printer {
    /// For people, or for programs.
    #[must_use]
    pub fn new(json: bool) -> Self {
        Self {
            json,
            lost: Rc::default(),
        }
    }

    /// Whether JSON was asked for.
    #[must_use]
    pub const fn is_json(&self) -> bool {
        self.json
    }

    /// One line of data, for people.
    pub fn line(&self, text: &str) {
        let mut out = anstream::stdout();
        if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush())
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.lost.borrow_mut().get_or_insert(error);
        }
    }

    /// Whether every answer was written.
    ///
    /// # Errors
    /// The failure that the command ends with, when data was lost.
    pub fn finish(&self) -> Result<(), Failure> {
        self.lost.borrow_mut().take().map_or(Ok(()), |error| {
            let what = format!("the answer could not be written: {error}");
            Err(Failure::new(Exit::Failed, what)
                .help("what the command did is done; see where its output goes"))
        })
    }

    /// One JSON document of data.
    pub fn document<T: Serialize>(&self, value: &T) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.line(&text),
            Err(error) => self.note(&format!("the answer has no JSON form: {error}")),
        }
    }

    /// Something beside the data.
    pub fn note(&self, text: &str) {
        let _ = writeln!(anstream::stderr(), "{text}");
    }

    /// Rows under headings.
    pub fn table(&self, columns: &[(&str, Align)], rows: &[Vec<String>]) {
        for line in table(columns, rows) {
            self.line(&line);
        }
    }

    /// Why a command failed and what to do.
    pub fn failure(&self, failure: &Failure) {
        let what = abridged(&failure.what);
        if self.json {
            let object = serde_json::json!({
                "title": what,
                "help": failure.help,
                "exit_code": failure.exit.code(),
            });
            self.note(&object.to_string());
            return;
        }
        self.note(&format!("error: {what}"));
        if let Some(help) = &failure.help {
            self.note(&format!("  help: {}", help.replace('\n', "\n        ")));
        }
    }
}

/// `1 event`, `2 events`.
#[must_use]
pub fn counted(count: u64, one: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {one}s")
    }
}

/// A moment as RFC 3339 in UTC, to the millisecond.
#[must_use]
pub fn rfc3339(time: Timestamp) -> String {
    let milliseconds = i64::try_from(time.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(milliseconds)
        .unwrap_or(jiff::Timestamp::MAX)
        .to_string()
}

/// An amount as people read it, from the decimal that JSON carries.
#[must_use]
pub fn usd(decimal: &str) -> String {
    decimal
        .parse::<MicroUsd>()
        .map_or_else(|_| decimal.to_owned(), |amount| amount.to_string())
}

/// The lines of a table: one for the headings, one for each row, none folded.
fn table(columns: &[(&str, Align)], rows: &[Vec<String>]) -> Vec<String> {
    let cell =
        |row: &[String], column: usize| row.get(column).map_or("", String::as_str).to_owned();
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(column, (heading, _))| {
            let widest = rows
                .iter()
                .map(|row| cell(row, column).width())
                .max()
                .unwrap_or(0);
            widest.max(heading.width())
        })
        .collect();
    let headings: Vec<String> = columns
        .iter()
        .map(|(heading, _)| (*heading).to_owned())
        .collect();
    std::iter::once(&headings)
        .chain(rows)
        .map(|row| {
            let cells = columns.iter().zip(&widths).enumerate();
            let padded =
                cells.map(|(column, ((_, align), width))| pad(&cell(row, column), *width, *align));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        })
        .collect()
}

fn pad(text: &str, width: usize, align: Align) -> String {
    let space = " ".repeat(width.saturating_sub(text.width()));
    match align {
        Align::Left => format!("{text}{space}"),
        Align::Right => format!("{space}{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![
            vec!["r-abc".to_owned(), "$1.00".to_owned()],
            vec!["länge".to_owned(), "$10.25".to_owned()],
        ];
        let lines = table(&[("renter", Align::Left), ("free", Align::Right)], &rows);
        assert_eq!(
            lines,
            ["renter    free", "r-abc    $1.00", "länge   $10.25"]
        );
    }

    #[test]
    fn amounts_have_the_places_they_need() {
        assert_eq!(usd("0.350000"), "$0.35");
        assert_eq!(usd("0.000033"), "$0.000033");
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(
            rfc3339(Timestamp(1_000_000_000_000)),
            "2001-09-09T01:46:40Z"
        );
    }
}
