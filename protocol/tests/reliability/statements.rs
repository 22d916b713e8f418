//! Anybody who has a broker's statements gets the broker's score, and none can be left out.

use crate::{between, evidence, hour, outcome, payer, with_faults};
use protocol::codec;
use protocol::ids::{Digest, HostId, LeaseId};
use protocol::reliability::{
    CheckError, Evidence, Fault, INTERVALS_MAX, Interval, Outcome, PAYERS_MAX, Payer, Score,
    Standing,
};
use protocol::signed::PAYLOAD_BYTES_MAX;
use protocol::units::{Millis, Timestamp};

fn seen() -> Evidence {
    let mut seen = evidence((1..=6).map(|number| {
        let from = u64::from(number) * 10;
        let lease = outcome(
            number,
            payer(number),
            &[between(hour(from), hour(from + 7))],
        );
        with_faults(lease, &[(hour(from + 7), Fault::Silent)])
    }));
    seen.heard.push(between(hour(0), hour(80)));
    seen.carry_to(hour(28));
    seen
}

fn sent(seen: &Evidence) -> (Standing, Vec<Outcome>) {
    let through = |outcome: &Outcome| codec::decode(&codec::encode(outcome).unwrap()).unwrap();
    let standing = codec::decode(&codec::encode(&seen.standing()).unwrap()).unwrap();
    (standing, seen.outcomes.values().map(through).collect())
}

#[test]
fn the_score_of_the_statements_is_the_score_of_the_evidence() {
    let seen = seen();
    let (standing, mut outcomes) = sent(&seen);
    // Whatever order they are in.
    outcomes.reverse();
    let again = Evidence::of_statements(standing, outcomes).unwrap();
    assert_eq!(again, seen);
    assert_eq!(Score::of(&again, hour(100)), Score::of(&seen, hour(100)));
}

#[test]
fn an_outcome_left_out_changed_or_foreign_is_found() {
    let (standing, outcomes) = sent(&seen());
    let check = |outcomes: Vec<Outcome>| Evidence::of_statements(standing.clone(), outcomes);
    // The first two of six are carried over.
    let missing = outcomes[1..].to_vec();
    assert_eq!(
        check(missing),
        Err(CheckError::Number {
            found: 3,
            wanted: 4
        })
    );
    let mut changed = outcomes.clone();
    changed[2].incidents = protocol::bounded::List::default();
    assert_eq!(check(changed), Err(CheckError::Digest));
    let mut exchanged = outcomes.clone();
    exchanged[2].lease = LeaseId::from_bytes([99; 16]);
    assert_eq!(check(exchanged), Err(CheckError::Digest));
    let mut foreign = outcomes;
    foreign[0].host = HostId::from_bytes([9; 32]);
    assert!(matches!(check(foreign), Err(CheckError::OtherHost { .. })));
}

#[test]
fn the_largest_statements_can_be_signed() {
    let intervals: Vec<Interval> = (0..128).map(|at| between(hour(at), hour(at + 1))).collect();
    assert_eq!(intervals.len(), INTERVALS_MAX);
    let faults: Vec<_> = (0..128).map(|at| (hour(at), Fault::Lost)).collect();
    let largest = with_faults(outcome(1, payer(1), &intervals), &faults);
    let mut full = evidence([largest.clone()]);
    full.heard.clone_from(&intervals);
    full.excluded.clone_from(&intervals);
    full.incidents = largest.incidents.to_vec();
    let payers = (0..1024_u16).map(|number| {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&number.to_le_bytes());
        (Payer::from_bytes(bytes), Millis(1))
    });
    full.carried.leased = protocol::bounded::List::new(payers.collect()).unwrap();
    assert_eq!(full.carried.leased.len(), PAYERS_MAX);
    // The header takes 98 bytes.
    for size in [
        codec::encode(&largest).unwrap().len(),
        codec::encode(&full.standing()).unwrap().len(),
    ] {
        assert!(size + 98 <= PAYLOAD_BYTES_MAX, "{size}");
    }
}

#[test]
fn absurd_statements_come_to_a_number() {
    let mut absurd = evidence([outcome(
        1,
        payer(1),
        &[
            between(Timestamp(0), Timestamp(u64::MAX)),
            between(hour(9), hour(3)),
        ],
    )]);
    absurd.carried.idle = Millis(u64::MAX);
    absurd.carried.faults_ppm = u64::MAX;
    let score = Score::of(&absurd, hour(1));
    assert!(score.exposure_hours.is_finite() && score.ppm <= 1_000_000);
    assert!(Score::of(&absurd, Timestamp(0)).ppm <= 1_000_000);
    assert!(Score::of(&absurd, Timestamp(u64::MAX)).ppm <= 1_000_000);
}

#[test]
fn the_bytes_of_the_statements_are_what_they_were() {
    // Whoever changes them makes every signed outcome unreadable.
    let seen = seen();
    let digest = |bytes: Vec<u8>| Digest::of(&bytes).to_string();
    let outcome = seen.outcomes.values().next().unwrap();
    assert_eq!(
        digest(codec::encode(outcome).unwrap()),
        "d-zrhprz57gvwbjnr3qq1cvqqjesn10zjmac8yxr2p4sx5v0arwd40"
    );
    assert_eq!(
        digest(codec::encode(&seen.standing()).unwrap()),
        "d-nhmafc2y0qwm8j1ztjgd19mhm58wk1k0g236yr0y34ggq40zdxgg"
    );
}
