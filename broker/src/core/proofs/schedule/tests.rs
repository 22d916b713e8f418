//! Moments worked out by hand. With a `first_within` of nothing, nothing is drawn where the expected moment is exact.

use super::*;

const T0: Timestamp = Timestamp(1_800_000_000_000);
const DAY: Seconds = Seconds(86_400);
const RULES: Rules = Rules {
    every: DAY,
    stands: Seconds(3 * 86_400),
    first_within: Seconds(0),
    at_once: 2,
    per_hour: 3,
};
const NEW: Known = Known {
    last: None,
    holds: true,
};

fn offer(number: u8) -> OfferId {
    OfferId::from_bytes([number; 16])
}

fn host(number: u8) -> HostId {
    HostId::from_bytes([number; 32])
}

fn at(seconds: u64) -> Timestamp {
    T0.after(Seconds(seconds).millis())
}

fn schedule() -> Schedule {
    Schedule::new(RULES, [7; 32])
}

/// All that is asked about is idle, each offer with a host of its own.
fn idle(offer: OfferId) -> Look<(HostId, OfferId)> {
    Look::Idle((host(offer.as_bytes()[0]), offer))
}

#[test]
fn a_new_offer_comes_up_within_its_time_and_a_proved_one_once_in_one_to_two_days() {
    let rules = Rules {
        first_within: Seconds(3600),
        ..RULES
    };
    let mut schedule = Schedule::new(rules, [7; 32]);
    let mut moments = BTreeSet::new();
    for number in 0..100 {
        schedule.listed(T0, offer(number), NEW);
        let due = schedule.due(offer(number)).unwrap();
        assert!(due >= T0 && due < at(3600), "{due:?}");
        moments.insert(due);
        let last = Some(at(10));
        schedule.listed(at(20), offer(100 + number), Known { last, holds: true });
        let due = schedule.due(offer(100 + number)).unwrap();
        assert!(due >= at(86_410) && due < at(172_810), "{due:?}");
    }
    // Drawn apart: a hundred in 3 600 000 ms do not fall together.
    assert!(moments.len() > 95, "{}", moments.len());
    // Said again, the moment stays.
    let due = schedule.due(offer(0));
    schedule.listed(at(60), offer(0), NEW);
    assert_eq!(schedule.due(offer(0)), due);
    // Another seed, other moments.
    let mut other = Schedule::new(rules, [8; 32]);
    other.listed(T0, offer(0), NEW);
    assert_ne!(other.due(offer(0)), due);
}

#[test]
fn only_what_is_idle_is_begun() {
    let mut schedule = schedule();
    for number in 1..=3 {
        schedule.listed(T0, offer(number), NEW);
    }
    let found = schedule.next(T0, |asked| match asked {
        it if it == offer(1) => Look::Busy,
        it if it == offer(2) => Look::Gone,
        it => idle(it),
    });
    assert_eq!(found, Some(offer(3)));
    assert_eq!(schedule.due(offer(2)), None);
    // The busy one is idle now.
    assert_eq!(schedule.next(T0, idle), Some(offer(1)));
    assert_eq!(schedule.next(T0, idle), None);
}

#[test]
fn what_cannot_be_proved_is_looked_at_once_a_day() {
    let mut schedule = schedule();
    schedule.listed(T0, offer(1), NEW);
    let unprovable = |_| Look::<(HostId, ())>::Unprovable;
    assert_eq!(schedule.next(T0, unprovable), None);
    assert_eq!(schedule.due(offer(1)), Some(at(86_400)));
}

#[test]
fn never_two_of_one_host_nor_more_than_may_be_at_once() {
    let mut schedule = schedule();
    for number in 1..=4 {
        schedule.listed(T0, offer(number), NEW);
    }
    // 1 and 2 are of one host.
    let of_host = |it: OfferId| {
        let number = it.as_bytes()[0];
        Look::Idle((host(number.max(2)), it))
    };
    assert_eq!(schedule.next(T0, of_host), Some(offer(1)));
    assert_eq!(schedule.next(T0, of_host), Some(offer(3)));
    // Two go on.
    assert_eq!(schedule.next(T0, of_host), None);
    schedule.over(at(60), offer(3), Outcome::Judged);
    assert_eq!(schedule.next(at(60), of_host), Some(offer(4)));
    schedule.over(at(70), offer(1), Outcome::Judged);
    // Its host is free; the hour is full: three began in it.
    assert_eq!(schedule.next(at(70), of_host), None);
    assert_eq!(schedule.next(at(3599), of_host), None);
    // An hour after the first two.
    assert_eq!(schedule.next(at(3600), of_host), Some(offer(2)));
}

#[test]
fn what_was_proved_is_not_proved_again_within_a_day_unless_the_operator_asks() {
    let mut schedule = schedule();
    schedule.listed(T0, offer(1), NEW);
    assert_eq!(schedule.next(T0, idle), Some(offer(1)));
    assert!(!schedule.over(at(120), offer(1), Outcome::Judged));
    assert_eq!(schedule.next(at(86_519), idle), None);
    assert!(schedule.due(offer(1)).unwrap() >= at(86_520));
    schedule.ask(at(200), offer(1));
    assert_eq!(schedule.next(at(200), |_| Look::<(HostId, ())>::Busy), None);
    assert_eq!(schedule.next(at(200), idle), Some(offer(1)));
    // Two days after the last at the latest.
    schedule.over(at(300), offer(1), Outcome::Judged);
    assert_eq!(schedule.next(at(300 + 172_800), idle), Some(offer(1)));
}

#[test]
fn what_changed_comes_up_as_soon_as_a_day_is_over() {
    let mut schedule = schedule();
    let proved = |holds| Known {
        last: Some(at(100)),
        holds,
    };
    schedule.listed(at(200), offer(1), proved(true));
    let before = schedule.due(offer(1)).unwrap();
    schedule.listed(at(300), offer(1), proved(false));
    assert_eq!(schedule.due(offer(1)), Some(at(86_500)));
    assert!(before >= at(86_500));
    // A fault after more than a day: at once.
    schedule.listed(at(90_000), offer(2), proved(false));
    assert_eq!(schedule.due(offer(2)), Some(at(90_000)));
}

#[test]
fn a_break_is_forgiven_once_and_what_comes_to_nothing_is_put_off_after_three_times() {
    let mut schedule = schedule();
    schedule.listed(T0, offer(1), NEW);
    assert_eq!(schedule.next(T0, idle), Some(offer(1)));
    assert!(!schedule.over(T0, offer(1), Outcome::Broken));
    assert_eq!(schedule.next(T0, idle), Some(offer(1)));
    assert!(schedule.over(T0, offer(1), Outcome::Broken));
    assert!(schedule.due(offer(1)).unwrap() >= at(86_400));
    // It was forgotten with the failure: one more is forgiven again.
    schedule.ask(at(4000), offer(1));
    assert_eq!(schedule.next(at(4000), idle), Some(offer(1)));
    assert!(!schedule.over(at(4000), offer(1), Outcome::Broken));

    let mut schedule = Schedule::new(
        Rules {
            per_hour: 100,
            ..RULES
        },
        [7; 32],
    );
    schedule.listed(T0, offer(2), NEW);
    for _ in 0..3 {
        assert_eq!(schedule.next(T0, idle), Some(offer(2)));
        assert!(!schedule.over(T0, offer(2), Outcome::Nothing));
    }
    assert_eq!(schedule.next(T0, idle), None);
    // Also when it is said that its last proof does not hold.
    let known = Known {
        last: Some(T0),
        holds: false,
    };
    schedule.listed(at(10), offer(2), known);
    assert!(schedule.due(offer(2)).unwrap() >= at(86_400));
}

#[test]
fn what_was_not_begun_cannot_be_over() {
    let mut schedule = schedule();
    assert!(!schedule.over(T0, offer(1), Outcome::Broken));
    assert!(!schedule.over(T0, offer(1), Outcome::Broken));
    assert_eq!(schedule.due(offer(1)), None);
}
