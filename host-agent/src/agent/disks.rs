//! How much of the disk that was promised to leases is still to come: their layers are walked now and then, in a task
//! of its own. Until a lease was looked at, all that it ordered is set aside.

use super::desk::{Desk, millis};
use super::events::Done;
use crate::core::lease::State;
use crate::hardware::Hardware;
use crate::runtime::Runtime;
use protocol::ids::LeaseId;
use protocol::units::{Bytes, Millis};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::task::AbortHandle;

/// Layers are walked so much more seldom than the machine is measured.
const PERIODS: u64 = 3;
/// Walking takes at most this part of the time.
const REST_FACTOR: u64 = 10;

/// How much more each lease may write.
pub(super) type Left = BTreeMap<LeaseId, Bytes>;

/// What is known of the leases' disks.
#[derive(Debug, Default)]
pub(super) struct Disks {
    /// What counts. It is older than the free disk that is known, so what was written in between counts twice
    /// and never not at all.
    left: Left,
    /// It was seen before the measure of the free disk that is under way began.
    next: Option<Left>,
    /// It was seen and no measure began since.
    seen: Option<Left>,
    /// Leases whose containers were stopped for writing too much, until they run again.
    overfull: BTreeSet<LeaseId>,
    looking: Option<AbortHandle>,
    next_look: Millis,
}

impl Disks {
    pub(super) const fn left(&self) -> &Left {
        &self.left
    }

    pub(super) const fn overfull(&self) -> &BTreeSet<LeaseId> {
        &self.overfull
    }

    /// Its container wrote too much and is being stopped.
    pub(super) fn overflowed(&mut self, lease: LeaseId) {
        self.overfull.insert(lease);
    }

    /// Its container runs again, or is gone.
    pub(super) fn begins_anew(&mut self, lease: LeaseId) {
        self.overfull.remove(&lease);
    }

    /// No look is worth waiting for.
    pub(super) fn give_up(&mut self) {
        if let Some(look) = self.looking.take() {
            look.abort();
        }
    }

    /// A measure of the free disk begins.
    pub(super) fn measure_begins(&mut self) {
        if let Some(seen) = self.seen.take() {
            self.next = Some(seen);
        }
    }

    /// The free disk is known.
    pub(super) fn measured(&mut self) {
        if let Some(next) = self.next.take() {
            self.left = next;
        }
    }
}

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// Begins a look at the leases' disks when one is due.
    pub(super) fn look_at_disks_if_due(&mut self) {
        let now = self.now().monotonic;
        if self.disks.looking.is_some() || now < self.disks.next_look || !self.engine.is_up() {
            return;
        }
        let containers = self.engine.containers();
        let leases: Vec<LeaseId> = self
            .leases
            .records()
            .values()
            .filter(|record| !matches!(record.state, State::Gone { .. }))
            .map(|record| record.lease)
            .filter(|lease| containers.contains_key(lease))
            .collect();
        let runtime = Arc::clone(&self.runtime);
        let look = self.tasks.spawn(async move {
            let mut left = Left::new();
            for lease in leases {
                match runtime.disk_left(lease).await {
                    Ok(bytes) => {
                        left.insert(lease, bytes);
                    }
                    Err(error) => {
                        tracing::debug!(lease = %lease.short(), %error, "its disk could not be looked at");
                    }
                }
            }
            Done::Disks { began: now, left }
        });
        self.disks.looking = Some(look);
    }

    /// The disks were looked at.
    pub(super) fn disks_seen(&mut self, began: Millis, left: Left) {
        let now = self.now().monotonic;
        let took = now.0.saturating_sub(began.0);
        let period = millis(self.config.periods.measure)
            .0
            .saturating_mul(PERIODS);
        let rest = period.max(took.saturating_mul(REST_FACTOR));
        self.disks.looking = None;
        self.disks.next_look = now.plus(Millis(rest));
        self.disks.seen = Some(left);
    }
}
