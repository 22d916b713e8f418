//! The thread that owns the journal: the agent's loop waits for its commits without holding up the runtime.
//! It decides nothing and never writes out of order.

use super::{Journal, JournalError};
use crate::core::leases::Change;
use crate::core::offer::Listing;
use crate::core::slices::known::KnownChange;
use gpu_health::unit::Kept;
use std::thread::{self, JoinHandle};
use tokio::sync::{mpsc, oneshot};

/// Jobs that may wait; the agent has one in flight at a time, so this is never full.
const JOBS_WAITING_MAX: usize = 16;

enum Job {
    Commit(Vec<Change>),
    List(Option<Box<Listing>>),
    Slices(Vec<KnownChange>),
    Health(Box<Kept>, Vec<Change>),
}

type Reply = oneshot::Sender<Result<(), JournalError>>;

/// The journal on a thread of its own.
#[derive(Debug)]
pub struct JournalWriter {
    jobs: mpsc::Sender<(Job, Reply)>,
    thread: JoinHandle<()>,
}

impl JournalWriter {
    /// Moves the journal to a thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(journal: Journal) -> std::io::Result<Self> {
        let (jobs, waiting) = mpsc::channel(JOBS_WAITING_MAX);
        let thread = thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || serve(journal, waiting))?;
        Ok(Self { jobs, thread })
    }

    /// See [`Journal::commit`]; no changes need no commit.
    ///
    /// # Errors
    /// When SQLite fails, or the thread is gone.
    pub async fn commit(&self, changes: &[Change]) -> Result<(), JournalError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.ask(Job::Commit(changes.to_vec())).await
    }

    /// See [`Journal::set_listing`].
    ///
    /// # Errors
    /// When SQLite fails, or the thread is gone.
    pub async fn set_listing(&self, listing: Option<Listing>) -> Result<(), JournalError> {
        self.ask(Job::List(listing.map(Box::new))).await
    }

    /// See [`Journal::note_slices`].
    ///
    /// # Errors
    /// When SQLite fails, or the thread is gone.
    pub async fn note_slices(&self, changes: &[KnownChange]) -> Result<(), JournalError> {
        self.ask(Job::Slices(changes.to_vec())).await
    }

    /// See [`Journal::keep_health`].
    ///
    /// # Errors
    /// When SQLite fails, or the thread is gone.
    pub async fn keep_health(&self, kept: Kept, changes: &[Change]) -> Result<(), JournalError> {
        self.ask(Job::Health(Box::new(kept), changes.to_vec()))
            .await
    }

    /// Closes the journal after what was asked before, and lets go of its folder.
    pub async fn close(self) {
        drop(self.jobs);
        // The thread ends within a commit; joining it may block for as long.
        let joined = tokio::task::spawn_blocking(move || self.thread.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            tracing::error!("the journal's thread did not end well");
        }
    }

    async fn ask(&self, job: Job) -> Result<(), JournalError> {
        let (reply, answer) = oneshot::channel();
        self.jobs
            .send((job, reply))
            .await
            .map_err(|_| JournalError::Closed)?;
        answer.await.map_err(|_| JournalError::Closed)?
    }
}

fn serve(mut journal: Journal, mut jobs: mpsc::Receiver<(Job, Reply)>) {
    while let Some((job, reply)) = jobs.blocking_recv() {
        let result = match job {
            Job::Commit(changes) => journal.commit(&changes),
            Job::List(listing) => journal.set_listing(listing.as_deref()),
            Job::Slices(changes) => journal.note_slices(&changes),
            Job::Health(kept, changes) => journal.keep_health(&kept, &changes),
        };
        // An asker that went away is an agent that is being dropped; the commit stands.
        let _ = reply.send(result);
    }
}
