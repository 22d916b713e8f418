//! A commit on a thread of its own, while the market decides what comes next.
//!
//! The file and what is to be written go there and come back: at any moment one thread has them.

use crate::store::StoreError;
use crate::store::journal::Pending;
use rusqlite::Connection;

/// What is to be made durable, and the file that it goes to.
#[derive(Debug)]
#[must_use = "nothing is durable before it is committed, and the store waits for it"]
pub struct Behind {
    connection: Connection,
    pending: Pending,
}

/// The file again, and what came of the commit.
#[derive(Debug)]
#[must_use = "the store waits for it"]
pub struct Committed {
    connection: Connection,
    spare: Pending,
    result: Result<(), StoreError>,
}

impl Behind {
    pub(super) const fn new(connection: Connection, pending: Pending) -> Self {
        Self {
            connection,
            pending,
        }
    }

    /// Writes and commits; takes as long as the disk does.
    pub fn commit(mut self) -> Committed {
        let result = self.pending.commit(&self.connection);
        Committed {
            connection: self.connection,
            spare: self.pending,
            result,
        }
    }
}

impl Committed {
    /// Whether all of it is on disk, so that it can be answered.
    #[must_use]
    pub const fn is_durable(&self) -> bool {
        self.result.is_ok()
    }

    pub(super) fn into_parts(self) -> (Connection, Pending, Result<(), StoreError>) {
        (self.connection, self.spare, self.result)
    }
}
