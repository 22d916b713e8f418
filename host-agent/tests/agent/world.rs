//! A host on an engine that is not there, and what tests ask of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gpu_health::input::Input;
use host_agent::admin::wire::{AdminReply, AdminRequest, Status};
use host_agent::agent::{Agent, Setup, StartError};
use host_agent::clock;
use host_agent::config::{BrokerAddress, Config, Periods};
use host_agent::core::offer::Listing;
use host_agent::core::slices::policy::SlicePolicy;
use host_agent::hardware::nvidia::Nvidia;
use host_agent::hardware::sim::SimHardware;
use host_agent::journal::Journal;
use host_agent::program::PROGRAM;
use host_agent::runtime::sim::SimRuntime;
use host_agent::runtime::{RunState, Runtime};
use protocol::bounded::{List, Text};
use protocol::ids::{HostId, LeaseId};
use protocol::lease::LeaseGoal;
use protocol::machine::{ContainerNetwork, Gpu, Vendor};
use protocol::net::Identity;
use protocol::offer::Chunks;
use protocol::operator::ask;
use protocol::terms::{Limits, Prices, Sales};
use protocol::units::{Bytes, PricePerGbMonth, PricePerHour, Seconds, Timestamp};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::broker::{FakeBroker, key, public};

/// A broker, a host without GPU, its agent, and a lease that was just matched.
pub(crate) async fn matched() -> (FakeBroker, Host, Agent, LeaseGoal) {
    let broker = FakeBroker::start(1).await;
    let host = Host::new(&[&broker], 0);
    let agent = host.start().await;
    let goal = broker.matched(host.id, &broker.offer().await, 1);
    (broker, host, agent, goal)
}

pub(crate) async fn containers(host: &Host) -> Vec<(LeaseId, bool)> {
    let found = host.runtime.containers().await.unwrap();
    found
        .into_iter()
        .map(|one| (one.lease, matches!(one.state, RunState::Running { .. })))
        .collect()
}

pub(crate) async fn ask_agent(agent: &Agent, request: AdminRequest) -> AdminReply {
    let socket = agent.socket().to_owned();
    tokio::task::spawn_blocking(move || ask(&PROGRAM, &socket, &request).unwrap())
        .await
        .unwrap()
}

pub(crate) async fn status(agent: &Agent) -> Status {
    let AdminReply::Status(status) = ask_agent(agent, AdminRequest::Status).await else {
        panic!("no status")
    };
    *status
}

/// A host: its folder, its engine, its settings. Agents come and go.
pub(crate) struct Host {
    pub(crate) folder: TempDir,
    pub(crate) id: HostId,
    pub(crate) runtime: SimRuntime,
    pub(crate) hardware: SimHardware,
    pub(crate) config: Config,
}

impl Host {
    /// A listed host of `brokers` with so many GPUs.
    pub(crate) fn new(brokers: &[&FakeBroker], gpus: usize) -> Self {
        let id = HostId::from(public(&key(9)));
        let mut hardware = SimHardware::without_gpu();
        let uuids: Vec<String> = (0..gpus).map(|number| format!("GPU-{number}")).collect();
        if gpus > 0 {
            hardware.measured.nvidia = Nvidia::Ready {
                driver: "570.1".to_owned(),
                gpus: uuids.iter().map(|uuid| gpu(uuid)).collect(),
                troubled: Vec::new(),
                unreadable: 0,
            };
        }
        let folder = TempDir::new().unwrap();
        let (mut journal, _) = Journal::open(folder.path()).unwrap();
        journal.set_listing(Some(&listing(&uuids))).unwrap();
        Self {
            folder,
            id,
            runtime: SimRuntime::new(id, clock::wall),
            hardware,
            config: config(brokers),
        }
    }

    pub(crate) async fn try_start(&self) -> Result<Agent, StartError> {
        self.try_start_hearing(None).await
    }

    /// An agent, and what it is told of its GPUs.
    pub(crate) async fn start_hearing(&self) -> (Agent, mpsc::Sender<Input>) {
        let (say, heard) = mpsc::channel(16);
        (self.try_start_hearing(Some(heard)).await.unwrap(), say)
    }

    async fn try_start_hearing(
        &self,
        heard: Option<mpsc::Receiver<Input>>,
    ) -> Result<Agent, StartError> {
        Agent::start(Setup {
            folder: self.folder.path().to_owned(),
            config: self.config.clone(),
            identity: Identity::from_signing_key(key(9)),
            runtime: self.runtime.clone(),
            hardware: self.hardware.clone(),
            heard,
        })
        .await
    }

    pub(crate) async fn start(&self) -> Agent {
        // The lock of an agent that was just killed goes with its thread, a moment later.
        for _ in 0..200 {
            match self.try_start().await {
                Ok(agent) => return agent,
                Err(StartError::Journal(_)) => tokio::time::sleep(Duration::from_millis(10)).await,
                Err(error) => panic!("{error}"),
            }
        }
        panic!("the folder stayed locked");
    }

    pub(crate) fn logs(&self, lease: LeaseId) -> PathBuf {
        self.folder.path().join("logs").join(format!("{lease}.log"))
    }
}

fn gpu(uuid: &str) -> Gpu {
    Gpu {
        model: Text::cut("NVIDIA Test"),
        uuid: Text::cut(uuid),
        vram: Bytes(24 << 30),
        driver: Text::cut("570.1"),
        cuda: (12, 8),
        compute_capability: (8, 9),
        pcie_generation: 4,
        pcie_width: 16,
        power_limit_mw: 0,
        ..Gpu::unknown(Vendor::Nvidia)
    }
}

pub(crate) fn listing(gpus: &[String]) -> Listing {
    let machine = [Text::cut("machine")];
    let names = gpus.iter().map(|uuid| Text::cut(uuid));
    Listing {
        resources: if gpus.is_empty() {
            List::first(machine)
        } else {
            List::first(names)
        },
        chunks: Chunks::Any,
        gpus_min: 1,
        sales: Sales::default(),
        prices: Prices {
            compute: PricePerHour(350_000),
            storage: PricePerGbMonth(100_000),
            ..Prices::default()
        },
        limits: Limits {
            start_within: Seconds(600),
            duration_min: Seconds(0),
            duration_max: None,
            until: None,
            stop_grace: Seconds(1),
            notice: Seconds(2),
            disk_max: Bytes::from_gb(100),
        },
        network: ContainerNetwork::None,
        cpu_millicores: 8_000,
        ram: Bytes(8 << 30),
        listed_at: Timestamp(1),
        slices: SlicePolicy::default(),
    }
}

fn config(brokers: &[&FakeBroker]) -> Config {
    let mut config = Config::parse(Path::new("host.toml"), "").unwrap();
    config.brokers = brokers
        .iter()
        .map(|broker| BrokerAddress {
            broker: broker.id,
            addresses: vec![broker.address.clone()],
        })
        .collect();
    config.periods = Periods {
        announce: Duration::from_millis(500),
        report: Duration::from_millis(300),
        resend: Duration::from_millis(100),
        reconcile: Duration::from_millis(200),
        measure: Duration::from_millis(500),
        drain: Duration::from_secs(2),
    };
    config
}
