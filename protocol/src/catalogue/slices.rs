//! Whether the slices of an offer are some that its GPU can be cut into.
//!
//! Names and places are the same with every driver, so they are held to the letter; drivers print memory a few
//! percent apart, and theirs is the last word within [`mig::board::MEMORY_TOLERANCE_PERCENT`].

use super::sheet_of_gpu;
use crate::machine::{Gpu, Vendor};
use crate::offer::{Isolation, Offer, Partition};
use mig::amd::Model;
use mig::board::{Board, Cut, MEMORY_TOLERANCE_PERCENT, find_board};
use mig::chip::{Chip, Profile};
use mig::name::SliceName;

/// What is wrong with the slices of an offer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SliceProblem {
    /// There is no GPU to cut.
    #[error("slices are sold, and no GPU")]
    NoGpu,
    /// Parts that nothing but a driver keeps apart: between two renters there is then no wall.
    #[error(
        "parts of a GPU that only its driver keeps apart are for one renter beside itself, and are not sold"
    )]
    Shared,
    /// The model cannot be cut.
    #[error("slices are sold of what cannot be cut")]
    Undivided,
    /// A resource is not the name of such a slice of one of the GPUs.
    #[error("'{0}' is no such slice of its GPUs")]
    NotOfIt(String),
    /// The board has no profile of that name.
    #[error("it has no profile {0}")]
    NoProfile(String),
    /// A slice stands where its profile does not start, or has another size.
    #[error("{profile} starts at {starts:?} with size {size}, not as in '{claimed}'")]
    Place {
        /// The profile.
        profile: String,
        /// The resource as claimed.
        claimed: String,
        /// Where it may start.
        starts: Vec<u8>,
        /// Units of the memory axis that it takes.
        size: u8,
    },
    /// Memory too far from what the profile has.
    #[error("{profile} has {known} MiB within {MEMORY_TOLERANCE_PERCENT} %, not {claimed}")]
    Memory {
        /// The profile.
        profile: String,
        /// MiB as claimed.
        claimed: u64,
        /// MiB as known.
        known: u64,
    },
    /// Another part of the GPU than the profile is.
    #[error("{profile} has {} of {} {what}, not {} of {}", known.0, known.1, claimed.0, claimed.1)]
    Part {
        /// The profile.
        profile: String,
        /// Of what.
        what: &'static str,
        /// The part and the whole, as claimed.
        claimed: (u16, u16),
        /// The same as known; the most.
        known: (u16, u16),
    },
}

/// Whether an offer's slices can be what is said of them.
pub(super) fn check(offer: &Offer, partition: &Partition) -> Result<(), SliceProblem> {
    let Some(gpu) = offer.share.gpus.first() else {
        return Err(SliceProblem::NoGpu);
    };
    check_parts(partition, gpu)?;
    match (gpu.vendor, partition.isolation) {
        (_, Isolation::Shared) => Err(SliceProblem::Shared),
        (Vendor::Nvidia, Isolation::Hardware) => check_mig(offer, partition, gpu),
        (Vendor::Amd, Isolation::Hardware) => check_equal(offer, partition, gpu),
        // Its driver divides nothing.
        (Vendor::Intel, Isolation::Hardware) => Err(SliceProblem::Undivided),
    }
}

/// No part is more than its whole.
fn check_parts(partition: &Partition, gpu: &Gpu) -> Result<(), SliceProblem> {
    let (slices, all) = partition.memory_slices;
    let parts = [
        ("multiprocessors", partition.multiprocessors),
        ("memory slices", (slices.into(), all.into())),
    ];
    for (what, claimed) in parts {
        if claimed.0 > claimed.1 {
            return Err(SliceProblem::Part {
                profile: partition.profile.to_string(),
                what,
                claimed,
                known: (claimed.1, claimed.1),
            });
        }
    }
    let (part, whole) = partition.multiprocessors;
    if gpu.multiprocessors > 0 && whole != gpu.multiprocessors {
        return Err(SliceProblem::Part {
            profile: partition.profile.to_string(),
            what: "multiprocessors",
            claimed: (part, whole),
            known: (part, gpu.multiprocessors),
        });
    }
    if partition.vram > gpu.vram {
        return Err(SliceProblem::Memory {
            profile: partition.profile.to_string(),
            claimed: partition.vram.0 >> 20,
            known: gpu.vram.0 >> 20,
        });
    }
    Ok(())
}

fn check_mig(offer: &Offer, partition: &Partition, gpu: &Gpu) -> Result<(), SliceProblem> {
    if sheet_of_gpu(gpu).is_some_and(|sheet| !sheet.is_divisible) {
        return Err(SliceProblem::Undivided);
    }
    let slices = named(offer, partition)?;
    // Of a board that is in no table, only its driver can say what it can be cut into.
    match find_board(&gpu.model, gpu.vram.0) {
        Some(board) => check_board(board, partition, &slices),
        None => Ok(()),
    }
}

/// Equal parts of a GPU, all made at once. Of a model that is in no table, only its driver can say which there are.
fn check_equal(offer: &Offer, partition: &Partition, gpu: &Gpu) -> Result<(), SliceProblem> {
    let slices = named(offer, partition)?;
    let memory = u32::try_from(gpu.vram.0 >> 20).unwrap_or(u32::MAX);
    let Some(chip) = Model::find(&gpu.model).and_then(|model| model.chip(memory)) else {
        return Ok(());
    };
    let profile = profile_of(&chip, partition.profile.as_str())?;
    check_places(profile, &slices)?;
    let (claimed, known) = (partition.vram.0 >> 20, u64::from(profile.memory_mib));
    if claimed.saturating_sub(known) * 100 > known * MEMORY_TOLERANCE_PERCENT {
        return Err(SliceProblem::Memory {
            profile: profile.name.clone(),
            claimed,
            known,
        });
    }
    let (part, whole) = partition.multiprocessors;
    if part > profile.sm {
        return Err(SliceProblem::Part {
            profile: profile.name.clone(),
            what: "multiprocessors",
            claimed: (part, whole),
            known: (profile.sm, chip.geometry().sm_total),
        });
    }
    Ok(())
}

/// The slices that an offer sells, by name: all of the profile and the GPUs that it names.
fn named<'a>(offer: &'a Offer, partition: &Partition) -> Result<Vec<SliceName<'a>>, SliceProblem> {
    let profile = partition.profile.as_str();
    let mut slices = Vec::with_capacity(offer.share.resources.len());
    for resource in &*offer.share.resources {
        let not_of_it = || SliceProblem::NotOfIt(resource.to_string());
        let slice = SliceName::parse(resource).map_err(|_| not_of_it())?;
        let mut gpus = offer.share.gpus.iter();
        if slice.profile() != profile || !gpus.any(|gpu| gpu.uuid.as_str() == slice.gpu()) {
            return Err(not_of_it());
        }
        slices.push(slice);
    }
    Ok(slices)
}

fn profile_of<'a>(chip: &'a Chip, name: &str) -> Result<&'a Profile, SliceProblem> {
    let index = chip.find(name);
    index
        .and_then(|index| chip.profile(index))
        .ok_or_else(|| SliceProblem::NoProfile(name.to_owned()))
}

fn check_places(profile: &Profile, slices: &[SliceName<'_>]) -> Result<(), SliceProblem> {
    let is_off = |slice: &&SliceName<'_>| {
        slice.size() != profile.size || !profile.starts.contains(&slice.start())
    };
    match slices.iter().find(is_off) {
        Some(slice) => Err(SliceProblem::Place {
            profile: profile.name.clone(),
            claimed: slice.to_string(),
            starts: profile.starts.clone(),
            size: profile.size,
        }),
        None => Ok(()),
    }
}

fn check_board(
    board: &Board,
    partition: &Partition,
    slices: &[SliceName<'_>],
) -> Result<(), SliceProblem> {
    let name = partition.profile.as_str();
    let no_profile = || SliceProblem::NoProfile(name.to_owned());
    match &board.cut {
        Cut::Named { names, .. } => {
            let mut names = names.iter();
            names
                .any(|known| known == name)
                .then_some(())
                .ok_or_else(no_profile)
        }
        Cut::Known(chip) => {
            let profile = profile_of(chip, name)?;
            check_places(profile, slices)?;
            check_memory(board, profile, partition)?;
            check_part(board, profile, partition)
        }
    }
}

fn check_memory(
    board: &Board,
    profile: &Profile,
    partition: &Partition,
) -> Result<(), SliceProblem> {
    let claimed = partition.vram.0 >> 20;
    let printed = u64::from(profile.memory_mib);
    let axis = u64::from(board.geometry().axis.max(1));
    let known = if printed > 0 {
        printed
    } else {
        // Nobody printed it: at most its part of the whole.
        (board.memory_gib << 10) * u64::from(profile.size) / axis
    };
    let off = if printed > 0 {
        claimed.abs_diff(known)
    } else {
        claimed.saturating_sub(known)
    };
    if off * 100 > known * MEMORY_TOLERANCE_PERCENT {
        return Err(SliceProblem::Memory {
            profile: profile.name.clone(),
            claimed,
            known,
        });
    }
    Ok(())
}

fn check_part(board: &Board, profile: &Profile, partition: &Partition) -> Result<(), SliceProblem> {
    let wrong = |what, claimed, known| SliceProblem::Part {
        profile: profile.name.clone(),
        what,
        claimed,
        known,
    };
    let (slices, all) = partition.memory_slices;
    if (slices, all) != (profile.size, board.geometry().axis) {
        let known = (profile.size.into(), board.geometry().axis.into());
        return Err(wrong("memory slices", (slices.into(), all.into()), known));
    }
    // Chips with some of their multiprocessors off have fewer, and none has more.
    let most = (profile.sm, board.geometry().sm_total);
    let (part, whole) = partition.multiprocessors;
    if (most.0 > 0 && part > most.0) || (most.1 > 0 && whole > most.1) {
        return Err(wrong("multiprocessors", (part, whole), most));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
