//! Whatever is not as it was written is found before anything is answered.

use super::script::{open, play};
use crate::core::tests::world::{broker_id, host_id, renter_id};
use crate::store::{JOURNAL_FILE, SCHEMA_VERSION, Store, StoreError, check};
use rusqlite::Connection;
use std::path::Path;

/// Changes a journal behind the broker's back.
fn tamper(folder: &Path, sql: &str) {
    let connection = Connection::open(folder.join(JOURNAL_FILE)).unwrap();
    connection.execute_batch(sql).unwrap();
}

const UNGUARD: &str =
    "DROP TRIGGER events_are_never_changed; DROP TRIGGER events_are_never_deleted;
    DROP TRIGGER entries_are_never_changed; DROP TRIGGER entries_are_never_deleted;";

fn played() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = play(folder.path());
    store.close().unwrap();
    folder
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let folder = played();
    tamper(
        folder.path(),
        "UPDATE meta SET value = 99 WHERE name = 'schema_version'",
    );
    let refused = open(folder.path()).unwrap_err();
    assert!(
        matches!(
            refused,
            StoreError::NewerSchema {
                found: 99,
                known: SCHEMA_VERSION
            }
        ),
        "{refused:?}"
    );
    let connection = Connection::open(folder.path().join(JOURNAL_FILE)).unwrap();
    let select = "SELECT value FROM meta WHERE name = 'schema_version'";
    let version: i64 = connection.query_row(select, [], |row| row.get(0)).unwrap();
    assert_eq!(version, 99);
}

#[test]
fn an_event_that_was_changed_is_named() {
    let folder = played();
    // One bit of the third event's body.
    let flip =
        "UPDATE events SET body = CAST(substr(body, 1, 20) || x'ff' || substr(body, 22) AS BLOB)
                WHERE seq = 3";
    tamper(folder.path(), &format!("{UNGUARD} {flip}"));
    assert!(matches!(
        open(folder.path()),
        Err(StoreError::Corrupt { event: 3, .. })
    ));
    assert!(matches!(
        check(folder.path()),
        Err(StoreError::Corrupt { event: 3, .. })
    ));
}

#[test]
fn an_event_that_is_missing_is_named() {
    let folder = played();
    let delete = "PRAGMA foreign_keys = OFF; DELETE FROM events WHERE seq = 4";
    tamper(folder.path(), &format!("{UNGUARD} {delete}"));
    assert!(matches!(
        open(folder.path()),
        Err(StoreError::Corrupt { event: 4, .. })
    ));
}

#[test]
fn an_entry_that_was_changed_is_found() {
    for change in [
        "UPDATE entries SET amount = amount + 1 WHERE event = 1 AND n = 1",
        "DELETE FROM entries WHERE event = 1",
        "INSERT INTO entries VALUES (2, 9, x'04', -5, NULL), (2, 10, x'00', 5, NULL)",
        "UPDATE entries SET previous = NULL WHERE previous > 0",
    ] {
        let folder = played();
        tamper(folder.path(), &format!("{UNGUARD} {change}"));
        assert!(
            matches!(open(folder.path()), Err(StoreError::Ledger(_))),
            "{change}"
        );
        assert!(
            !check(folder.path()).unwrap().problems.is_empty(),
            "{change}"
        );
    }
}

#[test]
fn events_and_entries_are_append_only() {
    let folder = played();
    let connection = Connection::open(folder.path().join(JOURNAL_FILE)).unwrap();
    for change in [
        "UPDATE events SET at = 0 WHERE seq = 1",
        "DELETE FROM events",
        "UPDATE entries SET amount = 1",
        "DELETE FROM entries",
    ] {
        assert!(connection.execute_batch(change).is_err(), "{change}");
    }
}

#[test]
fn a_damaged_file_is_refused() {
    let folder = played();
    let path = folder.path().join(JOURNAL_FILE);
    let find = "SELECT (rootpage - 1) * page_size, page_size
        FROM sqlite_schema, pragma_page_size WHERE name = 'events'";
    let (page, size): (u32, u32) = Connection::open(&path)
        .unwrap()
        .query_row(find, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    let page = usize::try_from(page).unwrap();
    let size = usize::try_from(size).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    for byte in &mut bytes[page..page + size] {
        *byte = 0x5a;
    }
    std::fs::write(&path, bytes).unwrap();
    assert!(open(folder.path()).is_err());
}

#[test]
fn a_journal_is_its_brokers_alone() {
    let folder = played();
    let other = protocol::ids::PublicKey::from(host_id(0)).into();
    assert!(matches!(
        Store::open(folder.path(), other),
        Err(StoreError::OtherBroker { .. })
    ));
}

#[test]
fn a_check_beside_a_running_broker_finds_all_well() {
    let folder = tempfile::tempdir().unwrap();
    let (_store, market) = play(folder.path());
    let report = check(folder.path()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!((report.sum, report.last_event), (0, market.events()));
    let money: i64 = report
        .by_kind
        .iter()
        .filter(|(kind, _)| **kind != "cash")
        .map(|(_, sum)| sum.0)
        .sum();
    assert_eq!(money, 15_000_000);
    assert!(market.available(renter_id(1)).0 == 5_000_000);
}

#[test]
fn a_journal_that_is_lost_or_emptied_is_not_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let opened = || Store::open(folder.path(), broker_id()).map(drop);
    assert!(matches!(opened(), Err(StoreError::Missing { .. })));
    assert!(!folder.path().join(JOURNAL_FILE).exists());
    drop(play(folder.path()));
    opened().unwrap();
    std::fs::write(folder.path().join(JOURNAL_FILE), "").unwrap();
    assert!(matches!(opened(), Err(StoreError::Missing { .. })));
}
