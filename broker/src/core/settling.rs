//! Keeps the book's index told of what can be had: after events at a host, before the next search.
//!
//! Must not decide about leases; what can be had is `available`'s to say.

use crate::core::desk::Desk;
use crate::core::event::Fact;
use protocol::ids::{HostId, LeaseId, OfferId};
use protocol::terms::ContractKind;
use protocol::units::Timestamp;

/// The host that an event is about beside its lease.
pub(super) const fn host_of(fact: &Fact) -> Option<HostId> {
    match fact {
        Fact::Suspended { host, .. } => Some(*host),
        Fact::Matched(_)
        | Fact::Moved(_)
        | Fact::Changed(_)
        | Fact::Cleared { .. }
        | Fact::Metered(_)
        | Fact::Deposited { .. }
        | Fact::Granted { .. }
        | Fact::Rested(_)
        | Fact::Lapsed { .. }
        | Fact::RestRebid { .. }
        | Fact::Held { .. }
        | Fact::Paid { .. }
        | Fact::Matured { .. }
        | Fact::Warned { .. }
        | Fact::Heard(_)
        | Fact::Away(_)
        | Fact::Funded { .. }
        | Fact::Reclaimed { .. }
        | Fact::Proved(_)
        | Fact::Commanded(_) => None,
    }
}

impl Desk {
    /// Notes that something changed for a host, or for that of a lease, after it was applied.
    pub(super) fn unsettle(&mut self, host: Option<HostId>, lease: Option<LeaseId>) {
        let of_lease = lease.and_then(|lease| self.market.lease(lease));
        let of_lease = of_lease.map(|lease| lease.contract.host);
        for host in host.into_iter().chain(of_lease) {
            self.book.unsettle(host);
        }
    }

    /// Tells the book what can be had of the hosts where something changed. Nobody who is there for good can be
    /// pushed out, whatever the time is; what depends on it is asked again in each search.
    pub(super) fn settle_book(&mut self, now: Timestamp) {
        while let Some(host) = self.book.next_unsettled() {
            let mut known: Vec<(OfferId, u16, bool)> = Vec::new();
            for listing in self.book.host_offers(host, self.wall(now)) {
                for gpus in listing.offer().counts() {
                    let available = self.available(now, ContractKind::OnDemand, listing, gpus);
                    known.extend(available.map(|it| (listing.offer().id, gpus, it.pushes_out)));
                }
            }
            self.book.settle(host, &known);
        }
    }
}
