//! Requests between real nodes on loopback: replies, sizes, deadlines, and each limit with its explicit refusal.
#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod net_world;

use std::num::NonZeroU32;
use std::time::Duration;

use futures::future::join_all;
use net_world::{Over, SOON, connect, echo_broker, start, until};
use protocol::net::{
    ConnectError, MAX_FRAME, Node, NodeConfig, NodeError, NodeEvent, NodeEvents, PeerRefusal,
    Refusal, ReplyError, RequestError,
};
use tokio::time::Instant;

#[tokio::test]
async fn a_reply_comes_back_over_each_transport() {
    for over in Over::BOTH {
        let broker = echo_broker(1, NodeConfig::broker(vec![over.anywhere()])).await;
        let (renter, _events) = start(2, NodeConfig::renter()).await;
        let peer = connect(&renter, &broker).await;
        let reply = renter.request(peer, b"abc".to_vec(), SOON).await.unwrap();
        assert_eq!(reply, b"cba", "{over:?}");
        let empty = renter.request(peer, Vec::new(), SOON).await.unwrap();
        assert!(empty.is_empty());
        until("both requests are counted", async || {
            broker.counters().requests_answered() == 2
        })
        .await;
        assert_eq!(renter.connected_peers().await, vec![broker.public()]);
    }
}

#[tokio::test]
async fn the_broker_asks_back_over_the_same_connection() {
    let (broker, _broker_events) = start(1, NodeConfig::broker(vec![Over::Tcp.anywhere()])).await;
    let host = echo_broker(2, NodeConfig::host(vec![])).await;
    connect(&host, &broker).await;
    until("the broker sees the host", async || {
        broker.is_connected(host.public()).await
    })
    .await;
    let reply = broker
        .request(host.public(), b"goal".to_vec(), SOON)
        .await
        .unwrap();
    assert_eq!(reply, b"laog");
}

#[tokio::test]
async fn the_size_limit_is_exact_and_typed() {
    for over in Over::BOTH {
        let broker = echo_broker(1, NodeConfig::broker(vec![over.anywhere()])).await;
        let (renter, _events) = start(2, NodeConfig::renter()).await;
        let peer = connect(&renter, &broker).await;
        let full = renter.request(peer, vec![9; MAX_FRAME], SOON).await;
        assert_eq!(full.unwrap().len(), MAX_FRAME, "{over:?}");
        let over_it = renter.request(peer, vec![9; MAX_FRAME + 1], SOON).await;
        assert_eq!(
            over_it,
            Err(RequestError::TooBig {
                bytes: MAX_FRAME + 1
            })
        );
        assert_eq!(broker.counters().requests_received(), 1);
    }
}

#[tokio::test]
async fn a_slow_or_missing_answer_is_typed() {
    let mut config = NodeConfig::broker(vec![Over::Tcp.anywhere()]);
    config.limits.answer_timeout = Duration::from_secs(1);
    let (broker, mut events) = start(1, config).await;
    let (renter, _events) = start(2, NodeConfig::renter()).await;
    let peer = connect(&renter, &broker).await;

    let deadline = Duration::from_millis(200);
    let asked = Instant::now();
    let late = renter.request(peer, b"slow".to_vec(), deadline).await;
    assert_eq!(late, Err(RequestError::TimedOut { after: deadline }));
    assert!(asked.elapsed() < Duration::from_secs(1));
    assert!(late.unwrap_err().may_have_been_handled());

    // The program was handed it, and holds on to it past the node's own patience.
    let Some(NodeEvent::Request { responder, .. }) = events.recv().await else {
        panic!("no request");
    };
    let no_answer = RequestError::Refused {
        reason: PeerRefusal::NoAnswer,
    };
    let held = renter.request(peer, b"held".to_vec(), SOON);
    let (held, kept) = tokio::join!(held, events.recv());
    assert_eq!(held, Err(no_answer.clone()));
    let Some(NodeEvent::Request {
        responder: kept, ..
    }) = kept
    else {
        panic!("no request");
    };
    assert_eq!(kept.reply(Vec::new()), Err(ReplyError::TooLate));
    assert_eq!(responder.reply(Vec::new()), Err(ReplyError::TooLate));

    let (dropped, ()) = tokio::join!(renter.request(peer, b"dropped".to_vec(), SOON), async {
        drop(events.recv().await);
    });
    assert_eq!(dropped, Err(no_answer.clone()));
    let (huge, ()) = tokio::join!(renter.request(peer, b"huge".to_vec(), SOON), async {
        if let Some(NodeEvent::Request { responder, .. }) = events.recv().await {
            let bytes = MAX_FRAME + 1;
            assert_eq!(
                responder.reply(vec![0; bytes]),
                Err(ReplyError::TooBig { bytes })
            );
        }
    });
    assert_eq!(huge, Err(no_answer));
    assert_eq!(broker.counters().refused(Refusal::NoAnswer), 4);
}

#[tokio::test]
async fn an_empty_bucket_says_busy_and_leaves_others_alone() {
    for over in Over::BOTH {
        let mut config = NodeConfig::broker(vec![over.anywhere()]);
        config.limits.requests_per_second = NonZeroU32::MIN;
        config.limits.request_burst = NonZeroU32::new(20).unwrap();
        let broker = echo_broker(1, config).await;
        let (flooder, _events) = start(2, NodeConfig::renter()).await;
        let (honest, _events) = start(3, NodeConfig::renter()).await;
        let peer = connect(&flooder, &broker).await;
        connect(&honest, &broker).await;

        // Big ones, so that the refusal overtakes the request.
        let flood = (0..60).map(|_| flooder.request(peer, vec![1; 200_000], SOON));
        let (flood, calm) = tokio::join!(
            join_all(flood),
            join_all((0..10).map(|_| honest.request(peer, b"hello".to_vec(), SOON)))
        );
        for reply in calm {
            assert_eq!(reply.unwrap(), b"olleh", "{over:?}");
        }
        let busy = RequestError::Busy {
            reason: PeerRefusal::TooManyRequests,
        };
        let answered = flood.iter().filter(|reply| reply.is_ok()).count();
        let refused = flood
            .iter()
            .filter(|reply| reply.as_ref().err() == Some(&busy))
            .count();
        // A token a second may have come back meanwhile.
        assert!(
            (20..=23).contains(&answered),
            "{over:?}: {answered} answered"
        );
        assert_eq!(answered + refused, 60, "{over:?}: {flood:?}");
        let counted = broker.counters().refused(Refusal::TooManyRequests);
        assert_eq!(counted, u64::try_from(refused).unwrap());

        // A new connection does not fill the bucket.
        flooder.disconnect(peer).await;
        until("disconnected", async || !flooder.is_connected(peer).await).await;
        connect(&flooder, &broker).await;
        let again = join_all((0..5).map(|_| flooder.request(peer, vec![1], SOON))).await;
        assert!(again.contains(&Err(busy)), "{over:?}: {again:?}");
    }
}

/// Takes events until there are `many`.
async fn take(events: &mut NodeEvents, many: usize, held: &mut Vec<NodeEvent>) {
    let taking = async {
        while held.len() < many {
            held.extend(events.recv().await);
        }
    };
    tokio::time::timeout(SOON, taking).await.unwrap();
}

#[tokio::test]
async fn requests_in_flight_are_bounded_on_both_sides() {
    let mut config = NodeConfig::broker(vec![Over::Tcp.anywhere()]);
    config.limits.in_flight_per_peer = 4;
    config.limits.in_flight = 6;
    let (broker, mut events) = start(1, config).await;
    let (one, _one_events) = start(2, NodeConfig::renter()).await;
    let (two, _two_events) = start(3, NodeConfig::renter()).await;
    let peer = connect(&one, &broker).await;
    connect(&two, &broker).await;

    let ask = |node: &Node, many: usize| {
        let node = node.clone();
        tokio::spawn(async move {
            let asked = (0..many).map(|_| node.request(peer, b"x".to_vec(), SOON));
            join_all(asked).await
        })
    };
    let mut held = Vec::new();
    let first = ask(&one, 5);
    take(&mut events, 4, &mut held).await;
    let second = ask(&two, 3);
    take(&mut events, 6, &mut held).await;
    until("two refusals", async || {
        broker.counters().refused(Refusal::TooManyInFlight) == 2
    })
    .await;
    for event in held {
        let NodeEvent::Request { responder, .. } = event else {
            panic!("no request");
        };
        responder.reply(Vec::new()).unwrap();
    }
    let busy = RequestError::Busy {
        reason: PeerRefusal::TooManyInFlight,
    };
    for (replies, expected) in [(first.await.unwrap(), 4), (second.await.unwrap(), 2)] {
        let answered = replies.iter().filter(|reply| reply.is_ok()).count();
        assert_eq!(answered, expected);
        assert!(replies.contains(&Err(busy.clone())));
    }

    let limit = 64; // the renter's own
    let many =
        join_all((0..=limit).map(|_| one.request(peer, b"x".to_vec(), Duration::from_millis(300))))
            .await;
    assert!(many.contains(&Err(RequestError::TooManyInFlight { limit })));
}

#[tokio::test]
async fn a_program_that_does_not_read_gets_no_more_than_its_queue() {
    let mut config = NodeConfig::broker(vec![Over::Tcp.anywhere()]);
    config.limits.in_flight = 3;
    let (broker, events) = start(1, config).await;
    let (renter, _events) = start(2, NodeConfig::renter()).await;
    let peer = connect(&renter, &broker).await;
    let short = Duration::from_millis(300);
    let replies = join_all((0..10).map(|_| renter.request(peer, vec![1], short))).await;
    let waited = replies
        .iter()
        .filter(|reply| matches!(reply, Err(RequestError::TimedOut { .. })))
        .count();
    assert_eq!(waited, 3, "{replies:?}");
    assert_eq!(broker.counters().refused(Refusal::TooManyInFlight), 7);

    // A program that is gone is no reason to hang.
    drop(events);
    until("the places are given back", async || {
        renter.request(peer, vec![1], short).await
            == Err(RequestError::Busy {
                reason: PeerRefusal::QueueFull,
            })
    })
    .await;
}

#[tokio::test]
async fn connections_in_all_are_bounded() {
    let mut config = NodeConfig::broker(vec![Over::Tcp.anywhere()]);
    config.limits.connections = 3;
    let broker = echo_broker(1, config).await;
    let address = broker.listen_addresses().await;

    // Two programs with one key, as a renter who runs two commands at once.
    let mut same = Vec::new();
    for _ in 0..2 {
        let (node, events) = start(2, NodeConfig::renter()).await;
        node.connect(broker.public(), address.clone(), SOON)
            .await
            .unwrap();
        same.push((node, events));
    }
    let (third, _third_events) = start(3, NodeConfig::renter()).await;
    connect(&third, &broker).await;
    let reply = third.request(broker.public(), b"ok".to_vec(), SOON).await;
    assert_eq!(reply.unwrap(), b"ko");
    let (fourth, _fourth_events) = start(4, NodeConfig::renter()).await;
    fourth
        .connect(broker.public(), address, SOON)
        .await
        .unwrap();
    until("the fourth is turned away", async || {
        broker.counters().refused(Refusal::TooManyConnections) == 1
            && !fourth.is_connected(broker.public()).await
    })
    .await;
    assert_eq!(broker.counters().connections_open(), 3);
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_used_one_is_not() {
    // Not a broker: the library's relay keeps any connection for ten seconds.
    let mut config = NodeConfig::host(vec![Over::Tcp.anywhere()]);
    config.limits.idle_timeout = Duration::from_millis(300);
    let broker = echo_broker(1, config).await;
    let (renter, _events) = start(2, NodeConfig::renter()).await;
    let peer = connect(&renter, &broker).await;
    let tunnel = renter.open_tunnel(peer, SOON).await.unwrap();
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert!(renter.is_connected(peer).await);
    net_world::check_echo(tunnel, 1000).await;
    until("closed as idle", async || !renter.is_connected(peer).await).await;
    let gone = renter.request(peer, vec![1], SOON).await;
    assert_eq!(gone, Err(RequestError::Unreachable));
}

#[tokio::test]
async fn what_cannot_be_reached_says_why() {
    let (renter, _events) = start(2, NodeConfig::renter()).await;
    let nobody = net_world::identity(9).public();
    let gone = renter.request(nobody, vec![1], SOON).await;
    assert_eq!(gone, Err(RequestError::Unreachable));
    let none = renter.connect(nobody, Vec::new(), SOON).await;
    assert_eq!(none, Err(ConnectError::NoAddresses));

    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let refused = renter
        .connect(nobody, vec![Over::Tcp.at(port)], SOON)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains(&port.to_string()) && refused.contains("refused"),
        "{refused}"
    );

    let (broker, _events) = start(1, NodeConfig::broker(vec![Over::Tcp.anywhere()])).await;
    let there = broker.listen_addresses().await[0].clone();
    let bare = there.iter().take(2).collect();
    let wrong = renter.connect(nobody, vec![bare], SOON).await;
    assert_eq!(
        wrong,
        Err(ConnectError::WrongPeer {
            found: net_world::identity(1).peer_id()
        })
    );
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Over::Tcp.at(taken.local_addr().unwrap().port());
    let config = NodeConfig::broker(vec![address.clone()]);
    let error = Node::start(&net_world::identity(1), config)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, NodeError::Listen { address: named, .. } if *named == address),
        "{error}"
    );
    assert!(error.to_string().contains("in use"), "{error}");
}

#[tokio::test]
async fn shutting_down_finishes_what_is_being_answered_and_frees_the_port() {
    for over in Over::BOTH {
        let (broker, mut events) = start(1, NodeConfig::broker(vec![over.anywhere()])).await;
        let address = broker.listen_addresses().await[0].clone();
        let (renter, _renter_events) = start(2, NodeConfig::renter()).await;
        let peer = connect(&renter, &broker).await;
        let asked = tokio::spawn({
            let renter = renter.clone();
            async move { renter.request(peer, b"last".to_vec(), SOON).await }
        });
        let Some(NodeEvent::Request { responder, .. }) = events.recv().await else {
            panic!("no request");
        };
        let stopping = tokio::spawn({
            let broker = broker.clone();
            async move { broker.shutdown(SOON).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        responder.reply(b"done".to_vec()).unwrap();
        assert_eq!(asked.await.unwrap().unwrap(), b"done", "{over:?}");
        tokio::time::timeout(SOON, stopping).await.unwrap().unwrap();
        assert!(events.recv().await.is_none());
        let stopped = broker.request(renter.public(), vec![1], SOON).await;
        assert_eq!(stopped, Err(RequestError::NodeStopped));
        until("the renter notices", async || {
            !renter.is_connected(peer).await
        })
        .await;
        let (_again, _events) = start(1, NodeConfig::broker(vec![address])).await;
    }
}
