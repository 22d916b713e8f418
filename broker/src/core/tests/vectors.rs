//! The worked numbers of the market rules, through the whole life of a lease.

use super::world::{Ask, World, renter_id};
use crate::core::ledger::Account;
use proptest::prelude::*;
use protocol::ids::LeaseId;
use protocol::lease::{ContainerState, EndCause, Meters, Phase};
use protocol::order::{LeaseAction, Order};
use protocol::terms::Prices;
use protocol::units::{
    Bytes, MicroUsd, Millis, PricePerGb, PricePerGbMonth, PricePerHour, Seconds,
};
use protocol::usage::{Amounts, Receipt};

fn ask(compute: u64, storage: u64, upload: u64) -> Ask {
    let prices = Prices {
        compute: PricePerHour(compute),
        storage: PricePerGbMonth(storage),
        upload: PricePerGb(upload),
        download: PricePerGb(0),
    };
    Ask {
        prices,
        ..Ask::default()
    }
}

/// A world with one offer at `ask`, one rich renter, and an order for `disk` gigabytes.
fn world(ask: Ask, disk: u64) -> (World, Order) {
    let mut world = World::with_a_fee_of_ten_percent();
    world.deposit(0, 10_000_000_000);
    world.offer(0, ask);
    let mut order = world.order(0);
    order.disk = Bytes::from_gb(disk);
    (world, order)
}

fn reports(world: &mut World, lease: LeaseId, state: &ContainerState, seconds: u64, every: u64) {
    let start = world.view(lease).running.0;
    let mut done = 0;
    while done < seconds {
        let step = every.min(seconds - done);
        world.wait(step);
        done += step;
        let running = if *state == ContainerState::Running {
            start + done * 1000
        } else {
            start
        };
        world.report(lease, state.clone(), running).unwrap();
        world.tick();
    }
}

fn end(world: &mut World, lease: LeaseId, meters: Meters) -> Receipt {
    world.act(lease, LeaseAction::End).unwrap();
    let gone = world.report_command(lease, ContainerState::Gone, meters);
    world.handle(gone).unwrap();
    let receipt = world
        .desk
        .receipt(world.now, renter_id(0).into(), lease)
        .unwrap()
        .verify()
        .unwrap();
    assert_eq!(receipt.body().check(), Ok(()));
    receipt.into_body()
}

/// The receipt's sums, and the same ones in the ledger, with nothing left in the hold.
#[track_caller]
fn check(world: &World, receipt: &Receipt, amounts: [i64; 3], total: i64, fee: i64, host: i64) {
    let [compute, storage, upload] = amounts.map(MicroUsd);
    assert_eq!(
        receipt.amounts,
        Amounts {
            compute,
            storage,
            upload,
            download: MicroUsd::ZERO
        }
    );
    assert_eq!(
        (receipt.total, receipt.fee),
        (MicroUsd(total), MicroUsd(fee))
    );
    assert_eq!(receipt.host_share, MicroUsd(host));
    let ledger = world.desk.market().ledger();
    assert_eq!(
        ledger.balance(&Account::HostPending(receipt.lease)),
        MicroUsd(host)
    );
    assert_eq!(ledger.balance(&Account::BrokerFee), MicroUsd(fee));
    assert_eq!(
        ledger.balance(&Account::RenterLocked(receipt.lease)),
        MicroUsd::ZERO
    );
    let left = MicroUsd(10_000_000_000 - total);
    assert_eq!(
        ledger.balance(&Account::RenterAvailable(renter_id(0))),
        left
    );
    assert!(matches!(receipt.ended, Some((_, EndCause::Renter))));
}

#[test]
fn m1_an_hour_and_a_half_with_traffic() {
    let (mut world, order) = world(ask(400_000, 100_000, 10_000), 50);
    let lease = world.running(0, order);
    reports(&mut world, lease, &ContainerState::Running, 5400, 10);
    let meters = Meters {
        running: Millis(5_400_000),
        uploaded: Bytes(12_345_678_901),
        downloaded: Bytes(0),
    };
    let receipt = end(&mut world, lease, meters);
    check(
        &world,
        &receipt,
        [600_000, 10_416, 123_456],
        733_872,
        73_387,
        660_485,
    );
}

// peers 3.2 #42: what ran is accepted and billed from its first second on.
#[test]
fn m2_one_second() {
    let (mut world, order) = world(ask(2_250_000, 150_000, 0), 100);
    let lease = world.running(0, order);
    world.wait(1);
    let meters = Meters {
        running: Millis(1000),
        ..Meters::default()
    };
    let receipt = end(&mut world, lease, meters);
    check(&world, &receipt, [625, 5, 0], 630, 63, 567);
}

#[test]
fn m3_stopped_for_ten_hours() {
    let (mut world, order) = world(ask(400_000, 200_000, 0), 200);
    let lease = world.running(0, order);
    world.act(lease, LeaseAction::Stop).unwrap();
    let stopped = ContainerState::Stopped(protocol::lease::StopReason::Asked);
    reports(&mut world, lease, &stopped, 36_000, 60);
    let receipt = end(&mut world, lease, Meters::default());
    check(&world, &receipt, [0, 555_555, 0], 555_555, 55_555, 500_000);
}

#[test]
fn the_hold_is_an_hour_and_is_filled_up() {
    // 400 000 + floor(50 × 100 000 × 3600 / 2 592 000) = 406 944.
    let (mut world, order) = world(ask(400_000, 100_000, 0), 50);
    let lease = world.running(0, order);
    assert_eq!(world.view(lease).held, MicroUsd(406_944));
    reports(&mut world, lease, &ContainerState::Running, 290, 10);
    assert!(world.view(lease).held < MicroUsd(406_944));
    reports(&mut world, lease, &ContainerState::Running, 20, 10);
    // Filled up at 300 s; what was journalled after that is at most 30 s, 3392 µ$.
    assert!(
        world.view(lease).held >= MicroUsd(406_944 - 3392),
        "{:?}",
        world.view(lease).held
    );
}

#[test]
fn an_end_bills_up_to_the_command_and_not_what_the_container_ran_on() {
    let (mut world, order) = world(ask(3_600_000, 0, 0), 50);
    let lease = world.running(0, order);
    reports(&mut world, lease, &ContainerState::Running, 20, 10);
    world.wait(5);
    world.act(lease, LeaseAction::End).unwrap();
    // Signed so far: 20 s at 1000 µ$. What may still be signed, 5 s, is held.
    let view = world.view(lease);
    assert_eq!(
        (view.charged.total(), view.held),
        (MicroUsd(20_000), MicroUsd(5_000))
    );
    world.wait(2);
    world.report(lease, ContainerState::Gone, 27_000).unwrap();
    let view = world.view(lease);
    assert_eq!(
        (view.charged.total(), view.held),
        (MicroUsd(25_000), MicroUsd::ZERO)
    );
}

// peers 3.2 #24: what is shown as over is not billed on: the host's signed meter and the clock both bound it.
#[test]
fn the_lower_of_clock_and_meter_is_paid() {
    let (mut world, order) = world(ask(3_600_000, 0, 0), 50);
    let lease = world.running(0, order);
    for step in 1..=6 {
        world.wait(10);
        // The host's meter runs at half speed.
        world
            .report(lease, ContainerState::Running, step * 5000)
            .unwrap();
    }
    assert_eq!(world.view(lease).running, Millis(30_000));
    world.wait(10);
    // And now it claims an hour.
    world
        .report(lease, ContainerState::Running, 3_600_000)
        .unwrap();
    assert_eq!(world.view(lease).running, Millis(70_000));
}

#[test]
fn more_traffic_than_fits_through_the_link_is_not_billed() {
    let (mut world, order) = world(ask(0, 0, 1_000_000), 50);
    let lease = world.running(0, order);
    world.wait(1);
    let meters = Meters {
        running: Millis(1000),
        uploaded: Bytes(u64::MAX),
        downloaded: Bytes(0),
    };
    let report = world.report_command(lease, ContainerState::Running, meters);
    world.handle(report).unwrap();
    // One second at 10 Gbit/s is 1.25 GB.
    assert_eq!(world.view(lease).charged.upload, MicroUsd(1_250_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// 399 999 µ$/h for 5400 s are 599 998 µ$, however often the host reports and the broker looks.
    #[test]
    fn the_charge_does_not_depend_on_the_ticks(steps in prop::collection::vec(1_u64..=90, 60..400)) {
        let (mut world, order) = world(ask(399_999, 0, 0), 50);
        let lease = world.running(0, order);
        let mut left = 5400;
        for step in steps {
            if left > 0 {
                reports(&mut world, lease, &ContainerState::Running, step.min(left), 90);
                left -= step.min(left);
            }
        }
        reports(&mut world, lease, &ContainerState::Running, left, 90);
        let meters = Meters { running: Millis(5_400_000), ..Meters::default() };
        let receipt = end(&mut world, lease, meters);
        prop_assert_eq!(receipt.total, MicroUsd(599_998));
    }
}

#[test]
fn a_budget_is_reached_exactly_and_never_passed() {
    let (mut world, mut order) = world(ask(3_600_000, 0, 0), 50);
    order.budget = MicroUsd(100_500);
    let lease = world.running(0, order);
    for second in 1..=100 {
        world.wait(1);
        world
            .report(lease, ContainerState::Running, second * 1000)
            .unwrap();
        world.tick();
        assert_eq!(world.phase(lease), Phase::Running, "after {second} s");
    }
    world.wait(1);
    world.tick();
    assert_eq!(world.phase(lease), Phase::Closing(EndCause::Budget));
    world.report(lease, ContainerState::Gone, 101_000).unwrap();
    assert_eq!(world.view(lease).charged.total(), MicroUsd(100_500));
    assert_eq!(world.phase(lease), Phase::Closed(EndCause::Budget));
}

#[test]
fn a_duration_ends_the_lease_by_itself() {
    let (mut world, mut order) = world(ask(3_600_000, 0, 0), 50);
    order.duration_max = Some(Seconds(60));
    let lease = world.running(0, order);
    reports(&mut world, lease, &ContainerState::Running, 59, 10);
    assert_eq!(world.phase(lease), Phase::Running);
    world.wait(1);
    world.tick();
    assert_eq!(world.phase(lease), Phase::Closing(EndCause::Duration));
    world.report(lease, ContainerState::Gone, 60_500).unwrap();
    assert_eq!(world.view(lease).charged.total(), MicroUsd(60_000));
}
