//! What is right and wrong with each card, from what was asked. Pure.

use super::super::versions::driver_hole;
use super::Check;
use host_nvml::facts::Description;
use host_nvml::sample::{ClockReasons, Reading, RecoveryAction};
use protocol::machine::Gpu;
use protocol::units::Bytes;

/// What is asked of the system that drives them.
pub(super) struct System<'a> {
    /// Driver version.
    pub(super) driver: &'a str,
    /// The text of the driver's parameters, where the kernel shows it.
    pub(super) parameters: Option<String>,
    /// Groups of devices that the IOMMU keeps apart.
    pub(super) iommu_groups: usize,
    /// Whether this user may look into containers.
    pub(super) is_root: bool,
}

/// What is asked of one.
pub(super) struct Card<'a> {
    /// Its number in the order of the bus.
    pub(super) number: u32,
    /// As it is offered.
    pub(super) gpu: &'a Gpu,
    /// All that does not change while it works.
    pub(super) description: Option<Description>,
    /// How it is now; nothing when it did not say in time.
    pub(super) reading: Option<&'a Reading>,
    /// Who uses it beside this host's leases.
    pub(super) foreign: Vec<Held>,
    /// Generation and lanes while data crossed its link, when that was measured.
    pub(super) pcie_under_load: Option<(u32, u32)>,
}

/// A process that uses a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) process: u32,
    pub(super) name: String,
    pub(super) memory: Option<Bytes>,
}

/// The driver, and what stands between a GPU and the rest of the machine.
pub(super) fn system(system: &System<'_>) -> Vec<Check> {
    let driver = match driver_hole(system.driver) {
        Some(hole) => Check::warn(
            "driver",
            format!("{}: {hole}", system.driver),
            "upgrade NVIDIA's driver",
        ),
        None => Check::ok("driver", system.driver.to_owned()),
    };
    let parameters = system.parameters.as_deref().unwrap_or_default();
    let is_kept = parameters
        .replace(' ', "")
        .contains("RMDisableScrubOnFree=1");
    let scrub = is_kept.then(|| {
        Check::fail(
            "scrub",
            "the driver is told not to clear memory that is freed (RMDisableScrubOnFree=1): a tenant could read another's",
            "take it out of NVreg_RegistryDwords in /etc/modprobe.d, update-initramfs -u, and reboot",
        )
    });
    let iommu = match system.iommu_groups {
        0 => Check::warn(
            "iommu",
            "off: nothing keeps a device from reading and writing all memory of the machine; needed on",
            "switch it on in the firmware, and boot with intel_iommu=on or amd_iommu=on, and iommu=pt",
        ),
        groups => Check::ok("iommu", format!("on, {groups} groups of devices")),
    };
    let sight = (!system.is_root).then(|| {
        Check::warn(
            "gpus inside",
            "this user may not look into containers, so no lease with a GPU would start; needed root",
            "run the agent as root",
        )
    });
    [driver]
        .into_iter()
        .chain(scrub)
        .chain([iommu])
        .chain(sight)
        .collect()
}

/// One line for what is as it should be, and one for each thing that is not.
pub(super) fn checks(card: &Card<'_>) -> Vec<Check> {
    let name = format!("{} {}", card.number, card.gpu.model);
    let mut checks = vec![summary(card, &name)];
    checks.extend(use_of(card, &name));
    checks.extend(mode(card, &name));
    checks.extend(link(card, &name));
    if let Some(reading) = card.reading {
        checks.extend(memory(reading, card, &name));
        checks.extend(pace(reading, card, &name));
    }
    checks
}

fn summary(card: &Card<'_>, name: &str) -> Check {
    let Some(reading) = card.reading else {
        return Check::warn(
            "gpu",
            format!("{name}: it did not say how it is within 5 s"),
            "look at dmesg and nvidia-smi",
        );
    };
    let unit = |value: Option<u32>, unit: &str| {
        value.map_or_else(|| format!("- {unit}"), |value| format!("{value} {unit}"))
    };
    let watts = |value: Option<u32>| value.map(|milliwatts| milliwatts / 1000);
    let switch = |is_on: Option<bool>| match is_on {
        Some(true) => "on",
        Some(false) => "off",
        None => "not there",
    };
    let used = reading
        .memory_used
        .map_or("-".to_owned(), |it| it.to_string());
    let mig = card.gpu.is_divided;
    Check::ok(
        "gpu",
        format!(
            "{name}: {}, {} of {}, {used} of {} in use, ECC {}, MIG {}",
            unit(reading.temperature_c, "°C"),
            unit(watts(reading.power_mw), "W"),
            unit(watts(reading.power_limit_mw), "W"),
            card.gpu.vram,
            switch(card.gpu.ecc),
            switch(mig)
        ),
    )
}

/// Who uses it, and what for.
fn use_of(card: &Card<'_>, name: &str) -> Vec<Check> {
    let mut checks: Vec<Check> = card
        .foreign
        .iter()
        .map(|held| {
            let memory = held.memory.map_or("memory".to_owned(), |it| it.to_string());
            Check::fail(
                "leftover",
                format!(
                    "{name}: process {} \"{}\" holds {memory} of it and is of no lease; needed none",
                    held.process, held.name
                ),
                format!("stop it: kill {}; or do not list this GPU", held.process),
            )
        })
        .collect();
    if card.gpu.has_display {
        checks.push(Check::warn(
            "display",
            format!("{name}: a display is driven by it, which takes memory and time from tenants; needed none"),
            "use another card's output, or boot without a desktop: systemctl set-default multi-user.target",
        ));
    }
    checks
}

fn mode(card: &Card<'_>, name: &str) -> Vec<Check> {
    let Some(description) = &card.description else {
        return Vec::new();
    };
    let word = |is_on: bool| if is_on { "on" } else { "off" };
    let pending = description.mig.filter(|mig| mig.current != mig.pending);
    let mig = pending.map(|mig| {
        Check::fail(
            "mig",
            format!(
                "{name}: MIG is {} and waits for a reset to be {}; needed one of both",
                word(mig.current),
                word(mig.pending)
            ),
            format!(
                "with nothing running on it: nvidia-smi --gpu-reset -i {}",
                card.gpu.pci_address
            ),
        )
    });
    let persistence = (description.persistence == Some(false)).then(|| {
        Check::warn(
            "persistence",
            format!("{name}: off, so the driver starts anew with each lease, some seconds late; needed on"),
            "systemctl enable --now nvidia-persistenced",
        )
    });
    mig.into_iter().chain(persistence).collect()
}

/// Its place in the machine. At rest a GPU lowers its generation and keeps its lanes.
fn link(card: &Card<'_>, name: &str) -> Option<Check> {
    let most = (
        u32::from(card.gpu.pcie_generation),
        u32::from(card.gpu.pcie_width),
    );
    let fix = "seat the card anew, or use another slot or riser; look at the slot's settings in the firmware";
    let words = |(generation, width): (u32, u32)| format!("PCIe {generation}.0 x{width}");
    if let Some(found) = card.pcie_under_load {
        let said = format!("{name}: {} under load", words(found));
        return Some(if found.0 < most.0 || found.1 < most.1 {
            Check::warn(
                "pcie",
                format!("{said}; card and slot can {}", words(most)),
                fix,
            )
        } else {
            Check::ok("pcie", said)
        });
    }
    let (_, width) = card.reading?.pcie?;
    if width < most.1 {
        return Some(Check::warn(
            "pcie",
            format!("{name}: {width} lanes; card and slot can {}", words(most)),
            fix,
        ));
    }
    Some(Check::ok(
        "pcie",
        format!("{name}: {width} lanes; how fast under load: feira-host bench gpu"),
    ))
}

fn memory(reading: &Reading, card: &Card<'_>, name: &str) -> Vec<Check> {
    let reset = format!(
        "with nothing running on it: nvidia-smi --gpu-reset -i {}",
        card.gpu.pci_address
    );
    let mut checks = Vec::new();
    if card.gpu.ecc == Some(false) {
        checks.push(Check::warn(
            "ecc",
            format!("{name}: off, so errors of its memory are not noticed; needed on"),
            format!("nvidia-smi -i {} -e 1, and reboot", card.gpu.pci_address),
        ));
    }
    if let Some(ecc) = reading.ecc.filter(|ecc| ecc.uncorrected > 0) {
        checks.push(Check::fail(
            "ecc",
            format!(
                "{name}: {} errors that were not corrected since the driver was loaded; needed 0",
                ecc.uncorrected
            ),
            reset.clone(),
        ));
    }
    if let Some(rows) = reading.remapped {
        if rows.failed {
            checks.push(Check::fail(
                "ecc",
                format!("{name}: a row of its memory could not be replaced; needed all"),
                "return the card",
            ));
        }
        if rows.pending {
            let found =
                format!("{name}: rows of its memory wait for a reset to be replaced; needed none");
            checks.push(Check::fail("ecc", found, reset));
        }
    }
    checks
}

/// What slows it down, and what the driver itself wants done.
fn pace(reading: &Reading, card: &Card<'_>, name: &str) -> Vec<Check> {
    let mut checks = Vec::new();
    let reasons = reading.clock_reasons.unwrap_or_default();
    let limit = card
        .description
        .as_ref()
        .and_then(|it| it.temperature_max_c);
    let limit = limit.map_or("its limit".to_owned(), |limit| format!("{limit} °C"));
    let now = reading
        .temperature_c
        .map_or("-".to_owned(), |it| it.to_string());
    if reasons.has(ClockReasons::SOFTWARE_THERMAL | ClockReasons::HARDWARE_THERMAL) {
        checks.push(Check::warn(
            "heat",
            format!("{name}: {now} °C, and its clocks are lowered for it; needed below {limit}"),
            "clean its fans, let air through, or lower its power limit: nvidia-smi -pl",
        ));
    }
    if reasons.has(ClockReasons::POWER_BRAKE) {
        checks.push(Check::warn(
            "power",
            format!("{name}: the power supply asks it to draw less; needed no brake"),
            "look at the power supply and its cables",
        ));
    }
    let wanted = match reading.recovery {
        None | Some(RecoveryAction::None) => return checks,
        Some(RecoveryAction::Reset) => "a reset",
        Some(RecoveryAction::Reboot) => "a reboot of the machine",
        Some(RecoveryAction::DrainPeers) => "no new work across GPUs",
        Some(RecoveryAction::DrainAndReset) => "no new work, and a reset when it is empty",
        Some(RecoveryAction::Other(_)) => "something that this program does not know",
    };
    checks.push(Check::fail(
        "recovery",
        format!("{name}: the driver wants {wanted}; needed nothing"),
        "let its leases end and do that; dmesg says what happened",
    ));
    checks
}

#[cfg(test)]
mod tests;
