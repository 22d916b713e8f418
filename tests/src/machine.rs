//! A machine with GPUs that are not there: the stand-in for NVIDIA's library with its scenario, which a test changes
//! while the agent runs, and the engine that gives containers their nodes.

use crate::gpu_engine::GpuEngine;
use crate::market::Market;
use crate::programs::try_for;
use crate::renter::Renter;
use crate::stage::{Broker, Host, Stage};
use fake_nvml::SCENARIO;
use fake_nvml::loading::library;
use fake_nvml::models::Model;
use fake_nvml::scenario::{FakeGpu, Scenario};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

/// How long an agent may take until all its GPUs answer and their offers are shown.
const SHOWN: Duration = Duration::from_secs(60);

/// What a host's program sees of the hardware.
#[derive(Debug)]
pub struct Machine {
    /// The GPUs, what goes wrong with them, what happens to them.
    pub scenario: Scenario,
    /// The library that the agent loads; an older one has fewer functions.
    pub library: PathBuf,
    file: PathBuf,
    /// Where the memory of each GPU and slice is a file, by its UUID.
    pub vram: PathBuf,
    folder: PathBuf,
    // Listens for as long as the machine is there.
    _engine: GpuEngine,
}

/// One broker, one host with GPUs, one renter with money.
#[derive(Debug)]
pub struct GpuMarket {
    /// The hardware of the host.
    pub machine: Machine,
    /// The rest.
    pub market: Market,
}

impl Machine {
    /// A machine with these GPUs, and a stage whose hosts have its engine.
    ///
    /// # Panics
    /// When the stand-in was not built, or the folder cannot be written.
    #[track_caller]
    #[must_use]
    pub fn new(gpus: &[Model]) -> (Self, Stage) {
        let bare = Stage::new();
        let engine = GpuEngine::start(bare.folder());
        let stage = bare.with_engine(engine.socket());
        let folder = stage.folder().to_owned();
        let gpus = (0..).zip(gpus).map(|(n, model)| FakeGpu::new(*model, n));
        let machine = Self {
            scenario: Scenario::new(gpus.collect()),
            library: library().expect("the stand-in for NVIDIA's library"),
            file: folder.join("machine.json"),
            vram: folder.join("vram"),
            folder,
            _engine: engine,
        };
        std::fs::create_dir(&machine.vram).expect("a folder");
        machine.write();
        (machine, stage)
    }

    /// The driver shows the machine as the scenario is now.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn write(&self) {
        self.scenario.write(&self.file).expect("a scenario");
    }

    /// Tells a host of the library, and the library of the scenario.
    ///
    /// # Panics
    /// When the stand-in was not built.
    pub fn equip(&self, host: &mut Host) {
        let library = self.library.display().to_string();
        host.set(&[("nvml", &format!("{library:?}"))]);
        let driver = fake_cuda::library().expect("the stand-in for NVIDIA's driver");
        let lib = self.folder.join("lib");
        std::fs::create_dir_all(&lib).expect("a folder");
        let name = lib.join("libcuda.so");
        if !name.exists() {
            std::os::unix::fs::symlink(driver, name).expect("a link");
        }
        let bin = self.driver_programs();
        host.environment = [
            (SCENARIO, &self.file),
            (fake_cuda::VRAM, &self.vram),
            ("LD_LIBRARY_PATH", &lib),
            ("PATH", &bin),
        ]
        .map(|(name, path)| (name.to_owned(), path.clone()))
        .to_vec();
    }

    /// The driver's program in a folder of its own, before all others where programs are looked for. It writes down
    /// what it is told, and that is all.
    fn driver_programs(&self) -> PathBuf {
        let bin = self.folder.join("bin");
        std::fs::create_dir_all(&bin).expect("a folder");
        let script = format!("#!/bin/sh\necho \"$@\" >> {}\n", self.told().display());
        let program = bin.join("nvidia-smi");
        std::fs::write(&program, script).expect("a program");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("a program");
        #[expect(
            clippy::disallowed_methods,
            reason = "the agent's programs are where the test's are"
        )]
        let others = std::env::var("PATH").unwrap_or_default();
        PathBuf::from(format!("{}:{others}", bin.display()))
    }

    fn told(&self) -> PathBuf {
        self.folder.join("resets")
    }

    /// What the driver's program was told, a line each.
    #[must_use]
    pub fn resets(&self) -> String {
        std::fs::read_to_string(self.told()).unwrap_or_default()
    }

    /// The UUID of the GPU of that number.
    #[must_use]
    pub fn uuid(&self, gpu: usize) -> &str {
        &self.scenario.gpus[gpu].uuid
    }

    /// The slices that the driver has of a GPU, each by its profile's number and its first memory slice, sorted.
    ///
    /// # Panics
    /// When what the driver keeps cannot be read.
    #[track_caller]
    #[must_use]
    pub fn slices(&self, gpu: usize) -> Vec<(u32, u32)> {
        let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
        let kept = self.kept(gpu);
        let instances = kept["instances"].as_array().into_iter().flatten();
        let both = |it: &Value| Some((number(&it["profile"])?, number(&it["start"])?));
        let mut slices: Vec<(u32, u32)> = instances.filter_map(both).collect();
        slices.sort_unstable();
        slices
    }

    /// Whether the driver has a GPU divided now.
    #[track_caller]
    #[must_use]
    pub fn is_divided(&self, gpu: usize) -> bool {
        self.kept(gpu)["current"] == true
    }

    /// What the driver keeps of a GPU; nothing before a program changed anything in this boot.
    #[track_caller]
    fn kept(&self, gpu: usize) -> Value {
        let Ok(text) = std::fs::read(self.file.with_extension("state")) else {
            return Value::Null;
        };
        // It is written in place: who reads in the midst of it reads again.
        let kept: Value = serde_json::from_slice(&text).unwrap_or_default();
        if kept["boot"] != self.scenario.boot {
            return Value::Null;
        }
        kept["divided"][self.uuid(gpu)].clone()
    }

    /// Divides a GPU and makes one slice of it, as its owner would by hand, before any program changed anything.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn cut_by_hand(&self, gpu: usize, profile: u32, start: u32) {
        let slice = json!({"id": 3, "profile": profile, "start": start, "compute": [[0, 0]]});
        let divided = json!({"current": true, "pending": true, "instances": [slice]});
        let kept = json!({
            "boot": self.scenario.boot,
            "early_starts": 0,
            "divided": {self.uuid(gpu): divided},
        });
        let file = self.file.with_extension("state");
        std::fs::write(file, kept.to_string()).expect("the driver's own file");
    }

    /// Boots the machine anew, while its host is down: the driver forgets the slices that were made, and the kernel
    /// has another number for this boot, which the host is started to see instead of the real one.
    ///
    /// # Panics
    /// When the files cannot be written.
    pub fn boot(&mut self, host: &mut Host) {
        self.scenario.boot += 1;
        self.scenario.events.clear();
        self.write();
        let boot = self.folder.join("boot_id");
        let id = format!("00000000-0000-4000-8000-{:012x}\n", self.scenario.boot);
        std::fs::write(&boot, id).expect("a boot id");
        let hide = format!(
            "mount --bind {} /proc/sys/kernel/random/boot_id && exec \"$0\" \"$@\"",
            boot.display()
        );
        let wrapper = ["unshare", "--mount", "sh", "-c", &hide];
        host.wrapper = wrapper.map(str::to_owned).to_vec();
    }
}

impl GpuMarket {
    /// A market with a host of these GPUs, listed so, once `offers` offers are shown; the renter has a thousand dollars.
    #[track_caller]
    #[must_use]
    pub fn new(gpus: &[Model], listing: &[&str], offers: usize) -> Self {
        let (machine, stage) = Machine::new(gpus);
        let broker = stage.broker("broker", &[]);
        let host = machine.host(&stage, &[&broker.address], listing);
        let renter = stage.renter("renter", &[&broker.address]);
        broker.deposit(&renter, "1000");
        let all = Self {
            machine,
            market: Market {
                broker,
                host,
                renter,
                deposit: 1_000_000_000,
                stage,
            },
        };
        all.renter().wait_for_goods(offers);
        all
    }

    /// Its broker.
    #[must_use]
    pub const fn broker(&self) -> &Broker {
        &self.market.broker
    }

    /// Its renter.
    #[must_use]
    pub const fn renter(&self) -> &Renter {
        &self.market.renter
    }

    /// Changes the machine, and shows it to the driver.
    pub fn change(&mut self, change: impl FnOnce(&mut Scenario)) {
        change(&mut self.machine.scenario);
        self.machine.write();
    }

    /// Kills the agent and starts it again; the machine goes on.
    #[track_caller]
    pub fn restart_host(&mut self) {
        self.market.host.kill();
        self.market.host.start();
    }
}

impl Machine {
    /// A host of these brokers on this machine, listed so and started.
    #[track_caller]
    #[must_use]
    pub fn host(&self, stage: &Stage, brokers: &[&str], listing: &[&str]) -> Host {
        let mut host = stage.unlisted_host("host", brokers);
        self.equip(&mut host);
        let mut arguments = vec!["list"];
        arguments.extend_from_slice(listing);
        let _ = host.command(&arguments).ok();
        host.start();
        host
    }
}

impl Renter {
    /// The goods that a search with these conditions shows, whole GPUs and slices alike where nothing is asked for.
    #[track_caller]
    #[must_use]
    pub fn goods(&self, conditions: &[&str]) -> Vec<Value> {
        // A small part of a GPU has a small part of the disk.
        let mut arguments = vec!["search", "--disk", "0.2", "--limit", "64", "--json"];
        arguments.extend_from_slice(conditions);
        let said = self.feira(&arguments);
        // Nothing found is an answer too.
        if said.code != 0 {
            return Vec::new();
        }
        let items = said.json()["items"].as_array().cloned();
        items.unwrap_or_default()
    }

    /// Waits until a search without conditions shows so many offers.
    ///
    /// # Panics
    /// When that takes too long.
    #[track_caller]
    pub fn wait_for_goods(&self, count: usize) {
        self.wait_for_goods_of(&[], count);
    }

    /// Waits until a search with these conditions shows so many offers.
    ///
    /// # Panics
    /// When that takes too long.
    #[track_caller]
    pub fn wait_for_goods_of(&self, conditions: &[&str], count: usize) {
        let what = format!("{count} offers of {conditions:?}");
        let last = std::cell::Cell::new(0);
        let seen = || {
            last.set(self.goods(conditions).len());
            (last.get() == count).then_some(())
        };
        let found = try_for(SHOWN, seen);
        assert!(
            found.is_some(),
            "waited for {what} in vain; there are {}",
            last.get()
        );
    }
}
