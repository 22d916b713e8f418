//! Messages on a byte stream, such as a tunnel: a 4-byte little-endian length and that many bytes of the
//! canonical codec. It does not know what the messages mean.
//!
//! Memory grows with what arrives, never with what is announced, and no message is larger than
//! [`FRAME_BYTES_MAX`].

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::codec::{self, CodecError};
use crate::tunnel::FRAME_BYTES_MAX;

const LENGTH_BYTES: usize = 4;

/// Why there is no message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The other side announces more than a message may be.
    #[error("a message of {announced} bytes was announced; {FRAME_BYTES_MAX} are allowed")]
    TooBig {
        /// The announced length.
        announced: u64,
    },
    /// The stream ended within a message.
    #[error("the stream ended within a message")]
    Truncated,
    /// The bytes are no message of the wanted type.
    #[error(transparent)]
    Form(#[from] CodecError),
    /// The stream failed.
    #[error("the stream failed: {0}")]
    Io(#[source] io::Error),
}

/// Reads one message; nothing when the stream ends before it. Not cancel-safe: use [`MessageReader`] where
/// a read may be given up.
///
/// # Errors
/// When the stream fails or brings something else.
pub async fn read_message<T, S>(stream: &mut S) -> Result<Option<T>, MessageError>
where
    T: Serialize + DeserializeOwned,
    S: AsyncRead + Unpin,
{
    MessageReader::new(stream).next().await
}

/// Writes one message and flushes.
///
/// # Errors
/// When the stream fails, or the message is too big.
pub async fn write_message<T, S>(stream: &mut S, message: &T) -> Result<(), MessageError>
where
    T: Serialize,
    S: AsyncWrite + Unpin,
{
    let body = codec::encode(message)?;
    let announced = u64::try_from(body.len()).unwrap_or(u64::MAX);
    if body.len() > FRAME_BYTES_MAX {
        return Err(MessageError::TooBig { announced });
    }
    let length = u32::try_from(body.len()).map_err(|_| MessageError::TooBig { announced })?;
    // One write for both: two would be two packets.
    let mut bytes = Vec::with_capacity(LENGTH_BYTES + body.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&body);
    stream.write_all(&bytes).await.map_err(MessageError::Io)?;
    stream.flush().await.map_err(MessageError::Io)
}

/// Reads messages one after another; a read that was given up goes on where it was.
#[derive(Debug)]
pub struct MessageReader<S> {
    stream: S,
    /// Length and body of the message that is being read, as far as they came.
    bytes: Vec<u8>,
}

impl<S: AsyncRead + Unpin> MessageReader<S> {
    /// Over `stream`.
    pub const fn new(stream: S) -> Self {
        Self {
            stream,
            bytes: Vec::new(),
        }
    }

    /// The next message; nothing when the stream ends before it. Cancel-safe.
    ///
    /// # Errors
    /// When the stream fails or brings something else; there is no going on after that.
    pub async fn next<T>(&mut self) -> Result<Option<T>, MessageError>
    where
        T: Serialize + DeserializeOwned,
    {
        if !self.fill(LENGTH_BYTES).await? {
            return Ok(None);
        }
        let announced = match self.bytes.first_chunk() {
            Some(length) => u32::from_le_bytes(*length),
            None => return Err(MessageError::Truncated),
        };
        let too_big = || MessageError::TooBig {
            announced: u64::from(announced),
        };
        let body = usize::try_from(announced).map_err(|_| too_big())?;
        if body > FRAME_BYTES_MAX {
            return Err(too_big());
        }
        self.fill(LENGTH_BYTES + body).await?;
        let message = codec::decode(&self.bytes[LENGTH_BYTES..])?;
        self.bytes.clear();
        Ok(Some(message))
    }

    /// Reads until `wanted` bytes are there; false when the stream ended before the first of a message.
    async fn fill(&mut self, wanted: usize) -> Result<bool, MessageError> {
        while self.bytes.len() < wanted {
            let missing = u64::try_from(wanted - self.bytes.len()).unwrap_or(u64::MAX);
            let mut bounded = (&mut self.stream).take(missing);
            let read = bounded
                .read_buf(&mut self.bytes)
                .await
                .map_err(MessageError::Io)?;
            match (read, self.bytes.is_empty()) {
                (0, true) => return Ok(false),
                (0, false) => return Err(MessageError::Truncated),
                _ => {}
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounded::Blob;
    use crate::tunnel::{DATA_BYTES_MAX, Downward, Upward};
    use std::time::Duration;

    #[tokio::test]
    async fn a_message_is_its_length_and_its_canonical_bytes() {
        let mut wire = Vec::new();
        write_message(&mut wire, &Upward::InputEnd).await.unwrap();
        // Variant 1 of an enum is a u32.
        assert_eq!(wire, [4, 0, 0, 0, 1, 0, 0, 0]);
        let mut wire = wire.as_slice();
        assert_eq!(
            read_message(&mut wire).await.unwrap(),
            Some(Upward::InputEnd)
        );
        assert_eq!(read_message::<Upward, _>(&mut wire).await.unwrap(), None);
    }

    #[tokio::test]
    async fn the_largest_frame_passes() {
        let output = Downward::Output(Blob::new(vec![9; DATA_BYTES_MAX]).unwrap());
        let mut wire = Vec::new();
        write_message(&mut wire, &output).await.unwrap();
        assert_eq!(wire.len(), 4 + 4 + 8 + DATA_BYTES_MAX);
        assert_eq!(
            read_message(&mut wire.as_slice()).await.unwrap(),
            Some(output)
        );
    }

    #[tokio::test]
    async fn too_much_too_little_and_something_else_are_errors() {
        let big = [1, 0, 1, 0]; // 64 KiB and one
        let error = read_message::<Upward, _>(&mut big.as_slice())
            .await
            .unwrap_err();
        assert!(matches!(error, MessageError::TooBig { announced: 65_537 }));
        for cut in 1..8 {
            let wire = &[4, 0, 0, 0, 1, 0, 0, 0][..cut];
            let error = read_message::<Upward, _>(&mut &*wire).await.unwrap_err();
            assert!(matches!(error, MessageError::Truncated), "cut at {cut}");
        }
        let unknown = [4, 0, 0, 0, 99, 0, 0, 0];
        let error = read_message::<Upward, _>(&mut unknown.as_slice())
            .await
            .unwrap_err();
        assert!(matches!(error, MessageError::Form(_)));
    }

    #[tokio::test]
    async fn a_read_that_is_given_up_goes_on() {
        let (mut near, far) = tokio::io::duplex(64);
        let mut reader = MessageReader::new(far);
        for part in [&[4, 0][..], &[0, 0, 1], &[0, 0]] {
            near.write_all(part).await.unwrap();
            let early = tokio::time::timeout(Duration::from_millis(5), reader.next::<Upward>());
            assert!(early.await.is_err());
        }
        near.write_all(&[0]).await.unwrap();
        assert_eq!(reader.next().await.unwrap(), Some(Upward::InputEnd));
    }
}
