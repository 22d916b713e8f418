//! How a command asks the running agent: the socket that the settings name, one question, one answer.

use super::Place;
use crate::admin::ask::{AskError, ask};
use crate::admin::wire::{AdminReply, AdminRequest};
use crate::config::{Config, ConfigError};
use crate::exit::{Exit, Failure};
use protocol::net::Identity;
use std::path::PathBuf;

impl Place {
    /// The settings.
    pub(super) fn config(&self) -> Result<Config, Failure> {
        Config::read(&self.folder.config()).map_err(|error| self.config_failed(&error))
    }

    /// The key.
    pub(super) fn identity(&self) -> Result<Identity, Failure> {
        Identity::load(&self.folder.key()).map_err(|error| self.identity_failed(&error))
    }

    /// Asks the running agent.
    pub(super) fn ask(&self, request: &AdminRequest) -> Result<AdminReply, Failure> {
        let socket = self.socket()?;
        match ask(&socket, request) {
            Ok(AdminReply::Refused(reason)) => Err(Failure::new(Exit::Failed, reason)),
            Ok(reply) => Ok(reply),
            Err(error) => Err(self.ask_failed(&error)),
        }
    }

    /// Asks the running agent; nothing when none runs.
    pub(super) fn ask_if_running(
        &self,
        request: &AdminRequest,
    ) -> Result<Option<AdminReply>, Failure> {
        let socket = self.socket()?;
        match ask(&socket, request) {
            Ok(AdminReply::Refused(reason)) => Err(Failure::new(Exit::Failed, reason)),
            Ok(reply) => Ok(Some(reply)),
            Err(AskError::NotRunning { .. }) => Ok(None),
            Err(error) => Err(self.ask_failed(&error)),
        }
    }

    fn socket(&self) -> Result<PathBuf, Failure> {
        match Config::read(&self.folder.config()) {
            Ok(config) => Ok(config.admin_socket.unwrap_or_else(|| self.folder.socket())),
            // An agent that runs read its settings before somebody broke them.
            Err(ConfigError::Wrong { .. }) if self.folder.socket().exists() => {
                Ok(self.folder.socket())
            }
            Err(error) => Err(self.config_failed(&error)),
        }
    }
}

/// The answer was to another question: the agent is of another version.
pub(super) fn unexpected() -> Failure {
    Failure::new(
        Exit::Failed,
        "the agent answered another question: is it another version?",
    )
}
