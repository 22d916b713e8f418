//! What crosses the line between the agent and the process that asks the library: requests one way, frames
//! the other, each a length and a message of the project's one encoding.

use crate::event::EventKind;
use crate::facts::{Description, Identity};
use crate::fault::Fault;
use crate::library::{ResetFacts, Which};
use crate::sample::Reading;
use crate::slices::{Instance, MigMode, Profile};
use protocol::codec::{CodecError, MESSAGE_BYTES_MAX, decode, encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// A question, with the number that its answer bears.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its number.
    pub number: u32,
    /// What is asked.
    pub ask: Ask,
}

/// What can be asked. Everything but the first two is about the GPU that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// How many GPUs there are.
    Count,
    /// Open this one, once.
    Open(Which),
    /// What it is.
    Describe,
    /// How it is.
    Sample,
    /// Send its events from now on.
    Watch,
    /// Its MIG mode.
    MigMode,
    /// Divide it, or make it whole.
    SetMigMode {
        /// Divide it.
        divided: bool,
    },
    /// What it can be cut into.
    Profiles,
    /// What it is cut into.
    Instances,
    /// Cut a slice.
    CreateInstance {
        /// Number of the profile.
        profile: u32,
        /// First memory slice.
        start: u32,
    },
    /// Give a slice back.
    DestroyInstance {
        /// Id of the GPU instance.
        gpu_instance: u32,
    },
    /// What a reset depends on.
    ResetFacts,
}

/// What the process says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frame {
    /// To a question.
    Answer {
        /// The question's number.
        number: u32,
        /// What the library said.
        result: Result<Answer, Fault>,
    },
    /// Something happened to the GPU.
    Event {
        /// What.
        kind: EventKind,
        /// In which GPU instance.
        gpu_instance: Option<u32>,
        /// In which compute instance.
        compute_instance: Option<u32>,
    },
    /// Events may have been missed: the wait for them broke and begins anew.
    EventsBroke {
        /// Why.
        fault: Fault,
    },
}

/// What the library said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// To [`Ask::Count`].
    Count(u32),
    /// To [`Ask::Open`].
    Opened(Identity),
    /// To [`Ask::Describe`].
    Description(Box<Description>),
    /// To [`Ask::Sample`].
    Reading(Box<Reading>),
    /// To [`Ask::Watch`] and [`Ask::DestroyInstance`].
    Done,
    /// To [`Ask::MigMode`] and [`Ask::SetMigMode`].
    MigMode(MigMode),
    /// To [`Ask::Profiles`].
    Profiles(Vec<Profile>),
    /// To [`Ask::Instances`].
    Instances(Vec<Instance>),
    /// To [`Ask::CreateInstance`].
    Instance(Box<Instance>),
    /// To [`Ask::ResetFacts`].
    ResetFacts(Box<ResetFacts>),
}

/// Why a message could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The pipe broke or ended.
    #[error("the pipe broke")]
    Pipe(#[from] io::Error),
    /// It is not one of these messages.
    #[error("what came is no message")]
    Message(#[from] CodecError),
    /// It claims to be longer than any.
    #[error("a message of {length} bytes; {MESSAGE_BYTES_MAX} are allowed")]
    TooLong {
        /// What it claims.
        length: usize,
    },
}

/// Bytes of a message's length before it.
pub const HEADER_BYTES: usize = 4;

/// The length that `header` says.
///
/// # Errors
/// When it is more than a message may have.
pub fn length(header: [u8; HEADER_BYTES]) -> Result<usize, WireError> {
    let length = usize::try_from(u32::from_le_bytes(header)).unwrap_or(usize::MAX);
    if length > MESSAGE_BYTES_MAX {
        return Err(WireError::TooLong { length });
    }
    Ok(length)
}

/// A message with its length before it.
///
/// # Errors
/// When it is larger than a message may be.
pub fn framed<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    let body = encode(message)?;
    let length =
        u32::try_from(body.len()).map_err(|_| WireError::TooLong { length: body.len() })?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// The message of `body`, which came behind its length.
///
/// # Errors
/// When it is none.
pub fn message<T: Serialize + DeserializeOwned>(body: &[u8]) -> Result<T, WireError> {
    Ok(decode(body)?)
}

/// Writes one message and flushes it.
///
/// # Errors
/// When the pipe broke, or the message is too large.
pub fn write<T: Serialize>(writer: &mut impl Write, message: &T) -> Result<(), WireError> {
    writer.write_all(&framed(message)?)?;
    Ok(writer.flush()?)
}

/// Reads one message.
///
/// # Errors
/// When the pipe ended or broke, or what came is no message.
pub fn read<T: Serialize + DeserializeOwned>(reader: &mut impl Read) -> Result<T, WireError> {
    let mut header = [0; HEADER_BYTES];
    reader.read_exact(&mut header)?;
    let mut body = vec![0; length(header)?];
    reader.read_exact(&mut body)?;
    message(&body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were() {
        let request = Request {
            number: 7,
            ask: Ask::CreateInstance {
                profile: 9,
                start: 4,
            },
        };
        let frame = Frame::Event {
            kind: EventKind::Xid(94),
            gpu_instance: Some(3),
            compute_instance: Some(0),
        };
        let mut pipe = framed(&request).unwrap();
        pipe.extend(framed(&frame).unwrap());
        let mut reader = pipe.as_slice();
        assert_eq!(read::<Request>(&mut reader).unwrap(), request);
        assert_eq!(read::<Frame>(&mut reader).unwrap(), frame);
        assert!(matches!(
            read::<Frame>(&mut reader),
            Err(WireError::Pipe(_))
        ));
    }

    #[test]
    fn a_length_without_bound_asks_for_no_memory() {
        let mut reader = [0xff, 0xff, 0xff, 0x7f].as_slice();
        assert!(matches!(
            read::<Frame>(&mut reader),
            Err(WireError::TooLong {
                length: 2_147_483_647
            })
        ));
    }
}
