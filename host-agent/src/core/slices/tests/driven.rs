//! A host at work: what is asked of its driver, in which order, and after a death or a boot.

use super::*;
use proptest::prelude::*;

#[test]
fn a_slice_is_made_when_it_is_leased_and_ended_when_it_is_not() {
    let mut host = Host::new(
        &[("GPU-a", Mode::Whole)],
        policy(&[("GPU-a", dynamic(&[]))]),
    );
    let divided = Act::SetMode {
        gpu: name("GPU-a"),
        divided: true,
    };
    assert_eq!(host.settle(), [divided]);
    let (three, one) = (name("GPU-a/3g.40gb@4+4"), name("GPU-a/1g.10gb@3+1"));
    host.held = BTreeSet::from([three.clone(), one.clone()]);
    assert_eq!(device(&three, &host.seen(), &host.known), Device::Waits);
    let made = host.settle();
    assert_eq!(made.len(), 2);
    assert_eq!(host.standing(), ["GPU-a/1g.10gb@3+1", "GPU-a/3g.40gb@4+4"]);
    let Device::Ready(mig) = device(&three, &host.seen(), &host.known) else {
        panic!("it is there")
    };
    assert!(mig.starts_with("MIG-"), "{mig}");
    host.held = BTreeSet::from([three.clone()]);
    let number = host.seen()[&name("GPU-a")].instance(&one).unwrap().number;
    let resource = one;
    assert_eq!(host.settle(), [Act::End { resource, number }]);
    assert_eq!(host.standing(), ["GPU-a/3g.40gb@4+4"]);
    assert_eq!(host.known.len(), 1);
}

#[test]
fn what_goes_goes_before_what_comes() {
    let mut host = Host::new(
        &[("GPU-a", Mode::Divided)],
        policy(&[("GPU-a", dynamic(&[]))]),
    );
    host.held = names(&["GPU-a/4g.40gb@0+4"]);
    host.settle();
    host.held = names(&["GPU-a/1g.10gb@0+1"]);
    let done = host.settle();
    assert!(
        matches!(&done[..], [Act::End { .. }, Act::Make { .. }]),
        "{done:?}"
    );
}

#[test]
fn a_whole_lease_of_a_cut_gpu_gets_it_when_it_is_whole_again() {
    let slices = SlicePolicy {
        also_whole: true,
        ..policy(&[("GPU-a", fixed(&["3g.40gb", "4g.40gb"]))])
    };
    let mut host = Host::new(&[("GPU-a", Mode::Divided)], slices);
    assert_eq!(host.settle().len(), 2);
    let whole = name("GPU-a");
    host.held = BTreeSet::from([whole.clone()]);
    assert_eq!(device(&whole, &host.seen(), &host.known), Device::Waits);
    let done = host.settle();
    let ends = |act: &Act| matches!(act, Act::End { .. });
    assert!(ends(&done[0]) && ends(&done[1]), "{done:?}");
    assert_eq!(
        done[2],
        Act::SetMode {
            gpu: whole.clone(),
            divided: false
        }
    );
    let ready = Device::Ready(whole.clone());
    assert_eq!(device(&whole, &host.seen(), &host.known), ready);
    host.held.clear();
    // Divided again, and the layout stands.
    assert_eq!(host.settle().len(), 3);
    assert_eq!(host.standing().len(), 2);
}

#[test]
fn a_gpu_in_use_is_not_divided() {
    let host = Host::new(&[], policy(&[("GPU-a", dynamic(&[]))]));
    host.driver.put(Divisible {
        in_use: true,
        uniform: None,
        ..divisible("GPU-a", Mode::Whole)
    });
    assert_eq!(host.next(), []);
    host.driver.put(divisible("GPU-a", Mode::Pending));
    assert_eq!(host.next(), []);
}

#[test]
fn a_gpu_that_is_kept_whole_is_made_whole_when_nothing_is_leased_of_it() {
    let slices = SlicePolicy {
        keep_whole: 1,
        ..policy(&[("GPU-a", dynamic(&[]))])
    };
    let mut host = Host::new(&[("GPU-a", Mode::Divided)], slices);
    host.held = names(&["GPU-a/1g.10gb@6+1"]);
    assert!(matches!(host.settle()[..], [Act::Make { .. }]));
    host.held.clear();
    let whole = Act::SetMode {
        gpu: name("GPU-a"),
        divided: false,
    };
    let done = host.settle();
    assert_eq!((done.len(), &done[1]), (2, &whole));
    // What is not in the policy is not this host's to change.
    let other = Host::new(&[("GPU-b", Mode::Divided)], SlicePolicy::default());
    assert_eq!(other.next(), []);
}

#[test]
fn foreign_slices_are_left_alone_and_withheld() {
    let mut host = Host::new(
        &[("GPU-a", Mode::Divided)],
        policy(&[("GPU-a", dynamic(&[]))]),
    );
    let theirs = Act::Make {
        resource: name("GPU-a/2g.20gb@0+2"),
        profile: 14,
        start: 0,
    };
    host.driver.make_foreign(&theirs).unwrap();
    assert_eq!(host.settle(), []);
    assert_eq!(
        foreign(&host.known, &host.seen()),
        [name("GPU-a/2g.20gb@0+2")]
    );
    // A lease that came before it was seen does not get its place, and says why.
    let lost = name("GPU-a/1g.10gb@1+1");
    host.held = BTreeSet::from([lost.clone()]);
    assert_eq!(host.settle(), []);
    let device = device(&lost, &host.seen(), &host.known);
    assert!(matches!(device, Device::Never(_)), "{device:?}");
    // Whoever wants the whole GPU neither.
    host.held = names(&["GPU-a"]);
    assert_eq!(host.settle(), []);
    assert_eq!(host.standing(), ["GPU-a/2g.20gb@0+2"]);
}

#[test]
fn instances_are_made_again_after_a_boot() {
    let mut host = Host::new(
        &[("GPU-a", Mode::Divided)],
        policy(&[("GPU-a", dynamic(&[]))]),
    );
    host.held = names(&["GPU-a/3g.40gb@4+4", "GPU-a/1g.10gb@0+1"]);
    host.settle();
    let before = host.standing();
    host.driver.boot();
    assert!(host.standing().is_empty());
    let made = host.settle();
    assert_eq!(made.len(), 2);
    assert_eq!(host.standing(), before);
}

#[test]
fn what_was_begun_is_adopted_and_what_somebody_replaced_is_not() {
    let mut host = Host::new(
        &[("GPU-a", Mode::Divided)],
        policy(&[("GPU-a", dynamic(&[]))]),
    );
    let one = name("GPU-a/1g.10gb@6+1");
    host.held = BTreeSet::from([one.clone()]);
    let make = host.next().remove(0);
    host.act(&make, true);
    assert_eq!(host.known[&one], Made::Begun);
    assert_eq!(host.settle(), []);
    assert!(matches!(host.known[&one], Made::Done { .. }));
    // Ended and made anew by hand: it is theirs.
    let number = host.seen()[&name("GPU-a")].instance(&one).unwrap().number;
    let resource = one.clone();
    host.driver
        .make_foreign(&Act::End { resource, number })
        .unwrap();
    host.driver.make_foreign(&make).unwrap();
    assert_eq!(host.settle(), []);
    assert!(host.known.is_empty());
    assert_eq!(foreign(&host.known, &host.seen()), [one]);
}

const PLACES: [&str; 8] = [
    "GPU-a",
    "GPU-a/7g.80gb@0+8",
    "GPU-a/4g.40gb@0+4",
    "GPU-a/3g.40gb@4+4",
    "GPU-a/2g.20gb@2+2",
    "GPU-a/1g.20gb@4+2",
    "GPU-a/1g.10gb@6+1",
    "GPU-a/1g.10gb@0+1",
];

#[derive(Debug, Clone)]
enum Step {
    /// A lease takes it, if nobody has what it excludes.
    Take(usize),
    /// It is given back.
    Give(usize),
    /// The next act happens, and the agent dies behind it or not.
    Act(bool),
    Sight,
    Boot,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..PLACES.len()).prop_map(Step::Take),
        3 => any::<usize>().prop_map(Step::Give),
        6 => any::<bool>().prop_map(Step::Act),
        3 => Just(Step::Sight),
        1 => Just(Step::Boot),
    ]
}

proptest! {
    /// Whatever is leased and given back, with an agent that dies in between: the driver refuses nothing, what is
    /// leased stays, and in the end exactly what is wanted stands.
    #[test]
    fn the_driver_refuses_nothing(
        steps in prop::collection::vec(step(), 1..60),
        is_fixed in any::<bool>(),
    ) {
        let layout = if is_fixed { fixed(&["1g.10gb", "3g.40gb"]) } else { dynamic(&[]) };
        let slices = SlicePolicy { also_whole: true, ..policy(&[("GPU-a", layout)]) };
        let mut host = Host::new(&[("GPU-a", Mode::Whole)], slices);
        for step in steps {
            match step {
                Step::Take(n) => {
                    let wanted = name(PLACES[n]);
                    let clashes = |held: &ResourceName| mig::name::excludes(held, &wanted);
                    if !host.held.iter().any(clashes) {
                        host.held.insert(wanted);
                    }
                }
                Step::Give(n) => {
                    let given = host.held.iter().nth(n % host.held.len().max(1)).cloned();
                    given.map(|given| host.held.remove(&given));
                }
                Step::Act(crashes) => {
                    host.sight();
                    if let Some(act) = host.next().first().cloned() {
                        if let Act::End { resource, .. } = &act {
                            prop_assert!(!host.held.contains(resource), "{} is leased", resource);
                        }
                        host.act(&act, crashes);
                    }
                }
                Step::Sight => host.sight(),
                Step::Boot => host.driver.boot(),
            }
        }
        host.settle();
        for held in &host.held {
            let device = device(held, &host.seen(), &host.known);
            prop_assert!(matches!(device, Device::Ready(_)), "{held}: {device:?}");
        }
        let standing: BTreeSet<ResourceName> = host.standing().iter().map(|it| name(it)).collect();
        let slices = host.held.iter().filter(|held| held.contains('/'));
        if is_fixed {
            prop_assert!(slices.into_iter().all(|held| standing.contains(held)));
        } else {
            prop_assert_eq!(standing, slices.cloned().collect::<BTreeSet<_>>());
        }
        prop_assert!(foreign(&host.known, &host.seen()).is_empty());
    }
}
