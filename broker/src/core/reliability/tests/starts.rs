//! Whose fault a start is that did not come to be.

use super::{evidence, lease_on, outcome, told_again, world};
use crate::core::command::Command;
use crate::core::tests::world::{World, host_key};
use protocol::ids::LeaseId;
use protocol::lease::{
    ContainerState, Detail, Party, Problem, ProblemKind, Refusal, RefusalReason, Stage,
};
use protocol::order::LeaseAction;
use protocol::reliability::Start;

fn placed(world: &mut World) -> LeaseId {
    let order = world.order(0);
    world.place(0, order).unwrap()
}

#[track_caller]
fn failed(world: &World, lease: LeaseId, party: Party) {
    assert_eq!(outcome(world, 0, lease).start, Start::Failed(party));
    let counts = (0, u32::from(party == Party::Host));
    assert_eq!(evidence(world, 0).starts(), counts);
    // A start that failed is a failed start and no fault.
    assert!(evidence(world, 0).counted().is_empty());
    told_again(world);
}

#[test]
fn a_refusal_counts_by_its_reason() {
    let table = [
        (RefusalReason::Taken, Party::Market),
        (RefusalReason::OfferChanged, Party::Market),
        (RefusalReason::BadOrder(Detail::default()), Party::Broker),
        (RefusalReason::UnknownBroker, Party::Host),
        (RefusalReason::Draining, Party::Host),
        (RefusalReason::EngineDown(Detail::default()), Party::Host),
        (RefusalReason::DiskFull, Party::Host),
    ];
    for (reason, party) in table {
        let mut world = world(1);
        let lease = placed(&mut world);
        let refusal = world.sign(Refusal { lease, reason }, &host_key(0));
        world.handle(Command::Refuse(refusal)).unwrap();
        failed(&world, lease, party);
    }
}

#[test]
fn a_failed_start_counts_by_its_problem_and_an_image_is_the_renters() {
    let table = [
        (ProblemKind::ImageUnknown, Party::Renter),
        (ProblemKind::ImageRefused, Party::Renter),
        (ProblemKind::DigestMismatch, Party::Renter),
        (ProblemKind::ImageTooBig, Party::Renter),
        (ProblemKind::CommandUnknown, Party::Renter),
        (ProblemKind::ImageUnusable, Party::Renter),
        (ProblemKind::RegistryDown, Party::Market),
        (ProblemKind::EngineFailed, Party::Host),
        (ProblemKind::GpuUnavailable, Party::Host),
        (ProblemKind::HostSilent, Party::Host),
    ];
    for (kind, party) in table {
        let mut world = world(1);
        let lease = placed(&mut world);
        world.grant(lease).unwrap();
        let problem = Problem {
            stage: Stage::Pulling,
            kind,
            detail: Detail::default(),
        };
        world
            .report(lease, ContainerState::Failed(problem), 0)
            .unwrap();
        failed(&world, lease, party);
    }
}

#[test]
fn a_host_that_does_not_accept_or_start_in_time_failed() {
    let mut slow = world(1);
    let lease = placed(&mut slow);
    slow.wait(11);
    slow.tick();
    failed(&slow, lease, Party::Host);
    let mut slow = world(1);
    let lease = placed(&mut slow);
    slow.grant(lease).unwrap();
    slow.wait(601);
    slow.tick();
    failed(&slow, lease, Party::Host);
}

#[test]
fn a_renter_that_gives_up_before_the_start_is_no_failure_of_the_host() {
    let mut world = world(1);
    let lease = placed(&mut world);
    world.grant(lease).unwrap();
    world.act(lease, LeaseAction::End).unwrap();
    failed(&world, lease, Party::Renter);
}

#[test]
fn scores_follow_what_happens_at_the_next_tick() {
    let mut world = world(1);
    let host = crate::core::tests::world::host_id(0);
    // Nothing is known: .8 · .6.
    assert_eq!(world.desk.score_ppm(host), 480_000);
    lease_on(&mut world, 0, 0);
    world.tick();
    // Nine of eleven starts, and no hours yet: .81818… · .6.
    assert_eq!(world.desk.score_ppm(host), 490_909);
}

#[test]
fn of_a_host_with_many_leases_a_fault_is_seen_at_once_and_a_good_lease_within_the_hour() {
    let mut world = world(1);
    let host = crate::core::tests::world::host_id(0);
    for number in 0..20 {
        let lease = lease_on(&mut world, 0, number % 9);
        world.act(lease, LeaseAction::End).unwrap();
        world.report(lease, ContainerState::Gone, 0).unwrap();
        world.tick();
    }
    // Sixteen were computed at once: 24/26 · .6.
    assert_eq!(world.desk.score_ppm(host), 553_846);
    super::live(&mut world, &[], 3700);
    // 28/30, and a quarter of an hour of idle time: 36.25 / 60.25, about.
    let good = world.desk.score_ppm(host);
    assert!((560_000..570_000).contains(&good), "{good}");
    let lease = lease_on(&mut world, 0, 0);
    world.report(lease, ContainerState::Gone, 0).unwrap();
    world.tick();
    // One fault: the second power.
    let after = world.desk.score_ppm(host);
    assert!(after < 350_000, "{after}");
}
