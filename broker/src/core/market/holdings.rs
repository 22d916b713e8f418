//! Who has which resources of one host, whole GPUs and slices of them beside each other.
//!
//! Must not know leases beyond their ids: who may be pushed out is `capacity`'s to say.

use mig::name::excludes;
use protocol::ids::LeaseId;
use protocol::offer::{ResourceName, WHOLE_MACHINE, parent};
use std::collections::BTreeMap;
use std::ops::Bound;

/// The resources of one host that leases have. No two of them exclude each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Holdings(BTreeMap<ResourceName, LeaseId>);

impl Holdings {
    /// Makes a resource belong to `lease`, or no longer; what belongs to another lease is left alone.
    pub(super) fn set(&mut self, resource: &ResourceName, lease: LeaseId, belongs: bool) {
        if belongs {
            self.0.insert(resource.clone(), lease);
        } else if self.0.get(resource) == Some(&lease) {
            self.0.remove(resource);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is had and cannot be had beside `resource`, and by whom: itself, the GPU that it is a slice of, slices
    /// that overlap, the machine.
    pub(crate) fn in_the_way<'a>(
        &'a self,
        resource: &'a str,
    ) -> impl Iterator<Item = (&'a ResourceName, LeaseId)> {
        let is_machine = resource == WHOLE_MACHINE;
        // The slices of a GPU come behind it in the order of names, which all begin with its own.
        let gpu = if is_machine { "" } else { parent(resource) };
        let near = self
            .0
            .range::<str, _>((Bound::Included(gpu), Bound::Unbounded))
            .take_while(move |(name, _)| name.starts_with(gpu))
            .filter(move |(name, _)| excludes(resource, name));
        let machine = self.0.get_key_value(WHOLE_MACHINE);
        let machine = machine.filter(|_| !is_machine);
        near.chain(machine).map(|(name, lease)| (name, *lease))
    }

    /// What is had of one GPU: itself, or slices of it.
    pub(crate) fn on_gpu<'a>(
        &'a self,
        gpu: &'a str,
    ) -> impl Iterator<Item = (&'a ResourceName, LeaseId)> {
        let near = self
            .0
            .range::<str, _>((Bound::Included(gpu), Bound::Unbounded));
        let near = near.take_while(move |(name, _)| name.starts_with(gpu));
        let near = near.filter(move |(name, _)| parent(name) == gpu);
        near.map(|(name, lease)| (name, *lease))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(n: u8) -> LeaseId {
        LeaseId::from_bytes([n; 16])
    }

    fn holdings(names: &[&str]) -> Holdings {
        let mut holdings = Holdings::default();
        for (n, name) in (1..).zip(names) {
            holdings.set(&ResourceName::cut(name), lease(n), true);
        }
        holdings
    }

    #[track_caller]
    fn check(had: &[&str], wanted: &str, in_the_way: &[u8]) {
        let holdings = holdings(had);
        let found: Vec<LeaseId> = holdings
            .in_the_way(wanted)
            .map(|(_, lease)| lease)
            .collect();
        let expected: Vec<LeaseId> = in_the_way.iter().copied().map(lease).collect();
        assert_eq!(found, expected, "{wanted} beside {had:?}");
    }

    #[test]
    fn whole_and_sliced_keep_each_other_out() {
        let slices = [
            "GPU-a/1g.10gb@6+1",
            "GPU-a/3g.40gb@0+4",
            "GPU-b",
            "GPU-c/1g.10gb@0+1",
        ];
        check(&slices, "GPU-a", &[1, 2]);
        check(&slices, "GPU-a/2g.20gb@4+2", &[]);
        check(&slices, "GPU-a/1g.20gb@6+2", &[1]);
        check(&slices, "GPU-a/7g.80gb@0+8", &[1, 2]);
        check(&slices, "GPU-b/1g.10gb@0+1", &[3]);
        check(&slices, "GPU-b", &[3]);
        check(&slices, "GPU-d", &[]);
        check(&slices, "machine", &[1, 2, 3, 4]);
        check(&["machine"], "GPU-a/1g.10gb@0+1", &[1]);
        check(&["machine"], "machine", &[1]);
    }

    /// A name that begins with another's is another GPU.
    #[test]
    fn names_that_begin_alike_are_not_one_gpu() {
        let had = ["GPU-a-1", "GPU-a-1/x", "GPU-a/1g.10gb@0+1", "GPU-ab"];
        check(&had, "GPU-a", &[3]);
        check(&had, "GPU-a/1g.10gb@0+1", &[3]);
        let holdings = holdings(&had);
        assert_eq!(holdings.on_gpu("GPU-a").count(), 1);
        assert_eq!(holdings.on_gpu("GPU-ab").count(), 1);
    }

    #[test]
    fn what_belongs_to_another_is_left_alone() {
        let mut holdings = holdings(&["GPU-a"]);
        let name = ResourceName::cut("GPU-a");
        holdings.set(&name, lease(9), false);
        assert!(!holdings.is_empty());
        holdings.set(&name, lease(1), false);
        assert!(holdings.is_empty());
    }
}
