//! What every command has: the program, its folder, the printer; and how the errors that both programs know end it.

use super::{AskError, Exit, Failure, Folder, Printer, Program, Reply, SettingsError, ask, chain};
use crate::net::{Identity, IdentityError};
use clap::CommandFactory;
use clap_complete::Shell;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// What a command needs to know beside its own arguments.
#[derive(Debug)]
pub struct Place {
    /// Which program this is.
    pub program: &'static Program,
    /// Its data.
    pub folder: Folder,
    /// Where its words go.
    pub printer: Printer,
}

impl Place {
    /// A place of `program`, with its data at `data`.
    #[must_use]
    pub fn new(program: &'static Program, data: PathBuf, json: bool) -> Self {
        Self {
            program,
            folder: Folder::new(program, data),
            printer: Printer::new(json),
        }
    }

    /// The exit code of a command that came to `done`, and the words of a failure.
    #[must_use]
    pub fn end(&self, done: Result<Exit, Failure>) -> ExitCode {
        match done.and_then(|exit| self.printer.finish().map(|()| exit)) {
            Ok(exit) => exit.into(),
            Err(failure) => {
                self.printer.failure(&failure);
                failure.exit.into()
            }
        }
    }

    /// The program and `words`, with the data folder when it is not the usual one.
    #[must_use]
    pub fn command(&self, words: &str) -> String {
        let (name, data) = (self.program.name, self.folder.path());
        if data.as_os_str() == self.program.folder {
            return format!("{name} {words}");
        }
        format!("{name} {words} --data {}", data.display())
    }

    /// Prints the completion script for the command line of `A`.
    pub fn completions<A: CommandFactory>(&self, shell: Shell) {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut A::command(), self.program.name, &mut script);
        self.printer
            .line(String::from_utf8_lossy(&script).trim_end());
    }

    /// The key.
    ///
    /// # Errors
    /// The failure that the command ends with.
    pub fn identity(&self) -> Result<Identity, Failure> {
        Identity::load(&self.folder.key()).map_err(|error| self.identity_failed(&error))
    }

    /// The key, and whether it was made now.
    ///
    /// # Errors
    /// The failure that the command ends with.
    pub fn make_key(&self) -> Result<(Identity, bool), Failure> {
        match Identity::create(&self.folder.key()) {
            Ok(identity) => Ok((identity, true)),
            Err(IdentityError::Exists { .. }) => Ok((self.identity()?, false)),
            Err(IdentityError::Io { source, .. }) if is_denied(&source) => {
                let what = format!("this user may not make {}", self.folder.path().display());
                Err(Failure::new(Exit::NotAllowed, what)
                    .help("run it as root, or choose a folder: --data DIR"))
            }
            Err(error @ IdentityError::Io { .. }) => Err(Failure::new(Exit::Failed, chain(&error))),
            Err(error) => Err(self.identity_failed(&error)),
        }
    }

    /// Asks the program that runs.
    ///
    /// # Errors
    /// When none runs, or none that answers, or it refuses.
    pub fn ask<R: Reply>(&self, request: &impl Serialize) -> Result<R, Failure> {
        let socket = self.socket()?;
        let asked = ask(self.program, &socket, request);
        accepted(asked.map_err(|error| self.ask_failed(&error))?)
    }

    /// Asks the program that runs; nothing when none runs.
    ///
    /// # Errors
    /// When one runs that does not answer, or refuses.
    pub fn ask_if_running<R: Reply>(&self, request: &impl Serialize) -> Result<Option<R>, Failure> {
        let socket = self.socket()?;
        match ask::<R>(self.program, &socket, request) {
            Ok(reply) => accepted(reply).map(Some),
            Err(AskError::NotRunning { .. }) => Ok(None),
            Err(error) => Err(self.ask_failed(&error)),
        }
    }

    /// Where the program that runs is asked.
    ///
    /// # Errors
    /// The failure that the command ends with, when the settings cannot be used.
    pub fn socket(&self) -> Result<PathBuf, Failure> {
        let usual = self.folder.admin_socket();
        match (self.program.admin_socket)(&self.folder.config()) {
            Ok(named) => Ok(named.unwrap_or(usual)),
            // One that runs read its settings before somebody broke them.
            Err(SettingsError::Wrong { .. }) if usual.exists() => Ok(usual),
            Err(error) => Err(self.settings_failed(&error)),
        }
    }

    /// The answer was to another question: what runs is of another version.
    #[must_use]
    pub fn unexpected(&self) -> Failure {
        let who = self.program.runs;
        Failure::new(
            Exit::Failed,
            format!("the {who} answered another question: is it another version?"),
        )
    }

    /// How a command ends whose settings cannot be used.
    #[must_use]
    pub fn settings_failed(&self, error: &SettingsError) -> Failure {
        match error {
            SettingsError::Missing { .. } => Failure::new(
                Exit::NotFound,
                format!("{error}: no {} was made here", self.program.party),
            )
            .help(self.command(self.program.init)),
            SettingsError::Wrong { path, .. } => Failure::new(Exit::Usage, error.to_string()).help(
                format!("edit {}, then: {}", path.display(), self.command("doctor")),
            ),
            SettingsError::Read { source, .. } if is_denied(source) => {
                Failure::new(Exit::NotAllowed, chain(error)).help(self.as_owner())
            }
            SettingsError::Read { .. } => Failure::new(Exit::Failed, chain(error)),
        }
    }

    /// How a command ends whose key cannot be used.
    #[must_use]
    pub fn identity_failed(&self, error: &IdentityError) -> Failure {
        let failure = Failure::new(Exit::NotAllowed, chain(error));
        match error {
            IdentityError::Missing { .. } => {
                Failure::new(Exit::NotFound, failure.what).help(self.command(self.program.init))
            }
            IdentityError::WrongOwner { .. } => {
                failure.help(format!("run it as the {}'s own user", self.program.party))
            }
            // Its own words say which chmod mends it.
            IdentityError::TooWide { .. }
            | IdentityError::Io { .. }
            | IdentityError::Exists { .. }
            | IdentityError::Encrypted { .. }
            | IdentityError::WrongKind { .. }
            | IdentityError::NotAKey { .. } => failure,
        }
    }

    /// How a command ends that asked and was not answered.
    #[must_use]
    pub fn ask_failed(&self, error: &AskError) -> Failure {
        match error {
            AskError::NotRunning { .. } => Failure::new(Exit::Unreachable, error.to_string())
                .help(format!("start it: {}", self.command("run"))),
            AskError::NotAllowed { .. } => {
                Failure::new(Exit::NotAllowed, error.to_string()).help(self.as_owner())
            }
            AskError::NoAnswer { .. } => Failure::new(Exit::Unreachable, chain(error))
                .help("look into its log; it may be starting or stopping"),
            AskError::Malformed { .. } => Failure::new(Exit::Failed, error.to_string()),
        }
    }

    /// What to do where the system refused for lack of permission.
    #[must_use]
    pub fn as_owner(&self) -> String {
        format!(
            "run it as the {}'s own user, or as root",
            self.program.party
        )
    }
}

fn accepted<R: Reply>(reply: R) -> Result<R, Failure> {
    match reply.refused() {
        Some((exit, reason)) => Err(Failure::new(exit, reason)),
        None => Ok(reply),
    }
}

/// Whether the system refused for lack of permission.
#[must_use]
pub fn is_denied(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::PermissionDenied
}
