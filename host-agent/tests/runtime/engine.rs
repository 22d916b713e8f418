//! A real engine and registry for tests: found, or loudly skipped where there is none and nobody insists.
//!
//! Each test is a host of its own on the engine, so tests run side by side, and whatever a test leaves
//! behind goes with it.

#![expect(clippy::print_stderr, reason = "a skipped test must be seen")]

use std::path::{Path, PathBuf};

use bollard::{API_DEFAULT_VERSION, Docker};
use host_agent::runtime::docker::{DEFAULT_SOCKET, DockerRuntime};
use host_agent::runtime::{ContainerSpec, PulledImage, Runtime};
use protocol::bounded::{List, Text};
use protocol::ids::{BrokerId, HostId, LeaseId};
use protocol::job::{Job, PinnedImage};
use protocol::machine::ContainerNetwork;
use protocol::units::{Bytes, Seconds};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

pub(crate) const MIB: u64 = 1 << 20;

/// An engine with a host of this test's own.
pub(crate) struct Bench {
    pub(crate) runtime: DockerRuntime,
    pub(crate) host: HostId,
    pub(crate) socket: PathBuf,
}

/// The engine, or nothing where there is none and the test may be skipped.
pub(crate) async fn bench() -> Option<Bench> {
    bench_at(&engine_socket()).await
}

/// The socket of the machine's engine: where `DOCKER_HOST` says, or where engines usually are.
pub(crate) fn engine_socket() -> PathBuf {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests are told by scripts where the engine is"
    )]
    let host = std::env::var("DOCKER_HOST").unwrap_or_default();
    PathBuf::from(host.strip_prefix("unix://").unwrap_or(DEFAULT_SOCKET))
}

pub(crate) async fn bench_at(socket: &Path) -> Option<Bench> {
    bench_of(socket, HostId::from_bytes(rand::random())).await
}

/// The engine's own interface.
pub(crate) fn engine_at(socket: &Path) -> Docker {
    Docker::connect_with_unix(&socket.display().to_string(), 60, API_DEFAULT_VERSION).unwrap()
}

/// The same for a host that is there already.
pub(crate) async fn bench_of(socket: &Path, host: HostId) -> Option<Bench> {
    match DockerRuntime::connect(socket, host).await {
        Ok(runtime) => Some(Bench {
            runtime,
            host,
            socket: socket.to_owned(),
        }),
        Err(error) => {
            assert!(
                std::env::var_os("CI").is_none(),
                "no engine for the tests: {error}"
            );
            eprintln!("SKIPPED, and nothing was tested: {error}");
            None
        }
    }
}

impl Bench {
    /// The engine behind the agent's back.
    pub(crate) fn docker(&self) -> Docker {
        engine_at(&self.socket)
    }

    /// One of the test images, by digest, in the engine.
    pub(crate) async fn image(&self, name: &str) -> (PinnedImage, PulledImage) {
        let image = pinned(name).await;
        let (sender, _progress) = mpsc::channel(8);
        let disk = Bytes(u64::MAX);
        let pulled = self.runtime.pull(&image, disk, sender).await.unwrap();
        (image, pulled)
    }

    /// A started container of `name` that runs `command`.
    pub(crate) async fn started(&self, name: &str, command: &[&str]) -> ContainerSpec {
        let spec = self.created(name, command).await;
        self.runtime.start(spec.lease).await.unwrap();
        spec
    }

    pub(crate) async fn created(&self, name: &str, command: &[&str]) -> ContainerSpec {
        let (image, pulled) = self.image(name).await;
        let spec = spec(image, command);
        self.runtime.create(&spec, &pulled).await.unwrap();
        spec
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let (socket, host) = (self.socket.clone(), self.host);
        let cleaning = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let Ok(runtime) = DockerRuntime::connect(&socket, host).await else {
                    return;
                };
                for container in runtime.containers().await.unwrap_or_default() {
                    let _tried = runtime.remove(container.lease).await;
                    let _left = std::fs::remove_dir_all(notices(container.lease));
                }
            });
        });
        let _ended = cleaning.join();
    }
}

pub(crate) fn lease() -> LeaseId {
    LeaseId::from_bytes(rand::random())
}

/// The folder of a lease's notices, as an agent makes it before the container.
fn notices(lease: LeaseId) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("notices-{lease}"));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub(crate) fn spec(image: PinnedImage, command: &[&str]) -> ContainerSpec {
    let words = command.iter().map(|word| Text::new(*word).unwrap());
    let lease = lease();
    ContainerSpec {
        lease,
        broker: BrokerId::from_bytes([3; 32]),
        epoch: 7,
        run: 1,
        job: Job {
            image,
            entrypoint: None,
            command: (!command.is_empty()).then(|| List::first(words)),
            environment: List::default(),
        },
        gpus: List::default(),
        cpu_millicores: 500,
        ram: Bytes(256 * MIB),
        shared_memory: Bytes(64 * MIB),
        disk: Bytes(1024 * MIB),
        network: ContainerNetwork::None,
        stop_grace: Seconds(5),
        notices: notices(lease),
    }
}

pub(crate) fn registry() -> String {
    let found = std::env::var_os("FEIRA_TEST_REGISTRY").and_then(|value| value.into_string().ok());
    found.unwrap_or_else(|| "127.0.0.1:5000".to_owned())
}

/// The image `name:1` of the test registry by its digest.
pub(crate) async fn pinned(name: &str) -> PinnedImage {
    let registry = registry();
    let mut stream = TcpStream::connect(&registry)
        .await
        .expect("the test registry answers");
    let request = format!(
        "HEAD /v2/{name}/manifests/1 HTTP/1.1\r\nHost: {registry}\r\nConnection: close\r\n\
         Accept: application/vnd.oci.image.manifest.v1+json\r\n\
         Accept: application/vnd.oci.image.index.v1+json\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let digest = answer
        .lines()
        .find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("docker-content-digest: ")
                .map(str::to_owned)
        })
        .unwrap_or_else(|| panic!("the registry has no {name}:1: run scripts/images.sh\n{answer}"));
    format!("{registry}/{name}@{}", digest.trim())
        .parse()
        .unwrap()
}
