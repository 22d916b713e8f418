//! A program that runs until it is told to stop: its threads, the signals that stop it, the service manager.

use super::{Exit, Failure};
use sd_notify::NotifyState;
use std::io;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that stop a program, watched from when this is made.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Starts to watch.
    ///
    /// # Errors
    /// When the system does not let it.
    pub fn watch() -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            let what = format!("could not watch for signals: {error}");
            Failure::new(Exit::Failed, what)
        };
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
        })
    }

    /// Waits until the program is told to stop, once more at each call.
    pub async fn told_to_stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// How many threads a command's tasks share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// One for each core.
    Cores,
    /// Two.
    Two,
}

/// The threads for a command's tasks.
///
/// # Errors
/// When the system does not let it.
pub fn threads(count: Threads) -> Result<Runtime, Failure> {
    let mut builder = Builder::new_multi_thread();
    match count {
        Threads::Cores => {}
        Threads::Two => {
            builder.worker_threads(2);
        }
    }
    let made = builder.enable_all().build();
    made.map_err(|error| Failure::new(Exit::Failed, format!("could not start threads: {error}")))
}

/// Tells the service manager; without one there is nobody to tell.
pub fn notify(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "the service manager was not told");
    }
}
