//! A stream that ends with its connection.
//!
//! Needed because yamux, when a connection is closed from this side (for instance since its peer no longer answers
//! pings), never tells the streams that are still held: a read would wait for ever. It also reports the loss of the
//! connection as an orderly end of the stream; here that is an error, so that half of something is not taken for
//! all of it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::{AsyncRead, AsyncWrite};
use libp2p::swarm::Stream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// One side's wait for the end of the connection, begun when there is first something to wait for.
type Wait = Option<Pin<Box<WaitForCancellationFutureOwned>>>;

/// A libp2p stream and the end of the connection it is on.
#[derive(Debug)]
pub(crate) struct GuardedStream {
    stream: Stream,
    gone: CancellationToken,
    /// Reader and writer may be two tasks, and each must be woken.
    reader: Wait,
    writer: Wait,
}

impl GuardedStream {
    pub(super) fn new(stream: Stream, gone: CancellationToken) -> Self {
        Self {
            stream,
            gone,
            reader: None,
            writer: None,
        }
    }
}

/// What the stream said, or an error if it has nothing to say and never will have.
fn or_gone<T>(
    said: Poll<io::Result<T>>,
    gone: &CancellationToken,
    wait: &mut Wait,
    cx: &mut Context<'_>,
) -> Poll<io::Result<T>> {
    match said {
        Poll::Pending => {}
        // The muxer has several words for it, "wrote zero bytes" among them.
        Poll::Ready(Err(_)) if gone.is_cancelled() => return Poll::Ready(Err(reset())),
        Poll::Ready(_) => return said,
    }
    let wait = wait.get_or_insert_with(|| Box::pin(gone.clone().cancelled_owned()));
    wait.as_mut().poll(cx).map(|()| Err(reset()))
}

fn reset() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionReset,
        "the connection to the peer is gone",
    )
}

impl AsyncRead for GuardedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        // What has arrived is read first, also after the end of the connection.
        let said = Pin::new(&mut this.stream).poll_read(cx, buffer);
        if matches!(said, Poll::Ready(Ok(0))) && !buffer.is_empty() && this.gone.is_cancelled() {
            return Poll::Ready(Err(reset()));
        }
        or_gone(said, &this.gone, &mut this.reader, cx)
    }
}

impl AsyncWrite for GuardedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let said = Pin::new(&mut this.stream).poll_write(cx, bytes);
        or_gone(said, &this.gone, &mut this.writer, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let said = Pin::new(&mut this.stream).poll_flush(cx);
        or_gone(said, &this.gone, &mut this.writer, cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let said = Pin::new(&mut this.stream).poll_close(cx);
        or_gone(said, &this.gone, &mut this.writer, cx)
    }
}
