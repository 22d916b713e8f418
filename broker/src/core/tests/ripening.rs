//! What a host earned becomes free, all of it and not before its time, whatever is given back meanwhile.

use super::world::{Ask, World, host_id, renter_id};
use crate::core::command::{Answer, Command};
use crate::core::ledger::Account;
use crate::core::payment::{MoneyOrder, Note, PaymentKind, Payout};
use crate::core::settings::MarketSettings;
use protocol::ids::{LeaseId, PaymentId};
use protocol::lease::{ContainerState, PauseCause, Phase, StopReason};
use protocol::order::LeaseAction;
use protocol::terms::Deal;
use protocol::units::{BasisPoints, MicroUsd, Seconds};

const WINDOW: u64 = 6 * 3600;

/// A GPU at $1 an hour, interruptible from ten cents; nothing else costs anything. Every host's earnings are
/// pending for six hours.
fn world(fee: u16) -> World {
    let mut world = World::new(MarketSettings {
        fee: BasisPoints(fee),
        dispute: Seconds(WINDOW),
        dispute_trusted: Seconds(WINDOW),
        ..MarketSettings::default()
    });
    for renter in 0..3 {
        world.deposit(renter, 1_000_000_000);
    }
    world.offer(0, Ask::gpus(1, 1_000_000, Some(100_000)));
    world
}

fn start(world: &mut World, renter: u8, deal: Deal) -> LeaseId {
    let order = world.deal(0, deal, 1);
    let lease = world.place(renter, order).unwrap();
    world.follow();
    lease
}

/// A lease that runs for so long, and is stopped.
fn run(world: &mut World, lease: LeaseId, seconds: u64) {
    if matches!(world.phase(lease), Phase::Paused(_)) {
        world.act(lease, LeaseAction::Resume).unwrap();
    }
    world.pass(seconds);
    world.act(lease, LeaseAction::Stop).unwrap();
    assert_eq!(world.phase(lease), Phase::Paused(PauseCause::Renter));
}

/// Hours in which the lease is stopped, costs nothing, and its host says so.
fn rest(world: &mut World, lease: LeaseId, hours: u64) {
    for _ in 0..hours {
        world.wait(3600);
        let ran = world.ran[&lease];
        let stopped = ContainerState::Stopped(StopReason::Asked);
        world.report(lease, stopped, ran).unwrap();
        world.announce();
        world.tick();
    }
}

fn money(world: &mut World, order: MoneyOrder) -> Answer {
    world.handle(Command::Money(order)).unwrap()
}

fn refund(world: &mut World, lease: LeaseId, number: u8, amount: i64) {
    let order = MoneyOrder::Refund {
        id: PaymentId::from_bytes([number; 16]),
        lease,
        amount: MicroUsd(amount),
        note: Note::default(),
    };
    let _ = money(world, order);
}

/// What the host has pending of the lease, and free.
fn earned(world: &World, lease: LeaseId) -> (i64, i64) {
    let ledger = world.desk.market().ledger();
    let free = ledger.balance(&Account::HostAvailable(host_id(0)));
    (ledger.balance(&Account::HostPending(lease)).0, free.0)
}

#[test]
fn after_a_refund_of_free_money_the_next_earnings_become_free_as_well() {
    let mut world = world(1000);
    let lease = start(&mut world, 0, Deal::OnDemand);
    // Two hours: $2, of which the host's part is $1.80.
    run(&mut world, lease, 7200);
    rest(&mut world, lease, 31);
    assert_eq!(earned(&world, lease), (0, 1_800_000));
    // 10 % of half a dollar is the broker's part of the refund.
    refund(&mut world, lease, 1, 500_000);
    assert_eq!(earned(&world, lease), (0, 1_350_000));
    run(&mut world, lease, 3600);
    assert_eq!(earned(&world, lease), (900_000, 1_350_000));
    rest(&mut world, lease, 31);
    assert_eq!(earned(&world, lease), (0, 2_250_000));
}

#[test]
fn after_a_refund_of_pending_money_the_next_earnings_become_free_as_well() {
    let mut world = world(1000);
    let lease = start(&mut world, 0, Deal::OnDemand);
    run(&mut world, lease, 7200);
    // The first half minute's earnings were marked at once, and are free after six hours; what came after them is
    // marked with the next report.
    rest(&mut world, lease, 6);
    assert_eq!(earned(&world, lease), (1_792_500, 7500));
    refund(&mut world, lease, 1, 500_000);
    assert_eq!(earned(&world, lease), (1_342_500, 7500));
    rest(&mut world, lease, 6);
    assert_eq!(earned(&world, lease), (0, 1_350_000));
    run(&mut world, lease, 3600);
    rest(&mut world, lease, 31);
    assert_eq!(earned(&world, lease), (0, 2_250_000));
}

#[test]
fn what_was_waived_frees_nothing_that_was_earned_later() {
    let mut world = world(1000);
    let deal = world.interruptible(360_000);
    let lease = start(&mut world, 0, deal);
    // 300 s at a bid of 36 cents an hour: three cents, and 10 % less for the host.
    world.pass(300);
    assert_eq!(earned(&world, lease), (27_000, 0));
    let firm = start(&mut world, 1, Deal::OnDemand);
    assert_eq!(earned(&world, lease), (0, 0));
    world.pass(120);
    world.act(firm, LeaseAction::End).unwrap();
    world.follow();
    // The run after the free one costs its bid again.
    run(&mut world, lease, 1000);
    assert_eq!(earned(&world, lease).0, 90_000);
    // Long after the window of what was waived, and before that of the second run.
    world.wait(WINDOW - 700);
    world.tick();
    let firm = world.desk.market().lease(firm).unwrap();
    assert!(firm.state.is_closed());
    let of_firm = earned(&world, firm.id);
    assert_eq!(earned(&world, lease), (90_000, of_firm.1));
}

#[test]
fn what_is_waived_was_not_given_back_before() {
    let mut world = world(1000);
    let deal = world.interruptible(360_000);
    let lease = start(&mut world, 0, deal);
    world.pass(300);
    // Ten seconds of notice are billed by the hold; what the run cost so far is three cents.
    refund(&mut world, lease, 1, 30_000);
    assert_eq!(earned(&world, lease), (0, 0));
    let firm = start(&mut world, 1, Deal::OnDemand);
    // The run is free: its cents came back once, and nobody owes anybody anything.
    assert_eq!(earned(&world, lease), (0, 0));
    let of_lease = world.desk.market().lease(lease).unwrap();
    assert_eq!(of_lease.charged.total(), MicroUsd::ZERO);
    assert_eq!(of_lease.refunded, MicroUsd::ZERO);
    world.pass(120);
    world.act(firm, LeaseAction::End).unwrap();
    world.follow();
    run(&mut world, lease, 1000);
    // 1000 s at 36 cents an hour.
    assert_eq!(earned(&world, lease).0, 90_000);
    let spent = world.desk.balance(renter_id(0)).spent;
    assert_eq!(spent, MicroUsd(100_000));
}

#[test]
fn what_is_waived_after_a_refund_comes_from_where_the_hosts_money_is() {
    let mut world = world(1000);
    let deal = world.interruptible(360_000);
    let lease = start(&mut world, 0, deal);
    // An hour: 36 cents; the host's part is 32.4.
    run(&mut world, lease, 3600);
    rest(&mut world, lease, 31);
    assert_eq!(earned(&world, lease), (0, 324_000));
    world.act(lease, LeaseAction::Resume).unwrap();
    world.pass(300);
    assert_eq!(earned(&world, lease), (27_000, 324_000));
    refund(&mut world, lease, 1, 30_000);
    assert_eq!(earned(&world, lease), (0, 324_000));
    // The second run is free: its three cents go back, and the host's part of them was pending no more.
    let firm = start(&mut world, 1, Deal::OnDemand);
    assert_eq!(earned(&world, lease), (0, 297_000));
    world.pass(120);
    world.act(firm, LeaseAction::End).unwrap();
    world.follow();
    world.pass(3600);
    // What was freed and taken back is earned again in the third run, and becomes free again.
    world.act(lease, LeaseAction::Stop).unwrap();
    let of_firm = world.desk.market().ledger();
    let of_firm = of_firm.balance(&Account::HostPending(firm)).0;
    assert_eq!(earned(&world, lease), (324_000, 297_000));
    rest(&mut world, lease, 31);
    assert_eq!(earned(&world, lease), (0, 621_000 + of_firm));
}

#[test]
fn a_refund_after_the_payout_leaves_the_next_earnings_alone() {
    let mut world = world(1000);
    let lease = start(&mut world, 0, Deal::OnDemand);
    run(&mut world, lease, 7200);
    rest(&mut world, lease, 31);
    let bond = MoneyOrder::Bond {
        id: PaymentId::from_bytes([8; 16]),
        host: host_id(0),
        amount: MicroUsd(5_000_000),
        note: Note::default(),
    };
    let _ = money(&mut world, bond);
    let made = money(
        &mut world,
        MoneyOrder::MakePayouts {
            minimum: MicroUsd(1),
        },
    );
    let Answer::Payouts(payouts) = made else {
        panic!("{made:?}")
    };
    let (id, payout) = payouts.first().unwrap();
    assert_eq!(payout.amount, MicroUsd(1_800_000));
    assert_eq!(payout.what, PaymentKind::Payout(host_id(0), Payout::Open));
    let paid = MoneyOrder::Paid {
        id: *id,
        note: Note::default(),
    };
    let _ = money(&mut world, paid);
    assert_eq!(earned(&world, lease), (0, 0));
    refund(&mut world, lease, 1, 500_000);
    let bond = |world: &World| {
        let ledger = world.desk.market().ledger();
        ledger.balance(&Account::HostBond(host_id(0))).0
    };
    assert_eq!(bond(&world), 5_000_000 - 450_000);
    run(&mut world, lease, 3600);
    rest(&mut world, lease, 31);
    assert_eq!(earned(&world, lease), (0, 900_000));
    assert_eq!(bond(&world), 5_000_000 - 450_000);
}

#[test]
fn nothing_of_a_lease_that_is_over_stays_pending() {
    // A third of a percent: every refund rounds the fee.
    for (first, second) in [(1, 1), (2, 149), (150, 151), (299, 1), (449, 100), (7, 301)] {
        let mut world = world(33);
        let lease = start(&mut world, 0, Deal::OnDemand);
        world.pass(40);
        refund(&mut world, lease, 1, first);
        world.pass(70);
        refund(&mut world, lease, 2, second);
        run(&mut world, lease, 30);
        rest(&mut world, lease, 31);
        let (pending, _) = earned(&world, lease);
        assert!(pending <= 2, "{pending} of an open lease with two refunds");
        world.act(lease, LeaseAction::End).unwrap();
        world.follow();
        world.wait(WINDOW);
        world.tick();
        // 140 s at $1 an hour, less the refunds, less a third of a percent of the rest, rounded down.
        let left = 38_888 - first - second;
        assert_eq!(earned(&world, lease), (0, left - left * 33 / 10_000));
    }
}
