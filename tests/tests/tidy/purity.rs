//! The rule that pure modules stay pure: no socket, file, clock, environment, task or lock in a
//! `core/` folder, in the protocol, its `net/` and `operator/` aside, or in a crate of rules alone.
//!
//! It reads the syntax tree, so that a comment may name what the code may not. Must not follow
//! types across files: a pure module that calls an impure one is stopped by that one's rule.

use syn::visit::{self, Visit};

use super::{Source, Violation};

/// The parts of the protocol that are not pure, each behind a feature of its own.
const IMPURE_ROOMS: [&str; 2] = ["protocol/src/net/", "protocol/src/operator/"];

/// Crates that are rules and nothing else.
const PURE_CRATES: [&str; 4] = [
    "protocol/src/",
    "protocol/mig/src/",
    "protocol/audit/src/",
    "host-agent/health/src/",
];

/// Paths that no pure module names, as the segments in a row that give them away.
const IMPURE: [&[&str]; 18] = [
    &["std", "fs"],
    &["std", "env"],
    &["std", "thread"],
    &["std", "process"],
    &["std", "os"],
    &["time", "Instant"],
    &["time", "SystemTime"],
    &["tokio"],
    &["rusqlite"],
    &["bollard"],
    &["axum"],
    &["Mutex"],
    &["RwLock"],
    &["Instant", "now"],
    &["SystemTime", "now"],
    &["OsRng"],
    &["SysRng"],
    &["rand", "rng"],
];

/// Of `std::net`, addresses are plain values; all else opens sockets.
const NETWORK_VALUES: [&str; 6] = [
    "IpAddr",
    "Ipv4Addr",
    "Ipv6Addr",
    "SocketAddr",
    "SocketAddrV4",
    "SocketAddrV6",
];

/// Pure modules name nothing that reads or changes the world.
pub(super) fn pure_modules(source: &Source) -> Vec<Violation> {
    if !is_pure(&source.path) {
        return Vec::new();
    }
    let file = match syn::parse_file(&source.text) {
        Ok(file) => file,
        Err(error) => return vec![source.violation(format!("does not parse: {error}"))],
    };
    let mut names = Names::default();
    names.visit_file(&file);
    let mut found: Vec<String> = names
        .paths
        .iter()
        .filter_map(|path| impurity(path))
        .collect();
    found.sort();
    found.dedup();
    found
        .into_iter()
        .map(|name| source.violation(format!("is pure and uses {name}")))
        .collect()
}

fn is_pure(path: &str) -> bool {
    let core = path.contains("/src/core/") || path.ends_with("/src/core.rs");
    let rules = PURE_CRATES.iter().any(|root| path.starts_with(root))
        && !IMPURE_ROOMS.iter().any(|room| path.starts_with(room));
    // Modules that only a test build has.
    let test = path.ends_with("/tests.rs") || path.contains("/tests/");
    path.ends_with(".rs") && (core || rules) && !test
}

/// What about this path is impure, if anything.
fn impurity(path: &[String]) -> Option<String> {
    let starts = |at: usize, names: &[&str]| {
        names
            .iter()
            .enumerate()
            .all(|(step, name)| path.get(at + step).is_some_and(|s| s == name))
    };
    let banned = IMPURE
        .iter()
        .any(|names| (0..path.len()).any(|at| starts(at, names)));
    let socket = starts(0, &["std", "net"])
        && !path
            .get(2)
            .is_some_and(|name| NETWORK_VALUES.contains(&name.as_str()));
    (banned || socket).then(|| path.join("::"))
}

/// Every path that a file names outside its tests.
#[derive(Default)]
struct Names {
    paths: Vec<Vec<String>>,
}

impl Names {
    /// Adds each leaf of `use a::{b, c::d}` as a path of its own.
    fn add_tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| {
            let mut path = before.to_vec();
            path.push(name.to_string());
            path
        };
        match tree {
            syn::UseTree::Path(path) => self.add_tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.paths.push(with(&name.ident)),
            syn::UseTree::Rename(rename) => self.paths.push(with(&rename.ident)),
            syn::UseTree::Glob(_) => self.paths.push(before.to_vec()),
            syn::UseTree::Group(group) => {
                for item in &group.items {
                    self.add_tree(before, item);
                }
            }
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.add_tree(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.paths.push(
            path.segments
                .iter()
                .map(|segment| segment.ident.to_string())
                .collect(),
        );
        visit::visit_path(self, path);
    }

    /// The arguments of a macro are tokens, not a tree: each run of names joined by `::` counts.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let text = call.tokens.to_string().replace(" :: ", "::");
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
        for run in text
            .split(|letter| !is_part(letter))
            .filter(|run| !run.is_empty())
        {
            self.paths
                .push(run.split("::").map(str::to_owned).collect());
        }
        visit::visit_macro(self, call);
    }
}

/// Whether an item is there only in a test build: `#[cfg(test)]` or `#[test]`.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        syn::Meta::NameValue(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, wanted: &[&str]) {
        let found: Vec<String> = pure_modules(&planted(path, text))
            .into_iter()
            .map(|violation| violation.what)
            .collect();
        let wanted: Vec<String> = wanted
            .iter()
            .map(|name| format!("is pure and uses {name}"))
            .collect();
        assert_eq!(found, wanted, "{path}");
    }

    #[test]
    fn each_impurity_is_found_in_a_core() {
        let path = "broker/src/core/market.rs";
        check(path, "use std::fs;", &["std::fs"]);
        check(
            path,
            "use std::{fmt, net::{IpAddr, TcpStream}};",
            &["std::net::TcpStream"],
        );
        check(
            path,
            "use std::time::{Duration, Instant};",
            &["std::time::Instant"],
        );
        check(path, "use tokio::sync::mpsc;", &["tokio::sync::mpsc"]);
        check(
            path,
            "struct A { b: std::sync::Mutex<u8> }",
            &["std::sync::Mutex"],
        );
        check(
            path,
            "use std::sync::RwLock as Lock;",
            &["std::sync::RwLock"],
        );
        check(
            path,
            "fn a() { std::thread::sleep(b); }",
            &["std::thread::sleep"],
        );
        check(
            path,
            "fn a() { let b = time::SystemTime::now(); }",
            &["time::SystemTime::now"],
        );
        check(
            path,
            "fn a() { format!(\"{:?}\", std::env::args()); }",
            &["std::env::args"],
        );
        check(path, "use std::net::*;", &["std::net"]);
    }

    #[test]
    fn the_protocol_is_pure_but_for_its_network_and_its_operators() {
        check("protocol/src/codec.rs", "use std::fs;", &["std::fs"]);
        check("protocol/src/net/swarm.rs", "use std::fs;", &[]);
        check("protocol/src/operator/files.rs", "use std::fs;", &[]);
        check("broker/src/store.rs", "use std::fs;", &[]);
    }

    #[test]
    fn crates_of_rules_are_pure_to_the_last_file() {
        for path in [
            "protocol/mig/src/lost.rs",
            "protocol/audit/src/judge.rs",
            "host-agent/health/src/machine.rs",
        ] {
            check(path, "use std::time::Instant;", &["std::time::Instant"]);
        }
        for path in [
            "host-agent/health/src/tests/stage.rs",
            "protocol/mig/tests/plans.rs",
            "host-agent/measure/src/disk.rs",
        ] {
            check(path, "use std::fs;", &[]);
        }
    }

    #[test]
    fn what_only_tests_and_comments_name_is_left_alone() {
        let path = "protocol/src/codec.rs";
        check(path, "// std::fs is not for us\nuse std::net::IpAddr;", &[]);
        check(path, "#[cfg(test)]\nmod tests { use std::fs; }", &[]);
        check(path, "#[test]\nfn a() { std::fs::read(b); }", &[]);
    }
}
