//! A host whose GPUs are real to the agent: NVIDIA's library is played by `fake-nvml` and loaded as the real one is. Only
//! what writes a GPU's memory, and what resets one, are programs of the test.

use std::fs::{Permissions, read_to_string, set_permissions, write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fake_nvml::SCENARIO;
use fake_nvml::loading::library;
use fake_nvml::models::Model;
use fake_nvml::scenario::{FakeGpu, Scenario};
use gpu_health::between::{Dirty, Scrubbed};
use host_agent::admin::wire::HealthRow;
use host_agent::agent::{Agent, Setup, StartError};
use host_agent::core::slices::Divisibles;
use host_agent::core::slices::acts::Act;
use host_agent::core::slices::policy::{PREMIUM, PartitionLayout, SlicePolicy};
use host_agent::hardware::disk::Disk;
use host_agent::hardware::hearing::hear;
use host_agent::hardware::nvidia::{Launch, Timing};
use host_agent::hardware::sim::SimHardware;
use host_agent::hardware::this::ThisMachine;
use host_agent::hardware::{CutProblem, Hardware, HardwareError, Measured};
use host_agent::journal::Journal;
use protocol::bounded::{List, Text};
use protocol::net::Identity;
use protocol::offer::ResourceName;
use protocol::units::Bytes;

use crate::broker::{FakeBroker, key, wait};
use crate::world::{Host, listing, status};

/// The machine of the test but for its GPUs, and the GPUs as they are asked.
#[derive(Debug)]
struct Cards {
    sim: SimHardware,
    here: ThisMachine,
}

impl Hardware for Cards {
    async fn measure(&self) -> Result<Measured, HardwareError> {
        let here = self.here.measure().await?;
        Ok(Measured {
            nvidia: here.nvidia,
            ..self.sim.measured.clone()
        })
    }

    fn disk(&self, path: &Path) -> Result<Disk, HardwareError> {
        self.sim.disk(path)
    }

    async fn divisibles(&self) -> Divisibles {
        self.here.divisibles().await
    }

    async fn cut(&self, act: &Act) -> Result<Option<Text<64>>, CutProblem> {
        self.here.cut(act).await
    }

    fn cleans(&self) -> bool {
        self.here.cleans()
    }

    async fn reset_gpu(&self, gpu: &ResourceName) -> Result<(), String> {
        self.here.reset_gpu(gpu).await
    }

    async fn scrub(&self, devices: &[String]) -> Result<Scrubbed, Dirty> {
        self.here.scrub(devices).await
    }
}

/// A listed host with such GPUs.
pub(crate) struct CardHost {
    pub(crate) host: Host,
    pub(crate) scenario: Scenario,
}

impl CardHost {
    /// So many H100, of which the first is cut as it is asked for when `is_cut`.
    pub(crate) fn new(broker: &FakeBroker, gpus: u32, is_cut: bool) -> Self {
        let cards: Vec<FakeGpu> = (0..gpus)
            .map(|number| FakeGpu::new(Model::H100, number))
            .collect();
        let uuids: Vec<String> = cards.iter().map(|gpu| gpu.uuid.clone()).collect();
        let host = Host::new(&[broker], 0);
        let mut listed = listing(&uuids);
        listed.limits.disk_max = Bytes::from_gb(600);
        if is_cut {
            let layout = PartitionLayout::Dynamic(List::default());
            listed.slices = SlicePolicy {
                layouts: List::first([(Text::cut(&uuids[0]), layout)]),
                premium: PREMIUM,
                ..SlicePolicy::default()
            };
        }
        let (mut journal, _) = Journal::open(host.folder.path()).unwrap();
        journal.set_listing(Some(&listed)).unwrap();
        let cards = Self {
            host,
            scenario: Scenario::new(cards),
        };
        cards.script("feira-host", PROGRAM);
        cards.script("nvidia-smi", "echo \"$@\" >> \"$0.told\"");
        cards.scrubs(r#"{"written":79,"memory":80,"wrong":0}"#);
        write(cards.path("minors"), cards.scenario.mig_minors()).unwrap();
        write(cards.path("feira-host.scrubbed"), "").unwrap();
        cards.write();
        cards
    }

    fn path(&self, name: &str) -> PathBuf {
        self.host.folder.path().join(name)
    }

    fn script(&self, name: &str, script: &str) {
        let path = self.path(name);
        let real = env!("CARGO_BIN_EXE_feira-host");
        let script = script.replace("REAL", real);
        write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }

    /// What the next scrubs say.
    pub(crate) fn scrubs(&self, line: &str) {
        write(self.path("feira-host.scrub"), line).unwrap();
    }

    /// The devices that were scrubbed, in order.
    pub(crate) fn scrubbed(&self) -> Vec<String> {
        let text = read_to_string(self.path("feira-host.scrubbed")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// The resets that were done.
    pub(crate) fn resets(&self) -> usize {
        let told = read_to_string(self.path("nvidia-smi.told")).unwrap_or_default();
        told.matches("--gpu-reset").count()
    }

    /// The library sees the machine as it is now.
    pub(crate) fn write(&self) {
        self.scenario.write(&self.path("machine.json")).unwrap();
    }

    /// The UUID of a GPU.
    pub(crate) fn uuid(&self, gpu: usize) -> ResourceName {
        Text::cut(&self.scenario.gpus[gpu].uuid)
    }

    /// Starts the agent; one that was just killed may still have the folder.
    pub(crate) async fn start(&self) -> Agent {
        for _ in 0..200 {
            match self.try_start().await {
                Ok(agent) => return agent,
                Err(StartError::Journal(_)) => tokio::time::sleep(Duration::from_millis(10)).await,
                Err(error) => panic!("{error}"),
            }
        }
        panic!("the folder stayed locked");
    }

    async fn try_start(&self) -> Result<Agent, StartError> {
        let launch = Launch {
            program: self.path("feira-host"),
            library: Some(library().unwrap()),
            mig_minors: Some(self.path("minors")),
            environment: vec![(SCENARIO.to_owned(), self.path("machine.json"))],
        };
        let timing = Timing {
            sample: Duration::from_millis(200),
            count: Duration::from_millis(500),
            pause: Duration::from_millis(200),
            pause_max: Duration::from_secs(1),
        };
        let (here, news) = ThisMachine::start_with(launch, timing);
        Agent::start(Setup {
            folder: self.host.folder.path().to_owned(),
            config: self.host.config.clone(),
            identity: Identity::from_signing_key(key(9)),
            runtime: self.host.runtime.clone(),
            hardware: Cards {
                sim: self.host.hardware.clone(),
                here: here.resetting_with(self.path("nvidia-smi")),
            },
            heard: Some(hear(news, &self.path("no-kernel-log"))),
        })
        .await
    }

    /// What the owner is told of a GPU or slice.
    pub(crate) async fn row(&self, agent: &Agent, resource: &str) -> Option<HealthRow> {
        let rows = status(agent).await.health;
        rows.into_iter().find(|row| row.resource == resource)
    }

    /// Waits until a GPU or slice is in that state.
    pub(crate) async fn becomes(&self, agent: &Agent, resource: &str, state: &str) -> HealthRow {
        let mut last = None;
        for _ in 0..600 {
            last = self.row(agent, resource).await;
            if let Some(row) = last.clone().filter(|row| row.state == state) {
                return row;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{resource} is never {state}; last: {last:?}");
    }
}

/// Waits until this is withheld, or is not any more.
pub(crate) async fn withheld(broker: &FakeBroker, resource: &str, is_withheld: bool) {
    wait("what is withheld", || {
        let heard = broker.heard().withheld;
        let last = heard.last()?;
        let is_in = last.iter().any(|name| name.as_str() == resource);
        (is_in == is_withheld).then_some(())
    })
    .await;
}

/// In the place of the agent's program: what scrubs is played, all else is real.
const PROGRAM: &str = r#"if [ "$1" = gpu-scrub ]; then
  echo "$CUDA_VISIBLE_DEVICES" >> "$0.scrubbed"
  cat "$0.scrub"
  exit 0
fi
exec REAL "$@""#;
