//! Slices through the library: made, refused, used, given back, and gone with the boot.

use crate::machine::{TestMachine, seen};
use fake_nvml::models::Model;
use fake_nvml::scenario::{FakeGpu, FakeProcess, FakeProcessKind, Scenario};
use host_agent::hardware::nvidia::CallError;
use host_nvml::fault::Fault;
use host_nvml::slices::{Capabilities, MigMode, Placement};
use protocol::units::Bytes;

/// Numbers of the profiles of an H100 (`nvidia-smi mig -lgip`).
const ONE: u32 = 19;
const THREE: u32 = 9;
const FOUR: u32 = 5;

fn divided() -> Scenario {
    let mut gpu = FakeGpu::new(Model::H100, 0);
    gpu.mig_at_boot = true;
    Scenario::new(vec![gpu])
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_are_those_of_the_hardware_also_while_the_gpu_is_whole() {
    let machine = TestMachine::new(Scenario::new(vec![FakeGpu::new(Model::H100, 0)]));
    let (supervisor, _news) = machine.supervise();
    seen(&supervisor, |found| found.gpus().len() == 1).await;
    let profiles = supervisor.profiles(&machine.uuid(0)).await.unwrap();
    let three = profiles.iter().find(|profile| profile.id == THREE).unwrap();
    assert_eq!(three.name.as_str(), "3g.40gb");
    assert_eq!((three.compute_slices, three.multiprocessors), (3, 60));
    assert_eq!((three.count_max, three.remaining), (2, None));
    let place = |start| Placement { start, size: 4 };
    assert_eq!(three.placements, [place(0), place(4)]);
    let one = profiles.iter().find(|profile| profile.id == ONE).unwrap();
    assert_eq!((one.placements.len(), one.count_max), (7, 7));
    // 9.75 GiB, as H100-80 prints it.
    assert_eq!(one.memory, Bytes(9_984 << 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slice_is_made_listed_and_given_back() {
    let machine = TestMachine::new(divided());
    let (supervisor, _news) = machine.supervise();
    seen(&supervisor, |found| found.gpus().len() == 1).await;
    let gpu = machine.uuid(0);
    let made = supervisor.create_instance(&gpu, THREE, 4).await.unwrap();
    assert_eq!((made.gpu_instance, made.profile), (1, THREE));
    assert_eq!(made.placement, Placement { start: 4, size: 4 });
    let compute = made.compute.clone().unwrap();
    let uuid = compute.uuid.unwrap();
    assert!(uuid.as_str().starts_with("MIG-00000001-0000-"), "{uuid:?}");
    // gpu0/gi1/access is 12 in the driver's own table: two fixed ones, nine of gi0, and one.
    let capabilities = Capabilities {
        gpu_instance_minor: 12,
        compute_instance_minor: 13,
    };
    assert_eq!(compute.capabilities, Some(capabilities));
    let profiles = supervisor.profiles(&gpu).await.unwrap();
    let remaining = |id| {
        let profile = profiles.iter().find(|profile| profile.id == id);
        profile.unwrap().remaining
    };
    assert_eq!((remaining(THREE), remaining(ONE)), (Some(1), Some(4)));
    assert_eq!(remaining(0), Some(0));
    assert_eq!(supervisor.instances(&gpu).await.unwrap(), [made]);
    // Another process sees it too: it is the driver's.
    let (other, _news) = machine.supervise();
    seen(&other, |found| found.gpus().len() == 1).await;
    assert_eq!(other.instances(&gpu).await.unwrap().len(), 1);
    supervisor.destroy_instance(&gpu, 1).await.unwrap();
    assert_eq!(other.instances(&gpu).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_refused_and_the_rest_stays() {
    let machine = TestMachine::new(divided());
    let (supervisor, _news) = machine.supervise();
    seen(&supervisor, |found| found.gpus().len() == 1).await;
    let gpu = machine.uuid(0);
    supervisor.create_instance(&gpu, ONE, 5).await.unwrap();
    // Over the one at 5; at a place that the profile does not have; a profile that there is not.
    let overlaps = supervisor.create_instance(&gpu, THREE, 4).await;
    assert_eq!(overlaps, Err(CallError::Fault(Fault::NoRoom)));
    let misplaced = supervisor
        .create_instance(&gpu, THREE, 2)
        .await
        .unwrap_err();
    assert_eq!(
        misplaced.to_string(),
        "the question was wrong: profile 9 cannot begin at memory slice 2"
    );
    assert!(supervisor.create_instance(&gpu, 77, 0).await.is_err());
    supervisor.create_instance(&gpu, FOUR, 0).await.unwrap();
    assert_eq!(supervisor.instances(&gpu).await.unwrap().len(), 2);
    let missing = supervisor.destroy_instance(&gpu, 13).await;
    assert_eq!(missing, Err(CallError::Fault(Fault::NotFound)));
    // None of it is held against the GPU.
    assert_eq!(supervisor.seen().await.gpus().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slice_in_use_is_kept_and_a_boot_forgets_all() {
    let mut machine = TestMachine::new(divided());
    let (supervisor, _news) = machine.supervise();
    seen(&supervisor, |found| found.gpus().len() == 1).await;
    let gpu = machine.uuid(0);
    let made = supervisor.create_instance(&gpu, ONE, 0).await.unwrap();
    machine.scenario.gpus[0].processes.push(FakeProcess {
        pid: 4242,
        kind: FakeProcessKind::Compute,
        memory: 1 << 30,
        gpu_instance: Some(made.gpu_instance),
    });
    machine.write();
    let used = supervisor.destroy_instance(&gpu, made.gpu_instance).await;
    assert_eq!(used, Err(CallError::Fault(Fault::InUse)));
    machine.scenario.gpus[0].processes.clear();
    machine.scenario.boot += 1;
    machine.write();
    assert_eq!(supervisor.instances(&gpu).await.unwrap(), []);
    let again = supervisor.create_instance(&gpu, ONE, 0).await.unwrap();
    // The same place has the same UUID: what was leased can be told from what was not.
    assert_eq!(again, made);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_is_divided_and_made_whole_or_says_why_not() {
    let mut machine = TestMachine::new(Scenario::new(vec![FakeGpu::new(Model::A100, 0)]));
    let (supervisor, _news) = machine.supervise();
    seen(&supervisor, |found| found.gpus().len() == 1).await;
    let gpu = machine.uuid(0);
    let mode = supervisor.set_mig_mode(&gpu, true).await.unwrap();
    assert_eq!(
        mode,
        MigMode {
            current: true,
            pending: true
        }
    );
    let is_divided = |divided| {
        move |found: &host_agent::hardware::nvidia::Nvidia| {
            found
                .gpus()
                .first()
                .is_some_and(|gpu| gpu.is_divided == Some(divided))
        }
    };
    seen(&supervisor, is_divided(true)).await;
    supervisor.set_mig_mode(&gpu, false).await.unwrap();
    seen(&supervisor, is_divided(false)).await;
    machine.scenario.gpus[0].mig_pending_code = Some(16);
    machine.write();
    let pending = supervisor.set_mig_mode(&gpu, true).await;
    assert_eq!(pending, Err(CallError::Fault(Fault::ResetRequired)));
    let mode = supervisor.mig_mode(&gpu).await.unwrap();
    assert_eq!((mode.current, mode.pending), (false, true));
}
