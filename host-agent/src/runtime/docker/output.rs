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

/// A container that is not there is said at once, not when the records are read.
pub(super) async fn records(
    runtime: &DockerRuntime,
    lease: LeaseId,
    query: LogQuery,
) -> Result<LogRecords, RuntimeError> {
    lifecycle::look(runtime, &container_name(lease))
        .await?
        .ok_or(RuntimeError::NoContainer)?;
    let asked = ask(runtime, lease, query);
    if !query.follow {
        return Ok(asked);
    }
    let following = Following {
        runtime: runtime.clone(),
        lease,
        query,
        records: asked,
        last: None,
        ended: false,
    };
    let records = futures::stream::try_unfold(following, |mut following| async move {
        Ok(following.next().await?.map(|record| (record, following)))
    });
    Ok(LogRecords::new(records))
}

fn ask(runtime: &DockerRuntime, lease: LeaseId, query: LogQuery) -> LogRecords {
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
    let stream = runtime
        .docker
        .logs(&container_name(lease), Some(options.build()));
    let records = stream
        .map(move |line| match line {
            Ok(line) => Ok(record(line)),
            Err(error) => Err(failures::of_engine(&socket, "read the logs", &error)),
        })
        .filter(move |record| {
            let wanted = record
                .as_ref()
                .map_or(true, |record| record.is_since(query.since));
            std::future::ready(wanted)
        });
    LogRecords::new(records)
}

/// Records as they are written, to the last. The engine ends what it lets follow when the container ends,
/// at times before the last words of it; they are in its file, so the file is asked once more.
struct Following {
    runtime: DockerRuntime,
    lease: LeaseId,
    query: LogQuery,
    records: LogRecords,
    last: Option<LogRecord>,
    ended: bool,
}

impl Following {
    async fn next(&mut self) -> Result<Option<LogRecord>, RuntimeError> {
        loop {
            if let Some(record) = self.records.next().await? {
                if !self.ended {
                    self.last = Some(record.clone());
                }
                return Ok(Some(record));
            }
            if self.ended {
                return Ok(None);
            }
            self.ended = true;
            let last = self.last.take();
            self.records = last_words(&self.runtime, self.lease, self.query, last).await?;
        }
    }
}

/// What the file has behind the last record that was read.
async fn last_words(
    runtime: &DockerRuntime,
    lease: LeaseId,
    query: LogQuery,
    last: Option<LogRecord>,
) -> Result<LogRecords, RuntimeError> {
    let query = LogQuery {
        follow: false,
        ..query
    };
    let Some(last) = last else {
        return Ok(ask(runtime, lease, query));
    };
    let query = LogQuery {
        since: last.time(),
        tail: None,
        ..query
    };
    let mut all = ask(runtime, lease, query);
    let mut behind = Vec::new();
    loop {
        match all.next().await {
            Ok(Some(record)) if record == last => behind.clear(),
            Ok(Some(record)) => behind.push(record),
            // Removed meanwhile: there is nothing behind any more.
            Ok(None) | Err(RuntimeError::NoContainer) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(LogRecords::new(futures::stream::iter(
        behind.into_iter().map(Ok),
    )))
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
