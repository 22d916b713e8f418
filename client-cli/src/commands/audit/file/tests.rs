//! A file of a proof that the reference made, and what is said of one that was changed.

use super::*;
use audit::conversation::{Heard, Plan};
use audit::judge::{Forgery, confirm, judge};
use audit::message::{Answer, Challenge, Nonce, Seed};
use audit::processor::Processor;
use audit::prover::Prover;
use audit::transcript::Transcript;
use audit::verifier::{Next, Verifier};
use ed25519_dalek::SigningKey;
use protocol::bounded::{List, Text};
use protocol::ids::{Digest, MessageId, PublicKey};
use protocol::signed::{ANYONE, Envelope};
use protocol::units::{Millis, Seconds, Timestamp};
use protocol::verify::{Finding, Parameters};

const SMALL: Parameters = Parameters {
    tile_side: 16,
    inner: 64,
    tiles: 4,
    rounds: 2,
    audits: 8,
    fill_max: Millis(1000),
    pass_max: Millis(500),
};

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn broker() -> BrokerId {
    PublicKey::from_bytes(key().verifying_key().to_bytes()).into()
}

const HOST: HostId = HostId::from_bytes([3; 32]);

/// Each answer comes 10 ms after the one before.
fn transcript() -> Transcript {
    let plan = Plan {
        challenge: Challenge {
            id: MessageId::from_bytes([1; 16]),
            device: Text::new("GPU-1").unwrap(),
            parameters: SMALL,
            seed: Seed([2; 32]),
        },
        nonce: Nonce([3; 32]),
        secret: [4; 32],
    };
    let mut verifier = Verifier::begin(plan).unwrap();
    let mut prover = Prover::new(Processor::new());
    let (mut answers, mut at) = (vec![Answer::Ready], 0);
    loop {
        let answer = answers.remove(0);
        at += 10;
        match verifier.hear(Millis(at), Heard::Answer(answer)) {
            Next::Say(ask) => answers = prover.answer(&ask),
            Next::Wait => {}
            Next::Over(transcript) => return transcript,
        }
    }
}

fn proof(finding: Option<Finding>) -> Proof {
    let transcript = transcript();
    let verdict = Verdict {
        host: HOST,
        device: Text::new("GPU-1").unwrap(),
        resources: List::first([Text::new("GPU-1").unwrap()]),
        hardware: Digest::of(b"hardware"),
        class: Text::new("RTX 4090").unwrap(),
        parameters: SMALL,
        finding: finding.unwrap_or_else(|| judge(&transcript).unwrap()),
        transcript: transcript.digest().unwrap(),
        at: Timestamp(1_800_000_000_000),
    };
    let envelope = Envelope {
        audience: ANYONE,
        message_id: MessageId::from_bytes([5; 16]),
        issued: verdict.at,
        validity: Seconds(60),
    };
    let signed = Signed::sign(verdict, &key(), envelope).unwrap();
    Proof::new(broker(), signed, transcript.to_bytes().unwrap())
}

#[test]
fn a_file_is_read_as_it_was_written_and_judged_again() {
    let text = File::of(HOST, &[proof(None)]).unwrap().text();
    let (host, proofs) = File::read(&text).unwrap().proofs().unwrap();
    assert_eq!((host, proofs.len()), (HOST, 1));
    // Ready at 10 ms, filled at 20, done at 30.
    let accepted = Finding::Accepted {
        fill: Millis(10),
        pass: Millis(10),
    };
    assert_eq!(proofs[0].verdict().finding, accepted);
    assert_eq!(confirm(proofs[0].verdict(), proofs[0].transcript()), Ok(()));
    let (device, words) = super::words::line((broker(), proofs[0].verdict()));
    assert_eq!(device, "GPU-1");
    assert!(
        words.starts_with(
            "proved as RTX 4090: filled in 10 ms of 1000, passed over in 10 ms of 500"
        ),
        "{words}"
    );
}

#[test]
fn a_verdict_that_does_not_follow_is_seen_although_the_broker_signed_it() {
    let faster = Finding::Accepted {
        fill: Millis(9),
        pass: Millis(10),
    };
    let forged = proof(Some(faster));
    assert_eq!(
        confirm(forged.verdict(), forged.transcript()),
        Err(Forgery::Finding)
    );
}

#[test]
fn a_file_whose_readable_part_was_changed_is_not_right() {
    let text = File::of(HOST, &[proof(None)]).unwrap().text();
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let changed = text.replacen(from, to, 1);
        let failure = File::read(&changed).and_then(|file| file.proofs().map(|_| ()));
        failure.unwrap_err()
    };
    let wrong = refused("\"fill_ms\": 10", "\"fill_ms\": 5");
    assert_eq!(wrong.code(), Code::EvidenceWrong);
    let other = BrokerId::from_bytes([9; 32]).to_string();
    let wrong = refused(&broker().to_string(), &other);
    assert!(wrong.what().contains("somebody else"), "{}", wrong.what());
    let none = refused("feira.proofs/1", "feira.proofs/2");
    assert_eq!(none.code(), Code::NotEvidence);
    assert!(File::read("{}").is_err() && File::read("x").is_err());
}
