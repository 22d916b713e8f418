//! The GPUs one by one: what is measured, what is needed, and what mends it. It asks; what that means is
//! [`mod@cards`]' and [`container`]'s to say.

mod cards;
mod container;

use super::{Check, Place};
use crate::bench::file;
use crate::config::Config;
use crate::hardware::Measured;
use crate::hardware::nvidia::Nvidia;
use crate::hardware::this::ThisMachine;
use crate::runtime::docker::DockerRuntime;
use crate::runtime::gpus::host::HostGpus;
use crate::runtime::{EngineFacts, Runtime};
use cards::{Card, Held, System};
use container::Toolkit;
use host_nvml::news::GpuNews;
use host_nvml::sample::{Process, Reading};
use protocol::bounded::Text;
use protocol::ids::HostId;
use protocol::machine::Quantity;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long GPUs are waited for to say how they are: a sample is due every two seconds.
const SAMPLES_DEADLINE: Duration = Duration::from_secs(5);
/// What the driver was loaded with.
const PARAMETERS: &str = "/proc/driver/nvidia/params";
/// One entry for each group of devices that the IOMMU keeps apart; none when it is off.
const IOMMU: &str = "/sys/kernel/iommu_groups";
const TOOLKIT_SETTINGS: &str = "/etc/nvidia-container-runtime/config.toml";

/// What is looked at.
pub(super) struct Scene<'a> {
    pub(super) place: &'a Place,
    pub(super) config: &'a Config,
    pub(super) host: HostId,
    pub(super) machine: &'a ThisMachine,
    pub(super) measured: &'a Measured,
    pub(super) engine: Option<&'a EngineFacts>,
}

/// Everything about the GPUs that answer; nothing on a CPU machine.
pub(super) async fn checks(scene: Scene<'_>, news: mpsc::Receiver<GpuNews>) -> Vec<Check> {
    let gpus: Vec<_> = scene.measured.gpus().collect();
    if gpus.is_empty() {
        return Vec::new();
    }
    let lists = scene.engine.map(|facts| facts.cdi_spec_dirs.as_slice());
    let found = HostGpus::read(Path::new("/"), lists.unwrap_or_default()).await;
    let mut checks = Vec::new();
    if let Nvidia::Ready { driver, .. } = &scene.measured.nvidia
        && !scene.measured.nvidia.gpus().is_empty()
    {
        let system = System {
            driver,
            parameters: std::fs::read_to_string(PARAMETERS).ok(),
            iommu_groups: std::fs::read_dir(IOMMU).map_or(0, Iterator::count),
            is_root: rustix::process::geteuid().is_root(),
        };
        checks.extend(cards::system(&system));
        checks.extend(cards(&scene, news).await);
    }
    if let Some(engine) = scene.engine {
        let toolkit = Toolkit {
            version: found.toolkit.clone(),
            settings: std::fs::read_to_string(TOOLKIT_SETTINGS).ok(),
        };
        checks.extend(container::checks(&gpus, engine, &found, &toolkit));
    }
    checks
}

/// The cards themselves, each as it is now.
async fn cards(scene: &Scene<'_>, news: mpsc::Receiver<GpuNews>) -> Vec<Check> {
    let gpus = scene.measured.nvidia.gpus();
    let readings = readings(news, gpus.len()).await;
    let containers = own_containers(scene).await;
    let results = file::load(scene.place.folder.path()).unwrap_or_default();
    let under_load = |quantity: Quantity, uuid: &str| {
        let mut all = results.iter();
        let found = all.find(|it| it.quantity == quantity && it.on == uuid && !it.software);
        found.and_then(|it| u32::try_from(it.value).ok())
    };
    let numbered = (0_u32..).zip(gpus);
    numbered
        .flat_map(|(number, gpu)| {
            let reading = readings.get(&gpu.uuid);
            let processes = reading.and_then(|reading| reading.processes.as_deref());
            let foreign = processes.unwrap_or_default().iter();
            let card = Card {
                number,
                gpu,
                description: scene.machine.nvidia().description(&gpu.uuid),
                reading,
                foreign: foreign.filter_map(|it| held(it, &containers)).collect(),
                pcie_under_load: under_load(Quantity::PcieGeneration, &gpu.uuid)
                    .zip(under_load(Quantity::PcieLanes, &gpu.uuid)),
            };
            cards::checks(&card)
        })
        .collect()
}

/// One reading of each GPU, of those that gave one in time.
async fn readings(mut news: mpsc::Receiver<GpuNews>, wanted: usize) -> BTreeMap<Text<64>, Reading> {
    let mut readings = BTreeMap::new();
    let listen = async {
        while readings.len() < wanted {
            match news.recv().await {
                Some(GpuNews::Sample(sample)) => {
                    readings.insert(sample.gpu, sample.reading);
                }
                Some(GpuNews::Event(_) | GpuNews::State { .. } | GpuNews::EventsBroke { .. }) => {}
                None => return,
            }
        }
    };
    // Those that did not say it in time are said to be unread.
    let _late = tokio::time::timeout(SAMPLES_DEADLINE, listen).await;
    readings
}

/// Names by which the kernel files the processes of this host's containers.
async fn own_containers(scene: &Scene<'_>) -> Vec<String> {
    let Ok(runtime) = DockerRuntime::connect(&scene.config.engine, scene.host).await else {
        return Vec::new();
    };
    let containers = runtime.containers().await.unwrap_or_default();
    containers.into_iter().map(|it| it.id.0).collect()
}

/// A process that uses a GPU and is of none of this host's containers.
fn held(process: &Process, containers: &[String]) -> Option<Held> {
    let file = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", process.pid));
    let groups = file("cgroup").unwrap_or_default();
    if containers.iter().any(|id| groups.contains(id.as_str())) {
        return None;
    }
    Some(Held {
        process: process.pid,
        name: file("comm").unwrap_or_default().trim().to_owned(),
        memory: process.memory,
    })
}
