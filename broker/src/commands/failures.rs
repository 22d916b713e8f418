//! Which exit code each error is, and what to do about it.

use super::Place;
use crate::admin::ask::AskError;
use crate::config::ConfigError;
use crate::exit::{Exit, Failure, chain};
use crate::server::StartError;
use crate::store::StoreError;
use protocol::net::IdentityError;

impl Place {
    /// `feira-broker WORDS`, with the data folder when it is not the usual one.
    pub(super) fn command(&self, words: &str) -> String {
        let data = self.folder.path();
        if data.as_os_str() == crate::args::DEFAULT_DATA {
            return format!("feira-broker {words}");
        }
        format!("feira-broker {words} --data {}", data.display())
    }

    pub(super) fn config_failed(&self, error: &ConfigError) -> Failure {
        match error {
            ConfigError::Missing { .. } => {
                let failure =
                    Failure::new(Exit::NotFound, format!("{error}: no broker was made here"));
                failure.help(self.command("init"))
            }
            ConfigError::Wrong { path, .. } => Failure::new(Exit::Usage, error.to_string()).help(
                format!("edit {}, then: {}", path.display(), self.command("doctor")),
            ),
            ConfigError::Read { source, .. } if is_denied(source) => {
                Failure::new(Exit::NotAllowed, chain(error))
                    .help("run it as the broker's own user, or as root")
            }
            ConfigError::Read { .. } => Failure::new(Exit::Failed, chain(error)),
        }
    }

    pub(super) fn identity_failed(&self, error: &IdentityError) -> Failure {
        let failure = Failure::new(Exit::NotAllowed, chain(error));
        match error {
            IdentityError::Missing { .. } => failure.help(self.command("init")),
            IdentityError::TooWide { path, allowed, .. } => {
                failure.help(format!("chmod {allowed:04o} {}", path.display()))
            }
            IdentityError::WrongOwner { .. } => failure.help("run it as the broker's own user"),
            IdentityError::Io { .. }
            | IdentityError::Exists { .. }
            | IdentityError::Encrypted { .. }
            | IdentityError::WrongKind { .. }
            | IdentityError::NotAKey { .. } => failure,
        }
    }

    pub(super) fn start_failed(&self, error: &StartError) -> Failure {
        match error {
            StartError::Identity(error) => self.identity_failed(error),
            StartError::Store(error) => self.store_failed(error),
            StartError::Port(error) => Failure::new(Exit::Failed, chain(error))
                .help("stop that program, or change `listen` in broker.toml"),
            StartError::Network(error) => Failure::new(Exit::Failed, chain(error))
                .help("stop that program, or change `listen` in broker.toml"),
            StartError::Page(error) => Failure::new(Exit::Failed, chain(error))
                .help("stop that program, or change `metrics` in broker.toml"),
            StartError::Admin(error) => Failure::new(Exit::Failed, chain(error))
                .help("set `admin_socket` in broker.toml to a short path in a folder that this user may write"),
            StartError::Market(error) => Failure::new(Exit::Failed, chain(error)),
            StartError::Broken { .. } => Failure::new(Exit::Failed, error.to_string()),
        }
    }

    /// Whether there is a journal with anything in it.
    pub(super) fn has_books(&self) -> bool {
        std::fs::metadata(self.folder.journal()).is_ok_and(|found| found.len() > 0)
    }

    /// A broker that has a key had books: to begin empty ones would forget every renter's money.
    pub(super) fn books_missing(&self) -> Failure {
        let journal = self.folder.journal();
        let what = format!(
            "{} is missing or empty, and with it everybody's money and leases",
            journal.display()
        );
        Failure::new(Exit::NotFound, what).help(format!(
            "restore the newest backup: {}\nif this broker never took money: {}",
            self.command("restore FILE"),
            self.command("init --empty-books")
        ))
    }

    pub(super) fn store_failed(&self, error: &StoreError) -> Failure {
        let failure = Failure::new(Exit::Failed, chain(error));
        match error {
            StoreError::InUse { .. } => {
                failure.help(format!("look at it: {}", self.command("status")))
            }
            StoreError::Io { source, .. } if is_denied(source) => Failure {
                exit: Exit::NotAllowed,
                ..failure
            }
            .help("run it as the broker's own user, or as root"),
            StoreError::Sqlite { .. }
            | StoreError::Damaged(_)
            | StoreError::Corrupt { .. }
            | StoreError::Ledger(_) => failure.help(format!(
                "stop the broker; if the file is damaged, restore the newest backup: {}",
                self.command("restore FILE --replace")
            )),
            StoreError::Io { .. }
            | StoreError::OldSqlite { .. }
            | StoreError::NewerSchema { .. }
            | StoreError::OtherBroker { .. }
            | StoreError::Encode(_)
            | StoreError::State(_) => failure,
        }
    }

    pub(super) fn ask_failed(&self, error: &AskError) -> Failure {
        match error {
            AskError::NotRunning { .. } => Failure::new(Exit::Unreachable, error.to_string())
                .help(format!("start it: {}", self.command("run"))),
            AskError::NotAllowed { .. } => Failure::new(Exit::NotAllowed, error.to_string())
                .help("run it as the broker's own user, or as root"),
            AskError::NoAnswer { .. } => Failure::new(Exit::Unreachable, chain(error))
                .help("look into its log; it may be starting or stopping"),
            AskError::Malformed { .. } => Failure::new(Exit::Failed, error.to_string()),
        }
    }
}

/// Whether the system refused for lack of permission.
pub(super) fn is_denied(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::PermissionDenied
}
