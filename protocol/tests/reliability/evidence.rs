//! What evidence comes to: whose time a host's time was, and what is carried on.

use crate::{HOST, between, evidence, hour, near, outcome, payer, with_faults};
use protocol::ids::{LeaseId, RenterId};
use protocol::reliability::{Evidence, Fault, Incident, Outcome, Payer, Score, decayed_hours};
use protocol::units::Timestamp;

/// So short a time that nothing decays to speak of.
const LITTLE: f64 = 0.02;

#[test]
fn an_hour_of_two_leases_is_one_hour_and_each_renter_has_half_of_it() {
    // 0 to 4 and 2 to 6: two hours alone and two shared by each.
    let seen = evidence([
        outcome(1, payer(1), &[between(hour(0), hour(4))]),
        outcome(2, payer(2), &[between(hour(2), hour(6))]),
    ]);
    let score = Score::of(&seen, hour(6));
    near(score.leased_hours, 6.0, LITTLE);
    assert_eq!(score.renters, 2);
    // Two leases of one renter are the renter's time once.
    let seen = evidence([
        outcome(1, payer(1), &[between(hour(0), hour(4))]),
        outcome(2, payer(1), &[between(hour(2), hour(6))]),
    ]);
    near(Score::of(&seen, hour(6)).leased_hours, 6.0, LITTLE);
}

#[test]
fn the_renters_share_is_what_is_capped() {
    // Two renters have it together for 200 h: 100 h each, of which 48 count.
    let both = between(hour(0), hour(200));
    let seen = evidence([outcome(1, payer(1), &[both]), outcome(2, payer(2), &[both])]);
    let score = Score::of(&seen, hour(200));
    near(score.leased_hours, 200.0, 7.0);
    near(score.exposure_hours, 96.0, 1e-9);
    near(score.renter_hours_max, 48.0, 1e-9);
}

#[test]
fn a_host_that_rents_from_itself_gets_48_hours_for_it() {
    let own = outcome(1, payer(1), &[between(hour(0), hour(5000))]);
    let score = Score::of(&evidence([own]), hour(5000));
    near(score.exposure_hours, 48.0, 1e-9);
}

#[test]
fn heard_hours_are_idle_only_where_nobody_leased() {
    let mut seen = evidence([outcome(1, payer(1), &[between(hour(4), hour(8))])]);
    seen.heard.push(between(hour(0), hour(10)));
    seen.excluded.push(between(hour(9), hour(10)));
    let score = Score::of(&seen, hour(10));
    near(score.leased_hours, 4.0, LITTLE);
    near(score.idle_hours, 5.0, LITTLE);
    near(score.exposure_hours, 4.0 + 5.0 / 4.0, LITTLE);
}

#[test]
fn cut_time_is_the_same_time() {
    let whole = evidence([outcome(1, payer(1), &[between(hour(0), hour(40))])]);
    let cuts: Vec<_> = (0..40).map(|at| between(hour(at), hour(at + 1))).collect();
    let cut = evidence([outcome(1, payer(1), &cuts)]);
    let at = hour(1000);
    near(
        Score::of(&whole, at).exposure_hours,
        Score::of(&cut, at).exposure_hours,
        1e-9,
    );
}

#[test]
fn what_is_to_come_does_not_count() {
    let seen = evidence([outcome(1, payer(1), &[between(hour(0), hour(40))])]);
    near(Score::of(&seen, hour(10)).leased_hours, 10.0, LITTLE);
}

/// A host of many months: leases of five renters, idle time, outages, faults.
fn long_history() -> Evidence {
    let mut seen = Evidence::new(HOST);
    for number in 0..200_u8 {
        let from = u64::from(number) * 20;
        let runs = [
            between(hour(from), hour(from + 9)),
            between(hour(from + 10), hour(from + 15)),
        ];
        let mut lease = outcome(number, payer(number % 5), &runs);
        if number % 40 == 0 {
            lease = with_faults(lease, &[(hour(from + 9), Fault::Lost)]);
        }
        seen.outcomes.insert((lease.lease, 0), lease);
    }
    seen.heard.push(between(hour(0), hour(1500)));
    seen.heard.push(between(hour(1600), hour(4000)));
    seen.excluded.push(between(hour(700), hour(710)));
    seen.incidents.push(Incident {
        at: hour(1500),
        fault: Fault::Withdrawn,
    });
    seen
}

#[track_caller]
fn same(left: &Score, right: &Score) {
    near(left.faults, right.faults, 1e-5);
    // A millisecond for each of fifty renters, each time that something is carried over.
    near(left.exposure_hours, right.exposure_hours, 1e-3);
    near(left.idle_hours, right.idle_hours, 1e-3);
    assert_eq!(
        (left.starts, left.starts_failed),
        (right.starts, right.starts_failed)
    );
    assert!(
        left.ppm.abs_diff(right.ppm) <= 1,
        "{} {}",
        left.ppm,
        right.ppm
    );
}

#[test]
fn carrying_over_changes_no_score() {
    let whole = long_history();
    let now = hour(4100);
    let score = Score::of(&whole, now);
    // In the midst of a run, of a silence, of an outage, and after all of it.
    for cut in [3, 705, 1550, 2003, 4050] {
        let mut carried = whole.clone();
        carried.carry_to(hour(cut));
        assert!(carried.outcomes.len() < whole.outcomes.len() || cut < 15);
        same(&Score::of(&carried, now), &score);
        carried.carry_to(hour(cut + 30));
        same(&Score::of(&carried, now), &score);
    }
}

#[test]
fn evidence_is_bounded_and_the_score_stays() {
    let mut seen = Evidence::new(HOST);
    let mut whole = Evidence::new(HOST);
    for number in 0..3000_u64 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        let runs = [between(hour(number), Timestamp(hour(number + 1).0 - 1000))];
        let lease = Outcome {
            lease: LeaseId::from_bytes(bytes),
            ..outcome(0, payer(u8::try_from(number % 50).unwrap()), &runs)
        };
        let away = between(runs[0].to, hour(number + 1));
        for evidence in [&mut seen, &mut whole] {
            evidence.outcomes.insert((lease.lease, 0), lease.clone());
            evidence.excluded.push(away);
        }
        if seen.is_full() {
            seen.carry_over();
        }
        assert!(seen.outcomes.len() <= 512 && seen.excluded.len() < 128);
    }
    same(
        &Score::of(&seen, hour(3000)),
        &Score::of(&whole, hour(3000)),
    );
}

#[test]
fn many_outcomes_are_halved() {
    let mut seen = Evidence::new(HOST);
    for number in 0..513_u64 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        let run = between(hour(number), hour(number + 1));
        let lease = Outcome {
            lease: LeaseId::from_bytes(bytes),
            ..outcome(0, payer(0), &[run])
        };
        seen.outcomes.insert((lease.lease, 0), lease);
    }
    assert!(seen.is_full());
    seen.carry_over();
    assert_eq!(seen.outcomes.len(), 256);
    assert_eq!(seen.carried.until, hour(257));
    assert_eq!(seen.starts(), (513, 0));
}

#[test]
fn a_payer_is_the_renter_at_one_host() {
    let (renter, other) = (RenterId::from_bytes([1; 32]), RenterId::from_bytes([2; 32]));
    assert_eq!(Payer::of(HOST, renter), Payer::of(HOST, renter));
    assert_ne!(Payer::of(HOST, renter), Payer::of(HOST, other));
    let elsewhere = protocol::ids::HostId::from_bytes([3; 32]);
    assert_ne!(Payer::of(HOST, renter), Payer::of(elsewhere, renter));
}

#[test]
fn an_hour_counts_less_the_longer_ago_it_was() {
    let one = |from: u64| evidence([outcome(1, payer(1), &[between(hour(from), hour(from + 1))])]);
    let now = hour(4321);
    let recent = Score::of(&one(4320), now).leased_hours;
    let older = Score::of(&one(0), now).leased_hours;
    near(older / recent, 0.25, 1e-9);
    near(recent, decayed_hours(hour(4320), now, now), 0.0);
}
