//! A driver that divides GPUs, made up: the twin of NVIDIA's for tests. Like that one it refuses what overlaps and what
//! is in use, and forgets all instances when the machine boots.

use super::CutProblem;
use crate::core::slices::acts::Act;
use crate::core::slices::{Divisible, Divisibles, Mode, Standing};
use crate::hardware::amd::parts::parts;
use mig::amd::Division;
use mig::layout::{Layout, Placement};
use protocol::bounded::Text;
use protocol::offer::{ResourceName, parent};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The driver of one machine.
#[derive(Debug, Clone, Default)]
pub struct SimDriver(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    gpus: Divisibles,
    /// Numbers of instances that were used.
    last: u32,
    /// Everything that it was told, in order.
    told: Vec<Act>,
    /// What it refuses from now on, and says so.
    refuses: Option<CutProblem>,
}

impl SimDriver {
    /// Adds a GPU, or replaces one.
    pub fn put(&self, gpu: Divisible) {
        self.state().gpus.insert(gpu.gpu.clone(), gpu);
    }

    /// Makes an instance as somebody else than the agent would, and says its device.
    ///
    /// # Errors
    /// When the driver has no such GPU or place.
    pub fn make_foreign(&self, act: &Act) -> Result<Option<Text<64>>, CutProblem> {
        self.state().cut(act)
    }

    /// The machine boots: no instance survives, modes do.
    pub fn boot(&self) {
        for gpu in self.state().gpus.values_mut() {
            gpu.standing.clear();
        }
    }

    /// Refuses everything from now on, or nothing.
    pub fn refuse(&self, problem: Option<CutProblem>) {
        self.state().refuses = problem;
    }

    /// Everything that it was told by the agent, in order.
    #[must_use]
    pub fn told(&self) -> Vec<Act> {
        self.state().told.clone()
    }

    /// Whether an instance of that name stands.
    #[must_use]
    pub fn has(&self, resource: &ResourceName) -> bool {
        let state = self.state();
        let gpu = state.gpus.get(parent(resource));
        gpu.is_some_and(|gpu| gpu.instance(resource).is_some())
    }

    /// What it shows.
    #[must_use]
    pub fn seen(&self) -> Divisibles {
        self.divisibles()
    }

    /// Does as the agent would have it do.
    ///
    /// # Errors
    /// As a driver would refuse.
    pub fn told_to(&self, act: &Act) -> Result<Option<Text<64>>, CutProblem> {
        self.cut(act)
    }

    pub(super) fn divisibles(&self) -> Divisibles {
        self.state().gpus.clone()
    }

    pub(super) fn cut(&self, act: &Act) -> Result<Option<Text<64>>, CutProblem> {
        let mut state = self.state();
        state.told.push(act.clone());
        match &state.refuses {
            Some(problem) => Err(problem.clone()),
            None => state.cut(act),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn cut(&mut self, act: &Act) -> Result<Option<Text<64>>, CutProblem> {
        let name = match act {
            Act::SetMode { gpu, .. } | Act::Divide { gpu, .. } => gpu.as_str(),
            Act::Make { resource, .. } | Act::End { resource, .. } => parent(resource),
        };
        let gpu = self
            .gpus
            .get_mut(name)
            .ok_or_else(|| failed("no such GPU"))?;
        match act {
            Act::SetMode { divided, .. } => {
                if gpu.in_use || !gpu.standing.is_empty() {
                    return Err(in_use());
                }
                gpu.mode = if *divided { Mode::Divided } else { Mode::Whole };
                Ok(None)
            }
            Act::Divide { division, .. } => divide(gpu, *division).map(|()| None),
            Act::End { number, .. } => {
                let place = gpu.standing.iter().position(|it| it.number == *number);
                let place = place.ok_or_else(|| failed("no such instance"))?;
                gpu.standing.remove(place);
                Ok(None)
            }
            Act::Make { profile, start, .. } => {
                self.last += 1;
                let number = self.last;
                make(gpu, *profile, *start, number).map(Some)
            }
        }
    }
}

/// Its parts are all there at once, and those that were are gone.
fn divide(gpu: &mut Divisible, division: Division) -> Result<(), CutProblem> {
    if gpu.uniform.is_none() {
        return Err(failed("the GPU has no such modes"));
    }
    if gpu.in_use {
        return Err(in_use());
    }
    gpu.uniform = Some(division);
    gpu.standing = parts(&gpu.chip, division, |part| {
        Some(Text::cut(&format!("renderD{}", 128 + part)))
    });
    gpu.mode = if gpu.standing.is_empty() {
        Mode::Whole
    } else {
        Mode::Divided
    };
    Ok(())
}

fn make(gpu: &mut Divisible, id: u32, start: u8, number: u32) -> Result<Text<64>, CutProblem> {
    if gpu.mode != Mode::Divided {
        return Err(failed("the GPU is not divided"));
    }
    let index_of = |id: u32| {
        let mut profiles = gpu.chip.profiles();
        profiles
            .find(|(_, profile)| profile.id == id)
            .map(|(index, _)| index)
    };
    let placement = |start: u8, id: u32| index_of(id).map(|profile| Placement { start, profile });
    let standing: Vec<Placement> = gpu
        .standing
        .iter()
        .filter_map(|it| placement(it.start, it.profile))
        .collect();
    let new = placement(start, id).ok_or_else(|| failed("no such profile"))?;
    let mut layout = Layout::of(&gpu.chip, &standing).map_err(|it| failed(&it.to_string()))?;
    layout
        .add(&gpu.chip, new)
        .map_err(|_| failed("insufficient resources"))?;
    let size = gpu.chip.profile(new.profile).map_or(0, |it| it.size);
    let device = Text::cut(&format!(
        "MIG-{}-{number}",
        gpu.gpu.trim_start_matches("GPU-")
    ));
    gpu.standing.push(Standing {
        number,
        profile: id,
        start,
        size,
        device: Some(device.clone()),
    });
    Ok(device)
}

fn failed(detail: &str) -> CutProblem {
    CutProblem {
        is_in_use: false,
        detail: detail.to_owned(),
    }
}

fn in_use() -> CutProblem {
    CutProblem {
        is_in_use: true,
        detail: "in use by another client".to_owned(),
    }
}
