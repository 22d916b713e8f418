//! Portions of offers, the whole machine, minimums and end dates, any offer that matches, and what searches say.

use super::world::{Ask, START, World, host_key, renter_id};
use crate::core::command::Command;
use protocol::bounded::List;
use protocol::filter::Filter;
use protocol::ids::LeaseId;
use protocol::lease::{EndCause, Phase};
use protocol::message::{FoundOffer, Rejection, Search};
use protocol::offer::Chunks;
use protocol::order::{LeaseAction, Order, Target};
use protocol::terms::{ContractKind, Deal, Need};
use protocol::units::{BasisPoints, Bytes, MicroUsd, PricePerHour, Seconds};

fn world(ask: Ask) -> World {
    let mut world = World::with_a_fee_of_ten_percent();
    for renter in 0..8 {
        world.deposit(renter, 1_000_000_000);
    }
    world.offer(0, ask);
    world
}

fn place(world: &mut World, renter: u8, gpus: u16) -> Result<LeaseId, Rejection> {
    let order = world.deal(0, Deal::OnDemand, gpus);
    let lease = world.place(renter, order)?;
    world.follow();
    Ok(lease)
}

/// The GPUs of a lease, by their index in the offer.
fn gpus(world: &World, lease: LeaseId) -> Vec<usize> {
    let view = world.view(lease);
    let number = |uuid: &str| uuid.rsplit('-').next().unwrap().parse().unwrap();
    view.gpus
        .iter()
        .map(|gpu| number(gpu.uuid.as_str()))
        .collect()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Rejection>, wanted: &str) {
    let refused = result.unwrap_err().to_string();
    assert!(refused.contains(wanted), "{refused}");
}

// peers 3.1 #18: what is given is named: which GPUs, not how many.
#[test]
fn a_portion_has_its_gpus_and_its_part_of_the_machine_at_its_part_of_the_price() {
    let mut world = world(Ask::gpus(8, 400_000, None));
    let one = place(&mut world, 0, 1).unwrap();
    let three = place(&mut world, 1, 3).unwrap();
    let view = world.view(three);
    assert_eq!(gpus(&world, one), [0]);
    assert_eq!(gpus(&world, three), [1, 2, 3]);
    assert_eq!((view.gpu_count, view.cpu_millicores), (3, 12_000));
    assert_eq!(view.ram, Bytes::from_gb(48));
    assert_eq!(view.prices.compute, PricePerHour(1_200_000));
    // The lowest free one is given again.
    world.act(one, LeaseAction::End).unwrap();
    world.follow();
    let two = place(&mut world, 2, 2).unwrap();
    assert_eq!(gpus(&world, two), [0, 4]);
    refused(place(&mut world, 3, 4), "rented by someone else");
    let rest = place(&mut world, 3, 3).unwrap();
    assert_eq!(gpus(&world, rest), [5, 6, 7]);
    world.pass(3600);
    assert_eq!(world.view(three).charged.total(), MicroUsd(1_200_000));
}

#[test]
fn chunks_and_the_fewest_gpus_are_the_host_s() {
    let ask = Ask {
        chunks: Chunks::PowersOfTwo,
        gpus_min: 2,
        ..Ask::gpus(6, 400_000, None)
    };
    let mut world = world(ask);
    for gpus in [0, 1, 3, 5, 7] {
        refused(place(&mut world, 0, gpus), "not sold that way");
    }
    assert!(place(&mut world, 0, 4).is_ok());
    assert!(place(&mut world, 0, 2).is_ok());
    let whole = Ask {
        chunks: Chunks::Whole,
        ..Ask::gpus(4, 400_000, None)
    };
    world.offer(1, whole);
    let order = world.deal(1, Deal::OnDemand, 2);
    refused(world.place(1, order), "not as 2 of its GPUs");
    let order = world.deal(1, Deal::OnDemand, 4);
    assert!(world.place(1, order).is_ok());
}

#[test]
fn cpu_and_ram_as_asked_for_while_there_is_enough_for_all() {
    let mut world = world(Ask::gpus(4, 400_000, None));
    let ask = |world: &mut World, cpu, ram| Order {
        cpu_millicores: Some(cpu),
        ram: Some(Bytes::from_gb(ram)),
        ..world.deal(0, Deal::OnDemand, 1)
    };
    let order = ask(&mut world, 16_001, 16);
    refused(world.place(0, order), "not so much CPU time");
    let order = ask(&mut world, 4000, 65);
    refused(world.place(0, order), "not so much memory");
    let order = ask(&mut world, 0, 1);
    refused(world.place(0, order), "more than nothing");
    let order = ask(&mut world, 12_000, 40);
    let lease = world.place(0, order).unwrap();
    assert_eq!(world.view(lease).cpu_millicores, 12_000);
    // 4000 are left: enough for one in proportion, and for no second.
    place(&mut world, 1, 1).unwrap();
    refused(place(&mut world, 2, 1), "rented by someone else");
    world.follow();
    world.act(lease, LeaseAction::Stop).unwrap();
    assert!(place(&mut world, 2, 1).is_ok());
    // What is stopped comes back only if there is room for it.
    assert!(place(&mut world, 3, 1).is_ok());
    refused(
        world.act(lease, LeaseAction::Resume),
        "rented by someone else",
    );
}

#[test]
fn the_disks_of_an_offer_fit_together_also_those_of_stopped_leases() {
    let mut world = world(Ask::gpus(4, 400_000, None));
    let with_disk = |world: &mut World, gb| Order {
        disk: Bytes::from_gb(gb),
        ..world.deal(0, Deal::OnDemand, 1)
    };
    let order = with_disk(&mut world, 300);
    let lease = world.place(0, order).unwrap();
    world.follow();
    world.act(lease, LeaseAction::Stop).unwrap();
    let order = with_disk(&mut world, 201);
    let full = Rejection::DiskTooLarge {
        asked: Bytes::from_gb(201),
        allowed: Bytes::from_gb(200),
    };
    assert_eq!(world.place(1, order), Err(full));
    let order = with_disk(&mut world, 200);
    assert!(world.place(1, order).is_ok());
    world.act(lease, LeaseAction::End).unwrap();
    world.follow();
    let order = with_disk(&mut world, 300);
    assert!(world.place(2, order).is_ok());
}

#[test]
fn a_lease_is_no_shorter_and_no_longer_than_its_host_promises() {
    let ask = Ask {
        duration_min: Seconds(600),
        until: Some(START.after(Seconds(3600).millis())),
        ..Ask::gpus(1, 400_000, None)
    };
    let mut world = world(ask);
    let lasting = |world: &mut World, seconds| Order {
        duration_max: Some(Seconds(seconds)),
        ..world.deal(0, Deal::OnDemand, 1)
    };
    let order = lasting(&mut world, 599);
    refused(world.place(0, order), "leased for");
    let order = lasting(&mut world, 3601);
    let long = Rejection::TooLong {
        asked: Seconds(3601),
        allowed: Seconds(3600),
    };
    assert_eq!(world.place(0, order), Err(long));
    world.wait(10);
    world.announce();
    // Without a longest time it ends with the promise, to the second.
    let lease = place(&mut world, 0, 1).unwrap();
    world.pass(3580);
    assert_eq!(world.phase(lease), Phase::Running);
    world.pass(10);
    assert_eq!(world.phase(lease), Phase::Closed(EndCause::OfferEnded));
    // 400 000 × 3590 / 3600.
    assert_eq!(world.view(lease).charged.total(), MicroUsd(398_888));
    refused(place(&mut world, 1, 1), "promised it has come");
}

#[test]
fn nobody_rents_its_own_machine() {
    let mut world = world(Ask::gpus(1, 400_000, Some(100_000)));
    let own = host_key(0);
    let amount = MicroUsd(10_000_000);
    let Command::Deposit { id, memo, .. } = world.deposit_command(0, 1) else {
        panic!("no deposit")
    };
    let renter = super::world::host_id(0).into();
    let renter: protocol::ids::PublicKey = renter;
    let renter = renter.into();
    world
        .handle(Command::Deposit {
            id,
            renter,
            amount,
            memo,
        })
        .unwrap();
    for deal in [
        Deal::OnDemand,
        world.bid(500_000),
        world.interruptible(200_000),
    ] {
        let named = world.deal(0, deal, 1);
        let any = Order {
            target: Target::Any(Filter::default()),
            ..world.deal(0, deal, 1)
        };
        for order in [named, any] {
            let order = world.sign(order, &own);
            let placed = world.handle(Command::Order(Box::new(order)));
            assert_eq!(placed.map(drop), Err(Rejection::OwnMachine));
        }
    }
}

#[test]
fn r2_any_offer_is_the_cheapest_all_in_then_the_longest_listed() {
    let mut world = world(Ask::gpus(1, 500_000, None));
    world.offer(1, Ask::gpus(4, 300_000, None));
    // Cheaper for the GPU, dearer with 100 GB: 144 000 × 100 / 720 = 20 000 an hour.
    let mut ask = Ask::gpus(1, 290_000, None);
    ask.prices.storage.0 = 144_000;
    world.offer(2, ask);
    let any = |world: &mut World, filter: &str, gb| Order {
        target: Target::Any(filter.parse().unwrap()),
        disk: Bytes::from_gb(gb),
        ..world.deal(0, Deal::OnDemand, 1)
    };
    let order = any(&mut world, "gpu=rtx4090", 100);
    let lease = world.place(0, order).unwrap();
    assert_eq!(world.host_of(lease), 1);
    let order = any(&mut world, "gpu=rtx4090", 1);
    let lease = world.place(0, order).unwrap();
    assert_eq!(world.host_of(lease), 2);
    // That one is taken; and nothing is an H100.
    let order = any(&mut world, "gpu=rtx4090", 1);
    let lease = world.place(1, order).unwrap();
    assert_eq!(world.host_of(lease), 1);
    let order = any(&mut world, "gpu=h100", 1);
    assert_eq!(world.place(1, order), Err(Rejection::NothingMatches));
    let order = any(&mut world, "gpu=rtx4090 price<0.2", 1);
    assert_eq!(world.place(1, order), Err(Rejection::NothingMatches));
}

#[test]
fn any_offer_is_one_where_nobody_has_to_go_if_there_is_one() {
    let mut world = world(Ask::gpus(1, 300_000, Some(100_000)));
    world.offer(1, Ask::gpus(1, 400_000, Some(100_000)));
    let deal = world.interruptible(150_000);
    let order = world.deal(0, deal, 1);
    let cheap = world.place(0, order).unwrap();
    world.follow();
    let any = |world: &mut World| Order {
        target: Target::Any("gpu=rtx4090".parse().unwrap()),
        ..world.deal(0, Deal::OnDemand, 1)
    };
    let order = any(&mut world);
    let lease = world.place(1, order).unwrap();
    assert_eq!(
        (world.host_of(lease), world.phase(cheap)),
        (1, Phase::Running)
    );
    let order = any(&mut world);
    let lease = world.place(2, order).unwrap();
    assert_eq!(world.host_of(lease), 0);
    assert_eq!(world.phase(cheap).word(), "noticed");
}

#[test]
fn a_bid_below_every_floor_is_refused_with_the_lowest() {
    let mut world = world(Ask::gpus(1, 400_000, Some(200_000)));
    world.offer(1, Ask::gpus(1, 400_000, Some(150_000)));
    let deal = world.interruptible(120_000);
    let mut order = world.deal(0, deal, 1);
    order.target = Target::Any("gpu=rtx4090".parse().unwrap());
    let Rejection::BidTooLow { needed, .. } = world.place(0, order).unwrap_err() else {
        panic!("not refused for the floor")
    };
    assert_eq!(needed, PricePerHour(150_000));
}

fn found(world: &mut World, kind: ContractKind, filter: &str) -> Vec<FoundOffer> {
    let search = Search {
        filter: filter.parse().unwrap(),
        sort: List::default(),
        need: Need::default(),
        kind,
        limit: 20,
        job: None,
    };
    world.desk.search(world.now, &search).offers.to_vec()
}

#[test]
fn a_search_says_what_has_to_be_paid_now_and_whether_somebody_has_to_go() {
    let mut ask = Ask::gpus(2, 400_000, Some(100_000));
    ask.sales.discount_max = Some(BasisPoints(4000));
    let mut world = world(ask);
    let show = |world: &mut World, kind| -> Vec<(u16, u64, bool)> {
        let rows = found(world, kind, "");
        rows.iter()
            .map(|row| (row.gpus, row.price.0, row.pushes_out))
            .collect()
    };
    let rows = show(&mut world, ContractKind::Interruptible);
    assert_eq!(rows, [(1, 100_000, false), (2, 100_000, false)]);
    let deal = world.interruptible(150_000);
    let order = world.deal(0, deal, 1);
    world.place(0, order).unwrap();
    // It has not had its ten minutes, nor begun: one GPU is there, and no two.
    let rows = show(&mut world, ContractKind::Interruptible);
    assert_eq!(rows, [(1, 100_000, false)]);
    world.pass(600);
    let rows = show(&mut world, ContractKind::Interruptible);
    assert_eq!(rows, [(1, 100_000, false), (2, 151_500, true)]);
    let rows = show(&mut world, ContractKind::OnDemand);
    assert_eq!(rows, [(1, 400_000, false), (2, 400_000, true)]);
    // 30 days at a discount of 20 %.
    let rows = show(&mut world, ContractKind::Reserved);
    assert_eq!(rows, [(1, 320_000, false), (2, 320_000, true)]);
    let order = world.deal(0, Deal::OnDemand, 2);
    world.place(1, order).unwrap();
    assert_eq!(show(&mut world, ContractKind::OnDemand), []);
    let held = world.desk.balance(renter_id(1)).held;
    assert_eq!(held, MicroUsd(800_000));
}

// peers 3.1 #1: what was ordered is said back with its kind and its price.
#[test]
fn an_order_says_its_kind_and_price_back() {
    // 1. vast-cli PR#403: a forgotten bid made an instance on demand at the full price, and said nothing.
    let mut world = world(Ask::gpus(1, 400_000, Some(100_000)));
    let deal = world.interruptible(150_000);
    let order = world.deal(0, deal, 1);
    let lease = world.place(0, order).unwrap();
    let view = world.view(lease);
    assert_eq!(view.kind, ContractKind::Interruptible);
    assert_eq!(view.bid, Some(PricePerHour(150_000)));
    assert_eq!(view.prices.compute, PricePerHour(150_000));
    let goal = world.desk.goal(super::world::host_id(0));
    let award = goal.leases[0].award.body();
    assert_eq!((award.kind, award.prices.compute.0), (view.kind, 150_000));
}
