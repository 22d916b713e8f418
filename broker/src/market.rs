//! The market's own thread: it alone has the desk and the journal, and it answers after the commit.
//!
//! ```text
//! handles ─▶ bounded queue ─▶ batch of inputs ─▶ desk: decide, record, apply ─▶ one commit ─▶ answers, notices
//! ```
//!
//! A commit that fails ends the thread with an error and nothing of its batch is answered; the process has
//! to end too, since memory is then ahead of the disk. Must not decide about leases or money.

mod course;
mod handle;
mod input;
mod proofs;
mod reasons;
mod time;
mod worker;

pub use crate::core::overview::{AccountRow, Counts, HostRow};
pub use handle::MarketHandle;

use crate::clock::Clock;
use crate::core::book::{Book, BookLimits};
use crate::core::desk::{Desk, DeskSetup};
use crate::core::market::Market;
use crate::core::settings::MarketSettings;
use crate::metrics::Happenings;
use crate::store::{Store, StoreError};
use ed25519_dalek::SigningKey;
use protocol::ids::{HostId, LeaseId, RenterId};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::{broadcast, mpsc, oneshot};

/// Inputs that may wait; more are told that the broker is busy.
const QUEUE: usize = 1024;
/// Notices that a slow listener may be behind; then it hears that it missed some.
const NOTICES: usize = 4096;

/// Why the market cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum MarketError {
    /// The journal failed.
    #[error("the journal failed; the broker stops so that nothing is answered that is not on disk")]
    Store(#[from] StoreError),
    /// The operating system has no thread.
    #[error("could not start the market's thread")]
    Thread(#[source] std::io::Error),
    /// The thread ended without a word, which is a mistake in the program.
    #[error("the market's thread ended unexpectedly")]
    Lost,
}

/// What somebody may want to hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// A lease changed.
    Lease {
        /// Which.
        lease: LeaseId,
        /// Its revision now.
        revision: u64,
        /// Whose it is.
        renter: RenterId,
        /// Where it runs; nowhere while its order waits.
        host: Option<HostId>,
    },
    /// A host has something else to do.
    Goal {
        /// Which.
        host: HostId,
    },
}

/// What a market is set up with.
#[derive(Debug)]
pub struct MarketSetup {
    /// The operator's numbers.
    pub settings: MarketSettings,
    /// The broker's key.
    pub key: SigningKey,
    /// How many offers to show.
    pub limits: BookLimits,
    /// The clock that bills.
    pub clock: Clock,
}

/// The running market.
#[derive(Debug)]
pub struct MarketThread {
    handle: MarketHandle,
    notices: broadcast::Sender<Notice>,
    happenings: Happenings,
    ended: oneshot::Receiver<Result<(), MarketError>>,
    _thread: JoinHandle<()>,
}

impl MarketThread {
    /// Starts the thread that owns `store` and what was recovered from it.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(store: Store, market: Market, setup: MarketSetup) -> Result<Self, MarketError> {
        let MarketSetup {
            settings,
            key,
            limits,
            clock,
        } = setup;
        let signer = Arc::new(key.clone());
        let (sender, inputs) = mpsc::channel(QUEUE);
        let (notices, _) = broadcast::channel(NOTICES);
        let (end, ended) = oneshot::channel();
        let time = time::BookTime::after(market.last_at(), clock);
        let book = Book::new(market.broker(), limits);
        let desk = Desk::open(
            time.now(),
            DeskSetup {
                market,
                book,
                settings,
                key,
            },
        );
        let happenings = Happenings::new();
        let course = course::Course::new(desk.market(), happenings.clone());
        let worker = worker::Worker::new(desk, store, course, time, notices.clone());
        let run = move || {
            // Nobody waits for the end of a thread that outlived its owner.
            let _ = end.send(worker.run(inputs));
        };
        let thread = std::thread::Builder::new()
            .name("market".to_owned())
            .spawn(run)
            .map_err(MarketError::Thread)?;
        Ok(Self {
            handle: MarketHandle::new(sender, signer),
            notices,
            happenings,
            ended,
            _thread: thread,
        })
    }

    /// A way to ask the market.
    #[must_use]
    pub fn handle(&self) -> MarketHandle {
        self.handle.clone()
    }

    /// A way to hear of changes, from now on.
    #[must_use]
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    /// What it counts.
    #[must_use]
    pub const fn happenings(&self) -> &Happenings {
        &self.happenings
    }

    /// Waits until the thread has ended. May be dropped and called again; not after it returned.
    ///
    /// # Errors
    /// When it ended because the journal failed: the process has to end as well.
    pub async fn stopped(&mut self) -> Result<(), MarketError> {
        (&mut self.ended).await.unwrap_or(Err(MarketError::Lost))
    }
}

#[cfg(test)]
mod tests;
