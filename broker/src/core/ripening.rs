//! The dispute window: what a host earned of a lease is pending for it, and free afterwards.
//!
//! A lease that goes on for months is marked once a day with what its host had earned by then, so that the
//! money of each day becomes free when its own window is over. Marks are of what was earned before refunds: what
//! is given back is taken from what is pending, and leaves what is earned afterwards its own window. Must not
//! decide about refunds.

use crate::core::desk::Desk;
use crate::core::event::{Event, Fact};
use crate::core::lease::Lease;
use crate::core::ledger::{Account, Transfer};
use crate::core::payment::earned_before_refunds;
use protocol::ids::LeaseId;
use protocol::units::{MicroUsd, Seconds, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How often the earnings of an open lease are marked.
const MARK_EVERY: Seconds = Seconds(24 * 3600);
/// A host whose leases of 24 hours are carried through with this probability, in millionths, is trusted with
/// the shorter window.
const TRUSTED: u32 = 970_000;

/// What a host had earned of a lease at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// When.
    pub at: Timestamp,
    /// How much in all, the fee taken off and no refund.
    pub earned: MicroUsd,
}

/// When the earnings of each lease are to be looked at next. Soft: made anew from the leases at a start.
#[derive(Debug, Default)]
pub(super) struct Ripening {
    looks: BTreeMap<LeaseId, Timestamp>,
    queue: BTreeSet<(Timestamp, LeaseId)>,
}

impl Ripening {
    /// The lease whose earnings are to be looked at first, if it is time.
    pub(super) fn due(&self, now: Timestamp) -> Option<LeaseId> {
        let first = self.queue.first().filter(|(at, _)| *at <= now);
        first.map(|(_, lease)| *lease)
    }

    /// When the first earnings are to be looked at.
    pub(super) fn first_look(&self) -> Option<Timestamp> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Looks at a lease's earnings at `at` next, or never again.
    pub(super) fn look(&mut self, lease: LeaseId, at: Option<Timestamp>) {
        if let Some(before) = self.looks.remove(&lease) {
            self.queue.remove(&(before, lease));
        }
        if let Some(at) = at {
            self.looks.insert(lease, at);
            self.queue.insert((at, lease));
        }
    }
}

impl Lease {
    /// Marks what its host earned by `at`: once a day, and when the lease is over.
    pub(super) fn mark_earnings(&mut self, at: Timestamp) {
        let earned = earned_before_refunds(self);
        // What was waived was not earned: it frees nothing of what is earned later.
        self.matured = self.matured.min(earned);
        for mark in &mut self.marks {
            mark.earned = mark.earned.min(earned);
        }
        let last = self.marks.last().copied();
        let is_more = earned > last.map_or(self.matured, |mark| mark.earned);
        let is_time = last.is_none_or(|mark| at.since(mark.at) >= MARK_EVERY.millis());
        let is_over = self.state.is_closed();
        // The last mark frees what the refunds' roundings left pending: there is always one.
        let is_last = is_over && last.is_none() && earned > MicroUsd::ZERO;
        if is_last || is_more && (is_time || is_over) {
            self.marks.push(Mark { at, earned });
        }
    }
}

impl Desk {
    /// How long the earnings of a lease are pending.
    fn window(&self, lease: &Lease) -> Seconds {
        if self.score_ppm(lease.contract.host) >= TRUSTED {
            self.settings.dispute_trusted
        } else {
            self.settings.dispute
        }
    }

    /// When a lease's earnings are to be looked at next: a host's score may rise until then.
    fn ripe_at(&self, now: Timestamp, lease: &Lease) -> Option<Timestamp> {
        let first = lease.marks.first()?;
        let early = first.at.after(self.settings.dispute_trusted.millis());
        let late = first.at.after(self.settings.dispute.millis());
        Some(if early > now { early } else { late })
    }

    /// Puts down when a lease's earnings are to be looked at next.
    pub(super) fn plan_ripening(&mut self, now: Timestamp, id: LeaseId) {
        let lease = self.market.lease(id);
        let at = lease.and_then(|lease| self.ripe_at(now, lease));
        self.ripening.look(id, at);
    }

    /// Frees what is due by now.
    pub(super) fn ripen_all<E>(
        &mut self,
        now: Timestamp,
        record: &mut impl FnMut(&Event) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(id) = self.ripening.due(now) {
            self.ripening.look(id, None);
            let lease = self.market.lease(id);
            match lease.and_then(|lease| self.ripen(now, lease)) {
                Some(event) => self.happen(now, event, record)?,
                None => self.plan_ripening(now, id),
            }
        }
        Ok(())
    }

    /// What becomes free of a lease's earnings.
    fn ripen(&self, now: Timestamp, lease: &Lease) -> Option<Event> {
        let window = self.window(lease).millis();
        let is_ripe = |mark: &&Mark| mark.at.after(window) <= now;
        let mark = lease.marks.iter().rev().find(is_ripe)?;
        let pending = Account::HostPending(lease.id);
        let all = self.market.ledger().balance(&pending);
        let is_all = lease.state.is_closed() && lease.marks.last() == Some(mark);
        let amount = if is_all {
            all
        } else {
            let earned = mark.earned.saturating_sub(lease.matured);
            earned.min(all).max(MicroUsd::ZERO)
        };
        let free = Account::HostAvailable(lease.contract.host);
        Some(Event {
            at: now,
            fact: Fact::Matured {
                lease: lease.id,
                mark: *mark,
            },
            entries: Transfer::default().moving(pending, free, amount).entries(),
        })
    }
}
