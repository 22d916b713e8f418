//! Reading the journal back: the newest good snapshot, then every event after it, each checked.

use crate::core::event::Event;
use crate::core::ledger;
use crate::core::market::Market;
use crate::store::journal::{FIRST_CHAIN, Journal, chained};
use crate::store::snapshot::{self, Snapshot};
use crate::store::{StoreError, doing, loaded, stored};
use protocol::codec;
use protocol::ids::{BrokerId, Digest};
use rusqlite::Connection;

/// How a state was recovered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The last event of the snapshot that it began with.
    pub snapshot_at: Option<u64>,
    /// Events replayed after it.
    pub replayed: u64,
    /// The number of the last event.
    pub last_event: u64,
    /// What was not as it should be and could be done without.
    pub notes: Vec<String>,
}

pub(super) struct Recovered {
    pub(super) market: Market,
    pub(super) journal: Journal,
    pub(super) recovery: Recovery,
}

/// What the journal adds up to.
pub(super) fn recover(connection: &Connection, broker: BrokerId) -> Result<Recovered, StoreError> {
    let (snapshot, notes) = snapshot::newest(connection)?;
    let snapshot_at = snapshot.as_ref().map(|snapshot| snapshot.seq);
    let start = snapshot.unwrap_or_else(|| beginning(broker));
    let from = start.seq;
    let (market, journal) = replay(connection, start)?;
    let last_event = journal.last_event();
    let replayed = last_event.saturating_sub(from);
    let recovery = Recovery {
        snapshot_at,
        replayed,
        last_event,
        notes,
    };
    Ok(Recovered {
        market,
        journal,
        recovery,
    })
}

/// The state before the first event.
pub(super) fn beginning(broker: BrokerId) -> Snapshot {
    Snapshot {
        seq: 0,
        chain: FIRST_CHAIN,
        market: Market::new(broker),
    }
}

/// Applies every event after `start`, after checking that it is the one that was written.
pub(super) fn replay(
    connection: &Connection,
    start: Snapshot,
) -> Result<(Market, Journal), StoreError> {
    let Snapshot {
        seq: mut last,
        mut chain,
        mut market,
    } = start;
    let mut select = connection
        .prepare("SELECT seq, body, chain FROM events WHERE seq > ?1 ORDER BY seq")
        .map_err(doing("read its events"))?;
    let mut rows = select
        .query([stored(last)])
        .map_err(doing("read its events"))?;
    while let Some(row) = rows.next().map_err(doing("read an event"))? {
        let read = || Ok((loaded(row.get(0)?), row.get_ref(1)?.as_blob()?, row.get(2)?));
        let (seq, body, written): (u64, &[u8], [u8; 32]) =
            read().map_err(|error: rusqlite::Error| corrupt(last + 1, error.to_string()))?;
        if seq != last + 1 {
            return Err(corrupt(last + 1, "it is missing".to_owned()));
        }
        chain = chained(chain, body);
        if chain != Digest::from_bytes(written) {
            return Err(corrupt(seq, "its hash is another".to_owned()));
        }
        let event: Event = codec::decode(body).map_err(|error| corrupt(seq, error.to_string()))?;
        if ledger::sum(&event.entries) != 0 {
            return Err(corrupt(
                seq,
                "its entries do not add up to nothing".to_owned(),
            ));
        }
        market.apply(event);
        last = seq;
    }
    Ok((market, Journal::ending(last, chain)))
}

const fn corrupt(event: u64, problem: String) -> StoreError {
    StoreError::Corrupt { event, problem }
}
