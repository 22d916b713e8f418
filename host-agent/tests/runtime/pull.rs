//! Pulls from real and from lying registries: what arrives, and each way in which nothing does.

use std::time::Duration;

use crate::engine::{bench, pinned, registry};
use host_agent::runtime::{PullProgress, PulledImage, Runtime};
use protocol::job::PinnedImage;
use protocol::lease::{Problem, ProblemKind, Stage};
use protocol::units::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

const DISK: Bytes = Bytes(1_000_000_000);

async fn pull(image: &PinnedImage, disk: Bytes) -> Option<Result<PulledImage, Problem>> {
    let bench = bench().await?;
    let (sender, _progress) = mpsc::channel(8);
    Some(bench.runtime.pull(image, disk, sender).await)
}

async fn kind(image: &PinnedImage, disk: Bytes) -> Option<(Stage, ProblemKind, String)> {
    let problem = pull(image, disk).await?.unwrap_err();
    Some((problem.stage, problem.kind, problem.detail.to_string()))
}

fn of_registry(address: &str, seed: u8) -> PinnedImage {
    format!(
        "{address}/feira-lie@sha256:{}",
        format!("{seed:02x}").repeat(32)
    )
    .parse()
    .unwrap()
}

#[tokio::test]
async fn an_image_and_an_index_arrive_with_their_settings() {
    let Some(bench) = bench().await else { return };
    let (_, demo) = bench.image("feira-demo").await;
    assert!(
        demo.id.starts_with("sha256:") && demo.size > Bytes(500_000),
        "{demo:?}"
    );
    assert_eq!(demo.config.command, ["/bin/feira-demo"]);
    let (_, by_index) = bench.image("feira-index").await;
    assert_eq!(by_index.id, demo.id);
    let (_, volume) = bench.image("feira-volume").await;
    assert_eq!(volume.config.volumes, ["/var/data"]);
}

#[tokio::test]
async fn two_pulls_at_once_both_arrive_and_progress_only_grows() {
    let Some(bench) = bench().await else { return };
    let image = pinned("feira-big").await;
    let docker = bench.docker();
    let remove = bollard::query_parameters::RemoveImageOptionsBuilder::default()
        .force(true)
        .build();
    let _absent = docker
        .remove_image(&image.to_string(), Some(remove), None)
        .await;

    let (sender, mut progress) = mpsc::channel(1000);
    let (other, _unread) = mpsc::channel(1);
    let (first, second) = tokio::join!(
        bench.runtime.pull(&image, DISK, sender),
        bench.runtime.pull(&image, DISK, other),
    );
    assert_eq!(first.unwrap().id, second.unwrap().id);
    let mut last = PullProgress::default();
    while let Some(next) = progress.recv().await {
        assert!(next.done >= last.done && next.total >= last.total && next.done <= next.total);
        last = next;
    }
}

#[tokio::test]
async fn an_unknown_image_is_said() {
    let image = of_registry(&registry(), 0xaa);
    let Some((stage, kind, said)) = kind(&image, DISK).await else {
        return;
    };
    assert_eq!(
        (stage, kind),
        (Stage::Pulling, ProblemKind::ImageUnknown),
        "{said}"
    );
}

#[tokio::test]
async fn a_registry_that_is_down_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let Some((_, kind, said)) = kind(&of_registry(&address, 0xab), DISK).await else {
        return;
    };
    assert_eq!(kind, ProblemKind::RegistryDown, "{said}");
}

/// A registry that answers every request for a manifest with `status`, `headers` and `body`.
async fn lying_registry(
    status: &'static str,
    headers: &'static str,
    body: &'static str,
) -> (String, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serve = async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 8192];
                let read = stream.read(&mut request).await.unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let (status, headers, body) = if request.contains("/manifests/") {
                    (status, headers, body)
                } else {
                    ("200 OK", "", "{}")
                };
                let body_sent = if request.starts_with("HEAD") {
                    ""
                } else {
                    body
                };
                let answer = format!(
                    "HTTP/1.1 {status}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body_sent}",
                    body.len()
                );
                let _gone = stream.write_all(answer.as_bytes()).await;
            });
        }
    };
    (address, AbortOnDropHandle::new(tokio::spawn(serve)))
}

#[tokio::test]
async fn other_bytes_than_the_digest_names_are_refused() {
    let manifest = r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","size":2,"digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},"layers":[]}"#;
    let headers = "Content-Type: application/vnd.oci.image.manifest.v1+json\r\n";
    let (address, _registry) = lying_registry("200 OK", headers, manifest).await;
    let Some((_, kind, said)) = kind(&of_registry(&address, 0xac), DISK).await else {
        return;
    };
    assert_eq!(kind, ProblemKind::DigestMismatch, "{said}");
}

#[tokio::test]
async fn a_registry_that_wants_a_login_is_said() {
    let headers = "WWW-Authenticate: Basic realm=\"feira\"\r\nContent-Type: application/json\r\n";
    let body = r#"{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}"#;
    let (address, _registry) = lying_registry("401 Unauthorized", headers, body).await;
    let Some((_, kind, said)) = kind(&of_registry(&address, 0xad), DISK).await else {
        return;
    };
    assert_eq!(kind, ProblemKind::ImageRefused, "{said}");
}

#[tokio::test]
async fn an_image_larger_than_the_disk_is_refused_with_both_sizes() {
    let image = pinned("feira-big").await;
    let Some((stage, kind, said)) = kind(&image, Bytes(50_000_000)).await else {
        return;
    };
    assert_eq!((stage, kind), (Stage::Pulling, ProblemKind::ImageTooBig));
    assert!(said.contains("50.0 MB of disk"), "{said}");
}

#[tokio::test]
async fn a_pull_that_is_given_up_harms_nothing() {
    let Some(bench) = bench().await else { return };
    let image = pinned("feira-big").await;
    let (sender, _progress) = mpsc::channel(8);
    let given_up = tokio::time::timeout(
        Duration::from_millis(20),
        bench.runtime.pull(&image, DISK, sender),
    );
    let _late = given_up.await;
    let (_, pulled) = bench.image("feira-big").await;
    assert!(pulled.size > Bytes(300_000_000));
}
