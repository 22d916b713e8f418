//! Fifty peers that send garbage as fast as they can do not stop an honest renter.

use crate::fake::Party;
use crate::fake::papers::{order, sign};
use crate::rental::Market;
use broker::clock::Stopwatch;
use protocol::message::{self, BrokerReply, BrokerRequest, LeaseScope};
use protocol::units::{Seconds, Timestamp};
use std::time::Duration;
use tokio::task::JoinSet;

const PEERS: u8 = 50;
/// An honest answer, on two cores that are busy with garbage.
const PATIENCE: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn garbage_of_fifty_peers_does_not_stop_an_honest_renter() {
    let market = Market::new("").await;
    let mut attackers = JoinSet::new();
    for number in 0..PEERS {
        let attacker = Party::renter(&market.stand).await;
        let offer = market
            .host
            .offer(&[market.stand.id()], market.stand.clock.now());
        attackers.spawn(throw_garbage(
            attacker,
            order(&offer, "x"),
            market.stand.clock.now(),
            number,
        ));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let since = Stopwatch::start();
    for _ in 0..5 {
        let reply = promptly(market.renter.ask(BrokerRequest::Info)).await;
        assert!(matches!(reply, BrokerReply::Info(_)), "{reply:?}");
    }
    let lease = promptly(market.order("honest")).await.id;
    let watch = BrokerRequest::Watch {
        lease,
        seen: u64::MAX,
        wait: Seconds(1),
    };
    assert_eq!(
        Party::view(promptly(market.renter.ask(watch)).await).id,
        lease
    );
    let leases = promptly(market.renter.ask(BrokerRequest::Leases(LeaseScope::Open))).await;
    assert!(matches!(leases, BrokerReply::Leases(list) if list.len() == 1));
    assert!(
        since.elapsed() < Duration::from_secs(10),
        "{:?}",
        since.elapsed()
    );
    attackers.shutdown().await;
    let refused =
        market.stand.refused("malformed").await + market.stand.refused("not_the_signer").await;
    assert!(
        refused > 100,
        "{refused} were refused: was there a flood at all?"
    );
    market.stand.check_ledger().await;
}

async fn promptly<T>(answer: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, answer)
        .await
        .expect("an honest renter waited too long")
}

/// By turns: nothing like a message, one cut short, one of the right form whose signer is somebody else,
/// which costs the broker a signature check.
async fn throw_garbage(attacker: Party, order: protocol::order::Order, now: Timestamp, number: u8) {
    let other = ed25519_dalek::SigningKey::from_bytes(&[number; 32]);
    let stolen = sign(order, &other, attacker.broker, now);
    let stolen = message::encode(&BrokerRequest::Order(stolen)).unwrap();
    let garbage = [
        vec![number; 60_000],
        stolen[..stolen.len() - 40].to_vec(),
        stolen,
    ];
    loop {
        for bytes in &garbage {
            let asks = (0..8).map(|_| {
                attacker
                    .node
                    .request(attacker.broker, bytes.clone(), PATIENCE)
            });
            futures::future::join_all(asks).await;
        }
    }
}
