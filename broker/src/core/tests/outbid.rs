//! Interruptible leases: R6 and examples I1, I2, C1 and C2 of the market rules.

mod bidding;
mod fallback;

use super::world::{Ask, START, World};
use crate::core::ledger::Account;
use protocol::ids::LeaseId;
use protocol::lease::{ContainerState, EndCause, PauseCause, Phase, StopReason, Want};
use protocol::message::Rejection;
use protocol::order::LeaseAction;
use protocol::terms::Deal;
use protocol::units::{MicroUsd, PricePerHour, Seconds};

/// GPUs at 400 000 each, interruptible from 100 000, and eight rich renters.
fn world(gpus: u16) -> World {
    let mut world = World::with_a_fee_of_ten_percent();
    for renter in 0..8 {
        world.deposit(renter, 100_000_000);
    }
    world.offer(0, Ask::gpus(gpus, 400_000, Some(100_000)));
    world
}

fn bid(world: &mut World, renter: u8, bid: u64, gpus: u16) -> LeaseId {
    let deal = world.interruptible(bid);
    let order = world.deal(0, deal, gpus);
    let lease = world.place(renter, order).unwrap();
    world.follow();
    lease
}

fn on_demand(world: &mut World, renter: u8, gpus: u16) -> LeaseId {
    let order = world.deal(0, Deal::OnDemand, gpus);
    let lease = world.place(renter, order).unwrap();
    world.follow();
    lease
}

fn charged(world: &World, lease: LeaseId) -> MicroUsd {
    world.view(lease).charged.total()
}

fn at(second: u64) -> protocol::units::Timestamp {
    START.after(Seconds(second).millis())
}

#[test]
fn i1_the_whole_timeline() {
    let mut world = world(1);
    // t = 0: R1 at 150 000 runs.
    let r1 = bid(&mut world, 1, 150_000, 1);
    assert_eq!(world.phase(r1), Phase::Running);
    // t = 900: R2 at 151 000 waits: 151 500 are needed.
    world.until(900);
    let r2 = bid(&mut world, 2, 151_000, 1);
    let view = world.view(r2);
    assert_eq!(view.phase, Phase::Resting);
    assert_eq!(view.to_win, Some(PricePerHour(151_500)));
    assert_eq!(view.held, MicroUsd(151_000));
    // t = 1200: R3 at 160 000: notice to R1, which stops at 1320.
    world.until(1200);
    let r3 = bid(&mut world, 3, 160_000, 1);
    let notice = Phase::Noticed(PauseCause::Outbid, at(1320));
    assert_eq!(world.phase(r1), notice);
    assert_eq!(world.phase(r3), Phase::Clearing(at(1320)));
    world.until(1310);
    assert_eq!(world.phase(r1), notice);
    world.until(1320);
    assert_eq!(world.phase(r1), Phase::Paused(PauseCause::Outbid));
    assert_eq!(charged(&world, r1), MicroUsd(55_000));
    assert_eq!(world.phase(r3), Phase::Running);
    assert_eq!(world.view(r3).started_at, Some(at(1320)));
    // t = 5000: on demand at 400 000: notice to R3, which stops at 5120.
    world.until(5000);
    let firm = on_demand(&mut world, 4, 1);
    let notice = Phase::Noticed(PauseCause::Preempted, at(5120));
    assert_eq!(world.phase(r3), notice);
    world.until(5120);
    assert_eq!(world.phase(r3), Phase::Paused(PauseCause::Preempted));
    assert_eq!(charged(&world, r3), MicroUsd(168_888));
    assert_eq!(world.phase(firm), Phase::Running);
    // t = 12 320: it ends after 7200 s; R3 resumes before R2 and R1.
    world.until(12_320);
    world.act(firm, LeaseAction::End).unwrap();
    world.follow();
    assert_eq!(charged(&world, firm), MicroUsd(800_000));
    assert_eq!(world.phase(r3), Phase::Running);
    assert_eq!(world.phase(r2), Phase::Resting);
    assert_eq!(world.phase(r1), Phase::Paused(PauseCause::Outbid));
    // And when it ends, R2, then R1.
    world.act(r3, LeaseAction::End).unwrap();
    world.follow();
    assert_eq!(world.phase(r2), Phase::Running);
    world.act(r2, LeaseAction::End).unwrap();
    world.follow();
    assert_eq!(world.phase(r1), Phase::Running);
    world.pass(3600);
    assert_eq!(charged(&world, r1), MicroUsd(55_000 + 150_000));
}

#[test]
fn i2_who_is_preempted_within_the_first_ten_minutes_pays_nothing() {
    let mut world = world(1);
    let lease = bid(&mut world, 1, 160_000, 1);
    world.pass(420);
    // 160 000 × 420 / 3600.
    assert_eq!(charged(&world, lease), MicroUsd(18_666));
    on_demand(&mut world, 2, 1);
    assert_eq!(charged(&world, lease), MicroUsd::ZERO);
    world.pass(120);
    // It would be 24 000.
    assert_eq!(world.phase(lease), Phase::Paused(PauseCause::Preempted));
    assert_eq!(charged(&world, lease), MicroUsd::ZERO);
    let ledger = world.desk.market().ledger();
    assert_eq!(ledger.balance(&Account::HostPending(lease)), MicroUsd::ZERO);
    assert_eq!(ledger.balance(&Account::BrokerFee), MicroUsd::ZERO);
}

#[test]
fn i2_the_run_after_a_free_one_costs_its_bid_again() {
    let mut world = world(1);
    let lease = bid(&mut world, 1, 160_000, 1);
    world.pass(420);
    let firm = on_demand(&mut world, 2, 1);
    world.pass(3600);
    world.act(firm, LeaseAction::End).unwrap();
    world.follow();
    assert_eq!(world.phase(lease), Phase::Running);
    world.pass(3600);
    assert_eq!(charged(&world, lease), MicroUsd(160_000));
    // A second preemption, after ten minutes of this run, is paid: with its notice 3720 s.
    on_demand(&mut world, 3, 1);
    world.pass(120);
    assert_eq!(charged(&world, lease), MicroUsd(165_333));
}

#[test]
fn i2_a_second_short_run_is_free_and_the_first_is_paid() {
    let mut world = world(1);
    let lease = bid(&mut world, 1, 160_000, 1);
    world.pass(1800);
    let firm = on_demand(&mut world, 2, 1);
    world.pass(600);
    world.act(firm, LeaseAction::End).unwrap();
    world.pass(300);
    // 1920 s and 300 s.
    assert_eq!(charged(&world, lease), MicroUsd(98_666));
    on_demand(&mut world, 3, 1);
    world.pass(120);
    assert_eq!(charged(&world, lease), MicroUsd(85_333));
}

#[test]
fn r6_nobody_is_outbid_in_the_first_ten_minutes_and_who_bid_more_gets_it_then() {
    let mut world = world(1);
    let first = bid(&mut world, 1, 150_000, 1);
    world.pass(10);
    let second = bid(&mut world, 2, 300_000, 1);
    assert_eq!(world.phase(second), Phase::Resting);
    assert_eq!(world.view(second).to_win, None);
    world.pass(580);
    assert_eq!(world.phase(first), Phase::Running);
    world.pass(10);
    assert_eq!(
        world.phase(first),
        Phase::Noticed(PauseCause::Outbid, at(720))
    );
    assert_eq!(world.phase(second), Phase::Clearing(at(720)));
    world.pass(120);
    assert_eq!(world.phase(second), Phase::Running);
    // 720 s at 150 000.
    assert_eq!(charged(&world, first), MicroUsd(30_000));
}

#[test]
fn r6_a_bid_below_the_floor_is_refused_with_the_floor() {
    let mut world = world(1);
    let deal = world.interruptible(99_999);
    let order = world.deal(0, deal, 1);
    let refused = world.place(1, order).unwrap_err();
    let Rejection::BidTooLow { bid, needed, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!((bid.0, needed.0), (99_999, 100_000));
    world.offer(1, Ask::gpus(1, 400_000, None));
    let deal = world.interruptible(300_000);
    let order = world.deal(1, deal, 1);
    let refused = world.place(1, order).unwrap_err();
    assert!(matches!(refused, Rejection::NotSold(_)), "{refused}");
}

#[test]
fn r6_the_earlier_of_two_equal_bids_comes_first_and_a_higher_floor_pushes_nobody_out() {
    let mut world = world(1);
    let firm = on_demand(&mut world, 0, 1);
    let first = bid(&mut world, 1, 150_000, 1);
    let second = bid(&mut world, 2, 150_000, 1);
    world.act(firm, LeaseAction::End).unwrap();
    world.follow();
    assert_eq!(world.phase(first), Phase::Running);
    assert_eq!(world.phase(second), Phase::Resting);
    world.asks[0].2.sales.floor = Some(PricePerHour(200_000));
    world.pass(1200);
    assert_eq!(world.phase(first), Phase::Running);
    assert_eq!(world.view(first).prices.compute, PricePerHour(150_000));
    assert_eq!(world.phase(second), Phase::Resting);
}

/// Market rules, C1 and C2: greedy with skip, each pays its bid.
#[test]
fn c1_and_c2_bids_are_served_by_amount_and_who_does_not_fit_is_passed_over() {
    let mut world = world(4);
    let firm = on_demand(&mut world, 0, 4);
    let wanted = [
        (310_000, 2),
        (250_000, 1),
        (240_000, 2),
        (180_000, 1),
        (120_000, 1),
    ];
    let mut bids = Vec::new();
    for (renter, (amount, gpus)) in (1..).zip(wanted) {
        bids.push(bid(&mut world, renter, amount, gpus));
    }
    world.act(firm, LeaseAction::End).unwrap();
    world.follow();
    let phases = |world: &World| -> Vec<&'static str> {
        bids.iter()
            .map(|lease| world.phase(*lease).word())
            .collect()
    };
    let served = ["running", "running", "resting", "running", "resting"];
    assert_eq!(phases(&world), served);
    let earned: u64 = bids
        .iter()
        .filter(|lease| world.phase(**lease) == Phase::Running)
        .map(|lease| world.view(*lease).prices.compute.0)
        .sum();
    assert_eq!(earned, 1_050_000);
    // c bids 480 000 in all for what b and d pay 430 000 for, and b bid more: it stays so.
    world.pass(3600);
    assert_eq!(phases(&world), served);
    // b's bid and its step.
    assert_eq!(world.view(bids[2]).to_win, Some(PricePerHour(252_500)));
    let spent: i64 = bids.iter().map(|lease| charged(&world, *lease).0).sum();
    assert_eq!(spent, 1_050_000);
}

#[test]
fn r6_the_cheapest_set_goes_and_what_is_left_over_is_served() {
    let mut world = world(4);
    let pair = bid(&mut world, 1, 120_000, 2);
    let one = bid(&mut world, 2, 130_000, 1);
    let other = bid(&mut world, 3, 140_000, 1);
    world.pass(600);
    // Two GPUs: the pair pays 240 000, the two others 270 000.
    let firm = on_demand(&mut world, 4, 2);
    assert!(matches!(world.phase(pair), Phase::Noticed(..)));
    assert_eq!(world.phase(one), Phase::Running);
    // A third: 130 000 is the least now.
    let next = on_demand(&mut world, 5, 1);
    assert!(matches!(world.phase(one), Phase::Noticed(..)));
    assert_eq!(world.phase(other), Phase::Running);
    world.pass(120);
    for lease in [firm, next, other] {
        assert_eq!(world.phase(lease), Phase::Running);
    }
    // One free GPU is no use to the pair; the single one is served on its own, and no other.
    world.act(next, LeaseAction::End).unwrap();
    world.follow();
    assert_eq!(world.phase(one), Phase::Running);
    assert_eq!(world.phase(pair), Phase::Paused(PauseCause::Preempted));
}

#[test]
fn r6_the_disk_of_a_lease_that_was_pushed_out_is_kept_and_billed_for_48_hours() {
    let mut world = World::with_a_fee_of_ten_percent();
    world.deposit(1, 100_000_000);
    world.deposit(2, 100_000_000);
    let mut ask = Ask::gpus(1, 400_000, Some(100_000));
    ask.prices.storage.0 = 100_000;
    world.offer(0, ask);
    let deal = world.interruptible(150_000);
    let mut order = world.deal(0, deal, 1);
    order.disk = protocol::units::Bytes::from_gb(50);
    let lease = world.place(1, order).unwrap();
    world.follow();
    world.pass(600);
    on_demand(&mut world, 2, 1);
    world.pass(120);
    let paused = world.view(lease);
    assert_eq!(paused.phase, Phase::Paused(PauseCause::Preempted));
    assert_eq!(paused.disk_until, Some(at(720 + 48 * 3600)));
    world.pass(48 * 3600 - 10);
    assert_eq!(world.phase(lease).word(), "stopped");
    world.pass(10);
    assert_eq!(world.phase(lease), Phase::Closed(EndCause::DiskExpired));
    // 150 000 × 720 / 3600 and floor(50 × 100 000 × 173 520 / 2 592 000).
    let view = world.view(lease);
    assert_eq!(view.charged.compute, MicroUsd(30_000));
    assert_eq!(view.charged.storage, MicroUsd(334_722));
}

#[test]
fn a_container_that_leaves_early_makes_room_early_and_pays_for_what_it_ran() {
    let mut world = world(1);
    let lease = bid(&mut world, 1, 150_000, 1);
    world.pass(1200);
    let firm = on_demand(&mut world, 2, 1);
    world.wait(30);
    let goal = world.desk.goal(super::world::host_id(0));
    let wants: Vec<Want> = goal.leases.iter().map(|goal| goal.want).collect();
    assert!(
        matches!(wants[..], [Want::Vacate(vacate)] if vacate.by == at(1320) && !vacate.outbid),
        "{wants:?}"
    );
    let vacated = ContainerState::Stopped(StopReason::Vacated);
    world.report(lease, vacated, 1_230_000).unwrap();
    assert_eq!(world.phase(lease), Phase::Paused(PauseCause::Preempted));
    assert_eq!(world.phase(firm), Phase::Offered);
    assert_eq!(charged(&world, lease), MicroUsd(51_250));
}

#[test]
fn a_silent_host_is_not_paid_for_what_runs_on_after_a_notice() {
    let mut world = world(1);
    let lease = bid(&mut world, 1, 150_000, 1);
    world.pass(1200);
    on_demand(&mut world, 2, 1);
    // Nothing is heard for 130 s; then the host claims all of it.
    world.wait(60);
    world
        .report(lease, ContainerState::Running, 1_260_000)
        .unwrap();
    world.wait(70);
    world.tick();
    assert_eq!(world.phase(lease), Phase::Paused(PauseCause::Preempted));
    let vacated = ContainerState::Stopped(StopReason::Vacated);
    world.report(lease, vacated, 1_330_000).unwrap();
    assert_eq!(charged(&world, lease), MicroUsd(55_000));
}

// peers 3.2 #21, #22: that a bid lost is a state, and reaches who watches with the event.
#[test]
fn the_state_outbid_reaches_who_watches_with_the_event() {
    // 21. dstack#4036, 22. dstack#2732: the interruption was not noticed for 2 to 20 minutes.
    let mut world = world(1);
    let lease = bid(&mut world, 1, 150_000, 1);
    world.pass(600);
    world.desk.take_changes();
    let before = world.view(lease).revision;
    bid(&mut world, 2, 160_000, 1);
    let changes = world.desk.take_changes();
    let change = changes.iter().find(|change| change.lease == lease).unwrap();
    assert!(change.revision > before && change.goal);
    assert_eq!(world.view(lease).phase.word(), "noticed");
}

#[test]
fn r6_a_firm_lease_comes_before_a_bid_that_waits_for_the_room_that_it_won() {
    let mut world = world(1);
    let first = bid(&mut world, 1, 150_000, 1);
    world.pass(600);
    let second = bid(&mut world, 2, 160_000, 1);
    world.pass(60);
    let held = world.view(second).held;
    let firm = on_demand(&mut world, 3, 1);
    // It waits as before, with its money held; who had notice goes when it would have.
    let view = world.view(second);
    assert_eq!((view.phase, view.place), (Phase::Resting, None));
    assert_eq!(view.held, held);
    assert_eq!(
        world.phase(first),
        Phase::Noticed(PauseCause::Outbid, at(720))
    );
    assert_eq!(world.phase(firm), Phase::Clearing(at(720)));
    world.pass(60);
    assert_eq!(world.phase(firm), Phase::Running);
    world.act(firm, LeaseAction::End).unwrap();
    world.follow();
    assert_eq!(world.phase(second), Phase::Running);
    assert_eq!(world.desk.market(), &world.replayed());
}
