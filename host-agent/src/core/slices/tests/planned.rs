//! What is proposed, why, and how it is drawn.

use super::super::replan::{Demands, GpuProposal, Ground, HORIZON, Seen, WINDOW, demands, propose};
use super::*;
use protocol::units::{Millis, Seconds};

fn ran(all: &[(&str, u64)]) -> Demands {
    let of_one = |(profile, at_once): &(&str, u64)| {
        let ran = Millis(WINDOW.millis().0 * at_once);
        ((*profile).to_owned(), Seen { ran })
    };
    all.iter().map(of_one).collect()
}

fn ground<'a>(
    policy: &'a SlicePolicy,
    divisibles: &'a Divisibles,
    held: &'a BTreeSet<ResourceName>,
    demands: &'a Demands,
) -> Ground<'a> {
    Ground {
        policy,
        divisibles,
        held,
        demands,
        price: PricePerHour(2_250_000),
        stood: Seconds(3600),
    }
}

#[test]
fn what_was_leased_lately_is_made_before_it_is_asked_for() {
    let slices = policy(&[("GPU-a", dynamic(&[])), ("GPU-b", dynamic(&[]))]);
    let mut host = Host::new(
        &[("GPU-a", Mode::Divided), ("GPU-b", Mode::Divided)],
        slices,
    );
    host.held = names(&["GPU-a/1g.10gb@6+1"]);
    host.settle();
    let demands = ran(&[("3g.40gb", 2), ("1g.10gb", 1)]);
    let (seen, held) = (host.seen(), host.held.clone());
    let proposal = propose(ground(&host.policy, &seen, &held, &demands)).unwrap();
    assert!(proposal.is_worth, "{proposal:?}");
    assert!(proposal.unserved.is_empty());
    // Two of 1 293 750 an hour; the one 1g is leased already.
    assert_eq!(proposal.saving_per_hour, 2 * 1_293_750);
    let targets = proposal.targets(&seen);
    assert!(targets.contains(&name("GPU-a/1g.10gb@6+1")), "{targets:?}");
    let threes = targets.iter().filter(|it| it.contains("/3g.40gb@"));
    assert_eq!(threes.count(), 2);
    // What is planned stands, and goes when a lease needs its place.
    let wanted = |held: &BTreeSet<ResourceName>, host: &Host| {
        let wanted = Wanted {
            policy: &host.policy,
            held,
            planned: &targets,
        };
        acts(wanted, &host.seen(), &host.known)
    };
    let mut done = 0;
    while let Some(act) = wanted(&held, &host).into_values().next() {
        host.act(&act, false);
        done += 1;
    }
    assert_eq!(done, 2);
    let held = names(&["GPU-a/1g.10gb@6+1", "GPU-b/7g.80gb@0+8"]);
    let acts: Vec<Act> = wanted(&held, &host).into_values().collect();
    assert!(acts.iter().all(|act| act.gpu() == "GPU-b"), "{acts:?}");
    assert!(matches!(acts[0], Act::End { .. }), "{acts:?}");
}

#[test]
fn a_cut_stands_for_half_an_hour_and_is_not_changed_for_little() {
    let slices = policy(&[("GPU-a", dynamic(&[]))]);
    let seen = divisibles(&[("GPU-a", Mode::Divided)]);
    let (held, demands) = (BTreeSet::new(), ran(&[("1g.10gb", 3)]));
    let at = |stood: u64, price: u64| {
        let ground = ground(&slices, &seen, &held, &demands);
        propose(Ground {
            stood: Seconds(stood),
            price: PricePerHour(price),
            ..ground
        })
        .unwrap()
    };
    assert!(at(1800, 2_250_000).is_worth);
    let early = at(1799, 2_250_000);
    assert!(
        !early.is_worth && early.reason.contains("half an hour"),
        "{}",
        early.reason
    );
    // Nothing is earned where nothing is asked.
    assert!(!at(1800, 0).is_worth);
    assert_eq!(HORIZON, Seconds(7200));
}

#[test]
fn whoever_asks_for_nothing_gets_no_proposal_or_none_that_changes_anything() {
    let seen = divisibles(&[("GPU-a", Mode::Divided)]);
    let (held, none) = (BTreeSet::new(), Demands::new());
    let off = policy(&[("GPU-a", fixed(&["3g.40gb"]))]);
    assert_eq!(propose(ground(&off, &seen, &held, &none)), None);
    let slices = policy(&[("GPU-a", dynamic(&[]))]);
    let proposal = propose(ground(&slices, &seen, &held, &none)).unwrap();
    assert!(!proposal.is_worth);
    assert!(
        proposal.reason.contains("no slice was leased"),
        "{}",
        proposal.reason
    );
}

#[test]
fn what_does_not_fit_is_named() {
    let slices = policy(&[("GPU-a", dynamic(&[]))]);
    let seen = divisibles(&[("GPU-a", Mode::Divided)]);
    let (held, demands) = (BTreeSet::new(), ran(&[("3g.40gb", 3)]));
    let proposal = propose(ground(&slices, &seen, &held, &demands)).unwrap();
    assert_eq!(proposal.unserved["3g.40gb"], 1);
}

#[test]
fn demand_is_what_ran_as_leases_that_run_all_the_time() {
    let (one, whole) = (name("GPU-a/1g.10gb@0+1"), name("GPU-a"));
    let hours = |hours: u64| Seconds(hours * 3600).millis();
    let seen = demands([
        (&one, hours(20)),
        (&one, hours(5)),
        (&whole, hours(9)),
        (&one, hours(90)),
    ]);
    // A lease counts for the window at most.
    let ran = Seen {
        ran: hours(20 + 5 + 24),
    };
    assert_eq!(seen, Demands::from([("1g.10gb".to_owned(), ran)]));
}

#[test]
fn a_gpu_is_drawn_as_a_bar_of_its_memory() {
    let slot = |profile: &str, start: u8, size: u8, is_leased: bool| super::super::replan::Slot {
        profile: profile.to_owned(),
        start,
        size,
        is_leased,
    };
    let slots = [slot("2g.20gb", 0, 2, false), slot("3g.40gb", 4, 4, true)];
    assert_eq!(
        GpuProposal::bar(&slots, 8),
        "[2g.20gb          |........|........|3g.40gb*                           ]"
    );
    assert_eq!(
        GpuProposal::bar(&[], 4),
        "[........|........|........|........]"
    );
}
