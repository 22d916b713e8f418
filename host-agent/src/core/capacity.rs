//! Who holds which resource, and under which epoch. An epoch is used once: two grants of one resource
//! under one epoch would prove to anybody that this host sold it twice.

use mig::name::excludes;
use protocol::bounded::List;
use protocol::ids::LeaseId;
use protocol::machine::GPUS_MAX;
use protocol::offer::ResourceName;
use protocol::units::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One resource, taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Held {
    /// The resource.
    pub resource: ResourceName,
    /// The epoch it was taken under.
    pub epoch: u64,
}

/// All that one lease holds.
pub type Holdings = List<Held, GPUS_MAX>;

/// The resource cannot be taken, because this lease has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenBy(pub LeaseId);

/// Resources, their last epochs and their holders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capacity {
    epochs: BTreeMap<ResourceName, u64>,
    holders: BTreeMap<ResourceName, LeaseId>,
}

impl Capacity {
    /// The leases that keep `resource` from being taken. The machine as a whole and any part of it exclude each
    /// other, and so do a GPU and its slices, and slices that overlap.
    pub fn holders<'a>(&'a self, resource: &'a str) -> impl Iterator<Item = LeaseId> + 'a {
        let clashing = self
            .holders
            .iter()
            .filter(move |(held, _)| excludes(held, resource));
        clashing.map(|(_, lease)| *lease)
    }

    /// One of them.
    #[must_use]
    pub fn holder(&self, resource: &ResourceName) -> Option<LeaseId> {
        self.holders(resource).next()
    }

    /// What is held, and by whom, by name.
    pub fn held(&self) -> impl Iterator<Item = (&ResourceName, LeaseId)> {
        self.holders.iter().map(|(name, lease)| (name, *lease))
    }

    /// The other leases that keep `lease` from taking `resources`.
    pub(super) fn in_the_way(
        &self,
        lease: LeaseId,
        resources: &[ResourceName],
    ) -> BTreeSet<LeaseId> {
        resources
            .iter()
            .flat_map(|name| self.holders(name))
            .filter(|holder| *holder != lease)
            .collect()
    }

    /// What `lease` would hold after taking `resources`: each under an epoch that was never used. An epoch
    /// is also never below the clock in milliseconds, so that a lost journal does not make them repeat.
    ///
    /// # Errors
    /// The lease that has one of them.
    pub fn take(
        &self,
        lease: LeaseId,
        resources: &[ResourceName],
        now: Timestamp,
    ) -> Result<Holdings, TakenBy> {
        if let Some(holder) = self.in_the_way(lease, resources).first() {
            return Err(TakenBy(*holder));
        }
        let held = resources.iter().map(|resource| Held {
            resource: resource.clone(),
            epoch: self.epoch(resource).saturating_add(1).max(now.0),
        });
        Ok(List::first(held))
    }

    /// The last epoch of `resource`; 0 before the first.
    #[must_use]
    pub fn epoch(&self, resource: &ResourceName) -> u64 {
        self.epochs.get(resource).copied().unwrap_or(0)
    }

    /// Notes that an epoch was used.
    pub(crate) fn set_epoch(&mut self, resource: &ResourceName, epoch: u64) {
        let known = self.epochs.entry(resource.clone()).or_default();
        *known = epoch.max(*known);
    }

    /// Notes that `lease` holds exactly `held`.
    pub(crate) fn set_holdings(&mut self, lease: LeaseId, held: &[Held]) {
        self.holders.retain(|_, holder| *holder != lease);
        for Held { resource, epoch } in held {
            self.set_epoch(resource, *epoch);
            self.holders.insert(resource.clone(), lease);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(byte: u8) -> LeaseId {
        LeaseId::from_bytes([byte; 16])
    }

    fn names(names: &[&str]) -> Vec<ResourceName> {
        names.iter().map(|name| ResourceName::cut(name)).collect()
    }

    #[test]
    fn epochs_rise_and_are_never_below_the_clock() {
        let mut capacity = Capacity::default();
        let first = capacity
            .take(lease(1), &names(&["GPU-a"]), Timestamp(5_000))
            .unwrap();
        assert_eq!(first[0].epoch, 5_000);
        capacity.set_holdings(lease(1), &first);
        capacity.set_holdings(lease(1), &[]);
        // The clock went back: still a new epoch.
        let second = capacity
            .take(lease(2), &names(&["GPU-a"]), Timestamp(4_000))
            .unwrap();
        assert_eq!(second[0].epoch, 5_001);
    }

    #[test]
    fn what_is_held_is_not_taken() {
        let mut capacity = Capacity::default();
        let held = capacity
            .take(lease(1), &names(&["GPU-a", "GPU-b"]), Timestamp(1))
            .unwrap();
        capacity.set_holdings(lease(1), &held);
        let take = |names: &[ResourceName]| capacity.take(lease(2), names, Timestamp(2));
        assert_eq!(take(&names(&["GPU-b"])), Err(TakenBy(lease(1))));
        assert_eq!(take(&names(&["GPU-c", "GPU-a"])), Err(TakenBy(lease(1))));
        assert!(take(&names(&["GPU-c"])).is_ok());
    }

    // Threat 6: a whole GPU and its slices are never held together.
    #[test]
    fn a_gpu_and_its_slices_exclude_each_other() {
        for (held, wanted, free) in [
            ("GPU-a", "GPU-a/1g.10gb@6+1", false),
            ("GPU-a/1g.10gb@6+1", "GPU-a", false),
            ("GPU-a/1g.10gb@6+1", "GPU-a/3g.40gb@4+4", false),
            ("GPU-a/1g.10gb@6+1", "GPU-a/4g.40gb@0+4", true),
            ("GPU-a/1g.10gb@6+1", "GPU-b", true),
            ("machine", "GPU-a/1g.10gb@6+1", false),
        ] {
            let mut capacity = Capacity::default();
            let first = capacity
                .take(lease(1), &names(&[held]), Timestamp(1))
                .unwrap();
            capacity.set_holdings(lease(1), &first);
            let taken = capacity.take(lease(2), &names(&[wanted]), Timestamp(2));
            assert_eq!(taken.is_ok(), free, "{wanted} beside {held}");
        }
    }

    #[test]
    fn the_whole_machine_excludes_its_parts_and_the_other_way_round() {
        let mut capacity = Capacity::default();
        let machine = names(&["machine"]);
        let held = capacity
            .take(lease(1), &names(&["GPU-a"]), Timestamp(1))
            .unwrap();
        capacity.set_holdings(lease(1), &held);
        assert_eq!(
            capacity.take(lease(2), &machine, Timestamp(2)),
            Err(TakenBy(lease(1)))
        );
        capacity.set_holdings(lease(1), &[]);
        let held = capacity.take(lease(2), &machine, Timestamp(3)).unwrap();
        capacity.set_holdings(lease(2), &held);
        assert_eq!(
            capacity.take(lease(1), &names(&["GPU-a"]), Timestamp(4)),
            Err(TakenBy(lease(2)))
        );
    }
}
