//! What the envelope accepts and, above all, what it refuses.

use super::strict::{is_canonical, sound_key};
use super::*;
use ed25519_dalek::VerifyingKey;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Pay(u64);
impl Statement for Pay {
    const TYPE: &'static str = "test-pay/v1";
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Refund(u64);
impl Statement for Refund {
    const TYPE: &'static str = "test-refund/v1";
}

const NOW: Timestamp = Timestamp(1_000_000);
const ME: PublicKey = PublicKey::from_bytes([7; 32]);

fn envelope() -> Envelope {
    Envelope {
        audience: ME,
        message_id: MessageId::from_bytes([9; 16]),
        issued: NOW,
        validity: Seconds(60),
    }
}

fn signed() -> Signed<Pay> {
    Signed::sign(Pay(5), &SigningKey::from_bytes(&[1; 32]), envelope())
        .unwrap()
        .signed()
        .clone()
}

#[test]
fn an_honest_statement_verifies() {
    assert_eq!(signed().verify_fresh(ME, NOW).unwrap().body(), &Pay(5));
}

#[test]
fn the_same_bytes_as_another_type_do_not() {
    let pay = signed();
    let refund: Signed<Refund> = Signed {
        payload: pay.payload,
        signature: pay.signature,
        statement: PhantomData,
    };
    assert_eq!(refund.verify(), Err(SignatureError::Signature));
}

#[test]
fn every_flipped_byte_is_noticed() {
    let honest = signed();
    for index in 0..honest.payload.len() {
        let mut bytes = honest.payload.to_vec();
        bytes[index] ^= 1;
        let forged: Signed<Pay> = Signed {
            payload: Blob::new(bytes).unwrap(),
            ..honest.clone()
        };
        assert!(forged.verify().is_err(), "byte {index}");
    }
}

#[test]
fn a_key_of_small_order_signs_nothing() {
    // The identity point with R = 1 and S = 0 passes the lax rule for every message.
    let mut identity = [0; 32];
    identity[0] = 1;
    let mut bytes = signed().payload.to_vec();
    bytes[2..34].copy_from_slice(&identity);
    let forged: Signed<Pay> = Signed {
        payload: Blob::new(bytes).unwrap(),
        signature: SignatureBytes {
            r: identity,
            s: [0; 32],
        },
        statement: PhantomData,
    };
    assert_eq!(forged.verify(), Err(SignatureError::WeakKey));
}

#[test]
fn a_key_has_one_encoding() {
    let mut second_encodings = 0;
    for (lowest, highest) in (0..=255_u8).flat_map(|low| [(low, 0x7f), (low, 0xff)]) {
        let mut large = [0xff; 32];
        (large[0], large[31]) = (lowest, highest);
        let mut small = [0; 32];
        (small[0], small[31]) = (lowest, highest & 0x80);
        for bytes in [large, small] {
            let Ok(key) = VerifyingKey::from_bytes(&bytes) else {
                continue;
            };
            if !key.is_weak() {
                let again = key.to_edwards().compress().to_bytes();
                assert_eq!(is_canonical(&bytes), again == bytes, "{bytes:x?}");
                second_encodings += u32::from(again != bytes);
            }
        }
    }
    // Of the 19 coordinates from 2^255 - 19 on, those of points that are not weak, with either sign.
    assert!(second_encodings > 0);
    let mut bytes = [0xff; 32];
    (bytes[0], bytes[31]) = (0xf0, 0x7f);
    assert_eq!(sound_key(&bytes).err(), Some(SignatureError::WeakKey));
}

#[test]
fn a_draft_becomes_the_same_statement_whenever_it_is_signed() {
    let key = SigningKey::from_bytes(&[1; 32]);
    let signer = PublicKey::from_bytes(key.verifying_key().to_bytes());
    let draft = Draft::new(Pay(5), signer, envelope()).unwrap();
    assert_eq!(draft.sign(&key), signed());
    assert_eq!(
        (draft.digest(), draft.size()),
        (signed().digest(), signed().size())
    );
    assert!(draft.became(&signed()));
    let other = Draft::new(Pay(6), signer, envelope()).unwrap();
    assert!(!other.became(&signed()));
    let kept: Draft<Pay> = codec::decode(&codec::encode(&draft).unwrap()).unwrap();
    assert_eq!(kept, draft);
}

#[test]
fn audience_and_time_are_held() {
    let other = PublicKey::from_bytes([8; 32]);
    assert_eq!(
        signed().verify_fresh(other, NOW),
        Err(SignatureError::Audience { audience: ME })
    );
    assert_eq!(
        signed().verify_fresh(ME, Timestamp(NOW.0 + 60_000)),
        Err(SignatureError::Expired { ago_ms: 0 })
    );
    assert_eq!(
        signed().verify_fresh(ME, Timestamp(NOW.0 - 30_001)),
        Err(SignatureError::FromTheFuture { ahead_ms: 30_001 })
    );
    let long = Envelope {
        validity: Seconds(301),
        ..envelope()
    };
    let long = Signed::sign(Pay(1), &SigningKey::from_bytes(&[1; 32]), long).unwrap();
    assert_eq!(
        long.signed().verify_fresh(ME, NOW),
        Err(SignatureError::ValidTooLong {
            validity_ms: 301_000
        })
    );
}
