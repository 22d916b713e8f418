//! What of an offer is there for somebody: free GPUs and slices first, then those of leases that can be pushed out.
//!
//! Whole GPUs and slices of them are offered beside each other, and [`mig::name::excludes`] says which of them
//! cannot be had at once. CPU time, RAM and disk are `pools`' to say, where a slice goes `packing`'s.
//!
//! Must not know prices beyond bids, money or filters, and must not change anything.

use crate::core::auction::{self, Victim};
use crate::core::book::Listing;
use crate::core::desk::Desk;
use crate::core::event::Event;
use crate::core::lease::{Lease, State};
use mig::name::excludes;
use protocol::bounded::{List, Text};
use protocol::ids::{HostId, LeaseId};
use protocol::message::Rejection;
use protocol::offer::{Offer, Part, ResourceName};
use protocol::order::Order;
use protocol::terms::ContractKind;
use protocol::units::{Millis, PricePerHour, Timestamp};

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
    /// Those that nobody has, or has next. Of slices, places that may overlap: one of them can be had.
    pub(super) free: Vec<ResourceName>,
    /// Who can be pushed out, by the lowest index of what they have. Of slices, each for one place.
    pub(super) victims: Vec<Victim>,
}

impl Room {
    /// How many of `wanted` resources are not free; of slices one is wanted.
    pub(super) fn missing(&self, wanted: usize) -> Option<u16> {
        u16::try_from(wanted.saturating_sub(self.free.len())).ok()
    }
}

impl Desk {
    /// Who keeps `resource` from being had: whoever has it next, and whoever has it now and does not go for them.
    pub(super) fn in_the_way(&self, host: HostId, resource: &str) -> Vec<LeaseId> {
        let claims = self.market.claims(host);
        let claims = || {
            claims
                .into_iter()
                .flat_map(|claims| claims.in_the_way(resource))
        };
        let mut found: Vec<LeaseId> = claims().map(|(_, lease)| lease).collect();
        let holdings = self.market.holdings(host).into_iter();
        for (name, holder) in holdings.flat_map(|holdings| holdings.in_the_way(resource)) {
            let goes = claims().any(|(claimed, _)| excludes(claimed, name));
            if !goes {
                found.push(holder);
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// What of `resources` is free, and who of those that have the others can be pushed out for `claim`. Of slices
    /// the resources are places of which one is wanted.
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
            if self.book.is_withheld(host, resource) {
                continue;
            }
            let leases = self.in_the_way(host, resource);
            if leases.is_empty() {
                room.free.push(resource.clone());
                continue;
            }
            let is_slice = is_slice(resource);
            if let Some(known) = room.victims.iter_mut().find(|it| it.leases == leases) {
                known.units += u16::from(!is_slice);
                continue;
            }
            if let Some(victim) = self.victim(now, leases, claim, spared) {
                add_victim(&mut room.victims, victim, is_slice);
            }
        }
        room
    }

    /// `leases` as those that go together, with one resource found; nothing when one of them stays.
    fn victim(
        &self,
        now: Timestamp,
        leases: Vec<LeaseId>,
        claim: Claim,
        spared: &[LeaseId],
    ) -> Option<Victim> {
        let (mut bid, mut pays) = (PricePerHour(0), 0_u128);
        for id in &leases {
            let lease = self.market.lease(*id)?;
            if spared.contains(id) || !self.can_be_pushed_out(now, lease, claim) {
                return None;
            }
            let each = lease.contract.bid.unwrap_or_default();
            let gpus = u128::try_from(lease.contract.share.gpus.len().max(1)).unwrap_or(u128::MAX);
            bid = bid.max(each);
            pays = pays.saturating_add(u128::from(each.0).saturating_mul(gpus));
        }
        Some(Victim {
            leases,
            bid,
            pays,
            units: 1,
        })
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
        self.check_disk(now, host, offer, order.disk)?;
        let taken = || Misfit::not_now(Rejection::OfferTaken);
        let wanted = units(order.gpus, offer);
        let room = self.room(now, host, &offer.share.resources, claim, spared);
        let missing = room.missing(wanted).ok_or_else(taken)?;
        let victims = match claim {
            Claim::Firm => auction::preempted(&room.victims, missing),
            Claim::Bid(bid) => auction::outbid(&room.victims, missing, bid),
        };
        let victims = victims.ok_or_else(taken)?;
        if !self.has_room_beside(now, host, offer, &part, &victims) {
            return Err(taken());
        }
        let freed = offer.share.resources.iter().filter(|resource| {
            let leases = self.in_the_way(host, resource);
            !leases.is_empty() && leases.iter().all(|lease| victims.contains(lease))
        });
        let freed = freed.filter(|_| missing > 0);
        part.resources = if offer.partition.is_some() {
            let places: Vec<&ResourceName> = room.free.iter().chain(freed).collect();
            let best = self.best_place(listing, &places, &victims);
            List::first(best.into_iter().cloned())
        } else {
            let free = self.spare_divided(host, now, &room.free).into_iter();
            let mut resources: Vec<ResourceName> = free.take(wanted).cloned().collect();
            resources.extend(freed.take(usize::from(missing)).cloned());
            resources.sort_by_key(|name| offer.share.resources.iter().position(|it| it == name));
            List::first(resources)
        };
        Ok(Taken { part, victims })
    }
}

/// Whether a resource is a slice of a GPU.
pub(super) fn is_slice(resource: &str) -> bool {
    resource.contains('/')
}

/// Puts those who go together among the others: for another place of a slice as one more choice, and with those that
/// have a lease in common where GPUs are wanted beside each other.
fn add_victim(victims: &mut Vec<Victim>, mut victim: Victim, is_slice: bool) {
    if is_slice {
        victims.push(victim);
        return;
    }
    let shares = |other: &Victim| other.leases.iter().any(|it| victim.leases.contains(it));
    let Some(place) = victims.iter().position(shares) else {
        victims.push(victim);
        return;
    };
    if let Some(known) = victims.get_mut(place) {
        // Both are counted in full: they are rather thought dearer than they are than cheaper.
        known.pays = known.pays.saturating_add(victim.pays);
        known.bid = known.bid.max(victim.bid);
        known.units += victim.units;
        known.leases.append(&mut victim.leases);
        known.leases.sort_unstable();
        known.leases.dedup();
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
