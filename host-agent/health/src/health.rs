//! The health of all GPUs together: what a decision changes, and what may be leased.

use crate::counters::Counters;
use crate::input::{Act, Input, Standing};
use crate::machine::{Machine, Place, Tenants};
use crate::strike::Waiting;
use crate::tenants::{Part, PartState};
use crate::turn::Turn;
use crate::unit::{Idle, Kept, KeptGpu, Presence, Unit, Until};
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
                // Processes of an earlier boot have other numbers now, and those of leases are gone.
                is_booted: rebooted,
                idle: if rebooted { Idle::default() } else { kept.idle },
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

    /// Whether a GPU runs slower than it could, for so long that it counts.
    #[must_use]
    pub fn is_slowed(&self, gpu: &str) -> bool {
        let unit = self.units.get(gpu);
        unit.is_some_and(|unit| unit.pace.lowered().is_some())
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

    /// GPUs that answer, as they said themselves.
    pub fn answering(&self) -> impl Iterator<Item = &ResourceName> {
        self.present_as(|presence| *presence == Presence::Answers)
    }

    /// GPUs that were there and that the driver lists no more.
    pub fn gone(&self) -> impl Iterator<Item = &ResourceName> {
        self.present_as(|presence| *presence == Presence::Gone)
    }

    fn present_as(&self, is_it: fn(&Presence) -> bool) -> impl Iterator<Item = &ResourceName> {
        let units = self.units.iter();
        units.filter_map(move |(gpu, unit)| is_it(&unit.presence).then_some(gpu))
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
