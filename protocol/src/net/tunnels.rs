//! Byte streams between the programs of two peers: opened, accepted with one byte, then the programs' own.
//! What flows through them is never looked at.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt};

use super::streams::{GuardedStream, OpenError, Opened};
use super::wire::{FrameError, PeerRefusal, read_answer};
use crate::ids::PublicKey;

/// A byte stream to another peer's program, both ways, each of which can be closed by itself.
/// As long as it is held, the connection under it is kept. When the connection is lost, what has arrived can still be
/// read, then reads and writes fail: an orderly end always means that the peer's program closed it.
#[derive(Debug)]
pub struct Tunnel {
    stream: Compat<Box<GuardedStream>>,
    peer: PublicKey,
    relayed: bool,
    _place: OwnedSemaphorePermit,
}

impl Tunnel {
    pub(crate) fn new(
        stream: GuardedStream,
        peer: PublicKey,
        relayed: bool,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            stream: Box::new(stream).compat(),
            peer,
            relayed,
            _place: place,
        }
    }

    /// Waits for the other side's word on a stream this node opened.
    pub(crate) async fn wait_accepted(
        opened: Opened,
        peer: PublicKey,
    ) -> Result<Self, TunnelError> {
        let Opened {
            mut stream,
            relayed,
            place,
            connection: _,
        } = opened;
        match read_answer(&mut stream).await {
            Ok(Ok(())) => Ok(Self::new(stream, peer, relayed, place)),
            Ok(Err(reason)) => Err(TunnelError::Refused { reason }),
            Err(FrameError::Io(_) | FrameError::Truncated) => Err(TunnelError::ConnectionClosed),
            Err(error @ (FrameError::UnknownAnswer(_) | FrameError::TooBig { .. })) => {
                Err(TunnelError::Malformed {
                    reason: error.to_string(),
                })
            }
        }
    }

    /// Who is at the other end.
    #[must_use]
    pub const fn peer(&self) -> PublicKey {
        self.peer
    }

    /// Whether it goes through a broker's relay.
    #[must_use]
    pub const fn relayed(&self) -> bool {
        self.relayed
    }
}

/// Why there is no tunnel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TunnelError {
    /// There is no connection to the peer.
    #[error("there is no connection to the peer")]
    Unreachable,
    /// The peer did not say yes or no in time.
    #[error("the peer did not accept the tunnel within {after:?}")]
    TimedOut {
        /// The deadline that was given.
        after: Duration,
    },
    /// The connection ended first.
    #[error("the connection closed before the tunnel was accepted")]
    ConnectionClosed,
    /// The peer said no.
    #[error("the peer refused the tunnel: {reason}")]
    Refused {
        /// In its own words.
        reason: PeerRefusal,
    },
    /// This node has as many tunnels open to that peer as it allows itself.
    #[error("{limit} tunnels to the peer are open already")]
    TooManyTunnels {
        /// How many that is.
        limit: usize,
    },
    /// The peer takes no tunnels.
    #[error("the peer does not speak the tunnel protocol")]
    Unsupported,
    /// The peer breaks the protocol.
    #[error("the peer's answer is malformed: {reason}")]
    Malformed {
        /// How.
        reason: String,
    },
    /// This node has stopped.
    #[error("the node has stopped")]
    NodeStopped,
}

impl TunnelError {
    pub(crate) fn of_opening(error: &OpenError, deadline: Duration) -> Self {
        match error {
            OpenError::Unreachable => Self::Unreachable,
            OpenError::TooMany { limit } => Self::TooManyTunnels { limit: *limit },
            OpenError::TimedOut => Self::TimedOut { after: deadline },
            OpenError::Unsupported => Self::Unsupported,
            OpenError::Io(_) => Self::ConnectionClosed,
        }
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
