//! Writing events: one row each, chained by hash, with their entries, many to a transaction.

use crate::core::event::Event;
use crate::core::ledger::Entry;
use crate::store::{StoreError, doing, stored, stored_time};
use protocol::codec;
use protocol::ids::Digest;
use rusqlite::{Connection, params};

const INSERT_EVENT: &str =
    "INSERT INTO events (seq, at, kind, body, chain) VALUES (?1, ?2, ?3, ?4, ?5)";
const INSERT_ENTRY: &str =
    "INSERT INTO entries (event, n, account, amount) VALUES (?1, ?2, ?3, ?4)";
/// Most events move money between two accounts; one statement for both is one less.
const INSERT_TWO: &str = "INSERT INTO entries (event, n, account, amount)
    VALUES (?1, 0, ?2, ?3), (?1, 1, ?4, ?5)";

/// The end of the journal.
#[derive(Debug)]
pub(super) struct Journal {
    last: u64,
    chain: Digest,
    is_open: bool,
    scratch: Vec<u8>,
}

impl Journal {
    /// A journal that ends with event `last` and the hash `chain`.
    pub(super) const fn ending(last: u64, chain: Digest) -> Self {
        Self {
            last,
            chain,
            is_open: false,
            scratch: Vec::new(),
        }
    }

    pub(super) const fn last_event(&self) -> u64 {
        self.last
    }

    pub(super) const fn chain(&self) -> Digest {
        self.chain
    }

    pub(super) fn append(
        &mut self,
        connection: &Connection,
        event: &Event,
    ) -> Result<(), StoreError> {
        let body = codec::encode(event)?;
        self.begin(connection)?;
        let seq = self.last.saturating_add(1);
        let chain = self.next_chain(&body);
        self.insert(connection, seq, event, &body, chain)
            .map_err(doing("write an event"))?;
        self.last = seq;
        self.chain = chain;
        Ok(())
    }

    pub(super) fn commit(&mut self, connection: &Connection) -> Result<(), StoreError> {
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

    fn begin(&mut self, connection: &Connection) -> Result<(), StoreError> {
        if !self.is_open {
            connection
                .prepare_cached("BEGIN IMMEDIATE")
                .and_then(|mut begin| begin.execute([]))
                .map_err(doing("begin"))?;
            self.is_open = true;
        }
        Ok(())
    }

    fn insert(
        &self,
        connection: &Connection,
        seq: u64,
        event: &Event,
        body: &[u8],
        chain: Digest,
    ) -> rusqlite::Result<()> {
        let seq = stored(seq);
        connection.prepare_cached(INSERT_EVENT)?.execute(params![
            seq,
            stored_time(event.at),
            event.kind(),
            body,
            chain.as_bytes(),
        ])?;
        if let [
            Entry {
                account: a,
                amount: x,
            },
            Entry {
                account: b,
                amount: y,
            },
        ] = event.entries.as_slice()
        {
            let mut insert = connection.prepare_cached(INSERT_TWO)?;
            insert.execute(params![seq, a.key(), x, b.key(), y])?;
            return Ok(());
        }
        for (n, entry) in (0_i64..).zip(&event.entries) {
            let mut insert = connection.prepare_cached(INSERT_ENTRY)?;
            insert.execute(params![seq, n, entry.account.key(), entry.amount])?;
        }
        Ok(())
    }

    fn next_chain(&mut self, body: &[u8]) -> Digest {
        self.scratch.clear();
        self.scratch.extend_from_slice(self.chain.as_bytes());
        self.scratch.extend_from_slice(body);
        Digest::of(&self.scratch)
    }
}

/// The hash that an event with `body` has after one with `chain`.
pub(super) fn chained(chain: Digest, body: &[u8]) -> Digest {
    Journal::ending(0, chain).next_chain(body)
}

/// The hash before the first event.
pub(super) const FIRST_CHAIN: Digest = Digest::from_bytes([0; 32]);
