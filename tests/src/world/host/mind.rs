//! One agent of a host: the real rules, its memory, and what is on its disk.

use host_agent::core::lease::LeaseRecord;
use host_agent::core::leases::{Change, Decision, Leases};
use protocol::ids::{HostId, LeaseId};
use protocol::offer::ResourceName;
use std::collections::BTreeMap;

/// One agent: its memory, and what is on its disk.
#[derive(Debug)]
pub(super) struct Mind {
    pub(super) leases: Leases,
    pub(super) records: BTreeMap<LeaseId, LeaseRecord>,
    epochs: BTreeMap<ResourceName, u64>,
}

impl Mind {
    pub(super) fn new(id: HostId) -> Self {
        Self {
            leases: Leases::recovered(id, [], []),
            records: BTreeMap::new(),
            epochs: BTreeMap::new(),
        }
    }

    /// First the disk, then memory.
    pub(super) fn record(&mut self, decision: &Decision) {
        for change in &decision.changes {
            match change {
                Change::Lease(record) => {
                    for held in record.state.held() {
                        self.epochs.insert(held.resource.clone(), held.epoch);
                    }
                    self.records.insert(record.lease, (**record).clone());
                }
                Change::Forgotten(lease) => {
                    self.records.remove(lease);
                }
            }
        }
        self.leases.apply(decision);
    }

    pub(super) fn recover(&mut self, id: HostId) {
        let epochs = self.epochs.clone();
        self.leases = Leases::recovered(id, epochs, self.records.values().cloned());
    }
}
