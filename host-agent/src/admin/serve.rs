//! The answering side of the owner's socket. Only this user and root are answered; what is asked goes to the
//! agent's loop, which owns the answers.

use super::wire::{AdminReply, AdminRequest, REQUEST_BYTES_MAX};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// Owners at once.
const CONNECTIONS_MAX: usize = 16;
/// An owner asks at once or not at all: whoever only sits there gives way to the next.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// A question on its way to the loop, and where its answer goes.
pub(crate) type Asked = (AdminRequest, oneshot::Sender<AdminReply>);

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the owner's socket {path}")]
pub struct AdminSocketError {
    /// Where.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// The socket; its file goes when it is dropped.
#[derive(Debug)]
pub(crate) struct AdminSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl AdminSocket {
    /// The caller has the data folder to itself, so a socket that is there already was left behind.
    pub(crate) fn bind(path: &Path) -> Result<Self, AdminSocketError> {
        let failed = |source| AdminSocketError {
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
        })
    }

    /// Answers owners until it is dropped.
    pub(crate) async fn serve(self, agent: mpsc::Sender<Asked>) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                    Ok((stream, _)) => { connections.spawn(converse(stream, agent.clone())); }
                    Err(error) => {
                        tracing::warn!(%error, "an owner could not be let in");
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

/// Answers line after line until the owner hangs up.
async fn converse(mut stream: UnixStream, agent: mpsc::Sender<Asked>) {
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
        let reply = if allowed {
            answer(&line, &agent).await
        } else {
            AdminReply::Refused("only the agent's own user and root may ask it".to_owned())
        };
        let Ok(mut answer) = serde_json::to_vec(&reply) else {
            return;
        };
        answer.push(b'\n');
        if writer.write_all(&answer).await.is_err() || !allowed {
            return;
        }
        reader.get_mut().set_limit(REQUEST_BYTES_MAX);
    }
}

async fn answer(line: &str, agent: &mpsc::Sender<Asked>) -> AdminReply {
    let request = match serde_json::from_str(line) {
        Ok(request) => request,
        Err(error) => {
            return AdminReply::Refused(format!("that is no question an agent knows: {error}"));
        }
    };
    let (reply, answered) = oneshot::channel();
    let stopping = || AdminReply::Refused("the agent is stopping".to_owned());
    if agent.send((request, reply)).await.is_err() {
        return stopping();
    }
    answered.await.unwrap_or_else(|_| stopping())
}

fn may_ask(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}
