//! A machine for one test: its scenario, the program that asks, and what the agent hears.

use fake_nvml::SCENARIO;
use fake_nvml::loading::{library, without};
use fake_nvml::scenario::Scenario;
use host_agent::hardware::nvidia::{Launch, Nvidia, Supervisor, Timing};
use host_nvml::news::{GpuNews, GpuState};
use protocol::bounded::Text;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Longer than anything takes on a machine that is swamped.
const PATIENCE: Duration = Duration::from_secs(40);

pub(crate) struct TestMachine {
    pub(crate) scenario: Scenario,
    pub(crate) folder: TempDir,
    pub(crate) launch: Launch,
}

impl TestMachine {
    pub(crate) fn new(scenario: Scenario) -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("machine.json");
        let minors = folder.path().join("mig-minors");
        std::fs::write(&minors, scenario.mig_minors()).unwrap();
        let launch = Launch {
            program: PathBuf::from(env!("CARGO_BIN_EXE_feira-host")),
            library: Some(library().unwrap()),
            mig_minors: Some(minors),
            environment: vec![(SCENARIO.to_owned(), file)],
        };
        let machine = Self {
            scenario,
            folder,
            launch,
        };
        machine.write();
        machine
    }

    /// As an older driver, without the functions of these names.
    pub(crate) fn without(scenario: Scenario, names: &[&str]) -> Self {
        let mut machine = Self::new(scenario);
        machine.launch.library = Some(without(machine.folder.path(), names).unwrap());
        machine
    }

    /// The library sees the scenario as it is now.
    pub(crate) fn write(&self) {
        let (_, file) = &self.launch.environment[0];
        self.scenario.write(file).unwrap();
    }

    pub(crate) fn uuid(&self, gpu: usize) -> Text<64> {
        Text::new(self.scenario.gpus[gpu].uuid.clone()).unwrap()
    }

    /// Begins to ask, often.
    pub(crate) fn supervise(&self) -> (Supervisor, Heard) {
        let timing = Timing {
            sample: Duration::from_millis(100),
            count: Duration::from_millis(300),
            pause: Duration::from_millis(200),
            pause_max: Duration::from_secs(1),
        };
        let (supervisor, news) = Supervisor::start(self.launch.clone(), timing);
        (supervisor, Heard(news))
    }
}

/// What the agent hears.
pub(crate) struct Heard(mpsc::Receiver<GpuNews>);

impl Heard {
    /// The next news that `wanted` makes something of.
    pub(crate) async fn next<T>(
        &mut self,
        what: &str,
        wanted: impl Fn(&GpuNews) -> Option<T>,
    ) -> T {
        let found = timeout(PATIENCE, async {
            loop {
                let news = self.0.recv().await.unwrap();
                if let Some(found) = wanted(&news) {
                    return found;
                }
            }
        });
        found
            .await
            .unwrap_or_else(|_| panic!("never heard: {what}"))
    }

    /// The next Xid, if one comes soon.
    pub(crate) async fn xid_soon(&mut self) -> Option<u32> {
        let xid = self.next("an Xid", |news| {
            if let GpuNews::Event(event) = news {
                event.xid()
            } else {
                None
            }
        });
        timeout(Duration::from_millis(500), xid).await.ok()
    }

    /// Until the GPU is in that state.
    pub(crate) async fn state(
        &mut self,
        gpu: &Text<64>,
        wanted: fn(&GpuState) -> bool,
    ) -> GpuState {
        self.next("a state", |news| {
            if let GpuNews::State { gpu: of, state, .. } = news
                && of == gpu
                && wanted(state)
            {
                Some(state.clone())
            } else {
                None
            }
        })
        .await
    }
}

/// Until what is seen is as wanted.
pub(crate) async fn seen(supervisor: &Supervisor, wanted: impl Fn(&Nvidia) -> bool) -> Nvidia {
    let found = timeout(PATIENCE, async {
        loop {
            let seen = supervisor.seen().await;
            if wanted(&seen) {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    match found.await {
        Ok(seen) => seen,
        Err(_) => panic!("never seen; last: {:?}", supervisor.seen().await),
    }
}
