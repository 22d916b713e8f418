//! Texts, lists and byte strings that cannot be longer than their type says, so that no message can ask
//! for more memory than its sender spent.

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// Why a value does not fit its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BoundError {
    /// Longer than the type allows.
    #[error("{length} is more than the {maximum} allowed here")]
    TooLong {
        /// What it has: bytes of a text or byte string, items of a list.
        length: usize,
        /// What it may have.
        maximum: usize,
    },
    /// A control character that could steer a terminal or hide text.
    #[error("it has a control character (code {code}) that is not allowed here")]
    Control {
        /// The character's code point.
        code: u32,
    },
}

/// UTF-8 of at most `N` bytes without control characters other than tab and line feed.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<const N: usize>(String);

impl<const N: usize> Text<N> {
    /// Checks `text`.
    ///
    /// # Errors
    /// When it is too long or holds a control character.
    pub fn new(text: impl Into<String>) -> Result<Self, BoundError> {
        let text = text.into();
        if text.len() > N {
            return Err(BoundError::TooLong {
                length: text.len(),
                maximum: N,
            });
        }
        match text
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\t'))
        {
            Some(control) => Err(BoundError::Control {
                code: u32::from(control),
            }),
            None => Ok(Self(text)),
        }
    }

    /// As much of `text` as fits, control characters replaced by spaces: for what a machine or a
    /// program said, which must be shown and must not refuse.
    #[must_use]
    pub fn cut(text: &str) -> Self {
        let mut kept = String::new();
        for character in text.chars() {
            let plain = !character.is_control() || matches!(character, '\n' | '\t');
            let shown = if plain { character } else { ' ' };
            if kept.len() + shown.len_utf8() > N {
                break;
            }
            kept.push(shown);
        }
        Self(kept)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const N: usize> Deref for Text<N> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Texts are compared as the `str` that they are, so a map of them can be asked with one.
impl<const N: usize> Borrow<str> for Text<N> {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<const N: usize> TryFrom<&str> for Text<N> {
    type Error = BoundError;

    fn try_from(text: &str) -> Result<Self, BoundError> {
        Self::new(text)
    }
}

impl<const N: usize> Serialize for Text<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Text<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// At most `N` items.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct List<T, const N: usize>(Vec<T>);

impl<T, const N: usize> List<T, N> {
    /// Most items.
    pub const MAXIMUM: usize = N;

    /// Checks the number of items.
    ///
    /// # Errors
    /// When there are more than `N`.
    pub fn new(items: Vec<T>) -> Result<Self, BoundError> {
        if items.len() > N {
            return Err(BoundError::TooLong {
                length: items.len(),
                maximum: N,
            });
        }
        Ok(Self(items))
    }

    /// The first `N` of some items.
    #[must_use]
    pub fn first(items: impl IntoIterator<Item = T>) -> Self {
        Self(items.into_iter().take(N).collect())
    }

    /// The items, unbounded from here on.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const N: usize> Deref for List<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'a, T, const N: usize> IntoIterator for &'a List<T, N> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T: Serialize, const N: usize> Serialize for List<T, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

struct ListVisitor<T, const N: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for ListVisitor<T, N> {
    type Value = List<T, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {N} items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        if let Some(length) = sequence.size_hint().filter(|length| *length > N) {
            return Err(A::Error::custom(BoundError::TooLong { length, maximum: N }));
        }
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            if items.len() == N {
                return Err(A::Error::custom(BoundError::TooLong {
                    length: N + 1,
                    maximum: N,
                }));
            }
            items.push(item);
        }
        Ok(List(items))
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for List<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

/// At most `N` bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blob<const N: usize>(Vec<u8>);

impl<const N: usize> Blob<N> {
    /// Checks the length.
    ///
    /// # Errors
    /// When there are more than `N` bytes.
    pub fn new(bytes: Vec<u8>) -> Result<Self, BoundError> {
        if bytes.len() > N {
            return Err(BoundError::TooLong {
                length: bytes.len(),
                maximum: N,
            });
        }
        Ok(Self(bytes))
    }

    /// The bytes, unbounded from here on.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }
}

impl<const N: usize> Deref for Blob<N> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<const N: usize> Serialize for Blob<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

struct BlobVisitor<const N: usize>;

impl<const N: usize> Visitor<'_> for BlobVisitor<N> {
    type Value = Blob<N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {N} bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Blob::new(bytes.to_vec()).map_err(E::custom)
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Self::Value, E> {
        Blob::new(bytes).map_err(E::custom)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Blob<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(BlobVisitor)
    }
}
