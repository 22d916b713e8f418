//! What is seen of hosts between their leases: idle hours, outages of the broker, evidence for anybody.

use super::{evidence, faults, lease_on, live, outcome, silence, told_again, world};
use crate::core::event::Fact;
use crate::core::reliability::outages::find_outage;
use crate::core::reliability::watch::Beat;
use crate::core::settings::MarketSettings;
use crate::core::tests::world::{World, broker_id, host_id};
use protocol::bounded::Text;
use protocol::ids::{LeaseId, PublicKey};
use protocol::lease::ContainerState;
use protocol::order::LeaseAction;
use protocol::reliability::{Evidence, Fault, Interval, Outcome, Score, Standing};
use protocol::units::Timestamp;
use std::collections::BTreeMap;

/// A host is heard, and says that it is reached in the network `network`.
fn heard(world: &mut World, host: u8, network: u8) {
    let address = Text::new(format!("/ip4/203.{network}.113.7/tcp/7700")).unwrap();
    world.announce_at(host, address);
}

fn lines(world: &World) -> usize {
    let is_line = |fact: &Fact| matches!(fact, Fact::Heard(_));
    world
        .journal
        .iter()
        .filter(|event| is_line(&event.fact))
        .count()
}

#[test]
fn idle_hours_are_journalled_once_an_hour_and_are_one_stretch() {
    let mut world = world(1);
    let began = world.now;
    live(&mut world, &[], 3 * 3600 + 600);
    assert_eq!(lines(&world), 3);
    let seen = &evidence(&world, 0).heard;
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].from, began);
    // The third hour's line says when the host was heard last.
    assert!(seen[0].to.since(began).0 >= 3 * 3600 * 1000 - 90_000);
    // Not heard for two minutes: another stretch.
    silence(&mut world, 120);
    live(&mut world, &[], 3600);
    assert_eq!(evidence(&world, 0).heard.len(), 2);
    let score = Score::of(evidence(&world, 0), world.now);
    assert!(
        score.idle_hours > 3.9 && score.idle_hours < 4.2,
        "{score:?}"
    );
    assert!((score.exposure_hours - score.idle_hours / 4.0).abs() < 1e-9);
    told_again(&world);
}

#[test]
fn a_host_without_a_lease_is_forgotten_after_thirty_days() {
    let mut world = world(2);
    let lease = lease_on(&mut world, 1, 0);
    live(&mut world, &[lease], 3700);
    let hosts = |world: &World| world.desk.market().reliability().hosts().count();
    assert_eq!(hosts(&world), 2);
    world.act(lease, LeaseAction::End).unwrap();
    world.wait(31 * 24 * 3600);
    // Only the line of a third host.
    world.asks.clear();
    world.offer(2, crate::core::tests::world::Ask::default());
    live(&mut world, &[], 3700);
    let known: Vec<_> = world.desk.market().reliability().hosts().collect();
    assert!(!known.contains(&host_id(0)), "{known:?}");
    assert!(known.contains(&host_id(1)) && known.contains(&host_id(2)));
    told_again(&world);
}

#[test]
fn nothing_is_put_down_to_a_host_while_the_broker_was_down() {
    let mut world = world(1);
    let lease = lease_on(&mut world, 0, 0);
    live(&mut world, &[lease], 600);
    let down = world.now;
    world.wait(2000);
    world.restart(MarketSettings::default());
    let up = world.now;
    world.tick();
    assert_eq!(
        evidence(&world, 0).excluded,
        [Interval { from: down, to: up }]
    );
    live(&mut world, &[lease], 600);
    assert!(faults(&world, 0).is_empty());
    // Twenty minutes of leases; the run goes on over the gap, which counts nothing.
    let score = Score::of(evidence(&world, 0), world.now);
    assert!(
        (score.leased_hours - 1200.0 / 3600.0).abs() < 0.001,
        "{score:?}"
    );
    told_again(&world);
}

#[test]
fn a_host_that_is_still_away_after_the_broker_is_back_is_lost_from_then_on() {
    let mut world = world(1);
    let lease = lease_on(&mut world, 0, 0);
    live(&mut world, &[lease], 600);
    world.wait(2000);
    let asks = std::mem::take(&mut world.asks);
    world.restart(MarketSettings::default());
    world.asks = asks;
    let up = world.now;
    silence(&mut world, 1100);
    assert_eq!(faults(&world, 0), [(Fault::Lost, 1000)]);
    assert_eq!(outcome(&world, 0, lease).incidents[0].at, up);
    told_again(&world);
}

/// Ten hosts of as many networks as said, five of them with a lease; all are heard, then only the last of
/// them.
fn outage(networks: u8, lost: u8) -> (World, Vec<LeaseId>) {
    let mut world = world(10);
    let leases: Vec<LeaseId> = (0..5)
        .map(|host| lease_on(&mut world, host.into(), host))
        .collect();
    for second in 0..900 {
        world.wait(1);
        let is_lost = |host: u8| (120..600).contains(&second) && host < lost;
        if second % 20 == 0 {
            for host in (0..10).filter(|host| !is_lost(*host)) {
                heard(&mut world, host, host % networks);
                if let Some(lease) = leases.get(usize::from(host)) {
                    world.report(*lease, ContainerState::Running, 0).unwrap();
                }
            }
        }
        world.tick();
    }
    (world, leases)
}

#[test]
fn hosts_of_three_networks_that_fall_silent_in_one_minute_are_the_brokers() {
    let (world, _) = outage(3, 4);
    for host in 0..4 {
        let counted = evidence(&world, host).counted();
        assert!(
            counted.iter().all(|counted| counted.weight.0 == 0),
            "{counted:?}"
        );
        let excluded = &evidence(&world, host).excluded;
        assert_eq!(excluded.len(), 1);
        // From the last beat before to the first after: 480 s and at most a beat and a look more.
        let length = excluded[0].to.since(excluded[0].from).0;
        assert!((480_000..=540_000).contains(&length), "{length}");
    }
    // Nor does the time count for those who were heard.
    assert_eq!(evidence(&world, 4).excluded.len(), 1);
    told_again(&world);
}

#[test]
fn hosts_of_two_networks_or_too_few_hosts_are_their_own() {
    for (networks, lost) in [(2, 4), (3, 1)] {
        let (world, _) = outage(networks, lost);
        assert!(evidence(&world, 0).excluded.is_empty());
        assert_eq!(faults(&world, 0), [(Fault::Silent, 200)]);
    }
}

#[test]
fn an_outage_takes_a_fifth_of_the_hosts_in_one_minute() {
    // So many hosts in so many networks fall silent over so many seconds, of so many.
    let find = |lost: u8, networks: u8, over: u64, all: u8| {
        let beats: BTreeMap<_, _> = (0..all)
            .map(|number| {
                let host = protocol::ids::HostId::from_bytes([number; 32]);
                let is_lost = number < lost;
                let spread = over * 1000 * u64::from(number) / u64::from(lost.max(2) - 1);
                let at = if is_lost {
                    1_000_000 + spread
                } else {
                    1_500_000
                };
                let network = [number % networks, 0, 0, 0, 0, 0, 0, 0];
                (host, Beat::silent(network, Timestamp(at), is_lost))
            })
            .collect();
        find_outage(&beats, Timestamp(1_500_000)).is_some()
    };
    assert!(find(20, 3, 59, 100));
    assert!(!find(19, 3, 59, 100));
    assert!(!find(20, 2, 59, 100));
    // One in a minute too many.
    assert!(!find(20, 3, 60, 100));
    assert!(find(3, 3, 0, 3));
}

#[test]
fn the_signed_evidence_gives_anybody_the_same_score() {
    let mut world = world(1);
    for number in 0..150 {
        let lease = lease_on(&mut world, 0, number % 9);
        live(&mut world, &[lease], 30);
        if number == 70 {
            silence(&mut world, 200);
            world.report(lease, ContainerState::Running, 0).unwrap();
        }
        world.act(lease, LeaseAction::End).unwrap();
        world.report(lease, ContainerState::Gone, 0).unwrap();
        world.announce();
    }
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut after = None;
    let mut pages = 0;
    let (standing, page): (Standing, _) = loop {
        let page = world
            .desk
            .host_evidence(world.now, host_id(0), after)
            .unwrap();
        pages += 1;
        for signed in &page.outcomes {
            let verified = signed.verify().unwrap();
            assert_eq!(verified.signer(), PublicKey::from(broker_id()));
            outcomes.push(verified.into_body());
        }
        after = page.next;
        if after.is_none() {
            break (page.standing.verify().unwrap().into_body(), page);
        }
    };
    // 64, 64, 22.
    assert_eq!((pages, outcomes.len()), (3, 150));
    let again = Evidence::of_statements(standing, outcomes).unwrap();
    assert_eq!(&again, evidence(&world, 0));
    let score = Score::of(&again, page.as_of);
    assert_eq!(score.ppm, page.ppm);
    assert_eq!(score.starts, 150);
    assert!(score.faults > 0.19);
    told_again(&world);
}

#[test]
fn of_an_unknown_host_the_evidence_is_empty() {
    let world = world(1);
    let page = world
        .desk
        .host_evidence(world.now, host_id(7), None)
        .unwrap();
    assert_eq!(
        (page.ppm, page.heard_at, page.outcomes.len()),
        (480_000, None, 0)
    );
    let standing = page.standing.verify().unwrap().into_body();
    assert!(Evidence::of_statements(standing, []).is_ok());
}
