//! What of an offer is there for somebody: free GPUs first, then those of leases that can be pushed out; and
//! CPU time, RAM and disk, of which the leases of one offer together have no more than its share.
//!
//! Must not know prices beyond bids, money or filters, and must not change anything.

use crate::core::auction::{self, Victim};
use crate::core::book::Listing;
use crate::core::desk::Desk;
use crate::core::event::Event;
use crate::core::lease::{Lease, State};
use protocol::bounded::{List, Text};
use protocol::ids::{HostId, LeaseId, OfferId};
use protocol::message::Rejection;
use protocol::offer::{Offer, Part, ResourceName};
use protocol::order::Order;
use protocol::terms::ContractKind;
use protocol::units::{Bytes, Millis, PricePerHour, Timestamp};

/// With which right somebody wants a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nobody can push it out, and it pushes out whoever is interruptible.
    Firm,
    /// It pays this much for each GPU and hour, and pushes out those who pay less and have had their time.
    Bid(PricePerHour),
}

/// Why there is no place for somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misfit {
    /// In the broker's words.
    pub(super) rejection: Rejection,
    /// Whether it is no use to wait for one.
    pub(super) is_final: bool,
    /// With which those who would have been pushed out rather pay what the host asks.
    pub(super) converts: Vec<Event>,
}

impl Misfit {
    /// It does not fit here, whatever becomes of others.
    pub(super) fn never(rejection: Rejection) -> Self {
        Self {
            rejection,
            is_final: true,
            converts: Vec::new(),
        }
    }

    /// It does not fit now.
    pub(super) fn not_now(rejection: Rejection) -> Self {
        Self {
            is_final: false,
            ..Self::never(rejection)
        }
    }
}

/// A part of an offer that somebody can have, and who has to go for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) part: Part,
    pub(super) victims: Vec<LeaseId>,
}

/// The resources of an offer, as they are for one claim.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Those that nobody has, or has next.
    pub(super) free: Vec<ResourceName>,
    /// Who can be pushed out, by the lowest index of what they have.
    pub(super) victims: Vec<Victim>,
}

impl Desk {
    /// The leases of one offer that are not over.
    pub(super) fn leases_on(&self, host: HostId, offer: OfferId) -> impl Iterator<Item = &Lease> {
        let leases = self.market.live_leases_of(host.into());
        leases.filter(move |lease| lease.contract.host == host && lease.contract.offer == offer)
    }

    /// What of `resources` is free, and who of those that have the others can be pushed out for `claim`.
    pub(super) fn room(
        &self,
        now: Timestamp,
        host: HostId,
        resources: &[ResourceName],
        claim: Claim,
        spared: &[LeaseId],
    ) -> Room {
        let mut room = Room::default();
        for resource in resources {
            // Whoever has it next, or else whoever has it now.
            let next = self.market.claimant(host, resource);
            let Some(holder) = next.or_else(|| self.market.holder(host, resource)) else {
                room.free.push(resource.clone());
                continue;
            };
            if let Some(known) = room.victims.iter_mut().find(|it| it.lease == holder) {
                known.units += 1;
                continue;
            }
            let lease = self.market.lease(holder).filter(|lease| {
                !spared.contains(&holder) && self.can_be_pushed_out(now, lease, claim)
            });
            room.victims.extend(lease.map(victim));
        }
        room
    }

    /// Whether `lease` has to go for whoever comes with `claim`, if that one wins.
    pub(super) fn can_be_pushed_out(&self, now: Timestamp, lease: &Lease, claim: Claim) -> bool {
        if lease.contract.kind != ContractKind::Interruptible {
            return false;
        }
        match (&lease.state, claim) {
            (State::Running, Claim::Firm) => true,
            (State::Running, Claim::Bid(_)) => self.has_had_its_time(now, lease),
            // Its disk is there, so it can wait again; a first start is not broken off.
            (State::Preparing { .. }, Claim::Firm) => lease.started_at.is_some(),
            // Its host knows nothing of it yet: it waits again.
            (State::Clearing { .. }, Claim::Firm) => true,
            (
                State::Preparing { .. }
                | State::Clearing { .. }
                | State::Offered { .. }
                | State::Accepted { .. }
                | State::Noticed { .. }
                | State::Suspect { .. }
                | State::Paused { .. }
                | State::Closing { .. }
                | State::Closed { .. },
                Claim::Firm | Claim::Bid(_),
            ) => false,
        }
    }

    /// How long the present run of a lease is, by the broker's clock and without silence.
    pub(super) fn ran(&self, now: Timestamp, lease: &Lease) -> Millis {
        let allowed = self.meter_at(now, lease).allowed;
        Millis(allowed.0.saturating_sub(lease.run_from.0))
    }

    /// Whether it ran for as long as nobody can outbid it.
    pub(super) fn has_had_its_time(&self, now: Timestamp, lease: &Lease) -> bool {
        self.ran(now, lease) >= self.settings.min_run.millis()
    }

    /// The part of `listing` that `order` gets with `claim`.
    ///
    /// # Errors
    /// Why it gets none.
    pub(super) fn take(
        &self,
        now: Timestamp,
        listing: &Listing,
        order: &Order,
        claim: Claim,
        spared: &[LeaseId],
    ) -> Result<Taken, Misfit> {
        let (host, offer) = (listing.host(), listing.offer());
        let mut part = size_of(offer, order).map_err(Misfit::never)?;
        self.check_disk(host, offer, order.disk)?;
        let taken = || Misfit::not_now(Rejection::OfferTaken);
        let wanted = units(order.gpus, offer);
        let room = self.room(now, host, &offer.share.resources, claim, spared);
        let missing = wanted.saturating_sub(room.free.len());
        let missing = u16::try_from(missing).map_err(|_| taken())?;
        let victims = match claim {
            Claim::Firm => auction::preempted(&room.victims, missing),
            Claim::Bid(bid) => auction::outbid(&room.victims, missing, bid),
        };
        let victims = victims.ok_or_else(taken)?;
        if !self.has_room_beside(host, offer, &part, &victims) {
            return Err(taken());
        }
        let freed = offer.share.resources.iter().filter(|resource| {
            let next = self.market.claimant(host, resource);
            let holder = next.or_else(|| self.market.holder(host, resource));
            holder.is_some_and(|holder| victims.contains(&holder))
        });
        let mut resources: Vec<ResourceName> = room.free.iter().take(wanted).cloned().collect();
        resources.extend(freed.take(usize::from(missing)).cloned());
        resources.sort_by_key(|name| offer.share.resources.iter().position(|it| it == name));
        part.resources = List::first(resources);
        Ok(Taken { part, victims })
    }

    /// Disks are there until their leases are over, whoever runs.
    fn check_disk(&self, host: HostId, offer: &Offer, asked: Bytes) -> Result<(), Misfit> {
        let most = offer.limits.disk_max;
        if asked > most {
            let allowed = most;
            return Err(Misfit::never(Rejection::DiskTooLarge { asked, allowed }));
        }
        let used = self.leases_on(host, offer.id).fold(0_u64, |sum, lease| {
            sum.saturating_add(lease.contract.disk.0)
        });
        let allowed = Bytes(most.0.saturating_sub(used));
        if asked > allowed {
            return Err(Misfit::not_now(Rejection::DiskTooLarge { asked, allowed }));
        }
        Ok(())
    }

    /// Whether CPU time and RAM of a part are there when `gone` are. Who has notice counts as gone: what comes
    /// for its GPUs counts already.
    pub(super) fn has_room_beside(
        &self,
        host: HostId,
        offer: &Offer,
        part: &Part,
        gone: &[LeaseId],
    ) -> bool {
        let (mut cpu, mut ram) = (u64::from(part.cpu_millicores), part.ram.0);
        for lease in self.leases_on(host, offer.id) {
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
        cpu <= u64::from(offer.share.cpu_millicores) && ram <= offer.share.ram.0
    }
}

/// How many resources `gpus` GPUs of an offer are: all of them where it has no GPUs.
pub(super) fn units(gpus: u16, offer: &Offer) -> usize {
    if offer.share.gpus.is_empty() {
        offer.share.resources.len()
    } else {
        gpus.into()
    }
}

/// A lease as one of those that may be pushed out, with one resource found.
pub(super) fn victim(lease: &Lease) -> Victim {
    let gpus = u16::try_from(lease.contract.share.gpus.len().max(1)).unwrap_or(u16::MAX);
    Victim {
        lease: lease.id,
        bid: lease.contract.bid.unwrap_or_default(),
        gpus,
        units: 1,
    }
}

/// What an order gets of CPU time, RAM and shared memory: what it asks for, or its GPUs' proportion.
fn size_of(offer: &Offer, order: &Order) -> Result<Part, Rejection> {
    let (cpu, ram, shared_memory, _) = offer.proportion(order.gpus);
    let cpu_millicores = order.cpu_millicores.unwrap_or(cpu);
    let ram = order.ram.unwrap_or(ram);
    let problem = if cpu_millicores == 0 || ram.0 == 0 {
        "CPU time and memory must be more than nothing"
    } else if cpu_millicores > offer.share.cpu_millicores {
        "it has not so much CPU time"
    } else if ram > offer.share.ram {
        "it has not so much memory"
    } else {
        return Ok(Part {
            resources: List::default(),
            cpu_millicores,
            ram,
            shared_memory: shared_memory.min(ram),
        });
    };
    Err(Rejection::NotSold(Text::cut(problem)))
}
