//! The asking side of the operator's socket: one question, one answer.

use super::wire::{AdminReply, AdminRequest, REPLY_BYTES_MAX};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a broker may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens.
    #[error("no broker runs on {socket}")]
    NotRunning {
        /// The socket.
        socket: PathBuf,
    },
    /// The socket is somebody else's.
    #[error("this user may not talk to the broker at {socket}")]
    NotAllowed {
        /// The socket.
        socket: PathBuf,
    },
    /// The broker does not answer, or not in full.
    #[error("the broker at {socket} did not answer")]
    NoAnswer {
        /// The socket.
        socket: PathBuf,
        /// What happened.
        #[source]
        source: io::Error,
    },
    /// The broker answers something else.
    #[error(
        "the broker at {socket} answers in another way than this program expects: is it another version? ({reason})"
    )]
    Malformed {
        /// The socket.
        socket: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Asks the broker behind `socket`.
///
/// # Errors
/// When nobody listens, may be asked, or answers in time.
pub fn ask(socket: &Path, request: &AdminRequest) -> Result<AdminReply, AskError> {
    let stream = UnixStream::connect(socket).map_err(|source| not_connected(socket, source))?;
    let line = exchange(&stream, request).map_err(|source| AskError::NoAnswer {
        socket: socket.to_owned(),
        source: in_words(source),
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

/// A time that is over comes from the system as "temporarily unavailable".
fn in_words(source: io::Error) -> io::Error {
    if matches!(
        source.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    ) {
        let within = ANSWER_TIMEOUT.as_secs();
        return io::Error::new(
            io::ErrorKind::TimedOut,
            format!("nothing came within {within} s"),
        );
    }
    source
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_that_says_nothing_is_told_so_with_the_time() {
        let frozen = in_words(io::Error::from_raw_os_error(11));
        assert_eq!(frozen.to_string(), "nothing came within 30 s");
        let cut = in_words(io::ErrorKind::UnexpectedEof.into());
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
    }
}
