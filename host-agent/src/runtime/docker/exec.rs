//! Programs in a running container, with the streams taken over from the engine by hand.
//!
//! The client library guesses from a program's bytes whether they are framed; a terminal's are not, and a
//! program could so lose bytes or make this process reserve gigabytes. Here it is known which they are.

use std::io;
use std::path::Path;
use std::time::Duration;

use bollard::models::{ExecConfig, ExecInspectResponse};
use bollard::query_parameters::ResizeExecOptionsBuilder;
use protocol::ids::LeaseId;
use protocol::tunnel::WindowSize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::super::RuntimeError;
use super::super::exec::{
    ExecError, ExecHandle, ExecInput, ExecOutput, ExecSession, ExecSpec, ExecState, Piece, Signal,
};
use super::super::process::HostProcess;
use super::super::sandbox::container_name;
use super::{DockerRuntime, failures};

/// Longest head of the engine's answer.
const HEAD_BYTES_MAX: usize = 8192;
/// How long a program may take to start: the engine's runtime may be slow under load.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const LOOK_FIRST: Duration = Duration::from_millis(2);
const LOOK_LAST: Duration = Duration::from_millis(50);
/// First version of the API that takes a terminal's size at the start.
const API_WITH_SIZE: (u32, u32) = (1, 42);
/// The engine holds back the first key of this sequence until it sees that the next differs, and cuts the
/// terminal off when it is complete; its own default begins with the key that recalls a shell's history.
/// No person types this one, and its first key is followed by another wherever it is used at all.
const DETACH_KEYS: &str = "ctrl-@,ctrl-^,ctrl-@,ctrl-^,ctrl-@,ctrl-_";
/// What the engine writes into the program's output when the program could not be run.
const FAILURE_WORDS: &[u8] = b"OCI runtime exec failed";

pub(super) async fn start(
    runtime: &DockerRuntime,
    lease: LeaseId,
    spec: &ExecSpec,
) -> Result<ExecSession, ExecError> {
    let id = create(runtime, lease, spec).await?;
    let stream = take_over(runtime, &id, spec).await?;
    let (reader, writer) = stream.into_split();
    let mut output = match spec.terminal {
        Some(_) => ExecOutput::raw(reader),
        None => ExecOutput::framed(reader),
    };
    let started = tokio::time::timeout(START_TIMEOUT, wait_started(runtime, &id));
    let process = match started.await.map_err(|_| too_slow())?? {
        Started::Running(process) => process,
        Started::Ended(code) => {
            refuse_unknown(&mut output, code).await?;
            None
        }
    };
    if let (Some(size), Some(_), true) = (spec.terminal, &process, needs_resize(runtime)) {
        // It may have ended meanwhile; then its size does not matter.
        let _ended = resize(runtime, &id, size).await;
    }
    Ok(ExecSession {
        handle: ExecHandle { id, process },
        output,
        input: ExecInput::new(writer),
    })
}

fn too_slow() -> RuntimeError {
    RuntimeError::Failed {
        what: "start the program",
        detail: "it took too long".to_owned(),
    }
}

async fn create(
    runtime: &DockerRuntime,
    lease: LeaseId,
    spec: &ExecSpec,
) -> Result<String, ExecError> {
    let config = ExecConfig {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(spec.terminal.is_some()),
        console_size: spec
            .terminal
            .filter(|_| !needs_resize(runtime))
            .map(console_size),
        detach_keys: Some(DETACH_KEYS.to_owned()),
        env: Some(spec.environment.clone()),
        cmd: Some(spec.command.clone()),
        privileged: Some(false),
        ..ExecConfig::default()
    };
    match runtime
        .docker
        .create_exec(&container_name(lease), config)
        .await
    {
        Ok(created) => Ok(created.id),
        Err(error) if matches!(failures::status(&error), Some(404 | 409)) => {
            Err(ExecError::NotRunning)
        }
        Err(error) => Err(runtime.failed("prepare the program")(error).into()),
    }
}

fn needs_resize(runtime: &DockerRuntime) -> bool {
    runtime.facts.api < API_WITH_SIZE
}

fn console_size(size: WindowSize) -> Vec<usize> {
    vec![usize::from(size.rows), usize::from(size.columns)]
}

/// Starts the program and keeps the connection as its input and output.
async fn take_over(
    runtime: &DockerRuntime,
    id: &str,
    spec: &ExecSpec,
) -> Result<UnixStream, ExecError> {
    let (major, minor) = runtime.facts.api;
    let size = spec
        .terminal
        .filter(|_| !needs_resize(runtime))
        .map(console_size);
    let body = serde_json::json!({
        "Detach": false, "Tty": spec.terminal.is_some(), "ConsoleSize": size,
    })
    .to_string();
    let request = format!(
        "POST /v{major}.{minor}/exec/{id}/start HTTP/1.1\r\nHost: docker\r\n\
         Content-Type: application/json\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    upgrade(&runtime.socket, &request).await
}

async fn upgrade(socket: &Path, request: &str) -> Result<UnixStream, ExecError> {
    let failed = |error: io::Error| failures::of_socket(socket, &error);
    let mut stream = UnixStream::connect(socket).await.map_err(failed)?;
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    // Byte by byte: what follows the head is the program's already.
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD_BYTES_MAX {
            return Err(refused("its answer has no end").into());
        }
        head.push(stream.read_u8().await.map_err(failed)?);
    }
    if head.starts_with(b"HTTP/1.1 101") {
        return Ok(stream);
    }
    if head.starts_with(b"HTTP/1.1 409") || head.starts_with(b"HTTP/1.1 404") {
        return Err(ExecError::NotRunning);
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Err(refused(&String::from_utf8_lossy(line)).into())
}

fn refused(detail: &str) -> RuntimeError {
    RuntimeError::Failed {
        what: "start the program",
        detail: detail.to_owned(),
    }
}

#[derive(Debug)]
enum Started {
    /// It runs; with its process if that can be seen from here.
    Running(Option<HostProcess>),
    /// It ran, or could not be run.
    Ended(i32),
}

/// Waits until the program has a process, and takes hold of that.
async fn wait_started(runtime: &DockerRuntime, id: &str) -> Result<Started, RuntimeError> {
    let mut pause = LOOK_FIRST;
    loop {
        let seen = look(runtime, id).await?;
        if let Some(code) = ended(&seen) {
            return Ok(Started::Ended(code));
        }
        if let Some(pid) = pid(&seen) {
            return hold(runtime, id, pid).await;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LOOK_LAST);
    }
}

/// The number could have passed to another process before it was taken hold of, but then the engine's
/// program ended, and the engine says so now.
async fn hold(runtime: &DockerRuntime, id: &str, pid: i32) -> Result<Started, RuntimeError> {
    let process = HostProcess::hold(pid).ok();
    let seen = look(runtime, id).await?;
    match ended(&seen) {
        Some(code) => Ok(Started::Ended(code)),
        None => Ok(Started::Running(process)),
    }
}

async fn look(runtime: &DockerRuntime, id: &str) -> Result<ExecInspectResponse, RuntimeError> {
    runtime
        .docker
        .inspect_exec(id)
        .await
        .map_err(runtime.failed("look at the program"))
}

fn ended(seen: &ExecInspectResponse) -> Option<i32> {
    let code = seen.exit_code.filter(|_| seen.running != Some(true))?;
    Some(i32::try_from(code).unwrap_or(-1))
}

fn pid(seen: &ExecInspectResponse) -> Option<i32> {
    let pid = seen
        .pid
        .filter(|pid| *pid > 0 && seen.running == Some(true))?;
    i32::try_from(pid).ok()
}

/// A program that ended at once may never have run; the engine says that in the program's own output.
async fn refuse_unknown(output: &mut ExecOutput, code: i32) -> Result<(), ExecError> {
    if !matches!(code, 126 | 127) {
        return Ok(());
    }
    let failed = |error: io::Error| refused(&error.to_string());
    let Some(piece) = output.next().await.map_err(failed)? else {
        return Ok(());
    };
    let (Piece::Output(said) | Piece::Errors(said)) = &piece;
    if said.starts_with(FAILURE_WORDS) {
        let said = String::from_utf8_lossy(said);
        return Err(ExecError::CommandUnknown {
            detail: failures::runtime_words(&said).to_owned(),
        });
    }
    output.put_back(piece);
    Ok(())
}

pub(super) async fn resize(
    runtime: &DockerRuntime,
    id: &str,
    size: WindowSize,
) -> Result<(), RuntimeError> {
    let options = ResizeExecOptionsBuilder::default()
        .h(i32::from(size.rows))
        .w(i32::from(size.columns))
        .build();
    runtime
        .docker
        .resize_exec(id, options)
        .await
        .map_err(runtime.failed("resize the terminal"))
}

pub(super) fn signal(exec: &ExecHandle, signal: Signal) -> Result<(), RuntimeError> {
    let failed = |detail: String| RuntimeError::Failed {
        what: "signal the program",
        detail,
    };
    match &exec.process {
        Some(process) => process
            .signal(signal)
            .map_err(|error| failed(error.to_string())),
        None => Ok(()),
    }
}

pub(super) async fn state(runtime: &DockerRuntime, id: &str) -> Result<ExecState, RuntimeError> {
    Ok(ended(&look(runtime, id).await?).map_or(ExecState::Running, ExecState::Ended))
}
