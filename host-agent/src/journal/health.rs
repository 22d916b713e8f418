//! The health of the GPUs in the journal: one record, written whole. It decides nothing about it.

use super::{Journal, JournalError, damaged, encoded, failed};
use gpu_health::unit::Kept;
use protocol::codec;
use rusqlite::{Connection, OptionalExtension};
use std::path::Path;

impl Journal {
    /// Makes this what is kept.
    ///
    /// # Errors
    /// When SQLite fails: what is in memory must then not be acted on.
    pub fn keep_health(&mut self, kept: &Kept) -> Result<(), JournalError> {
        let bytes = encoded(kept, &self.path)?;
        self.connection
            .execute(
                "INSERT OR REPLACE INTO health (id, record) VALUES (1, ?1)",
                [bytes],
            )
            .map_err(|source| failed(&self.path, "write the health of GPUs", source))?;
        Ok(())
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
