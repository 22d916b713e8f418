//! Whether a signature is a key's: the same as `VerifyingKey::verify_strict` says, for four fifths of its cost.
//!
//! That function takes the signature's point apart to see whether it is of small order. Only a point in its one
//! canonical encoding passes the comparison at the end, and the points of small order have eight of these, so a look
//! at the bytes says the same. Signers come again, and their keys are kept taken apart ([`Keys`]). Every signature is
//! checked alone: a batch of them may pass where one of them would not.

use super::{SignatureError, signing_prefix};
use crate::codec::CodecError;
use ed25519_dalek::ed25519::signature::MultipartVerifier;
use ed25519_dalek::{Signature, VerifyingKey};

/// Keys that are kept; a power of two. Some 200 bytes each: 800 kB of whoever verifies.
const KEPT: usize = 4096;

/// The keys of signers whose signatures were verified, as they are checked with. A fixed number: a key takes the
/// place of another, so strangers with many keys make the others as slow as without, and no slower. One owner.
#[derive(Debug, Default)]
pub struct Keys {
    places: Vec<Option<VerifyingKey>>,
}

impl Keys {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { places: Vec::new() }
    }

    fn place(key: &[u8; 32]) -> usize {
        let [first, second, ..] = *key;
        usize::from(u16::from_le_bytes([first, second])) % KEPT
    }

    fn get(&self, key: &[u8; 32]) -> Option<&VerifyingKey> {
        let kept = self.places.get(Self::place(key))?.as_ref();
        kept.filter(|kept| kept.as_bytes() == key)
    }

    fn keep(&mut self, key: VerifyingKey) {
        if self.places.is_empty() {
            self.places.resize(KEPT, None);
        }
        if let Some(place) = self.places.get_mut(Self::place(key.as_bytes())) {
            *place = Some(key);
        }
    }
}

/// Checks the signature of a statement's payload with the key that is named in it, kept or not.
pub(super) fn check(
    statement: &str,
    payload: &[u8],
    signature: &Signature,
    keys: Option<&mut Keys>,
) -> Result<(), SignatureError> {
    let bytes = signer_bytes(payload)?;
    let kept = keys.as_ref().and_then(|keys| keys.get(bytes));
    if let Some(key) = kept {
        return check_with(key, statement, payload, signature);
    }
    let key = sound_key(bytes)?;
    check_with(&key, statement, payload, signature)?;
    if let Some(keys) = keys {
        keys.keep(key);
    }
    Ok(())
}

/// The key is not of small order: [`sound_key`] lets none pass.
fn check_with(
    key: &VerifyingKey,
    statement: &str,
    payload: &[u8],
    signature: &Signature,
) -> Result<(), SignatureError> {
    if SMALL_ORDER.contains(signature.r_bytes()) {
        return Err(SignatureError::Signature);
    }
    let prefix = signing_prefix(statement, payload);
    key.multipart_verify(&[&prefix, payload], signature)
        .map_err(|_| SignatureError::Signature)
}

fn signer_bytes(payload: &[u8]) -> Result<&[u8; 32], CodecError> {
    payload
        .get(2..34)
        .and_then(|part| part.try_into().ok())
        .ok_or_else(|| CodecError::Malformed {
            reason: "too short for a statement".to_owned(),
        })
}

/// The key of these bytes, if it is one a signature of which means something: a key of small order has signatures
/// that verify for every message, and a second encoding would be a second name.
pub(super) fn sound_key(bytes: &[u8; 32]) -> Result<VerifyingKey, SignatureError> {
    let key = VerifyingKey::from_bytes(bytes).map_err(|_| SignatureError::WeakKey)?;
    if key.is_weak() || !is_canonical(bytes) {
        return Err(SignatureError::WeakKey);
    }
    Ok(key)
}

/// Whether the encoding of a point that is not weak is its only one: its coordinate is below 2^255 - 19. The
/// other second encodings, zero with a sign, are of weak points. To encode the point again would say the same
/// for a tenth of what the whole check of a signature costs.
pub(super) fn is_canonical(key: &[u8; 32]) -> bool {
    let [lowest, middle @ .., highest] = key;
    *lowest < 0xed || highest & 0x7f != 0x7f || middle.iter().any(|byte| *byte != 0xff)
}

/// The canonical encodings of the eight points of small order.
pub(super) const SMALL_ORDER: [[u8; 32]; 8] = [
    with_ends(0x00, 0x01, 0x00),
    with_ends(0xff, 0xec, 0x7f),
    with_ends(0x00, 0x00, 0x00),
    with_ends(0x00, 0x00, 0x80),
    with_sign(EIGHTH, 0x00),
    with_sign(EIGHTH, 0x80),
    with_sign(OTHER_EIGHTH, 0x00),
    with_sign(OTHER_EIGHTH, 0x80),
];

/// Two points of order eight; the other two have the other sign.
const EIGHTH: [u8; 32] = [
    0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
    0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
];
const OTHER_EIGHTH: [u8; 32] = [
    0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
    0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
];

const fn with_ends(filling: u8, lowest: u8, highest: u8) -> [u8; 32] {
    let mut bytes = [filling; 32];
    bytes[0] = lowest;
    bytes[31] = highest;
    bytes
}

const fn with_sign(mut bytes: [u8; 32], sign: u8) -> [u8; 32] {
    bytes[31] |= sign;
    bytes
}

#[cfg(test)]
mod tests;
