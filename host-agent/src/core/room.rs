//! What of an offer's CPU, RAM and disk the leases on it have: all together never more than it sells. GPUs
//! are [`super::capacity`]'s.
//!
//! The whole GPUs of an offer share its CPU and RAM. A slice has its own part and no more, which is a part of that
//! share where its GPU is offered whole too.

use crate::core::lease::{LeaseRecord, State};
use crate::core::offer::Listed;
use protocol::ids::LeaseId;
use protocol::offer::{Offer, ResourceName, Share, parent};
use protocol::units::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// What one lease has of the machine.
#[derive(Debug, Clone)]
struct Used {
    share: Share,
    /// Whether it holds its resources now, and CPU and RAM with them.
    holds: bool,
    disk: Bytes,
}

/// What all leases have.
#[derive(Debug, Clone, Default)]
pub(super) struct Room(BTreeMap<LeaseId, Used>);

/// The sum of what some leases have.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    cpu_millicores: u64,
    ram: u64,
    disk: u64,
}

impl Sum {
    fn plus(self, used: &Used) -> Self {
        let held = |amount: u64| if used.holds { amount } else { 0 };
        Self {
            cpu_millicores: self
                .cpu_millicores
                .saturating_add(held(used.share.cpu_millicores.into())),
            ram: self.ram.saturating_add(held(used.share.ram.0)),
            disk: self.disk.saturating_add(used.disk.0),
        }
    }

    fn fits(self, sold: &Share) -> bool {
        self.cpu_millicores <= sold.cpu_millicores.into() && self.ram <= sold.ram.0
    }
}

impl Room {
    /// What the leases on record have: the disk until they are gone.
    pub(super) fn of<'a>(records: impl Iterator<Item = &'a LeaseRecord>) -> Self {
        let mut room = Self::default();
        for record in records {
            match record.state {
                State::Gone { .. } => {}
                State::Preparing { .. }
                | State::Running { .. }
                | State::Stopped { .. }
                | State::Failed { .. } => {
                    let holds = !record.state.held().is_empty();
                    room.put(record.lease, &record.share, record.order.disk, holds);
                }
            }
        }
        room
    }

    fn put(&mut self, lease: LeaseId, share: &Share, disk: Bytes, holds: bool) {
        let share = share.clone();
        self.0.insert(lease, Used { share, holds, disk });
    }

    /// Notes that a lease runs now.
    pub(super) fn take(&mut self, lease: LeaseId, share: &Share, disk: Bytes) {
        self.put(lease, share, disk, true);
    }

    /// Whether `lease` can have the CPU and RAM of `share` beside the others, out of the offers that its
    /// resources are in.
    pub(super) fn can_run(&self, lease: LeaseId, share: &Share, offers: &[Listed]) -> bool {
        pools(share, offers)
            .all(|offer| self.with(lease, share, Bytes(0), offer).fits(&offer.share))
    }

    /// The leases that hold something of the offers that `share` is in.
    pub(super) fn beside(&self, share: &Share, offers: &[Listed]) -> BTreeSet<LeaseId> {
        let is_near = |used: &Used| {
            pools(share, offers).any(|pool| meets(&pool.share.resources, &used.share.resources))
        };
        let near = self
            .0
            .iter()
            .filter(|(_, used)| used.holds && is_near(used));
        near.map(|(lease, _)| *lease).collect()
    }

    /// Whether `lease` can have `disk` of `offer` beside the others. Each slice has its own part, as often as slices
    /// of it are there at once.
    pub(super) fn has_disk(
        &self,
        lease: LeaseId,
        disk: Bytes,
        offer: &Offer,
        offers: &[Listed],
    ) -> bool {
        let most = offer.limits.disk_max.0;
        let of_slices = offer.partition.as_ref().is_none_or(|partition| {
            let (one, whole) = partition.memory_slices;
            let gpus = u64::try_from(offer.share.gpus.len()).unwrap_or(u64::MAX);
            let all = gpus.saturating_mul(u64::from(whole / one.max(1)).max(1));
            let used = self.with(lease, &offer.share, disk, offer).disk;
            used <= most.saturating_mul(all)
        });
        let has = |pool: &Offer| {
            let used = self.with(lease, &offer.share, disk, pool).disk;
            used <= pool.limits.disk_max.0
        };
        disk.0 <= most && of_slices && pools(&offer.share, offers).all(has)
    }

    /// What the leases on `offer` would have with this one.
    fn with(&self, lease: LeaseId, share: &Share, disk: Bytes, offer: &Offer) -> Sum {
        let others = self.0.iter().filter(|(other, used)| {
            **other != lease && meets(&used.share.resources, &offer.share.resources)
        });
        let this = Used {
            share: share.clone(),
            holds: true,
            disk,
        };
        others
            .map(|(_, used)| used)
            .chain([&this])
            .fold(Sum::default(), Sum::plus)
    }
}

/// The offers of whole GPUs, or of the machine, that a share is a part of.
fn pools<'a>(share: &'a Share, offers: &'a [Listed]) -> impl Iterator<Item = &'a Offer> {
    let offers = offers.iter().map(|listed| &listed.offer);
    offers.filter(|offer| {
        offer.partition.is_none() && meets(&offer.share.resources, &share.resources)
    })
}

/// Whether both have something of one GPU.
fn meets(some: &[ResourceName], others: &[ResourceName]) -> bool {
    let mut names = some.iter().map(|name| parent(name));
    names.any(|gpu| others.iter().any(|other| parent(other) == gpu))
}
