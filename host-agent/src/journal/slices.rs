//! The slices that this host made, in the journal. It decides nothing about them.

use super::{Journal, JournalError, damaged, failed};
use crate::core::slices::known::{Known, KnownChange, Made};
use mig::name::{AXIS_MAX, SliceName};
use protocol::bounded::Text;
use protocol::offer::ResourceName;
use rusqlite::{Connection, Transaction, params};
use std::ops::Range;
use std::path::Path;

impl Journal {
    /// Makes all of `changes` durable, or none.
    ///
    /// # Errors
    /// When SQLite fails: what is in memory must then not be acted on.
    pub fn note_slices(&mut self, changes: &[KnownChange]) -> Result<(), JournalError> {
        let path = self.path.clone();
        let failed = |source| failed(&path, "write slices", source);
        let transaction = self.connection.transaction().map_err(failed)?;
        for change in changes {
            put(&transaction, change).map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }
}

/// The units of its GPU's memory axis that a resource has: all that there may be, or a slice's own.
pub(super) fn units(resource: &str) -> Range<u8> {
    SliceName::parse(resource).map_or(0..AXIS_MAX, |slice| {
        slice.start()..slice.start() + slice.size()
    })
}

/// All of them.
pub(super) fn read(connection: &Connection, path: &Path) -> Result<Known, JournalError> {
    let rows = rows(connection).map_err(|source| failed(path, "read slices", source))?;
    let wrong = |error: protocol::bounded::BoundError| damaged(path, format!("a slice: {error}"));
    let known = rows.into_iter().map(|(resource, device)| {
        let made = match device {
            None => Made::Begun,
            Some(device) => Made::Done {
                device: Text::new(device).map_err(wrong)?,
            },
        };
        Ok((ResourceName::new(resource).map_err(wrong)?, made))
    });
    known.collect()
}

fn put(transaction: &Transaction<'_>, change: &KnownChange) -> rusqlite::Result<()> {
    match change {
        KnownChange::Set(resource, made) => {
            let device = match made {
                Made::Begun => None,
                Made::Done { device } => Some(device.as_str()),
            };
            transaction
                .prepare_cached(
                    "INSERT INTO slice (resource, device) VALUES (?1, ?2)
                     ON CONFLICT (resource) DO UPDATE SET device = excluded.device",
                )?
                .execute(params![resource.as_str(), device])?;
        }
        KnownChange::Gone(resource) => {
            transaction
                .prepare_cached("DELETE FROM slice WHERE resource = ?1")?
                .execute([resource.as_str()])?;
        }
    }
    Ok(())
}

fn rows(connection: &Connection) -> rusqlite::Result<Vec<(String, Option<String>)>> {
    connection
        .prepare("SELECT resource, device FROM slice ORDER BY resource")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}
