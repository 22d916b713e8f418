//! Signed statements: the envelope, what is signed, and what a receiver checks before anything else.
//!
//! The signature covers bytes, never a value encoded again:
//!
//! ```text
//! "feira1" ‖ u8 len ‖ network ‖ u8 len ‖ type ("order/v1") ‖ u32le len ‖ payload
//! payload = version u16 · signer [32] · audience [32] (0 = any) · message id [16] · issued u64 · expires u64 · body
//! ```
//!
//! Only [`Verified`] statements reach a program's core. A statement that is kept (a grant, a receipt) is
//! checked with [`Signed::verify`]; one that asks for something now with [`Signed::verify_fresh`]. That a
//! message is not accepted twice is the receiver's record to keep, by signer and message id, never by
//! signature bytes: a signer can make many valid ones.

mod draft;
mod strict;

pub use draft::Draft;
pub use strict::Keys;

use crate::bounded::Blob;
use crate::codec::{self, CodecError};
use crate::ids::{Digest, MessageId, PublicKey};
use crate::units::{Millis, Seconds, Timestamp};
use ed25519_dalek::{Signature, SigningKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// The network whose statements these are; another network's do not verify here.
pub const NETWORK: &str = "main";
/// Version of the envelope.
pub const ENVELOPE_VERSION: u16 = 1;
/// Largest payload of one statement.
pub const PAYLOAD_BYTES_MAX: usize = 64 * 1024;
/// Longest time from issue to expiry of a fresh statement.
pub const VALIDITY_MAX: Seconds = Seconds(300);
/// How far ahead of ours the signer's clock may be.
pub const CLOCK_SKEW_MAX: Seconds = Seconds(30);
/// What a signature and the payload's length add to a statement.
const SIGNATURE_SIZE: usize = 64 + 8;
/// How long a message id is remembered: a captured message must expire before it is forgotten.
pub const REPLAY_MEMORY: Seconds = Seconds(2 * VALIDITY_MAX.0 + CLOCK_SKEW_MAX.0);

const _: () = assert!(REPLAY_MEMORY.0 >= 2 * VALIDITY_MAX.0);

/// A type that can be signed, with the text that sets its signatures apart from all others.
pub trait Statement: Serialize + DeserializeOwned + Clone {
    /// Name and version, like `order/v1`; every one is listed once in `protocol/tests/statements.rs`.
    const TYPE: &'static str;
}

/// What stands before the body of every statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the envelope.
    pub version: u16,
    /// Whose key signed.
    pub signer: PublicKey,
    /// Whom it is for; all zeros means anyone.
    pub audience: PublicKey,
    /// Random; with the signer it names this envelope.
    pub message_id: MessageId,
    /// When it was signed, by the signer's clock.
    pub issued: Timestamp,
    /// After this it asks for nothing any more.
    pub expires: Timestamp,
}

/// The audience that means anyone.
pub const ANYONE: PublicKey = PublicKey::from_bytes([0; 32]);

/// What the signer chooses about an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// Whom it is for; [`ANYONE`] for anyone.
    pub audience: PublicKey,
    /// Sixteen random bytes.
    pub message_id: MessageId,
    /// Now, by the signer's clock.
    pub issued: Timestamp,
    /// How long it may be acted on; more than [`VALIDITY_MAX`] is refused by receivers of requests.
    pub validity: Seconds,
}

#[derive(Serialize, Deserialize)]
struct Payload<T> {
    header: Header,
    body: T,
}

/// The two halves of an Ed25519 signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct SignatureBytes {
    r: [u8; 32],
    s: [u8; 32],
}

/// A statement as it is sent and stored: the signed bytes and their signature, nothing decoded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Signed<T> {
    payload: Blob<PAYLOAD_BYTES_MAX>,
    signature: SignatureBytes,
    #[serde(skip)]
    statement: PhantomData<fn() -> T>,
}

/// A statement whose signature, form and signer were checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified<T> {
    header: Header,
    body: T,
    signed: Signed<T>,
}

/// Why a statement was refused. Every receiver counts these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// It cannot be decoded, or not canonically.
    #[error(transparent)]
    Form(#[from] CodecError),
    /// Another version of the envelope.
    #[error("the statement's envelope is version {version}; this program reads {ENVELOPE_VERSION}")]
    Version {
        /// Its version.
        version: u16,
    },
    /// The signer's key is of small order or not in canonical form.
    #[error("the signer's key is weak or malformed")]
    WeakKey,
    /// The signature does not verify for these bytes, this type and this network.
    #[error("the signature does not verify")]
    Signature,
    /// It is for somebody else.
    #[error("the statement is for {audience}, not for this program")]
    Audience {
        /// Whom it is for.
        audience: PublicKey,
    },
    /// The time of issue lies too far ahead.
    #[error("the statement was issued {ahead_ms} ms in the future: check the clocks (at most {} s may differ)", CLOCK_SKEW_MAX.0)]
    FromTheFuture {
        /// How far ahead of the receiver's clock.
        ahead_ms: u64,
    },
    /// It is too old to act on.
    #[error("the statement expired {ago_ms} ms ago: check the clocks, then send a new one")]
    Expired {
        /// How long ago by the receiver's clock.
        ago_ms: u64,
    },
    /// It claims to be valid for longer than any request may be.
    #[error("the statement is valid for {validity_ms} ms; at most {} s are allowed", VALIDITY_MAX.0)]
    ValidTooLong {
        /// From issue to expiry.
        validity_ms: u64,
    },
}

impl<T: Statement> Signed<T> {
    /// Signs `body` with `key`.
    ///
    /// # Errors
    /// When the payload is larger than [`PAYLOAD_BYTES_MAX`].
    pub fn sign(body: T, key: &SigningKey, envelope: Envelope) -> Result<Verified<T>, CodecError> {
        let signer = PublicKey::from_bytes(key.verifying_key().to_bytes());
        let draft = Draft::new(body, signer, envelope)?;
        let signed = draft.sign(key);
        let Draft { header, body, .. } = draft;
        Ok(Verified {
            header,
            body,
            signed,
        })
    }

    /// Checks signature, form and signer's key; nothing about time or audience.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn verify(&self) -> Result<Verified<T>, SignatureError> {
        self.verify_by(None)
    }

    fn verify_by(&self, keys: Option<&mut Keys>) -> Result<Verified<T>, SignatureError> {
        let signature = Signature::from_components(self.signature.r, self.signature.s);
        strict::check(T::TYPE, &self.payload, &signature, keys)?;
        let payload: Payload<T> = codec::decode(&self.payload)?;
        if payload.header.version != ENVELOPE_VERSION {
            return Err(SignatureError::Version {
                version: payload.header.version,
            });
        }
        Ok(Verified {
            header: payload.header,
            body: payload.body,
            signed: self.clone(),
        })
    }

    /// Checks all that [`Self::verify`] does, and that it is for `me` (or anyone) and may be acted on `now`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn verify_fresh(
        &self,
        me: PublicKey,
        now: Timestamp,
    ) -> Result<Verified<T>, SignatureError> {
        self.verify()?.fresh(me, now)
    }

    /// The same, of signers whose keys may be known: for whoever verifies what the same parties send again and
    /// again.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn verify_fresh_by(
        &self,
        keys: &mut Keys,
        me: PublicKey,
        now: Timestamp,
    ) -> Result<Verified<T>, SignatureError> {
        self.verify_by(Some(keys))?.fresh(me, now)
    }
}

impl<T> Verified<T> {
    fn fresh(self, me: PublicKey, now: Timestamp) -> Result<Self, SignatureError> {
        let Header {
            audience,
            issued,
            expires,
            ..
        } = self.header;
        if audience != ANYONE && audience != me {
            return Err(SignatureError::Audience { audience });
        }
        let ahead = issued.since(now);
        if ahead > CLOCK_SKEW_MAX.millis() {
            return Err(SignatureError::FromTheFuture { ahead_ms: ahead.0 });
        }
        if expires <= now {
            return Err(SignatureError::Expired {
                ago_ms: now.since(expires).0,
            });
        }
        let validity = expires.since(issued);
        if validity > VALIDITY_MAX.millis() {
            return Err(SignatureError::ValidTooLong {
                validity_ms: validity.0,
            });
        }
        Ok(self)
    }
}

impl<T: Statement> Signed<T> {
    /// Decodes a statement that this program verified before it stored it. The signature is not looked at:
    /// never for anything that came from somebody else.
    ///
    /// # Errors
    /// When the bytes are not what was stored.
    pub fn reopen(&self) -> Result<Verified<T>, CodecError> {
        let payload: Payload<T> = codec::decode(&self.payload)?;
        Ok(Verified {
            header: payload.header,
            body: payload.body,
            signed: self.clone(),
        })
    }
}

impl<T> Signed<T> {
    /// How many bytes it takes up in a message.
    #[must_use]
    pub fn size(&self) -> usize {
        self.payload.len() + SIGNATURE_SIZE
    }

    /// BLAKE3 of the signed bytes: what other statements refer to this one by.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.payload)
    }
}

impl<T> Verified<T> {
    /// What stands before the body.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Whose key signed.
    #[must_use]
    pub const fn signer(&self) -> PublicKey {
        self.header.signer
    }

    /// The body.
    #[must_use]
    pub const fn body(&self) -> &T {
        &self.body
    }

    /// The statement as it came, to be stored or passed on.
    #[must_use]
    pub const fn signed(&self) -> &Signed<T> {
        &self.signed
    }

    /// The body alone.
    #[must_use]
    pub fn into_body(self) -> T {
        self.body
    }

    /// BLAKE3 of the signed bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.signed.digest()
    }

    /// When a message id like this one's may be forgotten.
    #[must_use]
    pub fn forgettable_at(&self) -> Timestamp {
        self.header.issued.after(Millis(REPLAY_MEMORY.millis().0))
    }
}

fn signing_input(statement: &str, payload: &[u8]) -> Vec<u8> {
    let mut input = signing_prefix(statement, payload);
    input.extend_from_slice(payload);
    input
}

/// What stands before the payload in the signed bytes.
fn signing_prefix(statement: &str, payload: &[u8]) -> Vec<u8> {
    let mut prefix = b"feira1".to_vec();
    for part in [NETWORK, statement] {
        // Both are constants of this crate, far below 256 bytes.
        prefix.push(u8::try_from(part.len()).unwrap_or(u8::MAX));
        prefix.extend_from_slice(part.as_bytes());
    }
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    prefix.extend_from_slice(&length.to_le_bytes());
    prefix
}

#[cfg(test)]
mod tests;
