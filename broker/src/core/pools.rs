//! CPU time, RAM and disk, of which the leases of one offer together have no more than its share.
//!
//! The whole GPUs of an offer are a pool: each lease may have more or less than its GPUs' proportion. A slice has its
//! own part and never more, which is a part of that pool where its GPU is offered whole too. Must not know which GPU or
//! slice is free.

use crate::core::book::Listing;
use crate::core::capacity::Misfit;
use crate::core::desk::Desk;
use crate::core::lease::{Lease, State};
use protocol::ids::{HostId, LeaseId};
use protocol::machine::Gpu;
use protocol::message::Rejection;
use protocol::offer::{Offer, Part, Partition, Share, parent};
use protocol::units::{Bytes, Timestamp};

impl Desk {
    /// Disks are there until their leases are over, whoever runs.
    pub(super) fn check_disk(
        &self,
        now: Timestamp,
        host: HostId,
        offer: &Offer,
        asked: Bytes,
    ) -> Result<(), Misfit> {
        let most = offer.limits.disk_max;
        if asked > most {
            let allowed = most;
            return Err(Misfit::never(Rejection::DiskTooLarge { asked, allowed }));
        }
        let disk = |sum: u64, lease: &Lease| sum.saturating_add(lease.contract.disk.0);
        let left_of_slices = offer.partition.as_ref().map(|partition| {
            let used = self.leases_in(host, offer).fold(0, disk);
            let all = most.0.saturating_mul(slices_max(offer, partition));
            all.saturating_sub(used)
        });
        let pools = self.pools(now, host, offer);
        let left_of_pools = pools.iter().map(|pool| {
            let used = self.leases_in(host, pool).fold(0, disk);
            pool.limits.disk_max.0.saturating_sub(used)
        });
        let allowed = left_of_pools.chain(left_of_slices).min();
        let allowed = Bytes(allowed.unwrap_or(most.0).min(most.0));
        if asked > allowed {
            return Err(Misfit::not_now(Rejection::DiskTooLarge { asked, allowed }));
        }
        Ok(())
    }

    /// Whether CPU time and RAM of a part are there when `gone` are.
    pub(super) fn has_room_beside(
        &self,
        now: Timestamp,
        host: HostId,
        offer: &Offer,
        part: &Part,
        gone: &[LeaseId],
    ) -> bool {
        let (cpu, ram) = (u64::from(part.cpu_millicores), part.ram.0);
        let fits = |(cpu, ram): (u64, u64), share: &Share| {
            cpu <= u64::from(share.cpu_millicores) && ram <= share.ram.0
        };
        let mut pools = self.pools(now, host, offer).into_iter();
        fits((cpu, ram), &offer.share)
            && pools.all(|pool| {
                let others = self.used_of(host, pool, gone);
                let sum = (cpu.saturating_add(others.0), ram.saturating_add(others.1));
                fits(sum, &pool.share)
            })
    }

    /// What CPU time and RAM the leases have that share `pool`, without `gone`. Who has notice counts as gone: what
    /// comes for its GPUs counts already.
    fn used_of(&self, host: HostId, pool: &Offer, gone: &[LeaseId]) -> (u64, u64) {
        let (mut cpu, mut ram) = (0_u64, 0_u64);
        for lease in self.leases_in(host, pool) {
            let is_there = match lease.state {
                State::Noticed { .. } => false,
                State::Clearing { .. } => true,
                State::Offered { .. }
                | State::Accepted { .. }
                | State::Preparing { .. }
                | State::Running
                | State::Suspect { .. }
                | State::Paused { .. }
                | State::Closing { .. }
                | State::Closed { .. } => lease.state.holds_resources(),
            };
            if is_there && !gone.contains(&lease.id) {
                let share = &lease.contract.share;
                cpu = cpu.saturating_add(share.cpu_millicores.into());
                ram = ram.saturating_add(share.ram.0);
            }
        }
        (cpu, ram)
    }

    /// The offers of which the CPU time, RAM and disk of one are a part: itself, or those of the whole GPUs that its
    /// slices are of.
    fn pools<'a>(&'a self, now: Timestamp, host: HostId, offer: &'a Offer) -> Vec<&'a Offer> {
        if offer.partition.is_none() {
            return vec![offer];
        }
        let is_pool = |pool: &&Offer| {
            let has = |gpu: &Gpu| pool.share.resources.contains(&gpu.uuid);
            pool.partition.is_none() && offer.share.gpus.iter().any(has)
        };
        let offers = self.book.host_offers(host, self.wall(now));
        offers.map(Listing::offer).filter(is_pool).collect()
    }

    /// The leases that have a part of an offer's share: of the offer itself, or anything of its GPUs.
    fn leases_in<'a>(&'a self, host: HostId, pool: &'a Offer) -> impl Iterator<Item = &'a Lease> {
        let leases = self.market.live_leases_of(host.into());
        leases.filter(move |lease| {
            let contract = &lease.contract;
            let mut names = contract.share.resources.iter();
            let is_of_its_gpu =
                |name: &str| pool.share.gpus.iter().any(|gpu| gpu.uuid.as_str() == name);
            contract.host == host
                && (contract.offer == pool.id || names.any(|name| is_of_its_gpu(parent(name))))
        })
    }
}

/// Most slices of an offer at once, by their memory.
fn slices_max(offer: &Offer, partition: &Partition) -> u64 {
    let (one, whole) = partition.memory_slices;
    let of_one = u64::from(whole / one.max(1)).max(1);
    of_one.saturating_mul(u64::try_from(offer.share.gpus.len()).unwrap_or(u64::MAX))
}
