//! Journals of older programs.

use crate::store::schema::migrate;
use rusqlite::Connection;

#[test]
fn movements_of_an_older_journal_get_their_links() {
    let mut connection = Connection::open_in_memory().unwrap();
    let first = crate::store::schema::MIGRATIONS[0];
    let rows = "
        CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT;
        INSERT INTO meta VALUES ('schema_version', 1);
        INSERT INTO events VALUES
            (1, 0, 'held', x'', zeroblob(32)), (2, 0, 'held', x'', zeroblob(32)),
            (3, 0, 'held', x'', zeroblob(32)), (4, 0, 'held', x'', zeroblob(32));
        INSERT INTO entries VALUES
            (1, 0, x'00', 7), (1, 1, x'01aa', -7),
            (2, 0, x'00', 9), (2, 1, x'01bb', -9),
            (3, 0, x'01aa', 2), (3, 1, x'02cc', -2),
            (4, 0, x'01aa', 1), (4, 1, x'02cc', -1)";
    connection.execute_batch(first).unwrap();
    connection.execute_batch(rows).unwrap();
    connection
        .pragma_update(None, "foreign_keys", true)
        .unwrap();
    migrate(&mut connection).unwrap();
    let mut select = connection
        .prepare("SELECT event, n, previous FROM entries WHERE previous > 0 ORDER BY event, n")
        .unwrap();
    let links: Vec<(i64, i64, i64)> = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    // Of the renter aa alone, from its second movement on.
    assert_eq!(links, [(3, 0, 1), (4, 0, 3)]);
    let entries: i64 = connection
        .query_row("SELECT count(*) FROM entries", [], |row| row.get(0))
        .unwrap();
    assert_eq!(entries, 8);
    assert!(connection.execute("DELETE FROM entries", []).is_err());
}
