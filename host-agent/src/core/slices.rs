//! Slices of GPUs as this host makes them: what its owner lets them be cut into, what the driver shows, and what is to
//! be done about the difference. Nothing here asks a driver.
//!
//! * [`policy`]: which GPUs are cut, into what, and for how much. [`sold`]: the slices that follow from it.
//! * [`known`]: what is in the journal of the instances that this host made.
//! * [`acts`]: what the driver is told next, one act for a GPU at a time.
//! * [`replan`]: how the GPUs should rather be cut.

pub mod policy;
pub mod sold;

pub mod acts;
pub mod known;

pub mod replan;

use mig::amd::{Division, Modes};
use mig::board::{Reported, find_board};
use mig::chip::{Chip, Engines, Geometry, Profile};
use mig::name::{SliceName, is_profile_name};
use protocol::bounded::Text;
use protocol::machine::Gpu;
use protocol::offer::ResourceName;
use std::collections::BTreeMap;

/// Whether a GPU is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is whole.
    Whole,
    /// It is divided; without an instance no program can use it.
    Divided,
    /// It will be the other after the next reset of the GPU, or of the machine.
    Pending,
}

/// An instance that stands on a GPU, as its driver shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The driver's number of the GPU instance.
    pub number: u32,
    /// Its profile's number.
    pub profile: u32,
    /// Its first memory slice.
    pub start: u8,
    /// How many it has.
    pub size: u8,
    /// `MIG-…`: what a container gets. Nothing without a compute instance.
    pub device: Option<Text<64>>,
}

/// A GPU that can be divided, as its driver shows it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divisible {
    /// Its UUID.
    pub gpu: ResourceName,
    /// Whether it is.
    pub mode: Mode,
    /// What it can be cut into.
    pub chip: Chip,
    /// What it is cut into.
    pub standing: Vec<Standing>,
    /// Whether a program uses it as a whole, so that its mode cannot change.
    pub in_use: bool,
    /// How it is divided, where that is a mode of all its parts at once and of the whole host alike (AMD): no part of it
    /// is made or ended by itself, and all that stand are this host's own.
    pub uniform: Option<Division>,
}

/// All GPUs of this host that can be divided, by UUID.
pub type Divisibles = BTreeMap<ResourceName, Divisible>;

/// Why what a driver says of a GPU's profiles cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the profiles of {gpu}: {problem}")]
pub struct ProfilesProblem {
    /// The GPU.
    pub gpu: ResourceName,
    /// What is wrong.
    pub problem: String,
}

/// The chip of a GPU with these profiles: held against the board's table where the board is known, and as the driver
/// says where it is not.
///
/// # Errors
/// When they are not those of the board, or of any chip.
pub fn chip_of(gpu: &Gpu, reported: &[Reported]) -> Result<Chip, ProfilesProblem> {
    let wrong = |problem: String| ProfilesProblem {
        gpu: gpu.uuid.clone(),
        problem,
    };
    if let Some(board) = find_board(&gpu.model, gpu.vram.0) {
        let chip = board.chip(reported, gpu.multiprocessors);
        return chip.map_err(|error| wrong(error.to_string()));
    }
    let most = |of: fn(&Reported) -> u8| reported.iter().map(of).max().unwrap_or(0);
    let ends = reported.iter().flat_map(|profile| {
        let size = profile.size;
        profile
            .starts
            .iter()
            .map(move |start| start.saturating_add(size))
    });
    let geometry = Geometry {
        axis: ends.max().unwrap_or(0),
        compute: most(|profile| profile.compute),
        instances_max: most(|profile| profile.count_max),
        sm_total: gpu.multiprocessors,
    };
    let profiles = reported
        .iter()
        .filter(|profile| is_profile_name(&profile.name));
    let profiles = profiles.map(|profile| Profile {
        name: profile.name.clone(),
        id: profile.id,
        nvml: None,
        compute: profile.compute,
        size: profile.size,
        starts: profile.starts.clone(),
        count_max: profile.count_max,
        memory_mib: profile.memory_mib,
        sm: profile.sm,
        engines: Engines::default(),
    });
    Chip::new(geometry, profiles.collect()).map_err(|error| wrong(error.to_string()))
}

impl Divisible {
    /// Whether it is divided in these modes; never where its parts are made one by one.
    #[must_use]
    pub fn is_in(&self, modes: Modes) -> bool {
        self.uniform
            .is_some_and(|now| now.with(modes).is_ok_and(|wanted| wanted == now))
    }

    /// The name of an instance that stands on it; nothing for a profile that it does not have.
    #[must_use]
    pub fn name_of(&self, standing: &Standing) -> Option<ResourceName> {
        let mut profiles = self.chip.profiles();
        let (_, profile) = profiles.find(|(_, profile)| profile.id == standing.profile)?;
        slice_name(&self.gpu, profile, standing.start)
    }

    /// The instance of that name.
    #[must_use]
    pub fn instance(&self, resource: &ResourceName) -> Option<&Standing> {
        self.standing
            .iter()
            .find(|standing| self.name_of(standing).as_ref() == Some(resource))
    }

    /// Whether an instance stands in the way of `slice`.
    #[must_use]
    pub fn is_taken(&self, slice: &SliceName<'_>) -> bool {
        self.standing.iter().any(|standing| {
            let end = standing.start.saturating_add(standing.size);
            standing.start < slice.start().saturating_add(slice.size()) && slice.start() < end
        })
    }
}

/// The resource that a slice of `gpu` is.
#[must_use]
pub fn slice_name(gpu: &str, profile: &Profile, start: u8) -> Option<ResourceName> {
    let name = SliceName::new(gpu, &profile.name, start, profile.size).ok()?;
    ResourceName::new(name.to_string()).ok()
}

#[cfg(test)]
mod tests;
