//! Which exit code each error is, and what to do about it.

use super::Place;
use crate::admin::ask::AskError;
use crate::agent::{AgentError, StartError};
use crate::config::{ConfigError, DEFAULT_FOLDER};
use crate::exit::{Exit, Failure, chain};
use crate::hardware::HardwareError;
use crate::journal::JournalError;
use crate::journal::lock::LockError;
use crate::runtime::RuntimeError;
use protocol::net::IdentityError;

impl Place {
    /// `feira-host WORDS`, with the data folder when it is not the usual one.
    pub(super) fn command(&self, words: &str) -> String {
        let data = self.folder.path();
        if data.as_os_str() == DEFAULT_FOLDER {
            return format!("feira-host {words}");
        }
        format!("feira-host {words} --data {}", data.display())
    }

    pub(super) fn config_failed(&self, error: &ConfigError) -> Failure {
        match error {
            ConfigError::Missing { .. } => {
                let failure =
                    Failure::new(Exit::NotFound, format!("{error}: no host was made here"));
                failure.help(self.command("init --broker ADDRESS"))
            }
            ConfigError::Wrong { path, .. } => Failure::new(Exit::Usage, error.to_string()).help(
                format!("edit {}, then: {}", path.display(), self.command("doctor")),
            ),
            ConfigError::Read { source, .. } if is_denied(source) => {
                Failure::new(Exit::NotAllowed, chain(error))
                    .help("run it as the host's own user, or as root")
            }
            ConfigError::Read { .. } => Failure::new(Exit::Failed, chain(error)),
        }
    }

    pub(super) fn identity_failed(&self, error: &IdentityError) -> Failure {
        let failure = Failure::new(Exit::NotAllowed, chain(error));
        match error {
            IdentityError::Missing { .. } => Failure {
                exit: Exit::NotFound,
                ..failure
            }
            .help(self.command("init")),
            IdentityError::WrongOwner { .. } => failure.help("run it as the host's own user"),
            // Its own words say which chmod mends it.
            IdentityError::TooWide { .. }
            | IdentityError::Io { .. }
            | IdentityError::Exists { .. }
            | IdentityError::Encrypted { .. }
            | IdentityError::WrongKind { .. }
            | IdentityError::NotAKey { .. } => failure,
        }
    }

    pub(super) fn start_failed(&self, error: &StartError) -> Failure {
        match error {
            StartError::Journal(error) => self.journal_failed(error),
            StartError::Network(error) => Failure::new(Exit::Failed, chain(error))
                .help("stop that program, or change `listen` in host.toml"),
            StartError::Socket(error) => Failure::new(Exit::Failed, chain(error))
                .help("set `admin_socket` in host.toml to a short path in a folder that this user may write"),
            StartError::System { .. } => Failure::new(Exit::Failed, chain(error)),
        }
    }

    pub(super) fn agent_failed(&self, error: &AgentError) -> Failure {
        Failure::new(Exit::Failed, chain(error)).help(format!(
            "look at the disk and the log, then start it again: {}",
            self.command("run")
        ))
    }

    pub(super) fn journal_failed(&self, error: &JournalError) -> Failure {
        let failure = Failure::new(Exit::Failed, chain(error));
        match error {
            JournalError::Lock(LockError::Taken { .. }) => {
                failure.help(format!("what does it do? {}", self.command("status")))
            }
            JournalError::Lock(LockError::Io { source, .. }) if is_denied(source) => Failure {
                exit: Exit::NotAllowed,
                ..failure
            }
            .help("run it as the host's own user, or as root"),
            JournalError::Lock(LockError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Failure {
                    exit: Exit::NotFound,
                    ..failure
                }
                .help(self.command("init"))
            }
            JournalError::Lock(LockError::Io { .. })
            | JournalError::Sqlite { .. }
            | JournalError::TooNew { .. }
            | JournalError::Damaged { .. }
            | JournalError::Closed => failure,
        }
    }

    pub(super) fn ask_failed(&self, error: &AskError) -> Failure {
        match error {
            AskError::NotRunning { .. } => Failure::new(Exit::Unreachable, error.to_string())
                .help(format!("start it: {}", self.command("run"))),
            AskError::NotAllowed { .. } => Failure::new(Exit::NotAllowed, error.to_string())
                .help("run it as the host's own user, or as root"),
            AskError::NoAnswer { .. } => Failure::new(Exit::Unreachable, chain(error))
                .help("look into its log; it may be starting or stopping"),
            AskError::Malformed { .. } => Failure::new(Exit::Failed, error.to_string()),
        }
    }

    pub(super) fn hardware_failed(&self, error: &HardwareError) -> Failure {
        Failure::new(Exit::Failed, chain(error))
    }
}

/// What to do about an engine that cannot be used.
pub(super) fn engine_failed(error: &RuntimeError) -> Failure {
    let what = error.to_string();
    match error {
        RuntimeError::Unreachable { .. } => Failure::new(Exit::Unreachable, what).help(
            "install and start Docker: systemctl start docker\nor name another socket with `engine` in host.toml",
        ),
        RuntimeError::Permission { .. } => Failure::new(Exit::NotAllowed, what)
            .help("usermod --append --groups docker USER, then log in again"),
        RuntimeError::TooOld { .. } => {
            Failure::new(Exit::Failed, what).help("install Docker 20.10 or newer")
        }
        RuntimeError::NoContainer | RuntimeError::Failed { .. } | RuntimeError::File { .. } => {
            Failure::new(Exit::Failed, what)
        }
    }
}

/// Whether the system refused for lack of permission.
pub(super) fn is_denied(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::PermissionDenied
}
