//! What an owner decided about slices: which GPUs are cut, into what, and for how much.
//!
//! It knows no driver: whether a GPU can be cut so is checked when it is listed.

use super::{Divisible, Mode};
use mig::amd::{ComputeMode, Modes};
use mig::chip::{Chip, PROFILES_MAX, Profile};
use mig::layout::Layout;
use mig::plan::first_fit_decreasing;
use mig::price::slice_price;
use protocol::bounded::List;
use protocol::machine::GPUS_MAX;
use protocol::offer::{ProfileName, ResourceName};
use protocol::units::{BasisPoints, PricePerHour};
use serde::{Deserialize, Serialize};

/// Most slices of one GPU.
pub const SLICES_MAX: usize = 16;
/// What a slice costs more than its part of the GPU, unless its owner says otherwise: 15 %.
pub const PREMIUM: BasisPoints = BasisPoints(1500);

/// How one GPU is cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionLayout {
    /// Into these, which stay as they are whether leased or not.
    Fixed(List<ProfileName, SLICES_MAX>),
    /// Into what is asked for, of these plain profiles; of all of them when none is named.
    Dynamic(List<ProfileName, PROFILES_MAX>),
    /// In these modes, as all GPUs of AMD's of the host are: changed while nothing of them is leased or used.
    Uniform(Modes),
}

/// What an owner decided about slices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicePolicy {
    /// The GPUs that are cut, in the order of their names; the others are sold whole alone.
    pub layouts: List<(ResourceName, PartitionLayout), GPUS_MAX>,
    /// So many of the dynamic ones are left whole, the last ones.
    pub keep_whole: u16,
    /// Whether GPUs that are cut are sold whole too, while no slice of them is leased: their mode then changes
    /// between leases.
    pub also_whole: bool,
    /// Prices that the owner set, for an hour of one slice.
    pub prices: List<(ProfileName, PricePerHour), PROFILES_MAX>,
    /// What a slice costs more than its part of the GPU where no price is set.
    pub premium: BasisPoints,
}

impl SlicePolicy {
    /// How a GPU is cut now; nothing when it stays whole.
    #[must_use]
    pub fn layout(&self, gpu: &str) -> Option<&PartitionLayout> {
        let is_dynamic = |layout: &PartitionLayout| matches!(layout, PartitionLayout::Dynamic(_));
        let dynamic = self.layouts.iter().filter(|(_, layout)| is_dynamic(layout));
        let cut = dynamic
            .clone()
            .count()
            .saturating_sub(self.keep_whole.into());
        let (_, layout) = self.layouts.iter().find(|(name, _)| name.as_str() == gpu)?;
        let mut first = dynamic.take(cut);
        let is_cut = !is_dynamic(layout) || first.any(|(name, _)| name.as_str() == gpu);
        is_cut.then_some(layout)
    }

    /// Whether a GPU is offered whole. One that somebody else divided is not.
    #[must_use]
    pub fn is_whole(&self, gpu: &str, divisible: Option<&Divisible>) -> bool {
        let is_whole_now = divisible.is_none_or(|divisible| divisible.mode == Mode::Whole);
        // One whose parts are of one mode does not change it for a lease.
        let changes = divisible.is_none_or(|divisible| divisible.uniform.is_none());
        let stays = self.layout(gpu).is_none_or(PartitionLayout::is_whole);
        (self.also_whole && changes) || (is_whole_now && stays)
    }

    /// Whether a GPU that is left whole is one that this host divides and makes whole.
    #[must_use]
    pub fn is_kept_whole(&self, gpu: &str) -> bool {
        let is_named = self.layouts.iter().any(|(name, _)| name.as_str() == gpu);
        is_named && self.layout(gpu).is_none()
    }

    /// What an hour of a slice costs where an hour of its GPU costs `whole`: as its owner set it, or by the rule.
    #[must_use]
    pub fn price(&self, chip: &Chip, profile: &Profile, whole: PricePerHour) -> PricePerHour {
        let set = self
            .prices
            .iter()
            .find(|(name, _)| name.as_str() == profile.name);
        set.map_or_else(|| self.by_rule(chip, profile, whole), |(_, price)| *price)
    }

    /// A price of the whole GPU for a slice of it, by the rule.
    #[must_use]
    pub fn by_rule(&self, chip: &Chip, profile: &Profile, whole: PricePerHour) -> PricePerHour {
        let index = chip.find(&profile.name);
        let price = index.and_then(|it| slice_price(chip, it, whole.0, self.premium.0.into()));
        price.map_or(whole, PricePerHour)
    }
}

impl PartitionLayout {
    /// Whether it leaves a GPU whole.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Uniform(modes) => modes.compute == ComputeMode::Spx,
            Self::Fixed(_) | Self::Dynamic(_) => false,
        }
    }

    /// Whether a GPU can have this layout, by the way in which it is divided.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, gpu: &Divisible) -> Result<(), String> {
        match (self, &gpu.uniform) {
            (Self::Uniform(modes), Some(now)) => match now.with(*modes) {
                Ok(_) => Ok(()),
                Err(problem) => Err(problem.to_string()),
            },
            (Self::Uniform(modes), None) => Err(format!(
                "{modes} is for GPUs of AMD's; {} is cut into slices like 3g.40gb",
                gpu.gpu
            )),
            (Self::Fixed(_) | Self::Dynamic(_), Some(_)) => Err(format!(
                "{} is divided into equal parts at once: SPX, DPX, QPX, CPX or CPX/NPS4",
                gpu.gpu
            )),
            (Self::Fixed(_) | Self::Dynamic(_), None) => self.places(&gpu.chip).map(drop),
        }
    }

    /// The places of slices that a GPU with `chip` is sold as; of a fixed layout they are disjoint.
    ///
    /// # Errors
    /// What the chip cannot be cut into.
    pub fn places<'a>(&self, chip: &'a Chip) -> Result<Vec<(&'a Profile, u8)>, String> {
        match self {
            Self::Fixed(names) => fixed(chip, names),
            Self::Uniform(modes) => Ok(uniform(chip, *modes)),
            Self::Dynamic(names) => {
                for name in names {
                    let index = find(chip, name)?;
                    // Of these there are not as many as fit beside each other, which nobody who sells them could see.
                    if chip.profile(index).is_some_and(Profile::is_marked) {
                        return Err(format!("{name} can be in a fixed layout alone"));
                    }
                }
                let is_sold = |profile: &&Profile| {
                    let is_named = names.iter().any(|name| name.as_str() == profile.name);
                    is_named || (names.is_empty() && !profile.is_marked())
                };
                let profiles = chip.profiles().map(|(_, profile)| profile).filter(is_sold);
                let places =
                    profiles.flat_map(|profile| profile.starts.iter().map(move |s| (profile, *s)));
                Ok(places.collect())
            }
        }
    }
}

/// Where the parts of a GPU in these modes are: all of one profile, known by how many there are.
fn uniform(chip: &Chip, modes: Modes) -> Vec<(&Profile, u8)> {
    let devices = match modes.compute {
        ComputeMode::Spx => 1,
        ComputeMode::Dpx => 2,
        ComputeMode::Tpx => 3,
        ComputeMode::Qpx => 4,
        ComputeMode::Cpx => chip.geometry().axis,
    };
    let mut profiles = chip.profiles().map(|(_, profile)| profile);
    let profile = profiles.find(|profile| profile.count_max == devices);
    let places = profile.into_iter();
    places
        .flat_map(|profile| profile.starts.iter().map(move |start| (profile, *start)))
        .collect()
}

/// Where the slices of a fixed layout stand: the largest first, each as high as it fits.
fn fixed<'a>(chip: &'a Chip, names: &[ProfileName]) -> Result<Vec<(&'a Profile, u8)>, String> {
    let mut items = Vec::new();
    for name in names {
        items.push(find(chip, name)?);
    }
    let mut layouts = [Layout::default()];
    let left = first_fit_decreasing(chip, &mut layouts, &items);
    if let Some(index) = left.first() {
        let name = chip.profile(*index).map_or("", |profile| &profile.name);
        return Err(format!(
            "{} do not fit on one GPU together: there is no room for {name}",
            names
                .iter()
                .map(|name| name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        ));
    }
    let placements = layouts.iter().flat_map(|layout| layout.placements());
    Ok(placements
        .filter_map(|it| Some((chip.profile(it.profile)?, it.start)))
        .collect())
}

fn find(chip: &Chip, name: &str) -> Result<mig::chip::ProfileIndex, String> {
    chip.find(name).ok_or_else(|| {
        let names: Vec<&str> = chip.profiles().map(|(_, it)| it.name.as_str()).collect();
        format!(
            "the GPU has no profile '{name}'; it has {}",
            names.join(", ")
        )
    })
}
