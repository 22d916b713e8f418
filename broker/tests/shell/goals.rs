//! How a host hears what it should be doing: at once, one goal at a time, and again after it was away.

use crate::fake::papers::{goal_of, order};
use crate::fake::{FakeHost, Party, Stand};
use crate::rental::Market;
use broker::clock::Stopwatch;
use protocol::lease::Want;
use protocol::message::{BrokerReply, BrokerRequest};
use protocol::order::LeaseAction;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_host_has_one_goal_at_a_time_and_then_the_latest() {
    let stand = Stand::new("").await;
    let host = FakeHost::slow(&stand, Duration::from_millis(400)).await;
    let now = stand.clock.now();
    let offer = host.offer(&[stand.id()], now);
    host.announce(stand.id(), vec![offer.clone()], now).await;
    let renter = Party::renter(&stand).await;
    stand.deposit(renter.renter_id(), "10").await;
    let mut market = Market {
        stand,
        host,
        renter,
    };
    // Ordered and ended while a goal is on its way: two changes, of which only the last matters.
    let view = Party::view(market.renter.order(order(&offer, "short"), now).await);
    let goal = market
        .host
        .goal(|goal| goal_of(goal, view.id).is_some())
        .await;
    let wanted = goal_of(&goal, view.id).unwrap();
    let broker = market.stand.id();
    let granted = market
        .host
        .grant(broker, &wanted, 1, market.stand.clock.now())
        .await;
    assert_eq!(granted, BrokerReply::Noted);
    let _ = market
        .renter
        .command(view.id, LeaseAction::Stop, market.stand.clock.now())
        .await;
    let _ = market
        .renter
        .command(view.id, LeaseAction::End, market.stand.clock.now())
        .await;
    let since = Stopwatch::start();
    let is_to_end = |goal: &_| goal_of(goal, view.id).is_some_and(|goal| goal.want == Want::End);
    market.host.goal(is_to_end).await;
    // As soon as the one before it was noted, not at the next period.
    assert!(
        since.elapsed() < Duration::from_secs(3),
        "{:?}",
        since.elapsed()
    );
    assert_eq!(market.host.at_once.load(Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn offers_of_a_host_that_left_are_withdrawn_and_come_back_with_it() {
    let market = Market::new("").await;
    let offers = async || {
        let reply = market.renter.ask(BrokerRequest::Info).await;
        let BrokerReply::Info(info) = reply else {
            panic!("no info")
        };
        info.offers
    };
    assert_eq!(offers().await, 1);
    market
        .host
        .party
        .node
        .disconnect(market.stand.id().into())
        .await;
    let since = Stopwatch::start();
    while offers().await > 0 {
        assert!(
            since.elapsed() < Duration::from_secs(25),
            "the offer is still shown"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    market.host.party.connect(&market.stand).await;
    let (broker, now) = (market.stand.id(), market.stand.clock.now());
    market
        .host
        .announce(broker, vec![market.host.offer(&[broker], now)], now)
        .await;
    assert_eq!(offers().await, 1);
}
