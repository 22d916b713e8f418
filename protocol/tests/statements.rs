//! Every type of signed statement, once: two with one name could stand for each other.
#![cfg(test)]

use protocol::lease::{Award, Grant, Refusal, Report};
use protocol::offer::Offer;
use protocol::order::{LeaseCommand, Order};
use protocol::reliability::{Outcome, Standing};
use protocol::signed::Statement;
use protocol::tunnel::TunnelRequest;
use protocol::usage::{AccountStatement, Receipt};
use protocol::verify::Verdict;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const TYPES: [&str; 13] = [
    Offer::TYPE,
    Order::TYPE,
    LeaseCommand::TYPE,
    Award::TYPE,
    Grant::TYPE,
    Refusal::TYPE,
    Report::TYPE,
    Receipt::TYPE,
    AccountStatement::TYPE,
    TunnelRequest::TYPE,
    Outcome::TYPE,
    Standing::TYPE,
    Verdict::TYPE,
];

#[test]
fn no_two_statements_share_a_name() {
    let names: BTreeSet<&str> = TYPES.into_iter().collect();
    assert_eq!(names.len(), TYPES.len(), "{TYPES:?}");
}

#[test]
fn names_have_a_version_and_fit_the_envelope() {
    for name in TYPES {
        let (word, version) = name.split_once("/v").unwrap();
        let is_word = word
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        assert!(
            is_word && !word.is_empty() && version.parse::<u16>().is_ok(),
            "{name}"
        );
        assert!(name.len() < 256, "{name}");
    }
}

/// The program's own source, so that a statement cannot be added and not listed.
#[test]
fn every_statement_of_the_source_is_listed() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeSet::new();
    for file in rust_files(&source) {
        let text = std::fs::read_to_string(&file).unwrap();
        let names = text.lines().filter_map(|line| {
            line.trim()
                .strip_prefix("const TYPE: &'static str = \"")?
                .strip_suffix("\";")
        });
        found.extend(
            names
                .filter(|name| !name.starts_with("test-"))
                .map(str::to_owned),
        );
    }
    let listed: BTreeSet<String> = TYPES.into_iter().map(str::to_owned).collect();
    assert_eq!(found, listed);
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
