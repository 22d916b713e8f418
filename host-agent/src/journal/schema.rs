//! The tables of the journal and how an older file is brought up to date. Nothing here reads or writes
//! a lease.

use super::{JournalError, failed};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// One step for each version; the file's `user_version` says how many were taken.
const STEPS: [&str; 4] = [
    "
    CREATE TABLE epoch (
        resource TEXT PRIMARY KEY,
        epoch INTEGER NOT NULL CHECK (epoch > 0)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE lease (
        lease BLOB PRIMARY KEY CHECK (length(lease) = 16),
        broker BLOB NOT NULL CHECK (length(broker) = 32),
        state TEXT NOT NULL,
        run INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        running_ms INTEGER NOT NULL CHECK (running_ms >= 0),
        record BLOB NOT NULL
    ) STRICT;
    -- Its primary key is the rule that a resource has one holder.
    CREATE TABLE held (
        resource TEXT PRIMARY KEY,
        lease BLOB NOT NULL REFERENCES lease (lease)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX held_by ON held (lease);
    CREATE TABLE listing (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        record BLOB NOT NULL
    ) STRICT;
",
    // Leases and listings of the first wire mean nothing in the second, in which GPUs are sold in portions: no
    // broker knows those leases any more, and their containers go. Epochs stay: they never repeat.
    "
    DELETE FROM held;
    DELETE FROM lease;
    DELETE FROM listing;
",
    // The third wire sells slices of GPUs, and what was signed before means nothing in it either.
    "
    DELETE FROM held;
    DELETE FROM lease;
    DELETE FROM listing;
    -- The memory slices of GPUs that leases hold; of a whole GPU all that there may be. Its primary key is the rule
    -- that a GPU and its slices have one holder each.
    CREATE TABLE held_unit (
        gpu TEXT NOT NULL,
        unit INTEGER NOT NULL,
        lease BLOB NOT NULL REFERENCES lease (lease),
        PRIMARY KEY (gpu, unit)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX held_unit_by ON held_unit (lease);
    -- The slices that this host made: begun before its driver is told, with the device when it is there.
    CREATE TABLE slice (
        resource TEXT PRIMARY KEY,
        device TEXT
    ) STRICT, WITHOUT ROWID;
",
    // What GPUs wait for, and what was leased and not cleaned since: one record.
    "
    CREATE TABLE health (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        record BLOB NOT NULL
    ) STRICT;
",
];

/// The version of the file.
pub(super) fn version(connection: &Connection, path: &Path) -> Result<i64, JournalError> {
    connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(|source| failed(path, "read its version", source))
}

/// Whether an older program wrote it last, or none.
pub(super) fn is_older(connection: &Connection, path: &Path) -> Result<bool, JournalError> {
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    Ok(version(connection, path)? < known)
}

/// Takes the steps that the file has not taken, all or none.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), JournalError> {
    let found = version(connection, path)?;
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(JournalError::TooNew {
            path: path.to_owned(),
            found,
            known,
        });
    }
    let taken = usize::try_from(found).unwrap_or(0);
    let failed = |source| failed(path, "bring its schema up to date", source);
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed)?;
    for step in STEPS.iter().skip(taken) {
        transaction.execute_batch(step).map_err(failed)?;
    }
    transaction
        .pragma_update(None, "user_version", known)
        .map_err(failed)?;
    transaction.commit().map_err(failed)
}
