//! The answering side of the operator's socket. Only this user and root are answered.

use super::desk::AdminDesk;
use super::wire::{AdminReply, REQUEST_BYTES_MAX};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// Operators at once.
const CONNECTIONS_MAX: usize = 64;
/// An operator asks at once or not at all: whoever is silent takes a place from others.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the operator's socket {path}")]
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

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Answers operators until it is dropped.
    pub(crate) async fn serve(self, desk: AdminDesk) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                    Ok((stream, _)) => { connections.spawn(converse(stream, desk.clone())); }
                    Err(error) => {
                        tracing::warn!(%error, "an operator could not be let in");
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

/// Answers line after line until the operator hangs up.
async fn converse(mut stream: UnixStream, desk: AdminDesk) {
    let allowed = stream.peer_cred().is_ok_and(|peer| may_operate(peer.uid()));
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
            AdminReply::Refused("only the broker's own user and root may operate it".to_owned())
        } else if is_cut {
            AdminReply::Refused(format!("a question has at most {REQUEST_BYTES_MAX} bytes"))
        } else {
            desk.answer_line(&line).await
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

fn may_operate(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}
