//! The whole program in this process, with somebody at the terminal who answers its questions.

use crate::market::{Broker, Script};
use client_cli::{Environment, Exit, Folders, Input, Output, Surroundings};
use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex, PoisonError};

type Test = Result<(), Box<dyn Error>>;

const IMAGE: &str = concat!(
    "127.0.0.1:1/demo@sha256:",
    "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"
);

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}

/// Somebody with a folder and a terminal without colours.
struct Person {
    folder: tempfile::TempDir,
}

impl Person {
    fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            folder: tempfile::tempdir()?,
        })
    }

    /// Types a command and then these answers: how it ended, the answer, the talk.
    fn types(&self, words: &[&str], answers: &str) -> (Exit, String, String) {
        let (output, talk) = (Sink::default(), Sink::default());
        let surroundings = Surroundings {
            environment: Environment::of(&[("NO_COLOR", "1")], Folders::under(self.folder.path())),
            input: Input::terminal(Box::new(Cursor::new(answers.to_owned()))),
            output: Output::terminal(Box::new(output.clone()), 100),
            talk: Output::terminal(Box::new(talk.clone()), 100),
        };
        let words = ["feira"].iter().chain(words).map(OsString::from);
        (
            client_cli::run(words, surroundings),
            output.text(),
            talk.text(),
        )
    }
}

#[test]
fn the_first_run_asks_for_a_broker_and_a_budget() -> Test {
    let (person, broker) = (Person::new()?, Broker::start(1, Script::default())?);
    let answers = format!("{}\n7.50\n", broker.address);
    let (exit, answer, talk) = person.types(&["init"], &answers);
    assert_eq!(exit, Exit::Done, "{talk}");
    assert!(answer.contains("Renter  r-"), "{answer}");
    assert!(
        talk.contains("key made in") && talk.contains("broker test"),
        "{talk}"
    );
    let config = std::fs::read_to_string(person.folder.path().join("config/config.toml"))?;
    assert!(
        config.contains(&broker.address) && config.contains("\"7.500000\""),
        "{config}"
    );
    // Nothing is asked again: there is no answer to be had.
    assert_eq!(person.types(&["init"], "").0, Exit::Done);
    Ok(())
}

#[test]
fn a_rent_is_previewed_and_needs_a_clear_yes() -> Test {
    let (person, broker) = (Person::new()?, Broker::start(1, Script::default())?);
    assert_eq!(
        person
            .types(&["init", "--yes", "--broker", &broker.address], "")
            .0,
        Exit::Done
    );
    let rent = [
        "rent",
        "gpu=none",
        "--image",
        IMAGE,
        "--budget",
        "3",
        "--name",
        "brave-otter",
    ];
    for answer in ["n\n", "\n", "", "maybe\n"] {
        let (exit, _, talk) = person.types(&rent, answer);
        assert_eq!(exit, Exit::Declined, "{answer:?}: {talk}");
        assert!(
            talk.contains("$0.40 + disk $0.001388 = $0.401388/h"),
            "{talk}"
        );
    }
    assert_eq!(broker.seen(|seen| seen.orders.len()), 0);
    let (exit, answer, talk) = person.types(&rent, "y\n");
    assert_eq!(exit, Exit::Done, "{talk}");
    assert!(
        answer.starts_with("Ready in ") && answer.contains("brave-otter (l-"),
        "{answer}"
    );
    let orders = broker.seen(|seen| seen.orders.clone());
    assert_eq!(orders.len(), 1);
    // What was agreed to is the ceiling, to the micro-dollar.
    assert_eq!(orders[0].price_max.0, 401_388);
    Ok(())
}

#[test]
fn an_end_is_asked_for_by_any_beginning_of_the_name() -> Test {
    let script = Script {
        leases: vec![("calm-heron", protocol::lease::Phase::Running)],
        ..Script::default()
    };
    let (person, broker) = (Person::new()?, Broker::start(1, script)?);
    assert_eq!(
        person
            .types(&["init", "--yes", "--broker", &broker.address], "")
            .0,
        Exit::Done
    );
    let (exit, _, talk) = person.types(&["end", "calm"], "n\n");
    assert_eq!(exit, Exit::Declined);
    assert!(
        talk.contains("calm-heron (l-") && talk.contains("will be deleted"),
        "{talk}"
    );
    assert_eq!(broker.seen(|seen| seen.commands.len()), 0);
    assert_eq!(person.types(&["end", "calm"], "y\n").0, Exit::Done);
    assert_eq!(broker.seen(|seen| seen.commands.len()), 1);
    Ok(())
}
