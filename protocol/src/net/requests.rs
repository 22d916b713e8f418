//! One request and its reply on a stream of its own: asking, answering, and every way in which that can fail.
//! The bytes are not looked at.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use super::counters::{NetCounters, Refusal};
use super::streams::OpenError;
use super::wire::{
    FrameError, MAX_FRAME, PeerRefusal, read_answer, read_frame, write_frame, write_refusal,
    write_reply,
};
use crate::ids::PublicKey;

/// Why a request has no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The request was not sent: it is over [`MAX_FRAME`].
    #[error("the request has {bytes} bytes, at most {MAX_FRAME} are allowed")]
    TooBig {
        /// Its size.
        bytes: usize,
    },
    /// There is no connection to the peer.
    #[error("there is no connection to the peer")]
    Unreachable,
    /// No reply in time. The peer may have done what was asked.
    #[error("no reply within {after:?}")]
    TimedOut {
        /// The deadline that was given.
        after: Duration,
    },
    /// The connection ended first. The peer may have done what was asked.
    #[error("the connection closed before the reply came")]
    ConnectionClosed,
    /// The peer did nothing, because it has too much to do; it may be asked again later.
    #[error("the peer is busy: {reason}")]
    Busy {
        /// In its own words.
        reason: PeerRefusal,
    },
    /// The peer will not answer this request.
    #[error("the peer refused the request: {reason}")]
    Refused {
        /// In its own words.
        reason: PeerRefusal,
    },
    /// This node has as many requests open to that peer as it allows itself.
    #[error("{limit} requests to the peer are open already")]
    TooManyInFlight {
        /// How many that is.
        limit: usize,
    },
    /// The peer is no Feira node.
    #[error("the peer does not speak the request protocol")]
    Unsupported,
    /// The reply breaks the protocol.
    #[error("the peer's reply is malformed: {reason}")]
    Malformed {
        /// How.
        reason: String,
    },
    /// This node has stopped.
    #[error("the node has stopped")]
    NodeStopped,
}

impl RequestError {
    /// Whether the peer may have done what was asked all the same.
    #[must_use]
    pub const fn may_have_been_handled(&self) -> bool {
        match self {
            Self::TimedOut { .. }
            | Self::ConnectionClosed
            | Self::Malformed { .. }
            | Self::Refused {
                reason: PeerRefusal::NoAnswer,
            } => true,
            Self::TooBig { .. }
            | Self::Unreachable
            | Self::Busy { .. }
            | Self::Refused { .. }
            | Self::TooManyInFlight { .. }
            | Self::Unsupported
            | Self::NodeStopped => false,
        }
    }

    pub(crate) fn of_opening(error: &OpenError, deadline: Duration) -> Self {
        match error {
            OpenError::Unreachable => Self::Unreachable,
            OpenError::TooMany { limit } => Self::TooManyInFlight { limit: *limit },
            OpenError::TimedOut => Self::TimedOut { after: deadline },
            OpenError::Unsupported => Self::Unsupported,
            OpenError::Io(_) => Self::ConnectionClosed,
        }
    }

    fn of_refusal(reason: PeerRefusal) -> Self {
        if reason.is_busy() {
            Self::Busy { reason }
        } else {
            Self::Refused { reason }
        }
    }

    fn of_frame(error: &FrameError) -> Self {
        match error {
            FrameError::Io(_) | FrameError::Truncated => Self::ConnectionClosed,
            FrameError::TooBig { .. } | FrameError::UnknownAnswer(_) => Self::Malformed {
                reason: error.to_string(),
            },
        }
    }
}

/// Refuses what is too big to send.
pub(crate) fn check_size(bytes: &[u8]) -> Result<(), RequestError> {
    if bytes.len() > MAX_FRAME {
        return Err(RequestError::TooBig { bytes: bytes.len() });
    }
    Ok(())
}

/// Sends a request on a fresh stream and waits for its reply.
///
/// Writing and reading go on together: a peer that refuses does so before it has read the request, and may close
/// the stream under our pen; its reason is then already on the way to us.
pub(crate) async fn ask<S>(stream: S, bytes: &[u8]) -> Result<Vec<u8>, RequestError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut reader, mut writer) = stream.split();
    let sending = std::pin::pin!(async move {
        write_frame(&mut writer, bytes).await?;
        writer.close().await
    });
    let reading = std::pin::pin!(read_reply(&mut reader));
    match select(sending, reading).await {
        Either::Left((_, reading)) => reading.await,
        Either::Right((reply, _)) => reply,
    }
}

async fn read_reply<S: AsyncRead + Unpin>(reader: &mut S) -> Result<Vec<u8>, RequestError> {
    match read_answer(reader).await {
        Ok(Ok(())) => read_frame(reader)
            .await
            .map_err(|error| RequestError::of_frame(&error)),
        Ok(Err(refusal)) => Err(RequestError::of_refusal(refusal)),
        Err(error) => Err(RequestError::of_frame(&error)),
    }
}

/// A request that arrived, on its way to the program.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) peer: PublicKey,
    pub(crate) bytes: Vec<u8>,
    pub(crate) responder: Responder,
}

/// The way back to whoever sent a request. Dropping it tells them that there is no answer.
#[derive(Debug)]
pub struct Responder {
    reply: oneshot::Sender<Vec<u8>>,
}

impl Responder {
    /// Sends the reply. It returns as soon as the node has it; it does not wait for the peer.
    ///
    /// # Errors
    /// [`ReplyError::TooBig`], upon which the peer is told that there is no answer; [`ReplyError::TooLate`].
    pub fn reply(self, bytes: Vec<u8>) -> Result<(), ReplyError> {
        if bytes.len() > MAX_FRAME {
            return Err(ReplyError::TooBig { bytes: bytes.len() });
        }
        self.reply.send(bytes).map_err(|_| ReplyError::TooLate)
    }
}

/// Why a reply was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// It is over [`MAX_FRAME`].
    #[error("the reply has {bytes} bytes, at most {MAX_FRAME} are allowed")]
    TooBig {
        /// Its size.
        bytes: usize,
    },
    /// The node does not wait for it any more.
    #[error("nobody waits for the reply any more")]
    TooLate,
}

/// A request's place among those that are arriving, of all and of its source.
#[derive(Debug)]
pub(crate) struct Arriving {
    pub(crate) _of_all: OwnedSemaphorePermit,
    pub(crate) _of_source: Option<OwnedSemaphorePermit>,
}

/// What is needed to answer the requests of a node.
#[derive(Debug, Clone)]
pub(crate) struct Answering {
    pub(crate) queue: mpsc::Sender<Arrived>,
    pub(crate) counters: Arc<NetCounters>,
    /// Places for requests that have arrived whole.
    pub(crate) in_flight: Arc<Semaphore>,
    pub(crate) frame_timeout: Duration,
    pub(crate) answer_timeout: Duration,
}

impl Answering {
    /// Reads the request on `stream`, has the program answer it, and writes the reply.
    /// The peer's place is given back when all is over, however it ends; the one for arriving, once it is here.
    pub(crate) async fn answer<S>(
        self,
        mut stream: S,
        peer: PublicKey,
        _of_peer: OwnedSemaphorePermit,
        arriving: Arriving,
    ) where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let read = self.read(&mut stream).await;
        let in_flight = self.in_flight.try_acquire();
        drop(arriving);
        let outcome = match (read, &in_flight) {
            (Err(none), _) => Err(none),
            (Ok(_), Err(_)) => {
                Err(self.refuse(Refusal::TooManyInFlight, PeerRefusal::TooManyInFlight))
            }
            (Ok(bytes), Ok(_)) => match self.hand_over(peer, bytes) {
                Ok(reply) => self.wait_for(reply).await,
                Err(none) => Err(none),
            },
        };
        // A peer that has gone away while it was answered is its own loss: it sees its connection closed.
        let written = timeout(self.frame_timeout, async {
            match outcome {
                Ok(bytes) => {
                    write_reply(&mut stream, &bytes).await?;
                    stream.close().await?;
                    self.counters.request_answered();
                    Ok(())
                }
                Err(Some(refusal)) => write_refusal(&mut stream, refusal).await,
                Err(None) => Ok(()),
            }
        });
        if !matches!(written.await, Ok(Ok(()))) {
            tracing::debug!(%peer, "a reply could not be written");
        }
    }

    /// `Err(None)` when the stream failed and there is nobody to tell.
    async fn read<S: AsyncRead + Unpin>(
        &self,
        stream: &mut S,
    ) -> Result<Vec<u8>, Option<PeerRefusal>> {
        let Ok(frame) = timeout(self.frame_timeout, read_frame(stream)).await else {
            return Err(self.refuse(Refusal::TooSlow, PeerRefusal::TooSlow));
        };
        frame.map_err(|error| match error {
            FrameError::TooBig { .. } => self.refuse(Refusal::TooBig, PeerRefusal::TooBig),
            FrameError::Truncated | FrameError::UnknownAnswer(_) => {
                self.refuse(Refusal::Malformed, PeerRefusal::Malformed)
            }
            FrameError::Io(_) => None,
        })
    }

    fn hand_over(
        &self,
        peer: PublicKey,
        bytes: Vec<u8>,
    ) -> Result<oneshot::Receiver<Vec<u8>>, Option<PeerRefusal>> {
        let (sender, receiver) = oneshot::channel();
        let arrived = Arrived {
            peer,
            bytes,
            responder: Responder { reply: sender },
        };
        if self.queue.try_send(arrived).is_err() {
            return Err(self.refuse(Refusal::RequestQueueFull, PeerRefusal::QueueFull));
        }
        self.counters.request_received();
        Ok(receiver)
    }

    async fn wait_for(
        &self,
        reply: oneshot::Receiver<Vec<u8>>,
    ) -> Result<Vec<u8>, Option<PeerRefusal>> {
        match timeout(self.answer_timeout, reply).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(_)) | Err(_) => Err(self.refuse(Refusal::NoAnswer, PeerRefusal::NoAnswer)),
        }
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "the callers all want it wrapped: a refusal is an answer there is somebody to give to"
    )]
    fn refuse(&self, counted: Refusal, said: PeerRefusal) -> Option<PeerRefusal> {
        self.counters.refuse(counted);
        Some(said)
    }
}
