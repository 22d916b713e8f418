//! Rules of the code that no lint knows: how long a file may be, what a pure module may name, who
//! may depend on whom, which words may stand in the sources.
//!
//! Each rule is a function from the sources to what breaks it, and has a test that plants a
//! violation and wants it found. Must not judge the style of single lines; the lints do that.

mod purity;
mod rules;

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::Path;

/// One file of the workspace.
#[derive(Debug)]
struct Source {
    /// Relative to the root of the workspace, with `/` between its parts.
    path: String,
    text: String,
}

/// Where a rule is broken, and how.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    path: String,
    what: String,
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn violation(&self, what: impl Into<String>) -> Violation {
        Violation {
            path: self.path.clone(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.what)
    }
}

type Rule = fn(&Source) -> Vec<Violation>;

const RULES: [Rule; 8] = [
    rules::file_length,
    rules::main_length,
    rules::opening,
    rules::names,
    rules::unfinished,
    rules::workplace,
    rules::dependencies,
    purity::pure_modules,
];

/// Folders that hold no source of ours.
const SKIPPED_FOLDERS: [&str; 3] = ["target", ".git", "node_modules"];

#[test]
fn the_workspace_keeps_its_rules() -> Result<(), Box<dyn Error>> {
    let sources = workspace()?;
    assert!(
        sources
            .iter()
            .any(|source| source.path == "protocol/src/lib.rs"),
        "wrong folder"
    );
    let found: Vec<String> = sources
        .iter()
        .flat_map(|source| RULES.iter().flat_map(move |rule| rule(source)))
        .map(|violation| violation.to_string())
        .collect();
    assert!(
        found.is_empty(),
        "{} rules broken:\n{}",
        found.len(),
        found.join("\n")
    );
    Ok(())
}

/// All text files of the workspace that people write.
fn workspace() -> Result<Vec<Source>, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or("no workspace above")?;
    let mut sources = Vec::new();
    collect(root, root, &mut sources)?;
    Ok(sources)
}

fn collect(root: &Path, folder: &Path, sources: &mut Vec<Source>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or("a name not in UTF-8")?;
        if path.is_dir() {
            if !SKIPPED_FOLDERS.contains(&name) {
                collect(root, &path, sources)?;
            }
        } else if is_written_by_people(&path) {
            let relative = path
                .strip_prefix(root)?
                .to_str()
                .ok_or("a path not in UTF-8")?;
            sources.push(Source {
                path: relative.to_owned(),
                text: fs::read_to_string(&path)?,
            });
        }
    }
    Ok(())
}

/// Rust, manifests, documents, units, and scripts, which have no extension.
fn is_written_by_people(path: &Path) -> bool {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs" | "toml" | "md" | "sh" | "service") => true,
        Some(_) => false,
        None => path
            .parent()
            .and_then(|parent| parent.file_name())
            .is_some_and(|folder| folder == "scripts" || folder == ".ci"),
    }
}

/// A file as a rule's test plants it.
#[cfg(test)]
fn planted(path: &str, text: &str) -> Source {
    Source {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}
