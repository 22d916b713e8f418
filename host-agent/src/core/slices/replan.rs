//! How the GPUs with a dynamic layout should rather be cut for the demand that was seen, leases left where they are;
//! and whether that is worth the trouble.
//!
//! Slices are made when they are leased, wherever there is room; what is planned is made before, so that the room is
//! not cut into pieces that fit nobody, and a lease need not wait for the driver.

use super::policy::{PartitionLayout, SlicePolicy};
use super::{Divisible, Divisibles, Mode, slice_name};
use mig::chip::Chip;
use mig::layout::{Layout, Placement};
use mig::name::SliceName;
use mig::plan::worth::{Change, is_worth};
use mig::plan::{Demand, Gpu, plan};
use protocol::offer::ResourceName;
use protocol::units::{Millis, PricePerHour, Seconds};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Over how much of the past demand is looked at.
pub const WINDOW: Seconds = Seconds(24 * 3600);
/// For how long what was seen is expected to go on.
pub const HORIZON: Seconds = Seconds(2 * 3600);
/// How long a slice that is ended and made anew earns nothing.
const DRAIN: Seconds = Seconds(10);

/// What ran of one profile in the last [`WINDOW`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// All its leases together.
    pub ran: Millis,
}

/// What ran, by profile.
pub type Demands = BTreeMap<String, Seen>;

/// A slice in a picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Its profile.
    pub profile: String,
    /// Its first memory slice.
    pub start: u8,
    /// How many it has.
    pub size: u8,
    /// Whether a lease has it.
    pub is_leased: bool,
}

/// One GPU, today and as it is proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProposal {
    /// Its UUID.
    pub gpu: ResourceName,
    /// Memory slices of the whole.
    pub axis: u8,
    /// What stands on it.
    pub today: Vec<Slot>,
    /// What should.
    pub proposed: Vec<Slot>,
    /// Whether it is left whole.
    pub is_whole: bool,
}

/// A proposal for all GPUs with a dynamic layout.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// Each of them.
    pub gpus: Vec<GpuProposal>,
    /// What it earns more in an hour than what stands today, in micro-dollars.
    pub saving_per_hour: u64,
    /// Whether it is worth the trouble now.
    pub is_worth: bool,
    /// Why, in words.
    pub reason: String,
    /// What of the demand it does not serve, by profile.
    pub unserved: BTreeMap<String, u8>,
}

/// What a proposal is made from.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    /// What the owner decided.
    pub policy: &'a SlicePolicy,
    /// How the GPUs are cut.
    pub divisibles: &'a Divisibles,
    /// What leases have.
    pub held: &'a BTreeSet<ResourceName>,
    /// What ran.
    pub demands: &'a Demands,
    /// What an hour of a whole GPU costs.
    pub price: PricePerHour,
    /// How long the present cut has stood.
    pub stood: Seconds,
}

/// The proposal; nothing where no GPU has a dynamic layout.
#[must_use]
pub fn propose(ground: Ground<'_>) -> Option<Proposal> {
    let mut chips: Vec<(&Chip, Vec<&Divisible>)> = Vec::new();
    for gpu in ground.divisibles.values() {
        let layout = ground
            .policy
            .layouts
            .iter()
            .find(|(name, _)| *name == gpu.gpu);
        let is_dynamic = matches!(layout, Some((_, PartitionLayout::Dynamic(_))));
        let is_free = gpu.mode == Mode::Divided && !ground.held.contains(&gpu.gpu);
        if !is_dynamic || !is_free {
            continue;
        }
        match chips.iter_mut().find(|(chip, _)| **chip == gpu.chip) {
            Some((_, gpus)) => gpus.push(gpu),
            None => chips.push((&gpu.chip, vec![gpu])),
        }
    }
    if chips.is_empty() {
        return None;
    }
    let mut proposal = Proposal::default();
    for (chip, gpus) in chips {
        add(&mut proposal, chip, &gpus, &ground);
    }
    let change = Change {
        saving_per_hour: proposal.saving_per_hour,
        horizon_seconds: HORIZON.0,
        drain_seconds: DRAIN.0,
        price_per_hour: ground.price.0,
        restart: 0,
        stood_seconds: ground.stood.0,
    };
    let differs = |gpu: &GpuProposal| gpu.today != gpu.proposed;
    let is_other = proposal.gpus.iter().any(differs);
    proposal.is_worth = is_other && is_worth(&change);
    proposal.reason = reason(&proposal, &ground, is_other);
    Some(proposal)
}

fn reason(proposal: &Proposal, ground: &Ground<'_>, is_other: bool) -> String {
    if ground.demands.is_empty() {
        return "no slice was leased in the last day: slices are made when they are asked for"
            .to_owned();
    }
    if !is_other {
        return "the GPUs are cut as the demand of the last day would have them".to_owned();
    }
    let saving = PricePerHour(proposal.saving_per_hour).amount();
    if proposal.is_worth {
        return format!("it serves {saving} an hour more of what was leased in the last day");
    }
    if ground.stood.0 < mig::plan::worth::DWELL_SECONDS_MIN {
        return format!(
            "it serves {saving} an hour more, but the GPUs were cut less than half an hour ago"
        );
    }
    format!("it serves {saving} an hour more, which is less than the change costs")
}

/// Adds the GPUs of one chip.
fn add(proposal: &mut Proposal, chip: &Chip, gpus: &[&Divisible], ground: &Ground<'_>) {
    let standing: Vec<Gpu> = gpus.iter().map(|gpu| standing(gpu, ground.held)).collect();
    let demand = demand(chip, &standing, ground);
    let kept = usize::from(ground.policy.keep_whole);
    let planned = plan(chip, &standing, &demand, kept);
    let hours = HORIZON.0 / 3600;
    let today: u64 = demand
        .iter()
        .map(|wanted| {
            let idle = standing.iter().map(|gpu| {
                let leased = gpu.leased.iter().filter(|it| it.profile == wanted.profile);
                gpu.layout
                    .count(wanted.profile)
                    .saturating_sub(leased.count())
            });
            let idle = u64::try_from(idle.sum::<usize>()).unwrap_or(u64::MAX);
            idle.min(wanted.count.into()).saturating_mul(wanted.value)
        })
        .fold(0, u64::saturating_add);
    let saving = planned.value.saturating_sub(today) / hours.max(1);
    proposal.saving_per_hour = proposal.saving_per_hour.saturating_add(saving);
    for (profile, count) in planned.unserved {
        if let Some(profile) = chip.profile(profile) {
            proposal.unserved.insert(profile.name.clone(), count);
        }
    }
    for ((gpu, before), after) in gpus.iter().zip(&standing).zip(planned.gpus) {
        let slot = |placement: &Placement| {
            let profile = chip.profile(placement.profile)?;
            Some(Slot {
                profile: profile.name.clone(),
                start: placement.start,
                size: profile.size,
                is_leased: before.leased.contains(placement),
            })
        };
        let sorted = |placements: &mut dyn Iterator<Item = &Placement>| {
            let mut slots: Vec<Slot> = placements.filter_map(slot).collect();
            slots.sort_by_key(|slot| slot.start);
            slots
        };
        proposal.gpus.push(GpuProposal {
            gpu: gpu.gpu.clone(),
            axis: chip.geometry().axis,
            today: sorted(&mut before.layout.placements().iter()),
            proposed: sorted(&mut after.keep.iter().chain(&after.create)),
            is_whole: after.is_whole,
        });
    }
}

/// What stands on a GPU, and what of it is leased. What is foreign stays like a lease.
fn standing(gpu: &Divisible, held: &BTreeSet<ResourceName>) -> Gpu {
    let mut layout = Layout::default();
    let mut leased = Vec::new();
    for instance in &gpu.standing {
        let mut profiles = gpu.chip.profiles();
        let found = profiles.find(|(_, profile)| profile.id == instance.profile);
        let Some((profile, _)) = found else {
            continue;
        };
        let placement = Placement {
            start: instance.start,
            profile,
        };
        if layout.add(&gpu.chip, placement).is_ok()
            && gpu
                .name_of(instance)
                .is_some_and(|name| held.contains(&name))
        {
            leased.push(placement);
        }
    }
    Gpu { layout, leased }
}

/// How many more of each profile would be leased at once than are: what ran in the window, as leases that run all the
/// time, rounded up.
fn demand(chip: &Chip, standing: &[Gpu], ground: &Ground<'_>) -> Vec<Demand> {
    let of_one = |(name, seen): (&String, &Seen)| {
        let profile = chip.find(name)?;
        let at_once = seen.ran.0.div_ceil(WINDOW.millis().0);
        let all = standing.iter().flat_map(|gpu| &gpu.leased);
        let leased = all.filter(|it| it.profile == profile).count();
        let more = at_once.saturating_sub(u64::try_from(leased).unwrap_or(u64::MAX));
        let price = ground
            .policy
            .price(chip, chip.profile(profile)?, ground.price);
        (more > 0).then_some(Demand {
            profile,
            count: u8::try_from(more).unwrap_or(u8::MAX),
            value: price.0.saturating_mul(HORIZON.0 / 3600),
        })
    };
    ground.demands.iter().filter_map(of_one).collect()
}

/// What ran, from leases: what each has, and how long it ran in the window.
#[must_use]
pub fn demands<'a>(leases: impl IntoIterator<Item = (&'a ResourceName, Millis)>) -> Demands {
    let mut demands = Demands::new();
    for (resource, ran) in leases {
        if let Ok(slice) = SliceName::parse(resource) {
            let seen = demands.entry(slice.profile().to_owned()).or_default();
            seen.ran = seen.ran.plus(ran.min(WINDOW.millis()));
        }
    }
    demands
}

impl Proposal {
    /// The slices that it has, to be made before they are leased.
    #[must_use]
    pub fn targets(&self, divisibles: &Divisibles) -> BTreeSet<ResourceName> {
        let all = self.gpus.iter().flat_map(|proposed| {
            let gpu = divisibles.get(&proposed.gpu);
            proposed.proposed.iter().filter_map(move |slot| {
                let chip = &gpu?.chip;
                let profile = chip.profile(chip.find(&slot.profile)?)?;
                slice_name(&proposed.gpu, profile, slot.start)
            })
        });
        all.collect()
    }
}

impl GpuProposal {
    /// Slices as a bar of the GPU's memory: `[3g.40gb*       |1g.10gb |........]`, a star for what is leased.
    #[must_use]
    pub fn bar(slots: &[Slot], axis: u8) -> String {
        const CELL: usize = 8;
        let mut bar = String::from("[");
        let mut at = 0;
        let free = |bar: &mut String, cells: u8| {
            for _ in 0..cells {
                bar.push_str(&".".repeat(CELL));
                bar.push('|');
            }
        };
        for slot in slots {
            free(&mut bar, slot.start.saturating_sub(at));
            let star = if slot.is_leased { "*" } else { "" };
            let name = format!("{}{star}", slot.profile);
            let width = usize::from(slot.size) * (CELL + 1) - 1;
            bar.push_str(&format!("{name:<width$.width$}|"));
            at = slot.start.saturating_add(slot.size);
        }
        free(&mut bar, axis.saturating_sub(at));
        if bar.ends_with('|') {
            bar.pop();
        }
        bar.push(']');
        bar
    }
}
