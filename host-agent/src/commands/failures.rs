//! Which exit code each error is, and what to do about it.

use super::Place;
use crate::agent::{AgentError, StartError};
use crate::hardware::HardwareError;
use crate::journal::JournalError;
use crate::journal::lock::LockError;
use crate::runtime::RuntimeError;
use protocol::operator::{Exit, Failure, chain, is_denied};

impl Place {
    pub(super) fn start_failed(&self, error: &StartError) -> Failure {
        match error {
            StartError::Journal(error) => self.journal_failed(error),
            StartError::Network(error) => Failure::new(Exit::Failed, chain(error))
                .help("stop that program, or change `listen` in host.toml"),
            StartError::Socket(error) => Failure::new(Exit::Failed, chain(error))
                .help("set `admin_socket` in host.toml to a short path in a folder that this user may write"),
            StartError::Page(error) => Failure::new(Exit::Failed, chain(error))
                .help("stop that program, or change `metrics` in host.toml"),
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
            .help(self.as_owner()),
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
