//! Tunnels of renters into the containers of their leases: who may open one, and what flows through it.
//!
//! A tunnel begins with a signed request. It is answered once, and what follows is either a program in the
//! container or the container's logs. This module does not know brokers or money; whose lease it is it asks
//! a [`LeaseLookup`]. Everything that waits is bounded: a reader that is slow slows the program.

//!
//! ```text
//!   read request (deadline) ─▶ verify, admit ─▶ take a place ─▶ start ─▶ answer ─▶ frames, until one side ends
//! ```

pub mod places;

mod exec;
mod logs;
mod refusals;
mod shell;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use protocol::ids::{HostId, LeaseId, PublicKey, RenterId};
use protocol::lease::Detail;
use protocol::net::frames::{MessageError, read_message, write_message};
use protocol::signed::Verified;
use protocol::tunnel::{Opening, OpeningReply, Purpose, TunnelRefusal, TunnelRequest};
use protocol::units::{Seconds, Timestamp};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::runtime::{Runtime, RuntimeError};
use places::{NoPlace, Place, Places, Request};

pub use refusals::{Refusal, Refusals};

/// How long a tunnel may be open without its request.
const OPENING_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer that ends the tunnel may take to be written.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What this host knows of a lease that somebody wants to enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseAccess {
    /// Whose it is.
    pub renter: RenterId,
    /// Further keys that may enter: the order's `access`.
    pub keys: Vec<PublicKey>,
    /// Whether its container runs.
    pub running: bool,
    /// Where its logs are or will be saved before the container is removed.
    pub saved_logs: PathBuf,
    /// How its main process last ended, if it did.
    pub exit_code: Option<i32>,
    /// How long saved logs are kept after the end: what a renter who comes too late is told.
    pub logs_kept: Seconds,
}

impl LeaseAccess {
    fn admits(&self, key: PublicKey) -> bool {
        PublicKey::from(self.renter) == key || self.keys.contains(&key)
    }
}

/// Where leases are looked up: the agent.
pub trait LeaseLookup: Send + Sync + 'static {
    /// The lease, if this host has or had it and still keeps anything of it.
    fn lease(&self, lease: LeaseId) -> impl Future<Output = Option<LeaseAccess>> + Send;
}

/// Serves the tunnels of one host. Shared by the tasks that do; each tunnel is one call of
/// [`Self::serve_tunnel`], and giving that call up ends what it started.
#[derive(Debug)]
pub struct AccessService<R, L> {
    runtime: Arc<R>,
    leases: L,
    host: HostId,
    now: fn() -> Timestamp,
    places: Arc<Places>,
    refusals: Refusals,
}

/// A request that was let in.
struct Admitted {
    request: TunnelRequest,
    access: LeaseAccess,
    _place: Place,
}

impl<R: Runtime, L: LeaseLookup> AccessService<R, L> {
    /// For `host`, whose wall clock is `now`.
    pub fn new(runtime: Arc<R>, leases: L, host: HostId, now: fn() -> Timestamp) -> Self {
        let places = Arc::new(Places::default());
        Self {
            runtime,
            leases,
            host,
            now,
            places,
            refusals: Refusals::default(),
        }
    }

    /// How many tunnels are served now.
    #[must_use]
    pub fn open_tunnels(&self) -> usize {
        self.places.open()
    }

    /// What was refused so far, and why.
    #[must_use]
    pub const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Serves `tunnel`, whose other end is `peer` by the connection's own key, until one side ends it.
    pub async fn serve_tunnel<T>(&self, mut tunnel: T, peer: PublicKey)
    where
        T: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let opening =
            tokio::time::timeout(OPENING_TIMEOUT, read_message::<Opening, _>(&mut tunnel));
        let admitted = match opening.await {
            Ok(Ok(Some(opening))) => self.admit(&opening, peer).await,
            Ok(Err(error @ (MessageError::Form(_) | MessageError::TooBig { .. }))) => {
                self.refusals.count(Refusal::Unreadable);
                Err(bad_request(&error.to_string()))
            }
            Ok(Ok(None) | Err(MessageError::Truncated | MessageError::Io(_))) | Err(_) => {
                self.refusals.count(Refusal::Unasked);
                return;
            }
        };
        match admitted {
            Ok(admitted) => self.serve_admitted(tunnel, admitted).await,
            Err(refusal) => refuse(&mut tunnel, refusal).await,
        }
    }

    async fn serve_admitted<T>(&self, tunnel: T, admitted: Admitted)
    where
        T: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let Admitted {
            request,
            access,
            _place,
        } = admitted;
        match request.purpose {
            Purpose::Exec(asked) => {
                exec::serve(&*self.runtime, tunnel, request.lease, &access, asked).await;
            }
            Purpose::Logs(asked) => {
                logs::serve(&*self.runtime, tunnel, request.lease, &access, asked).await;
            }
        }
    }

    async fn admit(&self, opening: &Opening, peer: PublicKey) -> Result<Admitted, TunnelRefusal> {
        let now = (self.now)();
        let verified = opening
            .verify_fresh(self.host.into(), now)
            .map_err(|error| {
                self.refusals.count(Refusal::of_signature(&error));
                bad_request(&error.to_string())
            })?;
        if verified.signer() != peer {
            self.refusals.count(Refusal::NotTheSigner);
            return Err(bad_request(
                "it was signed by another key than the connection's",
            ));
        }
        // Somebody else's lease and one that never was look alike from outside.
        let found = self.leases.lease(verified.body().lease).await;
        let Some(access) = found.filter(|access| access.admits(peer)) else {
            self.refusals.count(Refusal::UnknownLease);
            return Err(TunnelRefusal::UnknownLease);
        };
        let place = self.take_place(&verified, now)?;
        Ok(Admitted {
            request: verified.into_body(),
            access,
            _place: place,
        })
    }

    fn take_place(
        &self,
        verified: &Verified<TunnelRequest>,
        now: Timestamp,
    ) -> Result<Place, TunnelRefusal> {
        let request = Request {
            signer: verified.signer(),
            message: verified.header().message_id,
            forgettable_at: verified.forgettable_at(),
            lease: verified.body().lease,
        };
        self.places
            .take(request, now)
            .map_err(|refusal| match refusal {
                NoPlace::TooMany => {
                    self.refusals.count(Refusal::TooMany);
                    TunnelRefusal::TooMany
                }
                NoPlace::Replayed => {
                    self.refusals.count(Refusal::Replayed);
                    bad_request("it was used before")
                }
            })
    }
}

fn bad_request(detail: &str) -> TunnelRefusal {
    TunnelRefusal::BadRequest(Detail::cut(detail))
}

fn engine_failed(error: &RuntimeError) -> TunnelRefusal {
    TunnelRefusal::EngineFailed(Detail::cut(&error.to_string()))
}

/// Says no and closes. Whether the other side hears it is its own affair.
async fn refuse<T: AsyncWrite + Unpin>(tunnel: &mut T, refusal: TunnelRefusal) {
    tracing::debug!(%refusal, "a tunnel was refused");
    let reply = OpeningReply::Refused(refusal);
    let answer = async {
        let _gone = write_message(tunnel, &reply).await;
        let _gone = tunnel.shutdown().await;
    };
    let _late = tokio::time::timeout(ANSWER_TIMEOUT, answer).await;
}

#[cfg(test)]
mod tests;
