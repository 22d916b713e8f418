//! A copy of the journal while the broker runs.

use crate::store::{JOURNAL_FILE, StoreError, doing, lock, schema};
use std::fs::File;
use std::path::Path;

/// Writes a copy of the journal in `folder` to `target`, as of one moment and compact, without holding up
/// the broker that may be writing it. Returns the copy's size in bytes.
///
/// # Errors
/// When `target` is there already, or either file fails.
pub fn backup(folder: &Path, target: &Path) -> Result<u64, StoreError> {
    let failed = |what| {
        move |source| StoreError::Io {
            what,
            path: target.to_owned(),
            source,
        }
    };
    let path = folder.join(JOURNAL_FILE);
    if !path.is_file() {
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(StoreError::Io {
            what: "open",
            path,
            source,
        });
    }
    if target.exists() {
        let source = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        return Err(failed("write")(source));
    }
    // SQLite writes into an empty file that is there: so the copy is never readable by others.
    lock::make_private(target)?;
    let connection = schema::connect_to_read(&path)?;
    connection
        .pragma_update(None, "query_only", false)
        .map_err(doing("take its settings"))?;
    let name = target.to_string_lossy();
    connection
        .execute("VACUUM INTO ?1", [name.as_ref()])
        .map_err(doing("copy itself"))?;
    let copy = File::open(target).map_err(failed("open"))?;
    copy.sync_all().map_err(failed("sync"))?;
    Ok(copy.metadata().map_err(failed("read"))?.len())
}
