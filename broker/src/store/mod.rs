//! The journal on disk: SQLite in one file, written by one thread, read back at the start.
//!
//! ```text
//! create, once for each broker: an empty journal
//! open ─▶ lock, schema, recover (snapshot + tail, chain, ledger) ─▶ Store and Market
//! append, append, … ─▶ commit ─▶ (only now is anything answered)
//!                  └▶ commit_behind ─▶ on another thread ─▶ committed, while more is appended
//! ```
//!
//! Must not take a decision about what is stored. A commit that fails is final: what was applied in memory
//! may not be on disk, so the process has to end, and a restart reads what is.

mod backup;
mod behind;
mod journal;
mod ledger;
mod lock;
mod recover;
mod restore;
mod schema;
mod snapshot;
mod statement;

pub use backup::backup;
pub use behind::{Behind, Committed};
pub use ledger::{LedgerReport, check, check_file};
pub use recover::Recovery;
pub use restore::{Restored, restore};
pub use schema::{SCHEMA_VERSION, configure};

use crate::core::event::Event;
use crate::core::market::Market;
use crate::core::state::StateError;
use journal::{Journal, Pending};
use lock::JournalLock;
use protocol::codec::CodecError;
use protocol::ids::{BrokerId, RenterId};
use protocol::units::{MicroUsd, Timestamp};
use protocol::usage::AccountStatement;
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// The journal's file in a broker's data folder.
pub const JOURNAL_FILE: &str = "journal.db";

/// Events after which a snapshot is worth its cost, whatever the size of the state.
const SNAPSHOT_EVENTS_MIN: u64 = 50_000;

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process writes it.
    #[error("another broker uses the journal in {folder}")]
    InUse {
        /// The data folder.
        folder: PathBuf,
    },
    /// It is not there, or nothing is in it.
    #[error("{path} is missing or empty, and with it everybody's money and leases")]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("could not {what} {path}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// SQLite failed: disk full, disk broken, file broken.
    #[error("the journal failed while it was asked to {what}")]
    Sqlite {
        /// What was tried.
        what: &'static str,
        /// Why not.
        #[source]
        source: rusqlite::Error,
    },
    /// The linked SQLite has a known way to lose data.
    #[error("SQLite {found} can corrupt a journal in WAL mode; 3.51.3 or newer is needed")]
    OldSqlite {
        /// Its version.
        found: &'static str,
    },
    /// A newer program wrote it.
    #[error(
        "the journal has schema {found} and this program knows {known}: run the version that wrote it, or a newer one"
    )]
    NewerSchema {
        /// Its schema.
        found: u32,
        /// The newest one known here.
        known: u32,
    },
    /// It belongs to another key.
    #[error("the journal is the one of broker {found}, and the key in this folder is {wanted}")]
    OtherBroker {
        /// Whose it is.
        found: String,
        /// Whose it should be.
        wanted: BrokerId,
    },
    /// SQLite found the file damaged.
    #[error("the journal's file is damaged: {0}; restore a backup")]
    Damaged(String),
    /// An event is not what was written.
    #[error("event {event} of the journal is damaged: {problem}; restore a backup")]
    Corrupt {
        /// Its number.
        event: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// Entries and balances disagree.
    #[error("the ledger does not add up: {0}; restore a backup")]
    Ledger(String),
    /// It was asked for something while a commit has its file, which is a mistake in the program.
    #[error("the journal was asked for more before its last commit came back")]
    Away,
    /// An event or statement cannot be encoded.
    #[error("the journal could not encode an event")]
    Encode(#[from] CodecError),
    /// The state cannot be encoded or decoded.
    #[error("the state could not be encoded")]
    State(#[from] StateError),
}

/// Names what was being done when SQLite failed.
fn doing(what: &'static str) -> impl FnOnce(rusqlite::Error) -> StoreError {
    move |source| StoreError::Sqlite { what, source }
}

/// Whether there is a journal in `folder` with anything in it.
#[must_use]
pub fn has_journal(folder: &Path) -> bool {
    std::fs::metadata(folder.join(JOURNAL_FILE)).is_ok_and(|found| found.len() > 0)
}

/// The journal of one broker, open for writing.
#[derive(Debug)]
pub struct Store {
    /// Nothing while a commit is made behind.
    connection: Option<Connection>,
    /// Room for what is appended meanwhile.
    spare: Pending,
    journal: Journal,
    recovery: Recovery,
    snapshot_at: u64,
    _lock: JournalLock,
}

impl Store {
    /// Opens the journal of `broker` in `folder` and recovers what it adds up to.
    ///
    /// # Errors
    /// When it is not there, another process has it, a newer program wrote it, it belongs to another key, or
    /// anything in it is not as it was written.
    pub fn open(folder: &Path, broker: BrokerId) -> Result<(Self, Market), StoreError> {
        let lock = JournalLock::take(folder)?;
        if !has_journal(folder) {
            // A broker that began an empty one by itself would forget whose money it has.
            return Err(StoreError::Missing {
                path: folder.join(JOURNAL_FILE),
            });
        }
        Self::locked(lock, folder, broker)
    }

    /// The same; where there is no journal it makes an empty one first.
    ///
    /// # Errors
    /// As [`Self::open`], and when it cannot be made.
    pub fn create(folder: &Path, broker: BrokerId) -> Result<(Self, Market), StoreError> {
        let lock = JournalLock::take(folder)?;
        lock::make_private(&folder.join(JOURNAL_FILE))?;
        Self::locked(lock, folder, broker)
    }

    fn locked(
        lock: JournalLock,
        folder: &Path,
        broker: BrokerId,
    ) -> Result<(Self, Market), StoreError> {
        schema::check_library()?;
        let path = folder.join(JOURNAL_FILE);
        let mut connection = schema::connect(&path)?;
        schema::check_file(&connection)?;
        schema::migrate(&mut connection)?;
        schema::claim(&connection, broker)?;
        let recover::Recovered {
            market,
            journal,
            recovery,
        } = recover::recover(&connection, broker)?;
        let (report, heads) = ledger::compare(&connection, &market)?;
        if let Some(problem) = report.problems.first() {
            return Err(StoreError::Ledger(problem.clone()));
        }
        let snapshot_at = recovery.snapshot_at.unwrap_or(0);
        Ok((
            Self {
                connection: Some(connection),
                spare: Pending::default(),
                journal: journal.with_heads(heads),
                recovery,
                snapshot_at,
                _lock: lock,
            },
            market,
        ))
    }

    /// How the state was recovered.
    #[must_use]
    pub const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The number of the last event.
    #[must_use]
    pub const fn last_event(&self) -> u64 {
        self.journal.last_event()
    }

    /// Writes an event; it is durable after the next commit.
    ///
    /// # Errors
    /// When it cannot be written; then nothing since the last commit is.
    pub fn append(&mut self, event: &Event) -> Result<(), StoreError> {
        self.journal.append(self.connection.as_ref(), event)
    }

    /// Makes all that was appended durable. Without anything appended, it does nothing.
    ///
    /// # Errors
    /// When it is not certain that all of it is on disk. Final: it is never tried again.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        let connection = self.connection.as_ref().ok_or(StoreError::Away)?;
        self.journal.commit(connection)
    }

    /// Whether anything was appended that no commit has taken.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        self.journal.is_pending()
    }

    /// Hands over what was appended, to be made durable on another thread. Until that is given back with
    /// [`Self::committed`], events can be appended and nothing else be asked.
    ///
    /// # Errors
    /// [`StoreError::Away`] when the commit before has not come back.
    pub fn commit_behind(&mut self) -> Result<Behind, StoreError> {
        let connection = self.connection.take().ok_or(StoreError::Away)?;
        let pending = self.journal.hand_over(std::mem::take(&mut self.spare));
        Ok(Behind::new(connection, pending))
    }

    /// Takes back what a commit had.
    ///
    /// # Errors
    /// Those of the commit, as [`Self::commit`] has them.
    pub fn committed(&mut self, committed: Committed) -> Result<(), StoreError> {
        let (connection, spare, result) = committed.into_parts();
        self.connection = Some(connection);
        self.spare = spare;
        result
    }

    /// Whether enough happened since the last snapshot that one is worth it: as many events as the state
    /// has records, so that its cost stays in proportion to the work done.
    #[must_use]
    pub fn wants_snapshot(&self, market: &Market) -> bool {
        let since = self.last_event().saturating_sub(self.snapshot_at);
        let size = u64::try_from(market.size()).unwrap_or(u64::MAX);
        since >= SNAPSHOT_EVENTS_MIN.max(size)
    }

    /// Writes the state, so that the next start begins there. Keeps the one before as well.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn snapshot(&mut self, market: &Market) -> Result<(), StoreError> {
        self.commit()?;
        if self.last_event() > self.snapshot_at {
            let connection = self.connection.as_mut().ok_or(StoreError::Away)?;
            snapshot::write(connection, &self.journal, market)?;
            self.snapshot_at = self.last_event();
        }
        Ok(())
    }

    /// Compares the balances in memory with the entries on disk, committed or not.
    ///
    /// # Errors
    /// When the journal cannot be read, or what was appended cannot be written.
    pub fn ledger(&mut self, market: &Market) -> Result<LedgerReport, StoreError> {
        let connection = self.connection.as_ref().ok_or(StoreError::Away)?;
        self.journal.flush(connection)?;
        ledger::compare(connection, market).map(|(report, _)| report)
    }

    /// A page of a renter's account: its movements after event `after`. `market` is what this journal adds
    /// up to.
    ///
    /// # Errors
    /// When the journal cannot be read, or what was appended cannot be written.
    pub fn statement(
        &mut self,
        market: &Market,
        renter: RenterId,
        after: u64,
    ) -> Result<AccountStatement, StoreError> {
        let connection = self.connection.as_ref().ok_or(StoreError::Away)?;
        self.journal.flush(connection)?;
        let last = self.journal.head(renter);
        statement::read(connection, market, (renter, last), after)
    }

    /// A disk that is full from here on.
    #[cfg(test)]
    pub(crate) fn fill_the_disk(&self) {
        let connection = self.connection.as_ref().unwrap();
        let pages: u32 = connection
            .query_row("PRAGMA page_count", [], |row| row.get(0))
            .unwrap();
        connection
            .pragma_update(None, "max_page_count", pages)
            .unwrap();
    }

    /// Ends: what was committed is on disk, the log is folded into the file.
    ///
    /// # Errors
    /// When SQLite cannot close the file.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.commit()?;
        let connection = self.connection.take().ok_or(StoreError::Away)?;
        connection
            .close()
            .map_err(|(_, source)| doing("close")(source))
    }
}

/// A time as SQLite stores it.
fn stored_time(time: Timestamp) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

/// A number as SQLite stores it.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that SQLite stored.
fn loaded(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// An amount that SQLite stored.
const fn loaded_amount(amount: i64) -> MicroUsd {
    MicroUsd(amount)
}

#[cfg(test)]
mod tests;
