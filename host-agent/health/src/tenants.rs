//! Who has what, and what is done with it when nobody has it any more: cleaned and tested.

use crate::between::{Cleaning, Dirty, Scrubbed, Step, Took};
use crate::counters::{Added, Counters};
use crate::input::Act;
use crate::machine::{Place, Tenancy, Tenants};
use crate::turn::Turn;
use crate::unit::{Until, Wait};
use protocol::ids::LeaseId;
use protocol::offer::ResourceName;
use protocol::units::Millis;
use std::collections::BTreeMap;

/// What is not clean is tried again after this, and after twice as long each time.
pub(crate) const RETRY: Millis = Millis(60_000);
/// And after no more than this many doublings: an hour.
pub(crate) const RETRY_DOUBLINGS: u32 = 6;

/// Something that is leased, or was and is not clean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) place: Place,
    pub(crate) state: PartState,
    /// How often it was not clean, one time after the other.
    pub(crate) tries: u32,
}

/// How it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PartState {
    /// Leased; whose, unless the agent only knows that it was.
    Leased {
        lease: Option<LeaseId>,
        /// The GPU's counters when the lease began.
        before: Option<Counters>,
    },
    /// Being cleaned.
    Cleaning(Box<Cleaning>),
    /// Not clean, and tried again then.
    Dirty { why: String, retry_at: Millis },
}

impl Part {
    pub(crate) const fn leased(place: Place, lease: Option<LeaseId>) -> Self {
        Self {
            place,
            state: PartState::Leased {
                lease,
                before: None,
            },
            tries: 0,
        }
    }
}

impl Turn {
    /// Everybody who has something, from now on.
    pub(crate) fn tenants(&mut self, tenancies: &[Tenancy]) {
        let held: BTreeMap<&ResourceName, (LeaseId, &Place)> = tenancies
            .iter()
            .flat_map(|tenancy| {
                let places = tenancy.places.iter();
                places.map(|place| (&place.resource, (tenancy.lease, place)))
            })
            .collect();
        let is_over = |part: &&Part| {
            matches!(part.state, PartState::Leased { .. })
                && !held.contains_key(&part.place.resource)
        };
        let over: Vec<Place> = self
            .health
            .parts
            .values()
            .filter(is_over)
            .map(|part| part.place.clone())
            .collect();
        // Whether it can be cleaned is not known before it is known which GPUs there are: then all are said again.
        if self.health.machine.devices().next().is_some() {
            for place in over {
                self.left(&place);
            }
        }
        for (lease, place) in held.into_values() {
            self.taken(lease, place);
        }
        self.health.tenants = Tenants::new(tenancies.iter().cloned());
        let tenants = &self.health.tenants;
        self.health
            .ending
            .retain(|lease| tenants.of(*lease).is_some());
    }

    fn taken(&mut self, lease: LeaseId, place: &Place) {
        let before = self.health.counters(&place.gpu);
        let known = self.health.parts.get_mut(&place.resource);
        match known {
            Some(Part {
                place: known,
                state: PartState::Leased { lease: of, .. },
                ..
            }) if of.is_none_or(|of| of == lease) => {
                *of = Some(lease);
                known.instance = place.instance;
            }
            other => {
                let was_used = other.is_some();
                let part = Part {
                    place: place.clone(),
                    state: PartState::Leased {
                        lease: Some(lease),
                        before,
                    },
                    tries: 0,
                };
                self.health.parts.insert(place.resource.clone(), part);
                if was_used {
                    let text = format!("{} was leased again before it was clean", place.resource);
                    self.alarm(Some(&place.gpu), text);
                }
            }
        }
    }

    fn left(&mut self, place: &Place) {
        let now = self.now;
        self.unit(&place.gpu).killed_at = Some(now);
        if !self.is_cleanable(&place.gpu) {
            self.health.parts.remove(&place.resource);
            let text = format!(
                "{}: this host cannot clean it after a lease",
                place.resource
            );
            return self.note(Some(&place.gpu), text);
        }
        if let Some(part) = self.health.parts.get_mut(&place.resource) {
            let before = match &part.state {
                PartState::Leased { before, .. } => *before,
                PartState::Cleaning(_) | PartState::Dirty { .. } => None,
            };
            part.state = PartState::Cleaning(Box::new(Cleaning::begin(place.clone(), before, now)));
        }
    }

    fn is_cleanable(&self, gpu: &ResourceName) -> bool {
        let device = self.health.machine.device(gpu);
        // One that is not known now was cleanable when it was leased.
        device.is_none_or(|device| device.cleanable)
    }

    /// A reading of the GPU came: its cleanings look at it.
    pub(crate) fn cleaning_read(&mut self, gpu: &ResourceName) {
        let now = self.now;
        let Some(unit) = self.health.units.get(gpu) else {
            return;
        };
        let (Some(reading), Some(counters)) = (&unit.reading, unit.counters) else {
            return;
        };
        let mut steps = Vec::new();
        for part in self.health.parts.values_mut() {
            if part.place.gpu != *gpu {
                continue;
            }
            if let PartState::Cleaning(cleaning) = &mut part.state {
                let (next, step) = cleaning.read(reading, counters, &unit.idle, now);
                **cleaning = next;
                steps.push((part.place.clone(), step));
            }
        }
        for (place, step) in steps {
            self.stepped(&place, step);
        }
    }

    fn stepped(&mut self, place: &Place, step: Step) {
        match step {
            Step::Nothing | Step::IsEmpty => {}
            Step::Dirty(dirty) => self.dirty(place, &dirty),
            Step::Done { took, added } => self.cleaned(place, took, added),
        }
    }

    fn cleaned(&mut self, place: &Place, took: Took, added: Added) {
        if place.is_whole() {
            self.health
                .parts
                .retain(|_, part| part.place.gpu != place.gpu);
            let unit = self.unit(&place.gpu);
            if unit
                .wait
                .as_ref()
                .is_some_and(|wait| wait.until == Until::Tested)
            {
                unit.wait = None;
                self.note(
                    Some(&place.gpu),
                    "it was tested and is fit again".to_owned(),
                );
            }
        } else {
            self.health.parts.remove(&place.resource);
        }
        if added.corrected > 0 {
            let text = format!(
                "{} memory errors were corrected during its last lease",
                added.corrected
            );
            self.note(Some(&place.gpu), text);
        }
        self.acts.push(Act::Cleaned {
            resource: place.resource.clone(),
            took,
        });
    }

    fn dirty(&mut self, place: &Place, dirty: &Dirty) {
        let why = dirty.to_string();
        self.alarm(
            Some(&place.gpu),
            format!("{} is not clean: {why}", place.resource),
        );
        let until = dirty.until();
        if until > Until::Tested {
            self.raise(&place.gpu, 0, until, &why);
        }
        let now = self.now;
        if let Some(part) = self.health.parts.get_mut(&place.resource) {
            let pause = RETRY.0 << part.tries.min(RETRY_DOUBLINGS);
            part.tries = part.tries.saturating_add(1);
            part.state = PartState::Dirty {
                why,
                retry_at: now.plus(Millis(pause)),
            };
        }
    }

    pub(crate) fn was_scrubbed(
        &mut self,
        resource: &ResourceName,
        result: &Result<Scrubbed, Dirty>,
    ) {
        let now = self.now;
        let Some(part) = self.health.parts.get_mut(resource) else {
            return;
        };
        let place = part.place.clone();
        let PartState::Cleaning(cleaning) = &mut part.state else {
            return;
        };
        let (next, step) = cleaning.scrubbed(result, now);
        **cleaning = next;
        self.stepped(&place, step);
    }

    /// A GPU that waits for a test has one as soon as nobody has it.
    pub(crate) fn begin_tests(&mut self) {
        let waits = |wait: &Option<Wait>| {
            wait.as_ref()
                .is_some_and(|wait| wait.until == Until::Tested)
        };
        let units = self.health.units.iter();
        let waiting = units.filter(|(_, unit)| waits(&unit.wait) && !unit.reset.running);
        let waiting: Vec<ResourceName> = waiting.map(|(gpu, _)| gpu.clone()).collect();
        for gpu in waiting {
            let of_it = || {
                self.health
                    .parts
                    .values()
                    .filter(|part| part.place.gpu == gpu)
            };
            let is_leased = self.health.tenants.struck(&gpu, None).next().is_some()
                || of_it().any(|part| matches!(part.state, PartState::Leased { .. }));
            let has_whole = of_it().any(|part| part.place.is_whole());
            if is_leased || has_whole {
                continue;
            }
            // Of one that this host cannot clean, nobody may tell whether it answers.
            let is_testable = self.is_cleanable(&gpu);
            if !self.answers(&gpu) && (is_testable || !self.is_unheard(&gpu)) {
                continue;
            }
            if !is_testable {
                self.unit(&gpu).wait = None;
                self.note(
                    Some(&gpu),
                    "it answers, and this host has no test for it".to_owned(),
                );
                continue;
            }
            self.health.parts.retain(|_, part| part.place.gpu != gpu);
            let place = Self::whole(&gpu);
            let cleaning = Cleaning::begin(place.clone(), None, self.now);
            let state = PartState::Cleaning(Box::new(cleaning));
            let part = Part {
                place,
                state,
                tries: 0,
            };
            self.health.parts.insert(gpu, part);
        }
    }

    /// Scrubs what is empty, and looks again at what was not clean.
    pub(crate) fn clean(&mut self) {
        let now = self.now;
        let ready: Vec<ResourceName> = self
            .health
            .parts
            .values()
            .filter(|part| match &part.state {
                PartState::Leased { .. } => false,
                PartState::Cleaning(cleaning) => {
                    cleaning.is_empty() && self.may_clean(&part.place.gpu)
                }
                PartState::Dirty { retry_at, .. } => {
                    *retry_at <= now && self.may_clean(&part.place.gpu)
                }
            })
            .map(|part| part.place.resource.clone())
            .collect();
        for resource in ready {
            let Some(part) = self.health.parts.get_mut(&resource) else {
                continue;
            };
            let place = part.place.clone();
            match &mut part.state {
                PartState::Leased { .. } => {}
                PartState::Cleaning(cleaning) => {
                    **cleaning = cleaning.scrubbing(now);
                    self.acts.push(Act::Scrub { place });
                }
                PartState::Dirty { .. } => {
                    let cleaning = Cleaning::begin(place, None, now);
                    part.state = PartState::Cleaning(Box::new(cleaning));
                }
            }
        }
    }

    /// Not while it waits for more than that, while it or what it is linked to is reset, or while it does not answer.
    fn may_clean(&self, gpu: &ResourceName) -> bool {
        let unit = self.health.units.get(gpu);
        let waits = unit.and_then(|unit| unit.wait.as_ref());
        waits.is_none_or(|wait| wait.until == Until::Tested)
            && !self.is_being_reset(gpu)
            && self.answers(gpu)
    }
}
