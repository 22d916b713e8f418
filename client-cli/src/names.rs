//! Names of leases: two random words, and what a typed name or id means.

use crate::failure::{Code, Failure};
use crate::view::Held;
use protocol::ids::LeaseId;
pub(crate) use protocol::names::of_random;
use protocol::order::is_reserved_name;

/// Fewest characters of a beginning that is taken for the whole.
const PREFIX_MIN: usize = 4;
/// How alike two names must be (0 to 1, Jaro-Winkler) to be suggested for each other.
const SIMILAR: f64 = 0.85;

/// How a lease was named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    /// By its whole name or id.
    Whole,
    /// By a beginning of it.
    Beginning,
}

/// Whether `name` may name a lease.
pub(crate) fn check(name: &str) -> Result<(), Failure> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !begins_well || name.ends_with('-') || name.len() > 63 || !name.chars().all(fits) {
        let what = format!("'{name}' cannot name a lease");
        return Err(Failure::new(Code::BadValue, what).help(
            "a name has lower-case letters, digits and hyphens, begins with a letter, at most 63",
        ));
    }
    if is_reserved_name(name) {
        let what =
            format!("'{name}' cannot name a lease: it could be taken for an id or a command");
        return Err(Failure::new(Code::BadValue, what)
            .help("no single letter and a hyphen at its beginning, no whole id, not 'verify'"));
    }
    Ok(())
}

/// The lease that `typed` means among `leases` (newest first): by whole id, whole name (an open lease before
/// one that is over), or a beginning of at least four characters of either. A whole id means the lease whose
/// id it is, whatever other leases are called.
pub(crate) fn resolve<'a>(typed: &str, leases: &'a [Held]) -> Result<(&'a Held, Match), Failure> {
    if let Some(id) = as_id(typed) {
        return match leases.iter().find(|held| held.view.id == id) {
            Some(found) => Ok((found, Match::Whole)),
            None => Err(not_found(typed, leases)),
        };
    }
    let whole: Vec<&Held> = leases
        .iter()
        .filter(|held| held.view.name.as_str() == typed)
        .collect();
    if let Some(found) = only_or_newest(typed, &whole)? {
        return Ok((found, Match::Whole));
    }
    let begun: Vec<&Held> = leases.iter().filter(|held| begins(typed, held)).collect();
    if let Some(found) = only_or_newest(typed, &begun)? {
        return Ok((found, Match::Beginning));
    }
    Err(not_found(typed, leases))
}

/// The id that was typed, with or without what stands before ids of leases.
fn as_id(typed: &str) -> Option<LeaseId> {
    let lower = typed.to_ascii_lowercase();
    let body = lower.strip_prefix(LeaseId::PREFIX).unwrap_or(&lower);
    format!("{}{body}", LeaseId::PREFIX).parse().ok()
}

fn begins(typed: &str, held: &Held) -> bool {
    let by_name = typed.len() >= PREFIX_MIN && held.view.name.starts_with(typed);
    by_name || held.view.id.begins_with(typed)
}

/// The only open one of `found`; without an open one the newest; an error when several are open.
fn only_or_newest<'a>(typed: &str, found: &[&'a Held]) -> Result<Option<&'a Held>, Failure> {
    let open: Vec<&Held> = found
        .iter()
        .copied()
        .filter(|held| held.view.phase.is_open())
        .collect();
    let candidates = if open.is_empty() {
        same_name(found)
    } else {
        open
    };
    match candidates.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        several => {
            let what = format!("'{typed}' could be {} leases", several.len());
            let lines = several.iter().take(8);
            Err(
                lines.fold(Failure::new(Code::Ambiguous, what), |failure, held| {
                    failure.help(format!("{}  {}", held.view.id, held.view.name))
                }),
            )
        }
    }
}

/// Of leases that are over, those of one name are the newest of them; others stay.
fn same_name<'a>(found: &[&'a Held]) -> Vec<&'a Held> {
    let mut kept: Vec<&Held> = Vec::new();
    for held in found {
        if !kept.iter().any(|newer| newer.view.name == held.view.name) {
            kept.push(held);
        }
    }
    kept
}

fn not_found(typed: &str, leases: &[Held]) -> Failure {
    let failure = Failure::new(Code::NoSuchLease, format!("no lease named '{typed}'"));
    let score = |held: &&Held| strsim::jaro_winkler(typed, &held.view.name);
    let best = leases.iter().max_by(|a, b| score(a).total_cmp(&score(b)));
    match best.filter(|held| score(held) >= SIMILAR) {
        Some(held) => failure.help(format!(
            "a lease with a similar name is {}: '{}'",
            held.view.phase.word(),
            held.view.name
        )),
        None => failure.help("see all: feira ls --all"),
    }
}

#[cfg(test)]
mod tests;
