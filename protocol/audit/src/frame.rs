//! Messages on a pipe: a 4-byte little-endian length, then that many bytes of the canonical codec, which begin
//! with the version.
//!
//! Reads no pipe itself: what came is pushed in, and messages come out.

use crate::message::VERSION;
use protocol_pure::codec::{self, CodecError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Largest message, encoded, without its length: a row of 8 KiB with its path, and room.
pub const FRAME_BYTES_MAX: usize = 16 * 1024;
/// Bytes of the length in front.
const LENGTH_SIZE: usize = 4;

/// Why what came is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A length that no message has.
    #[error("a message of {length} bytes was announced; {FRAME_BYTES_MAX} are allowed")]
    TooBig {
        /// What was announced.
        length: usize,
    },
    /// The other side speaks another version.
    #[error("the message is of version {version}; this program speaks {VERSION}")]
    Version {
        /// Its version.
        version: u16,
    },
    /// It cannot be decoded, or not canonically.
    #[error(transparent)]
    Form(#[from] CodecError),
}

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u16,
    body: T,
}

/// A message as it crosses the pipe, its length in front.
///
/// # Errors
/// When it is larger than a message may be.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let body = codec::encode(&Versioned {
        version: VERSION,
        body: message,
    })?;
    let length = body.len();
    let announced = u32::try_from(length)
        .ok()
        .filter(|_| length <= FRAME_BYTES_MAX)
        .ok_or(FrameError::TooBig { length })?;
    let mut bytes = announced.to_le_bytes().to_vec();
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// What came of a pipe and is not a whole message yet: never more than one message and what was pushed last.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Takes in what came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether nothing is left of what came: where a pipe may end.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next whole message, if it is there.
    ///
    /// # Errors
    /// When what came is no message; nothing that follows can be read then.
    pub fn message<T: Serialize + DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let Some((length, rest)) = self.bytes.split_first_chunk::<LENGTH_SIZE>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > FRAME_BYTES_MAX {
            return Err(FrameError::TooBig { length });
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let message = decode(body)?;
        self.bytes.drain(..LENGTH_SIZE + length);
        Ok(Some(message))
    }
}

fn decode<T: Serialize + DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    if let Some((version, _)) = body.split_first_chunk() {
        let version = u16::from_le_bytes(*version);
        if version != VERSION {
            return Err(FrameError::Version { version });
        }
    }
    Ok(codec::decode::<Versioned<T>>(body)?.body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Answer, Node, Row};
    use protocol_pure::bounded::{Blob, List};

    #[test]
    fn messages_come_out_whole_however_they_were_cut() {
        let said = [Answer::Filled, Answer::Done(List::first([Node([7; 32])]))];
        let mut bytes = Vec::new();
        for answer in &said {
            bytes.extend(encode(answer).unwrap());
        }
        // Length 6: version 1 and the variant's number 1.
        assert_eq!(bytes[..10], [6, 0, 0, 0, 1, 0, 1, 0, 0, 0]);
        let mut frames = Frames::new();
        let mut heard = Vec::new();
        for byte in bytes {
            frames.push(&[byte]);
            heard.extend(frames.message::<Answer>().unwrap());
        }
        assert_eq!(heard, said);
        assert!(frames.is_empty());
    }

    #[test]
    fn the_largest_row_fits_and_nothing_larger_is_waited_for() {
        let row = Answer::Row(Row {
            bytes: Blob::new(vec![1; 8192]).unwrap(),
            path: List::first([Node([2; 32]); 25]),
        });
        assert!(encode(&row).is_ok());
        let mut frames = Frames::new();
        frames.push(&[0, 0, 1, 0]);
        let length = 65_536;
        assert_eq!(
            frames.message::<Answer>(),
            Err(FrameError::TooBig { length })
        );
    }

    #[test]
    fn another_version_and_other_bytes_are_refused() {
        let mut frames = Frames::new();
        frames.push(&[6, 0, 0, 0, 2, 0, 0, 0, 0, 0]);
        assert_eq!(
            frames.message::<Answer>(),
            Err(FrameError::Version { version: 2 })
        );
        let mut frames = Frames::new();
        frames.push(&[6, 0, 0, 0, 1, 0, 9, 0, 0, 0]);
        assert!(matches!(
            frames.message::<Answer>(),
            Err(FrameError::Form(_))
        ));
    }
}
