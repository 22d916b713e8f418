//! Pulling an image by digest, and what is checked of it before a container is made from it.

use std::pin::pin;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{CreateImageInfo, ImageInspect};
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::{Stream, StreamExt};
use protocol::job::PinnedImage;
use protocol::lease::{Problem, ProblemKind, Stage};
use protocol::units::Bytes;
use tokio::sync::mpsc;

use super::super::sandbox::{check_size, problem};
use super::super::{ImageConfig, PullProgress, PulledImage};
use super::pull_meter::PullMeter;
use super::{DockerRuntime, failures};

/// At most two messages a second cross to a broker.
const REPORT_EVERY: Duration = Duration::from_millis(500);
/// Reports without a word of the engine after which the registry is taken for dead: five minutes.
const QUIET_REPORTS_MAX: u32 = 600;

/// One call when the image is there; else the pull, and one call after it.
pub(super) async fn pull(
    runtime: &DockerRuntime,
    image: &PinnedImage,
    disk: Bytes,
    progress: mpsc::Sender<PullProgress>,
) -> Result<PulledImage, Problem> {
    let reference = image.to_string();
    let found = match runtime.docker.inspect_image(&reference).await {
        Ok(found) => found,
        Err(error) if failures::status(&error) == Some(404) => {
            fetch(runtime, image, disk, progress).await?;
            let missing = |error| failures::of_pull(&error);
            runtime
                .docker
                .inspect_image(&reference)
                .await
                .map_err(missing)?
        }
        Err(error) => {
            let said = failures::of_engine(&runtime.socket, "look for the image", &error);
            return Err(problem(
                Stage::Pulling,
                ProblemKind::EngineFailed,
                &said.to_string(),
            ));
        }
    };
    let pulled = check(image, found)?;
    check_size(pulled.size, disk)?;
    Ok(pulled)
}

async fn fetch(
    runtime: &DockerRuntime,
    image: &PinnedImage,
    disk: Bytes,
    progress: mpsc::Sender<PullProgress>,
) -> Result<(), Problem> {
    let options = CreateImageOptionsBuilder::default()
        .from_image(&image.name)
        .tag(&image.digest())
        .build();
    // The engine itself joins pulls of one layer, so two leases of one image fetch it once.
    let messages = runtime.docker.create_image(Some(options), None, None);
    follow(messages, disk, progress).await
}

/// Reads the engine's messages to their end: a pull whose messages are not read is given up by the engine.
async fn follow(
    messages: impl Stream<Item = Result<CreateImageInfo, Error>>,
    disk: Bytes,
    progress: mpsc::Sender<PullProgress>,
) -> Result<(), Problem> {
    let mut messages = pin!(messages);
    let mut meter = PullMeter::default();
    let mut reported = PullProgress::default();
    let mut reports = tokio::time::interval(REPORT_EVERY);
    let mut quiet = 0;
    loop {
        tokio::select! {
            _ = reports.tick() => {
                quiet += 1;
                if quiet > QUIET_REPORTS_MAX {
                    let said = "the registry sent nothing for five minutes";
                    return Err(problem(Stage::Pulling, ProblemKind::RegistryDown, said));
                }
                let current = meter.progress();
                if current != reported {
                    reported = current;
                    // A reader that is behind gets a later one.
                    let _full = progress.try_send(current);
                }
            }
            message = messages.next() => match message {
                None => return Ok(()),
                Some(Err(error)) => return Err(failures::of_pull(&error)),
                Some(Ok(message)) => {
                    quiet = 0;
                    note(&mut meter, &message, disk)?;
                }
            }
        }
    }
}

/// What is packed is not larger than what it unpacks to: a pull that cannot fit is given up early.
fn note(meter: &mut PullMeter, message: &CreateImageInfo, disk: Bytes) -> Result<(), Problem> {
    if let Some(detail) = &message.error_detail {
        let error = detail.message.clone().unwrap_or_default();
        return Err(failures::of_pull(&Error::DockerStreamError { error }));
    }
    meter.note(message);
    check_size(meter.progress().total, disk)
}

/// That the engine's image is the one that was asked for, as the container will be made from its id.
fn check(image: &PinnedImage, found: ImageInspect) -> Result<PulledImage, Problem> {
    let digest = image.digest();
    let digests = found.repo_digests.unwrap_or_default();
    let matches = |known: &String| known.rsplit_once('@').is_some_and(|(_, of)| of == digest);
    if !digests.iter().any(matches) {
        let said = format!(
            "the engine has {} under the name of {digest}",
            digests.join(", ")
        );
        return Err(problem(Stage::Pulling, ProblemKind::DigestMismatch, &said));
    }
    let id = found
        .id
        .filter(|id| id.starts_with("sha256:"))
        .ok_or_else(|| {
            problem(
                Stage::Pulling,
                ProblemKind::EngineFailed,
                "the engine gave the image no id",
            )
        })?;
    let size = found
        .size
        .and_then(|size| u64::try_from(size).ok())
        .unwrap_or(0);
    let config = found.config.unwrap_or_default();
    Ok(PulledImage {
        id,
        size: Bytes(size),
        config: ImageConfig {
            environment: config.env.unwrap_or_default(),
            entrypoint: config.entrypoint.unwrap_or_default(),
            command: config.cmd.unwrap_or_default(),
            working_directory: config.working_dir.unwrap_or_default(),
            volumes: config.volumes.unwrap_or_default(),
            labels: config.labels.unwrap_or_default().into_iter().collect(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(digest: &str) -> ImageInspect {
        ImageInspect {
            id: Some("sha256:0a".to_owned()),
            repo_digests: Some(vec![digest.to_owned()]),
            size: Some(5),
            ..ImageInspect::default()
        }
    }

    #[test]
    fn another_digest_under_the_name_is_refused() {
        let image: PinnedImage = format!("r/demo@sha256:{}", "0a".repeat(32))
            .parse()
            .unwrap();
        let good = found(&format!("demo@sha256:{}", "0a".repeat(32)));
        assert_eq!(check(&image, good).unwrap().size, Bytes(5));
        let bad = found(&format!("demo@sha256:{}", "0b".repeat(32)));
        assert_eq!(
            check(&image, bad).unwrap_err().kind,
            ProblemKind::DigestMismatch
        );
    }

    #[tokio::test]
    async fn a_pull_that_cannot_fit_is_given_up_before_its_end() {
        let message = CreateImageInfo {
            id: Some("a".to_owned()),
            status: Some("Downloading".to_owned()),
            progress_detail: Some(bollard::models::ProgressDetail {
                current: Some(1),
                total: Some(1000),
            }),
            ..CreateImageInfo::default()
        };
        let endless = futures::stream::once(std::future::ready(Ok(message)))
            .chain(futures::stream::pending());
        let (sender, _receiver) = mpsc::channel(1);
        let problem = follow(endless, Bytes(1000), sender).await.unwrap_err();
        assert_eq!(problem.kind, ProblemKind::ImageTooBig);
    }
}
