//! GPUs in containers on a real engine, on a machine whose driver, nodes and libraries are stand-ins: nodes with NVIDIA's
//! numbers that nothing is behind, and files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::engine::{Bench, bench, spec};
use crate::sandbox::inside;
use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, CreateContainerOptionsBuilder, InspectContainerOptions,
    RenameContainerOptionsBuilder,
};
use host_agent::runtime::docker::DockerRuntime;
use host_agent::runtime::gpus::LeasedGpu;
use host_agent::runtime::sandbox::container_name;
use host_agent::runtime::{ContainerSpec, RunState, Runtime};
use protocol::bounded::{List, Text};
use protocol::ids::LeaseId;
use protocol::lease::{ProblemKind, Stage};
use protocol::machine::{Gpu, Vendor};
use protocol::units::{Bytes, Seconds};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use tempfile::TempDir;

const GPU: &str = "GPU-0a";
const OTHER: &str = "GPU-1b";
/// NVIDIA's own number, and two that the kernel gives out.
const NVIDIA: u32 = 195;
const UVM: u32 = 510;
const CAPABILITIES: u32 = 236;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Whether this user may make it.
fn node(root: &Path, name: &str, major: u32, minor: u32) -> bool {
    let path = root.join("dev").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mode = Mode::from_raw_mode(0o666);
    mknodat(
        CWD,
        &path,
        FileType::CharacterDevice,
        mode,
        makedev(major, minor),
    )
    .is_ok()
}

/// Two GPUs, the first of them divided where a slice is asked for; nothing where nodes may not be made.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
fn machine() -> Option<TempDir> {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = folder.path();
    for (minor, uuid) in [(0, GPU), (1, OTHER)] {
        let text = format!("GPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n");
        write(
            root,
            &format!("proc/driver/nvidia/gpus/0000:0{minor}:00.0/information"),
            &text,
        );
    }
    let library = root.join("usr/lib64");
    write(&library, "libcuda.so.1", "the driver's");
    write(&library, "libnvidia-ml.so.1", "the driver's");
    let nodes = [
        ("nvidia0", NVIDIA, 0),
        ("nvidia1", NVIDIA, 1),
        ("nvidiactl", NVIDIA, 255),
        ("nvidia-uvm", UVM, 0),
    ];
    if !nodes
        .iter()
        .all(|(name, major, minor)| node(root, name, *major, *minor))
    {
        eprintln!("SKIPPED, and nothing was tested: only root makes device nodes");
        return None;
    }
    Some(folder)
}

/// Cuts the first GPU: the slice of this number has these capabilities.
fn cut(root: &Path, instance: u32, minors: [u32; 2]) {
    let folder = "proc/driver/nvidia/capabilities/gpu0/mig";
    let _none = fs::remove_dir_all(root.join(folder));
    let access = |minor: u32| format!("DeviceFileMinor: {minor}\n");
    write(
        root,
        &format!("{folder}/gi{instance}/access"),
        &access(minors[0]),
    );
    write(
        root,
        &format!("{folder}/gi{instance}/ci0/access"),
        &access(minors[1]),
    );
    for minor in minors {
        node(
            root,
            &format!("nvidia-caps/nvidia-cap{minor}"),
            CAPABILITIES,
            minor,
        );
    }
}

fn leased(device: &str, gpu_instance: Option<u32>) -> LeasedGpu {
    LeasedGpu {
        device: Text::new(device).unwrap(),
        card: Gpu {
            uuid: Text::new(GPU).unwrap(),
            ..Gpu::unknown(Vendor::Nvidia)
        },
        gpu_instance,
        memory: Bytes(0),
    }
}

async fn with_gpu(bench: &Bench, gpu: LeasedGpu) -> ContainerSpec {
    let (image, _) = bench.image("feira-demo").await;
    let mut spec = spec(image, &["sleep", "1000"]);
    spec.gpus = List::first([gpu]);
    spec
}

async fn run(bench: &Bench, runtime: &DockerRuntime, spec: &ContainerSpec) {
    let (_, pulled) = bench.image("feira-demo").await;
    runtime.create(spec, &pulled).await.unwrap();
    runtime.start(spec.lease).await.unwrap();
}

async fn label(bench: &Bench, lease: LeaseId) -> String {
    let name = container_name(lease);
    let docker = bench.docker();
    let found = docker.inspect_container(&name, None::<InspectContainerOptions>);
    let labels = found.await.unwrap().config.unwrap().labels.unwrap();
    labels["feira.gpus"].clone()
}

const NODES: &str =
    "cd /dev; ls -d nvidia* nvidia-caps/* 2>/dev/null | grep -v caps$ | tr '\\n' ' '";

#[tokio::test]
async fn a_container_has_the_nodes_of_its_gpu_and_of_no_other() {
    let (Some(bench), Some(machine)) = (bench().await, machine()) else {
        return;
    };
    let runtime = bench.runtime.clone().with_gpus_under(machine.path());
    let spec = with_gpu(&bench, leased(GPU, None)).await;
    run(&bench, &runtime, &spec).await;
    let lease = spec.lease;
    assert_eq!(label(&bench, lease).await, "nodes GPU-0a /dev/nvidia0");
    let nodes = inside(&bench, lease, NODES).await;
    assert_eq!(nodes.trim(), "nvidia-uvm nvidia0 nvidiactl");
    // It cannot make another's, nor change the driver's library.
    let other = "mknod /dev/nvidia1 c 195 1 2>&1 || echo refused";
    assert!(inside(&bench, lease, other).await.contains("refused"));
    let library = "/usr/local/nvidia/lib64/libcuda.so.1";
    let script = format!("cat {library}; (echo x >{library}) 2>&1 || echo refused");
    let said = inside(&bench, lease, &script).await;
    assert!(
        said.starts_with("the driver's") && said.contains("refused"),
        "{said}"
    );
    let path = inside(
        &bench,
        lease,
        "echo $LD_LIBRARY_PATH $NVIDIA_VISIBLE_DEVICES",
    )
    .await;
    assert_eq!(path.trim(), "/usr/local/nvidia/lib64 void");
    // The control group lets it use these and no others of the driver's.
    let groups = inside(
        &bench,
        lease,
        "cat /sys/fs/cgroup/devices/devices.list 2>/dev/null",
    )
    .await;
    let of_driver: BTreeSet<&str> = groups
        .lines()
        .filter(|line| line.contains(" 195:"))
        .collect();
    if !groups.is_empty() {
        assert_eq!(of_driver, BTreeSet::from(["c 195:0 rw", "c 195:255 rw"]));
    }
}

#[tokio::test]
async fn a_start_after_which_the_gpu_is_not_seen_inside_fails() {
    let (Some(bench), Some(machine)) = (bench().await, machine()) else {
        return;
    };
    let runtime = bench.runtime.clone().with_gpus_under(machine.path());
    let spec = with_gpu(&bench, leased(GPU, None)).await;
    let (_, pulled) = bench.image("feira-demo").await;
    runtime.create(&spec, &pulled).await.unwrap();
    let lease = spec.lease;
    // The same container as a hook would leave it that gives nothing.
    let docker = bench.docker();
    let name = container_name(lease);
    let found = docker.inspect_container(&name, None::<InspectContainerOptions>);
    let config = found.await.unwrap().config.unwrap();
    runtime.remove(lease).await.unwrap();
    let body = ContainerCreateBody {
        image: config.image,
        cmd: config.cmd,
        labels: config.labels,
        host_config: Some(HostConfig {
            init: Some(true),
            network_mode: Some("none".to_owned()),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let options = CreateContainerOptionsBuilder::default().name(&name).build();
    docker.create_container(Some(options), body).await.unwrap();
    let problem = runtime.start(lease).await.unwrap_err();
    assert_eq!(
        (problem.stage, problem.kind),
        (Stage::Starting, ProblemKind::GpuUnavailable)
    );
    assert_eq!(
        problem.detail.as_str(),
        "the container does not see /dev/nvidia0"
    );
}

#[tokio::test]
async fn a_machine_without_a_driver_gives_no_gpu_and_says_what_it_tried() {
    let Some(bench) = bench().await else { return };
    let root = TempDir::new().unwrap();
    let runtime = bench.runtime.clone().with_gpus_under(root.path());
    let facts = runtime.facts().await.unwrap();
    if facts.runtimes.iter().any(|name| name == "nvidia") {
        return;
    }
    let spec = with_gpu(&bench, leased(GPU, None)).await;
    let (_, pulled) = bench.image("feira-demo").await;
    let problem = runtime.create(&spec, &pulled).await.unwrap_err();
    assert_eq!(
        (problem.stage, problem.kind),
        (Stage::Creating, ProblemKind::GpuUnavailable)
    );
    for reason in [
        "the engine has no NVIDIA runtime",
        "the kernel shows no NVIDIA driver",
    ] {
        assert!(problem.detail.contains(reason), "{}", problem.detail);
    }
    assert_eq!(runtime.inspect(spec.lease).await.unwrap(), None);
}

const KEPT: &str = "echo mine >/kept; echo gone >/removed; rm /removed; mkdir -p /deep/er; echo two >/deep/er/file";
const LOOK: &str = "cat /kept /deep/er/file; ls /removed 2>/dev/null";

async fn kept_images(bench: &Bench) -> usize {
    let filters = std::collections::HashMap::from([(
        "label".to_owned(),
        vec![format!("feira.host={}", bench.host)],
    )]);
    let options = bollard::query_parameters::ListImagesOptionsBuilder::default()
        .all(false)
        .filters(&filters)
        .build();
    bench
        .docker()
        .list_images(Some(options))
        .await
        .unwrap()
        .len()
}

#[tokio::test]
async fn a_slice_that_was_cut_again_is_in_the_container_when_it_goes_on() {
    let (Some(bench), Some(machine)) = (bench().await, machine()) else {
        return;
    };
    let runtime = bench.runtime.clone().with_gpus_under(machine.path());
    cut(machine.path(), 3, [30, 31]);
    let first = with_gpu(&bench, leased("MIG-77", Some(3))).await;
    run(&bench, &runtime, &first).await;
    let lease = first.lease;
    let nodes = inside(&bench, lease, NODES).await;
    assert_eq!(
        nodes.trim(),
        "nvidia-caps/nvidia-cap30 nvidia-caps/nvidia-cap31 nvidia-uvm nvidia0 nvidiactl"
    );
    inside(&bench, lease, KEPT).await;
    let before = runtime.disk_left(lease).await.unwrap();
    runtime.stop(lease, Seconds(1)).await.unwrap();

    // The same slice as before goes on in the same container.
    let id = runtime.inspect(lease).await.unwrap().unwrap().id;
    run(&bench, &runtime, &first).await;
    assert_eq!(runtime.inspect(lease).await.unwrap().unwrap().id, id);
    runtime.stop(lease, Seconds(1)).await.unwrap();

    cut(machine.path(), 4, [40, 41]);
    let again = ContainerSpec {
        gpus: List::first([leased("MIG-88", Some(4))]),
        run: 2,
        ..first.clone()
    };
    run(&bench, &runtime, &again).await;
    let nodes = inside(&bench, lease, NODES).await;
    assert_eq!(
        nodes.trim(),
        "nvidia-caps/nvidia-cap40 nvidia-caps/nvidia-cap41 nvidia-uvm nvidia0 nvidiactl"
    );
    assert_eq!(inside(&bench, lease, LOOK).await, "mine\ntwo\n");
    let found = runtime.containers().await.unwrap();
    assert_eq!((found.len(), found[0].run), (1, 2));
    // What it wrote before counts as before, but for the blocks that its files are rounded up to.
    let after = runtime.disk_left(lease).await.unwrap();
    assert!(
        after.0.abs_diff(before.0) < 64 << 10,
        "{before} and {after}"
    );

    // And once more: what was kept twice is one disk.
    inside(&bench, lease, "echo three >>/kept").await;
    runtime.stop(lease, Seconds(1)).await.unwrap();
    cut(machine.path(), 3, [30, 31]);
    run(&bench, &runtime, &first).await;
    assert_eq!(inside(&bench, lease, LOOK).await, "mine\nthree\ntwo\n");
    runtime.remove(lease).await.unwrap();
    assert_eq!(
        (
            runtime.containers().await.unwrap(),
            kept_images(&bench).await
        ),
        (Vec::new(), 0)
    );
}

#[tokio::test]
async fn an_agent_that_dies_while_a_container_is_made_again_finds_its_disk() {
    let (Some(bench), Some(machine)) = (bench().await, machine()) else {
        return;
    };
    let runtime = bench.runtime.clone().with_gpus_under(machine.path());
    cut(machine.path(), 3, [30, 31]);
    let first = with_gpu(&bench, leased("MIG-77", Some(3))).await;
    run(&bench, &runtime, &first).await;
    let lease = first.lease;
    inside(&bench, lease, KEPT).await;
    runtime.stop(lease, Seconds(1)).await.unwrap();
    // What was done when it died: the disk is kept, and the old one stepped aside.
    let (docker, name) = (bench.docker(), container_name(lease));
    let tag = lease.to_string();
    let options = CommitContainerOptionsBuilder::default()
        .container(&name)
        .repo("feira-kept")
        .tag(&tag)
        .build();
    docker
        .commit_container(options, bollard::models::ContainerConfig::default())
        .await
        .unwrap();
    let aside = format!("{name}.old");
    let options = RenameContainerOptionsBuilder::default()
        .name(&aside)
        .build();
    docker.rename_container(&name, options).await.unwrap();
    let found = runtime.containers().await.unwrap();
    assert!(found.len() == 1 && found[0].lease == lease, "{found:?}");
    assert!(matches!(found[0].state, RunState::Exited(_)));

    run(&bench, &runtime, &first).await;
    assert_eq!(inside(&bench, lease, LOOK).await, "mine\ntwo\n");
    let found = runtime.containers().await.unwrap();
    assert!(found.len() == 1 && matches!(found[0].state, RunState::Running { .. }));
    let gone = docker
        .inspect_container(&aside, None::<InspectContainerOptions>)
        .await;
    assert!(gone.is_err(), "the old one is still there");
    // One that dies before its successor is there can also be ended.
    runtime.stop(lease, Seconds(1)).await.unwrap();
    let options = RenameContainerOptionsBuilder::default()
        .name(&aside)
        .build();
    docker.rename_container(&name, options).await.unwrap();
    runtime.remove(lease).await.unwrap();
    assert_eq!(
        (
            runtime.containers().await.unwrap(),
            kept_images(&bench).await
        ),
        (Vec::new(), 0)
    );
}
