//! Kinds of contract, and the prices at which a host takes each.

use super::goals::is_bad;
use super::portions::{both, check_bad, check_taken, verdict};
use super::{World, at, goal};
use protocol::lease::Award;
use protocol::order::Order;
use protocol::terms::{ContractKind, Deal};
use protocol::units::{MicroUsd, PricePerHour, Seconds};

fn deal(deal: Deal, kind: ContractKind, compute: u64) -> impl FnOnce(&mut Order, &mut Award) {
    move |order, award| {
        order.deal = deal;
        award.kind = kind;
        award.prices.compute = PricePerHour(compute);
    }
}

#[test]
fn on_demand_and_bids_pay_the_ask_for_each_gpu() {
    let world = World::new();
    check_taken(both(&world));
    let one = world.offer().prices.of_gpus(1);
    let part = world.part(&[0, 1]);
    check_bad(|order, award| {
        order.gpus = 2;
        award.part = part;
        award.prices = one;
    });
    let until = at(600).wall;
    let bid = |limit| Deal::Bid {
        limit: PricePerHour(limit),
        until,
    };
    check_taken(deal(bid(400_000), ContractKind::Bid, 350_000));
    check_bad(deal(bid(400_000), ContractKind::Bid, 400_000));
    check_bad(deal(bid(400_000), ContractKind::OnDemand, 350_000));
    check_bad(deal(Deal::OnDemand, ContractKind::Bid, 350_000));
    check_bad(deal(Deal::OnDemand, ContractKind::Interruptible, 350_000));
}

#[test]
fn a_bid_that_waited_for_long_is_taken_until_its_end_and_not_after() {
    let until = at(7_200).wall;
    let limit = PricePerHour(400_000);
    let world = World::new();
    let resting = deal(Deal::Bid { limit, until }, ContractKind::Bid, 350_000);
    let asked = goal(1, vec![world.changed_goal(0, 1, 0, resting)]);
    let taken = |second| {
        let decision = world
            .empty()
            .decide_goal(world.broker(0), &asked, &world.standing(), at(second))
            .unwrap();
        decision.changes.len() == 1
    };
    assert!(taken(7_199) && taken(7_230) && !taken(7_231));
}

#[test]
fn an_interruptible_lease_pays_at_least_the_floor_for_each_gpu() {
    let bid = |bid, fallback: Option<u64>| Deal::Interruptible {
        bid: PricePerHour(bid),
        until: at(600).wall,
        fallback: fallback.map(PricePerHour),
    };
    let kind = ContractKind::Interruptible;
    check_taken(deal(bid(100_000, None), kind, 100_000));
    // The renter raised it while it rested.
    check_taken(deal(bid(100_000, None), kind, 900_000));
    check_bad(deal(bid(100_000, None), kind, 99_999));
    check_taken(deal(
        bid(100_000, Some(400_000)),
        ContractKind::OnDemand,
        350_000,
    ));
    check_bad(deal(bid(100_000, None), ContractKind::OnDemand, 350_000));
    let unsold = verdict(
        |world| world.offers[0].offer.sales.floor = None,
        deal(bid(100_000, None), kind, 100_000),
    );
    assert!(unsold.as_ref().is_some_and(is_bad), "{unsold:?}");
    let world = World::new();
    let part = world.part(&[0, 1]);
    let two = |compute| {
        let (part, deal) = (part.clone(), bid(100_000, None));
        move |order: &mut Order, award: &mut Award| {
            (order.gpus, order.deal) = (2, deal);
            (award.part, award.kind) = (part, kind);
            award.prices.compute = PricePerHour(compute);
        }
    };
    check_taken(two(200_000));
    check_bad(two(199_999));
}

#[test]
fn a_term_has_at_most_the_discount_that_the_offer_gives() {
    let term = |days| Deal::Reserved {
        days,
        prepay_max: MicroUsd(1_000_000_000),
    };
    let kind = ContractKind::Reserved;
    // 40 % off 350 000 are 210 000.
    check_taken(deal(term(30), kind, 210_000));
    check_taken(deal(term(30), kind, 350_000));
    check_bad(deal(term(30), kind, 209_999));
    check_bad(deal(term(30), kind, 350_001));
    let unsold = verdict(
        |world| world.offers[0].offer.sales.discount_max = None,
        deal(term(30), kind, 350_000),
    );
    assert!(unsold.as_ref().is_some_and(is_bad), "{unsold:?}");
}

#[test]
fn a_term_ends_before_the_offer_does() {
    let days = |count: u64| count * 86_400;
    let term = |until: u64| {
        verdict(
            |world| world.offers[0].offer.limits.until = Some(at(until).wall),
            deal(
                Deal::Reserved {
                    days: 30,
                    prepay_max: MicroUsd(1_000_000_000),
                },
                ContractKind::Reserved,
                350_000,
            ),
        )
    };
    assert_eq!(term(days(30) + 1), None);
    assert!(term(days(29)).as_ref().is_some_and(is_bad));
    let longest = verdict(
        |world| world.offers[0].offer.limits.duration_max = Some(Seconds(days(29))),
        deal(
            Deal::Reserved {
                days: 30,
                prepay_max: MicroUsd(1_000_000_000),
            },
            ContractKind::Reserved,
            350_000,
        ),
    );
    assert!(longest.as_ref().is_some_and(is_bad));
}

#[test]
fn storage_and_traffic_cost_what_the_offer_says_in_every_kind() {
    check_bad(|_, award| award.prices.storage.0 += 1);
    check_bad(|_, award| award.prices.upload.0 += 1);
    check_bad(|_, award| award.prices.download.0 += 1);
}
