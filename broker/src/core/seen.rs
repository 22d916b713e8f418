//! The replay window: which statements had their effect, until they could not be fresh any more.
//!
//! The key is signer and message id, never the signature: a signer can make many valid ones.

use protocol::ids::{Digest, MessageId, PublicKey};
use protocol::signed::{REPLAY_MEMORY, Verified};
use protocol::units::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether a statement was here before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighting {
    /// Never seen.
    New,
    /// The very same one.
    Repeat,
    /// Another one under the same id.
    Conflict,
}

/// One statement that had its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Whose.
    pub signer: PublicKey,
    /// Its id.
    pub id: MessageId,
    /// What it was.
    pub digest: Digest,
    /// When it may be forgotten.
    pub until: Timestamp,
}

/// All statements that are remembered.
#[derive(Debug, Clone, Default)]
pub struct ReplayWindow {
    known: BTreeMap<(PublicKey, MessageId), (Digest, Timestamp)>,
    /// By the whole second at which they may be forgotten together.
    by_second: BTreeMap<Timestamp, Vec<(PublicKey, MessageId)>>,
}

/// The order in which they came is of no account.
impl PartialEq for ReplayWindow {
    fn eq(&self, other: &Self) -> bool {
        self.known == other.known
    }
}

impl Eq for ReplayWindow {}

impl ReplayWindow {
    /// Whether `statement` was here before.
    #[must_use]
    pub fn sighting<T>(&self, statement: &Verified<T>) -> Sighting {
        let header = statement.header();
        match self.known.get(&(header.signer, header.message_id)) {
            None => Sighting::New,
            Some((digest, _)) if *digest == statement.digest() => Sighting::Repeat,
            Some(_) => Sighting::Conflict,
        }
    }

    /// Remembers a statement that had its effect at `at`. The books' time may be ahead of the clock by which
    /// the statement was fresh then: so long it is kept by that time, too.
    pub fn remember<T>(&mut self, statement: &Verified<T>, at: Timestamp) {
        let header = statement.header();
        let kept = at.after(REPLAY_MEMORY.millis());
        self.insert(Seen {
            signer: header.signer,
            id: header.message_id,
            digest: statement.digest(),
            until: statement.forgettable_at().max(kept),
        });
    }

    /// Remembers.
    pub(crate) fn insert(&mut self, seen: Seen) {
        let Seen {
            signer,
            id,
            digest,
            until,
        } = seen;
        self.known.insert((signer, id), (digest, until));
        let second = Timestamp(until.0.div_ceil(1000).saturating_mul(1000));
        self.by_second.entry(second).or_default().push((signer, id));
    }

    /// Forgets what cannot be fresh any more.
    pub fn forget(&mut self, now: Timestamp) {
        while let Some(second) = self.by_second.first_entry() {
            if *second.key() > now {
                break;
            }
            for statement in second.remove() {
                self.known.remove(&statement);
            }
        }
    }

    /// How many are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Seen> + '_ {
        self.known
            .iter()
            .map(|((signer, id), (digest, until))| Seen {
                signer: *signer,
                id: *id,
                digest: *digest,
                until: *until,
            })
    }
}
