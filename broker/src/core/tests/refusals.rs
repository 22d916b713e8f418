//! What the market refuses, and that a repeat is no second effect.

use super::world::{Ask, World, host_id, host_key, renter_id, renter_key};
use crate::core::command::{Answer, Command};
use protocol::bounded::List;
use protocol::ids::{Digest, OfferId, OrderId};
use protocol::lease::{ContainerState, Grant, Meters, Phase};
use protocol::message::Rejection;
use protocol::order::{LeaseAction, LeaseCommand, LeaseName, Order, Target};
use protocol::signed::{Envelope, Signed};
use protocol::units::{Bytes, MicroUsd, PricePerHour, Seconds};

fn world() -> World {
    let mut world = World::with_a_fee_of_ten_percent();
    world.deposit(0, 10_000_000);
    let limits = Ask {
        duration_max: Some(Seconds(7200)),
        disk_max: Bytes::from_gb(100),
        ..Ask::default()
    };
    world.offer(0, limits);
    world
}

/// The order with one thing changed is refused as said, and moves no money.
#[track_caller]
fn refused(change: impl FnOnce(&mut Order), rejection: Rejection) {
    let mut world = world();
    let mut order = world.order(0);
    change(&mut order);
    assert_eq!(world.place(0, order), Err(rejection));
    assert_eq!(
        world.desk.balance(renter_id(0)).available,
        MicroUsd(10_000_000)
    );
    assert_eq!(world.journal.len(), 1);
}

fn set_target(order: &mut Order, set: impl FnOnce(&mut OfferId, &mut Digest)) {
    if let Target::Offer { offer, terms } = &mut order.target {
        set(offer, terms);
    }
}

fn bad(field: &str, problem: &str) -> Rejection {
    crate::core::order::bad_value(field, problem)
}

#[test]
fn orders_that_cannot_be() {
    refused(
        |order| set_target(order, |_, terms| *terms = Digest::of(b"other")),
        Rejection::OfferChanged,
    );
    refused(
        |order| set_target(order, |offer, _| *offer = OfferId::from_bytes([0; 16])),
        Rejection::OfferGone,
    );
    refused(
        |order| order.price_max = PricePerHour(406_943),
        Rejection::PriceAboveLimit {
            price: MicroUsd(406_944),
            allowed: MicroUsd(406_943),
        },
    );
    refused(
        |order| order.disk = Bytes::from_gb(101),
        Rejection::DiskTooLarge {
            asked: Bytes::from_gb(101),
            allowed: Bytes::from_gb(100),
        },
    );
    refused(
        |order| order.duration_max = Some(Seconds(7201)),
        Rejection::TooLong {
            asked: Seconds(7201),
            allowed: Seconds(7200),
        },
    );
    refused(
        |order| order.budget = MicroUsd(0),
        bad("budget", "it must be more than nothing"),
    );
    refused(
        |order| order.duration_max = Some(Seconds(0)),
        bad("duration", "it must be at least one second"),
    );
    refused(
        |order| order.name = LeaseName::new("a b").unwrap(),
        bad("name", "letters, digits and hyphens are wanted"),
    );
    for name in ["l-00000000000000000000000000", "l-abcd", "r-x", "verify"] {
        refused(
            |order| order.name = LeaseName::new(name).unwrap(),
            bad("name", "it could be taken for an id or a command"),
        );
    }
}

#[test]
fn money_that_is_not_there() {
    let mut world = world();
    let order = world.order(0);
    let needed = MicroUsd(406_944);
    let poor = Rejection::NotEnoughMoney {
        available: MicroUsd(0),
        needed,
    };
    assert_eq!(world.place(1, order.clone()), Err(poor));
    world.deposit(1, 406_944);
    assert!(world.place(1, order).is_ok());
    assert_eq!(world.desk.balance(renter_id(1)).available, MicroUsd(0));
}

#[test]
fn a_small_budget_is_held_as_it_is() {
    let mut world = world();
    let mut order = world.order(0);
    order.budget = MicroUsd(1000);
    let lease = world.place(0, order).unwrap();
    assert_eq!(world.view(lease).held, MicroUsd(1000));
}

#[test]
fn an_offer_without_a_longer_duration_gives_its_own() {
    let mut world = world();
    let order = world.order(0);
    let lease = world.place(0, order).unwrap();
    assert_eq!(world.view(lease).duration_max, Some(Seconds(7200)));
}

#[test]
fn what_one_has_nobody_else_gets() {
    let mut world = world();
    let (first, second) = (world.order(0), world.order(0));
    world.place(0, first).unwrap();
    assert_eq!(world.place(0, second), Err(Rejection::OfferTaken));
}

#[test]
fn offers_go_with_time_and_with_their_host() {
    let mut world = world();
    let order = world.order(0);
    world.wait(91);
    assert_eq!(world.place(0, order), Err(Rejection::OfferGone));
    world.announce();
    let order = world.order(0);
    world.desk.withdraw(host_id(0));
    assert_eq!(world.place(0, order), Err(Rejection::OfferGone));
}

#[test]
fn a_name_is_one_open_lease() {
    let mut world = world();
    world.offer(1, Ask::default());
    let (mut first, mut second) = (world.order(0), world.order(1));
    first.name = LeaseName::new("mine").unwrap();
    second.name = first.name.clone();
    let lease = world.place(0, first).unwrap();
    let taken = Rejection::NameTaken(second.name.clone());
    assert_eq!(world.place(0, second.clone()), Err(taken));
    world.act(lease, LeaseAction::End).unwrap();
    assert!(world.place(0, second).is_ok());
}

// peers 3.2 #26: an order that is sent again and again is one lease.
#[test]
fn a_hundred_copies_are_one_lease() {
    let mut world = world();
    let order = world.order(0);
    let signed = world.sign(order.clone(), &renter_key(0));
    for _ in 0..100 {
        world
            .handle(Command::Order(Box::new(signed.clone())))
            .unwrap();
    }
    // Signed again, it is still the same order.
    let again = world.sign(order.clone(), &renter_key(0));
    world.handle(Command::Order(Box::new(again))).unwrap();
    let events: Vec<_> = world
        .journal
        .iter()
        .map(crate::core::event::Event::kind)
        .collect();
    assert_eq!(events, ["deposited", "matched"]);
    let mut other = order.clone();
    other.budget = MicroUsd(5);
    assert_eq!(world.place(0, other), Err(Rejection::IdReused));
    // The same id of another renter is another order.
    world.deposit(1, 1_000_000);
    assert_eq!(world.place(1, order), Err(Rejection::OfferTaken));
}

#[test]
fn an_order_is_known_after_its_lease_is_over() {
    let mut world = world();
    let order = world.order(0);
    let lease = world.place(0, order.clone()).unwrap();
    world.refuse(lease).unwrap();
    assert_eq!(world.place(0, order.clone()), Ok(lease));
    assert!(matches!(world.phase(lease), Phase::Closed(_)));
    let mut other = order;
    other.disk = Bytes::from_gb(1);
    assert_eq!(world.place(0, other), Err(Rejection::IdReused));
}

#[test]
fn another_statement_under_a_used_message_id_is_a_replay() {
    let mut world = world();
    world.offer(1, Ask::default());
    let first = world.order(0);
    let first = world.sign(first, &renter_key(0));
    world
        .handle(Command::Order(Box::new(first.clone())))
        .unwrap();
    let mut second = world.order(1);
    second.id = OrderId::from_bytes([77; 16]);
    let envelope = Envelope {
        audience: first.header().audience,
        message_id: first.header().message_id,
        issued: world.now,
        validity: Seconds(60),
    };
    let second = Signed::sign(second, &renter_key(0), envelope).unwrap();
    assert_eq!(
        world.handle(Command::Order(Box::new(second))),
        Err(Rejection::Replayed)
    );
}

#[test]
fn a_stop_that_comes_again_after_a_resume_stops_nothing() {
    let mut world = world();
    let order = world.order(0);
    let lease = world.running(0, order);
    let stop = world.act_command(lease, LeaseAction::Stop);
    world.handle(stop.clone()).unwrap();
    world.act(lease, LeaseAction::Resume).unwrap();
    assert!(matches!(world.handle(stop), Ok(Answer::Lease(_))));
    assert_eq!(world.phase(lease), Phase::Preparing);
}

#[test]
fn a_stop_without_effect_is_remembered_too() {
    let mut world = world();
    let order = world.order(0);
    let lease = world.running(0, order);
    world.act(lease, LeaseAction::Stop).unwrap();
    let second = world.act_command(lease, LeaseAction::Stop);
    world.handle(second.clone()).unwrap();
    world.act(lease, LeaseAction::Resume).unwrap();
    world.handle(second).unwrap();
    assert_eq!(world.phase(lease), Phase::Preparing);
}

#[test]
fn a_deposit_that_comes_twice_is_one() {
    let mut world = world();
    let deposit = world.deposit_command(0, 500);
    world.handle(deposit.clone()).unwrap();
    world.handle(deposit.clone()).unwrap();
    assert_eq!(
        world.desk.balance(renter_id(0)).available,
        MicroUsd(10_000_500)
    );
    let Command::Deposit {
        id, renter, memo, ..
    } = deposit
    else {
        panic!("not a deposit")
    };
    let other = Command::Deposit {
        id,
        renter,
        memo,
        amount: MicroUsd(501),
    };
    assert_eq!(world.handle(other), Err(Rejection::IdReused));
    for amount in [0, -1, i64::MAX] {
        let wrong = world.deposit_command(0, amount);
        assert!(
            matches!(world.handle(wrong), Err(Rejection::BadValue { .. })),
            "{amount}"
        );
    }
}

#[test]
fn only_the_renter_commands_and_only_the_host_reports() {
    let mut world = world();
    let order = world.order(0);
    let lease = world.running(0, order);
    let body = LeaseCommand {
        lease,
        action: LeaseAction::End,
    };
    let foreign = world.sign(body, &renter_key(1));
    assert_eq!(
        world.handle(Command::Lease(foreign)),
        Err(Rejection::UnknownLease)
    );
    let Command::Report(report) =
        world.report_command(lease, ContainerState::Gone, Meters::default())
    else {
        panic!("not a report")
    };
    let foreign = world.sign(report.body().clone(), &host_key(1));
    assert_eq!(
        world.handle(Command::Report(foreign)),
        Err(Rejection::UnknownLease)
    );
    assert_eq!(world.phase(lease), Phase::Running);
    let stranger = world.desk.receipt(world.now, renter_id(1).into(), lease);
    assert_eq!(stranger, Err(Rejection::UnknownLease));
}

#[test]
fn an_older_report_is_ignored() {
    let mut world = world();
    let order = world.order(0);
    let lease = world.running(0, order);
    let late = world.report_command(
        lease,
        ContainerState::Stopped(protocol::lease::StopReason::Exited(1)),
        Meters::default(),
    );
    world.report(lease, ContainerState::Running, 0).unwrap();
    assert_eq!(world.handle(late), Ok(Answer::Noted));
    assert_eq!(world.phase(lease), Phase::Running);
}

#[test]
fn a_grant_is_for_its_order_its_award_and_its_resources() {
    let mut world = world();
    let order = world.order(0);
    let lease = world.place(0, order).unwrap();
    let Command::Grant(good) = world.grant_command(lease) else {
        panic!("not a grant")
    };
    let wrong = [
        Grant {
            order: Digest::of(b"x"),
            ..good.body().clone()
        },
        Grant {
            award: Digest::of(b"x"),
            ..good.body().clone()
        },
        Grant {
            resources: List::default(),
            ..good.body().clone()
        },
    ];
    for grant in wrong {
        let signed = world.sign(grant, &host_key(0));
        let answer = world.handle(Command::Grant(signed));
        assert!(
            matches!(answer, Err(Rejection::BadValue { .. })),
            "{answer:?}"
        );
        assert_eq!(world.phase(lease), Phase::Offered);
    }
    world.handle(Command::Grant(good)).unwrap();
    assert_eq!(world.phase(lease), Phase::Accepted);
}

#[test]
fn a_resume_needs_money_and_a_host() {
    let mut world = World::with_a_fee_of_ten_percent();
    world.deposit(0, 410_000);
    world.offer(0, Ask::default());
    world.offer(1, Ask::default());
    let order = world.order(0);
    let lease = world.running(0, order);
    world.act(lease, LeaseAction::Stop).unwrap();
    // The hold shrank to an hour of storage, 6944; the rest, 403 056, is spent elsewhere.
    assert_eq!(world.view(lease).held, MicroUsd(6944));
    let mut other = world.order(1);
    other.budget = MicroUsd(300_000);
    world.place(0, other).unwrap();
    let missing = Rejection::NotEnoughMoney {
        available: MicroUsd(103_056),
        needed: MicroUsd(400_000),
    };
    assert_eq!(world.act(lease, LeaseAction::Resume), Err(missing));
    world.deposit(0, 296_944);
    world.desk.withdraw(host_id(0));
    assert_eq!(
        world.act(lease, LeaseAction::Resume),
        Err(Rejection::HostGone)
    );
    world.announce();
    world.act(lease, LeaseAction::Resume).unwrap();
    assert_eq!(world.view(lease).held, MicroUsd(406_944));
}
