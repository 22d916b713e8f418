//! Whether a container that the engine started really runs its program.
//!
//! The first process is an init that starts the program and ends with 127 when it cannot; the engine has
//! then "started" the container all the same. So the init is looked at, in `/proc`, until its child is
//! another program than itself: a few milliseconds, and no call to the engine.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::models::{ContainerInspectResponse, ContainerState};
use bollard::query_parameters::LogsOptionsBuilder;
use futures::TryStreamExt;
use protocol::ids::LeaseId;
use protocol::lease::{Problem, ProblemKind, Stage};

use super::super::StartedAt;
use super::super::logs::read_time;
use super::super::sandbox::{container_name, problem};
use super::{DockerRuntime, failures, gpus, lifecycle};

const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Two seconds; then what the engine says is believed.
const LOOKS_MAX: u32 = 2000;
/// How long the engine may take to notice that the first process ended.
const NOTICE_EVERY: Duration = Duration::from_millis(10);
const NOTICES_MAX: u32 = 300;

/// What can be seen of the program of an init.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    /// The init has not started it yet.
    Awaited,
    /// It runs.
    Running,
    /// The init is gone.
    Ended,
    /// This machine does not show it to this agent.
    Unseen,
}

/// Looks whether its GPUs are inside, and waits until the program runs or has failed to.
pub(super) async fn wait_started(
    runtime: &DockerRuntime,
    lease: LeaseId,
) -> Result<StartedAt, Problem> {
    let found = look(runtime, lease).await?;
    let started = started_at(&found)?;
    gpus::check_inside(runtime, &found).await?;
    let state = found.state.unwrap_or_default();
    let ended = match state.pid {
        Some(init) if state.running == Some(true) => wait_program(init).await == Program::Ended,
        _ => true,
    };
    if ended {
        refuse_unknown_command(runtime, lease).await?;
    }
    Ok(started)
}

async fn wait_program(init: i64) -> Program {
    for _ in 0..LOOKS_MAX {
        match program_of(init) {
            Program::Awaited => tokio::time::sleep(LOOK_EVERY).await,
            seen @ (Program::Running | Program::Ended | Program::Unseen) => return seen,
        }
    }
    Program::Unseen
}

fn program_of(init: i64) -> Program {
    let Ok(children) = fs::read_to_string(format!("/proc/{init}/task/{init}/children")) else {
        let is_there = fs::metadata(format!("/proc/{init}")).is_ok();
        return if is_there {
            Program::Unseen
        } else {
            Program::Ended
        };
    };
    let Some(child) = children.split_whitespace().next() else {
        return Program::Awaited;
    };
    match (executable(child), executable(&init.to_string())) {
        (Ok(child), Ok(init)) if child != init => Program::Running,
        (Err(error), _) | (_, Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            Program::Unseen
        }
        // The child still is the init that it was forked from, or is gone again.
        (Ok(_) | Err(_), Ok(_)) => Program::Awaited,
        (Ok(_) | Err(_), Err(_)) => Program::Ended,
    }
}

/// Device and inode of what a process runs.
fn executable(process: &str) -> io::Result<(u64, u64)> {
    let file = fs::metadata(format!("/proc/{process}/exe"))?;
    Ok((file.dev(), file.ino()))
}

/// A container that ended already is a problem only if its init could not run its program.
async fn refuse_unknown_command(runtime: &DockerRuntime, lease: LeaseId) -> Result<(), Problem> {
    for _ in 0..NOTICES_MAX {
        let state = look(runtime, lease).await?.state.unwrap_or_default();
        if state.running != Some(true) {
            return match state.exit_code {
                Some(126 | 127) => init_failure(runtime, lease).await.map_or(Ok(()), Err),
                _ => Ok(()),
            };
        }
        tokio::time::sleep(NOTICE_EVERY).await;
    }
    Ok(())
}

/// What the init said as its last words, if it did not find the program.
async fn init_failure(runtime: &DockerRuntime, lease: LeaseId) -> Option<Problem> {
    let options = LogsOptionsBuilder::default().stderr(true).tail("1").build();
    let lines = runtime.docker.logs(&container_name(lease), Some(options));
    let lines: Vec<LogOutput> = lines.try_collect().await.ok()?;
    failures::of_init(&lines.last()?.to_string())
}

async fn look(
    runtime: &DockerRuntime,
    lease: LeaseId,
) -> Result<ContainerInspectResponse, Problem> {
    let failed = |said: &str| problem(Stage::Starting, ProblemKind::EngineFailed, said);
    lifecycle::look(runtime, &container_name(lease))
        .await
        .map_err(|error| failed(&error.to_string()))?
        .ok_or_else(|| failed("the container is gone"))
}

fn started_at(found: &ContainerInspectResponse) -> Result<StartedAt, Problem> {
    let state: Option<&ContainerState> = found.state.as_ref();
    let started = state
        .and_then(|state| state.started_at.as_deref())
        .and_then(read_time);
    started.map(StartedAt).ok_or_else(|| {
        problem(
            Stage::Starting,
            ProblemKind::EngineFailed,
            "the engine did not say when it started",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_child_that_is_another_program_runs_and_a_process_that_is_gone_has_ended() {
        let script = "sleep 5; true";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let init = i64::from(shell.id());
        let mut seen = Program::Awaited;
        for _ in 0..2000 {
            seen = program_of(init);
            if seen != Program::Awaited {
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        assert_eq!(seen, Program::Running);
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(program_of(init), Program::Ended);
    }
}
