//! What time does to a lease: deadlines, silence, restarts, money that runs out. One story each.

use super::lifecycle::lease_in;
use super::world::{Ask, World, host_id};
use crate::core::settings::MarketSettings;
use protocol::ids::LeaseId;
use protocol::lease::{ContainerState, EndCause, PauseCause, Phase, Stage, StopReason, Want};
use protocol::message::Rejection;
use protocol::order::{LeaseAction, Target};
use protocol::units::{MicroUsd, Millis, Seconds};

#[test]
fn a_host_that_does_not_accept_loses_the_lease_and_nothing_is_charged() {
    let (mut world, lease) = lease_in("offered");
    world.wait(9);
    world.tick();
    assert_eq!(world.phase(lease), Phase::Offered);
    world.wait(1);
    world.tick();
    assert_eq!(world.phase(lease), Phase::Closed(EndCause::NotAccepted));
    let view = world.view(lease);
    assert_eq!(
        (view.held, view.charged.total()),
        (MicroUsd::ZERO, MicroUsd::ZERO)
    );
    let renter = view.renter;
    assert_eq!(world.desk.balance(renter).available, MicroUsd(100_000_000));
}

// peers 3.2 #27: a start that fails leaves nothing behind and costs nothing.
#[test]
fn a_host_that_does_not_run_it_in_time_loses_the_lease() {
    let (mut world, lease) = lease_in("preparing");
    world.wait(600);
    world.tick();
    assert_eq!(world.phase(lease), Phase::Closing(EndCause::NotStarted));
    assert_eq!(world.view(lease).held, MicroUsd::ZERO);
    // It may never say that the container is gone.
    world.wait(900);
    world.tick();
    assert_eq!(world.phase(lease), Phase::Closed(EndCause::NotStarted));
    assert_eq!(world.view(lease).charged.total(), MicroUsd::ZERO);
}

#[test]
fn silence_is_not_billed_and_ends_the_lease_after_a_quarter_of_an_hour() {
    let (mut world, lease) = lease_in("running");
    world.wait(60);
    world
        .report(lease, ContainerState::Running, 60_000)
        .unwrap();
    world.wait(91);
    world.tick();
    assert_eq!(world.phase(lease), Phase::Suspect);
    assert_eq!(world.view(lease).running, Millis(60_000));
    world.wait(100);
    // It was there all the time, and only could not be heard: nobody pays for that time.
    world
        .report(lease, ContainerState::Running, 251_000)
        .unwrap();
    assert_eq!(world.phase(lease), Phase::Running);
    assert_eq!(world.view(lease).running, Millis(60_000));
    world.wait(10);
    world
        .report(lease, ContainerState::Running, 261_000)
        .unwrap();
    assert_eq!(world.view(lease).running, Millis(70_000));
    world.wait(91);
    world.tick();
    world.wait(809);
    world.tick();
    assert_eq!(world.phase(lease), Phase::Suspect);
    world.wait(1);
    world.tick();
    assert_eq!(world.phase(lease), Phase::Closed(EndCause::HostLost));
    // 400 000 × 70 / 3600 = 7777; 50 GB × 100 000 × 70 / 2 592 000 = 135.
    assert_eq!(world.view(lease).charged.total(), MicroUsd(7912));
}

#[test]
fn a_gap_of_ninety_seconds_is_billed_and_one_more_is_not() {
    let (mut world, lease) = lease_in("running");
    world.wait(90);
    world
        .report(lease, ContainerState::Running, 90_000)
        .unwrap();
    assert_eq!(world.view(lease).running, Millis(90_000));
    world.now = world.now.after(Millis(90_001));
    world
        .report(lease, ContainerState::Running, 180_001)
        .unwrap();
    assert_eq!(world.view(lease).running, Millis(90_000));
}

#[test]
fn a_resume_that_does_not_run_in_time_is_a_stop_again() {
    let (mut world, lease) = lease_in("resuming");
    assert_eq!(want(&mut world, lease), Some(Want::Run(2)));
    let preparing = ContainerState::Preparing(Stage::Starting);
    world.report(lease, preparing, 0).unwrap();
    world.wait(599);
    world.tick();
    assert_eq!(world.phase(lease), Phase::Preparing);
    world.wait(1);
    world.tick();
    let phase = world.phase(lease);
    assert!(
        matches!(phase, Phase::Paused(PauseCause::ResumeFailed(_))),
        "{phase:?}"
    );
    assert_eq!(want(&mut world, lease), Some(Want::Stop));
}

#[test]
fn a_stopped_lease_gives_its_resource_away_and_may_not_get_it_back() {
    let (mut world, lease) = lease_in("stopped");
    let order = world.order(0);
    let other = world.place(0, order).unwrap();
    assert_eq!(
        world.act(lease, LeaseAction::Resume),
        Err(Rejection::ResourceTaken)
    );
    world.refuse(other).unwrap();
    world.act(lease, LeaseAction::Resume).unwrap();
    assert_eq!(want(&mut world, lease), Some(Want::Run(2)));
}

#[test]
fn ending_a_stopped_lease_takes_nothing_from_the_one_that_has_its_resource() {
    let (mut world, lease) = lease_in("stopped");
    let order = world.order(0);
    let other = world.place(0, order).unwrap();
    world.act(lease, LeaseAction::End).unwrap();
    world.report(lease, ContainerState::Gone, 0).unwrap();
    let third = world.order(0);
    assert_eq!(world.place(0, third), Err(Rejection::OfferTaken));
    assert_eq!(world.phase(other), Phase::Offered);
}

#[test]
fn a_report_of_an_earlier_run_does_not_stop_the_next_one() {
    let (mut world, lease) = lease_in("stopped");
    let stopped = ContainerState::Stopped(StopReason::Asked);
    let late = world.report_command(lease, stopped, protocol::lease::Meters::default());
    world.act(lease, LeaseAction::Resume).unwrap();
    world.handle(late).unwrap();
    assert_eq!(world.phase(lease), Phase::Preparing);
    world.report(lease, ContainerState::Running, 0).unwrap();
    assert_eq!(world.phase(lease), Phase::Running);
}

// peers 3.2 #33: nothing runs on for free: a warning, a stop, the disk for two days.
#[test]
fn money_that_runs_out_warns_then_stops_then_deletes() {
    // A dollar an hour and no disk price: an hour's money.
    let mut world = World::with_a_fee_of_ten_percent();
    let mut ask = Ask::default();
    ask.prices.compute = protocol::units::PricePerHour(1_000_000);
    world.deposit(0, 1_010_000);
    world.offer(0, ask);
    let order = world.order(0);
    let lease = world.running(0, order);
    let mut seconds = 0;
    let mut run = |world: &mut World, to: u64| {
        while seconds < to {
            world.wait(1);
            seconds += 1;
            if seconds.is_multiple_of(10) {
                world
                    .report(lease, ContainerState::Running, seconds * 1000)
                    .unwrap();
            }
            world.tick();
        }
    };
    // All in it is 1 006 944 an hour, so 1 010 000 last 3610.9 s: low after 2710, stopped after 3310.
    run(&mut world, 2705);
    assert!(!world.view(lease).low_balance);
    run(&mut world, 2715);
    assert!(world.view(lease).low_balance);
    assert_eq!(world.phase(lease), Phase::Running);
    run(&mut world, 3305);
    assert_eq!(world.phase(lease), Phase::Running);
    run(&mut world, 3315);
    assert_eq!(world.phase(lease), Phase::Paused(PauseCause::FundsLow));
    let until = world.view(lease).disk_until.unwrap();
    assert!(until.since(world.now) <= Seconds(48 * 3600).millis());
    world.now = until;
    world.tick();
    assert_eq!(world.phase(lease), Phase::Closing(EndCause::DiskExpired));
}

#[test]
fn a_deposit_takes_the_warning_back() {
    let (mut world, lease) = lease_in("offered");
    world.refuse(lease).unwrap();
    let mut order = world.order(0);
    order.budget = MicroUsd(99_000_000_000);
    order.price_max = protocol::units::PricePerHour(500_000_000);
    world.asks[0].2.prices.compute = protocol::units::PricePerHour(95_000_000);
    world.wait(1);
    world.announce();
    let body = super::world::offer(0, &world.asks[0].1, &world.asks[0].2, world.now);
    order.target = Target::Offer {
        offer: body.id,
        terms: body.terms_digest().unwrap(),
    };
    let lease = world.running(0, order);
    for second in 1..=3000_u64 {
        world.wait(1);
        world.tick();
        if second.is_multiple_of(10) {
            world
                .report(lease, ContainerState::Running, second * 1000)
                .unwrap();
        }
    }
    assert!(world.view(lease).low_balance);
    world.deposit(0, 1_000_000_000);
    world.wait(1);
    world.tick();
    assert!(!world.view(lease).low_balance);
}

#[test]
fn a_funded_budget_is_used_up_without_a_warning() {
    // The money is exactly the budget: the budget ends it, not the lack of money.
    let mut world = World::with_a_fee_of_ten_percent();
    world.deposit(0, 100_000);
    world.offer(0, Ask::default());
    let mut order = world.order(0);
    order.budget = MicroUsd(100_000);
    let lease = world.running(0, order);
    let mut second = 0;
    while world.phase(lease) == Phase::Running {
        world.wait(1);
        second += 1;
        world
            .report(lease, ContainerState::Running, second * 1000)
            .unwrap();
        world.tick();
        assert!(!world.view(lease).low_balance);
    }
    // 100 000 at 406 944 an hour last 884.6 s.
    assert_eq!(
        (second, world.phase(lease)),
        (885, Phase::Closing(EndCause::Budget))
    );
    world
        .report(lease, ContainerState::Gone, second * 1000)
        .unwrap();
    assert_eq!(world.view(lease).charged.total(), MicroUsd(100_000));
}

// peers 3.2 #37: neither side keeps a lease that the other has not.
#[test]
fn a_host_is_told_all_of_its_leases_until_they_are_gone() {
    let (mut world, lease) = lease_in("running");
    assert_eq!(want(&mut world, lease), Some(Want::Run(1)));
    world.act(lease, LeaseAction::End).unwrap();
    assert_eq!(want(&mut world, lease), Some(Want::End));
    let first = world.desk.goal(host_id(0)).sequence;
    world.report(lease, ContainerState::Gone, 0).unwrap();
    assert_eq!(want(&mut world, lease), None);
    assert!(world.desk.goal(host_id(0)).sequence > first);
}

#[test]
fn a_clock_that_jumps_ahead_loses_no_lease_and_bills_nothing() {
    let (mut world, lease) = lease_in("running");
    world.wait(7200);
    world.tick();
    world.tick();
    assert_eq!(world.phase(lease), Phase::Suspect);
    world.report(lease, ContainerState::Running, 5_000).unwrap();
    assert_eq!(world.phase(lease), Phase::Running);
    assert_eq!(world.view(lease).charged.total(), MicroUsd::ZERO);
}

#[test]
fn a_broker_that_was_away_for_an_hour_finds_its_leases_running() {
    for phase in ["running", "unreachable", "preparing", "resuming"] {
        let (mut world, lease) = lease_in(phase);
        world.wait(3600);
        world.restart(MarketSettings::default());
        world.tick();
        world.wait(60);
        world.tick();
        world.report(lease, ContainerState::Running, 0).unwrap();
        assert_eq!(world.phase(lease), Phase::Running, "{phase}");
        // And a host that does not come back is noticed as ever.
        world.wait(91);
        world.tick();
        assert_eq!(world.phase(lease), Phase::Suspect, "{phase}");
    }
}

#[test]
fn a_restart_bills_a_short_gap_and_not_a_long_one() {
    for (away, billed) in [(80, 90_000), (100, 0)] {
        let (mut world, lease) = lease_in("running");
        world.wait(10);
        // In memory only: the journal has the start of the lease.
        world
            .report(lease, ContainerState::Running, 10_000)
            .unwrap();
        world.restart(MarketSettings::default());
        assert_eq!(world.view(lease).running, Millis(0));
        world.wait(away);
        world
            .report(lease, ContainerState::Running, (10 + away) * 1000)
            .unwrap();
        assert_eq!(world.view(lease).running, Millis(billed), "away {away} s");
    }
}

fn want(world: &mut World, lease: LeaseId) -> Option<Want> {
    let goal = world.desk.goal(host_id(0));
    goal.leases
        .iter()
        .find(|goal| goal.lease == lease)
        .map(|goal| goal.want)
}
