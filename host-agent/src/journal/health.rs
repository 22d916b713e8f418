//! The health of the GPUs in the journal: one record, written whole. It decides nothing about it.

use super::commit::put_all;
use super::{Journal, JournalError, damaged, encoded, failed};
use crate::core::leases::Change;
use gpu_health::unit::Kept;
use protocol::codec;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use std::path::Path;

impl Journal {
    /// Makes this what is kept, and `changes` durable with it: all of it, or nothing.
    ///
    /// # Errors
    /// When SQLite fails: what is in memory must then not be acted on.
    pub fn keep_health(&mut self, kept: &Kept, changes: &[Change]) -> Result<(), JournalError> {
        let bytes = encoded(kept, &self.path)?;
        let path = self.path.clone();
        let failed = |source| failed(&path, "write the health of GPUs", source);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        put_all(&transaction, changes, &path)?;
        transaction
            .execute(
                "INSERT OR REPLACE INTO health (id, record) VALUES (1, ?1)",
                [bytes],
            )
            .map_err(failed)?;
        transaction.commit().map_err(failed)
    }
}

/// What was kept; nothing when nothing was.
pub(super) fn read(connection: &Connection, path: &Path) -> Result<Kept, JournalError> {
    let record: Option<Vec<u8>> = connection
        .query_row("SELECT record FROM health WHERE id = 1", [], |row| {
            row.get(0)
        })
        .optional()
        .map_err(|source| failed(path, "read the health of GPUs", source))?;
    let Some(record) = record else {
        return Ok(Kept::default());
    };
    codec::decode(&record).map_err(|error| damaged(path, format!("the health of GPUs: {error}")))
}
