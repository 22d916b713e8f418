//! `feira-broker restore`: puts a backup in the journal's place, after a check, and keeps what was there.

use super::Place;
use crate::args::Restore;
use crate::clock::Clock;
use crate::store::{self, StoreError};
use protocol::ids::BrokerId;
use protocol::net::Identity;
use protocol::operator::{Exit, Failure, counted};

/// Refuses while a broker runs, and beside books that nobody gave up.
pub(super) fn restore(place: &Place, typed: &Restore) -> Result<Exit, Failure> {
    let file = &typed.file;
    if !file.is_file() {
        let what = format!("there is no backup {}", file.display());
        return Err(
            Failure::new(Exit::NotFound, what).help("name a file that `feira-broker backup` wrote")
        );
    }
    let identity =
        Identity::load(&place.folder.key()).map_err(|error| place.identity_failed(&error))?;
    if place.has_books() && !typed.replace {
        let what = format!(
            "there are books already: {}",
            place.folder.journal().display()
        );
        return Err(Failure::new(Exit::Failed, what).help(format!(
            "everything since the backup is forgotten with them; if that is meant: {}",
            place.command(&format!("restore {} --replace", file.display()))
        )));
    }
    let moment = Clock::system().now().0;
    let broker = BrokerId::from(identity.public());
    let restored = store::restore(place.folder.path(), broker, file, moment)
        .map_err(|error| refused(place, file, &error))?;
    let report = &restored.report;
    if place.printer.is_json() {
        place.printer.document(&serde_json::json!({
            "schema": "feira.restore/1",
            "file": file,
            "last_event": report.last_event,
            "last_at_ms": report.last_at.0,
            "before": restored.before,
        }));
        return Ok(Exit::Done);
    }
    place.printer.line(&format!(
        "restored {}: {}, the last one at {}",
        file.display(),
        counted(report.last_event, "event"),
        crate::admin::shown::local(report.last_at)
    ));
    if let Some(before) = &restored.before {
        place
            .printer
            .line(&format!("what was there is in {}", before.display()));
    }
    place.printer.note(
        "leases that are younger than the backup are not in it: their hosts end them when the broker runs",
    );
    Ok(Exit::Done)
}

/// A damaged backup is not mended by restoring a backup.
fn refused(place: &Place, file: &std::path::Path, error: &StoreError) -> Failure {
    let failure = place.store_failed(error);
    match error {
        StoreError::Damaged(_)
        | StoreError::Corrupt { .. }
        | StoreError::Ledger(_)
        | StoreError::Sqlite { .. }
        | StoreError::OtherBroker { .. } => Failure {
            what: format!("{} is not restored: {}", file.display(), failure.what),
            ..failure
        }
        .help("nothing was changed; name another backup"),
        StoreError::Missing { .. }
        | StoreError::InUse { .. }
        | StoreError::Io { .. }
        | StoreError::OldSqlite { .. }
        | StoreError::NewerSchema { .. }
        | StoreError::Encode(_)
        | StoreError::Away
        | StoreError::State(_) => failure,
    }
}
