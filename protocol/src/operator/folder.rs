//! A data folder: what lies where in it. Must not open any of it.

use super::Program;
use std::path::{Path, PathBuf};

/// The data folder of a broker or a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
    settings: &'static str,
}

impl Folder {
    /// The folder of `program` at `path`, whether it is there or not.
    #[must_use]
    pub fn new(program: &Program, path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            settings: program.settings,
        }
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.path.join("identity.key")
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.path.join(self.settings)
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.db")
    }

    /// The local socket, unless the settings name another place.
    #[must_use]
    pub fn admin_socket(&self) -> PathBuf {
        self.path.join("admin.sock")
    }
}
