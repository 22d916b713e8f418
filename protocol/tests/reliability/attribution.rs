//! The table of attribution: what each event counts, and what makes several of them one.

use crate::{between, evidence, hour, near, outcome, payer, second, with_faults};
use protocol::lease::Party;
use protocol::reliability::{Fault, Outcome, Score, Start, Weight};
use protocol::units::{MicroUsd, Timestamp};

fn faults(outcomes: Vec<Outcome>, now: Timestamp) -> f64 {
    Score::of(&evidence(outcomes), now).faults
}

fn ran(number: u8, faults: &[(Timestamp, Fault)]) -> Outcome {
    let runs = [between(hour(0), hour(10))];
    with_faults(outcome(number, payer(number), &runs), faults)
}

#[test]
fn each_event_counts_what_the_table_says() {
    let table = [
        (Fault::Lost, 1000),
        (Fault::Silent, 200),
        (Fault::GpuFailed, 1000),
        (Fault::HostDiskFull, 1000),
        (Fault::StoppedByHost, 1000),
        (Fault::Withdrawn, 2000),
        (Fault::BelowAdvertised, 500),
        (Fault::Maintenance, 0),
        (Fault::RenterCaused, 0),
        (Fault::AmbiguousCrash, 0),
        (Fault::BrokerOutage, 0),
    ];
    assert_eq!(table.map(|(fault, _)| fault), Fault::ALL);
    for (fault, thousandths) in table {
        assert_eq!(fault.weight(), Weight(thousandths), "{fault:?}");
        let found = faults(vec![ran(1, &[(hour(10), fault)])], hour(10));
        near(found, f64::from(thousandths) / 1000.0, 0.0);
    }
}

#[test]
fn one_silence_is_one_fault_however_many_leases_it_hits() {
    let lost = |number| ran(number, &[(hour(10), Fault::Lost)]);
    near(faults(vec![lost(1), lost(2), lost(3)], hour(10)), 1.0, 0.0);
    // Some of its leases went on and others did not: it is what it is at its worst.
    let survived = ran(4, &[(hour(10), Fault::Silent)]);
    near(faults(vec![survived, lost(1)], hour(10)), 1.0, 0.0);
}

#[test]
fn faults_15_minutes_apart_are_two() {
    let now = second(2000);
    let at = |seconds| {
        ran(
            1,
            &[(second(0), Fault::Silent), (second(seconds), Fault::Silent)],
        )
    };
    near(faults(vec![at(899)], now), 0.2, 1e-4);
    near(faults(vec![at(900)], now), 0.4, 1e-4);
    // Counted from the first: faults that follow each other closely do not become one for ever.
    let chain: Vec<_> = (0..10)
        .map(|step| (second(step * 200), Fault::Silent))
        .collect();
    // 0 to 800, 1000 to 1800.
    near(faults(vec![ran(1, &chain)], now), 0.4, 1e-4);
}

#[test]
fn faults_of_two_kinds_are_two() {
    let both = ran(
        1,
        &[(hour(10), Fault::GpuFailed), (hour(10), Fault::Withdrawn)],
    );
    near(faults(vec![both], hour(10)), 3.0, 0.0);
}

#[test]
fn crashes_count_half_when_three_paying_renters_see_them_in_a_week() {
    let crash = |number, at| ran(number, &[(at, Fault::AmbiguousCrash)]);
    let week = 7 * 24;
    let now = hour(week);
    let two = vec![crash(1, hour(0)), crash(2, hour(1))];
    near(faults(two.clone(), now), 0.0, 0.0);
    let with = |third: Outcome| {
        let mut all = two.clone();
        all.push(third);
        faults(all, now)
    };
    near(with(crash(3, now)), 0.5, 0.0);
    near(with(crash(3, Timestamp(now.0 + 1))), 0.0, 0.0);
    // One renter who crashes again and again is one.
    let again = outcome(3, payer(2), &[between(hour(0), hour(10))]);
    near(
        with(with_faults(again, &[(now, Fault::AmbiguousCrash)])),
        0.0,
        0.0,
    );
    let unpaid = Outcome {
        paid: MicroUsd::ZERO,
        ..crash(3, now)
    };
    near(with(unpaid), 0.0, 0.0);
}

#[test]
fn crashes_that_counted_are_spent() {
    let crash = |number| ran(number, &[(hour(10), Fault::AmbiguousCrash)]);
    let all = |most: u8| faults((1..=most).map(crash).collect(), hour(10));
    near(all(5), 0.5, 0.0);
    near(all(6), 1.0, 0.0);
}

#[test]
fn nothing_counts_while_the_broker_was_away() {
    let now = hour(10);
    let mut seen = evidence([ran(
        1,
        &[(hour(5), Fault::Lost), (hour(8), Fault::GpuFailed)],
    )]);
    let before = Score::of(&seen, now);
    near(before.faults, 2.0, 0.01);
    seen.excluded.push(between(hour(4), hour(6)));
    let after = Score::of(&seen, now);
    near(after.faults, 1.0, 0.01);
    // Two of ten hours are gone from the exposure, too.
    near(after.leased_hours, before.leased_hours * 0.8, 0.01);
    assert!(
        seen.counted()
            .first()
            .is_some_and(|counted| counted.is_excluded)
    );
}

#[test]
fn a_start_counts_for_or_against_its_host_alone() {
    let started = |number: u8, start| Outcome {
        start,
        asked_at: second(0),
        ..outcome(number, payer(number), &[])
    };
    let seen = evidence([
        started(1, Start::Ran(second(900))),
        // A millisecond over 15 minutes.
        started(2, Start::Ran(Timestamp(second(900).0 + 1))),
        started(3, Start::Failed(Party::Host)),
        // An image that is not there, an order that met another, an operator: not the host's.
        started(4, Start::Failed(Party::Renter)),
        started(5, Start::Failed(Party::Market)),
        started(6, Start::Failed(Party::Broker)),
        started(7, Start::Pending),
        // The start is told once.
        Outcome {
            part: 1,
            ..started(1, Start::Ran(second(1)))
        },
    ]);
    assert_eq!(seen.starts(), (1, 2));
    // (8 + 1) / (10 + 1 + 2)
    near(
        Score::of(&seen, hour(1)).start_probability,
        9.0 / 13.0,
        1e-15,
    );
}

#[test]
fn a_fault_before_and_after_the_end_of_an_outage_is_two_incidents_and_one_fault() {
    let mut seen = evidence([ran(
        1,
        &[(second(100), Fault::Lost), (second(300), Fault::Lost)],
    )]);
    seen.excluded.push(between(second(0), second(200)));
    let counted = seen.counted();
    let shown: Vec<_> = counted
        .iter()
        .map(|counted| (counted.weight.0, counted.is_excluded))
        .collect();
    assert_eq!(shown, [(0, true), (1000, false)]);
}
