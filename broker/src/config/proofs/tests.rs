//! When proofs are made, and what is said of settings that cannot be.

use crate::config::Config;
use crate::core::proofs::classes::Classes;
use protocol::units::{Bytes, Millis, Seconds};
use std::path::Path;

const IMAGE: &str = "proof_images = [\"registry.example/prover@sha256:0707070707070707070707070707070707070707070707070707070707070707\"]\n";
const CLASS: &str = "proof_classes = [{ name = \"own\", models = [\"Some GPU\"], memory_min_gb = 20, tile_side = 8192, \
     inner = 64, tiles = 3, rounds = 2, audits = 64, fill_max_ms = 5000, pass_max_ms = 700 }]\n";

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(Path::new("broker.toml"), text).map_err(|error| error.to_string())
}

#[track_caller]
fn check_wrong(text: &str, field: &str, says: &str) {
    let message = parse(text).unwrap_err();
    let start = format!("broker.toml, line 1, field `{field}`: ");
    assert!(
        message.starts_with(&start) && message.contains(says),
        "{message}"
    );
}

#[test]
fn proofs_are_off_until_an_image_is_named() {
    assert_eq!(parse("").unwrap().proofs, None);
    assert_eq!(parse(CLASS).unwrap().proofs, None);
    let proofs = parse(IMAGE).unwrap().proofs.unwrap();
    assert_eq!(proofs.images.len(), 1);
    assert_eq!(proofs.rules.every, Seconds(86_400));
    assert_eq!(proofs.rules.stands, Seconds(259_200));
    assert_eq!(proofs.rules.first_within, Seconds(3600));
    assert_eq!((proofs.rules.at_once, proofs.rules.per_hour), (4, 60));
    assert_eq!(proofs.keep, Seconds(2_592_000));
    assert_eq!(proofs.classes, Classes::default());
}

#[test]
fn a_class_of_the_operators_own_is_taken_as_it_is_written() {
    let proofs = parse(&format!("{CLASS}{IMAGE}")).unwrap().proofs.unwrap();
    let class = &proofs.classes.own[0];
    assert_eq!(class.memory_min, Bytes::from_gb(20));
    assert_eq!((class.parameters.tiles, class.parameters.inner), (3, 64));
    assert_eq!(class.parameters.pass_max, Millis(700));
}

#[test]
fn what_cannot_be_is_named() {
    check_wrong(
        "proof_images = [\"prover:1\"]\n",
        "proof_images",
        "by digest",
    );
    // A proof takes a whole GPU: never more than one a day.
    check_wrong(
        "proof_every_s = 86399\n",
        "proof_every_s",
        "from 86400 to 2592000",
    );
    check_wrong(
        "proof_every_s = 2592001\n",
        "proof_every_s",
        "from 86400 to 2592000",
    );
    check_wrong(
        "proof_stands_s = 172800\n",
        "proof_stands_s",
        "twice `proof_every_s`",
    );
    assert!(parse("proof_stands_s = 172801\n").is_ok());
    check_wrong(
        "proof_keep_s = 259199\n",
        "proof_keep_s",
        "at least `proof_stands_s`",
    );
    check_wrong(
        "proof_first_within_s = 0\n",
        "proof_first_within_s",
        "from 1 to",
    );
    check_wrong("proofs_at_once = 0\n", "proofs_at_once", "from 1 to 64");
    check_wrong(
        "proofs_per_hour = 3601\n",
        "proofs_per_hour",
        "from 1 to 3600",
    );
    for (from, to, says) in [
        (
            "tile_side = 8192",
            "tile_side = 48",
            "own: the tile's side 48",
        ),
        ("tiles = 3", "tiles = 0", "own: 0 tiles"),
        (
            "pass_max_ms = 700",
            "pass_max_ms = 0",
            "own: times are from 1",
        ),
        ("[\"Some GPU\"]", "[]", "own: no model is of it"),
    ] {
        check_wrong(&CLASS.replace(from, to), "proof_classes", says);
    }
    assert!(parse(&CLASS.replace("tiles", "tyles")).is_err());
}
