//! Containers from creation to removal. Each step finds its container by name, can be repeated, and leaves
//! nothing half done that the same step would not finish.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use bollard::models::{
    ContainerInspectResponse, ContainerState, ContainerStateStatusEnum, ContainerSummary,
    MountPoint, NetworkCreateRequest,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, InspectContainerOptions, KillContainerOptionsBuilder,
    ListContainersOptionsBuilder, RemoveContainerOptionsBuilder, StartContainerOptions,
    StopContainerOptionsBuilder,
};
use futures::{StreamExt, TryStreamExt};
use protocol::ids::{HostId, LeaseId};
use protocol::lease::{Problem, ProblemKind, Stage};
use protocol::machine::ContainerNetwork;
use protocol::units::{Seconds, Timestamp};

use super::super::gpus::way::is_drivers;
use super::super::logs::read_time;
use super::super::sandbox::{
    LABEL_BROKER, LABEL_EPOCH, LABEL_HOST, LABEL_LEASE, LABEL_RUN, NOTICES_PATH, container_body,
    container_name, problem,
};
use super::super::{
    Container, ContainerId, ContainerSpec, Exit, PulledImage, RunState, RuntimeError, StartedAt,
    Traffic,
};
use super::{DockerRuntime, failures, gpus, kept, program, traffic};

/// Inspections at once when all containers are wanted.
const INSPECTIONS_MAX: usize = 8;
/// How long the engine may take to finish a removal that it began.
const REMOVAL_CHECKS_MAX: u32 = 300;
const REMOVAL_CHECK_EVERY: Duration = Duration::from_millis(100);

pub(super) async fn list(runtime: &DockerRuntime) -> Result<Vec<Container>, RuntimeError> {
    let label = format!("{LABEL_HOST}={}", runtime.host);
    let options = ListContainersOptionsBuilder::default()
        .all(true)
        .filters(&HashMap::from([("label".to_owned(), vec![label])]))
        .build();
    let failed = runtime.failed("list the containers");
    let found = runtime
        .docker
        .list_containers(Some(options))
        .await
        .map_err(failed)?;
    let names = |summary: &ContainerSummary| {
        let names = summary.names.clone().unwrap_or_default();
        names.into_iter().next().unwrap_or_default()
    };
    let all: BTreeSet<String> = found.iter().map(names).collect();
    // One that stepped aside counts as long as its successor is not there.
    let is_current = |summary: &ContainerSummary| {
        let name = names(summary);
        kept::stands_for(&name).is_none_or(|of| !all.contains(of))
    };
    let found = found.into_iter().filter(is_current);
    let ids = found.filter_map(|summary| summary.id);
    // A list does not say when one started or how it ended. One that vanished meanwhile is left out.
    let containers: Vec<Option<Container>> = futures::stream::iter(ids)
        .map(|id| async move { inspect_named(runtime, &id).await })
        .buffered(INSPECTIONS_MAX)
        .try_collect()
        .await?;
    Ok(containers.into_iter().flatten().collect())
}

pub(super) async fn inspect(
    runtime: &DockerRuntime,
    lease: LeaseId,
) -> Result<Option<Container>, RuntimeError> {
    inspect_named(runtime, &container_name(lease)).await
}

async fn inspect_named(
    runtime: &DockerRuntime,
    name: &str,
) -> Result<Option<Container>, RuntimeError> {
    let Some(found) = look(runtime, name).await? else {
        return Ok(None);
    };
    let has_network = traffic::has_network(&found);
    let Some(mut container) = read(found, runtime.host) else {
        return Ok(None);
    };
    if has_network && matches!(container.state, RunState::Running { .. }) {
        container.traffic = traffic::ask(runtime, &container.id).await?;
    }
    Ok(Some(container))
}

/// What the engine says of a container, if there is one.
pub(super) async fn look(
    runtime: &DockerRuntime,
    name: &str,
) -> Result<Option<ContainerInspectResponse>, RuntimeError> {
    match runtime
        .docker
        .inspect_container(name, None::<InspectContainerOptions>)
        .await
    {
        Ok(found) => Ok(Some(found)),
        Err(error) if failures::status(&error) == Some(404) => Ok(None),
        Err(error) => Err(runtime.failed("look at the container")(error)),
    }
}

/// The container if it is one of this host's: by its labels, never by its name alone.
fn read(found: ContainerInspectResponse, host: HostId) -> Option<Container> {
    let labels = found.config?.labels?;
    if labels.get(LABEL_HOST)? != &host.to_string() {
        return None;
    }
    Some(Container {
        lease: labels.get(LABEL_LEASE)?.parse().ok()?,
        broker: labels.get(LABEL_BROKER)?.parse().ok()?,
        epoch: labels.get(LABEL_EPOCH)?.parse().ok()?,
        run: labels.get(LABEL_RUN)?.parse().ok()?,
        id: ContainerId(found.id?),
        state: run_state(&found.state?),
        traffic: Traffic::default(),
    })
}

fn run_state(state: &ContainerState) -> RunState {
    use ContainerStateStatusEnum as Status;
    match state.status {
        Some(Status::CREATED | Status::EMPTY) | None => RunState::Created,
        Some(Status::RUNNING | Status::RESTARTING | Status::STOPPING) => RunState::Running {
            since: time(state.started_at.as_ref()),
        },
        Some(Status::PAUSED) => RunState::Paused {
            since: time(state.started_at.as_ref()),
        },
        Some(Status::EXITED) if started_never(state) => RunState::Created,
        Some(Status::EXITED) => RunState::Exited(exit(state)),
        Some(Status::REMOVING | Status::DEAD) => RunState::Removing,
    }
}

/// A container whose start failed is "exited" with the engine, and has never run.
fn started_never(state: &ContainerState) -> bool {
    time(state.started_at.as_ref()) == Timestamp(0)
}

/// The engine's flag for memory is for the first process alone, which here is an init that survives; so the
/// watch adds what it heard (`watch`).
fn exit(state: &ContainerState) -> Exit {
    Exit {
        code: state
            .exit_code
            .and_then(|code| i32::try_from(code).ok())
            .unwrap_or(-1),
        out_of_memory: state.oom_killed == Some(true),
        started: time(state.started_at.as_ref()),
        finished: time(state.finished_at.as_ref()),
    }
}

fn time(text: Option<&String>) -> Timestamp {
    text.and_then(|text| read_time(text)).unwrap_or_default()
}

pub(super) async fn create(
    runtime: &DockerRuntime,
    spec: &ContainerSpec,
    image: &PulledImage,
) -> Result<ContainerId, Problem> {
    let injection = gpus::ways(runtime, spec).await?;
    let is_with_gpus = injection.given.is_some();
    let base = if is_with_gpus {
        kept::make_way(runtime, spec, &injection).await?;
        &kept::base(runtime, spec.lease, image).await?
    } else {
        image
    };
    let body = container_body(spec, base, &runtime.facts, runtime.host, &injection)?;
    if spec.network == ContainerNetwork::Bridge {
        create_network(runtime, spec.lease).await?;
    }
    let name = container_name(spec.lease);
    let options = CreateContainerOptionsBuilder::default().name(&name).build();
    match runtime.docker.create_container(Some(options), body).await {
        Ok(created) => {
            if !image.config.volumes.is_empty() {
                refuse_volumes(runtime, spec.lease).await?;
            }
            if is_with_gpus {
                let tidied = kept::tidy(runtime, spec.lease).await;
                tidied.map_err(|error| failed(&error))?;
            }
            Ok(ContainerId(created.id))
        }
        // Made before, perhaps by this agent before a crash.
        Err(error) if failures::status(&error) == Some(409) => {
            let found = inspect(runtime, spec.lease)
                .await
                .map_err(|error| failed(&error))?;
            found
                .filter(|found| found.lease == spec.lease)
                .map(|found| found.id)
                .ok_or_else(|| {
                    let said = format!("another container has the name {name}");
                    problem(Stage::Creating, ProblemKind::EngineFailed, &said)
                })
        }
        Err(error) => Err(failures::of_create(&error)),
    }
}

fn failed(error: &RuntimeError) -> Problem {
    problem(
        Stage::Creating,
        ProblemKind::EngineFailed,
        &error.to_string(),
    )
}

/// Every volume of the image should have been covered. One that was not would outlive the lease.
async fn refuse_volumes(runtime: &DockerRuntime, lease: LeaseId) -> Result<(), Problem> {
    let found = look(runtime, &container_name(lease))
        .await
        .map_err(|error| failed(&error))?;
    let mounts = found.and_then(|found| found.mounts).unwrap_or_default();
    let is_of_the_image = |mount: &&MountPoint| {
        let path = mount.destination.as_deref().unwrap_or_default();
        path != NOTICES_PATH && !is_drivers(path)
    };
    let Some(mount) = mounts.iter().find(is_of_the_image) else {
        return Ok(());
    };
    let path = mount.destination.clone().unwrap_or_default();
    let said = format!("the image's volume {path} could not be covered");
    remove(runtime, lease)
        .await
        .map_err(|error| failed(&error))?;
    Err(problem(Stage::Creating, ProblemKind::ImageUnusable, &said))
}

/// A bridge of the lease's own, on which nothing else is and nothing talks to a neighbour.
async fn create_network(runtime: &DockerRuntime, lease: LeaseId) -> Result<(), Problem> {
    let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let request = NetworkCreateRequest {
        name: container_name(lease),
        driver: Some("bridge".to_owned()),
        attachable: Some(false),
        internal: Some(false),
        enable_ipv6: Some(false),
        options: Some(HashMap::from([option(
            "com.docker.network.bridge.enable_icc",
            "false",
        )])),
        labels: Some(HashMap::from([
            option(LABEL_LEASE, &lease.to_string()),
            option(LABEL_HOST, &runtime.host.to_string()),
        ])),
        ..NetworkCreateRequest::default()
    };
    match runtime.docker.create_network(request).await {
        Ok(_) => Ok(()),
        Err(error) if failures::status(&error) == Some(409) => Ok(()),
        Err(error) => {
            let said = failures::words(&error);
            Err(problem(Stage::Creating, ProblemKind::EngineFailed, &said))
        }
    }
}

pub(super) async fn start(runtime: &DockerRuntime, lease: LeaseId) -> Result<StartedAt, Problem> {
    let name = container_name(lease);
    let options = None::<StartContainerOptions>;
    let started = match runtime.docker.start_container(&name, options).await {
        // One that is paused is there, and only has to go on.
        Err(error) if failures::status(&error) == Some(409) => {
            runtime.docker.unpause_container(&name).await
        }
        started => started,
    };
    started.map_err(|error| failures::of_start(&error))?;
    program::wait_started(runtime, lease).await
}

pub(super) async fn terminate(runtime: &DockerRuntime, lease: LeaseId) -> Result<(), RuntimeError> {
    let options = KillContainerOptionsBuilder::default()
        .signal("SIGTERM")
        .build();
    match runtime
        .docker
        .kill_container(&container_name(lease), Some(options))
        .await
    {
        Ok(()) => Ok(()),
        // It does not run, or is not there.
        Err(error) if matches!(failures::status(&error), Some(404 | 409)) => Ok(()),
        Err(error) => Err(runtime.failed("send a signal to the container")(error)),
    }
}

pub(super) async fn stop(
    runtime: &DockerRuntime,
    lease: LeaseId,
    grace: Seconds,
) -> Result<(), RuntimeError> {
    let seconds = i32::try_from(grace.0).unwrap_or(i32::MAX);
    let options = StopContainerOptionsBuilder::default().t(seconds).build();
    // The engine answers when it is done, after the grace at the latest.
    let patience = Duration::from_secs(grace.0) + super::ANSWER_TIMEOUT;
    let docker = runtime.docker.clone().with_timeout(patience);
    match docker
        .stop_container(&container_name(lease), Some(options))
        .await
    {
        Ok(()) => Ok(()),
        Err(error) if matches!(failures::status(&error), Some(304 | 404)) => Ok(()),
        Err(error) => Err(runtime.failed("stop the container")(error)),
    }
}

pub(super) async fn remove(runtime: &DockerRuntime, lease: LeaseId) -> Result<(), RuntimeError> {
    let name = container_name(lease);
    let options = RemoveContainerOptionsBuilder::default()
        .v(true)
        .force(true)
        .build();
    match runtime.docker.remove_container(&name, Some(options)).await {
        Ok(()) => {}
        Err(error) if failures::status(&error) == Some(404) => {}
        Err(error) if failures::status(&error) == Some(409) => wait_removed(runtime, &name).await?,
        Err(error) => return Err(runtime.failed("remove the container")(error)),
    }
    kept::remove(runtime, lease).await?;
    match runtime.docker.remove_network(&name).await {
        Ok(()) => Ok(()),
        Err(error) if failures::status(&error) == Some(404) => Ok(()),
        Err(error) => Err(runtime.failed("remove the network")(error)),
    }
}

/// Somebody else's removal is under way.
async fn wait_removed(runtime: &DockerRuntime, name: &str) -> Result<(), RuntimeError> {
    for _ in 0..REMOVAL_CHECKS_MAX {
        if look(runtime, name).await?.is_none() {
            return Ok(());
        }
        tokio::time::sleep(REMOVAL_CHECK_EVERY).await;
    }
    let detail = "its removal began and does not end".to_owned();
    Err(RuntimeError::Failed {
        what: "remove the container",
        detail,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(status: ContainerStateStatusEnum, started: &str) -> ContainerState {
        ContainerState {
            status: Some(status),
            exit_code: Some(137),
            oom_killed: Some(true),
            started_at: Some(started.to_owned()),
            finished_at: Some("1970-01-01T00:00:02Z".to_owned()),
            ..ContainerState::default()
        }
    }

    #[test]
    fn the_engines_states_are_four() {
        use ContainerStateStatusEnum as Status;
        let at = "1970-01-01T00:00:01.5Z";
        let exit = Exit {
            code: 137,
            out_of_memory: true,
            started: Timestamp(1500),
            finished: Timestamp(2000),
        };
        let since = Timestamp(1500);
        assert_eq!(
            run_state(&state(Status::RUNNING, at)),
            RunState::Running { since }
        );
        assert_eq!(
            run_state(&state(Status::EXITED, at)),
            RunState::Exited(exit)
        );
        assert_eq!(
            run_state(&state(Status::EXITED, "0001-01-01T00:00:00Z")),
            RunState::Created
        );
        assert_eq!(run_state(&state(Status::DEAD, at)), RunState::Removing);
    }
}
