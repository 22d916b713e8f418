//! An engine of this test's own that goes down and comes back.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bollard::query_parameters::ImportImageOptionsBuilder;
use bollard::{API_DEFAULT_VERSION, Docker};
use futures::{StreamExt, TryStreamExt};
use host_agent::runtime::docker::{DockerRuntime, LateDocker};
use host_agent::runtime::{
    ContainerEvent, EventWatch, PulledImage, RunState, Runtime, RuntimeError,
};
use protocol::ids::HostId;

use crate::engine::{bench, bench_at, bench_of, engine_at, engine_socket, spec};

/// Below `/tmp` itself: the engine puts sockets deep below this, and their paths end at 108 bytes.
struct Engine {
    folder: tempfile::TempDir,
    process: Child,
}

impl Engine {
    fn start_in(folder: tempfile::TempDir) -> Option<Self> {
        let process = spawn(folder.path())?;
        Some(Self { folder, process })
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// As a package upgrade does it.
    fn stop(&mut self) {
        let pid = self.process.id().to_string();
        let _told = Command::new("kill").args(["-TERM", &pid]).status();
        let _ended = self.process.wait();
    }

    fn start(&mut self) {
        self.process = spawn(self.folder.path()).unwrap();
    }

    async fn wait_up(&self) {
        for _ in 0..600 {
            if DockerRuntime::connect(&self.socket(), HostId::from_bytes([1; 32]))
                .await
                .is_ok()
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the engine does not come up");
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop();
    }
}

/// In a network of its own: an engine without a bridge removes the bridge of every other one.
fn spawn(folder: &Path) -> Option<Child> {
    let at = |name: &str| folder.join(name).display().to_string();
    Command::new("unshare")
        .args(["--net", "dockerd", "--bridge=none", "--iptables=false"])
        .arg(format!("--host=unix://{}", at("s")))
        .arg(format!("--data-root={}", at("d")))
        .arg(format!("--exec-root={}", at("x")))
        .arg(format!("--pidfile={}", at("p")))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}

/// An image by hand from one engine to another, which reaches no registry.
async fn hand_over(image: &PulledImage, to: &Path) {
    let first = engine_at(&engine_socket());
    let second = Docker::connect_with_unix(&to.display().to_string(), 60, API_DEFAULT_VERSION)
        .unwrap()
        .negotiate_version()
        .await
        .unwrap();
    let layers: Vec<_> = first.export_image(&image.id).collect().await;
    let layers = futures::stream::iter(layers);
    let options = ImportImageOptionsBuilder::default().build();
    let said: Vec<_> = second
        .import_image_stream(options, layers, None)
        .try_collect()
        .await
        .unwrap();
    assert!(!said.is_empty());
}

async fn event(watch: &mut EventWatch) -> ContainerEvent {
    let next = tokio::time::timeout(Duration::from_secs(60), watch.next());
    next.await
        .expect("an event comes")
        .expect("the watch lives")
}

#[tokio::test]
async fn the_watch_outlives_the_engine_and_lists_what_is_left() {
    let Some(first) = bench().await else { return };
    let (image, pulled) = first.image("feira-demo").await;
    let folder = tempfile::Builder::new()
        .prefix("fe")
        .tempdir_in("/tmp")
        .unwrap();
    let Some(mut engine) = Engine::start_in(folder) else {
        return;
    };
    engine.wait_up().await;
    let bench = bench_at(&engine.socket()).await.unwrap();
    hand_over(&pulled, &engine.socket()).await;
    let spec = spec(image, &[]);
    bench.runtime.create(&spec, &pulled).await.unwrap();
    bench.runtime.start(spec.lease).await.unwrap();
    let mut watch = bench.runtime.watch();
    let ContainerEvent::Listed(listed) = event(&mut watch).await else {
        panic!("no list")
    };
    assert!(matches!(listed[0].state, RunState::Running { .. }));

    engine.stop();
    while !matches!(event(&mut watch).await, ContainerEvent::EngineLost { .. }) {}
    assert!(bench.runtime.containers().await.is_err());

    engine.start();
    let listed = loop {
        if let ContainerEvent::Listed(listed) = event(&mut watch).await {
            break listed;
        }
    };
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].lease, spec.lease);
    assert!(
        matches!(listed[0].state, RunState::Exited(_)),
        "{:?}",
        listed[0].state
    );

    // It can run again, with the disk that it had.
    bench.runtime.start(spec.lease).await.unwrap();
    bench.runtime.remove(spec.lease).await.unwrap();
}

#[tokio::test]
async fn an_engine_that_comes_after_the_agent_is_used_when_it_is_there() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let late = LateDocker::connect(&socket, bench.host).await.unwrap();
    let mut watch = late.watch();
    let first = watch.next().await;
    assert!(
        matches!(first, Some(ContainerEvent::EngineLost { .. })),
        "{first:?}"
    );
    let error = late.facts().await.unwrap_err();
    assert!(matches!(error, RuntimeError::Unreachable { .. }), "{error}");
    std::os::unix::fs::symlink(engine_socket(), &socket).unwrap();
    loop {
        match watch.next().await {
            Some(ContainerEvent::EngineLost { .. }) => {}
            Some(ContainerEvent::Listed(found)) => break assert!(found.is_empty()),
            other => panic!("{other:?}"),
        }
    }
    assert!(late.facts().await.is_ok());
    assert!(late.containers().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_lost_journal_is_not_taken_for_a_new_one_while_containers_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("host");
    let feira_host = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_feira-host"));
        command.args(arguments).arg("--data").arg(&data);
        command.output().unwrap()
    };
    let made = feira_host(&["init", "--json"]);
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let host: HostId = made["host"].as_str().unwrap().parse().unwrap();
    let Some(bench) = bench_of(&engine_socket(), host).await else {
        return;
    };
    let spec = bench.created("feira-demo", &[]).await;
    let refused = feira_host(&["run"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("it was lost or emptied"), "{said}");
    assert!(said.contains("docker rm --force"), "{said}");
    assert!(bench.runtime.inspect(spec.lease).await.unwrap().is_some());
}
