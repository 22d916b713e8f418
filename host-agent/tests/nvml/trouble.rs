//! GPUs that hang, crash, vanish and come back: each alone.

use crate::machine::{TestMachine, seen};
use fake_nvml::models::Model;
use fake_nvml::scenario::{FakeGpu, FakeProcess, FakeProcessKind, Happening, Misdeed, Scenario};
use host_agent::hardware::nvidia::{CallError, Nvidia};
use host_nvml::event::EventKind;
use host_nvml::fault::Fault;
use host_nvml::news::{GpuNews, GpuState};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

fn two() -> Scenario {
    Scenario::new(
        (0..2)
            .map(|number| FakeGpu::new(Model::H100, number))
            .collect(),
    )
}

fn ready(state: &GpuState) -> bool {
    *state == GpuState::Ready
}

fn unknown(state: &GpuState) -> bool {
    matches!(state, GpuState::Unknown { .. })
}

fn gone(state: &GpuState) -> bool {
    *state == GpuState::Gone
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_that_hangs_is_unknown_and_the_others_go_on() {
    let mut machine = TestMachine::new(two());
    let (supervisor, mut news) = machine.supervise();
    seen(&supervisor, |found| found.gpus().len() == 2).await;
    let (first, second) = (machine.uuid(0), machine.uuid(1));
    let hang = Misdeed::Hangs {
        milliseconds: 3_600_000,
    };
    machine.scenario.fault("*", 0, hang);
    machine.write();
    let state = news.state(&first, unknown).await;
    let GpuState::Unknown { reason } = state else {
        unreachable!()
    };
    assert_eq!(reason, "the driver does not answer within 2000 ms");
    let found = seen(&supervisor, |found| found.gpus().len() == 1).await;
    assert_eq!(found.gpus()[0].uuid, second);
    let Nvidia::Ready { troubled, .. } = found else {
        unreachable!()
    };
    // It is still known which it is.
    assert_eq!(troubled[0].gpu.uuid, first);
    assert_eq!(troubled[0].gpu.model.as_str(), "NVIDIA H100 80GB HBM3");
    let refused = supervisor.mig_mode(&first).await.unwrap_err();
    assert!(matches!(refused, CallError::NotAsked(_)), "{refused:?}");
    assert!(supervisor.mig_mode(&second).await.is_ok());
    machine.scenario.faults.clear();
    machine.write();
    news.state(&first, ready).await;
    seen(&supervisor, |found| found.gpus().len() == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_that_hangs_from_the_beginning_holds_up_nobody() {
    let mut scenario = two();
    let hang = Misdeed::Hangs {
        milliseconds: 3_600_000,
    };
    scenario.fault("*", 0, hang);
    let mut machine = TestMachine::new(scenario);
    let (supervisor, mut news) = machine.supervise();
    // The other is sampled before the first has missed its deadline.
    let (second, at) = news
        .next("a sample", |news| {
            if let GpuNews::Sample(sample) = news {
                Some((sample.gpu.clone(), sample.at))
            } else {
                None
            }
        })
        .await;
    assert_eq!(second, machine.uuid(1));
    let found = seen(&supervisor, |found| found.gpus().len() == 1).await;
    let Nvidia::Ready { unreadable, .. } = found else {
        unreachable!()
    };
    assert_eq!(unreadable, 1);
    assert!(host_agent::clock::wall().0 > at.0);
    machine.scenario.faults.clear();
    machine.write();
    seen(&supervisor, |found| found.gpus().len() == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_crashes_its_caller_crashes_not_the_agent() {
    let mut machine = TestMachine::new(two());
    let (supervisor, mut news) = machine.supervise();
    seen(&supervisor, |found| found.gpus().len() == 2).await;
    let first = machine.uuid(0);
    let call = "nvmlDeviceGetTemperature";
    machine.scenario.fault(call, 0, Misdeed::Crashes);
    machine.write();
    let GpuState::Unknown { reason } = news.state(&first, unknown).await else {
        unreachable!()
    };
    assert!(reason.contains("ended"), "{reason}");
    machine.scenario.faults.clear();
    machine.write();
    news.state(&first, ready).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_that_vanishes_without_a_word_is_noticed_and_may_come_back() {
    let mut machine = TestMachine::new(two());
    let (supervisor, mut news) = machine.supervise();
    seen(&supervisor, |found| found.gpus().len() == 2).await;
    let first = machine.uuid(0);
    machine.scenario.gpus[0].present = false;
    machine.write();
    news.state(&first, gone).await;
    let found = seen(&supervisor, |found| found.gpus().len() == 1).await;
    assert_eq!(found.gpus()[0].uuid, machine.uuid(1));
    machine.scenario.gpus[0].present = true;
    machine.write();
    news.state(&first, ready).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_that_the_library_remembers_is_missed_by_the_count() {
    let mut machine = TestMachine::new(two());
    let (supervisor, mut news) = machine.supervise();
    seen(&supervisor, |found| found.gpus().len() == 2).await;
    // Whoever found it before goes on getting answers; only a new process sees that it is not there.
    machine.scenario.gpus[1].present = false;
    machine.scenario.gpus[1].remembered = true;
    machine.write();
    news.state(&machine.uuid(1), gone).await;
    seen(&supervisor, |found| found.gpus().len() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_that_is_lost_is_gone_though_it_is_listed() {
    let mut machine = TestMachine::new(two());
    let (supervisor, mut news) = machine.supervise();
    seen(&supervisor, |found| found.gpus().len() == 2).await;
    // GPU_IS_LOST of one call only: the library answers others from its memory.
    machine
        .scenario
        .fault("nvmlDeviceGetPowerUsage", 1, Misdeed::Fails { code: 15 });
    machine.write();
    news.state(&machine.uuid(1), gone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_xid_comes_with_the_slice_it_happened_in() {
    let mut machine = TestMachine::new(two());
    let (supervisor, mut news) = machine.supervise();
    seen(&supervisor, |found| found.gpus().len() == 2).await;
    machine.scenario.xid(1, 94, Some((3, 0)));
    machine.write();
    let event = news
        .next("Xid 94", |news| {
            if let GpuNews::Event(event) = news {
                Some(event.clone())
            } else {
                None
            }
        })
        .await;
    assert_eq!(event.gpu, machine.uuid(1));
    assert_eq!(event.kind, EventKind::Xid(94));
    assert_eq!(
        (event.gpu_instance, event.compute_instance),
        (Some(3), Some(0))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_wait_for_events_begins_anew_and_counters_are_read() {
    let mut machine = TestMachine::new(Scenario::new(vec![FakeGpu::new(Model::H100, 0)]));
    let (supervisor, mut news) = machine.supervise();
    seen(&supervisor, |found| found.gpus().len() == 1).await;
    machine.scenario.gpus[0].ecc_errors = [0, 5, 0, 5];
    machine
        .scenario
        .events
        .push(Happening::WaitFails { code: 999 });
    machine.write();
    news.next("a broken wait", |news| {
        matches!(news, GpuNews::EventsBroke { .. }).then_some(())
    })
    .await;
    let uncorrected = news
        .next("a sample after it", |news| {
            if let GpuNews::Sample(sample) = news {
                sample.reading.ecc.map(|ecc| ecc.uncorrected)
            } else {
                None
            }
        })
        .await;
    assert_eq!(uncorrected, 5);
    // The new set hears what happens once it is there; the broken one would hear nothing ever.
    let mut heard = None;
    for _ in 0..40 {
        machine.scenario.xid(0, 48, None);
        machine.write();
        heard = news.xid_soon().await;
        if heard.is_some() {
            break;
        }
    }
    assert_eq!(heard, Some(48));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_is_refused_while_the_gpu_is_used_and_bounded_otherwise() {
    let mut scenario = Scenario::new(vec![FakeGpu::new(Model::H100, 0)]);
    scenario.gpus[0].processes.push(FakeProcess {
        pid: 4242,
        kind: FakeProcessKind::Compute,
        memory: 1 << 30,
        gpu_instance: None,
    });
    let mut machine = TestMachine::new(scenario);
    let (supervisor, mut news) = machine.supervise();
    seen(&supervisor, |found| found.gpus().len() == 1).await;
    let gpu = machine.uuid(0);
    let said = machine.folder.path().join("said");
    let program = program(&machine, &format!("echo \"$@\" >> {}", said.display()));
    let refused = supervisor.reset(&gpu, program.clone()).await;
    assert_eq!(refused, Err(CallError::Fault(Fault::InUse)));
    assert!(!said.exists());
    machine.scenario.gpus[0].processes.clear();
    machine.write();
    supervisor.reset(&gpu, program).await.unwrap();
    assert_eq!(
        std::fs::read_to_string(&said).unwrap(),
        "-i 00000000:05:00.0 -pm 0\n--gpu-reset -i 00000000:05:00.0\n-i 00000000:05:00.0 -pm 1\n"
    );
    seen(&supervisor, |found| found.gpus().len() == 1).await;
    news.next("a sample after the reset", |news| {
        matches!(news, GpuNews::Sample(_)).then_some(())
    })
    .await;
}

/// A program in the place of the driver's.
fn program(machine: &TestMachine, script: &str) -> PathBuf {
    let path = machine.folder.path().join("nvidia-smi");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}
