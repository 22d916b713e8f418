//! What a broker may say of containers and hosts that it only hears of, and by which clock. One story each.

use super::lifecycle::lease_in;
use super::world::{Ask, World, broker_id, broker_key, host_id};
use protocol::filter::Filter;
use protocol::lease::{
    ContainerState, PauseCause, Phase, ProblemKind, Progress, Stage, StopReason,
};
use protocol::message::{Rejection, Search};
use protocol::order::LeaseAction;
use protocol::terms::{ContractKind, Need};
use protocol::units::{Bytes, MicroUsd, Millis, Seconds};

const STOPPED: ContainerState = ContainerState::Stopped(StopReason::Asked);
const HOUR: Millis = Millis(3_600_000);

#[test]
fn a_stop_says_that_the_container_runs_until_its_host_says_otherwise() {
    let (mut world, lease) = lease_in("running");
    world.act(lease, LeaseAction::Stop).unwrap();
    let view = world.view(lease);
    assert_eq!(view.phase, Phase::Paused(PauseCause::Renter));
    assert_eq!(view.container, Some(ContainerState::Running));
    world.wait(3);
    let _ = world.desk.take_changes();
    world.report(lease, STOPPED, 0).unwrap();
    let after = world.view(lease);
    assert_eq!(after.container, Some(STOPPED));
    // Whoever watches hears of it.
    assert!(after.revision > view.revision);
    assert_eq!(world.desk.take_changes().len(), 1);
    // The same again is no news.
    world.report(lease, STOPPED, 0).unwrap();
    assert!(world.desk.take_changes().is_empty());
}

#[test]
fn a_stop_of_one_run_says_nothing_about_the_next() {
    let (mut world, lease) = lease_in("stopped");
    world.report(lease, STOPPED, 0).unwrap();
    let late = world.report_command(lease, STOPPED, protocol::lease::Meters::default());
    world.act(lease, LeaseAction::Resume).unwrap();
    assert_eq!(world.view(lease).container, None);
    world.act(lease, LeaseAction::Stop).unwrap();
    world.handle(late).unwrap();
    assert_eq!(world.view(lease).container, None);
}

#[test]
fn the_progress_of_one_start_is_not_shown_in_the_next() {
    let (mut world, lease) = lease_in("preparing");
    let progress = Progress {
        lease,
        stage: Stage::Starting,
        done: Bytes(0),
        total: Bytes(0),
    };
    let (now, host) = (world.now, host_id(0));
    world.desk.progress(now, host, progress.clone()).unwrap();
    assert_eq!(world.view(lease).progress, Some(progress));
    world.report(lease, ContainerState::Running, 0).unwrap();
    world.act(lease, LeaseAction::Stop).unwrap();
    world.act(lease, LeaseAction::Resume).unwrap();
    assert_eq!(world.view(lease).progress, None);
}

#[test]
fn what_was_heard_before_a_restart_is_not_said_after_it() {
    let (mut world, lease) = lease_in("running");
    world.restart(crate::core::settings::MarketSettings::default());
    assert_eq!(world.view(lease).container, None);
    world.report(lease, ContainerState::Running, 0).unwrap();
    assert_eq!(world.view(lease).container, Some(ContainerState::Running));
}

#[test]
fn a_resume_that_the_host_does_not_take_up_is_a_stop_again_and_its_money_is_free() {
    let (mut world, lease) = lease_in("stopped");
    let stopped = world.view(lease).held;
    world.act(lease, LeaseAction::Resume).unwrap();
    // 400 000 and 50 GB × 100 000 / 720 for an hour.
    assert_eq!(world.view(lease).held, MicroUsd(406_944));
    world.wait(9);
    world.tick();
    assert_eq!(world.phase(lease), Phase::Preparing);
    world.wait(1);
    world.tick();
    let view = world.view(lease);
    let Phase::Paused(PauseCause::ResumeFailed(problem)) = view.phase else {
        panic!("{:?}", view.phase)
    };
    let (stage, kind) = (Stage::Granting, ProblemKind::HostSilent);
    assert_eq!((problem.stage, problem.kind), (stage, kind));
    assert_eq!(
        problem.detail.as_str(),
        "the host did not answer within the time that it has to accept"
    );
    assert!(view.held <= stopped, "{} of {stopped}", view.held);
    // The next resume is another run, and one that the host takes up has its whole time.
    world.act(lease, LeaseAction::Resume).unwrap();
    world.wait(5);
    let pulling = ContainerState::Preparing(Stage::Pulling);
    world.report(lease, pulling, 0).unwrap();
    world.wait(500);
    world.tick();
    assert_eq!(world.phase(lease), Phase::Preparing);
    world.report(lease, ContainerState::Running, 0).unwrap();
    assert_eq!(world.phase(lease), Phase::Running);
}

#[test]
fn a_resume_on_a_host_that_is_not_heard_is_refused_at_once() {
    let (mut world, lease) = lease_in("stopped");
    let held = world.view(lease).held;
    world.desk.withdraw(host_id(0));
    let resumed = world.act(lease, LeaseAction::Resume);
    assert_eq!(resumed, Err(Rejection::HostGone));
    assert_eq!(world.view(lease).held, held);
    world.announce();
    world.wait(91);
    let resumed = world.act(lease, LeaseAction::Resume);
    assert_eq!(resumed, Err(Rejection::HostGone));
}

#[test]
fn offers_stand_and_hosts_are_heard_by_the_clock_and_not_by_the_journal() {
    let mut world = World::with_a_fee_of_ten_percent();
    world.deposit(0, 100_000_000);
    world.run_ahead(HOUR);
    world.offer(0, Ask::default());
    world.tick();
    let clock = world.now.before(HOUR);
    let search = Search {
        filter: Filter::default(),
        sort: protocol::bounded::List::default(),
        need: Need::default(),
        kind: ContractKind::OnDemand,
        limit: 20,
        job: None,
    };
    assert_eq!(world.desk.search(world.now, &search).matching, 1);
    let rows = world.desk.hosts(world.now);
    assert_eq!((rows[0].offers, rows[0].heard_at), (1, Some(clock)));
    let order = world.order(0);
    let lease = world.running(0, order);
    // What the broker signs is fresh for those whose clocks are right.
    let goal = world.desk.goal(host_id(0));
    let award = goal.leases[0].award.sign(&broker_key());
    let award = award.verify_fresh(host_id(0).into(), clock);
    assert!(award.is_ok(), "{award:?}");
    let receipt = world.desk.receipt(world.now, host_id(0).into(), lease);
    let receipt = receipt.unwrap().verify_fresh(broker_id().into(), clock);
    assert!(receipt.is_ok(), "{receipt:?}");
    // Time passes in the books, so it is billed, once.
    world.wait(60);
    world
        .report(lease, ContainerState::Running, 60_000)
        .unwrap();
    assert_eq!(world.view(lease).running, Millis(60_000));
    world.act(lease, LeaseAction::Stop).unwrap();
    world.announce();
    world.act(lease, LeaseAction::Resume).unwrap();
    // And offers expire as ever: 90 s after they were signed.
    world.wait(90);
    assert_eq!(world.desk.search(world.now, &search).of, 0);
}

#[test]
fn a_command_is_remembered_although_the_journal_is_ahead() {
    let (mut world, lease) = lease_in("running");
    world.run_ahead(HOUR);
    world.announce();
    let stop = world.act_command(lease, LeaseAction::Stop);
    world.handle(stop.clone()).unwrap();
    world.act(lease, LeaseAction::Resume).unwrap();
    world.report(lease, ContainerState::Running, 0).unwrap();
    world.wait(Seconds(200).0);
    world.deposit(0, 1);
    // The very same command again, still fresh by the clock, is no second stop.
    world.handle(stop).unwrap();
    assert_eq!(world.phase(lease), Phase::Running);
}

#[test]
fn a_report_at_the_end_of_the_first_ten_minutes_does_not_let_the_higher_bid_wait_on() {
    let mut world = World::with_a_fee_of_ten_percent();
    world.offer(0, Ask::gpus(1, 400_000, Some(100_000)));
    let mut bid = |renter: u8, bid: u64| {
        world.deposit(renter, 1_000_000);
        let deal = world.interruptible(bid);
        let order = world.deal(0, deal, 1);
        let lease = world.place(renter, order).unwrap();
        world.follow();
        // Nothing else comes due with the end of the ten minutes.
        world.wait(7);
        lease
    };
    let (low, high) = (bid(1, 150_000), bid(2, 300_000));
    world.pass(580);
    assert_eq!(
        (world.phase(low), world.phase(high)),
        (Phase::Running, Phase::Resting)
    );
    world.wait(8);
    world.report(low, ContainerState::Running, 602_000).unwrap();
    world.tick();
    assert!(
        matches!(world.phase(low), Phase::Noticed(PauseCause::Outbid, _)),
        "{:?}",
        world.phase(low)
    );
}
