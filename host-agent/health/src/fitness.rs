//! What may be leased: how each GPU and slice is, and why one cannot be had.

use crate::health::{Health, Unfit};
use crate::machine::Place;
use crate::tenants::{Part, PartState};
use crate::unit::{Fitness, Presence, Until};
use protocol::ids::LeaseId;
use protocol::offer::ResourceName;
use std::collections::{BTreeMap, BTreeSet};

impl Health {
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

    /// Whether a lease before `lease` still has any of these, or had it and nothing was done about it yet: then it is
    /// worth a wait.
    #[must_use]
    pub fn not_left(&self, lease: LeaseId, places: &[Place]) -> Option<Unfit> {
        let is_of_it = |part: &Part, place: &Place| {
            part.place.gpu == place.gpu
                && (part.place.is_whole()
                    || place.is_whole()
                    || part.place.resource == place.resource)
        };
        let part = self.parts.values().find(|part| {
            let is_anothers =
                matches!(&part.state, PartState::Leased { lease: of, .. } if *of != Some(lease));
            is_anothers && places.iter().any(|place| is_of_it(part, place))
        })?;
        Some(Unfit {
            soon: true,
            why: format!("{}: not clean since its last lease", part.place.resource),
        })
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
    pub(crate) fn fitness_alone(&self, gpu: &ResourceName) -> Fitness {
        let whole = self.parts.get(gpu);
        match (self.gpu_fitness(gpu), whole.map(|part| &part.state)) {
            (Fitness::Fit, Some(PartState::Cleaning(_) | PartState::Dirty { .. })) => {
                self.fitness(gpu, gpu)
            }
            (fitness, _) => fitness,
        }
    }
}
