//! Slices of a GPU through an agent's whole life: leased beside a whole GPU, over restarts and reboots, by brokers that
//! race for them.

use std::collections::BTreeMap;

use host_agent::agent::Agent;
use host_agent::core::slices::acts::Act;
use host_agent::core::slices::policy::{PREMIUM, PartitionLayout, SlicePolicy};
use host_agent::core::slices::{Divisible, Mode};
use host_agent::hardware::CutProblem;
use host_agent::journal::Journal;
use mig::board::{Cut, find_board};
use protocol::bounded::List;
use protocol::ids::LeaseId;
use protocol::lease::{ContainerState, LeaseGoal, ProblemKind, RefusalReason, Want};
use protocol::offer::{Offer, ResourceName};
use protocol::units::Bytes;

use crate::broker::{FakeBroker, wait};
use crate::world::{Host, containers, listing};

/// Offers of GPU-1 whole, and of six kinds of slices of GPU-0.
const OFFERS: usize = 7;

fn name(text: &str) -> ResourceName {
    ResourceName::new(text).unwrap()
}

/// A host of two GPUs, the first of which is cut into what is asked for.
fn sliced(brokers: &[&FakeBroker]) -> Host {
    let host = Host::new(brokers, 2);
    let board = find_board("NVIDIA H100 80GB HBM3", 80 << 30).unwrap();
    let Cut::Known(chip) = &board.cut else {
        panic!("an H100 is known")
    };
    for gpu in ["GPU-0", "GPU-1"] {
        host.hardware.driver.put(Divisible {
            gpu: name(gpu),
            mode: Mode::Whole,
            chip: chip.clone(),
            standing: Vec::new(),
            in_use: false,
            uniform: None,
        });
    }
    let mut listed = listing(&["GPU-0".to_owned(), "GPU-1".to_owned()]);
    listed.limits.disk_max = Bytes::from_gb(600);
    listed.slices = SlicePolicy {
        layouts: List::first([(name("GPU-0"), PartitionLayout::Dynamic(List::default()))]),
        premium: PREMIUM,
        ..SlicePolicy::default()
    };
    let (mut journal, _) = Journal::open(host.folder.path()).unwrap();
    journal.set_listing(Some(&listed)).unwrap();
    host
}

/// The goal that somebody has this resource.
fn matched(broker: &FakeBroker, host: &Host, offers: &[Offer], resource: &str, n: u8) -> LeaseGoal {
    let found = offers.iter().find_map(|offer| {
        let mut names = offer.share.resources.iter();
        let place = names.position(|name| name.as_str() == resource)?;
        Some((offer, place))
    });
    let (offer, place) = found.unwrap();
    broker.matched_with(host.id, offer, place, n)
}

fn devices(host: &Host, lease: LeaseId) -> Vec<String> {
    let devices = host.runtime.devices(lease);
    devices.iter().map(|name| name.to_string()).collect()
}

/// What stands on the GPU that is cut.
fn standing(host: &Host) -> Vec<String> {
    let seen = host.hardware.driver.seen();
    let gpu = &seen[&name("GPU-0")];
    let names = gpu.standing.iter().filter_map(|it| gpu.name_of(it));
    let mut names: Vec<String> = names.map(|name| name.to_string()).collect();
    names.sort();
    names
}

async fn stands(host: &Host, wanted: &[&str]) {
    wait("slices", || (standing(host) == wanted).then_some(())).await;
}

struct Scene {
    broker: FakeBroker,
    host: Host,
    agent: Agent,
    three: LeaseGoal,
    one: LeaseGoal,
    whole: LeaseGoal,
}

const BOTH: [&str; 2] = ["GPU-0/1g.10gb@3+1", "GPU-0/3g.40gb@4+4"];

/// A 3g and a 1g of one GPU run beside a whole one.
async fn scene() -> Scene {
    let broker = FakeBroker::start(1).await;
    let host = sliced(&[&broker]);
    let agent = host.start().await;
    let offers = broker.offers(OFFERS).await;
    let three = matched(&broker, &host, &offers, BOTH[1], 1);
    let one = matched(&broker, &host, &offers, BOTH[0], 2);
    let whole = matched(&broker, &host, &offers, "GPU-1", 3);
    let all = vec![three.clone(), one.clone(), whole.clone()];
    broker.say(host.id, all).await;
    for goal in [&three, &one, &whole] {
        broker.running(goal.lease).await;
    }
    Scene {
        broker,
        host,
        agent,
        three,
        one,
        whole,
    }
}

#[tokio::test]
async fn two_slices_of_a_gpu_run_beside_a_whole_one() {
    let Scene {
        broker,
        host,
        agent,
        three,
        one,
        whole,
    } = scene().await;
    assert_eq!(standing(&host), BOTH);
    let (of_three, of_one) = (devices(&host, three.lease), devices(&host, one.lease));
    for device in [&of_three, &of_one] {
        assert!(
            device.len() == 1 && device[0].starts_with("MIG-0-"),
            "{device:?}"
        );
    }
    assert_ne!(of_three, of_one);
    assert_eq!(devices(&host, whole.lease), ["GPU-1"]);
    // The GPU was divided first, and the other never was.
    let told = host.hardware.driver.told();
    let divided = Act::SetMode {
        gpu: name("GPU-0"),
        divided: true,
    };
    assert_eq!((told.len(), &told[0]), (3, &divided));
    // A slice that is not leased any more goes, and its neighbour stays.
    let ends = LeaseGoal {
        want: Want::End,
        ..one.clone()
    };
    broker.say(host.id, vec![three.clone(), ends, whole]).await;
    broker.gone(one.lease).await;
    stands(&host, &BOTH[1..]).await;
    assert_eq!(broker.running(three.lease).await.run, 1);
    assert_eq!(host.runtime.starts(three.lease), 1);
    agent.shutdown().await.unwrap();
}

#[tokio::test]
async fn slices_are_adopted_after_a_restart() {
    let Scene {
        broker,
        host,
        agent,
        three,
        one,
        whole,
    } = scene().await;
    let told = host.hardware.driver.told().len();
    agent.shutdown().await.unwrap();
    let agent = host.start().await;
    broker.offers(0).await;
    broker.offers(OFFERS).await;
    let all = vec![three.clone(), one, whole];
    broker.say(host.id, all).await;
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    assert_eq!(host.hardware.driver.told().len(), told);
    assert_eq!(standing(&host), BOTH);
    assert_eq!(host.runtime.starts(three.lease), 1);
    agent.shutdown().await.unwrap();
}

/// Containers end with the machine, and instances are gone; each lease that is resumed gets its own place again.
#[tokio::test]
async fn slices_are_made_again_after_a_reboot() {
    let Scene {
        broker,
        host,
        agent,
        three,
        one,
        whole,
    } = scene().await;
    let before = devices(&host, three.lease);
    agent.shutdown().await.unwrap();
    for (lease, _) in containers(&host).await {
        host.runtime.end(lease, 137, false);
    }
    host.hardware.driver.boot();
    assert!(standing(&host).is_empty());
    let agent = host.start().await;
    let stopped = |state: &ContainerState| matches!(state, ContainerState::Stopped(_));
    for goal in [&three, &one, &whole] {
        broker.report("stopped", goal.lease, stopped).await;
    }
    let again = |goal: &LeaseGoal| LeaseGoal {
        want: Want::Run(2),
        ..goal.clone()
    };
    broker
        .say(host.id, vec![again(&three), again(&one), again(&whole)])
        .await;
    stands(&host, &BOTH).await;
    for goal in [&three, &one, &whole] {
        let lease = goal.lease;
        wait("run 2", || {
            let last = broker.last_report(lease)?;
            (last.run == 2 && last.state == ContainerState::Running).then_some(())
        })
        .await;
    }
    // The slice is another device than before, and its container has that one.
    let seen = host.hardware.driver.seen();
    let gpu = &seen[&name("GPU-0")];
    let device = gpu
        .instance(&name(BOTH[1]))
        .unwrap()
        .device
        .clone()
        .unwrap();
    assert_eq!(devices(&host, three.lease), [device.to_string()]);
    assert_ne!(devices(&host, three.lease), before);
    agent.shutdown().await.unwrap();
}

#[tokio::test]
async fn two_brokers_that_race_for_one_place_get_it_once() {
    let (first, second) = (FakeBroker::start(1).await, FakeBroker::start(2).await);
    let host = sliced(&[&first, &second]);
    let agent = host.start().await;
    let (of_first, of_second) = (first.offers(OFFERS).await, second.offers(OFFERS).await);
    let three = matched(&first, &host, &of_first, BOTH[1], 1);
    let over = matched(&second, &host, &of_second, "GPU-0/1g.10gb@6+1", 2);
    let beside = matched(&second, &host, &of_second, BOTH[0], 3);
    first.say(host.id, vec![three.clone()]).await;
    second
        .say(host.id, vec![over.clone(), beside.clone()])
        .await;
    first.running(three.lease).await;
    second.running(beside.lease).await;
    let refused = wait("a refusal", || second.heard().refusals.first().cloned()).await;
    assert_eq!(refused, (over.lease, RefusalReason::Taken));
    // And each broker is told what it cannot sell of what the other has.
    wait("what is withheld", || {
        let told = |broker: &FakeBroker| broker.heard().withheld.last().cloned();
        (told(&first)? == [name(BOTH[0])] && told(&second)? == [name(BOTH[1])]).then_some(())
    })
    .await;
    assert_eq!(standing(&host), BOTH);
    agent.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_lease_whose_slice_cannot_be_made_fails_and_says_why() {
    let broker = FakeBroker::start(1).await;
    let host = sliced(&[&broker]);
    let agent = host.start().await;
    let offers = broker.offers(OFFERS).await;
    host.hardware.driver.refuse(Some(CutProblem {
        is_in_use: false,
        detail: "insufficient resources".to_owned(),
    }));
    let goal = matched(&broker, &host, &offers, BOTH[1], 1);
    broker.say(host.id, vec![goal.clone()]).await;
    let failed = broker
        .report("failed", goal.lease, |state| {
            matches!(state, ContainerState::Failed(_))
        })
        .await;
    let ContainerState::Failed(problem) = failed.state else {
        panic!("it was looked at")
    };
    assert_eq!(problem.kind, ProblemKind::GpuUnavailable);
    assert_eq!(problem.detail.as_str(), "insufficient resources");
    assert_eq!(host.runtime.starts(goal.lease), 0);
    agent.shutdown().await.unwrap();
}

/// Somebody cut the GPU by hand: it is left alone, and no broker sells that memory.
#[tokio::test]
async fn what_others_made_is_withheld_and_left_alone() {
    let broker = FakeBroker::start(1).await;
    let host = sliced(&[&broker]);
    let theirs = [
        Act::SetMode {
            gpu: name("GPU-0"),
            divided: true,
        },
        Act::Make {
            resource: name("GPU-0/2g.20gb@0+2"),
            profile: 14,
            start: 0,
        },
    ];
    for act in &theirs {
        host.hardware.driver.make_foreign(act).unwrap();
    }
    let agent = host.start().await;
    broker.offers(OFFERS).await;
    wait("what is withheld", || {
        let told = broker.heard().withheld.last().cloned()?;
        (told == [name("GPU-0/2g.20gb@0+2")]).then_some(())
    })
    .await;
    assert_eq!(standing(&host), ["GPU-0/2g.20gb@0+2"]);
    let told: BTreeMap<usize, Act> = host
        .hardware
        .driver
        .told()
        .into_iter()
        .enumerate()
        .collect();
    assert!(told.is_empty(), "{told:?}");
    agent.shutdown().await.unwrap();
}
