//! Tunnels between real nodes on loopback: whole bytes both ways, many at once, explicit refusals, and the same
//! through a broker's relay to a host that listens nowhere.
#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod net_world;

use std::time::Duration;

use futures::future::join_all;
use net_world::{Over, SOON, check_echo, connect, echo, echo_broker, start, until};
use protocol::net::{
    Circuit, LinkHandle, LinkState, Node, NodeConfig, NodeEvent, PeerRefusal, Refusal, RelayLimits,
    RequestError, ReserveRelay, TunnelError, circuit_address,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const FOUR_MIB: usize = 4 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn four_mib_go_both_ways_at_once_over_each_transport() {
    for over in Over::BOTH {
        let broker = echo_broker(1, NodeConfig::broker(vec![over.anywhere()])).await;
        let (renter, _events) = start(2, NodeConfig::renter()).await;
        let peer = connect(&renter, &broker).await;
        let tunnel = renter.open_tunnel(peer, SOON).await.unwrap();
        assert!(!tunnel.relayed());
        assert_eq!(tunnel.peer(), peer);
        check_echo(tunnel, FOUR_MIB).await;
    }
}

/// A host without any listen address, reached through a broker, and the renter who reaches it.
struct Relayed {
    broker: Node,
    host: Node,
    renter: Node,
    link: LinkHandle,
}

async fn relayed(over: Over, relay: RelayLimits) -> Relayed {
    let mut config = NodeConfig::broker(vec![over.anywhere()]);
    config.relay = relay;
    let broker = echo_broker(1, config).await;
    let at = broker.listen_addresses().await;
    let mut config = NodeConfig::host(vec![]);
    config.limits.idle_timeout = Duration::from_millis(500);
    let (host, events) = start(2, config).await;
    tokio::spawn(echo(events));
    let link = host.keep_connected(broker.public(), at.clone(), ReserveRelay::Yes);
    link.up(SOON).await.unwrap();
    let mut config = NodeConfig::renter();
    config.limits.idle_timeout = Duration::from_millis(500);
    let (renter, _) = start(3, config).await;
    let circuit = circuit_address(&at[0], broker.public(), host.public());
    renter
        .connect(host.public(), vec![circuit], SOON)
        .await
        .unwrap();
    Relayed {
        broker,
        host,
        renter,
        link,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_listens_nowhere_is_reached_through_the_relay() {
    for over in Over::BOTH {
        let world = relayed(over, RelayLimits::default()).await;
        let host = world.host.public();
        let LinkState::Up {
            circuit: Circuit::Reserved { address },
            ..
        } = world.link.state()
        else {
            panic!("{:?}", world.link.state());
        };
        assert!(address.to_string().contains("/p2p-circuit"), "{address}");
        let tunnel = world.renter.open_tunnel(host, SOON).await.unwrap();
        assert!(tunnel.relayed());

        // Past the idle time-out of all three connections, without a byte.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        check_echo(tunnel, FOUR_MIB).await;
        let reply = world.renter.request(host, b"abc".to_vec(), SOON).await;
        assert_eq!(reply.unwrap(), b"cba");
        assert_eq!(world.broker.counters().circuits_accepted(), 1);
        assert!(world.broker.counters().reservations_accepted() >= 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_connection_is_taken_before_a_relayed_one() {
    let broker = echo_broker(1, NodeConfig::broker(vec![Over::Tcp.anywhere()])).await;
    let at = broker.listen_addresses().await;
    let host = echo_broker(2, NodeConfig::host(vec![Over::Tcp.anywhere()])).await;
    let link = host.keep_connected(broker.public(), at.clone(), ReserveRelay::Yes);
    link.up(SOON).await.unwrap();
    let (renter, _events) = start(3, NodeConfig::renter()).await;
    let circuit = circuit_address(&at[0], broker.public(), host.public());
    renter
        .connect(host.public(), vec![circuit.clone()], SOON)
        .await
        .unwrap();
    let first = renter.open_tunnel(host.public(), SOON).await.unwrap();
    assert!(first.relayed());
    // The relayed connection is there, but a direct one was asked for.
    let direct = host
        .listen_addresses()
        .await
        .into_iter()
        .filter(|address| !address.to_string().contains("p2p-circuit"))
        .collect();
    renter.connect(host.public(), direct, SOON).await.unwrap();
    for _ in 0..10 {
        let tunnel = renter.open_tunnel(host.public(), SOON).await.unwrap();
        assert!(!tunnel.relayed());
    }
    check_echo(first, 1000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_relay_ends_a_circuit_at_its_byte_limit_and_not_before() {
    let limits = RelayLimits {
        circuit_bytes: 1024 * 1024,
        ..RelayLimits::default()
    };
    let world = relayed(Over::Tcp, limits).await;
    let host = world.host.public();
    let tunnel = world.renter.open_tunnel(host, SOON).await.unwrap();
    check_echo(tunnel, 200_000).await;
    let mut tunnel = world.renter.open_tunnel(host, SOON).await.unwrap();
    let sent = async {
        let chunk = vec![7; 64 * 1024];
        let mut echoed = vec![0; chunk.len()];
        for _ in 0..64 {
            tunnel.write_all(&chunk).await?;
            tunnel.read_exact(&mut echoed).await?;
        }
        Ok::<(), std::io::Error>(())
    };
    assert!(tokio::time::timeout(SOON, sent).await.unwrap().is_err());
    until("the circuit is gone", async || {
        !world.renter.is_connected(host).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_at_once_all_work_or_are_refused() {
    for over in Over::BOTH {
        // The acceptor's limit is the tighter one, then the opener's.
        for (accepts, opens, expected) in [(100, 250, 100), (250, 100, 100), (250, 250, 200)] {
            let mut config = NodeConfig::broker(vec![over.anywhere()]);
            config.limits.tunnels_per_peer = accepts;
            let broker = echo_broker(1, config).await;
            let mut config = NodeConfig::renter();
            config.limits.tunnels_per_peer = opens;
            let (renter, _events) = start(2, config).await;
            let peer = connect(&renter, &broker).await;
            let opened = join_all((0..200).map(|_| renter.open_tunnel(peer, SOON))).await;
            let mut tunnels = Vec::new();
            for result in opened {
                match result {
                    Ok(tunnel) => tunnels.push(tunnel),
                    Err(
                        TunnelError::Refused {
                            reason: PeerRefusal::TooManyTunnels,
                        }
                        | TunnelError::TooManyTunnels { limit: 100 },
                    ) => {}
                    Err(other) => panic!("{over:?} {accepts}/{opens}: {other}"),
                }
            }
            assert_eq!(tunnels.len(), expected, "{over:?} {accepts}/{opens}");
            join_all(tunnels.into_iter().map(|tunnel| check_echo(tunnel, 2000))).await;

            // All given back.
            until("the places are free again", async || {
                renter.open_tunnel(peer, SOON).await.is_ok()
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_program_that_takes_no_tunnels_has_them_refused() {
    let mut config = NodeConfig::broker(vec![Over::Tcp.anywhere()]);
    config.limits.tunnel_queue = 3;
    let (broker, mut events) = start(1, config).await;
    let (renter, _renter_events) = start(2, NodeConfig::renter()).await;
    let peer = connect(&renter, &broker).await;
    let mut opened = Vec::new();
    for _ in 0..3 {
        opened.push(renter.open_tunnel(peer, SOON).await.unwrap());
    }
    let refused = renter.open_tunnel(peer, SOON).await.unwrap_err();
    let full = TunnelError::Refused {
        reason: PeerRefusal::QueueFull,
    };
    assert_eq!(refused, full);
    assert_eq!(broker.counters().refused(Refusal::TunnelQueueFull), 1);
    let Some(NodeEvent::Tunnel {
        peer: from,
        mut tunnel,
        relayed,
    }) = events.recv().await
    else {
        panic!("no tunnel");
    };
    assert_eq!((from, relayed), (renter.public(), false));
    renter.open_tunnel(peer, SOON).await.unwrap();

    // The first one is whole: what either side closes, the other sees as the end.
    opened[0].write_all(b"hello").await.unwrap();
    opened[0].shutdown().await.unwrap();
    let mut heard = String::new();
    tunnel.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "hello");
    tunnel.write_all(b"bye").await.unwrap();
    tunnel.shutdown().await.unwrap();
    let mut heard = String::new();
    opened[0].read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "bye");
}

#[tokio::test]
async fn nobody_there_is_typed() {
    let (renter, _events) = start(2, NodeConfig::renter()).await;
    let nobody = net_world::identity(9).public();
    assert_eq!(
        renter.open_tunnel(nobody, SOON).await.unwrap_err(),
        TunnelError::Unreachable
    );

    // A circuit to a host that has none is refused by the relay, in words.
    let broker = echo_broker(1, NodeConfig::broker(vec![Over::Tcp.anywhere()])).await;
    let at = broker.listen_addresses().await;
    let circuit = circuit_address(&at[0], broker.public(), nobody);
    let error = renter
        .connect(nobody, vec![circuit], SOON)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("eservation"), "{error}");
    let gone = renter.request(nobody, vec![1], SOON).await;
    assert_eq!(gone, Err(RequestError::Unreachable));
}
