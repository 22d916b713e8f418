//! What the two programs that run all day, a broker and a host agent, have in common around their own work: how a
//! command ends, where its words go, the settings file, the folder, the log, and the socket on which a command
//! asks the program that runs.
//!
//! ```text
//! Place ─▶ Program   the words in which one program differs from the other
//!   ├────▶ Folder    where its files are
//!   ├────▶ Printer   what a command says; Exit and Failure are how it ends
//!   └────▶ ask ~~~~~ serve          the local socket, a line each way
//! ```
//! Must not know what a broker or an agent does; nothing here is said over the network.

mod ask;
mod command_line;
pub mod doctor;
mod exit;
mod files;
mod folder;
mod logs;
mod page;
mod place;
mod printer;
mod process;
mod serve;
mod settings;

pub use ask::{AskError, Reply, ask};
pub use command_line::command_line;
pub use exit::{Exit, Failure, chain};
pub use files::{write_new, write_over, write_whole};
pub use folder::Folder;
pub use logs::LogFormat;
pub use page::{METRICS_CONTENT_TYPE, MetricsAddress, PageError, PageListener};
pub use place::{Place, is_denied};
pub use printer::{Align, Printer, counted, rfc3339, usd};
pub use process::{Signals, Threads, notify, threads};
pub use sd_notify::NotifyState;
pub use serve::{AdminSocket, AdminSocketError, Desk};
pub use settings::SettingsError;

use std::path::{Path, PathBuf};

/// What differs between the programs in what they have in common.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// What is typed: `feira-broker`.
    pub name: &'static str,
    /// What it runs, in a sentence: `broker`, `agent`.
    pub runs: &'static str,
    /// Who it is in the market, and whose key and folder it has: `broker`, `host`.
    pub party: &'static str,
    /// The name of its settings file.
    pub settings: &'static str,
    /// The data folder when nobody says otherwise.
    pub folder: &'static str,
    /// The words of `init` for somebody who starts.
    pub init: &'static str,
    /// Its own crate, as a log filter names it.
    pub log_target: &'static str,
    /// The socket that the settings at a path name, if they name one.
    pub admin_socket: fn(&Path) -> Result<Option<PathBuf>, SettingsError>,
}

/// For which shell.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
