//! More than one broker: a host that lists with two, and ten in one process.

use crate::fake::papers::{goal_of, order};
use crate::fake::{FakeHost, Party, Stand};
use protocol::lease::{EndCause, Phase, RefusalReason};
use protocol::message::{BrokerReply, BrokerRequest};
use protocol::units::MicroUsd;

#[tokio::test(flavor = "multi_thread")]
async fn two_brokers_and_one_machine_make_one_lease() {
    let (first, second) = (Stand::new("").await, Stand::new("").await);
    let mut host = FakeHost::new(&first).await;
    host.party.connect(&second).await;
    let brokers = [first.id(), second.id()];
    let offer = host.offer(&brokers, first.clock.now());
    for stand in [&first, &second] {
        host.announce(stand.id(), vec![offer.clone()], stand.clock.now())
            .await;
    }
    let (winner, loser) = (Party::renter(&first).await, Party::renter(&second).await);
    first.deposit(winner.renter_id(), "10").await;
    second.deposit(loser.renter_id(), "10").await;
    let won = Party::view(winner.order(order(&offer, "a"), first.clock.now()).await);
    let lost = Party::view(loser.order(order(&offer, "b"), second.clock.now()).await);

    let goal = host
        .goal_of(first.id(), |goal| goal_of(goal, won.id).is_some())
        .await;
    let granted = host
        .grant(
            first.id(),
            &goal_of(&goal, won.id).unwrap(),
            1,
            first.clock.now(),
        )
        .await;
    assert_eq!(granted, BrokerReply::Noted);
    host.goal_of(second.id(), |goal| goal_of(goal, lost.id).is_some())
        .await;
    assert_eq!(
        host.refuse(second.id(), lost.id, second.clock.now()).await,
        BrokerReply::Noted
    );

    let view = loser
        .watch_until(lost.id, |view| !view.phase.is_open())
        .await;
    assert_eq!(
        view.phase,
        Phase::Closed(EndCause::Refused(RefusalReason::Taken))
    );
    let BrokerReply::Balance(balance) = loser.ask(BrokerRequest::Balance).await else {
        panic!("no balance")
    };
    assert_eq!(
        (balance.available, balance.spent),
        (MicroUsd(10_000_000), MicroUsd::ZERO)
    );
    assert_eq!(winner.lease(won.id).await.phase, Phase::Accepted);
    for stand in [first, second] {
        stand.check_ledger().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_brokers_run_in_one_process() {
    let mut stands = Vec::new();
    for _ in 0..10 {
        stands.push(Stand::new("").await);
    }
    for stand in &stands {
        let renter = Party::renter(stand).await;
        let BrokerReply::Info(info) = renter.ask(BrokerRequest::Info).await else {
            panic!("no info")
        };
        assert_eq!(info.broker, stand.id());
    }
    for stand in &mut stands {
        stand.stop().await;
    }
}
