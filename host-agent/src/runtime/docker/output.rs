//! What a container wrote, from the engine's files.

use std::path::Path;

use bollard::container::LogOutput;
use bollard::query_parameters::LogsOptionsBuilder;
use futures::StreamExt;
use protocol::ids::LeaseId;
use protocol::units::Timestamp;

use super::super::RuntimeError;
use super::super::logs::{self, LogQuery, LogRecord, LogRecords, LogStream, TAIL_LINES_MAX};
use super::super::sandbox::container_name;
use super::{DockerRuntime, failures, lifecycle};

pub(super) async fn records(
    runtime: &DockerRuntime,
    lease: LeaseId,
    query: LogQuery,
) -> Result<LogRecords, RuntimeError> {
    let name = container_name(lease);
    // The stream says that there is no container only when it is read.
    lifecycle::look(runtime, &name).await?.ok_or(RuntimeError::NoContainer)?;
    let mut options = LogsOptionsBuilder::default()
        .follow(query.follow)
        .stdout(true)
        .stderr(true)
        .timestamps(true)
        .since(whole_seconds(query.since));
    if let Some(lines) = query.tail {
        options = options.tail(&lines.min(TAIL_LINES_MAX).to_string());
    }
    let socket = runtime.socket.clone();
    let stream = runtime.docker.logs(&name, Some(options.build()));
    let records = stream
        .map(move |line| match line {
            Ok(line) => Ok(record(line)),
            Err(error) => Err(failures::of_engine(&socket, "read the logs", &error)),
        })
        .filter(move |record| {
            let wanted = record.as_ref().map_or(true, |record| record.is_since(query.since));
            std::future::ready(wanted)
        });
    Ok(LogRecords::new(records))
}

/// The engine's client asks in whole seconds; the rest is left out here.
fn whole_seconds(since: Option<Timestamp>) -> i32 {
    since.map_or(0, |since| i32::try_from(since.0 / 1000).unwrap_or(0))
}

fn record(line: LogOutput) -> LogRecord {
    let stream = match &line {
        LogOutput::StdErr { .. } => LogStream::Errors,
        LogOutput::StdOut { .. } | LogOutput::StdIn { .. } | LogOutput::Console { .. } => {
            LogStream::Output
        }
    };
    LogRecord::of_engine(stream, &line.into_bytes())
}

pub(super) async fn save(
    runtime: &DockerRuntime,
    lease: LeaseId,
    path: &Path,
) -> Result<(), RuntimeError> {
    match records(runtime, lease, LogQuery::default()).await {
        Ok(records) => logs::save(records, path).await,
        Err(RuntimeError::NoContainer) => Ok(()),
        Err(error) => Err(error),
    }
}
