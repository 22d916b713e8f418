//! Links: kept up, noticed at once when lost, dialled again by themselves, and their relay circuits with them.
#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod net_world;

use std::time::Duration;

use net_world::{Over, SOON, echo, echo_broker, start, until};
use protocol::net::{
    Circuit, ConnectError, LinkDown, LinkHandle, LinkState, Multiaddr, NodeConfig, Refusal,
    ReserveRelay, circuit_address,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

fn is_up(link: &LinkHandle) -> bool {
    matches!(link.state(), LinkState::Up { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_comes_back_when_the_broker_does() {
    for over in Over::BOTH {
        let broker = echo_broker(1, NodeConfig::broker(vec![over.anywhere()])).await;
        let at = broker.listen_addresses().await;
        let (host, events) = start(2, NodeConfig::host(vec![])).await;
        tokio::spawn(echo(events));
        let link = host.keep_connected(broker.public(), at.clone(), ReserveRelay::Yes);
        link.up(SOON).await.unwrap();
        assert_eq!(link.peer(), broker.public());

        let mut states = link.watch();
        let stopped = Instant::now();
        broker.shutdown(Duration::ZERO).await;
        let noticed = states.wait_for(|state| !matches!(state, LinkState::Up { .. }));
        tokio::time::timeout(SOON, noticed).await.unwrap().unwrap();
        assert!(
            stopped.elapsed() < Duration::from_secs(2),
            "{over:?}: noticed after {:?}",
            stopped.elapsed()
        );

        let broker = echo_broker(1, NodeConfig::broker(at.clone())).await;
        link.up(SOON).await.unwrap();
        let reply = host.request(broker.public(), b"ab".to_vec(), SOON).await;
        assert_eq!(reply.unwrap(), b"ba");
        // And the circuit with it.
        let (renter, _events) = start(3, NodeConfig::renter()).await;
        let circuit = circuit_address(&at[0], broker.public(), host.public());
        renter
            .connect(host.public(), vec![circuit], SOON)
            .await
            .unwrap();
        let reply = renter.request(host.public(), b"cd".to_vec(), SOON).await;
        assert_eq!(reply.unwrap(), b"dc");
    }
}

#[tokio::test]
async fn a_link_keeps_an_idle_connection_and_its_end_lets_go_of_it() {
    let mut config = NodeConfig::broker(vec![Over::Tcp.anywhere()]);
    config.limits.idle_timeout = Duration::from_millis(300);
    let broker = echo_broker(1, config).await;
    let at = broker.listen_addresses().await;
    let mut config = NodeConfig::renter();
    config.limits.idle_timeout = Duration::from_millis(300);
    let (renter, _events) = start(2, config).await;
    let link = renter.keep_connected(broker.public(), at, ReserveRelay::No);
    link.up(SOON).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let LinkState::Up { since, circuit } = link.state() else {
        panic!("{:?}", link.state());
    };
    assert!(since.elapsed() >= Duration::from_millis(1200));
    assert_eq!(circuit, Circuit::NotWanted);
    assert_eq!(broker.counters().connections_opened(), 1);
    drop(link);
    until("let go", async || broker.counters().connections_open() == 0).await;
}

/// A wire to `target` that can be cut without either end being told.
async fn wire(target: std::net::SocketAddr) -> (Multiaddr, tokio::sync::watch::Sender<bool>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (cut, is_cut) = tokio::sync::watch::channel(false);
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut is_cut = is_cut.clone();
            tokio::spawn(async move {
                let mut far = tokio::net::TcpStream::connect(target).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    _ = is_cut.wait_for(|cut| *cut) => {}
                }
                // Held, not closed: neither end is told, ever.
                std::future::pending::<()>().await;
            });
        }
    });
    (Over::Tcp.at(port), cut)
}

#[tokio::test]
async fn a_silent_network_is_noticed_by_both_ends_and_the_link_comes_back() {
    let mut config = NodeConfig::broker(vec![Over::Tcp.anywhere()]);
    config.limits.ping_interval = Duration::from_millis(200);
    config.limits.ping_timeout = Duration::from_millis(200);
    let mut host_config = NodeConfig::host(vec![]);
    host_config.limits = config.limits;
    let broker = echo_broker(1, config).await;
    let at = broker.listen_addresses().await[0].to_string();
    let port = at.split('/').nth(4).unwrap().parse().unwrap();
    let (through, cut) = wire(([127, 0, 0, 1], port).into()).await;
    let (host, _events) = start(2, host_config).await;
    let link = host.keep_connected(broker.public(), vec![through], ReserveRelay::No);
    link.up(SOON).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1000)).await;
    assert_eq!(broker.counters().connections_opened(), 1, "pings kept it");
    let mut tunnels = Vec::new();
    for _ in 0..24 {
        tunnels.push(host.open_tunnel(broker.public(), SOON).await.unwrap());
    }

    cut.send_replace(true);
    let mut states = link.watch();
    // More than the system's buffers hold, so that the connection cannot even be closed in order.
    let stuck = tunnels.into_iter().map(|mut tunnel| {
        tokio::spawn(async move {
            while tunnel.write_all(&[7; 64 * 1024]).await.is_ok() {}
            tunnel.read(&mut [0]).await
        })
    });
    let stuck: Vec<_> = stuck.collect();
    // Two pings of 0.2 + 0.2 s, and the library's 10 s for the stream of the second.
    let noticed = states.wait_for(|state| !matches!(state, LinkState::Up { .. }));
    tokio::time::timeout(Duration::from_secs(12), noticed)
        .await
        .unwrap()
        .unwrap();
    until("the broker noticed too", async || {
        broker.counters().connections_open() == 0
    })
    .await;
    for tunnel in stuck {
        let end = tokio::time::timeout(SOON, tunnel).await.unwrap().unwrap();
        assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    }
    cut.send_replace(false);
    link.retry_now();
    link.up(SOON).await.unwrap();
    let reply = host.request(broker.public(), b"ab".to_vec(), SOON).await;
    assert_eq!(reply.unwrap(), b"ba");
}

#[tokio::test]
async fn a_broker_that_is_not_there_is_tried_again_and_the_reason_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = Over::Tcp.at(taken.local_addr().unwrap().port());
    drop(taken);
    let (renter, _events) = start(2, NodeConfig::renter()).await;
    let broker = net_world::identity(1).public();
    let link = renter.keep_connected(broker, vec![at.clone()], ReserveRelay::No);
    let short = Duration::from_millis(400);
    let why = link.up(short).await.unwrap_err();
    assert!(
        matches!(&why, LinkDown::Connect(ConnectError::Failed { .. })),
        "{why}"
    );
    assert!(why.to_string().contains("refused"), "{why}");
    if let LinkState::Down { next_try, .. } = link.state() {
        assert!(next_try <= (Instant::now() + Duration::from_secs(10)).into_std());
    }
    let _broker = echo_broker(1, NodeConfig::broker(vec![at])).await;
    link.retry_now();
    link.up(SOON).await.unwrap();
}

#[tokio::test]
async fn a_node_ends_with_its_last_handle() {
    let (broker, events) = start(1, NodeConfig::broker(vec![Over::Tcp.anywhere()])).await;
    let answering = tokio::spawn(echo(events));
    let at = broker.listen_addresses().await;
    let (renter, _events) = start(2, NodeConfig::renter()).await;
    let link = renter.keep_connected(broker.public(), at, ReserveRelay::No);
    link.up(SOON).await.unwrap();
    drop(broker);
    until("the renter sees it gone", async || !is_up(&link)).await;
    // Its events have ended as well.
    tokio::time::timeout(SOON, answering)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn without_a_relay_the_link_is_up_and_says_that_there_is_no_circuit() {
    // A host is no relay, and can be linked to all the same.
    let (other, _other_events) = start(1, NodeConfig::host(vec![Over::Tcp.anywhere()])).await;
    let at = other.listen_addresses().await;
    let (host, _events) = start(2, NodeConfig::host(vec![])).await;
    let link = host.keep_connected(other.public(), at, ReserveRelay::Yes);
    link.up(SOON).await.unwrap();
    let LinkState::Up {
        circuit: Circuit::Refused { reason },
        ..
    } = link.state()
    else {
        panic!("{:?}", link.state());
    };
    assert!(!reason.is_empty());
}

#[tokio::test]
async fn a_node_holds_many_links_and_a_peer_only_so_many() {
    let broker = echo_broker(1, NodeConfig::broker(vec![Over::Tcp.anywhere()])).await;
    let other = echo_broker(4, NodeConfig::broker(vec![Over::Tcp.anywhere()])).await;
    let (host, _events) = start(2, NodeConfig::host(vec![])).await;
    let mut links = Vec::new();
    for node in [&broker, &other] {
        let at = node.listen_addresses().await;
        links.push(host.keep_connected(node.public(), at.clone(), ReserveRelay::Yes));
        links.push(host.keep_connected(node.public(), at, ReserveRelay::No));
    }
    for link in &links {
        link.up(SOON).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(links.iter().all(is_up));
    assert_eq!(broker.counters().refused(Refusal::TooManyLinks), 0);
    let one: &LinkHandle = &links[0];
    assert!(matches!(
        one.state(),
        LinkState::Up {
            circuit: Circuit::Reserved { .. },
            ..
        }
    ));
}
