//! What is known of live leases beyond the journal: meters that run ahead of it, progress, when to look at
//! a lease next, and who wants to hear of a change. Gone after a restart, and nothing is lost by that.
//!
//! Must not decide anything.

use crate::core::meter::Meter;
use protocol::ids::{HostId, LeaseId, RenterId};
use protocol::lease::{ContainerState, Progress};
use protocol::units::{Millis, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Of so many leases that are over and orders that wait no more the revision is kept, those that changed last.
const OVER_MAX: usize = 10_000;

/// How soon a lease is looked at again when nothing came of the last look.
const LOOK_AGAIN: Millis = Millis(1000);

/// A lease that somebody may be waiting to hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub lease: LeaseId,
    /// Its revision now.
    pub revision: u64,
    /// Whose it is.
    pub renter: RenterId,
    /// Where it runs; nowhere while its order waits.
    pub host: Option<HostId>,
    /// Whether its host has something else to do now.
    pub goal: bool,
}

/// What is known beyond the journal.
#[derive(Debug, Default)]
pub(super) struct Soft {
    leases: BTreeMap<LeaseId, Live>,
    looks: BTreeSet<(Timestamp, LeaseId)>,
    revisions: BTreeMap<LeaseId, u64>,
    /// Those of them that are over, by their revision.
    over: BTreeSet<(u64, LeaseId)>,
    changes: Vec<Change>,
}

/// One live lease.
#[derive(Debug)]
pub(super) struct Live {
    /// Its meter, perhaps ahead of the journal's.
    pub(super) meter: Meter,
    /// When its hold was filled up last.
    pub(super) filled: Timestamp,
    /// How far its start is.
    pub(super) progress: Option<Progress>,
    /// What its host said of the container last, and in which run.
    pub(super) container: Option<(u32, ContainerState)>,
    pub(super) look: Timestamp,
}

impl Soft {
    pub(super) fn live(&self, lease: LeaseId) -> Option<&Live> {
        self.leases.get(&lease)
    }

    pub(super) fn live_mut(&mut self, lease: LeaseId) -> Option<&mut Live> {
        self.leases.get_mut(&lease)
    }

    /// What is kept beside a lease, which begins with its journalled meter.
    pub(super) fn live_or_new(
        &mut self,
        lease: LeaseId,
        now: Timestamp,
        meter: Meter,
    ) -> &mut Live {
        let begin = || Live {
            meter,
            filled: now,
            progress: None,
            container: None,
            look: now,
        };
        self.leases.entry(lease).or_insert_with(begin)
    }

    /// A lease that is over is not looked at any more.
    pub(super) fn forget(&mut self, lease: LeaseId) {
        if let Some(live) = self.leases.remove(&lease) {
            self.looks.remove(&(live.look, lease));
        }
    }

    /// The lease whose moment to be looked at came first, if it came.
    pub(super) fn due(&self, now: Timestamp) -> Option<LeaseId> {
        self.looks
            .first()
            .filter(|(look, _)| *look <= now)
            .map(|(_, lease)| *lease)
    }

    /// When the first lease is to be looked at.
    pub(super) fn first_look(&self) -> Option<Timestamp> {
        self.looks.first().map(|(look, _)| *look)
    }

    /// Looks at a lease at `look` next.
    pub(super) fn look_at(&mut self, lease: LeaseId, look: Timestamp) {
        if let Some(live) = self.leases.get_mut(&lease) {
            self.looks.remove(&(live.look, lease));
            live.look = look;
            self.looks.insert((look, lease));
        }
    }

    /// After a look: the next one is later, whatever was found.
    pub(super) fn look_later(&mut self, lease: LeaseId, now: Timestamp) {
        if self.leases.get(&lease).is_some_and(|live| live.look <= now) {
            self.look_at(lease, now.after(LOOK_AGAIN));
        }
    }

    /// The revision of a lease, if it changed since the start.
    pub(super) fn revision(&self, lease: LeaseId) -> Option<u64> {
        self.revisions.get(&lease).copied()
    }

    /// Notes a change. `is_over` says that the lease hardly changes any more.
    pub(super) fn changed(&mut self, change: Change, is_over: bool) {
        let (lease, revision) = (change.lease, change.revision);
        if let Some(before) = self.revisions.insert(lease, revision) {
            self.over.remove(&(before, lease));
        }
        if is_over {
            self.over.insert((revision, lease));
        }
        if self.over.len() > OVER_MAX
            && let Some((_, oldest)) = self.over.pop_first()
        {
            self.revisions.remove(&oldest);
        }
        self.changes.push(change);
    }

    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(number: u64, revision: u64) -> Change {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&number.to_le_bytes());
        Change {
            lease: LeaseId::from_bytes(id),
            revision,
            renter: RenterId::from_bytes([1; 32]),
            host: None,
            goal: false,
        }
    }

    #[test]
    fn revisions_of_what_is_over_are_kept_for_the_last_ones_alone() {
        let mut soft = Soft::default();
        soft.changed(change(0, 1), false);
        soft.changed(change(1, 2), true);
        let most = u64::try_from(OVER_MAX).unwrap();
        for number in 2..=most {
            soft.changed(change(number, number + 1), true);
        }
        // As many are over as are kept; the oldest of them changes once more, and is the newest then.
        soft.changed(change(1, most + 2), true);
        soft.changed(change(most + 1, most + 3), true);
        assert_eq!(soft.revision(change(1, 0).lease), Some(most + 2));
        assert_eq!(soft.revision(change(2, 0).lease), None);
        assert_eq!(soft.revision(change(0, 0).lease), Some(1));
        assert_eq!(soft.revisions.len(), OVER_MAX + 1);
    }
}
