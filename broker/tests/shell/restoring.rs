//! A backup put in the journal's place: what is refused, what is kept, what counts afterwards.

use crate::commands::{Typed, renter};
use std::fs;

#[test]
fn a_log_beside_the_old_journal_does_not_win_over_the_backup() {
    let typed = Typed::made();
    let (running, _) = typed.run();
    typed.say(&["deposit", "--new", &renter(), "3"]).ok();
    let copy = typed.data.join("copy.db");
    let file = copy.to_str().unwrap();
    typed.say(&["backup", file]).ok();
    typed.say(&["deposit", "--new", &renter(), "4"]).ok();
    // The second deposit is on the books that are to be given up, in SQLite's log: the broker is killed.
    typed
        .say(&["restore", file, "--replace"])
        .code(1, "another broker uses the journal");
    drop(running);
    assert!(
        fs::metadata(typed.data.join("journal.db-wal"))
            .unwrap()
            .len()
            > 0
    );
    typed
        .say(&["restore", file])
        .code(1, "there are books already");
    let said = typed
        .say(&["restore", file, "--replace", "--json"])
        .ok()
        .json();
    assert_eq!(said["last_event"], 1);
    let before = said["before"].as_str().unwrap();
    for part in ["journal.db", "journal.db-wal"] {
        assert!(
            fs::metadata(format!("{before}/{part}")).unwrap().len() > 0,
            "{part}"
        );
    }
    typed.say(&["ledger", "check"]).code(0, "1 event");
    let (_running, _) = typed.run();
    assert!(typed.say(&["accounts"]).ok().out.contains("$3.00"));
}

#[test]
fn what_is_no_backup_of_this_broker_changes_nothing() {
    let (typed, other) = (Typed::made(), Typed::made());
    let copy = other.data.join("copy.db");
    let file = copy.to_str().unwrap();
    let (running, _) = other.run();
    other.say(&["deposit", "--new", &renter(), "3"]).ok();
    other.say(&["backup", file]).ok();
    assert_eq!(running.terminate(), Some(0));
    typed
        .say(&["restore", file, "--replace"])
        .code(1, "the journal is the one of broker");
    let mut bytes = fs::read(&copy).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0xa5);
    fs::write(&copy, bytes).unwrap();
    other
        .say(&["restore", file, "--replace"])
        .code(1, "nothing was changed");
    other
        .say(&["restore", "/nowhere.db"])
        .code(3, "there is no backup");
    // An empty file is no backup either.
    fs::write(&copy, "").unwrap();
    other
        .say(&["restore", file, "--replace"])
        .code(1, "is not restored");
    for place in [&typed, &other] {
        place.say(&["doctor"]).ok();
        assert!(!place.data.join("restoring").exists());
    }
    let (_running, _) = other.run();
    assert!(other.say(&["accounts"]).ok().out.contains("$3.00"));
}
