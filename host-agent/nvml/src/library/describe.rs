//! What a GPU is.

use super::{Asker, Library, raw};
use crate::facts::{Description, LINKS_MAX, Link};
use crate::fault::Fault;
use crate::slices::MigMode;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureThreshold};
use nvml_wrapper::{Device, cuda_driver_version_major, cuda_driver_version_minor};
use protocol::bounded::Text;

impl Library {
    /// Everything about the GPU at `pci`.
    ///
    /// # Errors
    /// When it is lost, or does not say its name, UUID or memory: without these it cannot be leased.
    pub fn describe(&self, pci: &str) -> Result<Description, Fault> {
        let device = self.device(pci)?;
        let mut ask = Asker::default();
        let (memory, memory_reserved, _) = raw::memory(&device)?;
        let found = Description {
            identity: self.identify(&super::Which::Pci(Text::cut(pci)))?,
            name: Text::cut(&device.name()?),
            driver: Text::cut(
                &ask.known(self.nvml.sys_driver_version())
                    .unwrap_or_default(),
            ),
            cuda: ask
                .known(self.nvml.sys_cuda_driver_version())
                .and_then(cuda_version),
            compute_capability: ask
                .known(device.cuda_compute_capability())
                .and_then(|found| {
                    Some((
                        u32::try_from(found.major).ok()?,
                        u32::try_from(found.minor).ok()?,
                    ))
                }),
            cores: ask.known(device.num_cores()),
            memory,
            memory_reserved,
            memory_bus_bits: ask.known(device.memory_bus_width()),
            pci_device: ask
                .known(device.pci_info())
                .map(|found| found.pci_device_id),
            minor: ask.known(device.minor_number()),
            pcie_max: ask
                .known(device.max_pcie_link_gen())
                .zip(ask.known(device.max_pcie_link_width())),
            power_limit_mw: ask.known(device.enforced_power_limit()),
            power_limits_mw: ask
                .known(device.power_management_limit_constraints())
                .map(|found| (found.min_limit, found.max_limit)),
            graphics_clock_max_mhz: ask.known(device.max_clock_info(Clock::Graphics)),
            memory_clock_max_mhz: ask.known(device.max_clock_info(Clock::Memory)),
            temperature_max_c: ask
                .known(device.temperature_threshold(TemperatureThreshold::Slowdown)),
            ecc: ask
                .known(device.is_ecc_enabled())
                .map(|found| found.currently_enabled),
            display_active: ask.known(device.is_display_active()),
            persistence: ask.known(device.is_in_persistent_mode()),
            mig: ask.known(device.mig_mode()).map(|found| MigMode {
                current: found.current != 0,
                pending: found.pending != 0,
            }),
            links: links(&device, &mut ask),
            serial: ask.known(device.serial()).map(|serial| Text::cut(&serial)),
        };
        ask.unless_lost(found)
    }
}

fn cuda_version(version: i32) -> Option<(u32, u32)> {
    let major = u32::try_from(cuda_driver_version_major(version)).ok()?;
    let minor = u32::try_from(cuda_driver_version_minor(version)).ok()?;
    Some((major, minor))
}

/// The links that are up. The first that the GPU does not have ends the search.
fn links(device: &Device<'_>, ask: &mut Asker) -> Vec<Link> {
    let mut up = Vec::new();
    for number in 0..LINKS_MAX {
        let link = device.link_wrapper_for(number);
        match ask.known(link.is_active()) {
            Some(true) => up.push(Link {
                link: number,
                version: ask.known(link.version()),
                remote: ask
                    .known(raw::remote_of_link(device, number))
                    .map(|place| Text::cut(&place)),
            }),
            Some(false) => {}
            None => break,
        }
    }
    up
}
