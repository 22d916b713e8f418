//! What the envelope accepts and, above all, what it refuses.

use super::*;

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
