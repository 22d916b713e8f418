//! Those who rather pay what the host asks than go.

use super::{charged, on_demand, world};
use crate::core::tests::world::{World, renter_id};
use protocol::lease::Phase;
use protocol::message::Rejection;
use protocol::order::LeaseAction;
use protocol::terms::{ContractKind, Deal};
use protocol::units::{MicroUsd, PricePerHour, Seconds};

// peers 3.2 #23, #44: rather than be pushed out, on demand at the ask.
#[test]
fn r6_who_would_have_to_go_and_has_a_fallback_pays_the_ask_and_stays() {
    let mut world = world(1);
    let deal = Deal::Interruptible {
        bid: PricePerHour(150_000),
        until: world.now.after(Seconds(3600).millis()),
        fallback: Some(PricePerHour(400_000)),
    };
    let order = world.deal(0, deal, 1);
    let lease = world.place(1, order).unwrap();
    world.follow();
    world.pass(3600);
    let order = world.deal(0, Deal::OnDemand, 1);
    assert_eq!(world.place(2, order), Err(Rejection::OfferTaken));
    let view = world.view(lease);
    assert_eq!(
        (view.phase, view.kind),
        (Phase::Running, ContractKind::OnDemand)
    );
    assert_eq!(view.prices.compute, PricePerHour(400_000));
    world.pass(3600);
    assert_eq!(charged(&world, lease), MicroUsd(550_000));
    // And nobody pushes it out any more.
    let order = world.deal(0, Deal::OnDemand, 1);
    assert_eq!(world.place(3, order), Err(Rejection::OfferTaken));
}

#[test]
fn r6_a_fallback_below_the_ask_or_without_the_money_for_it_goes() {
    let mut world = world(1);
    let deal = |world: &World, most| Deal::Interruptible {
        bid: PricePerHour(150_000),
        until: world.now.after(Seconds(3600).millis()),
        fallback: Some(PricePerHour(most)),
    };
    let low = deal(&world, 399_999);
    let order = world.deal(0, low, 1);
    let lease = world.place(1, order).unwrap();
    world.follow();
    world.pass(600);
    let firm = on_demand(&mut world, 2, 1);
    assert!(matches!(world.phase(lease), Phase::Noticed(..)));
    world.act(lease, LeaseAction::End).unwrap();
    world.pass(120);
    world.act(firm, LeaseAction::End).unwrap();
    world.follow();
    // 150 000 were deposited: an hour of the ask is not there.
    world.deposit(20, 150_000);
    let enough = deal(&world, 500_000);
    let order = world.deal(0, enough, 1);
    let poor = world.place(20, order).unwrap();
    world.follow();
    on_demand(&mut world, 3, 1);
    assert!(matches!(world.phase(poor), Phase::Noticed(..)));
}

#[test]
fn r6_who_cannot_pay_pushes_nobody_out_and_makes_nobody_pay_more() {
    let mut world = world(1);
    let deal = Deal::Interruptible {
        bid: PricePerHour(150_000),
        until: world.now.after(Seconds(3600).millis()),
        fallback: Some(PricePerHour(400_000)),
    };
    let order = world.deal(0, deal, 1);
    let lease = world.place(1, order).unwrap();
    world.follow();
    world.pass(600);
    let events = world.journal.len();
    let order = world.deal(0, Deal::OnDemand, 1);
    let refused = world.place(30, order).unwrap_err();
    assert!(
        matches!(refused, Rejection::NotEnoughMoney { .. }),
        "{refused}"
    );
    assert_eq!(world.view(lease).kind, ContractKind::Interruptible);
    assert_eq!(world.journal.len(), events);
}

#[test]
fn r6_two_fallbacks_of_one_renter_take_no_more_than_its_money() {
    let mut world = world(2);
    world.deposit(20, 700_000);
    let mut leases = Vec::new();
    for _ in 0..2 {
        let deal = Deal::Interruptible {
            bid: PricePerHour(150_000),
            until: world.now.after(Seconds(3600).millis()),
            fallback: Some(PricePerHour(400_000)),
        };
        let order = world.deal(0, deal, 1);
        leases.push(world.place(20, order).unwrap());
        world.follow();
    }
    // 150 000 twice are held: 400 000 are left, enough for one to rise to 400 000 and not for two.
    let order = world.deal(0, Deal::OnDemand, 2);
    assert_eq!(world.place(1, order), Err(Rejection::OfferTaken));
    let kinds: Vec<_> = leases.iter().map(|lease| world.view(*lease).kind).collect();
    assert_eq!(kinds, [ContractKind::OnDemand, ContractKind::Interruptible]);
    assert_eq!(
        world.desk.market().available(renter_id(20)),
        MicroUsd(150_000)
    );
}
