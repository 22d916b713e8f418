//! `feira-broker backup`: copies the journal to a new file while the broker goes on, and checks the copy.

use super::Place;
use crate::clock::Stopwatch;
use crate::program::last_backup;
use crate::store;
use protocol::operator::{Exit, Failure, counted};
use protocol::units::Bytes;
use std::fs;
use std::io;
use std::path::Path;

/// Copies and checks; a file that is there already is left as it is.
pub(super) fn backup(place: &Place, file: &Path) -> Result<Exit, Failure> {
    if file.exists() {
        return Err(Failure::new(
            Exit::Usage,
            format!("{} is there already and is left as it is", file.display()),
        )
        .help("name a file that does not exist yet"));
    }
    if !place.folder.journal().exists() {
        let what = format!("there is no journal in {}", place.folder.path().display());
        return Err(Failure::new(Exit::NotFound, what).help("name the broker's folder: --data DIR"));
    }
    let since = Stopwatch::start();
    let bytes =
        store::backup(place.folder.path(), file).map_err(|error| place.store_failed(&error))?;
    let report = store::check_file(file).map_err(|error| place.store_failed(&error))?;
    if let Some(problem) = report.problems.first() {
        let what = format!("{} is no backup: {problem}", file.display());
        return Err(Failure::new(Exit::Failed, what).help(place.command("doctor")));
    }
    let took = since.elapsed();
    if let Err(error) = mark(&last_backup(&place.folder)) {
        place.printer.note(&format!(
            "the metrics page will not know of this backup: {}: {error}",
            last_backup(&place.folder).display()
        ));
    }
    if place.printer.is_json() {
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        place.printer.document(&serde_json::json!({
            "schema": "feira.backup/1",
            "file": file,
            "bytes": bytes,
            "events": report.last_event,
            "took_ms": took_ms,
        }));
        return Ok(Exit::Done);
    }
    place.printer.line(&format!(
        "{}, {} written to {} in {:.1} s; every event of the copy was read and its ledger adds up",
        Bytes(bytes),
        counted(report.last_event, "event"),
        file.display(),
        took.as_secs_f64()
    ));
    Ok(Exit::Done)
}

/// Makes the file whose age is the backup's. Root may have made the last one, so it is made anew.
fn mark(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    fs::File::create(path).map(drop)
}
