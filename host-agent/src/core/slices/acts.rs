//! What the driver is told next about slices, so that in the end every lease has its own, and a fixed layout stands:
//! one act for a GPU at a time, each in the journal before it is begun and after it ended.
//!
//! What is leased is never touched, and neither is what this host did not make. On one GPU what goes goes before what
//! comes, and the mode changes only when nothing stands on it.

use super::known::{Known, Made};
use super::policy::{PartitionLayout, SlicePolicy};
use super::{Divisible, Divisibles, Mode, slice_name};
use mig::amd::{Division, Needs};
use mig::name::{SliceName, excludes};
use protocol::offer::{ResourceName, WHOLE_MACHINE};
use std::collections::{BTreeMap, BTreeSet};

/// One thing that the driver is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Divide the GPU, or make it whole again.
    SetMode {
        /// Which.
        gpu: ResourceName,
        /// Divide it.
        divided: bool,
    },
    /// Make the GPU instance at its place, and in it the compute instance of its full width.
    Make {
        /// The slice that it will be.
        resource: ResourceName,
        /// The profile's number.
        profile: u32,
        /// Its first memory slice.
        start: u8,
    },
    /// Divide the GPU into equal parts; its host's other GPUs of the kind are divided likewise.
    Divide {
        /// Which.
        gpu: ResourceName,
        /// How.
        division: Division,
    },
    /// End the compute instance, then its GPU instance.
    End {
        /// The slice that it was.
        resource: ResourceName,
        /// The driver's number of the GPU instance.
        number: u32,
    },
}

impl Act {
    /// The GPU that it is about.
    #[must_use]
    pub fn gpu(&self) -> &str {
        match self {
            Self::SetMode { gpu, .. } | Self::Divide { gpu, .. } => gpu,
            Self::Make { resource, .. } | Self::End { resource, .. } => {
                protocol::offer::parent(resource)
            }
        }
    }
}

/// What slices are for now.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// What the owner decided.
    pub policy: &'a SlicePolicy,
    /// The resources of leases that prepare or run.
    pub held: &'a BTreeSet<ResourceName>,
    /// What is to be there before it is leased, on GPUs with a dynamic layout.
    pub planned: &'a BTreeSet<ResourceName>,
}

/// What is to be done about each GPU now; nothing about those that are as they should be, or cannot be.
#[must_use]
pub fn acts(
    wanted: Wanted<'_>,
    divisibles: &Divisibles,
    known: &Known,
) -> BTreeMap<ResourceName, Act> {
    let of_gpu = |gpu: &Divisible| {
        let act = match gpu.uniform {
            None => next(wanted, gpu, known)?,
            Some(now) => divide(wanted, gpu, now, divisibles)?,
        };
        Some((gpu.gpu.clone(), act))
    };
    divisibles.values().filter_map(of_gpu).collect()
}

/// The change of a GPU that is divided into equal parts: of its compute mode while nothing of it is leased or used, and
/// of its memory's while nothing of any such GPU is, because the driver then starts anew for all of them.
fn divide(all: Wanted<'_>, gpu: &Divisible, now: Division, divisibles: &Divisibles) -> Option<Act> {
    let Some(PartitionLayout::Uniform(modes)) = all.policy.layout(&gpu.gpu) else {
        return None;
    };
    let division = now.with(*modes).ok()?;
    let is_idle = |gpu: &Divisible| {
        let is_held = all.held.iter().any(|name| {
            name.as_str() == WHOLE_MACHINE || protocol::offer::parent(name) == gpu.gpu.as_str()
        });
        !is_held && !gpu.in_use && gpu.mode != Mode::Pending
    };
    let may = match now.needs(&division) {
        Needs::Nothing => false,
        Needs::IdleGpu => is_idle(gpu),
        Needs::IdleHostAndRestart => {
            let mut alike = divisibles.values().filter(|other| other.uniform.is_some());
            alike.all(is_idle)
        }
    };
    may.then(|| Act::Divide {
        gpu: gpu.gpu.clone(),
        division,
    })
}

fn next(all: Wanted<'_>, gpu: &Divisible, known: &Known) -> Option<Act> {
    let Wanted { policy, held, .. } = all;
    let is_held_whole = held
        .iter()
        .any(|name| *name == gpu.gpu || name.as_str() == WHOLE_MACHINE);
    let wanted = wanted(all, gpu);
    match gpu.mode {
        // Nothing can be said to it before its reset.
        Mode::Pending => None,
        Mode::Whole => {
            let is_cut = policy.layout(&gpu.gpu).is_some() || !wanted.is_empty();
            let can = is_cut && !is_held_whole && !gpu.in_use;
            can.then(|| Act::SetMode {
                gpu: gpu.gpu.clone(),
                divided: true,
            })
        }
        Mode::Divided => {
            if let Some(act) = ended(gpu, known, &wanted) {
                return Some(act);
            }
            if is_held_whole {
                // What is foreign stays, and the lease does not get the GPU.
                return gpu.standing.is_empty().then(|| Act::SetMode {
                    gpu: gpu.gpu.clone(),
                    divided: false,
                });
            }
            let is_left = policy.is_kept_whole(&gpu.gpu) && wanted.is_empty();
            if is_left && gpu.standing.is_empty() && !gpu.in_use {
                return Some(Act::SetMode {
                    gpu: gpu.gpu.clone(),
                    divided: false,
                });
            }
            made(gpu, &wanted)
        }
    }
}

/// The slices that should stand on a GPU: what is leased of it, and its fixed layout or what is planned where that is
/// not in the way.
fn wanted(all: Wanted<'_>, gpu: &Divisible) -> Vec<ResourceName> {
    let is_of_it = |name: &&ResourceName| {
        SliceName::parse(name).is_ok_and(|slice| slice.gpu() == gpu.gpu.as_str())
    };
    let mut wanted: Vec<ResourceName> = all.held.iter().filter(is_of_it).cloned().collect();
    let more: Vec<ResourceName> = match all.policy.layout(&gpu.gpu) {
        // Nothing of these is made by itself.
        None | Some(PartitionLayout::Uniform(_)) => Vec::new(),
        Some(PartitionLayout::Dynamic(_)) => all.planned.iter().filter(is_of_it).cloned().collect(),
        Some(layout @ PartitionLayout::Fixed(_)) => {
            let places = layout.places(&gpu.chip).unwrap_or_default();
            let places = places.into_iter();
            places
                .filter_map(|(profile, start)| slice_name(&gpu.gpu, profile, start))
                .collect()
        }
    };
    for name in more {
        let is_free = !all.held.contains(&gpu.gpu);
        if is_free && !wanted.iter().any(|other| excludes(other, &name)) {
            wanted.push(name);
        }
    }
    wanted
}

/// The first of this host's own instances that nobody wants, or that was left without its compute instance.
fn ended(gpu: &Divisible, known: &Known, wanted: &[ResourceName]) -> Option<Act> {
    gpu.standing.iter().find_map(|standing| {
        let resource = gpu.name_of(standing)?;
        let is_own = matches!(known.get(&resource), Some(Made::Done { .. } | Made::Begun));
        let is_useless = standing.device.is_none() || !wanted.contains(&resource);
        (is_own && is_useless).then_some(Act::End {
            resource,
            number: standing.number,
        })
    })
}

/// The first slice that is wanted, is not there, and has room.
fn made(gpu: &Divisible, wanted: &[ResourceName]) -> Option<Act> {
    wanted.iter().find_map(|resource| {
        let slice = SliceName::parse(resource).ok()?;
        let index = gpu.chip.find(slice.profile())?;
        let profile = gpu.chip.profile(index)?.id;
        (!gpu.is_taken(&slice)).then(|| Act::Make {
            resource: resource.clone(),
            profile,
            start: slice.start(),
        })
    })
}

/// What a container gets for a resource: the GPU itself, or the device of its slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// This.
    Ready(ResourceName),
    /// It is about to be there.
    Waits,
    /// It will not be, and why.
    Never(&'static str),
}

/// The device of `resource`, which a lease holds.
#[must_use]
pub fn device(resource: &ResourceName, divisibles: &Divisibles, known: &Known) -> Device {
    if let Some(gpu) = divisibles.get(protocol::offer::parent(resource))
        && gpu.uniform.is_some()
    {
        return part(resource, gpu);
    }
    let Ok(slice) = SliceName::parse(resource) else {
        return match divisibles.get(resource).map(|gpu| (gpu.mode, gpu)) {
            None | Some((Mode::Whole, _)) => Device::Ready(resource.clone()),
            Some((Mode::Pending, _)) => Device::Never("the GPU has to be reset first"),
            Some((Mode::Divided, gpu)) => {
                let names = gpu.standing.iter().filter_map(|it| gpu.name_of(it));
                let is_foreign = names.into_iter().any(|name| !known.contains_key(&name));
                if is_foreign {
                    Device::Never("slices of the GPU that are not this program's are in use")
                } else {
                    Device::Waits
                }
            }
        };
    };
    let Some(gpu) = divisibles.get(slice.gpu()) else {
        return Device::Waits;
    };
    match (known.get(resource), gpu.instance(resource)) {
        (Some(Made::Done { device }), Some(_)) => Device::Ready(device.clone()),
        (None, _) if is_foreign_there(gpu, &slice, known) => {
            Device::Never("a slice that is not this program's is there")
        }
        (Some(Made::Begun | Made::Done { .. }) | None, _) => match gpu.mode {
            Mode::Pending => Device::Never("the GPU has to be reset first"),
            Mode::Whole | Mode::Divided => Device::Waits,
        },
    }
}

/// The device of a part of a GPU that is divided into equal ones, or the GPU itself while it is not divided.
fn part(resource: &ResourceName, gpu: &Divisible) -> Device {
    if *resource == gpu.gpu {
        return match gpu.mode {
            Mode::Whole => Device::Ready(resource.clone()),
            Mode::Divided => Device::Never("the GPU is divided"),
            Mode::Pending => Device::Never("the driver has to be loaded anew first"),
        };
    }
    let standing = gpu.instance(resource);
    match standing.and_then(|standing| standing.device.clone()) {
        Some(device) => Device::Ready(device),
        None => Device::Never("the GPU is not divided so any more"),
    }
}

fn is_foreign_there(gpu: &Divisible, slice: &SliceName<'_>, known: &Known) -> bool {
    gpu.standing.iter().any(|standing| {
        let name = gpu.name_of(standing);
        let is_own = name.is_some_and(|name| known.contains_key(&name));
        let end = standing.start.saturating_add(standing.size);
        let overlaps =
            standing.start < slice.start().saturating_add(slice.size()) && slice.start() < end;
        overlaps && !is_own
    })
}
