//! The asking side of the owner's socket: one question, one answer.

use super::wire::{AdminReply, AdminRequest, REPLY_BYTES_MAX};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an agent may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens.
    #[error("no agent runs on {socket}")]
    NotRunning {
        /// The socket.
        socket: PathBuf,
    },
    /// The socket is somebody else's.
    #[error("this user may not talk to the agent at {socket}")]
    NotAllowed {
        /// The socket.
        socket: PathBuf,
    },
    /// The agent does not answer, or not in full.
    #[error("the agent at {socket} did not answer")]
    NoAnswer {
        /// The socket.
        socket: PathBuf,
        /// What happened.
        #[source]
        source: io::Error,
    },
    /// The agent answers something else.
    #[error(
        "the agent at {socket} answers in another way than this program expects: is it another version? ({reason})"
    )]
    Malformed {
        /// The socket.
        socket: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Asks the agent behind `socket`.
///
/// # Errors
/// When nobody listens, may be asked, or answers in time.
pub fn ask(socket: &Path, request: &AdminRequest) -> Result<AdminReply, AskError> {
    let stream = UnixStream::connect(socket).map_err(|source| not_connected(socket, source))?;
    let line = exchange(&stream, request).map_err(|source| AskError::NoAnswer {
        socket: socket.to_owned(),
        source,
    })?;
    serde_json::from_str(&line).map_err(|error| AskError::Malformed {
        socket: socket.to_owned(),
        reason: error.to_string(),
    })
}

fn exchange(stream: &UnixStream, request: &AdminRequest) -> io::Result<String> {
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    let mut writer = stream;
    writer.write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream.take(REPLY_BYTES_MAX)).read_line(&mut answer)?;
    if answer.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(answer)
}

fn not_connected(socket: &Path, source: io::Error) -> AskError {
    let socket = socket.to_owned();
    let kind = source.kind();
    if matches!(
        kind,
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    ) {
        AskError::NotRunning { socket }
    } else if kind == io::ErrorKind::PermissionDenied {
        AskError::NotAllowed { socket }
    } else {
        AskError::NoAnswer { socket, source }
    }
}
