//! Which exit code each error is, and what to do about it.

use super::Place;
use crate::server::StartError;
use crate::store::{StoreError, has_journal};
use protocol::operator::{Exit, Failure, chain, is_denied};

impl Place {
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
        has_journal(self.folder.path())
    }

    /// A broker that has a key had books: to begin empty ones would forget every renter's money.
    pub(super) fn books_missing(&self) -> Failure {
        let missing = StoreError::Missing {
            path: self.folder.journal(),
        };
        Failure::new(Exit::NotFound, missing.to_string()).help(format!(
            "restore the newest backup: {}\nif this broker never took money: {}",
            self.command("restore FILE"),
            self.command("init --empty-books")
        ))
    }

    pub(super) fn store_failed(&self, error: &StoreError) -> Failure {
        let failure = Failure::new(Exit::Failed, chain(error));
        match error {
            StoreError::Missing { .. } => self.books_missing(),
            StoreError::InUse { .. } => {
                failure.help(format!("look at it: {}", self.command("status")))
            }
            StoreError::Io { source, .. } if is_denied(source) => Failure {
                exit: Exit::NotAllowed,
                ..failure
            }
            .help(self.as_owner()),
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
            | StoreError::Away
            | StoreError::State(_) => failure,
        }
    }
}
