//! How much a GPU that hangs holds up what the agent hears of the other seven: the longest pause between two reports
//! of one of them, while the first hangs until its process is killed, beside the same without the hang.
//!
//! The stand-in library is loaded as NVIDIA's is, each GPU in a process of its own. Must not know how these are kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fake_nvml::SCENARIO;
use fake_nvml::models::Model;
use fake_nvml::scenario::{FakeGpu, Misdeed, Scenario};
use feira_tests::programs::program;
use host_agent::hardware::nvidia::{DEADLINE, Launch, Supervisor, Timing};
use host_nvml::news::{GpuNews, GpuState};
use protocol::bounded::Text;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use crate::clock::now;
use crate::report::Row;
use crate::rounds::by_turns;
use crate::{Outcome, rounds::Medians};

/// GPUs of the machine; the first is the one that hangs.
const GPUS: u32 = 8;
/// How often each is sampled.
const PERIOD: Duration = Duration::from_millis(100);
/// The deadline that the hung one misses, with its process's end after it.
const WATCHED: Duration = Duration::from_millis(2_500);
/// What may be added, in milliseconds.
const ADDED_MAX: f64 = 100.0;

/// The row `gpu_hang`.
pub(crate) fn measure() -> Outcome<Vec<Row>> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let machine = std::cell::RefCell::new(Machine::start(&runtime)?);
    let medians: Medians = by_turns(
        || runtime.block_on(machine.borrow_mut().longest_pause(true)),
        || runtime.block_on(machine.borrow_mut().longest_pause(false)),
    )?;
    let added = medians.ours - medians.baseline;
    let row = Row::new("gpu_hang", "ms", medians)
        .beside("the same without a hang")
        .goal("at most 100 ms more than without a hang", |_| {
            added <= ADDED_MAX
        })
        .note(format!(
            "longest pause between two reports of seven GPUs, sampled each {} ms, in {} ms",
            PERIOD.as_millis(),
            WATCHED.as_millis()
        ));
    Ok(vec![row])
}

struct Machine {
    scenario: Scenario,
    file: PathBuf,
    hung: Text<64>,
    news: Receiver<GpuNews>,
    _supervisor: Supervisor,
    _folder: TempDir,
}

impl Machine {
    fn start(runtime: &Runtime) -> Outcome<Self> {
        let folder = TempDir::new()?;
        let file = folder.path().join("machine.json");
        let gpus = (0..GPUS).map(|number| FakeGpu::new(Model::H100, number));
        let scenario = Scenario::new(gpus.collect());
        scenario.write(&file)?;
        let launch = Launch {
            program: program("feira-host"),
            library: Some(fake_nvml::loading::library()?),
            mig_minors: None,
            environment: vec![(SCENARIO.to_owned(), file.clone())],
        };
        let timing = Timing {
            sample: PERIOD,
            pause: PERIOD,
            ..Timing::default()
        };
        let (supervisor, news) = {
            let _guard = runtime.enter();
            Supervisor::start(launch, timing)
        };
        let hung = Text::new(scenario.gpus[0].uuid.clone())?;
        let mut machine = Self {
            scenario,
            file,
            hung,
            news,
            _supervisor: supervisor,
            _folder: folder,
        };
        runtime.block_on(machine.all_ready())?;
        Ok(machine)
    }

    /// Milliseconds of the longest pause between two reports of a GPU that does not hang.
    async fn longest_pause(&mut self, with_hang: bool) -> Outcome<f64> {
        if with_hang {
            let milliseconds = 3_600_000;
            self.scenario.fault("*", 0, Misdeed::Hangs { milliseconds });
            self.scenario.write(&self.file)?;
        }
        let mut last: BTreeMap<Text<64>, Instant> = BTreeMap::new();
        let mut longest = Duration::ZERO;
        let begun = now();
        let mut missed = false;
        while begun.elapsed() < WATCHED {
            let Ok(Some(news)) = timeout(DEADLINE * 5, self.news.recv()).await else {
                return Err("the agent hears nothing of its GPUs".into());
            };
            match news {
                GpuNews::Sample(sample) if sample.gpu != self.hung => {
                    let at = now();
                    let before = last.insert(sample.gpu, at).unwrap_or(begun);
                    longest = longest.max(at.duration_since(before));
                }
                GpuNews::State { gpu, state, .. } if gpu == self.hung => {
                    missed |= matches!(state, GpuState::Unknown { .. });
                }
                GpuNews::Sample(_) | GpuNews::Event(_) | GpuNews::State { .. } => {}
                GpuNews::EventsBroke { .. } => {}
            }
        }
        if missed != with_hang {
            return Err(format!("the first GPU hung: {with_hang}; noticed: {missed}").into());
        }
        if last.len() + 1 != self.scenario.gpus.len() {
            return Err(format!("only {} GPUs were heard of", last.len()).into());
        }
        if with_hang {
            self.scenario.faults.clear();
            self.scenario.write(&self.file)?;
            self.ready_again().await?;
        }
        Ok(longest.as_secs_f64() * 1000.0)
    }

    async fn all_ready(&mut self) -> Outcome<()> {
        let mut ready = 0;
        while ready < GPUS {
            let news = timeout(DEADLINE * 10, self.news.recv()).await?;
            if let Some(GpuNews::State { state, .. }) = news {
                ready += u32::from(state == GpuState::Ready);
            }
        }
        Ok(())
    }

    async fn ready_again(&mut self) -> Outcome<()> {
        loop {
            let news = timeout(DEADLINE * 10, self.news.recv()).await?;
            match news.ok_or("the agent hears nothing of its GPUs")? {
                GpuNews::State { gpu, state, .. }
                    if gpu == self.hung && state == GpuState::Ready =>
                {
                    return Ok(());
                }
                GpuNews::Sample(_)
                | GpuNews::Event(_)
                | GpuNews::State { .. }
                | GpuNews::EventsBroke { .. } => {}
            }
        }
    }
}
