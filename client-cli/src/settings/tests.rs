//! What flags, environment and file mean together.

use super::*;
use clap::Parser;

const ONE: &str =
    "/ip4/127.0.0.1/tcp/7700/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp";
const OTHER: &str =
    "/ip4/127.0.0.1/tcp/7701/p2p/12D3KooWHdiAxVd8uMQR1hGWXccidmfCwLqcMpGwR6QcTP6QRMuD";

fn settings(words: &[&str], variables: &[(&str, &str)], file: &str) -> Result<Settings, Failure> {
    let folder = tempfile::tempdir().unwrap();
    let folders = Folders::under(folder.path());
    std::fs::create_dir_all(&folders.config).unwrap();
    std::fs::write(folders.config.join("config.toml"), file).unwrap();
    let everywhere = crate::args::Arguments::try_parse_from(words)
        .unwrap()
        .everywhere;
    Settings::resolve(&everywhere, &Environment::of(variables, folders), true)
}

fn first_broker(words: &[&str], variables: &[(&str, &str)], file: &str) -> String {
    settings(words, variables, file).unwrap().brokers[0].addresses[0].to_string()
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file() {
    let file = format!("brokers = [\"{ONE}\"]");
    assert_eq!(first_broker(&["feira", "ls"], &[], &file), ONE);
    assert_eq!(
        first_broker(&["feira", "ls"], &[("FEIRA_BROKER", OTHER)], &file),
        OTHER
    );
    let flag = ["feira", "ls", "--broker", ONE];
    assert_eq!(first_broker(&flag, &[("FEIRA_BROKER", OTHER)], &file), ONE);
}

#[test]
fn addresses_of_one_broker_are_one_broker() {
    let quic = ONE.replace("tcp/7700", "udp/7700/quic-v1");
    let listed = format!("{ONE},{OTHER},{quic},{ONE}");
    let brokers = settings(&["feira", "ls"], &[("FEIRA_BROKER", &listed)], "")
        .unwrap()
        .brokers;
    let counts: Vec<_> = brokers
        .iter()
        .map(|broker| broker.addresses.len())
        .collect();
    assert_eq!(counts, [2, 1]);
}

#[test]
fn an_address_without_a_key_is_refused_where_it_came_from() {
    let variables = [("FEIRA_BROKER", "/ip4/1.2.3.4/tcp/1")];
    let failure = settings(&["feira", "ls"], &variables, "").unwrap_err();
    assert_eq!(failure.code(), Code::BadEnvironment);
    assert!(failure.what().starts_with("FEIRA_BROKER: "), "{failure:?}");
    let file = settings(&["feira", "ls"], &[], "brokers = [\"nonsense\"]").unwrap_err();
    assert_eq!(file.code(), Code::BadConfig);
}

#[test]
fn nobody_is_asked_in_a_pipeline() {
    assert!(settings(&["feira", "ls"], &[], "").unwrap().may_ask);
    assert!(
        !settings(&["feira", "ls"], &[("CI", "true")], "")
            .unwrap()
            .may_ask
    );
    assert!(
        !settings(&["feira", "ls"], &[("FEIRA_NO_INPUT", "1")], "")
            .unwrap()
            .may_ask
    );
    assert!(
        !settings(&["feira", "ls", "--no-input"], &[], "")
            .unwrap()
            .may_ask
    );
}

#[test]
fn the_key_is_where_flag_environment_or_file_say() {
    let key = |words: &[&str], variables: &[(&str, &str)]| {
        settings(words, variables, "key = \"/file\"")
            .unwrap()
            .key
            .display()
            .to_string()
    };
    assert_eq!(key(&["feira", "ls"], &[]), "/file");
    assert_eq!(key(&["feira", "ls"], &[("FEIRA_KEY", "/env")]), "/env");
    assert_eq!(
        key(&["feira", "ls", "--key", "/flag"], &[("FEIRA_KEY", "/env")]),
        "/flag"
    );
    let plain = settings(&["feira", "ls"], &[], "").unwrap();
    assert!(plain.key.ends_with("data/keys/default"), "{:?}", plain.key);
}

#[test]
fn colours_follow_flag_variables_and_stream() {
    let colour = |words: &[&str], variables: &[(&str, &str)], terminal: bool| {
        let environment = Environment::of(variables, Folders::under("/x".as_ref()));
        let everywhere = crate::args::Arguments::try_parse_from(words)
            .unwrap()
            .everywhere;
        Appearance::of(&everywhere, &environment)
            .unwrap()
            .colour(&environment, terminal)
    };
    let plain = ["feira", "ls"];
    assert!(colour(&plain, &[], true));
    assert!(!colour(&plain, &[], false));
    assert!(!colour(&plain, &[("NO_COLOR", "1")], true));
    assert!(colour(&plain, &[("NO_COLOR", "")], true));
    assert!(!colour(&plain, &[("TERM", "dumb")], true));
    assert!(colour(&plain, &[("CLICOLOR_FORCE", "1")], false));
    assert!(!colour(&plain, &[("FORCE_COLOR", "0")], false));
    assert!(!colour(&plain, &[("FEIRA_COLOR", "never")], true));
    assert!(colour(
        &["feira", "ls", "--color", "always"],
        &[("NO_COLOR", "1")],
        false
    ));
}

#[test]
fn a_form_that_does_not_exist_is_refused() {
    let environment = Environment::of(&[("FEIRA_OUTPUT", "yaml")], Folders::under("/x".as_ref()));
    let everywhere = crate::args::Arguments::try_parse_from(["feira", "ls"])
        .unwrap()
        .everywhere;
    let failure = Appearance::of(&everywhere, &environment).unwrap_err();
    let wanted = "FEIRA_OUTPUT is 'yaml'; it can be table, wide, json, ndjson, tsv, id";
    assert_eq!(failure.what(), wanted);
}
