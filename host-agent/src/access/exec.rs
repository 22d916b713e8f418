//! A program in the container at one end of a tunnel.
//!
//! ```text
//!   tunnel ─▶ Upward ─▶ input, signals, size          program ─▶ pieces ─▶ Downward ─▶ tunnel
//! ```
//! Both ways run at once, each holding one piece at a time: whoever is slow slows the other. When the tunnel
//! goes away the program is hung up and then killed; the engine would leave it running.

use std::time::Duration;

use protocol::bounded::Blob;
use protocol::ids::LeaseId;
use protocol::lease::Detail;
use protocol::net::frames::{MessageError, MessageReader, write_message};
use protocol::tunnel::{Downward, Exec, OpeningReply, TunnelRefusal, Upward};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::{LeaseAccess, refuse, shell};
use crate::runtime::exec::{
    ExecHandle, ExecInput, ExecOutput, ExecSession, ExecState, Piece, Signal,
};
use crate::runtime::{Runtime, RuntimeError};

/// From SIGHUP to SIGKILL when the tunnel is gone.
const HANGUP_GRACE: Duration = Duration::from_secs(2);
/// How often an empty piece is sent while a program says nothing: a peer that is gone is noticed by it.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);
/// How long output may stay silent after the program ended and somebody else holds it open.
const LAST_WORDS: Duration = Duration::from_secs(2);
const CODE_CHECK_FIRST: Duration = Duration::from_millis(2);
const CODE_CHECK_LAST: Duration = Duration::from_millis(250);
/// What a terminal takes as the end of its input.
const END_OF_TRANSMISSION: [u8; 1] = [4];

/// Starts what was asked for, answers, and serves it to its end.
pub(super) async fn serve<R, T>(
    runtime: &R,
    mut tunnel: T,
    lease: LeaseId,
    access: &LeaseAccess,
    asked: Exec,
) where
    R: Runtime,
    T: AsyncRead + AsyncWrite + Send + Unpin,
{
    if !access.running {
        return refuse(&mut tunnel, TunnelRefusal::NotRunning).await;
    }
    let session = match shell::start(runtime, lease, &asked).await {
        Ok(session) => session,
        Err(refusal) => return refuse(&mut tunnel, refusal).await,
    };
    let ExecSession {
        handle,
        output,
        input,
    } = session;
    let mut program = Program {
        handle,
        left_alone: false,
    };
    if write_message(&mut tunnel, &OpeningReply::Open)
        .await
        .is_err()
    {
        return program.end(runtime).await;
    }
    let (reader, mut writer) = tokio::io::split(tunnel);
    let upward = Upstream {
        reader: MessageReader::new(reader),
        input: Some(input),
        is_terminal: asked.terminal.is_some(),
    };
    let served = tokio::select! {
        served = send_down(runtime, &program.handle, output, &mut writer) => served,
        gone = upward.run(runtime, &program.handle) => Err(gone),
    };
    match served {
        Ok(()) => program.left_alone = true,
        Err(gone) => {
            tracing::debug!(%lease, %gone, "a tunnel ended before its program");
            program.end(runtime).await;
        }
    }
    let _gone = writer.shutdown().await;
}

/// Why the tunnel ended before the program.
#[derive(Debug, thiserror::Error)]
enum Gone {
    #[error("the other side closed it")]
    Closed,
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error(transparent)]
    Engine(#[from] RuntimeError),
    #[error("the program's output broke off: {0}")]
    Output(std::io::Error),
}

/// A started program, which does not outlive this value unless it ended by itself.
struct Program {
    handle: ExecHandle,
    left_alone: bool,
}

impl Program {
    /// Hangs it up, waits a little, kills it.
    async fn end<R: Runtime>(&mut self, runtime: &R) {
        self.signal(runtime, Signal::Hangup).await;
        let ended = tokio::time::timeout(HANGUP_GRACE, self.handle.ended());
        if ended.await.is_err() {
            self.signal(runtime, Signal::Kill).await;
        }
        self.left_alone = true;
    }

    async fn signal<R: Runtime>(&self, runtime: &R, signal: Signal) {
        if let Err(error) = runtime.signal_exec(&self.handle, signal).await {
            tracing::warn!(%error, "a program whose tunnel ended could not be signalled");
        }
    }
}

impl Drop for Program {
    /// When the agent gives its tunnels up there is no time to wait.
    fn drop(&mut self) {
        if !self.left_alone {
            self.handle.kill_now();
        }
    }
}

/// The way from the renter to the program.
struct Upstream<S> {
    reader: MessageReader<S>,
    /// Gone when the renter ended it or the program closed it.
    input: Option<ExecInput>,
    is_terminal: bool,
}

impl<S: AsyncRead + Unpin> Upstream<S> {
    /// Returns only when the tunnel is gone.
    async fn run<R: Runtime>(mut self, runtime: &R, handle: &ExecHandle) -> Gone {
        let mut input_ended = false;
        loop {
            match self.reader.next().await {
                Ok(Some(Upward::Input(bytes))) => self.write(&bytes).await,
                Ok(Some(Upward::InputEnd)) => {
                    input_ended = true;
                    self.end_input().await;
                }
                Ok(Some(Upward::Resize(size))) => {
                    if let Err(error) = runtime.resize_exec(handle, size).await {
                        tracing::debug!(%error, "a terminal was not resized");
                    }
                }
                Ok(Some(Upward::Signal(name))) => send_signal(runtime, handle, &name).await,
                // One who has nothing more to say may still listen; that shows when it is written to.
                Ok(None) if input_ended => std::future::pending().await,
                Ok(None) => return Gone::Closed,
                Err(error) => return error.into(),
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) {
        let Some(input) = &mut self.input else { return };
        let writer = input.writer();
        let written = async {
            writer.write_all(bytes).await?;
            writer.flush().await
        };
        if written.await.is_err() {
            // The program reads no more, which is its right.
            self.input = None;
        }
    }

    /// A terminal has no half that closes.
    async fn end_input(&mut self) {
        if self.is_terminal {
            return self.write(&END_OF_TRANSMISSION).await;
        }
        if let Some(mut input) = self.input.take() {
            let _closed = input.writer().shutdown().await;
        }
    }
}

async fn send_signal<R: Runtime>(runtime: &R, handle: &ExecHandle, name: &str) {
    let Some(signal) = Signal::from_name(name) else {
        tracing::debug!(name, "a signal of no known name");
        return;
    };
    if let Err(error) = runtime.signal_exec(handle, signal).await {
        tracing::debug!(%error, "a program was not signalled");
    }
}

/// The way from the program to the renter, to the exit code.
async fn send_down<R, W>(
    runtime: &R,
    handle: &ExecHandle,
    mut output: ExecOutput,
    writer: &mut W,
) -> Result<(), Gone>
where
    R: Runtime,
    W: AsyncWrite + Unpin,
{
    if let Err(gone) = send_output(handle, &mut output, writer).await {
        if let Gone::Output(error) = &gone {
            let broken = Downward::Broken(Detail::cut(&error.to_string()));
            write_message(writer, &broken).await?;
        }
        return Err(gone);
    }
    let code = wait_code(runtime, handle, writer).await?;
    write_message(writer, &Downward::Exit(code)).await?;
    Ok(())
}

/// Until the end of the output, or until the program ended and its last words are said.
async fn send_output<W: AsyncWrite + Unpin>(
    handle: &ExecHandle,
    output: &mut ExecOutput,
    writer: &mut W,
) -> Result<(), Gone> {
    let mut ended = false;
    loop {
        let patience = if ended { LAST_WORDS } else { HEARTBEAT_EVERY };
        let piece = tokio::select! {
            piece = output.next() => piece.map_err(Gone::Output)?,
            () = handle.ended(), if !ended => {
                ended = true;
                continue;
            }
            () = tokio::time::sleep(patience) => {
                if ended {
                    return Ok(());
                }
                Some(Piece::Output(Vec::new()))
            }
        };
        match piece {
            Some(piece) => write_message(writer, &downward(piece)).await?,
            None => return Ok(()),
        }
    }
}

fn downward(piece: Piece) -> Downward {
    // Pieces are as large as a frame's data may be, so nothing is ever left out here.
    match piece {
        Piece::Output(bytes) => Downward::Output(Blob::new(bytes).unwrap_or_default()),
        Piece::Errors(bytes) => Downward::Errors(Blob::new(bytes).unwrap_or_default()),
    }
}

/// The exit code. A program may close its output and go on; the tunnel then stays open with it.
async fn wait_code<R, W>(runtime: &R, handle: &ExecHandle, writer: &mut W) -> Result<i32, Gone>
where
    R: Runtime,
    W: AsyncWrite + Unpin,
{
    let mut pause = CODE_CHECK_FIRST;
    let mut silent = Duration::ZERO;
    loop {
        match runtime.exec_state(handle).await? {
            ExecState::Ended(code) => return Ok(code),
            ExecState::Running => tokio::time::sleep(pause).await,
        }
        silent += pause;
        pause = (pause * 2).min(CODE_CHECK_LAST);
        if silent >= HEARTBEAT_EVERY {
            silent = Duration::ZERO;
            write_message(writer, &downward(Piece::Output(Vec::new()))).await?;
        }
    }
}
