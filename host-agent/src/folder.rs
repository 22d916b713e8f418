//! The host's data folder: what lies where in it. It opens none of it.

use std::path::{Path, PathBuf};

/// A host's data folder.
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

    /// The host's key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.path.join("identity.key")
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.path.join("host.toml")
    }

    /// The owner's socket, unless the settings name another place.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.path.join(crate::agent::SOCKET_NAME)
    }
}
