//! Slices that a host of a scenario sells beside its whole GPUs.
//!
//! Must not know the market's state.

use super::actors::{gpu, model_of};
use super::scenario::{GpuGroup, SliceSale};
use mig::board::{Cut, find_board};
use mig::chip::{Chip, Profile};
use mig::name::SliceName;
use protocol::bounded::{List, Text};
use protocol::machine::Gpu;
use protocol::offer::{Isolation, Partition, ResourceName, Share};
use protocol::units::Bytes;

/// What a whole GPU of a host has of its machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) cpu_millicores: u64,
    pub(super) ram: Bytes,
    pub(super) disk: Bytes,
}

/// One kind of slice that is sold: what it is, its share, and the most disk of one.
pub(super) type Sold = (Partition, Share, Bytes);

/// The chip of a model that can be cut, if there is one.
pub(super) fn chip_of(model: &str) -> Option<&'static Chip> {
    let gpu = gpu(model, "any");
    match &find_board(&model_of(model), gpu.vram.0)?.cut {
        Cut::Known(chip) => Some(chip),
        Cut::Named { .. } => None,
    }
}

/// The kind of slice that `sale` of GPUs of a model is, if there is one.
pub(super) fn profile_of(
    group: &GpuGroup,
    sale: &SliceSale,
) -> Option<(&'static Chip, &'static Profile)> {
    let chip = chip_of(&group.model)?;
    Some((chip, chip.profile(chip.find(&sale.profile)?)?))
}

/// What one kind of slice of `gpus` is; nothing for a kind that there is not.
pub(super) fn share(group: &GpuGroup, sale: &SliceSale, gpus: &[Gpu], whole: Part) -> Option<Sold> {
    let (chip, profile) = profile_of(group, sale)?;
    let geometry = chip.geometry();
    let part =
        |whole: u64| whole.saturating_mul(profile.size.into()) / u64::from(geometry.axis.max(1));
    let partition = Partition {
        profile: Text::new(profile.name.clone()).ok()?,
        vram: Bytes(u64::from(profile.memory_mib) << 20),
        multiprocessors: (profile.sm, geometry.sm_total.max(profile.sm)),
        memory_slices: (profile.size, geometry.axis),
        isolation: Isolation::Hardware,
    };
    let names = gpus.iter().flat_map(|gpu| {
        let name = |start: &u8| {
            let name = SliceName::new(&gpu.uuid, &profile.name, *start, profile.size).ok()?;
            ResourceName::new(name.to_string()).ok()
        };
        profile.starts.iter().filter_map(name)
    });
    let ram = part(whole.ram.0);
    let share = Share {
        resources: List::first(names),
        gpus: List::first(gpus.iter().cloned()),
        cpu_millicores: u32::try_from(part(whole.cpu_millicores)).unwrap_or(u32::MAX),
        ram: Bytes(ram),
        shared_memory: Bytes(ram / 8),
    };
    Some((partition, share, Bytes(part(whole.disk.0))))
}
