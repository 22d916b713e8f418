//! Which broker keeps which lease, remembered so that entering a lease waits for its broker alone.
//!
//! It may be lost or wrong at any time: whoever uses it asks the broker, and asks all brokers when that does
//! not help.

use crate::view::Held;
use protocol::ids::{BrokerId, LeaseId};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Leases that are remembered; the oldest go first.
const KEPT: usize = 256;

/// One remembered lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    lease: String,
    name: String,
    broker: String,
}

/// The file.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    path: PathBuf,
}

impl Cache {
    /// In this folder.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self {
            path: folder.join("leases.json"),
        }
    }

    /// The broker of the lease of exactly this name or id, if it is remembered and the only one.
    pub(crate) fn broker_of(&self, typed: &str) -> Option<BrokerId> {
        let entries = self.entries();
        let mut matching = entries
            .iter()
            .filter(|entry| entry.name == typed || entry.lease == typed);
        let first = matching.next()?;
        if matching.any(|other| other.broker != first.broker) {
            return None;
        }
        first.broker.parse().ok()
    }

    /// Remembers open leases, and forgets those that are over.
    pub(crate) fn remember(&self, leases: &[Held]) {
        let before = self.entries();
        let is_known = |entry: &Entry, id: LeaseId| entry.lease == id.to_string();
        let mut entries: Vec<Entry> = leases
            .iter()
            .filter(|held| held.view.phase.is_open())
            .map(|held| Entry {
                lease: held.view.id.to_string(),
                name: held.view.name.to_string(),
                broker: held.broker.to_string(),
            })
            .collect();
        let others = before
            .iter()
            .filter(|old| !leases.iter().any(|new| is_known(old, new.view.id)));
        entries.extend(others.cloned());
        entries.truncate(KEPT);
        if entries != before {
            // What cannot be remembered is asked again.
            let _ = self.write(&entries);
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn write(&self, entries: &[Entry]) -> std::io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        // Two runs at once each put a whole file in its place.
        let new = self
            .path
            .with_extension(format!("{}.new", std::process::id()));
        fs::write(&new, serde_json::to_string(entries)?)?;
        fs::rename(&new, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::lease;
    use protocol::lease::{EndCause, Phase};

    #[test]
    fn open_leases_are_remembered_and_those_that_are_over_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path());
        assert_eq!(cache.broker_of("brave-otter"), None);
        let open = lease(1, "brave-otter", Phase::Running);
        cache.remember(std::slice::from_ref(&open));
        assert_eq!(cache.broker_of("brave-otter"), Some(open.broker));
        assert_eq!(
            cache.broker_of(&open.view.id.to_string()),
            Some(open.broker)
        );
        assert_eq!(cache.broker_of("brave"), None);
        cache.remember(&[lease(2, "calm-heron", Phase::Running)]);
        assert_eq!(cache.broker_of("brave-otter"), Some(open.broker));
        cache.remember(&[lease(1, "brave-otter", Phase::Closed(EndCause::Renter))]);
        assert_eq!(cache.broker_of("brave-otter"), None);
    }

    #[test]
    fn a_name_with_two_brokers_and_a_broken_file_mean_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path());
        let mut elsewhere = lease(2, "brave-otter", Phase::Running);
        elsewhere.broker = BrokerId::from_bytes([6; 32]);
        cache.remember(&[lease(1, "brave-otter", Phase::Running), elsewhere]);
        assert_eq!(cache.broker_of("brave-otter"), None);
        fs::write(folder.path().join("leases.json"), "{\"half").unwrap();
        assert_eq!(cache.broker_of("brave-otter"), None);
    }
}
