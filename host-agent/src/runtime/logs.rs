//! What a container wrote, record by record, and the file that keeps it after the container is gone.
//!
//! The file has one line for each record: `2026-11-30T14:00:00.123456789Z o text`. The letter is `o` for
//! output and `e` for errors; a capital says that the written line goes on in the next record of that
//! stream. The text is as it was written and is a stranger's: nothing here interprets it.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::Path;
use std::pin::Pin;

use futures::{Stream, StreamExt};
use protocol::units::Timestamp;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, BufWriter};

use super::RuntimeError;

/// Most bytes of a saved file; the engine itself keeps at most three files of 10 MB.
pub const SAVED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Longest line of a saved file; the engine cuts what a program writes at 16 KiB.
const SAVED_LINE_BYTES_MAX: u64 = 64 * 1024;
/// Most last lines that a reader may ask for and that are held in memory for it.
pub const TAIL_LINES_MAX: u32 = 100_000;

/// Which records are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Go on with what is written from now on.
    pub follow: bool,
    /// Nothing written before this.
    pub since: Option<Timestamp>,
    /// Only so many last lines.
    pub tail: Option<u32>,
}

/// Which of a program's two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStream {
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
}

/// A piece that a program wrote at once: a line, or a part of a long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// When, as the engine writes it: RFC 3339 in UTC to the nanosecond.
    pub at: String,
    /// Where to.
    pub stream: LogStream,
    /// What; with the line feed if the line ends here.
    pub text: Vec<u8>,
}

impl LogRecord {
    /// When it was written, in milliseconds; nothing when the engine's time cannot be read.
    #[must_use]
    pub fn time(&self) -> Option<Timestamp> {
        read_time(&self.at)
    }

    /// Whether it was written at `since` or later.
    #[must_use]
    pub fn is_since(&self, since: Option<Timestamp>) -> bool {
        match (since, self.time()) {
            (Some(since), Some(time)) => time >= since,
            (Some(_) | None, _) => true,
        }
    }

    /// From a line of the engine with its time in front.
    #[must_use]
    pub fn of_engine(stream: LogStream, line: &[u8]) -> Self {
        let end = line.iter().position(|byte| *byte == b' ').unwrap_or(0);
        let at = String::from_utf8_lossy(&line[..end]).into_owned();
        Self {
            at,
            stream,
            text: line.get(end + 1..).unwrap_or_default().to_vec(),
        }
    }

    fn of_saved(line: &[u8]) -> Option<Self> {
        let end = line.iter().position(|byte| *byte == b' ')?;
        let (letter, text) = line.get(end + 1..)?.split_first()?;
        let stream = match letter.to_ascii_lowercase() {
            b'o' => LogStream::Output,
            b'e' => LogStream::Errors,
            _ => return None,
        };
        let mut text = text.strip_prefix(b" ")?.to_vec();
        if letter.is_ascii_lowercase() {
            text.push(b'\n');
        }
        Some(Self {
            at: String::from_utf8_lossy(&line[..end]).into_owned(),
            stream,
            text,
        })
    }

    fn saved(&self) -> Vec<u8> {
        let (text, whole) = match self.text.strip_suffix(b"\n") {
            Some(text) => (text, true),
            None => (self.text.as_slice(), false),
        };
        let letter = match (self.stream, whole) {
            (LogStream::Output, true) => 'o',
            (LogStream::Output, false) => 'O',
            (LogStream::Errors, true) => 'e',
            (LogStream::Errors, false) => 'E',
        };
        let mut line = format!("{} {letter} ", self.at).into_bytes();
        // A record is a line or a part of one; were it more, the file must stay readable.
        line.extend(
            text.iter()
                .map(|byte| if *byte == b'\n' { b' ' } else { *byte }),
        );
        line.push(b'\n');
        line
    }
}

/// The moment of an RFC 3339 text; nothing for the engine's "never" (year 1) and for no time at all.
pub(crate) fn read_time(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok().map(Timestamp)
}

/// Records as they come.
pub struct LogRecords(Pin<Box<dyn Stream<Item = Result<LogRecord, RuntimeError>> + Send>>);

impl LogRecords {
    /// Over `stream`.
    #[must_use]
    pub fn new(
        stream: impl Stream<Item = Result<LogRecord, RuntimeError>> + Send + 'static,
    ) -> Self {
        Self(Box::pin(stream))
    }

    /// The next record; nothing at the end. Cancel-safe.
    ///
    /// # Errors
    /// When the engine or the file fails.
    pub async fn next(&mut self) -> Result<Option<LogRecord>, RuntimeError> {
        self.0.next().await.transpose()
    }
}

impl fmt::Debug for LogRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogRecords")
    }
}

/// Writes all `records` to `path`, readable by this user alone; what was there is replaced at once or not
/// at all.
pub(crate) async fn save(mut records: LogRecords, path: &Path) -> Result<(), RuntimeError> {
    let failed = |error: io::Error| file_error(path, &error);
    let unfinished = path.with_extension("unfinished");
    let file = tokio::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)
        .await
        .map_err(failed)?;
    let mut file = BufWriter::new(file);
    let mut left = SAVED_BYTES_MAX;
    while let Some(record) = records.next().await? {
        let line = record.saved();
        left = left.saturating_sub(u64::try_from(line.len()).unwrap_or(u64::MAX));
        if left == 0 {
            break;
        }
        file.write_all(&line).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    tokio::fs::rename(&unfinished, path).await.map_err(failed)
}

/// The records of a file that [`super::Runtime::save_logs`] wrote. Lines that are none are left out.
///
/// # Errors
/// When the file cannot be opened; [`RuntimeError::File`].
pub async fn read_saved(path: &Path, query: LogQuery) -> Result<LogRecords, RuntimeError> {
    let file = tokio::fs::File::open(path)
        .await
        .map_err(|error| file_error(path, &error))?;
    let reader = SavedReader {
        file: BufReader::new(file),
        path: path.display().to_string(),
    };
    let since = query.since;
    let records = futures::stream::try_unfold(reader, move |mut reader| async move {
        Ok(reader.next().await?.map(|record| (record, reader)))
    })
    .filter(move |record: &Result<LogRecord, RuntimeError>| {
        let wanted = record
            .as_ref()
            .map_or(true, |record| record.is_since(since));
        std::future::ready(wanted)
    });
    let records = LogRecords::new(records);
    match query.tail {
        Some(lines) => last_lines(records, lines.min(TAIL_LINES_MAX)).await,
        None => Ok(records),
    }
}

/// Only the records of the last `lines` lines.
async fn last_lines(mut records: LogRecords, lines: u32) -> Result<LogRecords, RuntimeError> {
    let mut kept: VecDeque<LogRecord> = VecDeque::new();
    let mut whole = 0_u32;
    while let Some(record) = records.next().await? {
        let ended = record.text.ends_with(b"\n");
        whole += u32::from(ended);
        kept.push_back(record);
        // A line that has not ended yet is one as well.
        while whole + u32::from(!ended) > lines {
            let Some(gone) = kept.pop_front() else { break };
            whole -= u32::from(gone.text.ends_with(b"\n"));
        }
    }
    Ok(LogRecords::new(futures::stream::iter(
        kept.into_iter().map(Ok),
    )))
}

struct SavedReader {
    file: BufReader<tokio::fs::File>,
    path: String,
}

impl SavedReader {
    async fn next(&mut self) -> Result<Option<LogRecord>, RuntimeError> {
        loop {
            let mut line = Vec::new();
            let mut bounded = (&mut self.file).take(SAVED_LINE_BYTES_MAX);
            let read = bounded.read_until(b'\n', &mut line).await;
            match read {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error) => return Err(file_error(Path::new(&self.path), &error)),
            }
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            if let Some(record) = LogRecord::of_saved(line) {
                return Ok(Some(record));
            }
        }
    }
}

fn file_error(path: &Path, error: &io::Error) -> RuntimeError {
    RuntimeError::File {
        path: path.display().to_string(),
        detail: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at: &str, stream: LogStream, text: &[u8]) -> LogRecord {
        LogRecord {
            at: at.to_owned(),
            stream,
            text: text.to_vec(),
        }
    }

    fn written() -> Vec<LogRecord> {
        vec![
            record(
                "2026-11-30T14:00:00.000000001Z",
                LogStream::Output,
                b"one\n",
            ),
            record(
                "2026-11-30T14:00:01.5Z",
                LogStream::Errors,
                b"two \xff\x1b[2J\n",
            ),
            record("2026-11-30T14:00:02Z", LogStream::Output, b"half "),
            record("2026-11-30T14:00:02Z", LogStream::Output, b"line\n"),
            record("2026-11-30T14:00:03Z", LogStream::Errors, b"no end"),
        ]
    }

    async fn saved_and_read(query: LogQuery) -> Vec<LogRecord> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lease.log");
        let records = LogRecords::new(futures::stream::iter(written().into_iter().map(Ok)));
        save(records, &path).await.unwrap();
        let mut records = read_saved(&path, query).await.unwrap();
        let mut read = Vec::new();
        while let Some(record) = records.next().await.unwrap() {
            read.push(record);
        }
        read
    }

    #[tokio::test]
    async fn what_is_saved_is_read_back_byte_for_byte() {
        assert_eq!(saved_and_read(LogQuery::default()).await, written());
    }

    #[tokio::test]
    async fn since_is_a_moment_and_tail_counts_lines() {
        // 14:00:01.500 UTC on that day is 1 796 047 201 500 ms.
        let since = Some(Timestamp(1_796_047_201_500));
        assert_eq!(read_time("2026-11-30T14:00:01.5Z"), since);
        let late = saved_and_read(LogQuery {
            since,
            ..LogQuery::default()
        })
        .await;
        assert_eq!(late, written()[1..]);
        // The line without an end is a line; the two halves before it are one.
        for (lines, from) in [(0, 5), (1, 4), (2, 2), (3, 1), (9, 0)] {
            let tail = Some(lines);
            let query = LogQuery {
                tail,
                ..LogQuery::default()
            };
            let last = saved_and_read(query).await;
            assert_eq!(last, written()[from..], "{lines} lines");
        }
    }

    #[test]
    fn a_line_of_the_engine_is_time_and_text() {
        let line = b"2026-11-30T14:00:00.1Z a b\n";
        let expected = record("2026-11-30T14:00:00.1Z", LogStream::Output, b"a b\n");
        assert_eq!(LogRecord::of_engine(LogStream::Output, line), expected);
    }

    #[test]
    fn never_is_no_time() {
        assert_eq!(read_time("0001-01-01T00:00:00Z"), None);
    }
}
