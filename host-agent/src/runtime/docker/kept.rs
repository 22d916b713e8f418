//! A container that is made again for other GPUs than it was made for, with all that it wrote.
//!
//! An engine fixes a container's devices when it makes it, and a slice that was cut again is another device. So what
//! the container wrote becomes an image of this machine's own, and a new container is made from it:
//!
//! ```text
//!   stopped container ─commit─▶ image ─▶ the old one steps aside ─▶ new container ─▶ the old one is removed
//! ```
//!
//! Wherever this breaks off, a container of the lease is there, and the next try finds what is done. What was written
//! before counts as part of the image from then on, and so against the lease's disk as before.

use bollard::models::ContainerConfig;
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, RemoveContainerOptionsBuilder, RemoveImageOptionsBuilder,
    RenameContainerOptionsBuilder,
};
use protocol::ids::LeaseId;
use protocol::lease::{Problem, ProblemKind, Stage};
use protocol::units::Bytes;

use super::super::gpus::way::Injection;
use super::super::sandbox::{container_name, problem};
use super::super::{ContainerSpec, PulledImage, RuntimeError};
use super::{DockerRuntime, failures, gpus, lifecycle};

/// Name of the images, each with its lease as the tag.
const REPOSITORY: &str = "feira-kept";
/// What the name of a container that stepped aside ends with.
const ASIDE: &str = ".old";

fn aside_name(lease: LeaseId) -> String {
    container_name(lease) + ASIDE
}

fn image_name(lease: LeaseId) -> String {
    format!("{REPOSITORY}:{lease}")
}

/// Whether a container of that name stepped aside, and for which.
pub(super) fn stands_for(name: &str) -> Option<&str> {
    name.strip_suffix(ASIDE)
}

/// If the lease's container was made for other GPUs, keeps what it wrote and moves it out of the way.
pub(super) async fn make_way(
    runtime: &DockerRuntime,
    spec: &ContainerSpec,
    injection: &Injection,
) -> Result<(), Problem> {
    let name = container_name(spec.lease);
    let found = lifecycle::look(runtime, &name)
        .await
        .map_err(|error| failed(&error.to_string()))?;
    let wanted = injection.given.as_ref().map(ToString::to_string);
    let is_other = |label: Option<&str>| label != wanted.as_deref();
    if !found.is_some_and(|found| is_other(gpus::label(&found))) {
        return Ok(());
    }
    tracing::info!(lease = %spec.lease.short(), "its GPUs are others than before: the container is made again from its disk");
    lifecycle::stop(runtime, spec.lease, spec.stop_grace)
        .await
        .map_err(|error| failed(&error.to_string()))?;
    let lease = spec.lease.to_string();
    let options = CommitContainerOptionsBuilder::default()
        .container(&name)
        .repo(REPOSITORY)
        .tag(&lease)
        .pause(false)
        .build();
    // It copies what was written, as fast as the disk is.
    let patient = runtime.docker.clone().with_timeout(super::COPY_TIMEOUT);
    let committed = patient.commit_container(options, ContainerConfig::default());
    committed
        .await
        .map_err(|error| failed(&failures::words(&error)))?;
    let aside = aside_name(spec.lease);
    // One that stepped aside before is older than what was just kept.
    remove_container(runtime, &aside)
        .await
        .map_err(|error| failed(&error.to_string()))?;
    let options = RenameContainerOptionsBuilder::default()
        .name(&aside)
        .build();
    let renamed = runtime.docker.rename_container(&name, options).await;
    renamed.map_err(|error| failed(&failures::words(&error)))
}

/// What the lease's container is made from: what was kept, or else the image.
pub(super) async fn base(
    runtime: &DockerRuntime,
    lease: LeaseId,
    image: &PulledImage,
) -> Result<PulledImage, Problem> {
    match runtime.docker.inspect_image(&image_name(lease)).await {
        Ok(found) => {
            let size = found.size.and_then(|size| u64::try_from(size).ok());
            let id = found.id.filter(|id| id.starts_with("sha256:"));
            Ok(PulledImage {
                id: id.ok_or_else(|| failed("the engine gave the kept disk no id"))?,
                size: size.map_or(image.size, Bytes),
                config: image.config.clone(),
            })
        }
        Err(error) if failures::status(&error) == Some(404) => Ok(image.clone()),
        Err(error) => Err(failed(&failures::words(&error))),
    }
}

/// Removes the container that stepped aside, if there is one: its successor is there.
pub(super) async fn tidy(runtime: &DockerRuntime, lease: LeaseId) -> Result<(), RuntimeError> {
    remove_container(runtime, &aside_name(lease)).await
}

/// Removes all that was kept of a lease.
pub(super) async fn remove(runtime: &DockerRuntime, lease: LeaseId) -> Result<(), RuntimeError> {
    remove_container(runtime, &aside_name(lease)).await?;
    let options = RemoveImageOptionsBuilder::default().force(true).build();
    let name = image_name(lease);
    match runtime
        .docker
        .remove_image(&name, Some(options), None)
        .await
    {
        Ok(_) => Ok(()),
        Err(error) if failures::status(&error) == Some(404) => Ok(()),
        Err(error) => Err(runtime.failed("remove the kept disk")(error)),
    }
}

async fn remove_container(runtime: &DockerRuntime, name: &str) -> Result<(), RuntimeError> {
    let options = RemoveContainerOptionsBuilder::default()
        .v(true)
        .force(true)
        .build();
    match runtime.docker.remove_container(name, Some(options)).await {
        Ok(()) => Ok(()),
        Err(error) if failures::status(&error) == Some(404) => Ok(()),
        Err(error) => Err(runtime.failed("remove the old container")(error)),
    }
}

fn failed(said: &str) -> Problem {
    problem(Stage::Creating, ProblemKind::EngineFailed, said)
}
