//! Programs started in a running container: their streams, state and signals.
//!
//! What a program writes is hostile input: it is passed on in bounded pieces and never looked at, except for
//! the engine's own frame headers when output and errors come apart.

use std::fmt;
use std::io;

use protocol::tunnel::{DATA_BYTES_MAX, WindowSize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::RuntimeError;

/// A program to start in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecSpec {
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    /// `NAME=value`, beside the container's own.
    pub environment: Vec<String>,
    /// With a terminal of this size, or with separate pipes.
    pub terminal: Option<WindowSize>,
}

/// A started program: its handle and its streams.
#[derive(Debug)]
pub struct ExecSession {
    /// What signals and state are asked with.
    pub handle: ExecHandle,
    /// What it writes.
    pub output: ExecOutput,
    /// What it reads.
    pub input: ExecInput,
}

/// What names a started program.
#[derive(Debug)]
pub struct ExecHandle {
    /// The engine's id of it.
    pub(crate) id: String,
    /// The process itself, held so that its number cannot be another's.
    pub(crate) process: Option<super::process::HostProcess>,
}

impl ExecHandle {
    /// Waits until the program ended, whether or not its output did. Never returns when the process cannot
    /// be seen from here (an agent in a container of its own).
    pub async fn ended(&self) {
        match &self.process {
            Some(process) => process.ended().await,
            None => std::future::pending().await,
        }
    }

    /// Kills the program if it is still there, without waiting for anything.
    pub(crate) fn kill_now(&self) {
        if let Some(process) = &self.process
            && let Err(error) = process.signal(Signal::Kill)
        {
            tracing::warn!(%error, "a program that nobody waits for could not be killed");
        }
    }
}

/// Where a program stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecState {
    /// Not started yet, or running.
    Running,
    /// Ended with this code; 128 and the signal's number when a signal ended it.
    Ended(i32),
}

/// Signals that a renter may send to a program of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the signal of that name")]
pub enum Signal {
    Hangup,
    Interrupt,
    Quit,
    Terminate,
    Kill,
    User1,
    User2,
    WindowChange,
    Stop,
    Continue,
}

impl Signal {
    /// The signal of a name without `SIG`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let signal = match name {
            "HUP" => Self::Hangup,
            "INT" => Self::Interrupt,
            "QUIT" => Self::Quit,
            "TERM" => Self::Terminate,
            "KILL" => Self::Kill,
            "USR1" => Self::User1,
            "USR2" => Self::User2,
            "WINCH" => Self::WindowChange,
            "STOP" => Self::Stop,
            "CONT" => Self::Continue,
            _ => return None,
        };
        Some(signal)
    }
}

/// Why a program was not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// The container does not run, or is not there.
    #[error("the container does not run")]
    NotRunning,
    /// The program is not in the image, or cannot be run.
    #[error("{detail}")]
    CommandUnknown {
        /// What the runtime said.
        detail: String,
    },
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] RuntimeError),
}

/// One piece of what a program wrote; at most [`DATA_BYTES_MAX`] bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// From standard output, or from the terminal.
    Output(Vec<u8>),
    /// From standard error.
    Errors(Vec<u8>),
}

type BoxedReader = Box<dyn AsyncRead + Send + Unpin>;
type BoxedWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// Where a program's input goes; shutting it down is its end of file.
pub struct ExecInput(BoxedWriter);

impl ExecInput {
    /// Over `writer`.
    #[must_use]
    pub fn new(writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self(Box::new(writer))
    }

    /// The writer itself.
    pub fn writer(&mut self) -> &mut (dyn AsyncWrite + Send + Unpin) {
        &mut *self.0
    }
}

impl fmt::Debug for ExecInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExecInput")
    }
}

/// How a program's output arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// As it was written: a terminal's.
    Raw,
    /// In frames of the engine: stream (1 output, 2 errors), three zeros, length as u32 big-endian. The
    /// length is used for counting alone; no memory is ever reserved for it.
    Frames { errors: bool, left: u32 },
}

const HEADER_BYTES: usize = 8;

/// What a program writes.
pub struct ExecOutput {
    reader: BoxedReader,
    framing: Framing,
    /// The part of a frame's header that was read.
    header: [u8; HEADER_BYTES],
    header_filled: usize,
    /// A piece that was looked at before its time.
    returned: Option<Piece>,
}

impl ExecOutput {
    /// Of a program with a terminal.
    #[must_use]
    pub fn raw(reader: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self::new(Box::new(reader), Framing::Raw)
    }

    /// Of a program without one.
    #[must_use]
    pub fn framed(reader: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self::new(
            Box::new(reader),
            Framing::Frames {
                errors: false,
                left: 0,
            },
        )
    }

    fn new(reader: BoxedReader, framing: Framing) -> Self {
        Self {
            reader,
            framing,
            header: [0; HEADER_BYTES],
            header_filled: 0,
            returned: None,
        }
    }

    /// The next piece; nothing at the end. Cancel-safe.
    ///
    /// # Errors
    /// When the stream fails or is no stream of frames.
    pub async fn next(&mut self) -> io::Result<Option<Piece>> {
        if let Some(piece) = self.returned.take() {
            return Ok(Some(piece));
        }
        let (errors, most) = match self.framing {
            Framing::Raw => (false, DATA_BYTES_MAX),
            Framing::Frames { errors, left } if left > 0 => (errors, piece_size(left)),
            Framing::Frames { .. } => match self.next_frame().await? {
                Some((errors, left)) => (errors, piece_size(left)),
                None => return Ok(None),
            },
        };
        let mut bytes = vec![0; most];
        let read = self.reader.read(&mut bytes).await?;
        if read == 0 {
            return match self.framing {
                Framing::Raw => Ok(None),
                Framing::Frames { .. } => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
        bytes.truncate(read);
        if let Framing::Frames { left, .. } = &mut self.framing {
            *left = left.saturating_sub(u32::try_from(read).unwrap_or(u32::MAX));
        }
        Ok(Some(if errors {
            Piece::Errors(bytes)
        } else {
            Piece::Output(bytes)
        }))
    }

    /// Makes `piece` the next one again.
    pub(crate) fn put_back(&mut self, piece: Piece) {
        self.returned = Some(piece);
    }

    /// Reads headers until one has bytes behind it; nothing at a clean end.
    async fn next_frame(&mut self) -> io::Result<Option<(bool, u32)>> {
        loop {
            let read = self
                .reader
                .read(&mut self.header[self.header_filled..])
                .await?;
            match (read, self.header_filled) {
                (0, 0) => return Ok(None),
                (0, _) => return Err(io::ErrorKind::UnexpectedEof.into()),
                (_, filled) => self.header_filled = filled + read,
            }
            if self.header_filled < HEADER_BYTES {
                continue;
            }
            self.header_filled = 0;
            let [stream, 0, 0, 0, a, b, c, d] = self.header else {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "not a frame of the engine",
                ));
            };
            let errors = stream == 2;
            let left = u32::from_be_bytes([a, b, c, d]);
            self.framing = Framing::Frames { errors, left };
            if left > 0 {
                return Ok(Some((errors, left)));
            }
        }
    }
}

impl fmt::Debug for ExecOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecOutput")
            .field("framing", &self.framing)
            .finish_non_exhaustive()
    }
}

fn piece_size(left: u32) -> usize {
    usize::try_from(left)
        .unwrap_or(usize::MAX)
        .min(DATA_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[tokio::test]
    async fn frames_come_apart_by_stream() {
        let wire = b"\x01\0\0\0\0\0\0\x02hi\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\x03err".to_vec();
        let mut output = ExecOutput::framed(Cursor::new(wire));
        assert_eq!(
            output.next().await.unwrap(),
            Some(Piece::Output(b"hi".to_vec()))
        );
        assert_eq!(
            output.next().await.unwrap(),
            Some(Piece::Errors(b"err".to_vec()))
        );
        assert_eq!(output.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_frame_of_four_gigabytes_costs_one_piece() {
        let mut wire = b"\x01\0\0\0\xff\xff\xff\xff".to_vec();
        wire.extend(vec![7; DATA_BYTES_MAX + 5]);
        let mut output = ExecOutput::framed(Cursor::new(wire));
        assert_eq!(
            output.next().await.unwrap(),
            Some(Piece::Output(vec![7; DATA_BYTES_MAX]))
        );
        assert_eq!(
            output.next().await.unwrap(),
            Some(Piece::Output(vec![7; 5]))
        );
        assert_eq!(
            output.next().await.unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }

    #[tokio::test]
    async fn a_terminal_is_never_taken_for_frames() {
        let wire = b"\x01\0\0\0\0\0\0\x03abcdef\x02".to_vec();
        let mut output = ExecOutput::raw(Cursor::new(wire.clone()));
        assert_eq!(output.next().await.unwrap(), Some(Piece::Output(wire)));
        assert_eq!(output.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn bytes_that_are_no_frame_are_an_error() {
        let mut output = ExecOutput::framed(Cursor::new(b"OCI runtime".to_vec()));
        assert_eq!(
            output.next().await.unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }
}
