//! What crosses a stream, byte by byte: a length and that many bytes, or one byte that says no.
//! It must not know what the bytes mean.
//!
//! ```text
//! request   u32 little-endian length ‖ bytes
//! reply     0 ‖ u32 little-endian length ‖ bytes        or   refusal (one byte, never 0)
//! tunnel    acceptor first: 0, then the tunnel's bytes  or   refusal
//! speed     acceptor first: 0, then see `speed`         or   refusal
//! ```
//! The length is there so that a stream cut in the middle is never taken for a whole message.

use std::io;

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The most bytes a request or a reply may have: 256 KiB.
pub const MAX_FRAME: usize = 256 * 1024;
const MAX_FRAME_U32: u32 = 256 * 1024;

const ACCEPTED: u8 = 0;

/// The answer of a peer that does not do what was asked, as it crosses the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PeerRefusal {
    /// More requests a second than the peer allows.
    #[error("too many requests a second")]
    TooManyRequests,
    /// More requests at once than the peer allows.
    #[error("too many requests at once")]
    TooManyInFlight,
    /// The peer's program is behind.
    #[error("its queue is full")]
    QueueFull,
    /// The peer is going down.
    #[error("it is stopping")]
    Stopping,
    /// More tunnels than the peer allows.
    #[error("too many tunnels")]
    TooManyTunnels,
    /// The request is over [`MAX_FRAME`].
    #[error("the request is too big")]
    TooBig,
    /// The request was cut short.
    #[error("the request is malformed")]
    Malformed,
    /// The request took too long to arrive.
    #[error("the request arrived too slowly")]
    TooSlow,
    /// The peer's program gave no answer.
    #[error("it gave no answer")]
    NoAnswer,
    /// More connections of one key than the peer allows; it closes this one.
    #[error("too many connections of this key at once; try again")]
    TooManyConnections,
    /// The peer gives no measurement of the network, or has given as many as it will for a while.
    #[error("it gives no measurements of the network, or no more of them for now")]
    MeasuredEnough,
}

impl PeerRefusal {
    const ALL: [Self; 11] = [
        Self::TooManyRequests,
        Self::TooManyInFlight,
        Self::QueueFull,
        Self::Stopping,
        Self::TooManyTunnels,
        Self::TooBig,
        Self::Malformed,
        Self::TooSlow,
        Self::NoAnswer,
        Self::TooManyConnections,
        Self::MeasuredEnough,
    ];

    /// Whether asking again later may well succeed.
    #[must_use]
    pub const fn is_busy(self) -> bool {
        match self {
            Self::TooManyRequests
            | Self::TooManyInFlight
            | Self::QueueFull
            | Self::Stopping
            | Self::TooManyConnections
            | Self::MeasuredEnough => true,
            Self::TooManyTunnels
            | Self::TooBig
            | Self::Malformed
            | Self::TooSlow
            | Self::NoAnswer => false,
        }
    }

    const fn byte(self) -> u8 {
        match self {
            Self::TooManyRequests => 1,
            Self::TooManyInFlight => 2,
            Self::QueueFull => 3,
            Self::Stopping => 4,
            Self::TooManyTunnels => 5,
            Self::TooBig => 6,
            Self::Malformed => 7,
            Self::TooSlow => 8,
            Self::NoAnswer => 9,
            Self::TooManyConnections => 10,
            Self::MeasuredEnough => 11,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.byte() == byte)
    }
}

/// What is wrong with an arriving frame.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("it announces {announced} bytes, more than {MAX_FRAME}")]
    TooBig { announced: u32 },
    #[error("it ended before its announced length")]
    Truncated,
    #[error("byte {0} is no known answer")]
    UnknownAnswer(u8),
    #[error("the stream failed: {0}")]
    Io(io::Error),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            Self::Truncated
        } else {
            Self::Io(error)
        }
    }
}

/// Reads a length and that many bytes; memory grows with what arrives, not with what is announced.
pub(crate) async fn read_frame<S: AsyncRead + Unpin>(
    stream: &mut S,
) -> Result<Vec<u8>, FrameError> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let announced = u32::from_le_bytes(length);
    if announced > MAX_FRAME_U32 {
        return Err(FrameError::TooBig { announced });
    }
    let mut bytes = Vec::new();
    stream
        .take(u64::from(announced))
        .read_to_end(&mut bytes)
        .await?;
    if u32::try_from(bytes.len()) == Ok(announced) {
        Ok(bytes)
    } else {
        Err(FrameError::Truncated)
    }
}

/// Writes a length and the bytes, and flushes. The caller has checked the length.
pub(crate) async fn write_frame<S: AsyncWrite + Unpin>(
    stream: &mut S,
    bytes: &[u8],
) -> io::Result<()> {
    write_after(stream, &[], bytes).await
}

/// Writes the byte that says yes, then a length and the bytes, and flushes. The caller has checked the length.
pub(crate) async fn write_reply<S: AsyncWrite + Unpin>(
    stream: &mut S,
    bytes: &[u8],
) -> io::Result<()> {
    write_after(stream, &[ACCEPTED], bytes).await
}

/// In one piece: every write to a stream becomes a frame, an encrypted packet and a system call of its own.
async fn write_after<S: AsyncWrite + Unpin>(
    stream: &mut S,
    before: &[u8],
    bytes: &[u8],
) -> io::Result<()> {
    let length = u32::try_from(bytes.len())
        .ok()
        .filter(|length| *length <= MAX_FRAME_U32)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "frame over the limit"))?;
    let whole = [before, length.to_le_bytes().as_slice(), bytes].concat();
    stream.write_all(&whole).await?;
    stream.flush().await
}

/// Reads the byte with which a reply or a tunnel begins.
pub(crate) async fn read_answer<S: AsyncRead + Unpin>(
    stream: &mut S,
) -> Result<Result<(), PeerRefusal>, FrameError> {
    let mut byte = [0];
    stream.read_exact(&mut byte).await?;
    match byte[0] {
        ACCEPTED => Ok(Ok(())),
        other => PeerRefusal::from_byte(other)
            .map(Err)
            .ok_or(FrameError::UnknownAnswer(other)),
    }
}

/// Writes the byte that says yes, and flushes.
pub(crate) async fn write_accepted<S: AsyncWrite + Unpin>(stream: &mut S) -> io::Result<()> {
    stream.write_all(&[ACCEPTED]).await?;
    stream.flush().await
}

/// Writes the byte that says no and why. The stream must then be dropped, not closed: only that resets it, and so
/// frees a peer that is still busy writing to us.
pub(crate) async fn write_refusal<S: AsyncWrite + Unpin>(
    stream: &mut S,
    refusal: PeerRefusal,
) -> io::Result<()> {
    stream.write_all(&[refusal.byte()]).await?;
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use futures::io::Cursor;

    use super::*;

    #[test]
    fn a_frame_is_its_length_and_its_bytes() {
        let mut wire = Vec::new();
        block_on(write_frame(&mut wire, b"feira")).unwrap();
        assert_eq!(wire, b"\x05\0\0\0feira");
        let mut reply = Vec::new();
        block_on(write_reply(&mut reply, b"feira")).unwrap();
        assert_eq!(reply, b"\0\x05\0\0\0feira");
        let read = block_on(read_frame(&mut Cursor::new(wire))).unwrap();
        assert_eq!(read, b"feira");
    }

    #[test]
    fn the_limit_is_exact_on_both_sides() {
        let full = vec![7; MAX_FRAME];
        let mut wire = Vec::new();
        block_on(write_frame(&mut wire, &full)).unwrap();
        assert_eq!(block_on(read_frame(&mut Cursor::new(wire))).unwrap(), full);

        assert!(block_on(write_frame(&mut Vec::new(), &vec![7; MAX_FRAME + 1])).is_err());
        let announced = [1, 0, 4, 0]; // 256 KiB and one byte
        let error = block_on(read_frame(&mut Cursor::new(announced))).unwrap_err();
        assert!(matches!(error, FrameError::TooBig { announced: 262_145 }));
    }

    #[test]
    fn a_cut_frame_is_not_a_frame() {
        for cut in 0..9 {
            let wire = &b"\x05\0\0\0feira"[..cut];
            let error = block_on(read_frame(&mut Cursor::new(wire))).unwrap_err();
            assert!(matches!(error, FrameError::Truncated), "cut at {cut}");
        }
    }

    #[test]
    fn refusals_keep_their_bytes() {
        for (place, refusal) in PeerRefusal::ALL.into_iter().enumerate() {
            let mut wire = Vec::new();
            block_on(write_refusal(&mut wire, refusal)).unwrap();
            assert_eq!(usize::from(wire[0]), place + 1);
            let read = block_on(read_answer(&mut Cursor::new(wire))).unwrap();
            assert_eq!(read, Err(refusal));
        }
        let unknown = block_on(read_answer(&mut Cursor::new([99]))).unwrap_err();
        assert!(matches!(unknown, FrameError::UnknownAnswer(99)));
    }
}
