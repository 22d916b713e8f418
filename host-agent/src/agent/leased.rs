//! The GPUs and slices of a lease in the words of the engine: which device each is, of which card, with what memory.

use super::desk::Desk;
use crate::core::lease::LeaseRecord;
use crate::core::slices::Divisibles;
use crate::hardware::Hardware;
use crate::runtime::Runtime;
use crate::runtime::gpus::LeasedGpu;
use mig::name::SliceName;
use protocol::ids::LeaseId;
use protocol::machine::Gpu;
use protocol::offer::{ResourceName, parent};
use protocol::units::Bytes;

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// The GPUs of a lease, each with what the machine says of it now; `devices` are the driver's names of them, in the
    /// order of its resources.
    pub(super) fn leased_gpus(&self, lease: LeaseId, devices: &[ResourceName]) -> Vec<LeasedGpu> {
        let Some(record) = self.leases.record(lease) else {
            return Vec::new();
        };
        let machine = self.standing.machine.as_ref();
        let cards = machine.map_or(&[][..], |machine| &machine.gpus);
        leased(record, devices, cards, self.slicing.divisibles())
    }
}

fn leased(
    record: &LeaseRecord,
    devices: &[ResourceName],
    cards: &[Gpu],
    divisibles: &Divisibles,
) -> Vec<LeasedGpu> {
    let resources = record.share.resources.iter().zip(devices);
    let gpus = resources.filter_map(|(resource, device)| {
        let uuid = parent(resource);
        let is_it = |card: &&Gpu| card.uuid.as_str() == uuid;
        // The driver may be another than when it was offered.
        let now = cards.iter().find(is_it);
        let card = now.or_else(|| record.share.gpus.iter().find(is_it))?;
        let divided = divisibles.get(uuid);
        let slice = SliceName::parse(resource).ok();
        let memory = slice.as_ref().and_then(|slice| {
            let chip = &divided?.chip;
            let profile = chip.profile(chip.find(slice.profile())?)?;
            Some(Bytes(u64::from(profile.memory_mib) << 20))
        });
        let mut standing = divided.into_iter().flat_map(|gpu| &gpu.standing);
        let of_slice = standing.find(|one| one.device.as_deref() == Some(device.as_str()));
        Some(LeasedGpu {
            device: device.clone(),
            memory: memory.unwrap_or(card.vram),
            card: card.clone(),
            gpu_instance: slice.and(of_slice).map(|one| one.number),
        })
    });
    gpus.collect()
}
