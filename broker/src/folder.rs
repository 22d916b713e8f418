//! The broker's data folder: what lies where in it. Must not open any of it.

use std::path::{Path, PathBuf};

/// A broker's data folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at `path`, whether it is there or not.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The broker's key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.path.join("identity.key")
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.path.join("broker.toml")
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.db")
    }

    /// A file that is as old as the last backup.
    #[must_use]
    pub fn last_backup(&self) -> PathBuf {
        self.path.join("last-backup")
    }

    /// The operator's socket, unless the settings name another place.
    #[must_use]
    pub fn admin_socket(&self) -> PathBuf {
        self.path.join("admin.sock")
    }
}
