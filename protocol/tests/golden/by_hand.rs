//! Bytes put together by hand from the description of the codec: version, variant as a 32-bit number, fields
//! in order, all little-endian, lengths of 64 bits.

use crate::sample::host_key;
use crate::samples::{AUDIENCE, ISSUED, LEASE, MESSAGE, lease_command, signed};
use ed25519_dalek::{Signature, Verifier};
use protocol::bounded::Blob;
use protocol::lease::{Vacate, Want};
use protocol::message::{BrokerReply, BrokerRequest, HostReply, LeaseScope, Rejection, encode};
use protocol::terms::Deal;
use protocol::tunnel::{Downward, Upward};
use protocol::units::{MicroUsd, PricePerHour, Seconds};
use protocol::{codec, message};

/// Version 3 in front of a message.
const VERSION: [u8; 2] = [3, 0];

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

#[test]
fn messages_without_fields_are_version_and_variant() {
    assert_eq!(encode(&BrokerRequest::Info), Ok(vec![3, 0, 0, 0, 0, 0]));
    assert_eq!(encode(&BrokerRequest::Balance), Ok(vec![3, 0, 7, 0, 0, 0]));
    assert_eq!(
        encode(&BrokerRequest::Earnings),
        Ok(vec![3, 0, 15, 0, 0, 0])
    );
    assert_eq!(encode(&BrokerReply::Noted), Ok(vec![3, 0, 8, 0, 0, 0]));
    assert_eq!(encode(&HostReply::Noted), Ok(vec![3, 0, 0, 0, 0, 0]));
}

#[test]
fn fields_follow_in_order() {
    assert_eq!(
        encode(&BrokerRequest::Leases(LeaseScope::All)),
        Ok(vec![3, 0, 4, 0, 0, 0, 1, 0, 0, 0])
    );
    let lease = encode(&BrokerRequest::Lease(LEASE)).unwrap();
    assert_eq!(lease, joined(&[&VERSION, &[5, 0, 0, 0], &[0x1e; 16]]));
    let watch = BrokerRequest::Watch {
        lease: LEASE,
        seen: 4,
        wait: Seconds(20),
    };
    let numbers = [4, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        encode(&watch).unwrap(),
        joined(&[&VERSION, &[6, 0, 0, 0], &[0x1e; 16], &numbers])
    );
    // $1 and $2 in µ$: 0x0f4240 and 0x1e8480.
    let refused = BrokerReply::Refused(Rejection::NotEnoughMoney {
        available: MicroUsd(1_000_000),
        needed: MicroUsd(2_000_000),
    });
    let amounts = [
        0x40, 0x42, 0x0f, 0, 0, 0, 0, 0, 0x80, 0x84, 0x1e, 0, 0, 0, 0, 0,
    ];
    assert_eq!(
        encode(&refused).unwrap(),
        joined(&[&VERSION, &[9, 0, 0, 0], &[12, 0, 0, 0], &amounts])
    );
}

/// A bid for an interruptible lease, with the price up to which it would rather become one on demand.
#[test]
fn a_deal_is_its_variant_and_its_prices() {
    let deal = Deal::Interruptible {
        bid: PricePerHour(150_000),
        until: ISSUED,
        fallback: Some(PricePerHour(400_000)),
    };
    // 150 000 = 0x0249f0, 400 000 = 0x061a80; the option is one byte.
    let expected = joined(&[
        &[2, 0, 0, 0],
        &[0xf0, 0x49, 0x02, 0, 0, 0, 0, 0],
        &ISSUED.0.to_le_bytes(),
        &[1, 0x80, 0x1a, 0x06, 0, 0, 0, 0, 0],
    ]);
    assert_eq!(codec::encode(&deal), Ok(expected));
    let vacate = Want::Vacate(Vacate {
        run: 3,
        by: ISSUED,
        outbid: true,
    });
    let expected = joined(&[&[3, 0, 0, 0], &[3, 0, 0, 0], &ISSUED.0.to_le_bytes(), &[1]]);
    assert_eq!(codec::encode(&vacate), Ok(expected));
}

#[test]
fn frames_have_lengths_before_bytes() {
    let input = Upward::Input(Blob::new(b"ls\n".to_vec()).unwrap());
    assert_eq!(
        codec::encode(&input),
        Ok(vec![0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, b'l', b's', b'\n'])
    );
    assert_eq!(
        codec::encode(&Downward::Exit(-1)),
        Ok(vec![2, 0, 0, 0, 255, 255, 255, 255])
    );
}

/// The envelope of the security design, for a command to end a lease.
#[test]
fn a_statement_is_what_the_envelope_s_drawing_says() {
    let signer = host_key().verifying_key();
    let expires = ISSUED.0 + 90_000;
    let payload = joined(&[
        &[1, 0],
        signer.as_bytes(),
        AUDIENCE.as_bytes(),
        MESSAGE.as_bytes(),
        &ISSUED.0.to_le_bytes(),
        &expires.to_le_bytes(),
        &[0x1e; 16],
        &[2, 0, 0, 0],
    ]);
    // 2 + 32 + 32 + 16 + 8 + 8 + 16 + 4.
    assert_eq!(payload.len(), 118);
    let input = joined(&[
        b"feira1",
        &[4],
        b"main",
        &[16],
        b"lease-command/v3",
        &[118, 0, 0, 0],
        &payload,
    ]);
    let bytes = codec::encode(&signed(lease_command())).unwrap();
    let (front, signature) = bytes.split_at(8 + 118);
    assert_eq!(front, joined(&[&[118, 0, 0, 0, 0, 0, 0, 0], &payload]));
    let signature = Signature::from_slice(signature).unwrap();
    assert!(signer.verify(&input, &signature).is_ok());
}

#[test]
fn another_version_is_refused_by_name() {
    let error = message::decode::<BrokerRequest>(&[1, 0, 0, 0, 0, 0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the message is malformed: version 1; this program speaks 3"
    );
}
