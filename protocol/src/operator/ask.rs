//! The asking side of the local socket: one question, one answer.

use super::{Exit, Program};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest answer: a million leases.
const REPLY_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// What comes back over the local socket, one kind of which is a refusal.
pub trait Reply: Serialize + DeserializeOwned + Send {
    /// No, because.
    fn refusal(reason: String) -> Self;

    /// Why it is a refusal, if it is one, and how the command ends by it.
    fn refused(&self) -> Option<(Exit, &str)>;
}

/// Why there is no answer. `who` is what should have answered: `broker`, `agent`.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens.
    #[error("no {who} runs on {socket}")]
    NotRunning {
        /// Who was asked.
        who: &'static str,
        /// The socket.
        socket: PathBuf,
    },
    /// The socket is somebody else's.
    #[error("this user may not talk to the {who} at {socket}")]
    NotAllowed {
        /// Who was asked.
        who: &'static str,
        /// The socket.
        socket: PathBuf,
    },
    /// There is no answer, or not all of it.
    #[error("the {who} at {socket} did not answer")]
    NoAnswer {
        /// Who was asked.
        who: &'static str,
        /// The socket.
        socket: PathBuf,
        /// What happened.
        #[source]
        source: io::Error,
    },
    /// The answer is something else.
    #[error(
        "the {who} at {socket} answers in another way than this program expects: is it another version? ({reason})"
    )]
    Malformed {
        /// Who was asked.
        who: &'static str,
        /// The socket.
        socket: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Asks what `program` runs behind `socket`.
///
/// # Errors
/// When nobody listens, may be asked, or answers in time.
pub fn ask<R: Reply>(
    program: &Program,
    socket: &Path,
    request: &impl Serialize,
) -> Result<R, AskError> {
    let who = program.runs;
    let stream =
        UnixStream::connect(socket).map_err(|source| not_connected(who, socket, source))?;
    let line = exchange(&stream, request).map_err(|source| AskError::NoAnswer {
        who,
        socket: socket.to_owned(),
        source: in_words(source),
    })?;
    serde_json::from_str(&line).map_err(|error| AskError::Malformed {
        who,
        socket: socket.to_owned(),
        reason: error.to_string(),
    })
}

fn exchange(stream: &UnixStream, request: &impl Serialize) -> io::Result<String> {
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

fn not_connected(who: &'static str, socket: &Path, source: io::Error) -> AskError {
    let socket = socket.to_owned();
    let kind = source.kind();
    if matches!(
        kind,
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    ) {
        AskError::NotRunning { who, socket }
    } else if kind == io::ErrorKind::PermissionDenied {
        AskError::NotAllowed { who, socket }
    } else {
        AskError::NoAnswer {
            who,
            socket,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_said_with_the_time_that_was_waited() {
        let frozen = in_words(io::Error::from_raw_os_error(11));
        assert_eq!(frozen.to_string(), "nothing came within 30 s");
        let cut = in_words(io::ErrorKind::UnexpectedEof.into());
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
    }
}
