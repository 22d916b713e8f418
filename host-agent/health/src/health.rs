//! The health of all GPUs together: what a decision changes, and what may be leased.

use crate::counters::Counters;
use crate::input::{Act, Input, Standing};
use crate::machine::{Machine, Place, Tenants};
use crate::strike::Waiting;
use crate::tenants::{Part, PartState};
use crate::turn::Turn;
use crate::unit::{Fitness, Kept, KeptGpu, Presence, Unit, Until};
use protocol::ids::{BootId, LeaseId, RenterId};
use protocol::offer::ResourceName;
use protocol::units::Millis;
use std::collections::{BTreeMap, BTreeSet};

/// The health of all GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    pub(crate) boot: BootId,
    pub(crate) machine: Machine,
    pub(crate) tenants: Tenants,
    pub(crate) units: BTreeMap<ResourceName, Unit>,
    /// What is leased, or was and is not clean.
    pub(crate) parts: BTreeMap<ResourceName, Part>,
    pub(crate) waiting: Vec<Waiting>,
    /// Leases that were told to end.
    pub(crate) ending: BTreeSet<LeaseId>,
    pub(crate) frozen: Vec<Frozen>,
    /// Why GPUs cannot be leased together.
    pub(crate) fabric: Option<String>,
    pub(crate) drain: Option<String>,
    /// How often programs of a renter brought errors about.
    pub(crate) provoked: BTreeMap<RenterId, u32>,
}

/// A hive of which a GPU is being reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frozen {
    pub(crate) gpu: ResourceName,
    pub(crate) over: bool,
    /// Those that were not looked at since.
    pub(crate) unchecked: BTreeSet<ResourceName>,
}

/// Why something cannot be leased now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// Whether it is being made ready, so that it is worth a wait.
    pub soon: bool,
    /// Why.
    pub why: String,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The health from now on.
    pub next: Health,
    /// What is to be done, in this order.
    pub acts: Vec<Act>,
}

impl Health {
    /// As the journal kept it. What waited for a reboot has had it when this is another boot.
    #[must_use]
    pub fn recovered(kept: Kept, boot: BootId) -> Self {
        let rebooted = kept.boot != boot.to_string();
        let units = kept.gpus.into_iter().map(|kept| {
            let wait = kept.wait.map(|mut wait| {
                if rebooted && wait.until == Until::Reboot {
                    wait.until = Until::Tested;
                }
                wait
            });
            let unit = Unit {
                wait,
                reset_wanted: kept.reset_wanted,
                idle: kept.idle,
                ..Unit::default()
            };
            (kept.gpu, unit)
        });
        // Slices did not outlive a boot; what was in them is cleaned with the GPU.
        let used = kept.used.into_iter().map(|place| {
            if rebooted {
                Place::whole(&place.gpu)
            } else {
                place
            }
        });
        let parts = used.map(|place| (place.resource.clone(), Part::leased(place, None)));
        Self {
            boot,
            machine: Machine::default(),
            tenants: Tenants::default(),
            units: units.collect(),
            parts: parts.collect(),
            waiting: Vec::new(),
            ending: BTreeSet::new(),
            frozen: Vec::new(),
            fabric: None,
            drain: if rebooted { None } else { kept.drain },
            provoked: BTreeMap::new(),
        }
    }

    /// What `input` changes at `now`, which is time since the boot.
    #[must_use]
    pub fn decide(&self, input: &Input, now: Millis) -> Decision {
        let mut turn = Turn::new(self.clone(), now);
        turn.hear(input);
        turn.go_on();
        let Turn { health, acts, .. } = turn;
        let mut all = self.changes_until(&health);
        all.extend(acts);
        Decision {
            next: health,
            acts: all,
        }
    }

    /// What is kept in the journal.
    #[must_use]
    pub fn kept(&self) -> Kept {
        let gpus = self.units.iter().map(|(gpu, unit)| KeptGpu {
            gpu: gpu.clone(),
            wait: unit.wait.clone(),
            reset_wanted: unit.reset_wanted.clone(),
            idle: unit.idle.clone(),
        });
        let is_bare = |kept: &KeptGpu| {
            kept.wait.is_none() && kept.reset_wanted.is_none() && kept.idle == Default::default()
        };
        Kept {
            boot: self.boot.to_string(),
            gpus: gpus.filter(|kept| !is_bare(kept)).collect(),
            used: self.parts.values().map(|part| part.place.clone()).collect(),
            drain: self.drain.clone(),
        }
    }

    /// Whether this GPU or slice may be leased, and what it is if not.
    #[must_use]
    pub fn fitness(&self, resource: &ResourceName, gpu: &ResourceName) -> Fitness {
        let whole = self.gpu_fitness(gpu);
        if !whole.is_fit() {
            return whole;
        }
        let is_whole = resource == gpu;
        let concerns = |part: &&Part| {
            part.place.gpu == *gpu
                && (is_whole || part.place.is_whole() || part.place.resource == *resource)
        };
        let mut found = Fitness::Fit;
        for part in self.parts.values().filter(concerns) {
            match &part.state {
                PartState::Leased { .. } => {}
                PartState::Cleaning(_) => found = Fitness::Cleaning,
                PartState::Dirty { why, .. } => {
                    return Fitness::Quarantined {
                        why: why.clone(),
                        until: Until::Tested,
                    };
                }
            }
        }
        found
    }

    fn gpu_fitness(&self, gpu: &ResourceName) -> Fitness {
        let Some(unit) = self.units.get(gpu) else {
            return Fitness::Fit;
        };
        match &unit.presence {
            Presence::Gone => return Fitness::Gone,
            Presence::Unknown { why, .. } => return Fitness::Unknown { why: why.clone() },
            Presence::Answers | Presence::Unheard => {}
        }
        let resets =
            |gpu: &ResourceName| self.units.get(gpu).is_some_and(|unit| unit.reset.running);
        if self.machine.reset_domain(gpu).iter().any(resets)
            || self.frozen.iter().any(|hive| hive.unchecked.contains(gpu))
        {
            return Fitness::Resetting;
        }
        let (why, until) = match (&unit.wait, self.waiting_for(gpu)) {
            (Some(wait), _) => (wait.why.clone(), wait.until),
            (None, Some(why)) => (why, Until::Tested),
            (None, None) => return Fitness::Fit,
        };
        let mut on_it = self.tenants.struck(gpu, None);
        if on_it.any(|tenancy| !self.ending.contains(&tenancy.lease)) {
            Fitness::Finishing { why, until }
        } else {
            Fitness::Quarantined { why, until }
        }
    }

    /// An error of which it is not known yet what it is.
    fn waiting_for(&self, gpu: &ResourceName) -> Option<String> {
        let waiting = self
            .waiting
            .iter()
            .find(|waiting| waiting.strike.gpu == *gpu)?;
        Some(format!("an error just now (Xid {})", waiting.strike.xid))
    }

    /// Why a lease cannot have these now; nothing when it can.
    #[must_use]
    pub fn unfit(&self, places: &[Place]) -> Option<Unfit> {
        let for_good = |why: String| Unfit { soon: false, why };
        if let Some(why) = &self.drain {
            return Some(for_good(why.clone()));
        }
        let gpus: BTreeSet<&ResourceName> = places.iter().map(|place| &place.gpu).collect();
        for place in places {
            let fitness = self.fitness(&place.resource, &place.gpu);
            if !fitness.is_fit() {
                return Some(Unfit {
                    soon: matches!(fitness, Fitness::Cleaning | Fitness::Resetting),
                    why: format!("{}: {}", place.resource, fitness.in_words()),
                });
            }
            if gpus.len() > 1 && self.is_alone(&place.gpu) {
                let why = format!("{}: its links to other GPUs do not work", place.gpu);
                return Some(for_good(why));
            }
        }
        None
    }

    /// Whether this GPU may not be leased together with others.
    #[must_use]
    pub fn is_alone(&self, gpu: &ResourceName) -> bool {
        let linked = self.machine.device(gpu);
        let linked = linked.is_some_and(|device| device.link_group != 0);
        (linked && self.fabric.is_some()) || self.units.get(gpu).is_some_and(|unit| unit.alone)
    }

    /// What cannot be leased now, by name, with the reason.
    #[must_use]
    pub fn withheld(&self) -> BTreeMap<ResourceName, String> {
        let gpus = self.machine.devices().map(|device| &device.gpu);
        let mut withheld: BTreeMap<ResourceName, String> = gpus
            .filter_map(|gpu| {
                let fitness = self.fitness_alone(gpu);
                (!fitness.is_fit()).then(|| (gpu.clone(), fitness.in_words()))
            })
            .collect();
        for part in self.parts.values().filter(|part| !part.place.is_whole()) {
            let fitness = self.fitness(&part.place.resource, &part.place.gpu);
            if !fitness.is_fit() {
                withheld.insert(part.place.resource.clone(), fitness.in_words());
            }
        }
        withheld
    }

    /// How a GPU is, whatever its slices are.
    fn fitness_alone(&self, gpu: &ResourceName) -> Fitness {
        let whole = self.parts.get(gpu);
        match (self.gpu_fitness(gpu), whole.map(|part| &part.state)) {
            (Fitness::Fit, Some(PartState::Cleaning(_) | PartState::Dirty { .. })) => {
                self.fitness(gpu, gpu)
            }
            (fitness, _) => fitness,
        }
    }

    /// What a GPU's grade is lowered for.
    #[must_use]
    pub fn lowered(&self, gpu: &str) -> Option<String> {
        let unit = self.units.get(gpu)?;
        match unit.pace.lowered() {
            Some(slowed) => Some(slowed.in_words()),
            None if unit.worn => Some("its memory has many errors that are corrected".to_owned()),
            None => None,
        }
    }

    /// How often programs of that renter brought errors about since the agent started.
    #[must_use]
    pub fn provoked(&self, renter: RenterId) -> u32 {
        self.provoked.get(&renter).copied().unwrap_or(0)
    }

    /// Why the host takes no lease.
    #[must_use]
    pub fn drain(&self) -> Option<&str> {
        self.drain.as_deref()
    }

    /// Every GPU, and every slice that is leased or not clean.
    #[must_use]
    pub fn standings(&self) -> Vec<Standing> {
        let gpus = self.machine.devices().map(|device| &device.gpu);
        let gpus = gpus.map(|gpu| (gpu, gpu, self.fitness_alone(gpu)));
        let slices = self.parts.values().filter(|part| !part.place.is_whole());
        let slices = slices.map(|part| {
            let (resource, gpu) = (&part.place.resource, &part.place.gpu);
            (resource, gpu, self.fitness(resource, gpu))
        });
        gpus.chain(slices)
            .map(|(resource, gpu, fitness)| {
                let unit = self.units.get(gpu);
                Standing {
                    resource: resource.clone(),
                    fitness,
                    lowered: self.lowered(gpu),
                    reset_wanted: unit.and_then(|unit| unit.reset_wanted.clone()),
                    idle: unit.and_then(|unit| unit.idle.memory),
                    until: unit.and_then(|unit| unit.wait.as_ref().map(|wait| wait.until)),
                }
            })
            .collect()
    }

    /// What was leased and is not clean: it is still in use.
    pub fn unclean(&self) -> impl Iterator<Item = &ResourceName> {
        self.parts.iter().filter_map(|(resource, part)| {
            (!matches!(part.state, PartState::Leased { .. })).then_some(resource)
        })
    }

    /// Leases whose time is not counted.
    pub(crate) fn frozen_leases(&self) -> BTreeSet<LeaseId> {
        let hives = self.frozen.iter();
        hives
            .flat_map(|hive| self.tenants.within(&hive.unchecked))
            .map(|tenancy| tenancy.lease)
            .collect()
    }

    /// The counters of a GPU, as last read.
    pub(crate) fn counters(&self, gpu: &str) -> Option<Counters> {
        self.units.get(gpu).and_then(|unit| unit.counters)
    }

    /// What is different after a decision, as acts: the journal first, then what stops, then what goes on.
    fn changes_until(&self, next: &Self) -> Vec<Act> {
        let mut acts = Vec::new();
        let kept = next.kept();
        if self.kept() != kept {
            acts.push(Act::Keep(kept));
        }
        let (before, after) = (self.withheld(), next.withheld());
        for (resource, why) in &after {
            if !before.contains_key(resource) {
                acts.push(Act::Withdraw {
                    resource: resource.clone(),
                    why: why.clone(),
                });
            }
        }
        let back = before
            .keys()
            .filter(|resource| !after.contains_key(*resource));
        acts.extend(back.map(|resource| Act::Restore {
            resource: resource.clone(),
        }));
        for device in next.machine.devices() {
            let gpu = &device.gpu;
            if self.is_alone(gpu) != next.is_alone(gpu) {
                acts.push(Act::Together {
                    gpu: gpu.clone(),
                    allowed: !next.is_alone(gpu),
                });
            }
            let lowered = next.lowered(gpu);
            if self.lowered(gpu).is_some() != lowered.is_some() {
                acts.push(Act::Grade {
                    gpu: gpu.clone(),
                    lowered,
                });
            }
        }
        if let (None, Some(why)) = (&self.drain, &next.drain) {
            acts.push(Act::DrainHost { why: why.clone() });
        }
        let (before, after) = (self.frozen_leases(), next.frozen_leases());
        let frozen: Vec<LeaseId> = after.difference(&before).copied().collect();
        if !frozen.is_empty() {
            acts.push(Act::Freeze(frozen));
        }
        let over: Vec<LeaseId> = before.difference(&after).copied().collect();
        if !over.is_empty() {
            acts.push(Act::LetGoOn(over));
        }
        acts
    }
}
