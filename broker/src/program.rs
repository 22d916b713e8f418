//! What this program is called, where its things are by default, and what it calls itself in its messages.

use crate::config::Config;
/// Where a broker's memory comes from. The system's allocator grows what a thread has page by page, with a system
/// call for each, and every order leaves a page behind: a quarter of the time of the market's thread.
pub use mimalloc::MiMalloc as Allocator;
use protocol::operator::{Folder, Program};
use std::path::PathBuf;

/// Where a broker's data is when nobody says otherwise.
pub const DEFAULT_DATA: &str = "/var/lib/feira-broker";

/// The broker's program.
pub const PROGRAM: Program = Program {
    name: "feira-broker",
    runs: "broker",
    party: "broker",
    settings: "broker.toml",
    folder: DEFAULT_DATA,
    init: "init",
    log_target: "broker",
    admin_socket: |settings| Ok(Config::read(settings)?.admin_socket),
};

/// A file that is as old as the last backup.
#[must_use]
pub fn last_backup(folder: &Folder) -> PathBuf {
    folder.path().join("last-backup")
}
