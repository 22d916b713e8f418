//! What of an offer's CPU, RAM and disk the leases on it have: all together never more than it sells. GPUs
//! are [`super::capacity`]'s.

use crate::core::lease::{LeaseRecord, State};
use crate::core::offer::Listed;
use protocol::ids::LeaseId;
use protocol::offer::{Offer, ResourceName, Share};
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
        let mut offers = offers
            .iter()
            .map(|listed| &listed.offer)
            .filter(|offer| meets(&offer.share.resources, &share.resources));
        offers.all(|offer| self.with(lease, share, Bytes(0), offer).fits(&offer.share))
    }

    /// The leases that hold something of the offers that `share` is in.
    pub(super) fn beside(&self, share: &Share, offers: &[Listed]) -> BTreeSet<LeaseId> {
        let is_near = |used: &Used| {
            offers.iter().any(|listed| {
                let sold = &listed.offer.share.resources;
                meets(sold, &share.resources) && meets(sold, &used.share.resources)
            })
        };
        let near = self
            .0
            .iter()
            .filter(|(_, used)| used.holds && is_near(used));
        near.map(|(lease, _)| *lease).collect()
    }

    /// Whether `lease` can have `disk` of `offer` beside the others.
    pub(super) fn has_disk(&self, lease: LeaseId, disk: Bytes, offer: &Offer) -> bool {
        self.with(lease, &offer.share, disk, offer).disk <= offer.limits.disk_max.0
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

fn meets(some: &[ResourceName], others: &[ResourceName]) -> bool {
    some.iter().any(|name| others.contains(name))
}
