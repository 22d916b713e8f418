//! Beside `verify_strict`: the same verdict on everything, with kept keys and without.

use super::super::signing_input;
use super::*;
use ed25519_dalek::{Signer, SigningKey};

const STATEMENT: &str = "test-pay/v1";

/// A payload as one of a statement begins, with the signer's key in its place.
fn payload(key: &VerifyingKey, body: &[u8]) -> Vec<u8> {
    [&[1, 0][..], key.as_bytes(), body].concat()
}

fn sign(key: &SigningKey, payload: &[u8]) -> Signature {
    key.sign(&signing_input(STATEMENT, payload))
}

#[test]
fn the_points_of_small_order_are_these_eight() {
    for (index, bytes) in SMALL_ORDER.iter().enumerate() {
        let key = VerifyingKey::from_bytes(bytes).unwrap();
        assert!(key.is_weak(), "{bytes:x?}");
        assert_eq!(key.to_edwards().compress().to_bytes(), *bytes);
        assert!(!SMALL_ORDER[..index].contains(bytes));
    }
}

/// The signature has the identity for its point and k·a for its number: the comparison alone lets it pass, and it
/// was made from the key and could be made twice.
#[test]
fn a_signature_with_a_point_of_small_order_is_none() {
    let key = SigningKey::from_bytes(&[1; 32]).verifying_key();
    let rest: &[&[u8]] = &[
        &[7; 32],
        &[9; 16],
        &1_000_000_u64.to_le_bytes(),
        &1_060_000_u64.to_le_bytes(),
        &5_u64.to_le_bytes(),
    ];
    let payload = payload(&key, &rest.concat());
    let number = [
        0xce, 0x5d, 0x95, 0x0c, 0xc9, 0xe4, 0x36, 0xbd, 0x2d, 0x5e, 0x76, 0x9f, 0x3e, 0x0a, 0xad,
        0x29, 0x4d, 0x8c, 0x68, 0x7a, 0xd7, 0xad, 0xf2, 0x24, 0xea, 0x38, 0x3b, 0xd7, 0xa1, 0xd8,
        0x41, 0x0a,
    ];
    let signature = Signature::from_components(SMALL_ORDER[0], number);
    let input = signing_input(STATEMENT, &payload);
    assert!(key.multipart_verify(&[&input], &signature).is_ok());
    assert!(key.verify_strict(&input, &signature).is_err());
    assert_eq!(
        check(STATEMENT, &payload, &signature, None),
        Err(SignatureError::Signature)
    );
}

#[test]
fn a_changed_signature_gets_the_verdict_of_verify_strict() {
    let mut keys = Keys::new();
    for seed in 0..4 {
        let key = SigningKey::from_bytes(&[seed; 32]);
        let payload = payload(&key.verifying_key(), &[seed; 80]);
        let honest = sign(&key, &payload);
        for bit in 0..512 {
            let mut bytes = honest.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            agree(&key, &payload, &Signature::from_bytes(&bytes), &mut keys);
        }
        for point in SMALL_ORDER {
            let signature = Signature::from_components(point, *honest.s_bytes());
            agree(&key, &payload, &signature, &mut keys);
        }
        agree(&key, &payload, &honest, &mut keys);
        assert!(check(STATEMENT, &payload, &honest, Some(&mut keys)).is_ok());
    }
}

#[track_caller]
fn agree(key: &SigningKey, payload: &[u8], signature: &Signature, keys: &mut Keys) {
    let input = signing_input(STATEMENT, payload);
    let strict = key.verifying_key().verify_strict(&input, signature).is_ok();
    assert_eq!(
        check(STATEMENT, payload, signature, None).is_ok(),
        strict,
        "{signature:?}"
    );
    let kept = check(STATEMENT, payload, signature, Some(keys));
    assert_eq!(kept.is_ok(), strict, "{signature:?}");
}

#[test]
fn a_kept_key_makes_way_and_verifies_nobody_elses() {
    let mut keys = Keys::new();
    // More keys than places.
    let all: Vec<SigningKey> = (0..KEPT + 500)
        .map(|number| {
            let mut seed = [0; 32];
            seed[..8].copy_from_slice(&number.to_le_bytes());
            SigningKey::from_bytes(&seed)
        })
        .collect();
    for key in &all {
        keys.keep(key.verifying_key());
    }
    assert_eq!(keys.places.len(), KEPT);
    let crowded = all
        .iter()
        .filter(|key| keys.get(key.verifying_key().as_bytes()).is_none());
    assert!(crowded.count() >= 500);
    for pair in all.windows(2).step_by(500) {
        let [key, other] = pair else { unreachable!() };
        let payload = payload(&key.verifying_key(), b"body");
        let honest = sign(key, &payload);
        assert!(check(STATEMENT, &payload, &honest, Some(&mut keys)).is_ok());
        assert!(keys.get(key.verifying_key().as_bytes()).is_some());
        let forged = sign(other, &payload);
        assert_eq!(
            check(STATEMENT, &payload, &forged, Some(&mut keys)),
            Err(SignatureError::Signature)
        );
    }
}

#[test]
fn a_signer_whose_signature_fails_is_not_kept() {
    let mut keys = Keys::new();
    let key = SigningKey::from_bytes(&[1; 32]);
    let payload = payload(&key.verifying_key(), b"body");
    let forged = sign(&SigningKey::from_bytes(&[2; 32]), &payload);
    assert!(check(STATEMENT, &payload, &forged, Some(&mut keys)).is_err());
    assert!(keys.get(key.verifying_key().as_bytes()).is_none());
}
