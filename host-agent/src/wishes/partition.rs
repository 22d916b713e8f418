//! How what an owner says of slices becomes a policy: `off`, `dynamic`, `dynamic:1g.10gb,3g.40gb`, or the slices of a
//! fixed layout, for all GPUs or for each by itself; `cpx/nps4` for GPUs of AMD's, all alike.

use super::resolve::{Ground, gpu};
use super::{Limit, Wishes};
use crate::core::offer::Listing;
use crate::core::slices::policy::{PREMIUM, PartitionLayout, SLICES_MAX, SlicePolicy};
use mig::amd::Modes;
use mig::chip::PROFILES_MAX;
use mig::name::is_profile_name;
use protocol::bounded::List;
use protocol::offer::{ProfileName, ResourceName};
use protocol::units::PricePerHour;
use std::collections::BTreeMap;

/// How GPUs are cut, as it was said: the last that is about a GPU counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutWishes(Vec<(Option<String>, Option<PartitionLayout>)>);

/// Prices of slices, as they were said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlicePrices(List<(ProfileName, PricePerHour), PROFILES_MAX>);

/// `dynamic`, `3g.40gb,1g.10gb`, `0=off; 1=dynamic`.
pub(super) fn layouts(text: &str) -> Result<LayoutWishes, String> {
    let said = text.split(';').map(|part| {
        let (gpu, layout) = match part.split_once('=') {
            Some((gpu, layout)) => (Some(gpu.trim().to_owned()), layout),
            None => (None, part),
        };
        let gpu = gpu.filter(|gpu| gpu != "*");
        Ok((gpu, layout_of(layout.trim())?))
    });
    said.collect::<Result<_, String>>().map(LayoutWishes)
}

fn layout_of(text: &str) -> Result<Option<PartitionLayout>, String> {
    match text {
        "off" => Ok(None),
        "dynamic" => Ok(Some(PartitionLayout::Dynamic(List::default()))),
        _ if is_soft(text) => Err(format!(
            "'{text}' keeps nothing of two renters apart, neither memory nor faults, and is not sold: whoever leases a \
             GPU shares it with itself as it likes"
        )),
        _ if text.parse::<Modes>().is_ok() => {
            let modes = text.parse::<Modes>().map_err(|error| error.to_string())?;
            Ok(Some(PartitionLayout::Uniform(modes)))
        }
        _ => match text.strip_prefix("dynamic:") {
            Some(names) => List::new(profiles(names)?)
                .map(|names| Some(PartitionLayout::Dynamic(names)))
                .map_err(|_| format!("more than {PROFILES_MAX} kinds of slices")),
            None => List::new(profiles(text)?)
                .map(|names| Some(PartitionLayout::Fixed(names)))
                .map_err(|_| format!("more than {SLICES_MAX} slices do not fit on any GPU")),
        },
    }
}

/// Ways to share a GPU that only its driver keeps apart.
fn is_soft(text: &str) -> bool {
    let word = text.split([':', '=']).next().unwrap_or_default();
    let word = word.trim().to_ascii_lowercase().replace(['-', '_'], "");
    [
        "mps",
        "timeslicing",
        "timeslice",
        "timesharing",
        "shared",
        "fractional",
    ]
    .contains(&word.as_str())
}

fn profiles(text: &str) -> Result<Vec<ProfileName>, String> {
    text.split(',').map(|name| profile(name.trim())).collect()
}

fn profile(name: &str) -> Result<ProfileName, String> {
    let wrong = || {
        format!(
            "'{name}' is not a kind of slice like 3g.40gb; layouts are off, dynamic, or such names, and CPX, \
             QPX, DPX or SPX for GPUs of AMD's"
        )
    };
    let name = name.strip_prefix("mig-").unwrap_or(name);
    if !is_profile_name(name) {
        return Err(wrong());
    }
    ProfileName::new(name).map_err(|_| wrong())
}

/// `3g.40gb=0.60,1g.10gb=0.15`; `rule` for none.
pub(super) fn prices(text: &str) -> Result<SlicePrices, String> {
    if text == "rule" {
        return Ok(SlicePrices(List::default()));
    }
    let mut prices = BTreeMap::new();
    for part in text.split(',') {
        let (name, price) = part
            .split_once('=')
            .ok_or_else(|| format!("'{part}' is not like 3g.40gb=0.60"))?;
        let name = profile(name.trim())?;
        let price = super::read::amount::<PricePerHour>(price.trim())?;
        if prices.insert(name.clone(), price).is_some() {
            return Err(format!("{name} has two prices"));
        }
    }
    List::new(prices.into_iter().collect())
        .map(SlicePrices)
        .map_err(|_| format!("more than {PROFILES_MAX} prices"))
}

/// The policy that is listed from now on.
///
/// # Errors
/// What makes no sense, with the flag that says it.
pub(super) fn policy(
    wishes: &Wishes,
    ground: Ground<'_>,
    resources: &[ResourceName],
) -> Result<SlicePolicy, String> {
    let before = ground.before.map(|listed| &listed.slices);
    let layouts = match &wishes.partition_layout {
        Some(said) => said_layouts(said, ground, resources)?,
        None => before.map(|it| it.layouts.to_vec()).unwrap_or_default(),
    };
    // A GPU that is not sold any more is not cut either.
    let is_sold = |(gpu, _): &(ResourceName, PartitionLayout)| resources.contains(gpu);
    let layouts: Vec<_> = layouts.into_iter().filter(is_sold).collect();
    let policy = SlicePolicy {
        keep_whole: wishes
            .keep_whole
            .or(before.map(|it| it.keep_whole))
            .unwrap_or(0),
        also_whole: wishes
            .whole_beside
            .map(|word| word == super::WholeWord::Idle)
            .or(before.map(|it| it.also_whole))
            .unwrap_or(false),
        prices: match &wishes.slice_price {
            Some(SlicePrices(said)) => said.clone(),
            None => before.map(|it| it.prices.clone()).unwrap_or_default(),
        },
        premium: match wishes.slice_premium {
            Some(Limit::At(premium)) => premium,
            Some(Limit::None) => protocol::units::BasisPoints(0),
            None => before.map_or(PREMIUM, |it| it.premium),
        },
        layouts: List::first(layouts),
    };
    check(wishes, ground, &policy)?;
    Ok(policy)
}

fn said_layouts(
    LayoutWishes(said): &LayoutWishes,
    ground: Ground<'_>,
    resources: &[ResourceName],
) -> Result<Vec<(ResourceName, PartitionLayout)>, String> {
    let mut layouts = BTreeMap::new();
    for (name, layout) in said {
        let gpus: Vec<ResourceName> = match name {
            Some(name) => {
                let found = gpu("--partition-layout", name, ground.machine)?;
                if !resources.contains(&found) {
                    return Err(format!("--partition-layout: {found} is not sold"));
                }
                vec![found]
            }
            None => resources.to_vec(),
        };
        for gpu in gpus {
            match layout {
                Some(layout) => layouts.insert(gpu, layout.clone()),
                None => layouts.remove(&gpu),
            };
        }
    }
    Ok(layouts.into_iter().collect())
}

/// What the driver cannot do, and what is said of nothing.
fn check(wishes: &Wishes, ground: Ground<'_>, policy: &SlicePolicy) -> Result<(), String> {
    for (gpu, layout) in policy.layouts.iter() {
        let divisible = ground.divisibles.get(gpu).ok_or_else(|| {
            format!(
                "--partition-layout: {gpu} cannot be divided, or its driver does not say into what"
            )
        })?;
        let problem = |problem: String| format!("--partition-layout: {problem}");
        layout.check(divisible).map_err(problem)?;
    }
    check_alike(ground, policy)?;
    let is_dynamic = |layout: &PartitionLayout| matches!(layout, PartitionLayout::Dynamic(_));
    let dynamic = policy
        .layouts
        .iter()
        .filter(|(_, it)| is_dynamic(it))
        .count();
    if let Some(kept) = wishes
        .keep_whole
        .filter(|kept| usize::from(*kept) > dynamic)
    {
        return Err(format!(
            "--keep-whole {kept}: {dynamic} GPUs have a dynamic layout"
        ));
    }
    let chips = || {
        let cut = policy.layouts.iter();
        cut.filter_map(|(gpu, _)| ground.divisibles.get(gpu))
    };
    for (name, _) in policy.prices.iter() {
        if wishes.slice_price.is_some() && !chips().any(|gpu| gpu.chip.find(name).is_some()) {
            return Err(format!(
                "--slice-price {name}: no GPU that is cut has such a slice"
            ));
        }
    }
    Ok(())
}

/// GPUs that are divided into equal parts are all divided alike: the memory's mode is the driver's, for all of them.
fn check_alike(ground: Ground<'_>, policy: &SlicePolicy) -> Result<(), String> {
    let uniform = policy
        .layouts
        .iter()
        .filter_map(|(_, layout)| match layout {
            PartitionLayout::Uniform(modes) => Some(modes),
            PartitionLayout::Fixed(_) | PartitionLayout::Dynamic(_) => None,
        });
    let mut modes: Vec<_> = uniform.collect();
    let said = modes.len();
    modes.sort_unstable();
    modes.dedup();
    let there = ground
        .divisibles
        .values()
        .filter(|gpu| gpu.uniform.is_some());
    if said > 0 && (modes.len() > 1 || said != there.count()) {
        return Err(
            "--partition-layout: GPUs of AMD's are divided alike, all of a host: name one layout for all of them"
                .to_owned(),
        );
    }
    Ok(())
}

/// What an owner who cuts GPUs should know.
#[must_use]
pub fn warnings(listing: &Listing) -> Vec<String> {
    let mut warnings = Vec::new();
    if listing.slices.layouts.is_empty() {
        return warnings;
    }
    if listing.slices.also_whole {
        warnings.push(
            "GPUs that are cut are sold whole too while no slice of them is leased: some reset when they change, \
             which no other program on them survives"
                .to_owned(),
        );
    }
    warnings
}

#[cfg(test)]
mod tests;
