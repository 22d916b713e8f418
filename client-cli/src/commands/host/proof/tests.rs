//! The score is computed and not taken; what is not signed, or was changed, is refused.

use super::*;
use ed25519_dalek::SigningKey;
use protocol::bounded::List;
use protocol::ids::{Digest, LeaseId, MessageId};
use protocol::lease::Party;
use protocol::reliability::{Fault, Incident, Interval, Payer, Start};
use protocol::signed::{ANYONE, Envelope};
use protocol::units::{MicroUsd, Seconds};

const HOST: HostId = HostId::from_bytes([4; 32]);
const HOUR: u64 = 3_600_000;
const NOW: Timestamp = Timestamp(1_796_040_000_000);

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn broker() -> BrokerId {
    PublicKey::from_bytes(key().verifying_key().to_bytes()).into()
}

fn sign<T: Statement>(body: T, key: &SigningKey) -> Signed<T> {
    let envelope = Envelope {
        audience: ANYONE,
        message_id: MessageId::from_bytes([0; 16]),
        issued: NOW,
        validity: Seconds(300),
    };
    Signed::sign(body, key, envelope).unwrap().signed().clone()
}

/// A lease of `hours` of one renter, that ended in a lost host if it is said so.
fn outcome(number: u8, hours: u64, lost: bool) -> Outcome {
    let from = NOW.before(protocol::units::Millis(u64::from(number) * 100 * HOUR));
    let to = Timestamp(from.0 + hours * HOUR);
    let incident = Incident {
        at: to,
        fault: Fault::Lost,
    };
    Outcome {
        host: HOST,
        lease: LeaseId::from_bytes([number; 16]),
        part: 0,
        payer: Payer::from_bytes([number; 16]),
        asked_at: from,
        start: Start::Ran(from),
        runs: List::first([Interval { from, to }]),
        incidents: List::first(lost.then_some(incident)),
        paid: MicroUsd(1),
        ended: Some((to, if lost { Party::Host } else { Party::Renter })),
        order: Digest::from_bytes([1; 32]),
        grant: None,
        report: None,
    }
}

fn evidence() -> Evidence {
    let mut evidence = Evidence::new(HOST);
    for outcome in [
        outcome(1, 40, false),
        outcome(2, 20, true),
        outcome(3, 10, false),
    ] {
        evidence.outcomes.insert((outcome.lease, 0), outcome);
    }
    evidence
}

/// Two pages, as a broker sends them.
fn pages() -> Vec<HostEvidence> {
    let evidence = evidence();
    let ppm = Score::of(&evidence, NOW).ppm;
    let outcomes: Vec<_> = evidence.outcomes.values().cloned().collect();
    let page = |outcomes: &[Outcome]| HostEvidence {
        standing: sign(evidence.standing(), &key()),
        as_of: NOW,
        ppm,
        heard_at: Some(NOW),
        outcomes: List::first(outcomes.iter().map(|outcome| sign(outcome.clone(), &key()))),
        next: None,
    };
    vec![page(&outcomes[..2]), page(&outcomes[2..])]
}

fn why(result: Result<impl std::fmt::Debug, Failure>) -> (Code, String) {
    let failure = result.unwrap_err();
    (failure.code(), failure.what().to_owned())
}

#[test]
fn the_score_is_computed_and_not_taken() {
    let proof = Proof::of(broker(), HOST, &pages()).unwrap();
    assert_eq!(proof.evidence, evidence());
    // Three starts of three: 11/13. 70 h less decay, 40 of them of one renter, and one fault.
    assert_eq!((proof.score.starts, proof.score.renters), (3, 3));
    assert!(proof.score.exposure_hours > 65.0 && proof.score.exposure_hours < 70.0);
    let mut pages = pages();
    pages[1].ppm += 1;
    let (code, what) = why(Proof::of(broker(), HOST, &pages));
    assert_eq!(code, Code::EvidenceWrong);
    assert!(what.contains("it comes to a score of"), "{what}");
}

#[test]
fn a_statement_of_somebody_else_of_another_host_or_none_is_refused() {
    let refused = |change: &dyn Fn(&mut Vec<HostEvidence>)| {
        let mut pages = pages();
        change(&mut pages);
        let (code, what) = why(Proof::of(broker(), HOST, &pages));
        assert_eq!(code, Code::EvidenceWrong);
        what
    };
    let stranger = SigningKey::from_bytes(&[8; 32]);
    let what = refused(&|pages| {
        pages[1].outcomes = List::first([sign(outcome(3, 10, false), &stranger)]);
    });
    assert!(
        what.ends_with("somebody else than the broker signed it"),
        "{what}"
    );
    // A host that leaves out its fault.
    let what = refused(&|pages| {
        pages[0].outcomes = List::first([pages[0].outcomes[0].clone()]);
    });
    assert!(
        what.ends_with("there are 2 outcomes; the broker signed that there are 3"),
        "{what}"
    );
    let what = refused(&|pages| {
        pages[0].outcomes = List::first([
            pages[0].outcomes[0].clone(),
            sign(outcome(2, 20, false), &key()),
        ]);
    });
    assert!(what.contains("not the ones"), "{what}");
    assert!(Proof::of(broker(), HostId::from_bytes([5; 32]), &pages()).is_err());
}

#[test]
fn a_file_says_the_same_to_anybody() {
    let proof = Proof::of(broker(), HOST, &pages()).unwrap();
    let text = File::of(HOST, std::slice::from_ref(&proof)).unwrap().text();
    let (host, again) = File::read(&text).unwrap().proofs().unwrap();
    assert_eq!((host, again.len()), (HOST, 1));
    assert_eq!(again[0].score, proof.score);
    assert_eq!(again[0].broker, broker());
    assert!(!again[0].is_empty());
}

#[test]
fn a_file_that_was_changed_is_refused() {
    let proof = Proof::of(broker(), HOST, &pages()).unwrap();
    let text = File::of(HOST, std::slice::from_ref(&proof)).unwrap().text();
    let ppm = proof.score.ppm.to_string();
    let better = text.replace(
        &format!("\"score_millionths\": {ppm}"),
        "\"score_millionths\": 999999",
    );
    assert_ne!(better, text);
    let read = |text: &str| File::read(text).and_then(|file| file.proofs().map(|_| ()));
    assert_eq!(why(read(&better)).0, Code::EvidenceWrong);
    let later = text.replace(&NOW.0.to_string(), &(NOW.0 + 1_000 * HOUR).to_string());
    assert_ne!(later, text);
    assert_eq!(why(read(&later)).0, Code::EvidenceWrong);
    for wrong in [
        "",
        "{}",
        "[]",
        &text.replace("evidence/1", "evidence/2"),
        &text.replace("standing", "stand"),
    ] {
        assert_eq!(why(read(wrong)).0, Code::NotEvidence, "{wrong}");
    }
    // One digit of a signed statement.
    let broken = text.replacen("\"standing\": \"0", "\"standing\": \"1", 1);
    if broken != text {
        assert_eq!(why(read(&broken)).0, Code::EvidenceWrong);
    }
}
