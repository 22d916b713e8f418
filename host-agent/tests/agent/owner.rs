//! What the owner asks of a running agent, and who else may ask it for anything.

use std::time::Duration;

use host_agent::admin::wire::{AdminReply, AdminRequest};
use host_agent::agent::StartError;
use host_agent::clock;
use host_agent::journal::JournalError;
use host_agent::journal::lock::LockError;
use protocol::bounded::Text;
use protocol::lease::{RefusalReason, Want};
use protocol::message::{self, HostReply, HostRequest, Rejection};
use protocol::net::{Identity, Node, NodeConfig, parse_address};
use protocol::units::{PricePerHour, Timestamp};

use crate::broker::{FakeBroker, key, wait, wanting};
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
    assert_eq!((rows[0].free, rows[0].sold_as.clone()), (1, vec![0]));
    assert_eq!(status(&agent).await.offered, rows);
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

#[tokio::test]
async fn a_price_that_is_changed_under_a_lease_leaves_the_lease_alone() {
    let broker = FakeBroker::start(1).await;
    let host = Host::new(&[&broker], 2);
    let agent = host.start().await;
    let goal = broker.matched_with(host.id, &broker.offer().await, 0, 1);
    broker.say(host.id, vec![goal.clone()]).await;
    broker.running(goal.lease).await;
    let mut dearer = listing(&["GPU-0".to_owned(), "GPU-1".to_owned()]);
    dearer.prices.compute.0 = 400_000;
    dearer.sales.floor = Some(PricePerHour(90_000));
    ask_agent(&agent, AdminRequest::List(Box::new(dearer))).await;
    let offer = wait("the new price", || {
        let heard = broker.heard().offers;
        heard
            .last()?
            .first()
            .filter(|offer| offer.prices.compute.0 == 400_000)
            .cloned()
    })
    .await;
    let AdminReply::Leases(rows) = ask_agent(&agent, AdminRequest::Leases).await else {
        panic!("no leases")
    };
    assert_eq!(rows[0].price_usd_per_hour, "0.350000");
    assert_eq!(
        (rows[0].kind.as_str(), rows[0].state.as_str()),
        ("on-demand", "running")
    );
    // The other GPU is sold at the new price, beside it.
    let next = broker.matched_with(host.id, &offer, 1, 2);
    broker.say(host.id, vec![goal.clone(), next.clone()]).await;
    broker.running(next.lease).await;
    let AdminReply::Offers(rows) = ask_agent(&agent, AdminRequest::Offers).await else {
        panic!("no offers")
    };
    assert_eq!(
        (rows[0].free, rows[0].gpus, rows[0].held_by.len()),
        (0, 2, 2)
    );
    assert_eq!(rows[0].floor_usd_per_hour.as_deref(), Some("0.090000"));
    assert!(rows[0].taken_by.is_some());
    assert_eq!(host.runtime.starts(goal.lease), 1);
}

#[tokio::test]
async fn disk_that_a_lease_was_promised_is_not_offered_to_the_next() {
    let (broker, host, agent, goal) = matched().await;
    let before = status(&agent).await.disk_free_bytes;
    broker.say(host.id, vec![goal.clone()]).await;
    broker.running(goal.lease).await;
    // The order is for 10 GB; once its disk was looked at, what the image and 4096 bytes took is not set
    // aside a second time.
    let set_aside = before - status(&agent).await.disk_free_bytes;
    let looked_at = 10_000_000_000 - 5_000_000 - 4096;
    assert!(
        [10_000_000_000, looked_at].contains(&set_aside),
        "{set_aside}"
    );
    let mut tries = 0;
    while before - status(&agent).await.disk_free_bytes != looked_at {
        tries += 1;
        assert!(tries < 500, "its disk is never looked at");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    broker.say(host.id, wanting(&goal, Want::End)).await;
    broker.gone(goal.lease).await;
    assert_eq!(status(&agent).await.disk_free_bytes, before);
}

#[tokio::test]
async fn owners_who_say_nothing_keep_nobody_else_from_asking() {
    let broker = FakeBroker::start(1).await;
    let host = Host::new(&[&broker], 0);
    let agent = host.start().await;
    let connect = |_| std::os::unix::net::UnixStream::connect(agent.socket()).unwrap();
    let _idle: Vec<_> = (0..40).map(connect).collect();
    let begun = clock::monotonic();
    assert_eq!(status(&agent).await.host, host.id.to_string());
    let waited = clock::monotonic().0 - begun.0;
    assert!(waited < 15_000, "{waited} ms");
}

#[tokio::test]
async fn a_broker_with_another_clock_is_asked_more_and_more_seldom() {
    let broker = FakeBroker::start(1).await;
    let host = Host::new(&[&broker], 0);
    let now = Timestamp(clock::wall().0 - 3_600_000);
    let detail = Text::cut("from the future");
    broker.refuse(Some(Rejection::NotNow { detail, now }));
    let _agent = host.start().await;
    wait("the first offers", || {
        broker.heard().offers.first().cloned()
    })
    .await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    // 100 ms, then 200, 400, and 500 for ever (the period of the offers): 3 and 2300 / 500 more; two more for
    // what the first looks at engine and machine changed.
    let tries = broker.heard().offers.len();
    assert!((5..=11).contains(&tries), "{tries} tries");
    broker.refuse(None);
    let noted = broker.heard().offers.len();
    wait("later offers", || {
        (broker.heard().offers.len() > noted + 1).then_some(())
    })
    .await;
    broker.offers(1).await;
}
