//! The rules that read a file as lines and words.
//!
//! Must not parse Rust; what takes a syntax tree is in `purity`.

use super::{Source, Violation};

const FILE_LINES_MAX: usize = 400;
const MAIN_LINES_MAX: usize = 60;

/// Names that say nothing about what is in the file.
const EMPTY_NAMES: [&str; 8] = [
    "util", "utils", "helper", "helpers", "common", "misc", "manager", "types",
];

/// Marks of work left over. Written in halves, so that this file is not one of them.
const UNFINISHED: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
];

/// Folders that exist only where the code was first written.
const WORKPLACE: [&str; 1] = [concat!("/wo", "rk/")];

/// Who must not know whom: a folder of members, and the members that no manifest in it may name.
const STRANGERS: [(&str, &[&str]); 4] = [
    (
        "protocol",
        &[
            "broker",
            "host-agent",
            "client-cli",
            "host-nvml",
            "measure",
            "gpu-bench",
            "gpu-health",
            "vk-compute",
            "prover",
        ],
    ),
    ("broker", &["host-agent", "client-cli"]),
    ("host-agent", &["broker", "client-cli"]),
    ("client-cli", &["broker", "host-agent"]),
];

/// A file fits in a few screens, or it does more than one thing.
pub(super) fn file_length(source: &Source) -> Vec<Violation> {
    let lines = source.text.lines().count();
    if source.is_rust() && lines > FILE_LINES_MAX {
        return vec![source.violation(format!("{lines} lines, at most {FILE_LINES_MAX}"))];
    }
    Vec::new()
}

/// A program's `main` reads its arguments and starts the rest.
pub(super) fn main_length(source: &Source) -> Vec<Violation> {
    let lines = source.text.lines().count();
    if source.path.ends_with("src/main.rs") && lines > MAIN_LINES_MAX {
        return vec![source.violation(format!("{lines} lines, at most {MAIN_LINES_MAX}"))];
    }
    Vec::new()
}

/// A file opens by saying what it is for.
pub(super) fn opening(source: &Source) -> Vec<Violation> {
    let says = source.text.strip_prefix("//! ").is_some_and(|rest| {
        rest.lines()
            .next()
            .is_some_and(|line| line.trim().len() > 10)
    });
    if source.is_rust() && !says {
        return vec![source.violation("does not open with `//!` and what it is for")];
    }
    Vec::new()
}

/// No file or folder of code is called by a name that fits anything.
pub(super) fn names(source: &Source) -> Vec<Violation> {
    if !source.is_rust() {
        return Vec::new();
    }
    source
        .path
        .split('/')
        .map(|part| part.strip_suffix(".rs").unwrap_or(part))
        .filter(|part| EMPTY_NAMES.contains(part))
        .map(|part| source.violation(format!("the name `{part}` says nothing")))
        .collect()
}

/// Nothing is left for later.
pub(super) fn unfinished(source: &Source) -> Vec<Violation> {
    UNFINISHED
        .iter()
        .flat_map(|mark| lines_with(source, |line| has_word(line, mark), mark))
        .collect()
}

/// Nothing tells where or how the code was made.
pub(super) fn workplace(source: &Source) -> Vec<Violation> {
    let mut found: Vec<Violation> = WORKPLACE
        .iter()
        .flat_map(|word| lines_with(source, |line| line.contains(word), word))
        .collect();
    found.extend(lines_with(source, names_an_issue, "the number of an issue"));
    found
}

/// The parts know the protocol and not each other, and features are named in one place.
pub(super) fn dependencies(source: &Source) -> Vec<Violation> {
    // The workspace's own manifest is where versions and features are named.
    let Some(folder) = source.path.strip_suffix("/Cargo.toml") else {
        return Vec::new();
    };
    let member = folder.split('/').next().unwrap_or_default();
    let strangers = STRANGERS
        .iter()
        .find(|(name, _)| *name == member)
        .map_or(&[][..], |(_, strangers)| *strangers);
    let mut in_dependencies = false;
    let mut found = Vec::new();
    for line in source.text.lines().map(str::trim) {
        if line.starts_with('[') {
            in_dependencies = line.contains("dependencies");
        }
        if !in_dependencies {
            continue;
        }
        // `broker.workspace = true`, `broker = …`, `[dependencies.broker]`
        let entry = line
            .split_once("dependencies.")
            .map_or(line, |(_, entry)| entry);
        let name = entry.split(['.', '=', ' ', ']']).next().unwrap_or_default();
        if strangers.contains(&name) {
            found.push(source.violation(format!("{folder} must not depend on {name}")));
        }
        if line.contains("features") && !line.starts_with('#') {
            found.push(source.violation("features are named in the workspace's manifest only"));
        }
    }
    found
}

fn lines_with(source: &Source, breaks: impl Fn(&str) -> bool, what: &str) -> Vec<Violation> {
    source
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| breaks(line))
        .map(|(index, _)| source.violation(format!("line {}: {what}", index + 1)))
        .collect()
}

/// Whether `word` stands in `line` as a word of its own.
fn has_word(line: &str, word: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line.get(..start).and_then(|text| text.chars().next_back());
        let after = line
            .get(start + word.len()..)
            .and_then(|text| text.chars().next());
        !before.is_some_and(is_letter) && !after.is_some_and(is_letter)
    })
}

/// "issue" and a number, with or without a `#`, which means nothing to a reader of the code.
fn names_an_issue(line: &str) -> bool {
    let line = line.to_lowercase();
    line.match_indices("issue ").any(|(start, word)| {
        line.get(start + word.len()..).is_some_and(|rest| {
            rest.trim_start_matches('#')
                .starts_with(|letter: char| letter.is_ascii_digit())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    /// The rule finds the planted text at that path, as many times as said.
    #[track_caller]
    fn check(rule: fn(&Source) -> Vec<Violation>, path: &str, text: &str, times: usize) {
        let found = rule(&planted(path, text));
        assert_eq!(found.len(), times, "{path}: {found:?}");
    }

    #[test]
    fn a_long_file_is_found() {
        check(file_length, "broker/src/a.rs", &"x\n".repeat(401), 1);
        check(file_length, "broker/src/a.rs", &"x\n".repeat(400), 0);
        check(file_length, "README.md", &"x\n".repeat(401), 0);
    }

    #[test]
    fn a_long_main_is_found() {
        check(main_length, "broker/src/main.rs", &"x\n".repeat(61), 1);
        check(main_length, "broker/src/main.rs", &"x\n".repeat(60), 0);
        check(main_length, "broker/src/lib.rs", &"x\n".repeat(61), 0);
    }

    #[test]
    fn a_file_that_says_nothing_about_itself_is_found() {
        check(opening, "broker/src/a.rs", "use std::fmt;\n", 1);
        check(opening, "broker/src/a.rs", "//! placeholder\n", 0);
        check(opening, "broker/src/a.rs", "//! \n//! later\n", 1);
        check(opening, "scripts/a.sh", "set -e\n", 0);
    }

    #[test]
    fn an_empty_name_is_found() {
        check(names, "broker/src/util.rs", "", 1);
        check(names, "broker/src/common/money.rs", "", 1);
        check(names, "broker/src/core/types.rs", "", 1);
        check(names, "broker/src/utility_bill.rs", "", 0);
    }

    #[test]
    fn unfinished_work_is_found() {
        for mark in UNFINISHED {
            check(
                unfinished,
                "broker/src/a.rs",
                &format!("x\n    {mark} later\n"),
                1,
            );
        }
        // The pattern of a temporary file, and a word that only begins like a mark.
        let template = format!("mktemp /tmp/feira.{0}{0}", UNFINISHED[2]);
        check(unfinished, "scripts/a", &template, 0);
        check(
            unfinished,
            "broker/src/a.rs",
            &format!("{}list", UNFINISHED[0]),
            0,
        );
    }

    #[test]
    fn words_of_the_workplace_are_found() {
        check(
            workplace,
            "README.md",
            &format!("see {}main", WORKPLACE[0]),
            1,
        );
        check(workplace, "README.md", &format!("as {} {}", "issue", 12), 1);
        check(workplace, "README.md", &format!("as {} #{}", "Issue", 3), 1);
        check(
            workplace,
            "README.md",
            "cd /workspace/data; issue a receipt",
            0,
        );
    }

    #[test]
    fn a_dependency_on_a_stranger_is_found() {
        let way = |line: &str| format!("[package]\nname = \"x\"\n\n[dev-dependencies]\n{line}\n");
        check(
            dependencies,
            "broker/Cargo.toml",
            &way("host-agent.workspace = true"),
            1,
        );
        check(
            dependencies,
            "host-agent/Cargo.toml",
            &way("broker = { path = \"../broker\" }"),
            1,
        );
        check(
            dependencies,
            "client-cli/Cargo.toml",
            "[dependencies.broker]\npath = \"x\"\n",
            1,
        );
        check(
            dependencies,
            "broker/Cargo.toml",
            &way("protocol.workspace = true"),
            0,
        );
        // A member within a member keeps the same rules.
        check(
            dependencies,
            "host-agent/nvml/Cargo.toml",
            &way("broker.workspace = true"),
            1,
        );
        check(
            dependencies,
            "protocol/audit/Cargo.toml",
            &way("gpu-health.workspace = true"),
            1,
        );
        check(
            dependencies,
            "host-agent/nvml/Cargo.toml",
            &way("protocol-pure.workspace = true"),
            0,
        );
        check(
            dependencies,
            "tests/Cargo.toml",
            &way("broker.workspace = true"),
            0,
        );
        check(
            dependencies,
            "broker/Cargo.toml",
            "[package]\nname = \"broker\"\n",
            0,
        );
    }

    #[test]
    fn a_feature_named_in_a_member_is_found() {
        let text = "[dependencies]\ntokio = { workspace = true, features = [\"io-std\"] }\n";
        check(dependencies, "broker/Cargo.toml", text, 1);
        check(dependencies, "tests/fake-nvml/Cargo.toml", text, 1);
        check(dependencies, "Cargo.toml", text, 0);
    }
}
