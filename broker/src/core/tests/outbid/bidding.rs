//! Bids that their renters change or take back.

use super::{bid, charged, world};
use crate::core::tests::world::{host_id, renter_id};
use protocol::lease::{EndCause, PauseCause, Phase, Want};
use protocol::message::Rejection;
use protocol::order::LeaseAction;
use protocol::units::{MicroUsd, PricePerHour};

#[test]
fn a_bid_is_raised_and_lowered_while_it_runs_and_each_stretch_costs_its_own() {
    let mut world = world(1);
    let lease = bid(&mut world, 1, 150_000, 1);
    world.pass(3600);
    let to = |bid| LeaseAction::SetBid(PricePerHour(bid));
    world.act(lease, to(200_000)).unwrap();
    assert_eq!(world.view(lease).prices.compute, PricePerHour(200_000));
    assert_eq!(world.view(lease).held, MicroUsd(200_000));
    world.pass(3600);
    world.act(lease, to(100_000)).unwrap();
    world.pass(1800);
    assert_eq!(charged(&world, lease), MicroUsd(150_000 + 200_000 + 50_000));
    let refused = world.act(lease, to(99_999)).unwrap_err();
    assert!(matches!(refused, Rejection::BidTooLow { .. }), "{refused}");
    // Lowered below another's: outbid by it.
    let other = bid(&mut world, 2, 101_000, 1);
    assert_eq!(world.phase(other).word(), "clearing");
    assert_eq!(world.phase(lease).word(), "noticed");
}

#[test]
fn a_bid_that_is_raised_while_stopped_wins_its_own_resources_back() {
    let mut world = world(1);
    let first = bid(&mut world, 1, 150_000, 1);
    world.pass(600);
    let second = bid(&mut world, 2, 160_000, 1);
    world.pass(120 + 600);
    assert_eq!(world.phase(second), Phase::Running);
    let view = world.view(first);
    assert_eq!(view.phase, Phase::Paused(PauseCause::Outbid));
    assert_eq!(view.to_win, Some(PricePerHour(161_600)));
    world
        .act(first, LeaseAction::SetBid(PricePerHour(161_599)))
        .unwrap();
    assert_eq!(world.phase(first).word(), "stopped");
    world
        .act(first, LeaseAction::SetBid(PricePerHour(161_600)))
        .unwrap();
    assert_eq!(world.phase(first).word(), "clearing");
    // Its disk is there: its host keeps it, and is not told to run it yet.
    let goal = world.desk.goal(host_id(0));
    let own = goal.leases.iter().find(|goal| goal.lease == first).unwrap();
    assert_eq!(own.want, Want::Stop);
    world.pass(120);
    assert_eq!(world.phase(first), Phase::Running);
    assert_eq!(world.desk.market().lease(first).unwrap().run, 2);
    assert_eq!(world.phase(second), Phase::Paused(PauseCause::Outbid));
    // 720 s at 150 000, and the run of now at 161 600.
    world.pass(3600);
    assert_eq!(charged(&world, first), MicroUsd(30_000 + 161_600));
}

#[test]
fn a_challenger_that_is_withdrawn_leaves_those_who_went_to_come_back() {
    let mut world = world(1);
    let first = bid(&mut world, 1, 150_000, 1);
    world.pass(600);
    let second = bid(&mut world, 2, 160_000, 1);
    world.act(second, LeaseAction::End).unwrap();
    assert_eq!(world.phase(second), Phase::Closed(EndCause::Renter));
    let held = world.desk.balance(renter_id(2)).held;
    assert_eq!(held, MicroUsd::ZERO);
    world.pass(120);
    assert_eq!(world.phase(first), Phase::Running);
    assert_eq!(world.desk.market().lease(first).unwrap().run, 2);
}
