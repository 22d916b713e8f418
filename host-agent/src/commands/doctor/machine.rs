//! The machine: processors, memory, disk, GPUs.

use super::gpus::Scene;
use super::{Check, Place};
use crate::config::Config;
use crate::hardware::nvidia::{Nvidia, Troubled};
use crate::hardware::this::ThisMachine;
use crate::hardware::{Hardware, Measured};
use host_nvml::news::GpuState;
use protocol::ids::HostId;
use protocol::machine::Gpu;
use protocol::operator::chain;
use protocol::units::Bytes;
use std::path::Path;

/// Less than this, and few images fit beside each other.
const DISK_FREE_MIN: Bytes = Bytes::from_gb(20);

/// Everything about the machine.
pub(super) async fn checks(place: &Place, config: &Config, host: HostId) -> Vec<Check> {
    let (here, news) = ThisMachine::start(config.nvml.clone());
    let facts = super::engine::facts(config, host).await.ok();
    let default_root = || "/var/lib/docker".to_owned();
    let root = facts
        .as_ref()
        .map_or_else(default_root, |facts| facts.data_root.clone());
    let mut checks = match here.measure().await {
        Ok(measured) => {
            let mut checks = vec![processor(&measured), gpus(&measured.nvidia)];
            let scene = Scene {
                place,
                config,
                host,
                machine: &here,
                measured: &measured,
                engine: facts.as_ref(),
            };
            checks.extend(super::gpus::checks(scene, news).await);
            checks
        }
        Err(error) => vec![Check::fail("machine", chain(&error), "is /proc mounted?")],
    };
    checks.push(disk(place, &here, config, &root));
    checks
}

fn processor(measured: &Measured) -> Check {
    let processor = &measured.processor;
    let avx = if processor.has_avx { "" } else { ", no AVX" };
    let system = &measured.system;
    Check::ok(
        "machine",
        format!(
            "{}, {} cores{avx}, {} RAM, {}, kernel {}",
            processor.model, processor.cores, measured.ram, system.name, system.kernel
        ),
    )
}

fn disk(place: &Place, here: &ThisMachine, config: &Config, root: &str) -> Check {
    match here.disk(Path::new(root)) {
        Ok(disk) => {
            let found = format!(
                "{} of {} free under {root}; {} are never given to leases",
                disk.free, disk.total, config.disk_reserve
            );
            if disk.free < config.disk_reserve {
                let fix = format!(
                    "make room, or set `disk_reserve_gb` in {}",
                    place.folder.config().display()
                );
                return Check::fail("disk", found, fix);
            }
            if disk.free < DISK_FREE_MIN {
                return Check::warn("disk", found, "make room: images and leases need it");
            }
            Check::ok("disk", found)
        }
        Err(error) => Check::fail("disk", chain(&error), "is the engine's data folder there?"),
    }
}

fn gpus(nvidia: &Nvidia) -> Check {
    let cpu_only = "nothing to do for a CPU machine; for GPUs";
    match nvidia {
        Nvidia::LibraryMissing { .. } => Check::ok(
            "gpus",
            "none: the NVIDIA library is not installed; this is a CPU machine (gpu_name=none)",
        ),
        Nvidia::DriverNotLoaded => Check::warn(
            "gpus",
            "the NVIDIA library is here and the driver is not loaded, or not yet; this is a CPU machine \
             (gpu_name=none) until it is, and a running agent asks again within a minute",
            format!("{cpu_only}: modprobe nvidia, or install the driver for this kernel"),
        ),
        Nvidia::Failed { detail } => Check::fail(
            "gpus",
            format!("the driver answers with an error: {detail}"),
            "look at dmesg and nvidia-smi",
        ),
        Nvidia::Hangs => Check::fail(
            "gpus",
            "the driver does not answer within 2 s",
            "look at dmesg; a GPU that fell off the bus needs a reboot",
        ),
        Nvidia::Ready {
            driver,
            gpus,
            troubled,
            unreadable,
        } => ready(driver, gpus, &trouble(troubled, *unreadable)),
    }
}

fn ready(driver: &str, gpus: &[Gpu], trouble: &[String]) -> Check {
    let list: Vec<String> = gpus.iter().map(one).collect();
    let found = format!("driver {driver}: {}", list.join("; "));
    if !trouble.is_empty() {
        let fix = "look at dmesg; a GPU that fell off the bus needs a reboot";
        return Check::fail("gpus", format!("{found}; {}", trouble.join("; ")), fix);
    }
    if gpus.is_empty() {
        return Check::ok(
            "gpus",
            format!("driver {driver} has none; this is a CPU machine (gpu_name=none)"),
        );
    }
    Check::ok("gpus", found)
}

/// What is wrong with the GPUs that do not answer, one by one.
fn trouble(troubled: &[Troubled], unreadable: u32) -> Vec<String> {
    let mut all: Vec<String> = troubled
        .iter()
        .map(|one| {
            let state = match &one.state {
                GpuState::Ready => "answers".to_owned(),
                GpuState::Unknown { reason } => format!("does not answer: {reason}"),
                GpuState::Gone => "is gone".to_owned(),
            };
            format!(
                "{} at {} {state}",
                one.gpu.uuid.as_str(),
                one.gpu.pci_address.as_str()
            )
        })
        .collect();
    if unreadable > 0 {
        all.push(format!("{unreadable} more do not answer"));
    }
    all
}

fn one(gpu: &Gpu) -> String {
    let (major, minor) = gpu.cuda;
    format!(
        "{} {} {} CUDA {major}.{minor} PCIe {}.0 x{}",
        gpu.model,
        gpu.vram,
        gpu.uuid.chars().take(12).collect::<String>(),
        gpu.pcie_generation,
        gpu.pcie_width
    )
}
