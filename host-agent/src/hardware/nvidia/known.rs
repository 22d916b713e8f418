//! What is known of the GPUs in the words of the market.

use super::process::CallError;
use super::unit::UnitSeen;
use super::{Nvidia, Troubled};
use host_nvml::facts::{Description, Link};
use host_nvml::fault::Fault;
use host_nvml::news::GpuState;
use protocol::bounded::Text;
use protocol::machine::{GPUS_MAX, Gpu, Vendor};
use std::collections::BTreeMap;

/// Why there are none.
pub(super) fn absent(error: &CallError) -> Nvidia {
    match error {
        CallError::Fault(Fault::LibraryMissing { detail }) => Nvidia::LibraryMissing {
            detail: detail.clone(),
        },
        CallError::Fault(Fault::DriverNotLoaded) => Nvidia::DriverNotLoaded,
        CallError::Hangs(_) => Nvidia::Hangs,
        CallError::Fault(_) | CallError::Ended(_) | CallError::NotAsked(_) => Nvidia::Failed {
            detail: error.to_string(),
        },
    }
}

/// Those that answer, in the order of the bus, and those that do not.
pub(super) fn ready<'a>(units: impl Iterator<Item = &'a UnitSeen>, unreadable: u32) -> Nvidia {
    let mut units: Vec<&UnitSeen> = units.collect();
    units.sort_by(|one, other| one.identity.pci.cmp(&other.identity.pci));
    let described: Vec<&Description> = units
        .iter()
        .filter_map(|unit| unit.description.as_deref())
        .collect();
    let groups = link_groups(&described);
    let mut gpus = Vec::new();
    let mut troubled = Vec::new();
    for unit in &units {
        let gpu = unit.description.as_deref().map_or_else(
            || Gpu {
                uuid: unit.identity.uuid.clone(),
                pci_address: pci_address(&unit.identity.pci),
                ..Gpu::unknown(Vendor::Nvidia)
            },
            |description| {
                let group = groups.get(&description.identity.pci).copied();
                gpu(description, group.unwrap_or(0))
            },
        );
        match &unit.state {
            GpuState::Ready if gpus.len() < GPUS_MAX => gpus.push(gpu),
            GpuState::Ready => {}
            GpuState::Unknown { .. } | GpuState::Gone => troubled.push(Troubled {
                gpu,
                state: unit.state.clone(),
            }),
        }
    }
    let driver = described.first().map(|first| first.driver.as_str());
    Nvidia::Ready {
        driver: driver.unwrap_or_default().to_owned(),
        gpus,
        troubled,
        unreadable,
    }
}

fn gpu(found: &Description, link_group: u8) -> Gpu {
    let (cuda, capability) = (found.cuda, found.compute_capability);
    let small = |value: u32| u8::try_from(value).unwrap_or(0);
    let version = |version: Option<(u32, u32)>| {
        let part = |part: u32| u16::try_from(part).unwrap_or(0);
        version.map_or((0, 0), |(major, minor)| (part(major), part(minor)))
    };
    Gpu {
        model: Text::cut(&found.name),
        uuid: found.identity.uuid.clone(),
        vram: found.memory,
        driver: Text::cut(&found.driver),
        cuda: version(cuda),
        compute_capability: version(capability),
        multiprocessors: multiprocessors(found.cores, capability),
        clock_max_mhz: found.graphics_clock_max_mhz.unwrap_or(0),
        memory_clock_max_mhz: found.memory_clock_max_mhz.unwrap_or(0),
        pci_address: pci_address(&found.identity.pci),
        pcie_generation: found
            .pcie_max
            .map_or(0, |(generation, _)| small(generation)),
        pcie_width: found.pcie_max.map_or(0, |(_, width)| small(width)),
        power_limit_mw: found.power_limit_mw.unwrap_or(0),
        ecc: found.ecc,
        link_group,
        links: u8::try_from(found.links.len()).unwrap_or(u8::MAX),
        is_divided: found.mig.map(|mode| mode.current),
        has_display: found.display_active.unwrap_or(false),
        ..Gpu::unknown(Vendor::Nvidia)
    }
}

/// Multiprocessors, of which the library has no call: cores over the cores of one, which is 64 on the large
/// chips of Pascal, Volta and Ampere and on Turing, 192 on Kepler, and 128 on all others (CUDA C++ Programming
/// Guide, "Compute Capabilities"). 0 when unknown.
fn multiprocessors(cores: Option<u32>, capability: Option<(u32, u32)>) -> u16 {
    let each = match capability {
        Some((3, _)) => 192,
        Some((6, 0) | (7, _) | (8, 0)) => 64,
        Some(_) => 128,
        None => return 0,
    };
    cores
        .map(|cores| cores / each)
        .and_then(|count| u16::try_from(count).ok())
        .unwrap_or(0)
}

/// `0000:05:00.0`, as the kernel writes it, of the library's `00000000:05:00.0`.
fn pci_address(pci: &str) -> Text<16> {
    let lower = pci.to_lowercase();
    match lower.split_once(':') {
        Some((domain, rest)) if domain.len() == 8 && domain.starts_with("0000") => {
            Text::cut(&format!("{}:{rest}", domain.get(4..).unwrap_or_default()))
        }
        Some(_) | None => Text::cut(&lower),
    }
}

/// Which GPUs reach each other over NVLink, by their place on the bus: directly, or through the same switch.
/// Groups are counted from 1 in the order of the bus; a GPU that reaches no other is in none.
fn link_groups(gpus: &[&Description]) -> BTreeMap<Text<32>, u8> {
    // Everything that is reached from a GPU gets the least number of all that reach it.
    let ends = |gpu: &Description| {
        let remotes = gpu
            .links
            .iter()
            .filter_map(|Link { remote, .. }| remote.clone());
        remotes
            .chain([gpu.identity.pci.clone()])
            .collect::<Vec<_>>()
    };
    let mut number: BTreeMap<Text<32>, usize> = BTreeMap::new();
    for (at, gpu) in gpus.iter().enumerate() {
        let ends = ends(gpu);
        let reached: Vec<usize> = ends
            .iter()
            .filter_map(|end| number.get(end).copied())
            .collect();
        let least = reached.iter().copied().min().unwrap_or(at);
        for known in number.values_mut() {
            if reached.contains(known) {
                *known = least;
            }
        }
        number.extend(ends.into_iter().map(|end| (end, least)));
    }
    let mut members: BTreeMap<usize, Vec<Text<32>>> = BTreeMap::new();
    for gpu in gpus {
        if let Some(group) = number.get(&gpu.identity.pci) {
            members
                .entry(*group)
                .or_default()
                .push(gpu.identity.pci.clone());
        }
    }
    (1..)
        .zip(members.into_values().filter(|members| members.len() > 1))
        .flat_map(|(group, members)| members.into_iter().map(move |member| (member, group)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_nvml::facts::Identity;
    use protocol::units::Bytes;

    fn described(pci: &str, remotes: &[&str]) -> Description {
        Description {
            identity: Identity {
                uuid: Text::cut(&format!("GPU-{pci}")),
                pci: Text::cut(pci),
            },
            name: Text::cut("NVIDIA H100 80GB HBM3"),
            driver: Text::cut("570.124.06"),
            cuda: Some((12, 8)),
            compute_capability: Some((9, 0)),
            cores: Some(16_896),
            memory: Bytes(1 << 36),
            memory_reserved: None,
            memory_bus_bits: None,
            pci_device: None,
            minor: None,
            pcie_max: Some((5, 16)),
            power_limit_mw: None,
            power_limits_mw: None,
            graphics_clock_max_mhz: None,
            memory_clock_max_mhz: None,
            temperature_max_c: None,
            ecc: None,
            display_active: None,
            persistence: None,
            mig: None,
            links: (0..)
                .zip(remotes)
                .map(|(link, remote)| Link {
                    link,
                    version: Some(4),
                    remote: Some(Text::cut(remote)),
                })
                .collect(),
            serial: None,
        }
    }

    #[test]
    fn multiprocessors_follow_from_cores() {
        // H100 SXM 132, A100 108, RTX 4090 128, V100 80, GTX 1080 20, by their data sheets.
        for (cores, capability, wanted) in [
            (16_896, (9, 0), 132),
            (6_912, (8, 0), 108),
            (16_384, (8, 9), 128),
            (5_120, (7, 0), 80),
            (2_560, (6, 1), 20),
        ] {
            assert_eq!(multiprocessors(Some(cores), Some(capability)), wanted);
        }
        assert_eq!(multiprocessors(None, Some((9, 0))), 0);
    }

    #[test]
    fn addresses_are_the_kernels() {
        assert_eq!(pci_address("00000000:5D:00.0").as_str(), "0000:5d:00.0");
        assert_eq!(pci_address("00010000:5D:00.0").as_str(), "00010000:5d:00.0");
    }

    #[test]
    fn pairs_and_switches_make_groups() {
        let pair = [
            described("00:05", &["00:15", "00:15"]),
            described("00:15", &["00:05"]),
            described("00:25", &[]),
        ];
        let groups = link_groups(&pair.iter().collect::<Vec<_>>());
        assert_eq!(groups.get(&Text::cut("00:05")), Some(&1));
        assert_eq!(groups.get(&Text::cut("00:15")), Some(&1));
        assert_eq!(groups.get(&Text::cut("00:25")), None);
        // The first two share no switch; the third joins them.
        let switched = [
            described("00:05", &["00:a0"]),
            described("00:15", &["00:b0"]),
            described("00:25", &["00:a0", "00:b0"]),
        ];
        let groups = link_groups(&switched.iter().collect::<Vec<_>>());
        assert_eq!(groups.len(), 3);
        assert!(groups.values().all(|group| *group == 1));
    }
}
