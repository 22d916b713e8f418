//! Resets of GPUs that wait for one: begun where nothing stands in the way, and what comes of them.

use crate::input::Act;
use crate::reset::{Facts, Permit, permit};
use crate::tenants::{Part, PartState, RETRY, RETRY_DOUBLINGS};
use crate::turn::Turn;
use crate::unit::{Until, Wait};
use protocol::offer::ResourceName;
use protocol::units::Millis;

/// A reset that failed so often will not do it.
const RESETS_MAX: u32 = 3;
/// Resets that are remembered of one GPU.
const DONE_MAX: usize = 8;

impl Turn {
    /// Resets what waits for it or is to be reset when nobody has it, where it may be.
    pub(crate) fn begin_resets(&mut self) {
        let gpus: Vec<ResourceName> = self.health.units.keys().cloned().collect();
        for gpu in gpus {
            let Some(permit) = self.may_reset(&gpu) else {
                continue;
            };
            self.unit(&gpu).reset.running = true;
            self.acts.push(Act::Reset {
                gpu,
                persistence: permit.persistence,
            });
        }
    }

    fn may_reset(&self, gpu: &ResourceName) -> Option<Permit> {
        let unit = self.health.units.get(gpu)?;
        let wanted = match &unit.wait {
            Some(wait) => wait.until == Until::Reset,
            None => unit.reset_wanted.is_some(),
        };
        let device = self.health.machine.device(gpu)?;
        if !wanted || !device.cleanable || self.now < unit.reset.not_before {
            return None;
        }
        let touched = self.health.machine.reset_domain(gpu);
        let is_busy = |part: &Part| match &part.state {
            // Not every lease may have been told of yet.
            PartState::Leased { .. } => true,
            // What was read before it was empty says nothing.
            PartState::Cleaning(cleaning) => !cleaning.is_empty(),
            PartState::Dirty { .. } => false,
        };
        let mut parts = self.health.parts.values();
        if self.is_being_reset(gpu)
            || parts.any(|part| touched.contains(&part.place.gpu) && is_busy(part))
        {
            return None;
        }
        let reading = unit.reading.as_ref();
        let facts = Facts {
            processes: reading.and_then(|reading| reading.processes.as_deref()),
            verdict: unit.verdict(),
            answers: self.answers(gpu),
            persistence: unit
                .settings
                .as_ref()
                .and_then(|settings| settings.persistence),
        };
        permit(&self.health.machine, &self.health.tenants, gpu, facts).ok()
    }

    /// Whether it, or what it is linked to, is being reset.
    pub(crate) fn is_being_reset(&self, gpu: &ResourceName) -> bool {
        let touched = self.health.machine.reset_domain(gpu);
        touched.iter().any(|gpu| {
            let unit = self.health.units.get(gpu);
            unit.is_some_and(|unit| unit.reset.running)
        })
    }

    pub(crate) fn was_reset(&mut self, gpu: &ResourceName, result: &Result<(), String>) {
        let now = self.now;
        let unit = self.unit(gpu);
        unit.reset.running = false;
        if let Err(error) = result {
            unit.reset.failed = unit.reset.failed.saturating_add(1);
            let failed = unit.reset.failed;
            let pause = RETRY.0 << failed.min(RETRY_DOUBLINGS);
            unit.reset.not_before = now.plus(Millis(pause));
            self.alarm(Some(gpu), format!("its reset failed: {error}"));
            if failed >= RESETS_MAX {
                self.raise(gpu, 0, Until::Reboot, "its resets fail");
            }
            return;
        }
        let why = unit.wait.take().map_or_else(
            || unit.reset_wanted.clone().unwrap_or_default(),
            |wait| {
                unit.reset.done.push_back((wait.xid, now));
                wait.why
            },
        );
        if unit.reset.done.len() > DONE_MAX {
            unit.reset.done.pop_front();
        }
        unit.reset.failed = 0;
        unit.reset_wanted = None;
        // What was read before says nothing of it any more.
        unit.reading = None;
        unit.wait = Some(Wait {
            why: format!("{why}, and it was reset"),
            xid: 0,
            until: Until::Tested,
        });
        // Its slices went with the reset; all of it is tested.
        self.health.parts.retain(|_, part| part.place.gpu != *gpu);
        self.note(Some(gpu), "it was reset".to_owned());
    }

    /// Its owner has checked it: it is tested, and tried again at once.
    pub(crate) fn was_checked(&mut self, gpu: &ResourceName) {
        let unit = self.unit(gpu);
        if let Some(wait) = &mut unit.wait {
            wait.until = Until::Tested;
            unit.reset = Default::default();
        }
        for part in self.health.parts.values_mut() {
            if part.place.gpu == *gpu
                && let PartState::Dirty { retry_at, .. } = &mut part.state
            {
                *retry_at = self.now;
            }
        }
    }
}
