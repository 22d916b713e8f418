//! Writing events: one row each, chained by hash, with their entries, many to a transaction.
//!
//! What is appended waits in memory, and goes to the file in one go: before anything is read there, and in any
//! case with the commit.

use crate::core::event::Event;
use crate::core::ledger::Account;
use crate::store::{StoreError, doing, stored, stored_time};
use protocol::codec;
use protocol::ids::{Digest, RenterId};
use protocol::units::Timestamp;
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use std::ops::Range;

/// Events that wait in memory; more than a batch of commands makes, unless a tick has many to do.
const WAITING_MAX: usize = 4096;

const INSERT_EVENT: &str =
    "INSERT INTO events (seq, at, kind, body, chain) VALUES (?1, ?2, ?3, ?4, ?5)";
/// One row a statement: SQLite copies every page that a statement of several changes, to undo it alone.
const INSERT_ENTRY: &str =
    "INSERT INTO entries (event, n, account, amount, previous) VALUES (?1, ?2, ?3, ?4, ?5)";

/// The last event that moved each renter's available money.
pub(super) type Heads = BTreeMap<RenterId, u64>;

/// The end of the journal.
#[derive(Debug)]
pub(super) struct Journal {
    last: u64,
    chain: Digest,
    heads: Heads,
    pending: Pending,
    scratch: Vec<u8>,
}

/// What was appended and is not committed.
#[derive(Debug, Default)]
pub(super) struct Pending {
    events: Vec<EventRow>,
    entries: Vec<EntryRow>,
    /// The bodies of the events, one behind the other.
    bodies: Vec<u8>,
    /// Whether rows before these are written, in the transaction that the next commit ends.
    is_open: bool,
}

#[derive(Debug)]
struct EventRow {
    seq: u64,
    at: Timestamp,
    kind: &'static str,
    body: Range<usize>,
    chain: Digest,
}

#[derive(Debug)]
struct EntryRow {
    event: u64,
    n: i64,
    account: Account,
    amount: i64,
    previous: Option<u64>,
}

impl Journal {
    /// A journal that ends with event `last` and the hash `chain`.
    pub(super) fn ending(last: u64, chain: Digest) -> Self {
        Self {
            last,
            chain,
            heads: Heads::new(),
            pending: Pending::default(),
            scratch: Vec::new(),
        }
    }

    /// The same, with the last event of each renter's money.
    pub(super) fn with_heads(self, heads: Heads) -> Self {
        Self { heads, ..self }
    }

    pub(super) const fn last_event(&self) -> u64 {
        self.last
    }

    pub(super) const fn chain(&self) -> Digest {
        self.chain
    }

    /// The last event that moved a renter's available money.
    pub(super) fn head(&self, renter: RenterId) -> Option<u64> {
        self.heads.get(&renter).copied()
    }

    /// Whether anything waits for a commit.
    pub(super) const fn is_pending(&self) -> bool {
        self.pending.is_open || !self.pending.events.is_empty()
    }

    /// Hands over what waits for a commit; what is appended from now on goes into `spare`.
    pub(super) const fn hand_over(&mut self, spare: Pending) -> Pending {
        std::mem::replace(&mut self.pending, spare)
    }

    /// Keeps an event and its entries. Without a connection, all of them stay in memory until the commit.
    pub(super) fn append(
        &mut self,
        connection: Option<&Connection>,
        event: &Event,
    ) -> Result<(), StoreError> {
        let pending = &mut self.pending;
        let begin = pending.bodies.len();
        codec::encode_onto(event, &mut pending.bodies)?;
        let body = begin..pending.bodies.len();
        let written = pending.bodies.get(body.clone()).unwrap_or_default();
        self.chain = next_chain(self.chain, written, &mut self.scratch);
        self.last = self.last.saturating_add(1);
        pending.events.push(EventRow {
            seq: self.last,
            at: event.at,
            kind: event.kind(),
            body,
            chain: self.chain,
        });
        for (n, entry) in (0_i64..).zip(&event.entries) {
            let previous = if let Account::RenterAvailable(renter) = entry.account {
                self.heads.insert(renter, self.last)
            } else {
                None
            };
            pending.entries.push(EntryRow {
                event: self.last,
                n,
                account: entry.account,
                amount: entry.amount,
                previous,
            });
        }
        match connection {
            Some(connection) if pending.events.len() >= WAITING_MAX => pending.flush(connection),
            Some(_) | None => Ok(()),
        }
    }

    /// Writes what waits, in the transaction that the next commit ends.
    pub(super) fn flush(&mut self, connection: &Connection) -> Result<(), StoreError> {
        self.pending.flush(connection)
    }

    pub(super) fn commit(&mut self, connection: &Connection) -> Result<(), StoreError> {
        self.pending.commit(connection)
    }
}

impl Pending {
    fn flush(&mut self, connection: &Connection) -> Result<(), StoreError> {
        if self.events.is_empty() {
            return Ok(());
        }
        if !self.is_open {
            connection
                .prepare_cached("BEGIN IMMEDIATE")
                .and_then(|mut begin| begin.execute([]))
                .map_err(doing("begin"))?;
            self.is_open = true;
        }
        self.write(connection).map_err(doing("write events"))?;
        self.events.clear();
        self.entries.clear();
        self.bodies.clear();
        Ok(())
    }

    /// Writes what waits and ends the transaction.
    pub(super) fn commit(&mut self, connection: &Connection) -> Result<(), StoreError> {
        self.flush(connection)?;
        if self.is_open {
            // Whatever comes of it, this transaction is not asked for twice.
            self.is_open = false;
            connection
                .prepare_cached("COMMIT")
                .and_then(|mut commit| commit.execute([]))
                .map_err(doing("commit"))?;
        }
        Ok(())
    }

    fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut insert = connection.prepare_cached(INSERT_EVENT)?;
        for event in &self.events {
            insert.execute(params![
                stored(event.seq),
                stored_time(event.at),
                event.kind,
                self.bodies.get(event.body.clone()).unwrap_or_default(),
                event.chain.as_bytes(),
            ])?;
        }
        let mut insert = connection.prepare_cached(INSERT_ENTRY)?;
        for entry in &self.entries {
            insert.execute(params![
                stored(entry.event),
                entry.n,
                entry.account.key(),
                entry.amount,
                entry.previous.map(stored),
            ])?;
        }
        Ok(())
    }
}

fn next_chain(chain: Digest, body: &[u8], scratch: &mut Vec<u8>) -> Digest {
    scratch.clear();
    scratch.extend_from_slice(chain.as_bytes());
    scratch.extend_from_slice(body);
    Digest::of(scratch)
}

/// The hash that an event with `body` has after one with `chain`.
pub(super) fn chained(chain: Digest, body: &[u8]) -> Digest {
    next_chain(chain, body, &mut Vec::new())
}

/// The hash before the first event.
pub(super) const FIRST_CHAIN: Digest = Digest::from_bytes([0; 32]);
