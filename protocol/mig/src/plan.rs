//! How the GPUs of a host should be cut for the demand that is seen, leases left where they are.
//!
//! First-fit-decreasing serves all of most demands, and then it is enough; else the best use of the GPUs is
//! found exactly, one GPU after the other. Must not decide whether a better cut is worth the trouble:
//! [`worth`] does.

mod search;
pub mod worth;

use crate::chip::{Chip, ProfileIndex};
use crate::layout::{Layout, Placement};

/// One GPU that may be cut: not one that is leased as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gpu {
    /// What stands on it now.
    pub layout: Layout,
    /// Slices of it that are leased and stay.
    pub leased: Vec<Placement>,
}

/// So many slices of a profile that would be taken, beyond those already leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// The profile.
    pub profile: ProfileIndex,
    /// How many.
    pub count: u8,
    /// What one of them is worth: price × expected hours, in micro-dollars.
    pub value: u64,
}

/// What should be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// For each GPU, in the order given.
    pub gpus: Vec<GpuPlan>,
    /// What the slices beyond the leased ones are worth.
    pub value: u64,
    /// What of the demand is not served, in its order.
    pub unserved: Vec<(ProfileIndex, u8)>,
    /// False where there were so many ways that not all of them were looked at.
    pub is_exact: bool,
}

/// What should be done with one GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuPlan {
    /// Left without slices, for leases of the whole GPU.
    pub is_whole: bool,
    /// Stays as it is.
    pub keep: Vec<Placement>,
    /// Goes, before anything is created.
    pub destroy: Vec<Placement>,
    /// Comes.
    pub create: Vec<Placement>,
}

/// One act of the driver. They are done in order, and the rest of a GPU's is left when one fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Ends the compute instance in this slice: its GPU instance is in use until then.
    DestroyComputeInstance(Placement),
    /// Ends the GPU instance.
    DestroyGpuInstance(Placement),
    /// Makes the GPU instance at its place.
    CreateGpuInstance(Placement),
    /// Makes the compute instance of its full width.
    CreateComputeInstance(Placement),
}

impl GpuPlan {
    /// Whether nothing has to be done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.destroy.is_empty() && self.create.is_empty()
    }

    /// What the driver is told, in order: all that goes before what comes, and each compute instance
    /// inside the life of its GPU instance.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        let gone = self.destroy.iter().flat_map(|placement| {
            [
                Step::DestroyComputeInstance(*placement),
                Step::DestroyGpuInstance(*placement),
            ]
        });
        let made = self.create.iter().flat_map(|placement| {
            [
                Step::CreateGpuInstance(*placement),
                Step::CreateComputeInstance(*placement),
            ]
        });
        gone.chain(made).collect()
    }
}

/// How `gpus` should be cut for `demand`, `whole` of them left without slices where so many have no lease.
///
/// Leased slices stay. Slices that nobody has stay where they serve the demand or are in nobody's way.
/// Among plans of equal value the one that keeps most is taken.
#[must_use]
pub fn plan(chip: &Chip, gpus: &[Gpu], demand: &[Demand], whole: usize) -> Plan {
    let left_whole = choose_whole(gpus, whole);
    let cut: Vec<(usize, &Gpu)> = gpus
        .iter()
        .enumerate()
        .filter(|(number, _)| !left_whole.contains(number))
        .collect();
    let pinned: Vec<Layout> = cut.iter().map(|(_, gpu)| pinned(chip, gpu)).collect();
    let standing: Vec<&Layout> = cut.iter().map(|(_, gpu)| &gpu.layout).collect();
    let found = search::targets(chip, &pinned, &standing, demand);

    let mut plan = Plan {
        gpus: vec![GpuPlan::default(); gpus.len()],
        value: 0,
        unserved: Vec::new(),
        is_exact: found.is_exact,
    };
    for number in left_whole {
        if let (Some(of_gpu), Some(gpu)) = (plan.gpus.get_mut(number), gpus.get(number)) {
            of_gpu.is_whole = true;
            of_gpu.destroy = gpu.layout.placements().to_vec();
        }
    }
    for ((number, gpu), target) in cut.iter().zip(&found.layouts) {
        if let Some(of_gpu) = plan.gpus.get_mut(*number) {
            *of_gpu = change(chip, &gpu.layout, target);
        }
    }
    let served = |profile| {
        let count =
            |layouts: &[Layout]| -> usize { layouts.iter().map(|l| l.count(profile)).sum() };
        count(&found.layouts).saturating_sub(count(&pinned))
    };
    for wanted in demand {
        let count = u8::try_from(served(wanted.profile))
            .unwrap_or(u8::MAX)
            .min(wanted.count);
        plan.value = plan
            .value
            .saturating_add(u64::from(count).saturating_mul(wanted.value));
        if count < wanted.count {
            plan.unserved.push((wanted.profile, wanted.count - count));
        }
    }
    plan
}

/// Places `items` beside what stands on `gpus`, the largest first, each on the first GPU with room at its
/// highest start; what did not fit is returned.
pub fn first_fit_decreasing(
    chip: &Chip,
    gpus: &mut [Layout],
    items: &[ProfileIndex],
) -> Vec<ProfileIndex> {
    let mut sorted = items.to_vec();
    let weight = |index: &ProfileIndex| chip.profile(*index).map(|p| (p.size, p.compute));
    sorted.sort_by_key(|index| std::cmp::Reverse(weight(index)));
    sorted.retain(|index| !gpus.iter_mut().any(|gpu| add_highest(chip, gpu, *index)));
    sorted
}

fn add_highest(chip: &Chip, gpu: &mut Layout, profile: ProfileIndex) -> bool {
    let starts = chip.profile(profile).map_or(&[][..], |p| &p.starts);
    let mut highest_first = starts.iter().rev();
    highest_first.any(|start| {
        let placement = Placement {
            start: *start,
            profile,
        };
        gpu.add(chip, placement).is_ok()
    })
}

/// The GPUs to leave whole: without leases, those with fewest slices to end, the highest numbers first.
fn choose_whole(gpus: &[Gpu], whole: usize) -> Vec<usize> {
    let mut free: Vec<(usize, std::cmp::Reverse<usize>)> = gpus
        .iter()
        .enumerate()
        .filter(|(_, gpu)| gpu.leased.is_empty())
        .map(|(number, gpu)| (gpu.layout.placements().len(), std::cmp::Reverse(number)))
        .collect();
    free.sort_unstable();
    free.iter()
        .take(whole)
        .map(|(_, number)| number.0)
        .collect()
}

/// What must stay on a GPU. A lease of a slice that does not stand there pins nothing.
fn pinned(chip: &Chip, gpu: &Gpu) -> Layout {
    let mut pinned = Layout::default();
    for placement in &gpu.leased {
        if gpu.layout.has(*placement) {
            // Part of a legal layout is legal, so this cannot refuse.
            let _ = pinned.add(chip, *placement);
        }
    }
    pinned
}

/// From what stands to the target; what is in nobody's way stays.
fn change(chip: &Chip, standing: &Layout, target: &Layout) -> GpuPlan {
    let mut after = target.clone();
    let mut of_gpu = GpuPlan::default();
    for placement in standing.placements() {
        if target.has(*placement) || after.add(chip, *placement).is_ok() {
            of_gpu.keep.push(*placement);
        } else {
            of_gpu.destroy.push(*placement);
        }
    }
    let is_new = |placement: &&Placement| !standing.has(**placement);
    of_gpu.create = target.placements().iter().filter(is_new).copied().collect();
    of_gpu
}
