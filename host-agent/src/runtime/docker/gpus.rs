//! GPUs of a container on the real engine: how they are given, and whether they are seen inside once it runs.

use std::io;

use bollard::models::ContainerInspectResponse;
use protocol::lease::{Problem, ProblemKind, Stage};

use super::super::ContainerSpec;
use super::super::gpus::given::{Expected, Given};
use super::super::gpus::host::{HostGpus, Node};
use super::super::gpus::inside;
use super::super::gpus::way::{Injection, injection};
use super::super::sandbox::{LABEL_GPUS, problem};
use super::DockerRuntime;

/// What the container of `spec` is made with.
pub(super) async fn ways(
    runtime: &DockerRuntime,
    spec: &ContainerSpec,
) -> Result<Injection, Problem> {
    if spec.gpus.is_empty() {
        return Ok(Injection::default());
    }
    let host = HostGpus::read(&runtime.root, &runtime.facts.cdi_spec_dirs).await;
    let injection = injection(&spec.gpus, &runtime.facts, &host).map_err(|reason| {
        problem(
            Stage::Creating,
            ProblemKind::GpuUnavailable,
            &format!("no way into a container: {reason}"),
        )
    })?;
    if let Some(given) = &injection.given {
        let lease = spec.lease.short();
        let (way, devices) = (given.way.in_words(), given.devices.join(","));
        tracing::info!(%lease, way, devices, "GPUs are given to a container");
    }
    Ok(injection)
}

/// What a container was given, by its label.
pub(super) fn label(found: &ContainerInspectResponse) -> Option<&str> {
    let labels = found.config.as_ref()?.labels.as_ref()?;
    labels.get(LABEL_GPUS).map(String::as_str)
}

/// Looks whether the container that was found running has its GPUs. One that has ended meanwhile is not looked at.
pub(super) async fn check_inside(
    runtime: &DockerRuntime,
    found: &ContainerInspectResponse,
) -> Result<(), Problem> {
    let unavailable = |said: &str| problem(Stage::Starting, ProblemKind::GpuUnavailable, said);
    let Some(label) = label(found) else {
        return Ok(());
    };
    let given: Given = label
        .parse()
        .map_err(|error: super::super::gpus::given::NotGiven| unavailable(&error.to_string()))?;
    let state = found.state.as_ref();
    let process = state.and_then(|state| state.pid).filter(|pid| *pid > 0);
    let Some(process) = process else {
        return Ok(());
    };
    let root = runtime.root.clone();
    // The engine's processes are this machine's, wherever its devices are looked for.
    let looked = tokio::task::spawn_blocking(move || look(&root, process, &given.expected)).await;
    match looked {
        Ok(Ok(seen)) => seen.map_err(|reason| unavailable(&reason)),
        Ok(Err(error)) if has_ended(&error) => Ok(()),
        Ok(Err(error)) => Err(unavailable(&format!(
            "whether its GPUs are in the container cannot be seen ({error}): run the agent as root"
        ))),
        Err(error) => Err(unavailable(&error.to_string())),
    }
}

fn look(
    root: &std::path::Path,
    process: i64,
    expected: &Expected,
) -> io::Result<Result<(), String>> {
    let seen = inside::look(std::path::Path::new("/"), process)?;
    let number = |name: &str| Node::at(root, name).map(|node| node.number);
    Ok(inside::check(&seen, expected, number))
}

/// A process that is gone has no files any more.
fn has_ended(error: &io::Error) -> bool {
    const NO_SUCH_PROCESS: i32 = 3;
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(NO_SUCH_PROCESS)
}
