//! Bids that rest until a price comes down to them: R5 and example B1 of the market rules.

use super::world::{Ask, World, renter_id};
use crate::core::ledger::Account;
use protocol::ids::LeaseId;
use protocol::lease::{EndCause, Phase};
use protocol::message::Rejection;
use protocol::order::{LeaseAction, Target};
use protocol::terms::{ContractKind, Deal};
use protocol::units::{MicroUsd, PricePerHour, Seconds};

/// One GPU at 420 000, three bids for it by three renters: 380 000, 400 000, 400 000.
fn b1() -> (World, [LeaseId; 3]) {
    let mut world = World::with_a_fee_of_ten_percent();
    world.offer(0, Ask::gpus(1, 420_000, None));
    let mut bids = [LeaseId::from_bytes([0; 16]); 3];
    for (renter, limit) in (0..).zip([380_000, 400_000, 400_000]) {
        world.deposit(renter, 10_000_000);
        let deal = world.bid(limit);
        let order = world.deal(0, deal, 1);
        bids[usize::from(renter)] = world.place(renter, order).unwrap();
    }
    (world, bids)
}

fn held(world: &World, lease: LeaseId) -> MicroUsd {
    world.desk.market().held(lease)
}

fn available(world: &World, renter: u8) -> MicroUsd {
    world.desk.market().available(renter_id(renter))
}

#[test]
fn b1_the_higher_bid_then_the_earlier_is_bought_at_the_ask_when_it_comes_down() {
    let (mut world, [first, second, third]) = b1();
    for lease in [first, second, third] {
        let view = world.view(lease);
        assert_eq!((view.phase, view.place), (Phase::Resting, None));
    }
    assert_eq!(held(&world, second), MicroUsd(400_000));
    world.reprice(0, 410_000);
    assert_eq!(world.phase(second), Phase::Resting);
    world.wait(1);
    world.reprice(0, 390_000);
    assert_eq!(world.phase(first), Phase::Resting);
    assert_eq!(world.phase(third), Phase::Resting);
    let view = world.view(second);
    assert_eq!(view.phase, Phase::Offered);
    assert_eq!(view.kind, ContractKind::Bid);
    assert_eq!(view.prices.compute, PricePerHour(390_000));
    // An hour at the limit was held: 10 000 of it are free again.
    assert_eq!(held(&world, second), MicroUsd(390_000));
    assert_eq!(available(&world, 1), MicroUsd(10_000_000 - 390_000));
    world.pass(7200);
    world.act(second, LeaseAction::End).unwrap();
    assert_eq!(world.view(second).charged.total(), MicroUsd(780_000));
    assert_eq!(world.phase(third), Phase::Resting);
    // Its host says that it is gone, and the next is served at the same price.
    world.follow();
    let view = world.view(third);
    assert_eq!(view.phase, Phase::Running);
    assert_eq!(view.prices.compute, PricePerHour(390_000));
    assert_eq!(world.phase(first), Phase::Resting);
    assert_eq!(held(&world, first), MicroUsd(380_000));
    assert_eq!(held(&world, second), MicroUsd::ZERO);
    let ledger = world.desk.market().ledger();
    assert_eq!(
        ledger.balance(&Account::HostPending(second)),
        MicroUsd(702_000)
    );
}

#[test]
fn r5_a_bid_at_or_above_the_ask_is_bought_at_once_at_the_ask() {
    let (mut world, _) = b1();
    world.deposit(5, 10_000_000);
    let deal = world.bid(500_000);
    let order = world.deal(0, deal, 1);
    let lease = world.place(5, order).unwrap();
    let view = world.view(lease);
    assert_eq!(view.phase, Phase::Offered);
    assert_eq!(view.prices.compute, PricePerHour(420_000));
    assert_eq!(held(&world, lease), MicroUsd(420_000));
}

// peers 3.2 #43: a place is free when its lease is over, not when it would have been.
#[test]
fn r5_a_bid_rests_while_what_it_could_buy_is_taken_and_is_served_when_that_is_free() {
    let (mut world, _) = b1();
    world.deposit(5, 10_000_000);
    let order = world.deal(0, Deal::OnDemand, 1);
    let taker = world.place(5, order).unwrap();
    world.follow();
    world.deposit(6, 10_000_000);
    let deal = world.bid(450_000);
    let order = world.deal(0, deal, 1);
    let waits = world.place(6, order).unwrap();
    assert_eq!(world.phase(waits), Phase::Resting);
    world.act(taker, LeaseAction::Stop).unwrap();
    assert_eq!(world.phase(waits), Phase::Offered);
}

#[test]
fn r5_a_bid_for_any_offer_takes_the_cheapest_and_waits_for_new_ones() {
    let mut world = World::with_a_fee_of_ten_percent();
    world.deposit(0, 10_000_000);
    world.offer(0, Ask::gpus(1, 500_000, None));
    let any = Target::Any("gpu=rtx4090".parse().unwrap());
    let deal = world.bid(450_000);
    let mut order = world.deal(0, deal, 1);
    order.target = any;
    let lease = world.place(0, order).unwrap();
    assert_eq!(world.phase(lease), Phase::Resting);
    // Both appear in one breath of the clock, one after the other: the first that fits is taken.
    world.offer(1, Ask::gpus(2, 440_000, None));
    let view = world.view(lease);
    assert_eq!(view.phase, Phase::Offered);
    assert_eq!(view.prices.compute, PricePerHour(440_000));
}

#[test]
fn a_bid_that_rests_ends_when_it_should_and_gives_its_hold_back() {
    let (mut world, [first, ..]) = b1();
    for _ in 0..8640 {
        world.wait(10);
        world.tick();
    }
    assert_eq!(world.phase(first), Phase::Closed(EndCause::BidExpired));
    assert_eq!(held(&world, first), MicroUsd::ZERO);
    assert_eq!(available(&world, 0), MicroUsd(10_000_000));
    let balance = world.desk.balance(renter_id(0));
    assert_eq!(balance.held, MicroUsd::ZERO);
}

// peers 3.2 #32: a bid that is over keeps no deposit.
#[test]
fn a_bid_that_rests_is_withdrawn_and_its_name_is_free_again() {
    let (mut world, [first, ..]) = b1();
    let name = world.view(first).name;
    world.act(first, LeaseAction::End).unwrap();
    assert_eq!(world.phase(first), Phase::Closed(EndCause::Renter));
    assert_eq!(available(&world, 0), MicroUsd(10_000_000));
    // Twice is once.
    world.act(first, LeaseAction::End).unwrap();
    let deal = world.bid(380_000);
    let mut order = world.deal(0, deal, 1);
    order.name = name;
    assert!(world.place(0, order).is_ok());
}

#[test]
fn a_bid_that_rests_is_raised_and_served_at_once_or_lowered_and_its_hold_fitted() {
    let (mut world, [first, second, _]) = b1();
    let lower = LeaseAction::SetBid(PricePerHour(300_000));
    world.act(second, lower).unwrap();
    assert_eq!(held(&world, second), MicroUsd(300_000));
    assert_eq!(world.view(second).bid, Some(PricePerHour(300_000)));
    let higher = LeaseAction::SetBid(PricePerHour(425_000));
    world.act(first, higher).unwrap();
    assert_eq!(world.phase(first), Phase::Offered);
    assert_eq!(held(&world, first), MicroUsd(420_000));
    // The order's own limit on an hour, 5 000 000, bounds what is held.
    world
        .act(second, LeaseAction::SetBid(PricePerHour(20_000_000)))
        .unwrap();
    assert_eq!(held(&world, second), MicroUsd(5_000_000));
    assert_eq!(world.phase(second), Phase::Resting);
}

#[test]
fn a_bid_for_less_than_nothing_or_for_ever_is_refused() {
    let mut world = World::with_a_fee_of_ten_percent();
    world.deposit(0, 10_000_000);
    world.offer(0, Ask::gpus(1, 420_000, Some(100_000)));
    let limits = [0, u64::MAX, 1_000_000_000_001];
    for limit in limits {
        for deal in [world.bid(limit), world.interruptible(limit)] {
            let order = world.deal(0, deal, 1);
            let refused = world.place(0, order).unwrap_err();
            assert!(matches!(refused, Rejection::BadValue { .. }), "{refused}");
        }
    }
    for until in [world.now, world.now.after(Seconds(91 * 86_400).millis())] {
        let limit = PricePerHour(1000);
        let order = world.deal(0, Deal::Bid { limit, until }, 1);
        let refused = world.place(0, order).unwrap_err();
        assert!(matches!(refused, Rejection::BadValue { .. }), "{refused}");
    }
    assert_eq!(available(&world, 0), MicroUsd(10_000_000));
    assert_eq!(world.journal.len(), 1);
}

#[test]
fn a_bid_without_the_money_for_an_hour_is_refused() {
    let mut world = World::with_a_fee_of_ten_percent();
    world.deposit(0, 399_999);
    world.offer(0, Ask::gpus(1, 420_000, None));
    let deal = world.bid(400_000);
    let order = world.deal(0, deal, 1);
    let poor = Rejection::NotEnoughMoney {
        available: MicroUsd(399_999),
        needed: MicroUsd(400_000),
    };
    assert_eq!(world.place(0, order), Err(poor));
}

#[test]
fn a_repeat_of_a_bid_is_the_same_bid() {
    let (mut world, _) = b1();
    let deal = world.bid(390_000);
    let order = world.deal(0, deal, 1);
    let first = world.place(0, order.clone()).unwrap();
    assert_eq!(world.place(0, order.clone()), Ok(first));
    let mut other = order;
    other.disk = protocol::units::Bytes(1);
    assert_eq!(world.place(0, other), Err(Rejection::IdReused));
    assert_eq!(held(&world, first), MicroUsd(390_000));
}
