//! Puts lines together from pieces of two streams, takes the times off that were only asked for to go on
//! from, and leaves out what was shown before a connection was lost.
//!
//! Pure. Each line begins with its time (RFC 3339, nanoseconds, UTC) and a space; such times order as texts.

use protocol::units::Timestamp;
use serde_json::json;

/// A longer line is shown in pieces, so that one without an end does not fill the memory.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Which stream a line is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
}

/// A stream's unfinished line.
#[derive(Debug, Default)]
struct Piece(Vec<u8>);

/// The lines of both streams.
#[derive(Debug)]
pub(super) struct Lines {
    with_times: bool,
    as_objects: bool,
    output: Piece,
    errors: Piece,
    /// Time of the last line shown.
    last: Option<String>,
    /// How many lines of exactly that time were shown, and how many of them are still to be left out.
    same: u64,
    skip: u64,
    /// Lines up to this time were shown before the connection was lost.
    before: Option<String>,
    seen: u64,
}

impl Lines {
    /// Lines with or without their times, or as objects.
    pub(super) const fn new(with_times: bool, as_objects: bool) -> Self {
        Self {
            with_times,
            as_objects,
            output: Piece(Vec::new()),
            errors: Piece(Vec::new()),
            last: None,
            same: 0,
            skip: 0,
            before: None,
            seen: 0,
        }
    }

    /// How many lines were shown.
    pub(super) const fn seen(&self) -> u64 {
        self.seen
    }

    /// The beginning of the second of the last line shown.
    pub(super) fn last_second(&self) -> Option<Timestamp> {
        let last: jiff::Timestamp = self.last.as_ref()?.parse().ok()?;
        let seconds = u64::try_from(last.as_second()).ok()?;
        Some(Timestamp(seconds.saturating_mul(1000)))
    }

    /// The connection was lost: unfinished lines will come again, and lines that were shown too.
    pub(super) fn begin_again(&mut self) {
        self.output.0.clear();
        self.errors.0.clear();
        self.before.clone_from(&self.last);
        self.skip = self.same;
    }

    /// The finished lines, with their ends, that these bytes bring.
    pub(super) fn take(&mut self, source: Source, bytes: &[u8]) -> Vec<(Source, Vec<u8>)> {
        let mut finished = Vec::new();
        let piece = match source {
            Source::Output => &mut self.output,
            Source::Errors => &mut self.errors,
        };
        piece.0.extend_from_slice(bytes);
        let end = piece.0.iter().rposition(|byte| *byte == b'\n');
        let Some(end) = end.or_else(|| (piece.0.len() > LINE_BYTES_MAX).then(|| piece.0.len() - 1))
        else {
            return finished;
        };
        let rest = piece.0.split_off(end + 1);
        let whole = std::mem::replace(&mut piece.0, rest);
        for line in whole.split_inclusive(|byte| *byte == b'\n') {
            finished.extend(self.shown(source, line).map(|line| (source, line)));
        }
        finished
    }

    /// The unfinished lines, at the end of everything.
    pub(super) fn rest(&mut self) -> Vec<(Source, Vec<u8>)> {
        let output = std::mem::take(&mut self.output.0);
        let errors = std::mem::take(&mut self.errors.0);
        let pieces = [(Source::Output, output), (Source::Errors, errors)];
        let unfinished = pieces.into_iter().filter(|(_, piece)| !piece.is_empty());
        unfinished
            .filter_map(|(source, piece)| Some((source, self.shown(source, &piece)?)))
            .collect()
    }

    /// The line as it is to be shown; nothing when it was shown before.
    fn shown(&mut self, source: Source, line: &[u8]) -> Option<Vec<u8>> {
        let Some((time, text)) = split_time(line) else {
            self.seen += 1;
            return Some(line.to_vec());
        };
        if self.was_shown(time) {
            return None;
        }
        self.seen += 1;
        if self.last.as_deref() == Some(time) {
            self.same += 1;
        } else {
            self.last = Some(time.to_owned());
            self.same = 1;
        }
        Some(match (self.as_objects, self.with_times) {
            (true, _) => object(source, time, text),
            (false, true) => line.to_vec(),
            (false, false) => text.to_vec(),
        })
    }

    fn was_shown(&mut self, time: &str) -> bool {
        let Some(before) = &self.before else {
            return false;
        };
        match time.cmp(before.as_str()) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal if self.skip > 0 => {
                self.skip -= 1;
                true
            }
            std::cmp::Ordering::Equal | std::cmp::Ordering::Greater => false,
        }
    }
}

/// The time a line begins with, and the rest.
fn split_time(line: &[u8]) -> Option<(&str, &[u8])> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    let time = std::str::from_utf8(line.get(..space)?).ok()?;
    time.parse::<jiff::Timestamp>().ok()?;
    Some((time, line.get(space + 1..)?))
}

fn object(source: Source, time: &str, text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let stream = match source {
        Source::Output => "stdout",
        Source::Errors => "stderr",
    };
    let object = json!({"ts": time, "stream": stream, "line": text.trim_end_matches(['\n', '\r'])});
    format!("{object}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: Vec<(Source, Vec<u8>)>) -> Vec<String> {
        lines
            .into_iter()
            .map(|(_, line)| String::from_utf8(line).unwrap())
            .collect()
    }

    const ONE: &[u8] = b"2026-11-30T14:02:11.000000001Z one\n";
    const TWO: &[u8] = b"2026-11-30T14:02:11.000000002Z two\n";
    const TWO_AGAIN: &[u8] = b"2026-11-30T14:02:11.000000002Z two, too\n";
    const THREE: &[u8] = b"2026-11-30T14:02:12.5Z three\n";

    #[test]
    fn lines_are_put_together_and_lose_their_times() {
        let mut lines = Lines::new(false, false);
        assert!(lines.take(Source::Output, &ONE[..20]).is_empty());
        let rest = [&ONE[20..], TWO, b"2026-11-30T14:02:12Z unfin"].concat();
        assert_eq!(texts(lines.take(Source::Output, &rest)), ["one\n", "two\n"]);
        assert_eq!(texts(lines.rest()), ["unfin"]);
        assert_eq!(lines.last_second(), Some(Timestamp(1_796_047_332_000)));
    }

    #[test]
    fn the_two_streams_are_not_mixed_within_a_line() {
        let mut lines = Lines::new(false, false);
        assert!(lines.take(Source::Output, &ONE[..33]).is_empty());
        assert_eq!(texts(lines.take(Source::Errors, TWO)), ["two\n"]);
        assert_eq!(texts(lines.take(Source::Output, &ONE[33..])), ["one\n"]);
    }

    #[test]
    fn nothing_is_repeated_and_nothing_lost_after_a_lost_connection() {
        let mut lines = Lines::new(false, false);
        lines.take(Source::Output, &[ONE, TWO].concat());
        lines.begin_again();
        // The second begins again: two lines of one time, of which one was shown, and a new one.
        let again = [ONE, TWO, TWO_AGAIN, THREE].concat();
        assert_eq!(
            texts(lines.take(Source::Output, &again)),
            ["two, too\n", "three\n"]
        );
        lines.begin_again();
        assert!(lines.take(Source::Output, THREE).is_empty());
        assert_eq!(lines.seen(), 4);
    }

    #[test]
    fn times_stay_when_they_were_asked_for() {
        let mut lines = Lines::new(true, false);
        assert_eq!(
            texts(lines.take(Source::Output, ONE)),
            [std::str::from_utf8(ONE).unwrap()]
        );
    }

    #[test]
    fn programs_get_an_object_a_line() {
        let mut lines = Lines::new(false, true);
        let wanted =
            "{\"line\":\"three\",\"stream\":\"stderr\",\"ts\":\"2026-11-30T14:02:12.5Z\"}\n";
        assert_eq!(texts(lines.take(Source::Errors, THREE)), [wanted]);
    }

    #[test]
    fn a_line_without_a_time_is_shown_as_it_is() {
        let mut lines = Lines::new(false, false);
        assert_eq!(
            texts(lines.take(Source::Output, b"no time here\n")),
            ["no time here\n"]
        );
    }
}
