//! Many connections at once, of one address and of one key: each has its bound, its count and, where somebody
//! listens, its reason; and whoever is not of the crowd is served.
#![cfg(feature = "net")]

mod net_world;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use net_world::{Over, SOON, connect, dial_from_elsewhere, echo_broker, start, tcp_port, until};
use protocol::net::{
    LinkDown, LinkState, Multiaddr, Node, NodeConfig, NodeEvents, PeerRefusal, Refusal,
    RequestError, ReserveRelay, TunnelError,
};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout};

const TOO_MANY: PeerRefusal = PeerRefusal::TooManyConnections;

async fn renter(broker: &Node) -> (Node, NodeEvents) {
    let (node, events) = start(2, NodeConfig::renter()).await;
    connect(&node, broker).await;
    (node, events)
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_of_one_address_do_not_lock_out_another() {
    let broker = echo_broker(1, NodeConfig::broker(vec![Over::Tcp.anywhere()])).await;
    let port = tcp_port(&broker).await;
    let started = Instant::now();
    let mut idle = Vec::new();
    for _ in 0..400 {
        idle.push(dial_from_elsewhere(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await);
    }
    // 64 of one address may shake hands at once.
    until("336 of 400 are turned away", async || {
        broker.counters().refused(Refusal::TooManyPendingOfAddress) == 336
    })
    .await;
    let (renter, _events) = start(2, NodeConfig::renter()).await;
    let peer = connect(&renter, &broker).await;
    let reply = renter.request(peer, b"ab".to_vec(), SOON).await;
    assert_eq!(reply.unwrap(), b"ba");
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(broker.counters().refused(Refusal::TooManyPending), 0);

    // And those 64 are let go of after five seconds.
    for mut socket in idle {
        let mut rest = Vec::new();
        let ended = timeout(SOON, socket.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "an idle connection is still open");
    }
    assert!(started.elapsed() < Duration::from_secs(8));
}

#[tokio::test]
async fn half_open_connections_of_an_address_are_bounded_over_tcp_and_quic() {
    for over in Over::BOTH {
        let mut config = NodeConfig::broker(vec![over.anywhere()]);
        config.limits.pending_per_address = 0;
        let broker = echo_broker(1, config).await;
        let (renter, _events) = start(2, NodeConfig::renter()).await;
        let at = broker.listen_addresses().await;
        // A QUIC dialler may not hear of it before it gives up.
        let dialled = renter
            .connect(broker.public(), at, Duration::from_secs(2))
            .await;
        assert!(dialled.is_err(), "{over:?}");
        until("it is counted", async || {
            broker.counters().refused(Refusal::TooManyPendingOfAddress) >= 1
        })
        .await;
        assert_eq!(broker.counters().connections_opened(), 0, "{over:?}");
    }
}

#[tokio::test]
async fn connections_of_one_address_are_bounded_whatever_their_keys() {
    for over in Over::BOTH {
        let mut config = NodeConfig::broker(vec![over.anywhere()]);
        config.limits.connections_per_address = 2;
        let broker = echo_broker(1, config).await;
        let at: Vec<Multiaddr> = broker.listen_addresses().await;
        let mut nodes = Vec::new();
        for seed in 2..5 {
            let (node, events) = start(seed, NodeConfig::renter()).await;
            // The third is closed right after its handshake, or within it.
            let _ = node.connect(broker.public(), at.clone(), SOON).await;
            nodes.push((node, events));
        }
        until("the third is turned away", async || {
            broker
                .counters()
                .refused(Refusal::TooManyConnectionsOfAddress)
                == 1
                && broker.counters().connections_open() == 2
        })
        .await;
        // One that leaves makes room for one.
        let (gone, _) = nodes.swap_remove(0);
        gone.shutdown(SOON).await;
        until("one is gone", async || {
            broker.counters().connections_open() == 1
        })
        .await;
        let (next, _events) = start(6, NodeConfig::renter()).await;
        let peer = connect(&next, &broker).await;
        let reply = next.request(peer, b"ab".to_vec(), SOON).await;
        assert_eq!(reply.unwrap(), b"ba", "{over:?}");
    }
}

#[tokio::test]
async fn a_key_with_too_many_connections_is_told_so_and_served_when_one_is_gone() {
    for over in Over::BOTH {
        let mut config = NodeConfig::broker(vec![over.anywhere()]);
        config.limits.connections_per_peer = 2;
        let broker = echo_broker(1, config).await;
        let peer = broker.public();
        let first = renter(&broker).await;
        let second = renter(&broker).await;
        let (third, _events) = renter(&broker).await;
        let told = third.request(peer, b"ab".to_vec(), SOON).await;
        assert_eq!(told, Err(RequestError::Busy { reason: TOO_MANY }));
        assert!(!told.unwrap_err().may_have_been_handled());
        assert_eq!(broker.counters().refused(Refusal::TooManyConnections), 1);
        // The broker's own words go to the ones that it serves.
        assert_eq!(broker.counters().requests_received(), 0);

        connect(&third, &broker).await;
        let tunnel = third.open_tunnel(peer, SOON).await;
        assert_eq!(
            tunnel.unwrap_err(),
            TunnelError::Refused { reason: TOO_MANY }
        );
        for (served, _) in [&first, &second] {
            let reply = served.request(peer, b"ab".to_vec(), SOON).await;
            assert_eq!(reply.unwrap(), b"ba", "{over:?}");
        }

        first.0.shutdown(SOON).await;
        until("it is served", async || {
            connect(&third, &broker).await;
            third.request(peer, b"ab".to_vec(), SOON).await == Ok(b"ba".to_vec())
        })
        .await;
    }
}

#[tokio::test]
async fn thirty_two_programs_of_one_key_are_served_at_once() {
    let broker = echo_broker(1, NodeConfig::broker(vec![Over::Tcp.anywhere()])).await;
    let mut programs = Vec::new();
    for _ in 0..32 {
        programs.push(renter(&broker).await);
    }
    for (program, _) in &programs {
        let reply = program.request(broker.public(), b"ab".to_vec(), SOON).await;
        assert_eq!(reply.unwrap(), b"ba");
    }
    let (surplus, _events) = renter(&broker).await;
    let told = surplus.request(broker.public(), vec![1], SOON).await;
    assert_eq!(told, Err(RequestError::Busy { reason: TOO_MANY }));
}

#[tokio::test]
async fn a_surplus_connection_is_closed_though_it_asks_nothing() {
    let mut config = NodeConfig::broker(vec![Over::Tcp.anywhere()]);
    config.limits.connections_per_peer = 1;
    let broker = echo_broker(1, config).await;
    let _first = renter(&broker).await;
    let (idle, _events) = renter(&broker).await;
    until("it is let in", async || {
        broker.counters().connections_open() == 2
    })
    .await;
    until("it is closed", async || {
        broker.counters().connections_open() == 1 && !idle.is_connected(broker.public()).await
    })
    .await;
}

#[tokio::test]
async fn a_link_over_the_limit_says_why_it_is_down() {
    let mut config = NodeConfig::broker(vec![Over::Tcp.anywhere()]);
    config.limits.connections_per_peer = 1;
    let broker = echo_broker(1, config).await;
    let first = renter(&broker).await;
    let at = broker.listen_addresses().await;
    let (host, _events) = start(2, NodeConfig::host(vec![])).await;
    let link = host.keep_connected(broker.public(), at, ReserveRelay::No);
    let why = LinkDown::NotKept {
        reason: TOO_MANY.to_string(),
    };
    until(
        "it says why",
        async || matches!(link.state(), LinkState::Down { reason, .. } if reason == why),
    )
    .await;
    first.0.shutdown(SOON).await;
    until("it is up and stays up", async || {
        let reply = host.request(broker.public(), b"ab".to_vec(), SOON).await;
        reply == Ok(b"ba".to_vec())
    })
    .await;
}
