//! What the owner asks of a running agent, and who else may ask it for anything.

use std::time::Duration;

use host_agent::admin::wire::{AdminReply, AdminRequest};
use host_agent::agent::StartError;
use host_agent::journal::JournalError;
use host_agent::journal::lock::LockError;
use protocol::lease::RefusalReason;
use protocol::message::{self, HostReply, HostRequest};
use protocol::net::{Identity, Node, NodeConfig, parse_address};

use crate::broker::{FakeBroker, key, wait};
use crate::world::{Host, ask_agent, listing, matched, status};

#[tokio::test]
async fn strangers_goals_are_refused_and_counted() {
    let broker = FakeBroker::start(1).await;
    let mut host = Host::new(&[&broker], 0);
    host.config.listen = vec![parse_address("/ip4/127.0.0.1/tcp/0").unwrap()];
    let agent = host.start().await;
    let stranger = Identity::from_signing_key(key(66));
    let (node, _events) = Node::start(&stranger, NodeConfig::renter()).await.unwrap();
    let addresses = agent.addresses().await;
    node.connect(host.id.into(), addresses, Duration::from_secs(5))
        .await
        .unwrap();
    let goal = protocol::lease::Goal {
        sequence: 1,
        started_at: protocol::units::Timestamp(1),
        leases: protocol::bounded::List::default(),
    };
    for bytes in [
        message::encode(&HostRequest::Goal(goal)).unwrap(),
        vec![1, 2, 3],
    ] {
        let answer = node
            .request(host.id.into(), bytes, Duration::from_secs(5))
            .await
            .unwrap();
        assert!(matches!(
            message::decode(&answer).unwrap(),
            HostReply::Refused(_)
        ));
    }
    assert_eq!(status(&agent).await.refusals["unknown_broker"], 2);
}

#[tokio::test]
async fn a_second_agent_on_one_folder_is_refused() {
    let broker = FakeBroker::start(1).await;
    let host = Host::new(&[&broker], 0);
    let _agent = host.start().await;
    let error = host.try_start().await.unwrap_err();
    assert!(
        matches!(
            error,
            StartError::Journal(JournalError::Lock(LockError::Taken { .. }))
        ),
        "{error}"
    );
}

#[tokio::test]
async fn an_owner_lists_and_unlists_a_running_agent() {
    let (broker, host, agent, _goal) = matched().await;
    assert_eq!(status(&agent).await.offers_free, 1);
    assert_eq!(
        ask_agent(&agent, AdminRequest::Unlist).await,
        AdminReply::Done
    );
    broker.offers(0).await;
    let mut dearer = listing(&[]);
    dearer.prices.compute.0 = 400_000;
    let AdminReply::Offers(rows) = ask_agent(&agent, AdminRequest::List(Box::new(dearer))).await
    else {
        panic!("no offers")
    };
    assert_eq!(rows[0].price_usd_per_hour, "0.400000");
    let offer = broker.offer().await;
    assert_eq!(offer.prices.compute.0, 400_000);
    // An order of the old price is refused.
    let mut old = offer.clone();
    old.prices.compute.0 = 350_000;
    let stale = broker.matched(host.id, &old, 5);
    broker.say(host.id, vec![stale.clone()]).await;
    let refusal = wait("a refusal", || broker.heard().refusals.first().cloned()).await;
    assert_eq!(refusal, (stale.lease, RefusalReason::OfferChanged));
}
