//! Statements that are written down and not signed yet.

use super::{
    ENVELOPE_VERSION, Envelope, Header, PAYLOAD_BYTES_MAX, Payload, SIGNATURE_SIZE, SignatureBytes,
    Signed, Statement, signing_input,
};
use crate::bounded::Blob;
use crate::codec::{self, CodecError};
use crate::ids::{Digest, PublicKey};
use ed25519_dalek::{Signer, SigningKey};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::marker::PhantomData;

/// A statement with its envelope, ready to be signed. Ed25519 draws nothing: whenever its signer signs it, the
/// same statement comes of it, so what is kept can be the draft, and the digest is known before the signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft<T> {
    pub(super) header: Header,
    pub(super) body: T,
    payload: Blob<PAYLOAD_BYTES_MAX>,
}

impl<T: Statement> Draft<T> {
    /// Writes `body` down for `signer` to sign.
    ///
    /// # Errors
    /// When the payload is larger than [`PAYLOAD_BYTES_MAX`].
    pub fn new(body: T, signer: PublicKey, envelope: Envelope) -> Result<Self, CodecError> {
        let header = Header {
            version: ENVELOPE_VERSION,
            signer,
            audience: envelope.audience,
            message_id: envelope.message_id,
            issued: envelope.issued,
            expires: envelope.issued.after(envelope.validity.millis()),
        };
        let payload = Payload { header, body };
        let bytes = codec::encode(&payload)?;
        let length = bytes.len();
        Ok(Self {
            header,
            body: payload.body,
            payload: Blob::new(bytes).map_err(|_| CodecError::TooBig { length })?,
        })
    }

    /// The statement, signed with `key`, which has to be the signer's.
    #[must_use]
    pub fn sign(&self, key: &SigningKey) -> Signed<T> {
        let signature = key.sign(&signing_input(T::TYPE, &self.payload));
        Signed {
            payload: self.payload.clone(),
            signature: SignatureBytes {
                r: *signature.r_bytes(),
                s: *signature.s_bytes(),
            },
            statement: PhantomData,
        }
    }
}

impl<T> Draft<T> {
    /// The body.
    #[must_use]
    pub const fn body(&self) -> &T {
        &self.body
    }

    /// Whether `signed` is what comes of it.
    #[must_use]
    pub fn became(&self, signed: &Signed<T>) -> bool {
        self.payload == signed.payload
    }

    /// [`Signed::digest`] of what comes of it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.payload)
    }

    /// [`Signed::size`] of what comes of it.
    #[must_use]
    pub fn size(&self) -> usize {
        self.payload.len() + SIGNATURE_SIZE
    }
}

impl<T> Serialize for Draft<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.payload.serialize(serializer)
    }
}

impl<'de, T: Statement> Deserialize<'de> for Draft<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let payload = Blob::deserialize(deserializer)?;
        let Payload { header, body } = codec::decode(&payload).map_err(D::Error::custom)?;
        Ok(Self {
            header,
            body,
            payload,
        })
    }
}
