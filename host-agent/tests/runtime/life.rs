//! Containers on a real engine: from image to removal, each step twice, and what can go wrong.

use std::time::Duration;

use crate::engine::{Bench, MIB, bench, spec};
use bollard::query_parameters::InspectContainerOptions;
use host_agent::runtime::docker::DockerRuntime;
use host_agent::runtime::sandbox::container_name;
use host_agent::runtime::{ContainerEvent, EventWatch, Exit, RunState, Runtime, RuntimeError};
use protocol::ids::{HostId, LeaseId};
use protocol::lease::{Problem, ProblemKind, Stage};
use protocol::machine::ContainerNetwork;
use protocol::units::{Bytes, Seconds};

async fn state(bench: &Bench, lease: LeaseId) -> RunState {
    bench.runtime.inspect(lease).await.unwrap().unwrap().state
}

async fn exit(bench: &Bench, lease: LeaseId) -> Exit {
    for _ in 0..500 {
        if let RunState::Exited(exit) = state(bench, lease).await {
            return exit;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it did not exit");
}

#[tokio::test]
async fn the_engine_says_what_it_is() {
    let Some(bench) = bench().await else { return };
    let facts = bench.runtime.facts().await.unwrap();
    assert!(
        facts.api >= (1, 41) && facts.runtime.starts_with("runc "),
        "{facts:?}"
    );
    assert!(facts.data_root.starts_with('/') && facts.ram.0 > 0 && facts.cpu_cores > 0);
}

#[tokio::test]
async fn no_engine_is_said_with_its_socket() {
    let socket = std::path::Path::new("/nonexistent/docker.sock");
    let error = DockerRuntime::connect(socket, HostId::from_bytes([1; 32]))
        .await
        .unwrap_err();
    assert!(matches!(error, RuntimeError::Unreachable { .. }));
    assert!(
        error.to_string().contains("/nonexistent/docker.sock"),
        "{error}"
    );
}

#[tokio::test]
async fn each_step_may_be_repeated() {
    let Some(bench) = bench().await else { return };
    let (image, pulled) = bench.image("feira-demo").await;
    let spec = spec(image, &["sh", "-c", "echo run >>/kept; exec sleep 1000"]);
    let runtime = &bench.runtime;
    let id = runtime.create(&spec, &pulled).await.unwrap();
    assert_eq!(runtime.create(&spec, &pulled).await.unwrap(), id);
    assert_eq!(state(&bench, spec.lease).await, RunState::Created);

    let started = runtime.start(spec.lease).await.unwrap();
    assert_eq!(runtime.start(spec.lease).await.unwrap(), started);
    assert_eq!(
        state(&bench, spec.lease).await,
        RunState::Running { since: started.0 }
    );

    runtime.stop(spec.lease, Seconds(1)).await.unwrap();
    runtime.stop(spec.lease, Seconds(1)).await.unwrap();
    // 128 and SIGTERM, which the init passes on.
    assert_eq!(exit(&bench, spec.lease).await.code, 143);

    runtime.start(spec.lease).await.unwrap();
    let kept = runtime.disk_used(spec.lease).await.unwrap();
    assert!(kept.0 >= 4096, "the file of the first run is there: {kept}");
    let left = runtime.disk_left(spec.lease).await.unwrap();
    let writable = spec.disk.0 - pulled.size.0;
    assert_eq!(
        left.0,
        writable - kept.0,
        "what the image and the file leave"
    );

    runtime.remove(spec.lease).await.unwrap();
    runtime.remove(spec.lease).await.unwrap();
    assert_eq!(runtime.inspect(spec.lease).await.unwrap(), None);
    runtime.stop(spec.lease, Seconds(1)).await.unwrap();
}

#[tokio::test]
async fn a_new_agent_finds_its_containers_and_no_others() {
    let Some(bench) = bench().await else { return };
    let running = bench.started("feira-demo", &[]).await;
    let created = bench.created("feira-demo", &[]).await;
    let Some(other) = crate::engine::bench().await else {
        return;
    };
    let theirs = other.created("feira-demo", &[]).await;

    let agent = DockerRuntime::connect(&bench.socket, bench.host)
        .await
        .unwrap();
    let found = agent.containers().await.unwrap();
    let mut leases: Vec<LeaseId> = found.iter().map(|container| container.lease).collect();
    leases.sort();
    let mut expected = vec![running.lease, created.lease];
    expected.sort();
    assert_eq!(leases, expected);
    assert!(
        found
            .iter()
            .all(|c| c.epoch == 7 && c.run == 1 && c.broker == running.broker)
    );
    assert_eq!(
        agent.inspect(theirs.lease).await.unwrap(),
        None,
        "by label, not by name"
    );
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_is_killed_after_the_grace() {
    let Some(bench) = bench().await else { return };
    let spec = bench.started("feira-stubborn", &[]).await;
    bench.runtime.stop(spec.lease, Seconds(1)).await.unwrap();
    assert_eq!(exit(&bench, spec.lease).await.code, 137);
}

#[tokio::test]
async fn a_bridge_is_the_leases_own_and_goes_with_it() {
    let Some(bench) = bench().await else { return };
    let (image, pulled) = bench.image("feira-demo").await;
    let mut spec = spec(image, &[]);
    spec.network = ContainerNetwork::Bridge;
    bench.runtime.create(&spec, &pulled).await.unwrap();
    bench.runtime.start(spec.lease).await.unwrap();
    let docker = bench.docker();
    let name = container_name(spec.lease);
    let network = docker.inspect_network(
        &name,
        None::<bollard::query_parameters::InspectNetworkOptions>,
    );
    let options = network.await.unwrap().options.unwrap();
    assert_eq!(options["com.docker.network.bridge.enable_icc"], "false");
    bench.runtime.remove(spec.lease).await.unwrap();
    let gone = docker.inspect_network(
        &name,
        None::<bollard::query_parameters::InspectNetworkOptions>,
    );
    assert!(gone.await.is_err());
}

#[tokio::test]
async fn a_volume_of_the_image_is_covered_and_nothing_is_left() {
    let Some(bench) = bench().await else { return };
    let spec = bench.started("feira-volume", &[]).await;
    let docker = bench.docker();
    let name = container_name(spec.lease);
    let found = docker
        .inspect_container(&name, None::<InspectContainerOptions>)
        .await
        .unwrap();
    let mounts = found.mounts.unwrap();
    assert_eq!(mounts.len(), 1, "the notices alone: {mounts:?}");
    assert_eq!(mounts[0].destination.as_deref(), Some("/run/feira"));
    let covers = found.host_config.unwrap().tmpfs.unwrap();
    assert!(covers["/var/data"].contains("size="), "{covers:?}");
}

async fn start_problem(bench: &Bench, name: &str, command: &[&str]) -> Problem {
    let spec = bench.created(name, command).await;
    bench.runtime.start(spec.lease).await.unwrap_err()
}

#[tokio::test]
async fn a_command_that_is_not_in_the_image_is_a_typed_problem() {
    let Some(bench) = bench().await else { return };
    for (name, command) in [
        ("feira-nocommand", &[][..]),
        ("feira-demo", &["no-such-program"]),
    ] {
        let problem = start_problem(&bench, name, command).await;
        assert_eq!(
            (problem.stage, problem.kind),
            (Stage::Starting, ProblemKind::CommandUnknown)
        );
        assert!(
            problem.detail.contains("No such file"),
            "{}",
            problem.detail
        );
    }
    let problem = start_problem(&bench, "feira-demo", &["/etc"]).await;
    assert_eq!(
        problem.kind,
        ProblemKind::CommandUnknown,
        "{}",
        problem.detail
    );
}

#[tokio::test]
async fn a_program_that_ends_at_once_did_start() {
    let Some(bench) = bench().await else { return };
    let spec = bench.started("feira-exit3", &[]).await;
    assert_eq!(exit(&bench, spec.lease).await.code, 3);
    let spec = bench
        .started("feira-demo", &["sh", "-c", "echo '[FATAL' >&2; exit 127"])
        .await;
    assert_eq!(exit(&bench, spec.lease).await.code, 127);
}

async fn event(watch: &mut EventWatch) -> ContainerEvent {
    let next = tokio::time::timeout(Duration::from_secs(30), watch.next());
    next.await
        .expect("an event comes")
        .expect("the watch lives")
}

#[tokio::test]
async fn the_watch_says_what_happens() {
    let Some(bench) = bench().await else { return };
    let mut watch = bench.runtime.watch();
    assert_eq!(event(&mut watch).await, ContainerEvent::Listed(Vec::new()));
    let spec = bench.started("feira-exit3", &[]).await;
    let lease = spec.lease;
    let started = event(&mut watch).await;
    assert!(matches!(started, ContainerEvent::Started { lease: of, .. } if of == lease));
    let ContainerEvent::Died { lease: of, exit } = event(&mut watch).await else {
        panic!()
    };
    assert_eq!((of, exit.code, exit.out_of_memory), (lease, 3, false));
    bench.runtime.remove(lease).await.unwrap();
    assert_eq!(event(&mut watch).await, ContainerEvent::Removed { lease });
}

#[tokio::test]
async fn a_kill_for_memory_is_told_apart() {
    let Some(bench) = bench().await else { return };
    let (image, pulled) = bench.image("feira-demo").await;
    let hog = "sleep 0.3; x=; while true; do x=$x$x$(head -c 1000000 /dev/zero | tr '\\0' x); done";
    let mut spec = spec(image, &["sh", "-c", hog]);
    spec.ram = Bytes(32 * MIB);
    let mut watch = bench.runtime.watch();
    event(&mut watch).await;
    bench.runtime.create(&spec, &pulled).await.unwrap();
    bench.runtime.start(spec.lease).await.unwrap();
    event(&mut watch).await;
    let ContainerEvent::Died { exit, .. } = event(&mut watch).await else {
        panic!("not dead")
    };
    assert_eq!((exit.code, exit.out_of_memory), (137, true));
}

#[tokio::test]
async fn a_container_that_fills_its_disk_is_stopped() {
    let Some(bench) = bench().await else { return };
    let (image, pulled) = bench.image("feira-demo").await;
    let fill = "head -c 30000000 /dev/zero >/filled; sleep 1000";
    let mut spec = spec(image, &["sh", "-c", fill]);
    // 20 MB beside the image.
    spec.disk = Bytes(pulled.size.0 + 20_000_000);
    let runtime = bench
        .runtime
        .clone()
        .measuring_disks_every(Duration::from_millis(200));
    let mut watch = runtime.watch();
    event(&mut watch).await;
    runtime.create(&spec, &pulled).await.unwrap();
    runtime.start(spec.lease).await.unwrap();
    event(&mut watch).await;
    let ContainerEvent::DiskExceeded {
        lease,
        used,
        allowed,
    } = event(&mut watch).await
    else {
        panic!("not noticed")
    };
    assert_eq!((lease, allowed), (spec.lease, Bytes(20_000_000)));
    assert!(used > allowed, "{used}");
    let died = event(&mut watch).await;
    assert!(
        matches!(died, ContainerEvent::Died { lease, .. } if lease == spec.lease),
        "{died:?}"
    );
}

#[tokio::test]
async fn a_paused_container_is_seen_as_paused_and_goes_on_when_it_is_started() {
    let Some(bench) = bench().await else { return };
    let spec = bench.started("feira-demo", &["sleep", "60"]).await;
    let name = format!("feira-{}", spec.lease);
    let docker = bench.docker();
    docker.pause_container(&name).await.unwrap();
    let RunState::Paused { since } = state(&bench, spec.lease).await else {
        panic!("it is not paused")
    };
    bench.runtime.start(spec.lease).await.unwrap();
    assert_eq!(state(&bench, spec.lease).await, RunState::Running { since });
    docker.pause_container(&name).await.unwrap();
    bench.runtime.stop(spec.lease, Seconds(1)).await.unwrap();
    bench.runtime.remove(spec.lease).await.unwrap();
    assert_eq!(bench.runtime.inspect(spec.lease).await.unwrap(), None);
}
