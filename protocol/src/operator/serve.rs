//! The answering side of the local socket: one JSON object a line in each direction, for this user and root alone.
//! Nothing here can be reached over the network. What the answers are is not its business.

use super::{Program, Reply};
use serde::de::DeserializeOwned;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// Longest question.
const REQUEST_BYTES_MAX: u64 = 64 * 1024;
/// Connections at once.
const CONNECTIONS_MAX: usize = 64;
/// Whoever connects asks at once or not at all: the silent take a place from others.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Who answers.
pub trait Desk: Clone + Send + Sync + 'static {
    /// What can be asked.
    type Request: DeserializeOwned + Send;
    /// What is answered.
    type Reply: Reply;

    /// The answer to one question.
    fn answer(&self, request: Self::Request) -> impl Future<Output = Self::Reply> + Send;
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the {owner}'s socket {path}")]
pub struct AdminSocketError {
    /// Whose it is.
    pub owner: &'static str,
    /// Where.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// The socket; its file goes when it is dropped.
#[derive(Debug)]
pub struct AdminSocket {
    listener: UnixListener,
    path: PathBuf,
    /// What answers, as the answers call it.
    who: &'static str,
}

impl AdminSocket {
    /// Listens at `path`, with mode 0600. The caller has the data folder to itself, so a socket that is there
    /// already was left behind.
    ///
    /// # Errors
    /// What the system said.
    pub fn bind(program: &Program, path: &Path) -> Result<Self, AdminSocketError> {
        let failed = |source| AdminSocketError {
            owner: program.party,
            path: path.to_owned(),
            source,
        };
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            who: program.runs,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Answers until it is dropped.
    pub async fn serve(self, desk: impl Desk) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                    Ok((stream, _)) => { connections.spawn(converse(stream, self.who, desk.clone())); }
                    Err(error) => {
                        tracing::warn!(%error, "a command could not be let in");
                        // Out of file descriptors, most likely: it passes.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
    }
}

impl Drop for AdminSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Answers line after line until the other side hangs up.
async fn converse<D: Desk>(mut stream: UnixStream, who: &'static str, desk: D) {
    let allowed = stream.peer_cred().is_ok_and(|peer| may_ask(peer.uid()));
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader.take(REQUEST_BYTES_MAX));
    let mut line = String::new();
    loop {
        line.clear();
        let read = tokio::time::timeout(READ_TIMEOUT, reader.read_line(&mut line)).await;
        if !matches!(read, Ok(Ok(length)) if length > 0) {
            return;
        }
        let is_cut = reader.get_ref().limit() == 0 && !line.ends_with('\n');
        let reply = if !allowed {
            D::Reply::refusal(format!("only the {who}'s own user and root may ask it"))
        } else if is_cut {
            D::Reply::refusal(format!("a question has at most {REQUEST_BYTES_MAX} bytes"))
        } else {
            match serde_json::from_str(&line) {
                Ok(request) => desk.answer(request).await,
                Err(error) => {
                    D::Reply::refusal(format!("that is no question this {who} knows: {error}"))
                }
            }
        };
        let Ok(mut answer) = serde_json::to_vec(&reply) else {
            return;
        };
        answer.push(b'\n');
        if writer.write_all(&answer).await.is_err() || !allowed || is_cut {
            return;
        }
        reader.get_mut().set_limit(REQUEST_BYTES_MAX);
    }
}

fn may_ask(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}
