//! Benchmarks of this machine: one part after the other, with how far it is and a way to stop it. Figures come from
//! `measure`, from a process of its own for each GPU, and from a broker; what they are for is decided in
//! [`crate::core::bench`].
//!
//! * [`mod@file`]: where results are kept, and that no two runs are under way.
//! * [`gpu`]: the process that has the driver. [`network`]: the way to a broker.

pub mod file;
pub mod gpu;
pub mod network;

use crate::clock;
use crate::core::bench::{Outcome, Part};
use measure::control::{Control, Portion};
use measure::{MeasureError, Method, cpu, disk, ram};
use protocol::bounded::Text;
use protocol::ids::BrokerId;
use protocol::machine::{Gpu, Quantity};
use protocol::net::{Node, SpeedError};
use rustix::fs::{Access, access};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What is to be measured, and with what.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Which parts.
    pub parts: BTreeSet<Part>,
    /// How long the processors are measured, twice.
    pub cpu: Duration,
    /// The engine's data root, or why nobody knows it.
    pub data_root: Result<PathBuf, String>,
    /// The agent's own folder.
    pub folder: PathBuf,
    /// How the disk is measured.
    pub disk: disk::Settings,
    /// The GPUs.
    pub gpus: Vec<Gpu>,
    /// Whether a program on the CPU is measured in the place of a GPU.
    pub software_gpu: bool,
    /// The program that measures a GPU: this one.
    pub program: PathBuf,
    /// The brokers that are connected.
    pub brokers: Vec<BrokerId>,
}

impl Plan {
    /// A plan of some parts, with everything else as usual, and nothing known of the machine yet.
    #[must_use]
    pub fn new(parts: BTreeSet<Part>, folder: PathBuf) -> Self {
        Self {
            parts,
            cpu: Duration::from_secs(10),
            data_root: Err("the container engine was not asked".to_owned()),
            folder,
            disk: disk::Settings::default(),
            gpus: Vec::new(),
            software_gpu: false,
            program: std::env::current_exe().unwrap_or_else(|_| "feira-host".into()),
            brokers: Vec::new(),
        }
    }
}

/// Who follows a run, and how it is stopped.
pub struct Watch {
    stopped: AtomicBool,
    heard: Box<dyn Fn(Part, u16) + Send + Sync>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("stopped", &self.is_stopped())
            .finish_non_exhaustive()
    }
}

impl Watch {
    /// `heard` is told how many thousandths of a part are done.
    pub fn new(heard: impl Fn(Part, u16) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            stopped: AtomicBool::new(false),
            heard: Box::new(heard),
        })
    }

    /// Ends the run: it gives no result that is not whole.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether it was told to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn say(&self, part: Part, thousandths: u16) {
        (self.heard)(part, thousandths);
    }

    /// Waits until it is told to stop.
    async fn until_stopped(&self) {
        while !self.is_stopped() {
            tokio::time::sleep(measure::control::LOOK).await;
        }
    }
}

/// One part as a measurement sees its follower.
struct Step {
    watch: Arc<Watch>,
    part: Part,
}

impl Control for Step {
    fn is_cancelled(&self) -> bool {
        self.watch.is_stopped()
    }

    fn progress(&self, thousandths: u16) {
        self.watch.say(self.part, thousandths);
    }
}

/// Why a part has no figure.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// It could not be measured.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// A GPU could not be measured.
    #[error("{on}: {reason}")]
    Gpu {
        /// Which.
        on: String,
        /// What its process said, or how it ended.
        reason: String,
    },
    /// A broker gave no measurement.
    #[error("broker {broker}: {source}")]
    Network {
        /// Which.
        broker: String,
        /// What it said.
        #[source]
        source: SpeedError,
    },
    /// No broker is connected.
    #[error("no broker is connected")]
    NoBroker,
    /// Nobody says where the engine keeps its images.
    #[error("nobody knows which disk the container engine uses: {0}")]
    NoEngine(String),
    /// Neither the data root nor a folder on its disk may be written in.
    #[error("may not write in {root}, and {folder} is on another disk")]
    Denied {
        /// The data root.
        root: PathBuf,
        /// The agent's folder.
        folder: PathBuf,
    },
    /// It was told to stop.
    #[error("stopped before its end")]
    Stopped,
    /// A task of it broke off.
    #[error("it broke off: {0}")]
    Broke(String),
}

impl BenchError {
    /// Whether it ended because it was told to.
    #[must_use]
    pub const fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped | Self::Measure(MeasureError::Cancelled))
    }
}

/// What a run gave.
#[derive(Debug, Default)]
pub struct Run {
    /// The results.
    pub outcomes: Vec<Outcome>,
    /// What has none, and why.
    pub failed: Vec<(Part, BenchError)>,
    /// What is not there to be measured, in words.
    pub skipped: Vec<String>,
}

/// Measures the parts of a plan, one after the other; one that fails hides no other, and being stopped ends it.
/// `node` is one that is connected to the plan's brokers.
pub async fn run(plan: &Plan, node: Option<&Node>, watch: &Arc<Watch>) -> Run {
    let mut run = Run::default();
    for part in &plan.parts {
        if watch.is_stopped() {
            run.failed.push((*part, BenchError::Stopped));
            continue;
        }
        let measured = match part {
            Part::Cpu => measure_cpu(plan.cpu, watch).await,
            Part::Ram => measure_ram(watch).await,
            Part::Disk => measure_disk(plan, watch).await,
            Part::Network => network::measure(&plan.brokers, node, watch).await,
            Part::Gpu => gpu::measure(plan, watch, &mut run.skipped).await,
        };
        match measured {
            Ok(outcomes) => run.outcomes.extend(outcomes),
            Err(error) => run.failed.push((*part, error)),
        }
    }
    run
}

async fn measure_cpu(length: Duration, watch: &Arc<Watch>) -> Result<Vec<Outcome>, BenchError> {
    let step = step(watch, Part::Cpu);
    blocking(move || {
        let single = cpu::events(NonZeroUsize::MIN, length, &Portion::of(&step, 0, 500))?;
        let all = cpu::events(threads(), length, &Portion::of(&step, 500, 1000))?;
        Ok(vec![
            of_machine(Quantity::CpuSingle, single, cpu::SINGLE),
            of_machine(Quantity::CpuAll, all, cpu::ALL),
        ])
    })
    .await
}

async fn measure_ram(watch: &Arc<Watch>) -> Result<Vec<Outcome>, BenchError> {
    let step = step(watch, Part::Ram);
    blocking(move || {
        let rate = ram::triad(threads(), &step)?;
        let value = rate.per_second() / 1_000_000;
        Ok(vec![of_machine(Quantity::Ram, value, ram::TRIAD)])
    })
    .await
}

async fn measure_disk(plan: &Plan, watch: &Arc<Watch>) -> Result<Vec<Outcome>, BenchError> {
    let root = plan.data_root.as_ref();
    let root = root.map_err(|reason| BenchError::NoEngine(reason.clone()))?;
    let may_write = |path: &Path| access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    let folder = folder_on_disk(root, &plan.folder, may_write)?;
    let (step, settings) = (step(watch, Part::Disk), plan.disk);
    blocking(move || {
        let rates = disk::rates(&folder, settings, &step)?;
        let megabytes = |rate: measure::Rate| rate.per_second() / 1_000_000;
        let random = rates.random.per_second();
        Ok(vec![
            of_machine(Quantity::DiskRead, megabytes(rates.read), disk::READ),
            of_machine(Quantity::DiskWrite, megabytes(rates.write), disk::WRITE),
            of_machine(Quantity::DiskRandomRead, random, disk::RANDOM),
        ])
    })
    .await
}

/// Where the disk under the data root can be written to. The data root is the engine's own, and an agent that is not
/// root may not write there; its own folder will do when that is on the same disk.
fn folder_on_disk(
    root: &Path,
    folder: &Path,
    may_write: impl Fn(&Path) -> bool,
) -> Result<PathBuf, BenchError> {
    if may_write(root) {
        return Ok(root.to_owned());
    }
    let device = |path: &Path| std::fs::metadata(path).ok().map(|found| found.dev());
    match (device(root), device(folder)) {
        (Some(one), Some(other)) if one == other => Ok(folder.to_owned()),
        (Some(_) | None, Some(_) | None) => Err(BenchError::Denied {
            root: root.to_owned(),
            folder: folder.to_owned(),
        }),
    }
}

fn step(watch: &Arc<Watch>, part: Part) -> Step {
    Step {
        watch: Arc::clone(watch),
        part,
    }
}

async fn blocking(
    work: impl FnOnce() -> Result<Vec<Outcome>, MeasureError> + Send + 'static,
) -> Result<Vec<Outcome>, BenchError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(measured) => Ok(measured?),
        Err(error) => Err(BenchError::Broke(error.to_string())),
    }
}

fn threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

fn of_machine(quantity: Quantity, value: u64, method: Method) -> Outcome {
    Outcome {
        quantity,
        value,
        method: Text::cut(method.name),
        version: method.version,
        at: clock::wall(),
        on: String::new(),
        software: false,
    }
}

#[cfg(test)]
mod tests;
