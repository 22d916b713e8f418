//! The one encoding of everything that is signed, sent or journalled: bincode 2.0.1 with fixed-size
//! little-endian integers, bounded and canonical.
//!
//! bincode is unmaintained (RUSTSEC-2025-0141) but small, complete and known; in this configuration its
//! bytes are those of bincode 1 and of wincode, so a later move changes no byte. Nothing else in the
//! project may call bincode. Wire types hold integers, fixed arrays and the bounded types of
//! [`crate::bounded`]; no floats, no maps, no `usize`, no zero-sized items in lists.

use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Largest message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 256 * 1024;

/// Why bytes are not a message of the wanted type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// Over [`MESSAGE_BYTES_MAX`].
    #[error("the message has {length} bytes; {MESSAGE_BYTES_MAX} are allowed")]
    TooBig {
        /// Its length.
        length: usize,
    },
    /// Not an encoding of the type, or a bound of one of its parts was broken.
    #[error("the message is malformed: {reason}")]
    Malformed {
        /// What the decoder said.
        reason: String,
    },
    /// Bytes were left over.
    #[error("the message has {extra} bytes too many")]
    Trailing {
        /// How many.
        extra: usize,
    },
    /// Another encoding of the same value exists; only one is accepted, so one value has one digest.
    #[error("the message is not in canonical form")]
    NotCanonical,
}

fn configuration() -> impl bincode::config::Config {
    bincode::config::standard()
        .with_little_endian()
        .with_fixed_int_encoding()
        .with_limit::<MESSAGE_BYTES_MAX>()
}

/// Enough for most messages, so that few grow while they are written.
const USUAL_BYTES: usize = 512;

/// The bytes of `value`.
///
/// # Errors
/// When it is larger than a message may be, or holds what the encoding has no form for.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    encode_onto(value, &mut bytes)?;
    Ok(bytes)
}

/// Writes the bytes of `value` behind what is in `bytes`, which stays as it was when that fails.
///
/// # Errors
/// When it is larger than a message may be, or holds what the encoding has no form for.
pub fn encode_onto<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
    let before = bytes.len();
    let written = bincode::serde::encode_into_writer(value, Onto(bytes), configuration());
    let length = bytes.len() - before;
    let problem = match written {
        Err(error) => Some(CodecError::Malformed {
            reason: error.to_string(),
        }),
        // The limit of the configuration guards decoding only.
        Ok(()) if length > MESSAGE_BYTES_MAX => Some(CodecError::TooBig { length }),
        Ok(()) => None,
    };
    if problem.is_some() {
        bytes.truncate(before);
    }
    problem.map_or(Ok(()), Err)
}

/// Writes behind what is there.
struct Onto<'a>(&'a mut Vec<u8>);

impl Writer for Onto<'_> {
    // An id is written byte by byte: a call for each would be most of the work.
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Writes nothing: compares with what is expected, and has what is left of that.
struct Against<'a>(&'a [u8]);

impl Writer for Against<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0 = self
            .0
            .strip_prefix(bytes)
            .ok_or(EncodeError::UnexpectedEnd)?;
        Ok(())
    }
}

fn is_canonical<T: Serialize>(value: &T, bytes: &[u8]) -> bool {
    let mut against = Against(bytes);
    bincode::serde::encode_into_writer(value, &mut against, configuration()).is_ok()
        && against.0.is_empty()
}

/// The value that `bytes` are the one encoding of.
///
/// # Errors
/// When the bytes are too many, malformed, followed by others, or not canonical.
pub fn decode<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(CodecError::TooBig {
            length: bytes.len(),
        });
    }
    let (value, used) =
        bincode::serde::decode_from_slice(bytes, configuration()).map_err(|error| {
            CodecError::Malformed {
                reason: error.to_string(),
            }
        })?;
    if used != bytes.len() {
        return Err(CodecError::Trailing {
            extra: bytes.len() - used,
        });
    }
    if !is_canonical(&value, bytes) {
        return Err(CodecError::NotCanonical);
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounded::{Blob, List, Text};

    #[test]
    fn integers_are_fixed_and_little_endian() {
        assert_eq!(encode(&5_u32), Ok(vec![5, 0, 0, 0]));
        assert_eq!(encode(&Some(1_u16)), Ok(vec![1, 1, 0]));
    }

    #[test]
    fn an_allocation_bomb_is_an_error() {
        // A length of 2^62 with nothing behind it.
        let bomb = [0, 0, 0, 0, 0, 0, 0, 64];
        assert!(matches!(
            decode::<Blob<64>>(&bomb),
            Err(CodecError::Malformed { .. })
        ));
        assert!(matches!(
            decode::<Text<64>>(&bomb),
            Err(CodecError::Malformed { .. })
        ));
        assert!(matches!(
            decode::<List<u64, 64>>(&bomb),
            Err(CodecError::Malformed { .. })
        ));
    }

    #[test]
    fn trailing_oversized_and_over_bound_are_refused() {
        assert_eq!(
            decode::<u8>(&[1, 2]),
            Err(CodecError::Trailing { extra: 1 })
        );
        let big = vec![0; MESSAGE_BYTES_MAX + 1];
        assert!(matches!(decode::<u8>(&big), Err(CodecError::TooBig { .. })));
        let three = encode(&vec![1_u8, 2, 3]).unwrap();
        assert!(matches!(
            decode::<List<u8, 2>>(&three),
            Err(CodecError::Malformed { .. })
        ));
        assert!(decode::<List<u8, 3>>(&three).is_ok());
    }

    #[test]
    fn what_is_written_behind_other_bytes_leaves_them_as_they_were() {
        let mut bytes = vec![7];
        encode_onto(&1_u16, &mut bytes).unwrap();
        assert_eq!(bytes, [7, 1, 0]);
        let big = vec![0_u8; MESSAGE_BYTES_MAX];
        let length = MESSAGE_BYTES_MAX + 8;
        assert_eq!(
            encode_onto(&big, &mut bytes),
            Err(CodecError::TooBig { length })
        );
        assert_eq!(bytes, [7, 1, 0]);
    }

    /// Reads any byte and always writes a zero.
    #[derive(serde::Deserialize)]
    struct Lossy(#[expect(dead_code, reason = "it is there to be read")] u8);

    impl Serialize for Lossy {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_u8(0)
        }
    }

    #[test]
    fn bytes_that_would_not_be_written_again_are_not_canonical() {
        assert!(decode::<Lossy>(&[0]).is_ok());
        assert_eq!(decode::<Lossy>(&[1]).err(), Some(CodecError::NotCanonical));
        assert!(is_canonical(&5_u8, &[5]));
        assert!(!is_canonical(&5_u8, &[5, 0]) && !is_canonical(&5_u16, &[5]));
    }

    #[test]
    fn a_bool_of_two_is_refused() {
        assert!(decode::<bool>(&[2]).is_err());
    }
}
