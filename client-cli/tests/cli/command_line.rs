//! The built program without any broker: what it refuses, in which words and with which exit code.

use crate::program::{Home, Ran};
use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;

type Test = Result<(), Box<dyn Error>>;

/// Nobody listens on port 1.
const NOBODY: &str =
    "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp";

/// What is typed, the exit code, and what is said on stderr.
const REFUSALS: &[(&[&str], i32, &[&str])] = &[
    (&[], 2, &["Usage: feira"]),
    (&["nosuch"], 2, &["unrecognized subcommand 'nosuch'"]),
    (&["serach"], 2, &["'search'"]),
    (&["ls", "--jsn"], 2, &["--json"]),
    (
        &["ls"],
        2,
        &["E0103", "no broker is configured", "feira init --broker"],
    ),
    (
        &["ls", "--broker", "nonsense"],
        2,
        &["E0203", "--broker", "/p2p/"],
    ),
    (
        &["ls", "--broker", NOBODY],
        8,
        &[
            "E0801",
            "no broker answers",
            NOBODY,
            ": connection refused\n  help: feira doctor",
        ],
    ),
    (
        &["create", "instance", "24494820", "--image", "x"],
        2,
        &["Vast's word for: feira rent"],
    ),
    (&["ps"], 2, &["E0209", "Docker's word for: feira ls"]),
    (
        &["end", "brave-otter"],
        2,
        &["E0204", "needs a yes", "feira end brave-otter --yes"],
    ),
    (&["rent"], 2, &["--image"]),
    (
        &["rent", "--image", "debian", "o-7k3f"],
        2,
        &["E0204", "--yes"],
    ),
    (
        &["rent", "--image", "debian", "num_gpus=1", "--yes"],
        2,
        &["E0205", "--max-price"],
    ),
    (
        &["rent", "--image", "debian", "o-7k3f", "--yes"],
        2,
        &["E0206", "--budget"],
    ),
    (
        &["rent", "--image", "debian", "--yes"],
        2,
        &["E0203", "say what to rent"],
    ),
    (
        &["rent", "o-7k3f", "--image", "UPPER"],
        2,
        &["E0208", "UPPER"],
    ),
    (&["rent", "o-7k3f", "--image", "x", "--name", "-x"], 2, &[]),
    (
        &["rent", "o-7k3f", "--image", "x", "--name", "A b"],
        2,
        &["E0203", "cannot name a lease"],
    ),
    (
        &["rent", "o-7k3f", "--image", "x", "--name", "l-abcd"],
        2,
        &["E0203", "'l-abcd' cannot name a lease"],
    ),
    (
        &["rent", "o-7k3f", "--image", "x", "--name", "verify"],
        2,
        &["E0203", "'verify' cannot name a lease"],
    ),
    (
        &["rent", "o-7k3f", "--image", "x", "--max-hours", "0"],
        2,
        &["--max-hours", "'0' is not a whole number from 1 to 87600"],
    ),
    (
        &["rent", "o-7k3f", "--image", "x", "-e", "LD_PRELOAD=/x"],
        2,
        &["--env", "LD_PRELOAD=/x", "it is the host's"],
    ),
    (
        &["rent", "o-7k3f", "--image", "x", "--entrypoint", "a\nb"],
        2,
        &["E0203", "--entrypoint: no program has such a name"],
    ),
    (&["ssh", "x"], 2, &["E0209", "use: feira shell NAME"]),
    (&["deposit", "5"], 2, &["E0209", "feira balance"]),
    (
        &["receipt", "--verify", "/dev/zero"],
        2,
        &["E0651", "/dev/zero is a device, not a file"],
    ),
    (
        &["rent", "o-7k3f", "--image", "x", "--for", "90"],
        2,
        &["90s, 30m"],
    ),
    (
        &["rent", "o-7k3f", "--image", "x", "--budget", "1e3"],
        2,
        &["'1e3' is not an amount"],
    ),
    (
        &["rent", "o-7k3f", "--image", "x", "-e", "1A=2"],
        2,
        &["NAME=value"],
    ),
    (&["search", "dph_totl<0.3"], 2, &["E0201", "dph_total"]),
    (&["search", "--kind", "spot"], 2, &["--kind", "spot"]),
    (&["search", "--upload", "-1"], 2, &["--upload"]),
    (
        &["search", "--reliability", "101"],
        2,
        &["a percentage is from 0 to 100"],
    ),
    (
        &["rent", "o-7k3f", "--image", "x", "--bid=-0.2"],
        2,
        &["--bid", "a price is dollars an hour, more than 0"],
    ),
    (
        &["rent", "o-7k3f", "--image", "x", "--interruptible", "0"],
        2,
        &["--interruptible", "more than 0"],
    ),
    (
        &["rent", "o-7k3f", "--image", "x", "--bid", "NaN"],
        2,
        &["--bid", "at most 1000000"],
    ),
    (
        &["bid", "o-7k3f", "--image", "x", "--max-price", "1e400"],
        2,
        &["--max-price", "at most 1000000"],
    ),
    (&["bid", "o-7k3f", "--image", "x"], 2, &["--max-price"]),
    (&["bid", "set", "brave-otter"], 2, &["--max-price"]),
    (
        &["rent", "o-7k3f", "--image", "x", "--reserve", "0"],
        2,
        &["--reserve", "from 1 to 365"],
    ),
    (
        &["rent", "o-7k3f", "--image", "x", "--reserve", "366"],
        2,
        &["--reserve", "from 1 to 365, like 30", "prepay another"],
    ),
    (
        &["rent", "o-7k3f", "--image", "x", "--gpus", "-1"],
        2,
        &["--gpus"],
    ),
    (
        &["rent", "o-7k3f", "--image", "x", "--cpus", "0"],
        2,
        &["--cpus", "more than 0"],
    ),
    (
        &[
            "rent",
            "o-7k3f",
            "--image",
            "x",
            "--bid",
            "0.2",
            "--interruptible",
            "0.2",
        ],
        2,
        &["cannot be used with"],
    ),
    (
        &[
            "rent", "o-7k3f", "--image", "x", "--yes", "--bid", "0.2", "--for", "366d",
        ],
        2,
        &["E0203", "waits for 365d"],
    ),
    (
        &[
            "bid",
            "o-7k3f",
            "--image",
            "x",
            "--max-price",
            "0.4",
            "--fallback",
            "0.3",
            "--yes",
        ],
        2,
        &["E0203", "the fallback of $0.30/h is less than the bid"],
    ),
    (
        &["convert", "brave-otter", "spot"],
        2,
        &["invalid value 'spot'"],
    ),
    (
        &["convert", "brave-otter", "interruptible", "--yes"],
        2,
        &["E0203", "needs your bid: --price"],
    ),
    (
        &["convert", "brave-otter", "on-demand"],
        2,
        &["E0204", "--yes"],
    ),
    (
        &["receipt", "verify", "/nonexistent/r.json"],
        3,
        &["E0303", "/nonexistent/r.json"],
    ),
    (&["help", "nosuch"], 2, &["E0210"]),
    (&["help", "E0307"], 0, &[]),
];

#[track_caller]
fn check(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    for word in words {
        assert!(ran.errors.contains(word), "'{word}' is not in {ran:#?}");
    }
    assert!(
        !ran.errors.contains('\u{1b}'),
        "colours in a pipe: {ran:#?}"
    );
}

#[test]
fn each_refusal_has_its_code_and_says_what_to_do() -> Test {
    let home = Home::with_key()?;
    for (words, code, said) in REFUSALS {
        check(&home.run(words)?, *code, said);
    }
    Ok(())
}

#[test]
fn without_a_key_nothing_is_asked_of_anybody() -> Test {
    let home = Home::new()?;
    check(
        &home.run(&["ls", "--broker", NOBODY])?,
        4,
        &["E0401", "feira init"],
    );
    check(&home.run(&["doctor"])?, 1, &[]);
    Ok(())
}

#[test]
fn a_key_that_others_can_read_is_refused_with_the_command_that_mends_it() -> Test {
    let home = Home::with_key()?;
    let key = home.path("data/feira/keys/default");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644))?;
    let mends = format!("chmod 0600 {}", key.display());
    check(
        &home.run(&["ls", "--broker", NOBODY])?,
        4,
        &["E0402", "0644", &mends],
    );
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
    let folder = home.path("data/feira/keys");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
    let mends = format!("chmod 0700 {}", folder.display());
    check(
        &home.run(&["ls", "--broker", NOBODY])?,
        4,
        &["E0402", "0755", &mends],
    );
    Ok(())
}

#[test]
fn a_configuration_that_cannot_be_used_names_line_and_key() -> Test {
    let home = Home::with_key()?;
    fs::create_dir_all(home.path("config/feira"))?;
    let cases = [
        ("brokers = []\nbudget = 3\n", "line 2 (budget = 3)"),
        ("brokers = [\n", "config.toml, line"),
        (
            "brokers = []\n[limits]\nbudget_usd = 1.5\n",
            "line 3 (budget_usd = 1.5)",
        ),
        ("brokers = [\"/ip4/1.2.3.4/tcp/7700\"]\n", "/p2p/"),
    ];
    for (text, said) in cases {
        fs::write(home.path("config/feira/config.toml"), text)?;
        check(&home.run(&["ls"])?, 2, &["E0101", said]);
    }
    Ok(())
}

#[test]
fn init_is_safe_to_run_again() -> Test {
    let home = Home::new()?;
    let first = home.run(&["init", "--yes", "--json"])?;
    check(&first, 0, &["key made in"]);
    let key = fs::read(home.path("data/feira/keys/default"))?;
    let second = home.run(&["init", "--yes", "--json", "--broker", NOBODY])?;
    check(&second, 0, &["key is there", "does not answer"]);
    assert_eq!(fs::read(home.path("data/feira/keys/default"))?, key);
    let document = second.json()?;
    assert_eq!(document["renter"], first.json()?["renter"]);
    assert_eq!(document["brokers"][0], NOBODY);
    assert_eq!(document["budget_usd"], "10.000000");
    // What was configured stays when it is not named again, and changes when it is.
    let third = home
        .run(&["init", "--yes", "--json", "--budget", "3"])?
        .json()?;
    assert_eq!(
        (&third["brokers"][0], &third["budget_usd"]),
        (&NOBODY.into(), &"3.000000".into())
    );
    Ok(())
}

#[test]
fn programs_get_failures_as_objects() -> Test {
    let home = Home::with_key()?;
    for words in [
        ["end", "brave-otter", "--json"],
        ["ps", "-o", "json"],
        ["ls", "--jsn", "--json"],
    ] {
        let ran = home.run(&words)?;
        let problem: serde_json::Value = serde_json::from_str(&ran.errors)?;
        assert_eq!(problem["exit"], 2, "{ran:?}");
        assert!(
            problem["code"]
                .as_str()
                .is_some_and(|code| code.starts_with("E0")),
            "{ran:?}"
        );
        assert_eq!(ran.answer, "");
    }
    Ok(())
}

#[test]
fn help_and_version_are_answers() -> Test {
    let home = Home::new()?;
    let version = home.run(&["--version"])?;
    assert_eq!(
        version.answer,
        format!("feira {}\n", env!("CARGO_PKG_VERSION"))
    );
    for topic in [
        "errors",
        "exit-codes",
        "environment",
        "fields",
        "agents",
        "rent",
        "E0402",
    ] {
        let ran = home.run(&["help", topic])?;
        assert_eq!((ran.code, ran.errors.as_str()), (Some(0), ""), "{topic}");
        assert!(ran.answer.len() > 100, "{topic}: {}", ran.answer);
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            home.run(&["completions", shell])?.answer.contains("feira"),
            "{shell}"
        );
    }
    Ok(())
}

#[test]
fn a_reader_that_goes_away_is_no_failure() -> Test {
    let home = Home::new()?;
    let ran = home.run_closed(&["help", "errors"])?;
    assert_eq!((ran.code, ran.errors.as_str()), (Some(0), ""), "{ran:?}");
    Ok(())
}
