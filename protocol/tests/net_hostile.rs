//! Peers that are not ours, or mean harm: each is refused for its own counted reason, and an honest one is served.
#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod net_world;

use std::io;
use std::time::Duration;

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, StreamExt};
use libp2p::request_response::{self, OutboundFailure, ProtocolSupport};
use libp2p::swarm::{NetworkBehaviour, SwarmEvent};
use libp2p::{
    Multiaddr, StreamProtocol, Swarm, SwarmBuilder, identify, identity, noise, ping, tcp, yamux,
};
use net_world::{Over, SOON, connect, connect_from_elsewhere, echo_broker, start, until};
use protocol::net::{Limits, Node, NodeConfig, Refusal, RequestError};

/// Not sent: the stream is opened and nothing is ever written to it.
const SILENT: &[u8] = b"silent";

/// Writes whatever it is given, without any length, and reads whatever comes.
#[derive(Debug, Clone, Default)]
struct Raw;

impl request_response::Codec for Raw {
    type Protocol = StreamProtocol;
    type Request = Vec<u8>;
    type Response = Vec<u8>;

    async fn read_request<T: AsyncRead + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
    ) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        io.read_to_end(&mut bytes).await?;
        Ok(bytes)
    }

    async fn read_response<T: AsyncRead + Unpin + Send>(
        &mut self,
        protocol: &StreamProtocol,
        io: &mut T,
    ) -> io::Result<Vec<u8>> {
        self.read_request(protocol, io).await
    }

    async fn write_request<T: AsyncWrite + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        bytes: Vec<u8>,
    ) -> io::Result<()> {
        if bytes == SILENT {
            std::future::pending::<()>().await;
        }
        // A refusal may close the stream under our pen; what it says is read next.
        let _ = io.write_all(&bytes).await;
        Ok(())
    }

    async fn write_response<T: AsyncWrite + Unpin + Send>(
        &mut self,
        protocol: &StreamProtocol,
        io: &mut T,
        bytes: Vec<u8>,
    ) -> io::Result<()> {
        self.write_request(protocol, io, bytes).await
    }
}

#[derive(NetworkBehaviour)]
struct Stranger {
    raw: request_response::Behaviour<Raw>,
    ping: ping::Behaviour,
    identify: identify::Behaviour,
}

/// A libp2p node that speaks one protocol of ours as it likes.
fn stranger(seed: u8, protocol: &'static str, version: &str) -> Swarm<Stranger> {
    SwarmBuilder::with_existing_identity(net_world::identity(seed).keypair())
        .with_tokio()
        .with_tcp(
            tcp::Config::default(),
            noise::Config::new,
            yamux::Config::default,
        )
        .unwrap()
        .with_behaviour(|key: &identity::Keypair| Stranger {
            raw: request_response::Behaviour::new(
                [(StreamProtocol::new(protocol), ProtocolSupport::Outbound)],
                request_response::Config::default().with_max_concurrent_streams(1000),
            ),
            ping: ping::Behaviour::default(),
            identify: identify::Behaviour::new(identify::Config::new(
                version.to_owned(),
                key.public(),
            )),
        })
        .unwrap()
        .with_swarm_config(|config| config.with_idle_connection_timeout(SOON))
        .build()
}

/// Sends each of `frames` on a stream of its own and returns what each got, in order of arrival.
async fn send(
    swarm: &mut Swarm<Stranger>,
    to: (&Node, &[Multiaddr]),
    frames: Vec<Vec<u8>>,
) -> Vec<Result<Vec<u8>, OutboundFailure>> {
    let (node, addresses) = to;
    let wanted = frames.len();
    let peer = protocol::net::peer_id_of(&node.public());
    for frame in frames {
        swarm
            .behaviour_mut()
            .raw
            .send_request_with_addresses(&peer, frame, addresses.to_vec());
    }
    let mut got = Vec::new();
    while got.len() < wanted {
        let SwarmEvent::Behaviour(StrangerEvent::Raw(event)) = swarm.select_next_some().await
        else {
            continue;
        };
        match event {
            request_response::Event::Message {
                message: request_response::Message::Response { response, .. },
                ..
            } => got.push(Ok(response)),
            request_response::Event::OutboundFailure { error, .. } => got.push(Err(error)),
            request_response::Event::Message { .. }
            | request_response::Event::InboundFailure { .. }
            | request_response::Event::ResponseSent { .. } => {}
        }
    }
    got
}

async fn victim(change: impl FnOnce(&mut Limits)) -> (Node, Vec<Multiaddr>) {
    let mut config = NodeConfig::broker(vec![Over::Tcp.anywhere()]);
    change(&mut config.limits);
    let broker = echo_broker(1, config).await;
    let at = broker.listen_addresses().await;
    (broker, at)
}

fn frame(announced: u32, bytes: usize) -> Vec<u8> {
    [announced.to_le_bytes().to_vec(), vec![7; bytes]].concat()
}

#[tokio::test]
async fn bad_frames_get_their_byte_and_their_count() {
    let (broker, at) = victim(|limits| limits.frame_timeout = Duration::from_secs(1)).await;
    let mut swarm = stranger(2, "/feira/rpc/1", "feira/1");
    // What is sent, the byte that comes back, the reason counted.
    let cases = [
        (frame(262_145, 0), 6, Refusal::TooBig),
        (frame(u32::MAX, 400_000), 6, Refusal::TooBig),
        (frame(10, 9), 7, Refusal::Malformed),
        (vec![], 7, Refusal::Malformed),
        (vec![1, 0, 0], 7, Refusal::Malformed),
    ];
    for (sent, byte, reason) in cases {
        let before = broker.counters().refused(reason);
        let got = send(&mut swarm, (&broker, &at), vec![sent]).await;
        assert_eq!(got[0].as_ref().unwrap(), &vec![byte], "{reason:?}");
        assert_eq!(broker.counters().refused(reason), before + 1);
    }
    assert_eq!(broker.counters().requests_received(), 0);
    // The connection was not closed over it, and a good request on it is answered.
    let got = send(&mut swarm, (&broker, &at), vec![b"\x02\0\0\0ab".to_vec()]).await;
    assert_eq!(got[0].as_ref().unwrap(), b"\0\x02\0\0\0ba");
    assert_eq!(broker.counters().connections_opened(), 1);
}

#[tokio::test]
async fn a_link_that_talks_is_ended() {
    let (broker, at) = victim(|_| {}).await;
    let mut swarm = stranger(2, "/feira/link/1", "feira/1");
    let got = send(&mut swarm, (&broker, &at), vec![vec![1]]).await;
    assert!(got[0].as_ref().map_or(true, Vec::is_empty));
    assert_eq!(broker.counters().refused(Refusal::Malformed), 1);
}

#[tokio::test]
async fn another_version_and_another_protocol_are_closed() {
    let (broker, at) = victim(|_| {}).await;
    let mut swarm = stranger(2, "/feira/rpc/1", "other/9");
    let peer = protocol::net::peer_id_of(&broker.public());
    swarm
        .behaviour_mut()
        .raw
        .send_request_with_addresses(&peer, frame(0, 0), at.clone());
    let other = tokio::spawn(async move {
        loop {
            swarm.select_next_some().await;
        }
    });
    until("it is closed", async || {
        broker.counters().connections_opened() == 1 && broker.counters().connections_open() == 0
    })
    .await;
    assert_eq!(broker.counters().refused(Refusal::WrongVersion), 1);
    other.abort();

    // Nobody home for what we do not speak.
    let mut swarm = stranger(3, "/feira/rpc/2", "feira/1");
    let got = send(&mut swarm, (&broker, &at), vec![frame(0, 0)]).await;
    assert!(matches!(got[0], Err(OutboundFailure::UnsupportedProtocols)));
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_from_fifty_peers_does_not_stop_an_honest_one() {
    let (broker, at) = victim(|limits| limits.frame_timeout = Duration::from_secs(3)).await;
    let mut attackers = tokio::task::JoinSet::new();
    for seed in 100..150 {
        let (broker, at) = (broker.clone(), at.clone());
        attackers.spawn(async move {
            let mut swarm = stranger(seed, "/feira/rpc/1", "feira/1");
            loop {
                let garbage = [frame(5, 4), frame(u32::MAX, 100), vec![], frame(1000, 1000)]
                    .into_iter()
                    .cycle()
                    .take(100)
                    .collect();
                send(&mut swarm, (&broker, &at), garbage).await;
            }
        });
    }
    until("the garbage arrives", async || {
        broker.counters().refused(Refusal::TooManyRequests) > 500
            && broker.counters().refused(Refusal::Malformed) > 500
    })
    .await;
    let (honest, _events) = start(2, NodeConfig::renter()).await;
    let peer = connect_from_elsewhere(&honest, &broker).await;
    for _ in 0..20 {
        let reply = honest.request(peer, b"abc".to_vec(), SOON).await;
        assert_eq!(reply.unwrap(), b"cba");
    }
    attackers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_send_nothing_take_no_place_from_one_who_does() {
    let (broker, at) = victim(|limits| limits.in_flight = 4).await;
    let peer = protocol::net::peer_id_of(&broker.public());
    let mut attackers = tokio::task::JoinSet::new();
    for seed in 100..105 {
        let at = at.clone();
        attackers.spawn(async move {
            let mut swarm = stranger(seed, "/feira/rpc/1", "feira/1");
            for _ in 0..70 {
                swarm.behaviour_mut().raw.send_request_with_addresses(
                    &peer,
                    SILENT.to_vec(),
                    at.clone(),
                );
            }
            loop {
                swarm.select_next_some().await;
            }
        });
    }
    // Each holds its 64 places and is refused the other 6.
    until("all their places are taken", async || {
        broker.counters().refused(Refusal::TooManyInFlight) == 30
    })
    .await;
    let (honest, _events) = start(2, NodeConfig::renter()).await;
    let peer = connect(&honest, &broker).await;
    for _ in 0..50 {
        let reply = honest.request(peer, b"abc".to_vec(), SOON).await;
        assert_eq!(reply.unwrap(), b"cba");
    }
    attackers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_requests_of_one_address_take_no_place_from_another_address() {
    let (broker, at) = victim(|limits| {
        limits.arriving = 128;
        limits.arriving_per_address = 100;
    })
    .await;
    let peer = protocol::net::peer_id_of(&broker.public());
    let mut attackers = tokio::task::JoinSet::new();
    for seed in 100..103 {
        let at = at.clone();
        attackers.spawn(async move {
            let mut swarm = stranger(seed, "/feira/rpc/1", "feira/1");
            for _ in 0..60 {
                swarm.behaviour_mut().raw.send_request_with_addresses(
                    &peer,
                    SILENT.to_vec(),
                    at.clone(),
                );
            }
            loop {
                swarm.select_next_some().await;
            }
        });
    }
    // Three times 60 are 180: 100 have a place.
    until("the places of their address are taken", async || {
        broker.counters().refused(Refusal::TooManyArrivingOfAddress) == 80
    })
    .await;
    let (honest, _events) = start(2, NodeConfig::renter()).await;
    let peer = connect_from_elsewhere(&honest, &broker).await;
    for _ in 0..50 {
        let reply = honest.request(peer, b"abc".to_vec(), SOON).await;
        assert_eq!(reply.unwrap(), b"cba");
    }
    attackers.shutdown().await;
}

#[tokio::test]
async fn a_stranger_without_our_protocols_is_typed_for_us() {
    // Dialled by one of ours: a node that speaks libp2p and nothing of Feira.
    let mut swarm = stranger(9, "/other/1", "feira/1");
    swarm.listen_on(Over::Tcp.anywhere()).unwrap();
    let address = loop {
        if let SwarmEvent::NewListenAddr { address, .. } = swarm.select_next_some().await {
            break address;
        }
    };
    tokio::spawn(async move {
        loop {
            swarm.select_next_some().await;
        }
    });
    let (renter, _events) = start(2, NodeConfig::renter()).await;
    let them = net_world::identity(9).public();
    renter.connect(them, vec![address], SOON).await.unwrap();
    let answer = renter.request(them, vec![1], SOON).await;
    assert_eq!(answer, Err(RequestError::Unsupported));
}
