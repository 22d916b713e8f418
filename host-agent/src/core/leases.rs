//! All that the agent's rules rest on: the records of its leases, who holds what, and what its brokers
//! said last. A [`Change`] is decided elsewhere, written to the journal, and applied here, where nothing
//! can refuse it any more.

use crate::core::capacity::Capacity;
use crate::core::lease::{LeaseRecord, State};
use protocol::ids::{BrokerId, HostId, LeaseId};
use protocol::lease::RefusalReason;
use protocol::offer::ResourceName;
use protocol::units::{Bytes, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// What is on disk before it is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The lease's record is now this; what it holds is taken, what it held is free.
    Lease(Box<LeaseRecord>),
    /// The lease is over and its logs are deleted.
    Forgotten(LeaseId),
}

/// What is noted in memory alone: a broker says it again within seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A broker's latest goal.
    Goal(BrokerId, GoalSeen),
    /// A lease was refused; the same answer is given as long as the broker asks.
    Refused(BrokerId, LeaseId, RefusalReason),
    /// A broker asks about a lease that is not here, and is told that it is gone.
    Unknown(BrokerId, LeaseId),
    /// Something of a broker's latest goal waits for a lease of the same broker that is on its way out: the goal
    /// is to be followed again when resources are free.
    Waiting(BrokerId),
}

/// Which goal of a broker was the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalSeen {
    /// See [`protocol::lease::Goal`].
    pub started_at: Timestamp,
    /// See [`protocol::lease::Goal`].
    pub sequence: u64,
    /// When it came.
    pub heard_at: Timestamp,
    /// The leases it names.
    pub leases: BTreeSet<LeaseId>,
}

/// What was decided: first the changes are written, then both are applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// For the journal.
    pub changes: Vec<Change>,
    /// For memory.
    pub notes: Vec<Note>,
}

/// The leases of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leases {
    host: HostId,
    records: BTreeMap<LeaseId, LeaseRecord>,
    capacity: Capacity,
    goals: BTreeMap<BrokerId, GoalSeen>,
    refused: BTreeMap<LeaseId, (BrokerId, RefusalReason)>,
    unknown: BTreeMap<LeaseId, BrokerId>,
    waiting: BTreeSet<BrokerId>,
}

impl Leases {
    /// The leases of `host` as its journal has them.
    #[must_use]
    pub fn recovered(
        host: HostId,
        epochs: impl IntoIterator<Item = (ResourceName, u64)>,
        records: impl IntoIterator<Item = LeaseRecord>,
    ) -> Self {
        let mut leases = Self {
            host,
            records: BTreeMap::new(),
            capacity: Capacity::default(),
            goals: BTreeMap::new(),
            refused: BTreeMap::new(),
            unknown: BTreeMap::new(),
            waiting: BTreeSet::new(),
        };
        for (resource, epoch) in epochs {
            leases.capacity.set_epoch(&resource, epoch);
        }
        for record in records {
            leases.apply_change(&Change::Lease(Box::new(record)));
        }
        leases
    }

    /// Makes a decision true. Its changes are in the journal by now.
    pub fn apply(&mut self, decision: &Decision) {
        for change in &decision.changes {
            self.apply_change(change);
        }
        for note in &decision.notes {
            self.apply_note(note);
        }
    }

    fn apply_change(&mut self, change: &Change) {
        match change {
            Change::Lease(record) => {
                self.capacity
                    .set_holdings(record.lease, record.state.held());
                self.records.insert(record.lease, (**record).clone());
            }
            Change::Forgotten(lease) => {
                self.capacity.set_holdings(*lease, &[]);
                self.records.remove(lease);
            }
        }
    }

    fn apply_note(&mut self, note: &Note) {
        match note {
            Note::Goal(broker, seen) => {
                // What the broker does not ask about any more needs no answer any more.
                let asked =
                    |lease: &LeaseId, of: &BrokerId| of != broker || seen.leases.contains(lease);
                self.refused.retain(|lease, (of, _)| asked(lease, of));
                self.unknown.retain(|lease, of| asked(lease, of));
                self.waiting.remove(broker);
                self.goals.insert(*broker, seen.clone());
            }
            Note::Refused(broker, lease, reason) => {
                self.refused.insert(*lease, (*broker, reason.clone()));
            }
            Note::Unknown(broker, lease) => {
                self.unknown.insert(*lease, *broker);
            }
            Note::Waiting(broker) => {
                self.waiting.insert(*broker);
            }
        }
    }

    /// Whose leases these are.
    #[must_use]
    pub const fn host(&self) -> HostId {
        self.host
    }

    /// All records, by lease.
    #[must_use]
    pub const fn records(&self) -> &BTreeMap<LeaseId, LeaseRecord> {
        &self.records
    }

    /// One record.
    #[must_use]
    pub fn record(&self, lease: LeaseId) -> Option<&LeaseRecord> {
        self.records.get(&lease)
    }

    /// Who holds what.
    #[must_use]
    pub const fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// Disk that is promised to leases and that they may still fill: what each may write by `left`, or all that it
    /// ordered when nothing is known of it. A lease has its disk until it is gone.
    #[must_use]
    pub fn promised_disk(&self, left: &BTreeMap<LeaseId, Bytes>) -> Bytes {
        let of_one = |record: &LeaseRecord| match record.state {
            State::Gone { .. } => 0,
            State::Preparing { .. }
            | State::Running { .. }
            | State::Stopped { .. }
            | State::Failed { .. } => {
                let ordered = record.order.disk;
                left.get(&record.lease)
                    .map_or(ordered.0, |left| left.0.min(ordered.0))
            }
        };
        let all = self.records.values().map(of_one);
        Bytes(all.fold(0, u64::saturating_add))
    }

    /// A broker's latest goal.
    #[must_use]
    pub fn goal(&self, broker: BrokerId) -> Option<&GoalSeen> {
        self.goals.get(&broker)
    }

    /// Whether something of a broker's latest goal waits for another lease to be gone.
    #[must_use]
    pub fn waits(&self, broker: BrokerId) -> bool {
        self.waiting.contains(&broker)
    }

    /// Refusals that are still asked for.
    #[must_use]
    pub const fn refused(&self) -> &BTreeMap<LeaseId, (BrokerId, RefusalReason)> {
        &self.refused
    }

    /// Leases that brokers ask about and that are not here.
    #[must_use]
    pub const fn unknown(&self) -> &BTreeMap<LeaseId, BrokerId> {
        &self.unknown
    }
}
