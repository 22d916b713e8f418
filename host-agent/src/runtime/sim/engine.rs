//! What the simulated engine keeps. Its lock is held for a moment at a time and never while something waits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use protocol::ids::{HostId, LeaseId};
use protocol::offer::ResourceName;
use protocol::tunnel::WindowSize;
use protocol::units::{Bytes, Timestamp};
use tokio::sync::broadcast;

use super::super::exec::Signal;
use super::super::logs::LogRecord;
use super::{
    Behaviour, Container, ContainerEvent, ContainerId, ContainerSpec, EngineFacts, Exit, RunState,
    Step, Traffic,
};

const NOTICES_WAITING_MAX: usize = 1024;

/// Something that watchers and readers hear.
#[derive(Debug, Clone)]
pub(super) enum Notice {
    Event(HostId, ContainerEvent),
    Written(LeaseId, LogRecord),
    Down,
    Up,
}

#[derive(Debug)]
pub(super) struct Engine {
    state: Mutex<State>,
    notices: broadcast::Sender<Notice>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) script: BTreeMap<Step, VecDeque<Behaviour>>,
    pub(super) steps: Vec<(Step, Option<LeaseId>)>,
    pub(super) starts: BTreeMap<LeaseId, usize>,
    pub(super) sizes: BTreeMap<String, WindowSize>,
    pub(super) programs: BTreeMap<String, super::exec::Program>,
    containers: BTreeMap<LeaseId, (HostId, Container, Vec<LogRecord>)>,
    disks: BTreeMap<LeaseId, Bytes>,
    pub(super) image_says: Vec<String>,
    devices: BTreeMap<LeaseId, Vec<ResourceName>>,
    is_down: bool,
}

impl Default for Engine {
    fn default() -> Self {
        let (notices, _) = broadcast::channel(NOTICES_WAITING_MAX);
        Self {
            state: Mutex::default(),
            notices,
        }
    }
}

impl super::SimRuntime {
    /// Every image has these variables from now on, each as `NAME=value`.
    pub fn images_say(&self, environment: &[&str]) {
        let said = environment.iter().map(|text| (*text).to_owned()).collect();
        self.engine.with(|state| state.image_says = said);
    }

    /// The GPUs and slices that the container of `lease` was made with.
    #[must_use]
    pub fn devices(&self, lease: LeaseId) -> Vec<ResourceName> {
        self.engine.devices(lease)
    }
}

impl Engine {
    pub(super) fn with<T>(&self, read: impl FnOnce(&mut State) -> T) -> T {
        read(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    fn tell(&self, notice: Notice) {
        // Nobody may be listening.
        let _unheard = self.notices.send(notice);
    }

    pub(super) fn is_down(&self) -> bool {
        self.with(|state| state.is_down)
    }

    pub(super) fn set_down(&self, is_down: bool) {
        self.with(|state| state.is_down = is_down);
        self.tell(if is_down { Notice::Down } else { Notice::Up });
    }

    pub(super) fn containers(&self, host: HostId) -> Vec<Container> {
        self.with(|state| {
            let all = state.containers.values();
            all.filter(|(of, ..)| *of == host)
                .map(|(_, container, _)| container.clone())
                .collect()
        })
    }

    pub(super) fn runs(&self, lease: LeaseId) -> bool {
        self.with(|state| {
            let found = state.containers.get(&lease);
            found.is_some_and(|(_, found, _)| matches!(found.state, RunState::Running { .. }))
        })
    }

    pub(super) fn create(&self, spec: &ContainerSpec, host: HostId) -> ContainerId {
        let id = ContainerId(format!("sim-{}", spec.lease));
        let container = Container {
            lease: spec.lease,
            broker: spec.broker,
            epoch: spec.epoch,
            run: spec.run,
            id: id.clone(),
            state: RunState::Created,
            traffic: Traffic::default(),
        };
        self.with(|state| {
            state.disks.insert(spec.lease, spec.disk);
            let devices = spec.gpus.iter().map(|gpu| gpu.device.clone());
            state.devices.insert(spec.lease, devices.collect());
            state
                .containers
                .entry(spec.lease)
                .or_insert((host, container, Vec::new()));
        });
        id
    }

    fn devices(&self, lease: LeaseId) -> Vec<ResourceName> {
        self.with(|state| state.devices.get(&lease).cloned().unwrap_or_default())
    }

    /// The disk that its container was made with.
    pub(super) fn disk(&self, lease: LeaseId) -> Option<Bytes> {
        self.with(|state| {
            let is_there = state.containers.contains_key(&lease);
            state.disks.get(&lease).copied().filter(|_| is_there)
        })
    }

    /// Since when it runs; nothing when it is not there.
    pub(super) fn start(&self, lease: LeaseId, now: Timestamp) -> Option<Timestamp> {
        let (host, since, is_new) = self.with(|state| {
            let (host, container, _) = state.containers.get_mut(&lease)?;
            let host = *host;
            if let RunState::Running { since } = container.state {
                return Some((host, since, false));
            }
            container.state = RunState::Running { since: now };
            container.traffic = Traffic::default();
            *state.starts.entry(lease).or_default() += 1;
            Some((host, now, true))
        })?;
        if is_new {
            self.tell(Notice::Event(
                host,
                ContainerEvent::Started { lease, at: since },
            ));
        }
        Some(since)
    }

    pub(super) fn end(&self, lease: LeaseId, code: i32, out_of_memory: bool, finished: Timestamp) {
        let ended = self.with(|state| {
            let (host, container, _) = state.containers.get_mut(&lease)?;
            let RunState::Running { since } = container.state else {
                return None;
            };
            let exit = Exit {
                code,
                out_of_memory,
                started: since,
                finished,
            };
            container.state = RunState::Exited(exit);
            container.traffic = Traffic::default();
            Some((*host, exit))
        });
        if let Some((host, exit)) = ended {
            let exit = Exit {
                started: Timestamp(0),
                ..exit
            };
            self.tell(Notice::Event(host, ContainerEvent::Died { lease, exit }));
        }
    }

    pub(super) fn cross(&self, lease: LeaseId, uploaded: Bytes, downloaded: Bytes) {
        self.with(|state| {
            if let Some((_, container, _)) = state.containers.get_mut(&lease)
                && matches!(container.state, RunState::Running { .. })
            {
                let Traffic {
                    uploaded: up,
                    downloaded: down,
                } = &mut container.traffic;
                up.0 = up.0.saturating_add(uploaded.0);
                down.0 = down.0.saturating_add(downloaded.0);
            }
        });
    }

    pub(super) fn remove(&self, lease: LeaseId) {
        if let Some((host, ..)) = self.with(|state| state.containers.remove(&lease)) {
            self.tell(Notice::Event(host, ContainerEvent::Removed { lease }));
        }
    }

    pub(super) fn write(&self, lease: LeaseId, record: LogRecord) {
        let is_there = self.with(|state| {
            let found = state.containers.get_mut(&lease);
            found
                .map(|(_, _, written)| written.push(record.clone()))
                .is_some()
        });
        if is_there {
            self.tell(Notice::Written(lease, record));
        }
    }

    pub(super) fn written(&self, lease: LeaseId) -> Option<Vec<LogRecord>> {
        self.with(|state| {
            state
                .containers
                .get(&lease)
                .map(|(_, _, written)| written.clone())
        })
    }

    pub(super) fn exec_code(&self, id: &str) -> Option<i32> {
        self.with(|state| state.programs.get(id).and_then(super::exec::Program::code))
    }

    pub(super) fn signal(&self, id: &str, signal: Signal) {
        self.with(|state| {
            if let Some(program) = state.programs.get_mut(id) {
                program.signal(signal);
            }
        });
    }
}

/// What it says of itself.
pub(super) fn facts() -> EngineFacts {
    EngineFacts {
        version: "0.0.0-sim".to_owned(),
        api: (1, 41),
        runtime: "sim".to_owned(),
        runtimes: vec!["runc".to_owned()],
        default_runtime: "runc".to_owned(),
        cdi_spec_dirs: Vec::new(),
        data_root: "/".to_owned(),
        storage_driver: "sim".to_owned(),
        disk_quota: false,
        cgroup_version: 1,
        cgroup_driver: "cgroupfs".to_owned(),
        apparmor: false,
        open_files_max: 1_048_576,
        kernel: "0.0.0-sim".to_owned(),
        system: "simulation".to_owned(),
        cpu_cores: 4,
        ram: Bytes(8_000_000_000),
    }
}
