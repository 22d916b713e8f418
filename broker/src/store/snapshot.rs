//! Snapshots: the state at one event, so that a start replays what came after it and no more.
//!
//! A snapshot is a short cut and never the truth: a bad one is left out, and the journal says the same.

use crate::core::market::Market;
use crate::store::journal::Journal;
use crate::store::{StoreError, doing, loaded, stored};
use protocol::ids::Digest;
use rusqlite::{Connection, TransactionBehavior, params};

/// A state that was read back.
pub(super) struct Snapshot {
    /// The last event in it.
    pub(super) seq: u64,
    /// That event's hash.
    pub(super) chain: Digest,
    /// The state.
    pub(super) market: Market,
}

/// Writes the state at the journal's end, and deletes all but this one and the one before.
pub(super) fn write(
    connection: &mut Connection,
    journal: &Journal,
    market: &Market,
) -> Result<(), StoreError> {
    let state = market.encode()?;
    let digest = Digest::of(&state);
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(doing("begin"))?;
    let insert = "INSERT OR REPLACE INTO snapshots (seq, digest, chain, state)
                  VALUES (?1, ?2, ?3, ?4)";
    let (seq, chain) = (stored(journal.last_event()), journal.chain());
    transaction
        .execute(
            insert,
            params![seq, digest.as_bytes(), chain.as_bytes(), state],
        )
        .map_err(doing("write a snapshot"))?;
    let delete = "DELETE FROM snapshots WHERE seq NOT IN
                  (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT 2)";
    transaction
        .execute(delete, [])
        .map_err(doing("delete an old snapshot"))?;
    transaction.commit().map_err(doing("commit a snapshot"))
}

/// The newest snapshot that is as it was written, and what was wrong with newer ones.
pub(super) fn newest(
    connection: &Connection,
) -> Result<(Option<Snapshot>, Vec<String>), StoreError> {
    let mut notes = Vec::new();
    let mut select = connection
        .prepare("SELECT seq FROM snapshots ORDER BY seq DESC")
        .map_err(doing("list its snapshots"))?;
    let numbers: Result<Vec<i64>, _> = select
        .query_map([], |row| row.get(0))
        .and_then(Iterator::collect);
    for seq in numbers.map_err(doing("list its snapshots"))? {
        match read(connection, seq).map_err(doing("read a snapshot"))? {
            Ok(snapshot) => return Ok((Some(snapshot), notes)),
            Err(problem) => notes.push(format!(
                "the snapshot at event {seq} is left out: {problem}"
            )),
        }
    }
    Ok((None, notes))
}

fn read(connection: &Connection, seq: i64) -> rusqlite::Result<Result<Snapshot, String>> {
    let select = "SELECT s.digest, s.chain, s.state, e.chain FROM snapshots s
                  JOIN events e ON e.seq = s.seq WHERE s.seq = ?1";
    let (digest, chain, state, event): ([u8; 32], [u8; 32], Vec<u8>, [u8; 32]) = connection
        .query_row(select, [seq], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?;
    if *Digest::of(&state).as_bytes() != digest {
        return Ok(Err("its digest is another".to_owned()));
    }
    if chain != event {
        return Ok(Err("it was made from other events".to_owned()));
    }
    let chain = Digest::from_bytes(chain);
    let market = Market::decode(&state).map_err(|error| error.to_string());
    Ok(market.map(|market| Snapshot {
        seq: loaded(seq),
        chain,
        market,
    }))
}
