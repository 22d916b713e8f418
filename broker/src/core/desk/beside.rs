//! What a desk keeps beside a lease: its meter, its container, when it is looked at next, who has to hear of it.
//!
//! Must not record anything: all of it is made again after a restart.

use super::{Change, Desk};
use crate::core::event::Fact;
use crate::core::lease::Contract;
use crate::core::meter::Meter;
use protocol::ids::LeaseId;
use protocol::lease::ContainerState;
use protocol::units::Timestamp;

impl Desk {
    /// Says that a lease, or an order that waits, is not as it was.
    pub(super) fn changed(&mut self, now: Timestamp, id: LeaseId, goal: bool) {
        let revision = self.revision(id).saturating_add(1).max(now.0);
        let (renter, host, is_over) = match (self.market.lease(id), self.market.resting(id)) {
            (Some(lease), _) => {
                let Contract { renter, host, .. } = lease.contract;
                (renter, Some(host), lease.state.is_closed())
            }
            (None, Some(rest)) => (rest.renter(), None, rest.ended.is_some()),
            (None, None) => return,
        };
        if let Some(host) = host.filter(|_| goal) {
            self.hosts_watched.touch(host);
        }
        let change = Change {
            lease: id,
            revision,
            renter,
            host,
            goal,
        };
        self.soft.changed(change, is_over);
    }

    /// Keeps a meter that is ahead of the journal.
    pub(super) fn run_on(&mut self, now: Timestamp, id: LeaseId, meter: Meter) {
        if let Some(live) = self.soft.live_mut(id) {
            live.meter = meter;
        }
        self.plan(now, id, MeterFrom::Here);
    }

    /// Keeps what a host says of a container. Whether a host took up a resume is known by it, so the lease's
    /// next look may be a later one.
    pub(super) fn hear(
        &mut self,
        now: Timestamp,
        id: LeaseId,
        run: u32,
        container: ContainerState,
    ) {
        let Some(live) = self.soft.live_mut(id) else {
            return;
        };
        let said = Some((run, container));
        if live.container != said {
            live.container = said;
            self.plan(now, id, MeterFrom::Here);
            self.changed(now, id, false);
        }
    }

    /// Whether what is held for a lease is to be filled up again.
    pub(super) fn is_time_to_fill(&self, now: Timestamp, id: LeaseId) -> bool {
        let filled = self.soft.live(id).map(|live| live.filled);
        filled.is_some_and(|filled| now.since(filled) >= self.settings.top_up_every.millis())
    }

    /// Puts right what is kept beside a lease: its meter, and when it is looked at next.
    pub(super) fn plan(&mut self, now: Timestamp, id: LeaseId, from: MeterFrom) {
        let lease = self
            .market
            .lease(id)
            .filter(|lease| !lease.state.is_closed());
        let Some(lease) = lease else {
            self.soft.forget(id);
            return;
        };
        let (journalled, starts) = (lease.meter, lease.state.is_starting());
        let live = self.soft.live_or_new(id, now, journalled);
        let was_due = live.look <= now;
        // The progress of one start says nothing about the next.
        live.progress = live.progress.take().filter(|_| starts);
        if from == MeterFrom::Journal {
            live.meter = journalled;
        }
        let filled = live.filled;
        if let Some(lease) = self.market.lease(id) {
            let look = self.next_look(now, lease, filled);
            self.soft.look_at(id, look);
        }
        // What was to be seen then is not passed over because something else came first.
        if was_due {
            self.note_bids(now, id);
        }
    }
}

/// Which of two meters is the newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MeterFrom {
    /// The event brought it.
    Journal,
    /// The event says nothing about it.
    Here,
}

/// Where the newer meter is after an event, and whether the host has something else to do.
pub(super) const fn consequences(fact: &Fact) -> (MeterFrom, bool) {
    match fact {
        Fact::Matched(_) | Fact::Moved(_) | Fact::Changed(_) => (MeterFrom::Journal, true),
        Fact::Cleared { .. } => (MeterFrom::Here, true),
        Fact::Metered(_) => (MeterFrom::Journal, false),
        Fact::Deposited { .. }
        | Fact::Granted { .. }
        | Fact::Rested(_)
        | Fact::Lapsed { .. }
        | Fact::RestRebid { .. }
        | Fact::Held { .. }
        | Fact::Paid { .. }
        | Fact::Matured { .. }
        | Fact::Suspended { .. }
        | Fact::Warned { .. }
        | Fact::Heard(_)
        | Fact::Away(_)
        | Fact::Funded { .. }
        | Fact::Reclaimed { .. }
        | Fact::Proved(_)
        | Fact::Commanded(_) => (MeterFrom::Here, false),
    }
}
