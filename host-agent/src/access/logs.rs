//! What a container wrote at one end of a tunnel: from the engine while the container is there, from the
//! file saved of it afterwards.

use std::time::Duration;

use protocol::bounded::Blob;
use protocol::ids::LeaseId;
use protocol::lease::Detail;
use protocol::net::frames::{MessageError, read_message, write_message};
use protocol::tunnel::{DATA_BYTES_MAX, Downward, Logs, OpeningReply, TunnelRefusal, Upward};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::{LeaseAccess, engine_failed, refuse};
use crate::runtime::logs::{LogQuery, LogRecord, LogRecords, LogStream, read_saved};
use crate::runtime::{RunState, Runtime, RuntimeError};

/// How often an empty piece is sent while nothing is written: a peer that is gone is noticed by it.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);
/// How long the engine may take to say how a container ended whose output has.
const CODE_CHECK_EVERY: Duration = Duration::from_millis(20);
const CODE_CHECKS_MAX: u32 = 150;
/// Text of records is gathered up to this before it is sent.
const GATHERED_BYTES_MAX: usize = DATA_BYTES_MAX / 2;

/// Answers, and serves the logs to their end.
pub(super) async fn serve<R, T>(
    runtime: &R,
    mut tunnel: T,
    lease: LeaseId,
    access: &LeaseAccess,
    asked: Logs,
) where
    R: Runtime,
    T: AsyncRead + AsyncWrite + Send + Unpin,
{
    let source = match open(runtime, lease, access, asked).await {
        Ok(source) => source,
        Err(refusal) => return refuse(&mut tunnel, refusal).await,
    };
    if write_message(&mut tunnel, &OpeningReply::Open)
        .await
        .is_err()
    {
        return;
    }
    let (reader, mut writer) = tokio::io::split(tunnel);
    let sent = async {
        match send(source.records, &mut writer, asked.timestamps).await? {
            Some(error) => write_message(&mut writer, &broken(&error)).await,
            None => {
                let code = exit_code(runtime, lease, access, asked, source.is_live).await;
                write_message(&mut writer, &Downward::Exit(code)).await
            }
        }
    };
    tokio::select! {
        sent = sent => if let Err(error) = sent {
            tracing::debug!(%lease, %error, "a reader of logs went away");
        },
        () = closed(reader) => {}
    }
    let _gone = writer.shutdown().await;
}

/// Returns when the other side is gone; one that only closed its own half is not.
async fn closed<S: AsyncRead + Unpin>(mut reader: S) {
    loop {
        match read_message::<Upward, _>(&mut reader).await {
            Ok(Some(_)) => {}
            Ok(None) => std::future::pending().await,
            Err(_) => return,
        }
    }
}

fn broken(error: &RuntimeError) -> Downward {
    Downward::Broken(Detail::cut(&error.to_string()))
}

struct Source {
    records: LogRecords,
    is_live: bool,
}

async fn open<R: Runtime>(
    runtime: &R,
    lease: LeaseId,
    access: &LeaseAccess,
    asked: Logs,
) -> Result<Source, TunnelRefusal> {
    let query = LogQuery {
        follow: asked.follow,
        since: asked.since,
        tail: asked.tail,
    };
    let failed = match runtime.logs(lease, query).await {
        Ok(records) => {
            return Ok(Source {
                records,
                is_live: true,
            });
        }
        Err(error) => error,
    };
    // With the engine down a container's logs cannot be read, but those of one that is gone can.
    match read_saved(&access.saved_logs, query).await {
        Ok(records) => Ok(Source {
            records,
            is_live: false,
        }),
        Err(_) if failed == RuntimeError::NoContainer => {
            Err(TunnelRefusal::LogsGone(access.logs_kept))
        }
        Err(_) => Err(engine_failed(&failed)),
    }
}

/// Sends records as they come, gathered while more are there already; what broke, if something did.
async fn send<W: AsyncWrite + Unpin>(
    mut records: LogRecords,
    writer: &mut W,
    timestamps: bool,
) -> Result<Option<RuntimeError>, MessageError> {
    let mut text = Gathered::new(timestamps);
    loop {
        let next = tokio::select! {
            biased;
            next = records.next() => next,
            // Nothing more is there now.
            () = std::future::ready(()), if !text.is_empty() => {
                text.send(writer).await?;
                continue;
            }
            () = tokio::time::sleep(HEARTBEAT_EVERY) => {
                write_message(writer, &Downward::Output(Blob::default())).await?;
                continue;
            }
        };
        match next {
            Ok(Some(record)) => {
                if !text.takes(&record) {
                    text.send(writer).await?;
                }
                text.add(&record);
            }
            Ok(None) => {
                text.send(writer).await?;
                return Ok(None);
            }
            Err(error) => {
                text.send(writer).await?;
                return Ok(Some(error));
            }
        }
    }
}

/// Text of one stream that waits to be sent.
struct Gathered {
    timestamps: bool,
    stream: LogStream,
    bytes: Vec<u8>,
    /// Whether the last line of each stream is whole: a time stands at the beginning of lines only.
    output_is_whole: bool,
    errors_are_whole: bool,
}

impl Gathered {
    const fn new(timestamps: bool) -> Self {
        Self {
            timestamps,
            stream: LogStream::Output,
            bytes: Vec::new(),
            output_is_whole: true,
            errors_are_whole: true,
        }
    }

    const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn takes(&self, record: &LogRecord) -> bool {
        self.is_empty()
            || (self.stream == record.stream
                && self.bytes.len() + record.text.len() <= GATHERED_BYTES_MAX)
    }

    fn add(&mut self, record: &LogRecord) {
        self.stream = record.stream;
        let is_whole = match record.stream {
            LogStream::Output => &mut self.output_is_whole,
            LogStream::Errors => &mut self.errors_are_whole,
        };
        if self.timestamps && *is_whole {
            self.bytes.extend_from_slice(record.at.as_bytes());
            self.bytes.push(b' ');
        }
        *is_whole = record.text.ends_with(b"\n");
        self.bytes.extend_from_slice(&record.text);
    }

    async fn send<W: AsyncWrite + Unpin>(&mut self, writer: &mut W) -> Result<(), MessageError> {
        let bytes = std::mem::take(&mut self.bytes);
        for piece in bytes.chunks(DATA_BYTES_MAX) {
            let data = Blob::new(piece.to_vec()).unwrap_or_default();
            let message = match self.stream {
                LogStream::Output => Downward::Output(data),
                LogStream::Errors => Downward::Errors(data),
            };
            write_message(writer, &message).await?;
        }
        Ok(())
    }
}

/// Logs that were followed end with their container, and say how it ended.
async fn exit_code<R: Runtime>(
    runtime: &R,
    lease: LeaseId,
    access: &LeaseAccess,
    asked: Logs,
    is_live: bool,
) -> i32 {
    if !asked.follow {
        return 0;
    }
    for _ in 0..CODE_CHECKS_MAX {
        match runtime.inspect(lease).await {
            Ok(Some(container)) if is_live => match container.state {
                RunState::Exited(exit) => return exit.code,
                RunState::Running { .. } | RunState::Paused { .. } => {
                    tokio::time::sleep(CODE_CHECK_EVERY).await
                }
                RunState::Created | RunState::Removing => break,
            },
            Ok(Some(_) | None) | Err(_) => break,
        }
    }
    access.exit_code.unwrap_or(0)
}
