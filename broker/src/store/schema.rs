//! The tables of the journal, how they came to be, and the settings every connection has.

use crate::store::{StoreError, doing, loaded};
use protocol::ids::BrokerId;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

/// The newest schema that this program knows.
pub const SCHEMA_VERSION: u32 = 2;

/// SQLite before this can corrupt a file in WAL mode when two connections checkpoint.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// What takes a journal from the schema of its index to the next one. Only ever added to.
pub(super) const MIGRATIONS: [&str; 2] = [CHAINED_EVENTS, LINKED_MOVEMENTS];

const CHAINED_EVENTS: &str = "
    -- What happened, in order. `chain` is BLAKE3(chain of the event before ‖ body).
    CREATE TABLE events (
        seq   INTEGER PRIMARY KEY,
        at    INTEGER NOT NULL,
        kind  TEXT NOT NULL,
        body  BLOB NOT NULL,
        chain BLOB NOT NULL CHECK (length(chain) = 32)
    ) STRICT;

    -- The money that each event moved; the sum of an event is zero.
    CREATE TABLE entries (
        event   INTEGER NOT NULL REFERENCES events (seq),
        n       INTEGER NOT NULL,
        account BLOB NOT NULL,
        amount  INTEGER NOT NULL CHECK (amount <> 0),
        PRIMARY KEY (event, n)
    ) STRICT, WITHOUT ROWID;

    -- Renters' available money (tag 1) is what statements are made of.
    CREATE INDEX entries_of_renters ON entries (account, event, amount)
        WHERE account >= x'01' AND account < x'02';

    -- What events 1 to `seq` add up to.
    CREATE TABLE snapshots (
        seq    INTEGER PRIMARY KEY REFERENCES events (seq),
        digest BLOB NOT NULL CHECK (length(digest) = 32),
        chain  BLOB NOT NULL CHECK (length(chain) = 32),
        state  BLOB NOT NULL
    ) STRICT;

    CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
        BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
    CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
        BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
    CREATE TRIGGER entries_are_never_changed BEFORE UPDATE ON entries
        BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
    CREATE TRIGGER entries_are_never_deleted BEFORE DELETE ON entries
        BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END;
";

/// An index by account has a page to write for nearly every order, as orders come from many renters.
const LINKED_MOVEMENTS: &str = "
    -- `previous` is the event that moved a renter's available money (tag 1) before this one did: along these
    -- links statements are read. Empty for the first one, and for all other accounts.
    CREATE TABLE linked (
        event    INTEGER NOT NULL REFERENCES events (seq),
        n        INTEGER NOT NULL,
        account  BLOB NOT NULL,
        amount   INTEGER NOT NULL CHECK (amount <> 0),
        previous INTEGER CHECK (previous < event),
        PRIMARY KEY (event, n)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO linked SELECT event, n, account, amount,
        iif(account >= x'01' AND account < x'02',
            lag(event) OVER (PARTITION BY account ORDER BY event), NULL)
        FROM entries ORDER BY event, n;
    DROP TABLE entries;
    ALTER TABLE linked RENAME TO entries;

    CREATE TRIGGER entries_are_never_changed BEFORE UPDATE ON entries
        BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
    CREATE TRIGGER entries_are_never_deleted BEFORE DELETE ON entries
        BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END;
";

const META: &str =
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT";

/// Refuses a SQLite that can lose data.
pub(super) fn check_library() -> Result<(), StoreError> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        return Err(StoreError::OldSqlite {
            found: rusqlite::version(),
        });
    }
    Ok(())
}

/// The writing connection.
pub(super) fn connect(path: &Path) -> Result<Connection, StoreError> {
    let connection = Connection::open(path).map_err(doing("open"))?;
    configure(&connection).map_err(doing("take its settings"))?;
    Ok(connection)
}

/// A connection that only reads, for what must not disturb the writer.
pub(super) fn connect_to_read(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(doing("open"))?;
    let settings = || {
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "query_only", true)
    };
    settings().map_err(doing("take its settings"))?;
    Ok(connection)
}

/// The settings of a journal, for whoever writes one.
///
/// # Errors
/// When SQLite refuses one.
pub fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_secs(5))?;
    // Of a new file alone. An order takes a kilobyte: fewer and fuller pages than the usual ones of 4 KiB.
    connection.pragma_update(None, "page_size", 8192)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // NORMAL may lose the last commits with the power: not for money.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // 16 MiB: a full batch of orders fits, so that none of it is written twice.
    connection.pragma_update(None, "cache_size", -16_384)?;
    connection.pragma_update(None, "wal_autocheckpoint", 1000)?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Whether SQLite finds its own file in order.
pub(super) fn check_file(connection: &Connection) -> Result<(), StoreError> {
    let said: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(doing("check itself"))?;
    if said == "ok" {
        Ok(())
    } else {
        Err(StoreError::Damaged(said))
    }
}

/// Brings the tables to the newest schema, in one transaction.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(doing("begin"))?;
    transaction
        .execute_batch(META)
        .map_err(doing("read its schema"))?;
    let found = version(&transaction)?;
    if found > SCHEMA_VERSION {
        return Err(StoreError::NewerSchema {
            found,
            known: SCHEMA_VERSION,
        });
    }
    let done = usize::try_from(found).unwrap_or(MIGRATIONS.len());
    for migration in MIGRATIONS.iter().skip(done) {
        transaction
            .execute_batch(migration)
            .map_err(doing("migrate"))?;
    }
    let set = "INSERT INTO meta (name, value) VALUES ('schema_version', ?1)
               ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    transaction
        .execute(set, [SCHEMA_VERSION])
        .map_err(doing("migrate"))?;
    transaction.commit().map_err(doing("migrate"))
}

fn version(connection: &Connection) -> Result<u32, StoreError> {
    let select = "SELECT value FROM meta WHERE name = 'schema_version'";
    let found: Option<i64> = connection
        .query_row(select, [], |row| row.get(0))
        .optional()
        .map_err(doing("read its schema"))?;
    Ok(found.map_or(0, |found| u32::try_from(loaded(found)).unwrap_or(u32::MAX)))
}

/// Writes down whose journal it is, or checks it.
pub(super) fn claim(connection: &Connection, broker: BrokerId) -> Result<(), StoreError> {
    let select = "SELECT value FROM meta WHERE name = 'broker'";
    let owner: Option<String> = connection
        .query_row(select, [], |row| row.get(0))
        .optional()
        .map_err(doing("read its owner"))?;
    match owner {
        Some(found) if found == broker.to_string() => Ok(()),
        Some(found) => Err(StoreError::OtherBroker {
            found,
            wanted: broker,
        }),
        None => {
            let insert = "INSERT INTO meta (name, value) VALUES ('broker', ?1)";
            connection
                .execute(insert, [broker.to_string()])
                .map_err(doing("write its owner"))?;
            Ok(())
        }
    }
}
