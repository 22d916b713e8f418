//! Contracts that become others, and orders for a term.

use super::world::{Ask, World, renter_id};
use crate::core::ledger::Account;
use protocol::ids::LeaseId;
use protocol::lease::{PauseCause, Phase};
use protocol::message::Rejection;
use protocol::order::{LeaseAction, Order};
use protocol::terms::{ContractKind, Deal};
use protocol::units::{BasisPoints, MicroUsd, PricePerHour};

/// A GPU at 1 000 000, interruptible from 100 000, for a term with up to 40 % off.
fn world() -> World {
    let mut world = World::with_a_fee_of_ten_percent();
    for renter in 0..4 {
        world.deposit(renter, 1_000_000_000);
    }
    let mut ask = Ask::gpus(1, 1_000_000, Some(100_000));
    ask.sales.discount_max = Some(BasisPoints(4000));
    world.offer(0, ask);
    world
}

fn start(world: &mut World, renter: u8, deal: Deal) -> LeaseId {
    let mut order = world.deal(0, deal, 1);
    order.budget = MicroUsd(2_000_000_000);
    let lease = world.place(renter, order).unwrap();
    world.follow();
    lease
}

/// Whatever an hour costs then.
fn to(deal: Deal) -> LeaseAction {
    LeaseAction::Convert {
        deal,
        price_max: PricePerHour(u64::MAX),
    }
}

const MONTH: Deal = Deal::Reserved {
    days: 30,
    prepay_max: MicroUsd(576_000_000),
};

#[test]
fn an_interruptible_lease_becomes_one_on_demand_and_nobody_pushes_it_out() {
    let mut world = world();
    let deal = world.interruptible(200_000);
    let lease = start(&mut world, 0, deal);
    world.pass(3600);
    world.act(lease, to(Deal::OnDemand)).unwrap();
    let view = world.view(lease);
    assert_eq!(
        (view.phase, view.kind),
        (Phase::Running, ContractKind::OnDemand)
    );
    assert_eq!((view.bid, view.prices.compute.0), (None, 1_000_000));
    assert_eq!(view.held, MicroUsd(1_000_000));
    let order = world.deal(0, Deal::OnDemand, 1);
    assert_eq!(world.place(1, order), Err(Rejection::OfferTaken));
    world.pass(1800);
    assert_eq!(world.view(lease).charged.total(), MicroUsd(700_000));
}

#[test]
fn a_lease_on_demand_becomes_interruptible_and_can_be_outbid() {
    let mut world = world();
    let lease = start(&mut world, 0, Deal::OnDemand);
    world.pass(3600);
    let low = world.interruptible(99_999);
    let refused = world.act(lease, to(low)).unwrap_err();
    assert!(matches!(refused, Rejection::BidTooLow { .. }), "{refused}");
    let deal = world.interruptible(150_000);
    world.act(lease, to(deal)).unwrap();
    world.pass(3600);
    assert_eq!(world.view(lease).charged.total(), MicroUsd(1_150_000));
    let higher = world.interruptible(160_000);
    start(&mut world, 1, higher);
    assert_eq!(world.phase(lease).word(), "noticed");
}

#[test]
fn a_lease_that_was_pushed_out_and_becomes_firm_comes_back_before_every_bid() {
    let mut world = world();
    let deal = world.interruptible(150_000);
    let lease = start(&mut world, 0, deal);
    world.pass(600);
    let higher = world.interruptible(900_000);
    let other = start(&mut world, 1, higher);
    world.pass(120);
    assert_eq!(world.phase(lease), Phase::Paused(PauseCause::Outbid));
    world.act(lease, to(Deal::OnDemand)).unwrap();
    assert_eq!(world.phase(lease).word(), "clearing");
    assert_eq!(world.phase(other).word(), "noticed");
    world.pass(120);
    assert_eq!(world.phase(lease), Phase::Running);
}

#[test]
fn a_firm_lease_that_its_renter_stopped_pushes_an_interruptible_one_out_when_it_resumes() {
    let mut world = world();
    let lease = start(&mut world, 0, Deal::OnDemand);
    world.act(lease, LeaseAction::Stop).unwrap();
    let deal = world.interruptible(900_000);
    let other = start(&mut world, 1, deal);
    assert_eq!(world.phase(other), Phase::Running);
    world.act(lease, LeaseAction::Resume).unwrap();
    assert_eq!(world.phase(lease).word(), "clearing");
    world.pass(120);
    assert_eq!(world.phase(lease), Phase::Running);
    assert_eq!(world.phase(other), Phase::Paused(PauseCause::Preempted));
    // Preempted at once: free.
    assert_eq!(world.view(other).charged.total(), MicroUsd::ZERO);
}

#[test]
fn an_interruptible_lease_that_its_renter_stopped_waits_for_its_turn_when_it_resumes() {
    let mut world = world();
    let deal = world.interruptible(150_000);
    let lease = start(&mut world, 0, deal);
    world.act(lease, LeaseAction::Stop).unwrap();
    let firm = start(&mut world, 1, Deal::OnDemand);
    world.act(lease, LeaseAction::Resume).unwrap();
    assert_eq!(world.phase(lease), Phase::Paused(PauseCause::Outbid));
    world.act(firm, LeaseAction::End).unwrap();
    world.follow();
    assert_eq!(world.phase(lease), Phase::Running);
}

#[test]
fn a_term_is_prepaid_at_the_order_and_takes_what_is_interruptible() {
    let mut world = world();
    let deal = world.interruptible(900_000);
    let other = start(&mut world, 1, deal);
    let lease = start(&mut world, 0, MONTH);
    assert_eq!(world.phase(other).word(), "noticed");
    let ledger = world.desk.market().ledger();
    assert_eq!(
        ledger.balance(&Account::Prepaid(lease)),
        MicroUsd(576_000_000)
    );
    let available = world.desk.market().available(renter_id(0));
    assert_eq!(available, MicroUsd(424_000_000));
    world.pass(120);
    let view = world.view(lease);
    assert_eq!(
        (view.phase, view.kind),
        (Phase::Running, ContractKind::Reserved)
    );
    let nothing = MicroUsd::ZERO;
    world.pass(3600);
    assert_eq!(world.view(lease).charged.total(), nothing);
    // 576 000 000 / 720.
    let earned = world.view(lease).term.map(|term| term.earned);
    assert_eq!(earned, Some(MicroUsd(800_000)));
}

#[test]
fn a_term_is_refused_for_no_days_too_many_or_too_little_money() {
    let mut world = world();
    let days = |days, prepay_max| Deal::Reserved {
        days,
        prepay_max: MicroUsd(prepay_max),
    };
    let cases = [
        (days(0, i64::MAX), "from 1 to 365"),
        (days(366, i64::MAX), "from 1 to 365"),
        (days(30, 575_999_999), "costs $576.00 in advance"),
        (days(365, i64::MAX), "must be held"),
    ];
    for (deal, wanted) in cases {
        let mut order = world.deal(0, deal, 1);
        order.budget = MicroUsd(i64::MAX);
        let refused = world.place(0, order).unwrap_err().to_string();
        assert!(refused.contains(wanted), "{refused}");
    }
    let order = world.deal(0, MONTH, 1);
    let refused = world.place(0, order).unwrap_err().to_string();
    assert!(refused.contains("the term alone costs more"), "{refused}");
    let available = world.desk.market().available(renter_id(0));
    assert_eq!(available, MicroUsd(1_000_000_000));
}

#[test]
fn a_lease_on_demand_becomes_a_term_and_a_term_becomes_nothing_else() {
    let mut world = world();
    let lease = start(&mut world, 0, Deal::OnDemand);
    world.pass(3600);
    world.act(lease, to(MONTH)).unwrap();
    let view = world.view(lease);
    assert_eq!(
        (view.phase, view.kind),
        (Phase::Running, ContractKind::Reserved)
    );
    world.pass(3600);
    let view = world.view(lease);
    assert_eq!(view.charged.total(), MicroUsd(1_000_000));
    assert_eq!(view.term.map(|term| term.earned), Some(MicroUsd(800_000)));
    for deal in [Deal::OnDemand, world.interruptible(200_000), MONTH] {
        let refused = world.act(lease, to(deal)).unwrap_err();
        let Rejection::CannotConvert { from, to, .. } = refused else {
            panic!("{refused}")
        };
        assert_eq!((from, to), (ContractKind::Reserved, deal.kind()));
    }
}

#[test]
fn what_cannot_become_another_kind_says_why() {
    let mut world = world();
    let lease = start(&mut world, 0, Deal::OnDemand);
    for deal in [Deal::OnDemand, world.bid(500_000)] {
        let refused = world.act(lease, to(deal)).unwrap_err();
        assert!(
            matches!(refused, Rejection::CannotConvert { .. }),
            "{refused}"
        );
    }
    let refused = world.act(lease, LeaseAction::SetBid(PricePerHour(200_000)));
    assert!(matches!(refused, Err(Rejection::NotSold(_))), "{refused:?}");
    world.act(lease, LeaseAction::End).unwrap();
    let deal = world.interruptible(200_000);
    let refused = world.act(lease, to(deal)).unwrap_err();
    assert!(matches!(refused, Rejection::WrongPhase(_)), "{refused}");
}

#[test]
fn a_lease_does_not_become_a_term_that_costs_more_than_its_budget() {
    let mut world = world();
    let order = Order {
        budget: MicroUsd(5_000_000),
        ..world.deal(0, Deal::OnDemand, 1)
    };
    let lease = world.running(1, order);
    let before = world.view(lease);
    let refused = world.act(lease, to(MONTH)).unwrap_err();
    let Rejection::BadValue { field, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!(field.as_str(), "budget");
    assert_eq!(world.view(lease), before);
}

#[test]
fn a_host_that_raises_its_price_before_a_conversion_is_not_paid_it() {
    let mut world = world();
    let deal = world.interruptible(200_000);
    let lease = start(&mut world, 0, deal);
    world.pass(600);
    world.reprice(0, 1_500_000);
    let seen = |price| LeaseAction::Convert {
        deal: Deal::OnDemand,
        price_max: PricePerHour(price),
    };
    let before = world.view(lease);
    let refused = world.act(lease, seen(1_000_000)).unwrap_err();
    let Rejection::PriceAboveLimit { price, allowed } = refused else {
        panic!("{refused}")
    };
    assert_eq!((price.0, allowed.0), (1_500_000, 1_000_000));
    assert_eq!(world.view(lease).prices, before.prices);
    assert_eq!(world.view(lease).kind, ContractKind::Interruptible);
    world.act(lease, seen(1_500_000)).unwrap();
    assert_eq!(world.view(lease).prices.compute, PricePerHour(1_500_000));
}

#[test]
fn a_term_goes_on_when_its_host_shows_no_offers() {
    let mut world = world();
    let lease = start(&mut world, 0, MONTH);
    world.pass(3600);
    // A full disk or an engine that is down: the host is heard, and offers nothing.
    let asks = std::mem::take(&mut world.asks);
    for _ in 0..12 {
        world.announce_at(0, protocol::bounded::Text::default());
        world.pass(600);
    }
    let view = world.view(lease);
    assert_eq!(view.phase, Phase::Running);
    // 576 000 000 / 720 an hour, for three hours.
    let term = view.term.unwrap();
    assert_eq!(
        (term.earned, term.refunded),
        (MicroUsd(2_400_000), MicroUsd::ZERO)
    );
    world.asks = asks;
}
