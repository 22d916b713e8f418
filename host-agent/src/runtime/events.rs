//! What a runtime says of its containers without being asked.

use std::future::Future;

use protocol::ids::LeaseId;
use protocol::units::{Bytes, Timestamp};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::{Container, Exit};

/// What happened to a container, or to the watch. Events may repeat; the list is always the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContainerEvent {
    /// The watch is up (again): this is every container of this host now. Comes first, and after each gap.
    Listed(Vec<Container>),
    /// It started.
    Started {
        /// Whose.
        lease: LeaseId,
        /// When.
        at: Timestamp,
    },
    /// Its main process ended.
    Died {
        /// Whose.
        lease: LeaseId,
        /// How. `started` is zero here: events do not say it.
        exit: Exit,
    },
    /// Somebody paused it.
    Paused {
        /// Whose.
        lease: LeaseId,
    },
    /// It was removed.
    Removed {
        /// Whose.
        lease: LeaseId,
    },
    /// It wrote more than its disk allows; it was stopped at once, and `Died` follows.
    DiskExceeded {
        /// Whose.
        lease: LeaseId,
        /// What it wrote.
        used: Bytes,
        /// What it may write.
        allowed: Bytes,
    },
    /// The engine does not answer; the watch goes on trying.
    EngineLost {
        /// What failed.
        reason: String,
    },
}

/// A running watch: what [`super::Runtime::watch`] returns.
#[derive(Debug)]
pub struct EventWatch {
    events: mpsc::Receiver<ContainerEvent>,
    _task: AbortOnDropHandle<()>,
}

/// How many events may wait for their reader.
const EVENTS_WAITING_MAX: usize = 256;

impl EventWatch {
    /// Starts `watch` as a task that ends with the value returned.
    pub(crate) fn start<F>(watch: impl FnOnce(mpsc::Sender<ContainerEvent>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
        Self {
            events,
            _task: AbortOnDropHandle::new(tokio::spawn(watch(sender))),
        }
    }

    /// The next event; nothing only when the runtime itself is gone. Cancel-safe.
    pub async fn next(&mut self) -> Option<ContainerEvent> {
        self.events.recv().await
    }
}
