//! Prepaid terms whose GPU fails.

use super::world::{Ask, World};
use protocol::bounded::Text;
use protocol::ids::LeaseId;
use protocol::lease::{ContainerState, FaultClass, GpuFault, Phase, StopReason};
use protocol::order::LeaseAction;
use protocol::terms::Deal;
use protocol::units::{BasisPoints, MicroUsd};
use protocol::usage::Term;

/// A month of a GPU at 1 000 000 with 20 % off, 576 000 000, of which an hour has gone by: 800 000 are earned.
fn an_hour_into_a_month() -> (World, LeaseId) {
    let mut world = World::with_a_fee_of_ten_percent();
    world.deposit(0, 1_000_000_000);
    let mut ask = Ask::gpus(1, 1_000_000, Some(100_000));
    ask.sales.discount_max = Some(BasisPoints(4000));
    world.offer(0, ask);
    let month = Deal::Reserved {
        days: 30,
        prepay_max: MicroUsd(i64::MAX),
    };
    let mut order = world.deal(0, month, 1);
    order.budget = MicroUsd(2_000_000_000);
    let lease = world.place(0, order).unwrap();
    world.follow();
    world.pass(3600);
    assert_eq!(term(&world, lease).earned, MicroUsd(800_000));
    (world, lease)
}

fn term(world: &World, lease: LeaseId) -> Term {
    world.view(lease).term.unwrap()
}

/// Its container is stopped for a fault of that class.
fn fail(world: &mut World, lease: LeaseId, class: FaultClass) {
    let fault = GpuFault {
        resource: Text::new("GPU-0").unwrap(),
        xid: 79,
        class,
        detail: Text::new("fell off the bus").unwrap(),
    };
    let stopped = ContainerState::Stopped(StopReason::GpuFault(fault));
    world.report(lease, stopped, 3_600_000).unwrap();
    assert!(matches!(world.phase(lease), Phase::Paused(_)));
}

#[test]
fn nothing_is_earned_of_it_and_whoever_ends_it_then_pays_no_penalty() {
    let (mut world, lease) = an_hour_into_a_month();
    fail(&mut world, lease, FaultClass::Hardware);
    world.pass(1800);
    assert_eq!(term(&world, lease).earned, MicroUsd(800_000));
    world.act(lease, LeaseAction::End).unwrap();
    world.follow();
    let term = term(&world, lease);
    let nothing = MicroUsd::ZERO;
    // 576 000 000 less 800 000.
    assert_eq!(
        (term.earned, term.refunded, term.clawed_back, term.from_bond),
        (
            MicroUsd(800_000),
            MicroUsd(575_200_000),
            (nothing, nothing),
            nothing
        )
    );
    assert_eq!(&world.replayed(), world.desk.market());
}

#[test]
fn it_goes_on_to_be_earned_when_it_runs_again() {
    let (mut world, lease) = an_hour_into_a_month();
    fail(&mut world, lease, FaultClass::Driver);
    world.pass(1800);
    world.act(lease, LeaseAction::Resume).unwrap();
    world.follow();
    world.pass(3600);
    assert_eq!(world.phase(lease), Phase::Running);
    assert_eq!(term(&world, lease).earned, MicroUsd(1_600_000));
}

#[test]
fn what_the_renter_s_program_did_is_its_own() {
    let (mut world, lease) = an_hour_into_a_month();
    fail(&mut world, lease, FaultClass::Program);
    world.pass(1800);
    assert_eq!(term(&world, lease).earned, MicroUsd(1_200_000));
}
