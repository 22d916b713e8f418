//! The changes of one commit, written in its transaction. It decides nothing about them.

use super::{JournalError, encoded, failed, signed, slices};
use crate::core::capacity::Held;
use crate::core::lease::LeaseRecord;
use crate::core::leases::Change;
use protocol::ids::LeaseId;
use protocol::offer::parent;
use rusqlite::{Transaction, params};
use std::path::Path;

/// Writes all of them. What is freed in one commit may be taken in it.
pub(super) fn put_all(
    transaction: &Transaction<'_>,
    changes: &[Change],
    path: &Path,
) -> Result<(), JournalError> {
    let failed = |source| failed(path, "write", source);
    for change in changes {
        free(transaction, change).map_err(failed)?;
    }
    for change in changes {
        match change {
            Change::Lease(record) => put(transaction, record, path)?,
            Change::Forgotten(lease) => forget(transaction, *lease).map_err(failed)?,
        }
    }
    Ok(())
}

fn free(transaction: &Transaction<'_>, change: &Change) -> rusqlite::Result<()> {
    let lease = match change {
        Change::Lease(record) => record.lease,
        Change::Forgotten(lease) => *lease,
    };
    for table in [
        "DELETE FROM held WHERE lease = ?1",
        "DELETE FROM held_unit WHERE lease = ?1",
    ] {
        transaction
            .prepare_cached(table)?
            .execute([lease.as_bytes().as_slice()])?;
    }
    Ok(())
}

fn put(
    transaction: &Transaction<'_>,
    record: &LeaseRecord,
    path: &Path,
) -> Result<(), JournalError> {
    let bytes = encoded(record, path)?;
    put_row(transaction, record, &bytes).map_err(|source| failed(path, "write", source))
}

fn put_row(
    transaction: &Transaction<'_>,
    record: &LeaseRecord,
    bytes: &[u8],
) -> rusqlite::Result<()> {
    let lease = record.lease.as_bytes().as_slice();
    transaction
        .prepare_cached(
            "INSERT INTO lease (lease, broker, state, run, sequence, running_ms, record)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (lease) DO UPDATE SET state = excluded.state, run = excluded.run,
                 sequence = excluded.sequence, running_ms = excluded.running_ms,
                 record = excluded.record",
        )?
        .execute(params![
            lease,
            record.broker.as_bytes().as_slice(),
            record.state.word(),
            record.state.run(),
            signed(record.sequence),
            signed(record.running().0),
            bytes,
        ])?;
    for Held { resource, epoch } in record.state.held() {
        transaction
            .prepare_cached("INSERT INTO held (resource, lease) VALUES (?1, ?2)")?
            .execute(params![resource.as_str(), lease])?;
        for unit in slices::units(resource) {
            transaction
                .prepare_cached("INSERT INTO held_unit (gpu, unit, lease) VALUES (?1, ?2, ?3)")?
                .execute(params![parent(resource), unit, lease])?;
        }
        transaction
            .prepare_cached(
                "INSERT INTO epoch (resource, epoch) VALUES (?1, ?2)
                 ON CONFLICT (resource) DO UPDATE SET epoch = max(epoch, excluded.epoch)",
            )?
            .execute(params![resource.as_str(), signed(*epoch)])?;
    }
    Ok(())
}

fn forget(transaction: &Transaction<'_>, lease: LeaseId) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("DELETE FROM lease WHERE lease = ?1")?
        .execute([lease.as_bytes().as_slice()])?;
    Ok(())
}
