//! What a broker wrote into its journal, to be written again by somebody who has nothing else to do.
//!
//! Must not change anything in a broker's own journal.

use std::path::Path;

use broker::store::JOURNAL_FILE;
use rusqlite::{Connection, OpenFlags, params};

use crate::Outcome;

/// One event and the money that it moved.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    at: i64,
    kind: String,
    body: Vec<u8>,
    chain: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    account: Vec<u8>,
    amount: i64,
    /// How many events before this one the link points.
    back: Option<i64>,
}

/// The number of the last event of the journal in `folder`.
pub(crate) fn last_event(folder: &Path) -> Outcome<i64> {
    let last = "SELECT coalesce(max(seq), 0) FROM events";
    Ok(open(folder)?.query_row(last, [], |row| row.get(0))?)
}

/// The events after `after`, spread over `jobs` jobs in order.
pub(crate) fn after(folder: &Path, after: i64, jobs: usize) -> Outcome<Vec<Vec<Recorded>>> {
    let connection = open(folder)?;
    let mut select =
        connection.prepare("SELECT seq, at, kind, body, chain FROM events WHERE seq > ?1")?;
    let mut entries = connection
        .prepare("SELECT account, amount, previous FROM entries WHERE event = ?1 ORDER BY n")?;
    let mut events = Vec::new();
    let mut rows = select.query([after])?;
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        let of_event = entries.query_map([seq], |entry| {
            Ok(Entry {
                account: entry.get(0)?,
                amount: entry.get(1)?,
                back: entry.get::<_, Option<i64>>(2)?.map(|it| seq - it),
            })
        })?;
        events.push(Recorded {
            at: row.get(1)?,
            kind: row.get(2)?,
            body: row.get(3)?,
            chain: row.get(4)?,
            entries: of_event.collect::<Result<_, _>>()?,
        });
    }
    let mut spread = vec![Vec::new(); jobs];
    let count = events.len();
    for (index, event) in events.into_iter().enumerate() {
        spread[index * jobs / count].push(event);
    }
    Ok(spread)
}

/// The mean size of the bodies of some events.
pub(crate) fn mean_bytes(jobs: &[Vec<Recorded>]) -> usize {
    let sizes = jobs.iter().flatten().map(|event| event.body.len());
    sizes.sum::<usize>() / jobs.iter().map(Vec::len).sum::<usize>().max(1)
}

/// Writes events after number `last`, with the statements of the journal; returns the last number.
pub(crate) fn write<'a>(
    connection: &Connection,
    mut last: i64,
    events: impl Iterator<Item = &'a Recorded> + Clone,
) -> rusqlite::Result<i64> {
    const EVENT: &str =
        "INSERT INTO events (seq, at, kind, body, chain) VALUES (?1, ?2, ?3, ?4, ?5)";
    const ENTRY: &str =
        "INSERT INTO entries (event, n, account, amount, previous) VALUES (?1, ?2, ?3, ?4, ?5)";
    let before = last;
    let mut insert = connection.prepare_cached(EVENT)?;
    for event in events.clone() {
        last += 1;
        let Recorded {
            at,
            kind,
            body,
            chain,
            ..
        } = event;
        insert.execute(params![last, at, kind, body, chain])?;
    }
    let mut insert = connection.prepare_cached(ENTRY)?;
    for (seq, event) in (before + 1..).zip(events) {
        for (n, entry) in (0_i64..).zip(&event.entries) {
            let previous = entry.back.map(|back| seq - back);
            insert.execute(params![seq, n, entry.account, entry.amount, previous])?;
        }
    }
    Ok(last)
}

fn open(folder: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let connection = Connection::open_with_flags(folder.join(JOURNAL_FILE), flags)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}
