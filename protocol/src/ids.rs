//! Every identifier of the market, each a type of its own, shown as a prefix and Crockford base32.
//!
//! Ids are chosen by whoever makes the thing (16 random bytes) or derived by hashing; nothing here draws
//! randomness. A party's id is its Ed25519 public key.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Crockford's base32 alphabet: no i, l, o, u, so an id read aloud or retyped stays itself.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Characters shown of a short id; a prefix of at least four is accepted wherever an id is typed.
pub const SHORT_CHARACTERS: usize = 8;

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The prefix letter is another kind's or missing.
    #[error("'{text}' is not a {kind}: it should begin with '{prefix}'")]
    Prefix {
        /// What was typed.
        text: String,
        /// What was wanted.
        kind: &'static str,
        /// The prefix of that kind.
        prefix: &'static str,
    },
    /// The rest has another length.
    #[error(
        "'{text}' is not a whole {kind}: {characters} letters and digits are wanted after '{prefix}'"
    )]
    Length {
        /// What was typed.
        text: String,
        /// What was wanted.
        kind: &'static str,
        /// The prefix of that kind.
        prefix: &'static str,
        /// How many characters a whole id has.
        characters: usize,
    },
    /// A character that stands in no id.
    #[error(
        "'{text}' is no {kind}: '{found}' stands in no id, which has digits and the letters a to z without i, l, o and u"
    )]
    Letter {
        /// What was typed.
        text: String,
        /// What was wanted.
        kind: &'static str,
        /// The character.
        found: char,
    },
    /// The last character has bits for which the id has no room.
    #[error("'{text}' is no {kind}: its last character can only be one of {}, so a letter of it is wrong", spaced(.last))]
    Last {
        /// What was typed.
        text: String,
        /// What was wanted.
        kind: &'static str,
        /// The characters with which one can end.
        last: String,
    },
}

fn spaced(letters: &str) -> String {
    let letters: Vec<String> = letters.chars().map(String::from).collect();
    letters.join(" ")
}

fn encode_base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 8 / 5 + 1);
    let (mut buffer, mut bits) = (0_u32, 0_u32);
    for byte in bytes {
        buffer = (buffer << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(letter(buffer >> bits));
        }
        buffer &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(letter(buffer << (5 - bits)));
    }
    text
}

fn letter(five_bits: u32) -> char {
    let index = usize::try_from(five_bits & 31).unwrap_or(0);
    char::from(ALPHABET[index])
}

/// What is wrong with the base32 of an id.
enum Flaw {
    Length,
    Letter(char),
    Last,
}

/// The bytes of `text`, or what is wrong with it: its length, its alphabet, or stray low bits at its end.
fn decode_base32<const N: usize>(text: &str) -> Result<[u8; N], Flaw> {
    if let Some(found) = text.chars().find(|found| value_of(*found).is_none()) {
        return Err(Flaw::Letter(found));
    }
    if text.len() != characters(N) {
        return Err(Flaw::Length);
    }
    let mut bytes = [0; N];
    let (mut buffer, mut bits, mut filled) = (0_u32, 0_u32, 0);
    for value in text.chars().filter_map(value_of) {
        buffer = (buffer << 5) | value;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            let byte = bytes.get_mut(filled).ok_or(Flaw::Length)?;
            *byte = u8::try_from(buffer >> bits).map_err(|_| Flaw::Length)?;
            filled += 1;
            buffer &= (1 << bits) - 1;
        }
    }
    if buffer == 0 {
        Ok(bytes)
    } else {
        Err(Flaw::Last)
    }
}

fn value_of(character: char) -> Option<u32> {
    let lower = character.to_ascii_lowercase();
    let value = ALPHABET
        .iter()
        .position(|known| char::from(*known) == lower)?;
    u32::try_from(value).ok()
}

/// How many characters an id of so many bytes has.
const fn characters(bytes: usize) -> usize {
    (bytes * 8).div_ceil(5)
}

/// The characters with which an id of so many bytes can end: the bits that it has no room for are zero.
fn last_letters(bytes: usize) -> String {
    let spare = characters(bytes) * 5 - bytes * 8;
    let letters = ALPHABET.iter().step_by(1 << spare);
    letters.map(|letter| char::from(*letter)).collect()
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident, $size:literal, $prefix:literal, $kind:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name([u8; $size]);

        impl $name {
            /// What stands before the base32 of this kind.
            pub const PREFIX: &'static str = $prefix;

            /// The id with these bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; $size]) -> Self {
                Self(bytes)
            }

            /// The bytes of the id.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; $size] {
                &self.0
            }

            /// The first characters, enough to tell two apart on a screen.
            #[must_use]
            pub fn short(&self) -> String {
                let mut text = self.to_string();
                text.truncate(Self::PREFIX.len() + SHORT_CHARACTERS);
                text
            }

            /// Whether `typed` (with or without the kind's prefix) begins this id; at least four
            /// characters after the prefix are wanted.
            #[must_use]
            pub fn begins_with(&self, typed: &str) -> bool {
                let lower = typed.to_ascii_lowercase();
                let body = lower.strip_prefix(Self::PREFIX).unwrap_or(&lower);
                body.len() >= 4 && encode_base32(&self.0).starts_with(body)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&format!("{}{}", $prefix, encode_base32(&self.0)))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.short())
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let body = text.strip_prefix($prefix).ok_or_else(|| IdError::Prefix {
                    text: text.to_owned(),
                    kind: $kind,
                    prefix: $prefix,
                })?;
                decode_base32(body).map(Self).map_err(|flaw| {
                    let (text, kind) = (text.to_owned(), $kind);
                    match flaw {
                        Flaw::Length => IdError::Length {
                            text,
                            kind,
                            prefix: $prefix,
                            characters: characters($size),
                        },
                        Flaw::Letter(found) => IdError::Letter { text, kind, found },
                        Flaw::Last => IdError::Last {
                            text,
                            kind,
                            last: last_letters($size),
                        },
                    }
                })
            }
        }
    )*};
}

ids! {
    /// An Ed25519 public key: a party's identity, its libp2p key and what its signatures verify with.
    PublicKey, 32, "p-", "public key";
    /// A host, by its public key.
    HostId, 32, "h-", "host";
    /// A renter, by its public key.
    RenterId, 32, "r-", "renter";
    /// A broker, by its public key.
    BrokerId, 32, "k-", "broker";
    /// BLAKE3 of the signed bytes of a statement.
    Digest, 32, "d-", "digest";
    /// An offer: stable for one host and one set of resources, however often it is signed again.
    OfferId, 16, "o-", "offer";
    /// An order, chosen by the renter: the idempotency key of renting.
    OrderId, 16, "b-", "order";
    /// A lease, derived by the broker from the order.
    LeaseId, 16, "l-", "lease";
    /// One envelope; with its signer the key of the replay window.
    MessageId, 16, "m-", "message";
    /// A deposit, chosen by the operator: a repeat has no second effect.
    DepositId, 16, "t-", "deposit";
    /// A move of a host's money: a bond, a refund, a payout. A repeat has no second effect.
    PaymentId, 16, "p-", "payment";
    /// One boot of a host, so that counters that went back are seen for what they are.
    BootId, 16, "u-", "boot";
}

macro_rules! parties {
    ($($name:ident),*) => {$(
        impl From<PublicKey> for $name {
            fn from(key: PublicKey) -> Self {
                Self(key.0)
            }
        }

        impl From<$name> for PublicKey {
            fn from(party: $name) -> Self {
                Self(party.0)
            }
        }
    )*};
}

parties!(HostId, RenterId, BrokerId);

impl Digest {
    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The first half, for ids that are derived by hashing.
    #[must_use]
    pub fn half(&self) -> [u8; 16] {
        let mut half = [0; 16];
        half.copy_from_slice(&self.0[..16]);
        half
    }
}

impl LeaseId {
    /// The lease that `broker` makes of `renter`'s order: the same for every copy of the order.
    #[must_use]
    pub fn of_order(broker: BrokerId, renter: RenterId, order: OrderId) -> Self {
        let mut bytes = Vec::with_capacity(96);
        bytes.extend_from_slice(b"feira lease 1");
        bytes.extend_from_slice(&broker.0);
        bytes.extend_from_slice(&renter.0);
        bytes.extend_from_slice(&order.0);
        Self(Digest::of(&bytes).half())
    }
}

impl PaymentId {
    /// The payout that a broker makes for `host` as event `number` of its journal.
    #[must_use]
    pub fn of_payout(host: HostId, number: u64) -> Self {
        let mut bytes = b"feira payout 1".to_vec();
        bytes.extend_from_slice(&host.0);
        bytes.extend_from_slice(&number.to_le_bytes());
        Self(Digest::of(&bytes).half())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32_is_crockfords() {
        // 16 zero bytes are 26 zeros; 0xff.. is 25 z and the three last bits 111 padded to 11100 = w.
        assert_eq!(
            LeaseId::from_bytes([0; 16]).to_string(),
            format!("l-{}", "0".repeat(26))
        );
        assert_eq!(
            LeaseId::from_bytes([255; 16]).to_string(),
            format!("l-{}w", "z".repeat(25))
        );
    }

    #[test]
    fn text_and_back() {
        let id = OfferId::from_bytes(*b"0123456789abcdef");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(
            id.to_string().to_uppercase().replace("O-", "o-").parse(),
            Ok(id)
        );
    }

    #[test]
    fn another_kind_a_short_text_and_stray_bits_are_refused() {
        let id = OfferId::from_bytes([255; 16]).to_string();
        assert!(matches!(id.parse::<LeaseId>(), Err(IdError::Prefix { .. })));
        assert!(matches!(
            id[..10].parse::<OfferId>(),
            Err(IdError::Length { characters: 26, .. })
        ));
        // The last character carries three bits; z would set five.
        let stray = format!("{}z", &id[..id.len() - 1]);
        // 26 characters carry 130 bits, 52 carry 260: two and four of the last one's are spare.
        let said = stray.parse::<OfferId>().unwrap_err().to_string();
        assert!(
            said.ends_with(
                "its last character can only be one of 0 4 8 c g m r w, so a letter of it is wrong"
            ),
            "{said}"
        );
        let stray = format!("h-{}1", "0".repeat(51));
        let said = stray.parse::<HostId>().unwrap_err().to_string();
        assert!(said.contains("one of 0 g,"), "{said}");
        let letter = format!("h-{}u", "0".repeat(51));
        let said = letter.parse::<HostId>().unwrap_err().to_string();
        assert!(said.contains("'u' stands in no id"), "{said}");
    }

    #[test]
    fn prefixes_of_four_or_more_match() {
        let id = LeaseId::from_bytes([0; 16]);
        assert!(id.begins_with("l-0000") && id.begins_with("00000"));
        assert!(!id.begins_with("l-000") && !id.begins_with("l-0001"));
    }
}
