//! What hosts are blamed for and credited with, one story each; and that a replay tells the same stories.

mod starts;
mod watched;

use crate::core::market::Market;
use crate::core::tests::world::{Ask, World, host_id, renter_id};
use protocol::ids::LeaseId;
use protocol::lease::{ContainerState, Party, Problem, ProblemKind, Stage, StopReason};
use protocol::order::LeaseAction;
use protocol::reliability::{Counted, Evidence, Fault, Outcome, Payer, Score, Start};
use protocol::units::Timestamp;

/// A world of `hosts` hosts and rich renters.
pub(super) fn world(hosts: u8) -> World {
    let mut world = World::with_a_fee_of_ten_percent();
    for host in 0..hosts {
        world.offer(host, Ask::default());
    }
    for renter in 0..9 {
        world.deposit(renter, 1_000_000_000);
    }
    world
}

pub(super) fn lease_on(world: &mut World, host: usize, renter: u8) -> LeaseId {
    let order = world.order(host);
    world.running(renter, order)
}

/// Honest hosts for `seconds`: every 30 s they announce themselves and report that the leases run.
pub(super) fn live(world: &mut World, leases: &[LeaseId], seconds: u64) {
    for _ in 0..seconds / 30 {
        world.wait(30);
        world.announce();
        for lease in leases {
            world.report(*lease, ContainerState::Running, 0).unwrap();
        }
        world.tick();
    }
}

/// Nobody is heard for `seconds`.
pub(super) fn silence(world: &mut World, seconds: u64) {
    for _ in 0..seconds {
        world.wait(1);
        world.tick();
    }
}

pub(super) fn evidence(world: &World, host: u8) -> &Evidence {
    world
        .desk
        .market()
        .reliability()
        .evidence(host_id(host))
        .unwrap()
}

pub(super) fn outcome(world: &World, host: u8, lease: LeaseId) -> &Outcome {
    &evidence(world, host).outcomes[&(lease, 0)]
}

pub(super) fn faults(world: &World, host: u8) -> Vec<(Fault, u16)> {
    let pair = |counted: &Counted| (counted.incident.fault, counted.weight.0);
    evidence(world, host).counted().iter().map(pair).collect()
}

/// The journal gives the same state again, and so does its snapshot.
#[track_caller]
pub(super) fn told_again(world: &World) {
    let market = world.desk.market();
    assert_eq!(&world.replayed(), market);
    assert_eq!(&Market::decode(&market.encode().unwrap()).unwrap(), market);
}

#[test]
fn a_clean_lease_is_a_start_and_its_hours() {
    let mut world = world(1);
    let began = world.now;
    let lease = lease_on(&mut world, 0, 3);
    live(&mut world, &[lease], 7200);
    world.act(lease, LeaseAction::End).unwrap();
    world.report(lease, ContainerState::Gone, 0).unwrap();
    let found = outcome(&world, 0, lease);
    assert_eq!(found.payer, Payer::of(host_id(0), renter_id(3)));
    assert_eq!(found.start, Start::Ran(began));
    assert_eq!(found.ended, Some((world.now, Party::Renter)));
    assert_eq!(found.runs.len(), 1);
    assert_eq!(found.runs[0].from, began);
    assert_eq!(found.runs[0].to, world.now);
    assert!(found.grant.is_some() && found.report.is_some());
    let score = Score::of(evidence(&world, 0), world.now);
    assert_eq!(
        (score.starts, score.starts_failed, score.renters),
        (1, 0, 1)
    );
    // Two hours, hardly decayed.
    assert!((score.leased_hours - 2.0).abs() < 0.001, "{score:?}");
    assert!(faults(&world, 0).is_empty());
    told_again(&world);
}

#[test]
fn a_stopped_lease_has_two_runs_and_no_hours_between_them() {
    let mut world = world(1);
    let lease = lease_on(&mut world, 0, 0);
    live(&mut world, &[lease], 600);
    world.act(lease, LeaseAction::Stop).unwrap();
    world
        .report(lease, ContainerState::Stopped(StopReason::Asked), 0)
        .unwrap();
    let stopped = world.now;
    for _ in 0..20 {
        world.wait(30);
        world.announce();
        world.tick();
    }
    world.act(lease, LeaseAction::Resume).unwrap();
    world.report(lease, ContainerState::Running, 0).unwrap();
    let resumed = world.now;
    live(&mut world, &[lease], 300);
    let found = outcome(&world, 0, lease);
    assert_eq!(found.runs.len(), 2);
    assert_eq!(found.runs[0].to, stopped);
    assert_eq!(found.runs[1].from, resumed);
    // A start is the first one.
    assert_eq!(evidence(&world, 0).starts(), (1, 0));
    assert!(faults(&world, 0).is_empty());
    told_again(&world);
}

#[test]
fn silent_for_less_than_a_quarter_of_an_hour_is_a_fifth_of_a_fault() {
    let mut world = world(1);
    let lease = lease_on(&mut world, 0, 0);
    live(&mut world, &[lease], 300);
    let heard = world.now;
    // Just not silent.
    silence(&mut world, 90);
    world.report(lease, ContainerState::Running, 0).unwrap();
    assert!(faults(&world, 0).is_empty());
    silence(&mut world, 300);
    world.report(lease, ContainerState::Running, 0).unwrap();
    assert_eq!(faults(&world, 0), [(Fault::Silent, 200)]);
    let found = outcome(&world, 0, lease);
    // It began when the host was last heard, and what was not heard is no run.
    let silent_from = Timestamp(heard.0 + 90_000);
    assert_eq!(found.incidents[0].at, silent_from);
    assert_eq!(found.runs[0].to, silent_from);
    assert_eq!(found.runs[1].from, world.now);
    told_again(&world);
}

#[test]
fn a_lease_that_does_not_go_on_in_a_quarter_of_an_hour_is_a_fault() {
    let mut world = world(1);
    let lease = lease_on(&mut world, 0, 0);
    live(&mut world, &[lease], 300);
    silence(&mut world, 1000);
    assert!(world.desk.market().lease(lease).unwrap().state.is_closed());
    assert_eq!(faults(&world, 0), [(Fault::Lost, 1000)]);
    assert_eq!(outcome(&world, 0, lease).ended.unwrap().1, Party::Host);
    told_again(&world);
}

#[test]
fn one_silence_of_a_host_is_one_fault_for_all_its_leases() {
    let mut world = World::with_a_fee_of_ten_percent();
    for resource in ["GPU-a", "GPU-b", "GPU-c"] {
        world.offer_resource(0, resource, Ask::default());
    }
    world.deposit(0, 1_000_000_000);
    let leases: Vec<LeaseId> = (0..3).map(|n| lease_on(&mut world, n, 0)).collect();
    live(&mut world, &leases, 300);
    silence(&mut world, 1000);
    assert_eq!(faults(&world, 0), [(Fault::Lost, 1000)]);
    assert_eq!(evidence(&world, 0).counted()[0].seen, 3);
    told_again(&world);
}

#[test]
fn a_container_that_vanished_or_failed_is_its_hosts_and_a_program_that_ended_is_not() {
    let problem = |stage, kind| {
        ContainerState::Failed(Problem {
            stage,
            kind,
            detail: protocol::lease::Detail::default(),
        })
    };
    let stopped = ContainerState::Stopped;
    let table = [
        (ContainerState::Gone, Some(Fault::StoppedByHost)),
        (stopped(StopReason::Asked), Some(Fault::StoppedByHost)),
        (
            stopped(StopReason::ResourceTaken),
            Some(Fault::StoppedByHost),
        ),
        (
            problem(Stage::Starting, ProblemKind::GpuUnavailable),
            Some(Fault::GpuFailed),
        ),
        (
            problem(Stage::Starting, ProblemKind::EngineFailed),
            Some(Fault::StoppedByHost),
        ),
        (problem(Stage::Pulling, ProblemKind::ImageUnknown), None),
        (stopped(StopReason::Exited(0)), None),
        (stopped(StopReason::Exited(1)), None),
        (stopped(StopReason::Exited(143)), None),
        (stopped(StopReason::OutOfMemory), None),
        (stopped(StopReason::DiskFull), None),
        // Killed, and not for memory: anybody's. It counts nothing by itself.
        (
            stopped(StopReason::Exited(137)),
            Some(Fault::AmbiguousCrash),
        ),
    ];
    for (said, fault) in table {
        let mut world = world(1);
        let lease = lease_on(&mut world, 0, 0);
        live(&mut world, &[lease], 60);
        world.report(lease, said.clone(), 0).unwrap();
        let wanted: Vec<_> = fault
            .into_iter()
            .map(|fault| (fault, fault.weight().0))
            .collect();
        assert_eq!(faults(&world, 0), wanted, "{said:?}");
        told_again(&world);
    }
}

#[test]
fn crashes_of_three_paying_renters_make_half_a_fault() {
    let mut world = world(1);
    for renter in 0..3 {
        let lease = lease_on(&mut world, 0, renter);
        live(&mut world, &[lease], 300);
        // The meter is the host's word for what is paid.
        world
            .report(
                lease,
                ContainerState::Stopped(StopReason::Exited(137)),
                300_000,
            )
            .unwrap();
        world.act(lease, LeaseAction::End).unwrap();
        world.report(lease, ContainerState::Gone, 300_000).unwrap();
        world.announce();
    }
    let total: u16 = faults(&world, 0).iter().map(|(_, weight)| weight).sum();
    assert_eq!(total, 500, "{:?}", faults(&world, 0));
    told_again(&world);
}

#[test]
fn an_outcome_with_too_many_runs_goes_on_in_another_part() {
    let mut world = world(1);
    let lease = lease_on(&mut world, 0, 0);
    let mut runs = 1;
    while evidence(&world, 0).outcomes.len() == 1 {
        live(&mut world, &[lease], 30);
        world.act(lease, LeaseAction::Stop).unwrap();
        world
            .report(lease, ContainerState::Stopped(StopReason::Asked), 0)
            .unwrap();
        world.act(lease, LeaseAction::Resume).unwrap();
        world.report(lease, ContainerState::Running, 0).unwrap();
        runs += 1;
        assert!(runs < 200);
    }
    assert_eq!(outcome(&world, 0, lease).runs.len(), 128);
    live(&mut world, &[lease], 300);
    world.act(lease, LeaseAction::End).unwrap();
    let score = Score::of(evidence(&world, 0), world.now);
    // Every half minute of every run, and the last five minutes.
    let hours = f64::from(runs - 1) * 30.0 / 3600.0 + 300.0 / 3600.0;
    assert!(
        (score.leased_hours - hours).abs() < 0.001,
        "{hours} {score:?}"
    );
    assert_eq!(evidence(&world, 0).starts(), (1, 0));
    told_again(&world);
}
