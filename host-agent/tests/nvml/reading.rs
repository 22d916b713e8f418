//! What is read of GPUs, and how it is said.

use crate::machine::{TestMachine, seen};
use fake_nvml::loading::MISSING_IN_R450;
use fake_nvml::models::Model;
use fake_nvml::scenario::{FakeGpu, FakeProcess, FakeProcessKind, Scenario};
use host_agent::hardware::nvidia::Nvidia;
use host_nvml::news::GpuNews;
use host_nvml::sample::{ClockReasons, EccCounters, ProcessKind, RecoveryAction};
use protocol::units::Bytes;
use std::path::PathBuf;

/// Eight H100 on one NVSwitch.
fn eight() -> Scenario {
    let gpus = (0..8).map(|number| {
        let mut gpu = FakeGpu::new(Model::H100, number);
        gpu.links = (0..18).map(|link| (link, 0xC0 + link / 5)).collect();
        gpu
    });
    Scenario::new(gpus.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_gpus_are_read_as_the_driver_has_them() {
    let machine = TestMachine::new(eight());
    let (supervisor, _news) = machine.supervise();
    let Nvidia::Ready {
        driver,
        gpus,
        troubled,
        unreadable,
    } = supervisor.seen().await
    else {
        panic!("{:?}", supervisor.seen().await)
    };
    assert_eq!((driver.as_str(), gpus.len()), ("570.124.06", 8));
    assert!(troubled.is_empty() && unreadable == 0);
    let gpu = &gpus[7];
    assert_eq!(gpu.model.as_str(), "NVIDIA H100 80GB HBM3");
    assert_eq!(
        gpu.uuid.as_str(),
        "GPU-00000000-0000-4000-8000-000000000007"
    );
    assert_eq!(gpu.vram, Bytes(85_520_809_984));
    assert_eq!((gpu.cuda, gpu.compute_capability), ((12, 8), (9, 0)));
    assert_eq!(gpu.multiprocessors, 132);
    assert_eq!((gpu.clock_max_mhz, gpu.memory_clock_max_mhz), (1980, 2619));
    assert_eq!(gpu.pci_address.as_str(), "0000:75:00.0");
    assert_eq!((gpu.pcie_generation, gpu.pcie_width), (5, 16));
    assert_eq!((gpu.power_limit_mw, gpu.ecc), (700_000, Some(true)));
    assert_eq!((gpu.link_group, gpu.links), (1, 18));
    assert_eq!((gpu.is_divided, gpu.has_display), (Some(false), false));
    let described = supervisor.description(&gpu.uuid).unwrap();
    assert_eq!(described.memory_reserved, Some(Bytes(577_765_376)));
    assert_eq!(
        (described.minor, described.memory_bus_bits),
        (Some(7), Some(5120))
    );
    assert_eq!(described.power_limits_mw, Some((350_000, 700_000)));
    assert_eq!(described.temperature_max_c, Some(87));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sample_is_how_the_gpu_is() {
    let mut scenario = Scenario::new(vec![FakeGpu::new(Model::A100, 0)]);
    let gpu = &mut scenario.gpus[0];
    gpu.memory_used = 3 << 30;
    (gpu.temperature_c, gpu.power_mw) = (77, 312_500);
    gpu.utilisation = (98, 41);
    gpu.clock_reasons = ClockReasons::POWER_CAP | ClockReasons::HARDWARE_THERMAL;
    gpu.ecc_errors = [4, 1, 40, 2];
    gpu.remapped = (3, 1);
    gpu.remap_flags = (true, false);
    gpu.recovery = Some(4);
    gpu.pcie_replays = 9;
    gpu.processes = vec![
        process(4242, FakeProcessKind::Compute),
        process(1111, FakeProcessKind::Graphics),
        process(777, FakeProcessKind::Mps),
    ];
    let machine = TestMachine::new(scenario);
    let (_supervisor, mut news) = machine.supervise();
    let reading = news
        .next("a sample", |news| {
            if let GpuNews::Sample(sample) = news {
                Some(sample.reading.clone())
            } else {
                None
            }
        })
        .await;
    assert_eq!(reading.temperature_c, Some(77));
    assert_eq!(reading.power_mw, Some(312_500));
    assert_eq!(reading.memory_used, Some(Bytes(3 << 30)));
    assert_eq!(
        (
            reading.utilisation_percent,
            reading.memory_utilisation_percent
        ),
        (Some(98), Some(41))
    );
    let reasons = reading.clock_reasons.unwrap();
    assert!(reasons.has(ClockReasons::HARDWARE_THERMAL) && !reasons.has(ClockReasons::POWER_BRAKE));
    let ecc = EccCounters {
        corrected: 4,
        uncorrected: 1,
        corrected_ever: 40,
        uncorrected_ever: 2,
    };
    assert_eq!(reading.ecc, Some(ecc));
    let remapped = reading.remapped.unwrap();
    assert_eq!((remapped.corrected, remapped.uncorrected), (3, 1));
    assert!(remapped.pending && !remapped.failed);
    assert_eq!(reading.recovery, Some(RecoveryAction::DrainAndReset));
    assert_eq!(reading.pcie_replays, Some(9));
    let users: Vec<(u32, ProcessKind)> = reading
        .processes
        .unwrap()
        .iter()
        .map(|process| (process.pid, process.kind))
        .collect();
    assert_eq!(
        users,
        [
            (4242, ProcessKind::Compute),
            (1111, ProcessKind::Graphics),
            (777, ProcessKind::Mps)
        ]
    );
}

fn process(pid: u32, kind: FakeProcessKind) -> FakeProcess {
    FakeProcess {
        pid,
        kind,
        memory: 1 << 30,
        gpu_instance: None,
    }
}

// peers 3.5 #93: a driver without the newer functions is asked by the older ones.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_driver_is_asked_by_the_old_names() {
    let mut scenario = Scenario::new(vec![FakeGpu::new(Model::A100, 0)]);
    scenario.driver = Some("450.80.02".to_owned());
    scenario.gpus[0].processes = vec![process(4242, FakeProcessKind::Compute)];
    scenario.gpus[0].recovery = None;
    scenario.gpus[0].clock_reasons = ClockReasons::POWER_CAP;
    let mut machine = TestMachine::without(scenario, &MISSING_IN_R450);
    let (supervisor, mut news) = machine.supervise();
    let seen = supervisor.seen().await;
    let gpu = &seen.gpus()[0];
    assert_eq!(gpu.vram, Bytes(42_949_672_960));
    // It has no call for the cores.
    assert_eq!(gpu.multiprocessors, 0);
    let reading = news
        .next("a sample", |news| {
            if let GpuNews::Sample(sample) = news {
                Some(sample.reading.clone())
            } else {
                None
            }
        })
        .await;
    assert_eq!(reading.recovery, None);
    assert_eq!(reading.clock_reasons, Some(ClockReasons(4)));
    assert_eq!(reading.processes.unwrap()[0].pid, 4242);
    let profiles = supervisor.profiles(&machine.uuid(0)).await.unwrap();
    let half = profiles.iter().find(|profile| profile.id == 9).unwrap();
    assert_eq!((half.name.as_str(), half.placements.len()), ("", 2));
    machine.scenario.xid(0, 79, None);
    machine.write();
    let event = news
        .next("an Xid", |news| {
            if let GpuNews::Event(event) = news {
                Some(event.clone())
            } else {
                None
            }
        })
        .await;
    assert_eq!((event.xid(), event.gpu_instance), (Some(79), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_for_players_says_less() {
    let machine = TestMachine::new(Scenario::new(vec![FakeGpu::new(Model::Rtx4090, 0)]));
    let (supervisor, _news) = machine.supervise();
    let seen = supervisor.seen().await;
    let gpu = &seen.gpus()[0];
    assert_eq!(gpu.multiprocessors, 128);
    assert_eq!((gpu.ecc, gpu.is_divided), (None, None));
    assert_eq!((gpu.link_group, gpu.links), (0, 0));
    assert!(supervisor.profiles(&machine.uuid(0)).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_the_library_has_no_gpu() {
    let mut machine = TestMachine::new(Scenario::new(Vec::new()));
    machine.launch.library = Some(PathBuf::from("/nonexistent/libnvidia-ml.so.1"));
    let (supervisor, _news) = machine.supervise();
    let found = supervisor.seen().await;
    assert!(matches!(found, Nvidia::LibraryMissing { .. }), "{found:?}");
}

// peers 3.5 #94: the library is there under one of its names alone, whichever that is.
#[tokio::test(flavor = "multi_thread")]
async fn the_library_is_found_under_each_of_its_names() {
    for name in ["libnvidia-ml.so.1", "libnvidia-ml.so"] {
        let mut machine = TestMachine::new(Scenario::new(vec![FakeGpu::new(Model::A30, 0)]));
        let library = machine.launch.library.take().unwrap();
        let folder = machine.folder.path().join("lib");
        std::fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(library, folder.join(name)).unwrap();
        let path = ("LD_LIBRARY_PATH".to_owned(), folder);
        machine.launch.environment.push(path);
        let (supervisor, _news) = machine.supervise();
        let found = supervisor.seen().await;
        assert_eq!(found.gpus().len(), 1, "{name}: {found:?}");
    }
}

/// `FEIRA_NVIDIA_ML` names NVIDIA's own library, where the script that runs the tests could fetch it.
#[tokio::test(flavor = "multi_thread")]
async fn nvidias_own_library_says_that_there_is_no_driver() {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests are told by scripts where to look"
    )]
    let Ok(library) = std::env::var("FEIRA_NVIDIA_ML") else {
        return;
    };
    if std::path::Path::new("/proc/driver/nvidia/version").exists() {
        return;
    }
    let mut machine = TestMachine::new(Scenario::new(Vec::new()));
    machine.launch.library = Some(PathBuf::from(library));
    let (supervisor, _news) = machine.supervise();
    assert_eq!(supervisor.seen().await, Nvidia::DriverNotLoaded);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_comes_late_is_waited_for() {
    let mut scenario = Scenario::new(vec![FakeGpu::new(Model::A30, 0)]);
    scenario.starts_too_early = 2;
    let machine = TestMachine::new(scenario);
    let (supervisor, _news) = machine.supervise();
    assert_eq!(supervisor.seen().await, Nvidia::DriverNotLoaded);
    let found = seen(&supervisor, |found| found.gpus().len() == 1).await;
    assert_eq!(found.gpus()[0].model.as_str(), "NVIDIA A30");
}
