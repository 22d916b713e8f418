//! What can be computed from leases, waiting orders and payments, kept so that it need not be.
//!
//! Must not hold what cannot be computed again.

use super::holdings::Holdings;
use crate::core::lease::{Lease, State};
use crate::core::payment::Payout;
use crate::core::rest::Resting;
use protocol::ids::{HostId, LeaseId, PaymentId, PublicKey, RenterId};
use protocol::order::LeaseName;
use protocol::units::MicroUsd;
use std::collections::{BTreeMap, BTreeSet};

/// What can be computed from the leases, kept so that it need not be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Index {
    /// Names of renters' open leases.
    pub(super) names: BTreeMap<RenterId, BTreeMap<LeaseName, LeaseId>>,
    /// Who has what now.
    pub(super) resources: BTreeMap<HostId, Holdings>,
    /// Who has what next: leases that wait for those who have it now to go.
    pub(super) claims: BTreeMap<HostId, Holdings>,
    /// What was paid out.
    pub(super) paid_out: BTreeMap<HostId, MicroUsd>,
    /// Payouts that are to be paid.
    pub(super) payouts: BTreeMap<HostId, PaymentId>,
    /// Orders of a renter that wait, by the broker's number.
    pub(super) rests: BTreeMap<RenterId, BTreeMap<u64, LeaseId>>,
    /// Orders of a renter that waited and became no lease, by the broker's number.
    pub(super) past_rests: BTreeMap<RenterId, BTreeMap<u64, LeaseId>>,
    /// Leases that have anything now.
    pub(super) holders: BTreeSet<LeaseId>,
    /// All leases of a party by the broker's number.
    pub(super) all: BTreeMap<PublicKey, BTreeMap<u64, LeaseId>>,
    /// Leases of a party that are not over, by the broker's number.
    pub(super) live: BTreeMap<PublicKey, BTreeMap<u64, LeaseId>>,
    /// Leases that are not over.
    pub(super) live_leases: BTreeSet<LeaseId>,
    /// Renters who ever had money here.
    pub(super) renters: BTreeSet<RenterId>,
}

impl Index {
    /// Puts up what an order that waits has.
    pub(super) fn rest(&mut self, rest: &Resting) {
        self.renters.insert(rest.renter());
        if rest.ended.is_none() {
            let name = rest.order.body().name.clone();
            let of_renter = self.names.entry(rest.renter()).or_default();
            of_renter.insert(name, rest.lease);
            let of_renter = self.rests.entry(rest.renter()).or_default();
            of_renter.insert(rest.number, rest.lease);
        } else {
            let of_renter = self.past_rests.entry(rest.renter()).or_default();
            of_renter.insert(rest.number, rest.lease);
        }
    }

    /// Puts down where a payout stands: an event says so once, and a snapshot once.
    pub(super) fn payout(
        &mut self,
        host: HostId,
        (id, amount): (PaymentId, MicroUsd),
        stands: Payout,
    ) {
        if stands == Payout::Open {
            self.payouts.insert(host, id);
            return;
        }
        if self.payouts.get(&host) == Some(&id) {
            self.payouts.remove(&host);
        }
        if matches!(stands, Payout::Paid(_)) {
            let paid = self.paid_out.entry(host).or_default();
            *paid = paid.saturating_add(amount);
        }
    }

    /// Takes it down again.
    pub(super) fn unrest(&mut self, rest: &Resting) {
        self.name(rest.renter(), &rest.order.body().name, rest.lease, false);
        if let Some(of_renter) = self.rests.get_mut(&rest.renter()) {
            of_renter.remove(&rest.number);
            if of_renter.is_empty() {
                self.rests.remove(&rest.renter());
            }
        }
    }

    /// Gives a name to a lease, or takes it away.
    fn name(&mut self, renter: RenterId, name: &LeaseName, lease: LeaseId, belongs: bool) {
        let of_renter = self.names.entry(renter).or_default();
        set(of_renter, name.clone(), lease, belongs);
        if of_renter.is_empty() {
            self.names.remove(&renter);
        }
    }

    /// Puts up a lease.
    pub(super) fn add(&mut self, lease: &Lease) {
        let number = lease.contract.number;
        for party in parties(lease) {
            self.all.entry(party).or_default().insert(number, lease.id);
        }
        self.renew(lease);
    }

    /// Takes down a lease that is over and is to be forgotten.
    pub(super) fn forget(&mut self, lease: &Lease) {
        for party in parties(lease) {
            if let Some(of_party) = self.all.get_mut(&party) {
                of_party.remove(&lease.contract.number);
                if of_party.is_empty() {
                    self.all.remove(&party);
                }
            }
        }
    }

    /// Puts right what depends on the lease's state.
    pub(super) fn renew(&mut self, lease: &Lease) {
        let contract = &lease.contract;
        self.name(
            contract.renter,
            &contract.name,
            lease.id,
            lease.state.is_open(),
        );
        let claims = matches!(lease.state, State::Clearing { .. });
        let holds = lease.state.holds_resources();
        set_resources(&mut self.claims, lease, claims);
        set_resources(&mut self.resources, lease, holds);
        if holds {
            self.holders.insert(lease.id);
        } else {
            self.holders.remove(&lease.id);
        }
        let live = !lease.state.is_closed();
        for party in parties(lease) {
            let of_party = self.live.entry(party).or_default();
            set(of_party, contract.number, lease.id, live);
            if of_party.is_empty() {
                self.live.remove(&party);
            }
        }
        if live {
            self.live_leases.insert(lease.id);
        } else {
            self.live_leases.remove(&lease.id);
        }
    }
}

/// Makes `key` belong to `lease`, or no longer; what belongs to another lease is left alone.
fn set<K: Ord>(map: &mut BTreeMap<K, LeaseId>, key: K, lease: LeaseId, belongs: bool) {
    if belongs {
        map.insert(key, lease);
    } else if map.get(&key) == Some(&lease) {
        map.remove(&key);
    }
}

/// Makes all that was leased belong to `lease`, or no longer.
fn set_resources(of_hosts: &mut BTreeMap<HostId, Holdings>, lease: &Lease, belongs: bool) {
    let host = lease.contract.host;
    let of_host = of_hosts.entry(host).or_default();
    for resource in &lease.contract.share.resources {
        of_host.set(resource, lease.id, belongs);
    }
    if of_host.is_empty() {
        of_hosts.remove(&host);
    }
}

fn parties(lease: &Lease) -> [PublicKey; 2] {
    [lease.contract.renter.into(), lease.contract.host.into()]
}
