//! What the agent must not forget: epochs, lease records, the listing, the slices that it made. One SQLite file, one writer, and
//! one agent on a folder. It decides nothing; [`crate::core`] says what is written.

pub mod lock;
pub mod writer;

mod commit;
mod health;
mod schema;
mod slices;

use crate::core::lease::LeaseRecord;
use crate::core::leases::Change;
use crate::core::offer::Listing;
use crate::core::slices::known::Known;
use gpu_health::unit::Kept;
use lock::{FolderLock, LockError};
use protocol::bounded::BoundError;
use protocol::codec::{self, CodecError};
use protocol::offer::ResourceName;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Name of the journal in the data folder.
pub const FILE_NAME: &str = "journal.db";

/// Why the journal cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another agent has the folder, or the folder cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// SQLite refused.
    #[error("the journal {path} failed while it was to {doing}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What was done.
        doing: &'static str,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// A newer program wrote it.
    #[error(
        "the journal {path} has version {found}; this program reads up to {known}: install a newer one"
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// Its content is not what this program wrote.
    #[error("the journal {path} is damaged: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The writer ended; the agent is stopping.
    #[error("the journal is closed")]
    Closed,
}

/// What a journal held when it was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The last epoch of each resource.
    pub epochs: Vec<(ResourceName, u64)>,
    /// Every lease record.
    pub records: Vec<LeaseRecord>,
    /// The listing, if the machine is listed.
    pub listing: Option<Listing>,
    /// The slices that this host made.
    pub slices: Known,
    /// What is kept of its GPUs' health.
    pub health: Kept,
}

/// An open journal; no other agent has its folder while this is there.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    connection: Connection,
    _lock: FolderLock,
}

impl Journal {
    /// Opens or makes the journal in `folder`, brings its schema up to date and reads what it holds.
    ///
    /// # Errors
    /// When another agent has the folder, or the file is damaged, too new or unreadable.
    pub fn open(folder: &Path) -> Result<(Self, Recovered), JournalError> {
        let lock = FolderLock::take(folder)?;
        let path = folder.join(FILE_NAME);
        close_to_others(&path)?;
        let connection = connect(&path)?;
        let mut journal = Self {
            path,
            connection,
            _lock: lock,
        };
        journal.check_integrity()?;
        schema::migrate(&mut journal.connection, &journal.path)?;
        let recovered = read(&journal.connection, &journal.path)?;
        Ok((journal, recovered))
    }

    /// Makes all of `changes` durable, or none. A resource that one lease takes and another still holds is
    /// refused by the schema, whatever was decided.
    ///
    /// # Errors
    /// When SQLite fails: what is in memory must then not be acted on.
    pub fn commit(&mut self, changes: &[Change]) -> Result<(), JournalError> {
        let path = self.path.clone();
        let failed = |source| failed(&path, "write", source);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        commit::put_all(&transaction, changes, &path)?;
        transaction.commit().map_err(failed)
    }

    /// Lists the machine, or takes it off.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn set_listing(&mut self, listing: Option<&Listing>) -> Result<(), JournalError> {
        let failed = |source| failed(&self.path, "write the listing", source);
        match listing {
            Some(listing) => {
                let bytes = encoded(listing, &self.path)?;
                self.connection
                    .execute(
                        "INSERT OR REPLACE INTO listing (id, record) VALUES (1, ?1)",
                        [bytes],
                    )
                    .map_err(failed)?;
            }
            None => {
                self.connection
                    .execute("DELETE FROM listing", [])
                    .map_err(failed)?;
            }
        }
        Ok(())
    }

    fn check_integrity(&self) -> Result<(), JournalError> {
        let verdict: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|source| failed(&self.path, "check it", source))?;
        if verdict == "ok" {
            Ok(())
        } else {
            Err(damaged(&self.path, verdict))
        }
    }
}

/// What the journal of `folder` holds, read beside an agent that has it. Nothing when there is none.
///
/// # Errors
/// When it is damaged or unreadable.
pub fn peek(folder: &Path) -> Result<Option<Recovered>, JournalError> {
    let path = folder.join(FILE_NAME);
    if !path.exists() {
        return Ok(None);
    }
    let connection = connect(&path)?;
    connection
        .pragma_update(None, "query_only", true)
        .map_err(|source| failed(&path, "open it for reading", source))?;
    // What an older program wrote is for this one's agent to bring up to date.
    if schema::is_older(&connection, &path)? {
        return Ok(None);
    }
    read(&connection, &path).map(Some)
}

/// Makes the file for its owner alone; what SQLite puts beside it gets the same mode. Files of an earlier version
/// are closed too.
fn close_to_others(path: &Path) -> Result<(), JournalError> {
    let failed = |source| {
        JournalError::Lock(LockError::Io {
            path: path.to_owned(),
            source,
        })
    };
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    for ending in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        match fs::set_permissions(&name, Permissions::from_mode(0o600)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

fn connect(path: &Path) -> Result<Connection, JournalError> {
    let failed = |source| failed(path, "open it", source);
    let connection = Connection::open(path).map_err(failed)?;
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .map_err(failed)?;
    // A grant is signed after its commit: it must survive a power cut, not only a crash.
    connection
        .pragma_update(None, "synchronous", "FULL")
        .map_err(failed)?;
    connection
        .pragma_update(None, "foreign_keys", true)
        .map_err(failed)?;
    connection
        .busy_timeout(std::time::Duration::from_secs(5))
        .map_err(failed)?;
    Ok(connection)
}

fn read(connection: &Connection, path: &Path) -> Result<Recovered, JournalError> {
    let rows = read_rows(connection).map_err(|source| failed(path, "read it", source))?;
    let epochs = rows.epochs.into_iter().map(|(resource, epoch)| {
        let resource = ResourceName::new(resource).map_err(|error: BoundError| {
            damaged(path, format!("the name of a resource: {error}"))
        })?;
        Ok((resource, epoch.cast_unsigned()))
    });
    let decoded = |error: CodecError| damaged(path, error.to_string());
    let records = rows
        .records
        .iter()
        .map(|bytes| codec::decode(bytes).map_err(decoded));
    let listing = rows
        .listing
        .map(|bytes| codec::decode(&bytes).map_err(decoded))
        .transpose()?;
    Ok(Recovered {
        epochs: epochs.collect::<Result<_, JournalError>>()?,
        records: records.collect::<Result<_, _>>()?,
        listing,
        slices: slices::read(connection, path)?,
        health: health::read(connection, path)?,
    })
}

struct Rows {
    epochs: Vec<(String, i64)>,
    records: Vec<Vec<u8>>,
    listing: Option<Vec<u8>>,
}

fn read_rows(connection: &Connection) -> rusqlite::Result<Rows> {
    let epochs = connection
        .prepare("SELECT resource, epoch FROM epoch ORDER BY resource")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let records = connection
        .prepare("SELECT record FROM lease ORDER BY lease")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let listing = connection
        .query_row("SELECT record FROM listing WHERE id = 1", [], |row| {
            row.get(0)
        })
        .optional()?;
    Ok(Rows {
        epochs,
        records,
        listing,
    })
}

fn encoded<T: serde::Serialize>(value: &T, path: &Path) -> Result<Vec<u8>, JournalError> {
    codec::encode(value).map_err(|error| damaged(path, error.to_string()))
}

/// SQLite's integers are signed; times and epochs stay far below the sign, and come back the same anyway.
const fn signed(value: u64) -> i64 {
    value.cast_signed()
}

fn failed(path: &Path, doing: &'static str, source: rusqlite::Error) -> JournalError {
    JournalError::Sqlite {
        path: path.to_owned(),
        doing,
        source,
    }
}

fn damaged(path: &Path, what: String) -> JournalError {
    JournalError::Damaged {
        path: path.to_owned(),
        what,
    }
}

#[cfg(test)]
mod tests;
