//! The one way out: answers on stdout, talk on stderr, each with its own colour rule.
//!
//! Commands say what to show; this decides the form (`-o`), whether colours are used, and that nothing a
//! stranger wrote can steer the terminal. It knows no lease and no offer.

mod colour;
mod plain;
mod table;

pub(crate) use colour::{Paint, paint};
pub(crate) use plain::plain;
pub(crate) use table::Column;

use crate::failure::Failure;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The form of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people: a table with the columns that fit.
    #[default]
    #[value(alias = "auto")]
    Table,
    /// For people: all columns.
    Wide,
    /// One JSON document with a schema field.
    Json,
    /// One JSON object a line.
    Ndjson,
    /// Columns between tabs, without a header.
    Tsv,
    /// Full ids, one a line.
    Id,
}

impl Format {
    /// Whether a person reads it.
    pub(crate) const fn is_for_people(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }
}

/// One of the two streams.
pub(crate) struct Stream {
    writer: Mutex<Box<dyn Write + Send>>,
    /// Whether it takes colours.
    colour: bool,
    /// How wide it is; nothing when it is not a terminal.
    width: Option<usize>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("colour", &self.colour)
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

impl Stream {
    /// A stream over `writer`; `width` in characters when it is a terminal.
    pub(crate) fn new(writer: Box<dyn Write + Send>, colour: bool, width: Option<usize>) -> Self {
        Self {
            writer: Mutex::new(writer),
            colour,
            width,
        }
    }

    /// A writer that panicked half-way has still written what it wrote.
    fn lock(&self) -> MutexGuard<'_, Box<dyn Write + Send>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How much is said on stderr.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// `-q`: only ids, warnings and errors.
    Quiet,
    /// What was done and what to type next.
    #[default]
    Normal,
    /// `-v`: reasons as well.
    Verbose,
}

/// Many things in one answer.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    /// Name and version of the JSON form.
    pub schema: &'static str,
    /// The columns of the table.
    pub columns: Vec<Column>,
    /// One row for each thing.
    pub rows: Vec<Row>,
    /// What people are told when there is nothing.
    pub empty: String,
    /// Where to go on asking, if there is more.
    pub next: Option<String>,
}

/// One thing in a listing.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// Its full id.
    pub id: String,
    /// One cell for each column.
    pub cells: Vec<String>,
    /// All about it; an object.
    pub json: serde_json::Value,
}

/// One thing as an answer.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    /// Its full id.
    pub id: String,
    /// Label and value, for people. An empty label goes on with the line above.
    pub lines: Vec<(String, String)>,
    /// All about it, with its schema; an object.
    pub json: serde_json::Value,
}

/// Where all output goes.
#[derive(Debug)]
pub(crate) struct Printer {
    out: Stream,
    talk: Stream,
    format: Format,
    verbosity: Verbosity,
}

impl Printer {
    /// A printer over both streams.
    pub(crate) fn new(out: Stream, talk: Stream, format: Format, verbosity: Verbosity) -> Self {
        Self {
            out,
            talk,
            format,
            verbosity,
        }
    }

    /// The form of answers.
    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    /// Shows many things.
    pub(crate) fn list(&self, listing: &Listing) -> Result<(), Failure> {
        match self.format {
            Format::Table | Format::Wide => self.table(listing),
            Format::Json => self.json(&serde_json::json!({
                "schema": listing.schema,
                "items": listing.rows.iter().map(|row| &row.json).collect::<Vec<_>>(),
                "next": listing.next,
            })),
            Format::Ndjson => self.each(listing, |row| row.json.to_string()),
            Format::Tsv => self.each(listing, |row| {
                row.cells
                    .iter()
                    .map(|cell| plain(cell))
                    .collect::<Vec<_>>()
                    .join("\t")
            }),
            Format::Id => self.each(listing, |row| row.id.clone()),
        }
    }

    /// Shows one thing.
    pub(crate) fn object(&self, object: &Object) -> Result<(), Failure> {
        match self.format {
            Format::Table | Format::Wide => {
                let lines = labelled(&object.lines, self.out.colour);
                lines.iter().try_for_each(|line| self.line(line))
            }
            Format::Json => self.json(&object.json),
            Format::Ndjson => self.line(&object.json.to_string()),
            Format::Tsv => {
                let values: Vec<_> = object.lines.iter().map(|(_, value)| plain(value)).collect();
                self.line(&values.join("\t"))
            }
            Format::Id => self.line(&object.id),
        }
    }

    /// Shows people what they are about to agree to: lines of talk, in every format.
    pub(crate) fn preview(&self, object: &Object) {
        for line in labelled(&object.lines, self.talk.colour) {
            self.talk(&line);
        }
    }

    /// One line of the answer as it is.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        let mut out = self.out.lock();
        writeln!(out, "{line}")?;
        Ok(out.flush()?)
    }

    /// Bytes of the answer as they are: what a program in a container wrote.
    pub(crate) fn raw(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = self.out.lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// Bytes for stderr as they are: what a program in a container wrote there.
    pub(crate) fn raw_errors(&self, bytes: &[u8]) -> io::Result<()> {
        let mut talk = self.talk.lock();
        talk.write_all(bytes)?;
        talk.flush()
    }

    /// One line of talk; not with `-q`.
    pub(crate) fn say(&self, line: &str) {
        if self.verbosity != Verbosity::Quiet {
            self.talk(line);
        }
    }

    /// What was done: a line of talk behind a tick.
    pub(crate) fn done(&self, line: &str) {
        let tick = paint(self.talk.colour, Paint::Good, "✓");
        if self.verbosity != Verbosity::Quiet {
            self.talk(&format!("{tick} {}", plain(line)));
        }
    }

    /// What to type next: for people only.
    pub(crate) fn hint(&self, line: &str) {
        if self.format.is_for_people() {
            self.say(line);
        }
    }

    /// Something that went wrong without stopping the command.
    pub(crate) fn warn(&self, line: &str) {
        let word = paint(self.talk.colour, Paint::Warning, "warning:");
        self.talk(&format!("{word} {}", plain(line)));
    }

    /// A reason; only with `-v`.
    pub(crate) fn detail(&self, line: &str) {
        if self.verbosity == Verbosity::Verbose {
            self.talk(&paint(self.talk.colour, Paint::Dim, &plain(line)));
        }
    }

    /// A question: no line end behind it.
    pub(crate) fn ask(&self, question: &str) {
        let mut talk = self.talk.lock();
        // Nobody can be told that stderr is gone.
        let _ = write!(talk, "{} ", plain(question)).and_then(|()| talk.flush());
    }

    /// The failure that ended the command.
    pub(crate) fn failure(&self, failure: &Failure) {
        if self.format.is_for_people() || matches!(self.format, Format::Tsv | Format::Id) {
            let text = failure.for_people();
            let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
            let first = paint(self.talk.colour, Paint::Bad, first);
            let rest: Vec<_> = rest.lines().map(plain).collect();
            self.talk(&format!("{first}\n{}", rest.join("\n")));
        } else {
            self.talk(&failure.for_programs().to_string());
        }
    }

    /// Whether stdout takes colours.
    pub(crate) const fn answer_has_colour(&self) -> bool {
        self.out.colour
    }

    /// Whether stderr takes colours.
    pub(crate) const fn talk_has_colour(&self) -> bool {
        self.talk.colour
    }

    /// Whether stdout is a terminal.
    pub(crate) const fn answers_to_terminal(&self) -> bool {
        self.out.width.is_some()
    }

    /// Whether stderr is a terminal, and talk is wanted: then progress may move.
    pub(crate) fn can_animate(&self) -> bool {
        self.talk.width.is_some() && self.verbosity != Verbosity::Quiet
    }

    fn table(&self, listing: &Listing) -> Result<(), Failure> {
        if listing.rows.is_empty() {
            self.say(&plain(&listing.empty));
            return Ok(());
        }
        let width = if self.format == Format::Wide {
            None
        } else {
            self.out.width
        };
        let cells: Vec<_> = listing
            .rows
            .iter()
            .map(|row| row.cells.as_slice())
            .collect();
        let drawn = table::draw(&listing.columns, &cells, self.format == Format::Wide, width);
        let (header, body) = drawn.text.split_once('\n').unwrap_or((&drawn.text, ""));
        let header = paint(self.out.colour, Paint::Bold, header);
        self.line(&format!("{header}\n{}", body.trim_end_matches('\n')))?;
        if drawn.hidden > 0 {
            let plural = if drawn.hidden == 1 {
                "column"
            } else {
                "columns"
            };
            self.hint(&format!(
                "{} {plural} hidden: -o wide shows all",
                drawn.hidden
            ));
        }
        Ok(())
    }

    fn each(&self, listing: &Listing, form: impl Fn(&Row) -> String) -> Result<(), Failure> {
        let mut text = String::new();
        for row in &listing.rows {
            text.push_str(&form(row));
            text.push('\n');
        }
        let mut out = self.out.lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    fn json(&self, value: &serde_json::Value) -> Result<(), Failure> {
        // A terminal gets it indented; a program gets one line, which it can also keep in a file of lines.
        let text = if self.out.width.is_some() {
            format!("{value:#}")
        } else {
            value.to_string()
        };
        self.line(&text)
    }

    fn talk(&self, line: &str) {
        // Nobody can be told that stderr is gone.
        let _ = writeln!(self.talk.lock(), "{line}");
    }
}

/// Labels in a column of their own.
fn labelled(lines: &[(String, String)], colour: bool) -> Vec<String> {
    let width = lines
        .iter()
        .map(|(label, _)| label.len())
        .max()
        .unwrap_or(0);
    let line = |(label, value): &(String, String)| {
        let label = paint(colour, Paint::Dim, &format!("{label:<width$}"));
        format!("  {label}  {}", plain(value))
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests;
