//! What the operator's commands claim is so: a repeat is no deposit, a lost answer is no success, a command
//! that is shown can be typed.

use crate::commands::{Typed, renter};
use protocol::ids::DepositId;
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

#[test]
fn a_repeated_deposit_says_that_nothing_was_credited() {
    let typed = Typed::made();
    let (_running, _) = typed.run();
    let (renter, id) = (renter(), DepositId::from_bytes([9; 16]).to_string());
    let deposit = ["deposit", "--new", &renter, "10.25", "--id", &id];
    let first = typed.say(&deposit).ok();
    assert!(
        first.out.starts_with("$10.25 credited to r-"),
        "{}",
        first.out
    );
    let again = typed.say(&deposit).ok();
    assert!(
        again.out.starts_with("nothing credited: ") && again.out.contains("; $10.25 available"),
        "{}",
        again.out
    );
    let json = typed
        .say(&["deposit", "--new", &renter, "10.25", "--id", &id, "--json"])
        .ok()
        .json();
    assert_eq!(json["deposit"]["credited"], Value::Bool(false));
}

#[test]
fn a_deposit_id_that_was_used_says_what_for() {
    let typed = Typed::made();
    let (_running, _) = typed.run();
    let (renter, id) = (renter(), DepositId::from_bytes([9; 16]).to_string());
    typed
        .say(&["deposit", "--new", &renter, "1", "--id", &id])
        .ok();
    let what = format!("{id} is on the books already: $1.00 to {renter}; nothing was credited");
    typed
        .say(&["deposit", "--new", &renter, "2", "--id", &id])
        .code(1, &what);
    assert!(typed.say(&["accounts"]).ok().out.contains("$1.00"));
}

#[test]
fn the_command_that_repeats_a_deposit_means_the_same_in_a_shell() {
    let typed = Typed::made();
    let renter = renter();
    let said = typed
        .say(&["deposit", "--new", &renter, "1.5"])
        .code(8, "--id t-");
    let again = format!("feira-broker deposit {renter} 1.50 --new --id t-");
    assert!(said.err.contains(&again), "{}", said.err);
    assert!(!said.err.contains('$'), "{}", said.err);
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let typed = Typed::made();
    let (_running, _) = typed.run();
    for words in [
        &["status"][..],
        &["status", "--json"],
        &["doctor"],
        &["accounts", "--json"],
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = typed.command(words);
        let ended = command
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains("could not be written"), "{words:?}: {said}");
    }
}

#[test]
fn doctor_knows_when_the_port_of_the_metrics_page_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let page = taken.local_addr().unwrap().to_string();
    let typed = Typed::new();
    let listen = "/ip4/127.0.0.1/tcp/0";
    typed
        .say(&["init", "--listen", listen, "--metrics", &page])
        .ok();
    let said = typed.say(&["doctor"]).code(1, &page);
    assert!(said.out.contains("or change `metrics`"), "{}", said.out);
    drop(taken);
    typed.say(&["doctor"]).code(0, "that of the metrics page");
}

#[test]
fn the_page_says_how_old_the_backup_is() {
    let typed = Typed::made();
    let (_running, ready) = typed.run();
    let address = ready[1]
        .trim_start_matches("http://")
        .trim_end_matches("/metrics");
    let age = || {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix("broker_backup_age_seconds{} "));
        line.map(|rest| rest.trim().parse::<u64>().unwrap())
    };
    assert_eq!(age(), None);
    let file = typed.data.join("copy.db");
    typed.say(&["backup", file.to_str().unwrap()]).ok();
    assert!(age().unwrap() < 60);
}

#[test]
fn lost_books_are_not_begun_anew() {
    let typed = Typed::made();
    let (running, _) = typed.run();
    typed.say(&["deposit", "--new", &renter(), "3"]).ok();
    let copy = typed.data.join("copy.db");
    typed.say(&["backup", copy.to_str().unwrap()]).ok();
    assert_eq!(running.terminate(), Some(0));
    let journal = typed.data.join("journal.db");
    for lose in [
        |journal: &Path| std::fs::remove_file(journal).unwrap(),
        |journal: &Path| std::fs::write(journal, "").unwrap(),
    ] {
        lose(&journal);
        typed.say(&["run"]).code(3, "restore the newest backup");
        typed.say(&["doctor"]).code(1, "missing or empty");
        // What a service manager does before each start.
        typed.say(&["init", "--if-missing"]).ok();
        typed.say(&["init"]).ok();
        typed.say(&["run"]).code(3, "init --empty-books");
    }
    typed.say(&["restore", copy.to_str().unwrap()]).ok();
    let (restored, _) = typed.run();
    assert!(typed.say(&["accounts"]).ok().out.contains("$3.00"));
    drop(restored);
    for part in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        let _ = std::fs::remove_file(typed.data.join(part));
    }
    // Only who says so has books without any money.
    typed.say(&["init", "--empty-books"]).code(0, "books ");
    let (_running, _) = typed.run();
    typed.say(&["accounts"]).code(0, "no renter has an account");
}

#[test]
fn silent_operators_keep_no_place() {
    let typed = Typed::made();
    let (_running, _) = typed.run();
    let socket = typed.data.join("admin.sock");
    let silent: Vec<_> = (0..200)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    // Sixty-four are served at once, and each is waited for 2 s.
    typed.say(&["status"]).ok();
    drop(silent);
}
