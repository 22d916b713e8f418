//! What the network tests share: real nodes on loopback, and programs that answer.
#![allow(
    dead_code,
    clippy::allow_attributes,
    clippy::unwrap_used,
    reason = "each test binary uses its own part of this, and a test that cannot go on should stop"
)]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use protocol::ids::PublicKey;
use protocol::net::{Identity, Multiaddr, Node, NodeConfig, NodeEvent, NodeEvents, Tunnel};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Far longer than anything here takes, far shorter than a patient reader.
pub(crate) const SOON: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Tcp,
    Quic,
}

impl Over {
    pub(crate) const BOTH: [Self; 2] = [Self::Tcp, Self::Quic];

    pub(crate) fn anywhere(self) -> Multiaddr {
        self.at(0)
    }

    pub(crate) fn at(self, port: u16) -> Multiaddr {
        match self {
            Self::Tcp => format!("/ip4/127.0.0.1/tcp/{port}"),
            Self::Quic => format!("/ip4/127.0.0.1/udp/{port}/quic-v1"),
        }
        .parse()
        .unwrap()
    }
}

pub(crate) fn identity(seed: u8) -> Identity {
    Identity::from_signing_key(ed25519_dalek::SigningKey::from_bytes(&[seed; 32]))
}

pub(crate) async fn start(seed: u8, config: NodeConfig) -> (Node, NodeEvents) {
    Node::start(&identity(seed), config).await.unwrap()
}

/// A broker that answers each request with the request's bytes reversed and echoes each tunnel.
pub(crate) async fn echo_broker(seed: u8, config: NodeConfig) -> Node {
    let (node, events) = start(seed, config).await;
    tokio::spawn(echo(events));
    node
}

pub(crate) async fn echo(mut events: NodeEvents) {
    while let Some(event) = events.recv().await {
        match event {
            NodeEvent::Request {
                mut bytes,
                responder,
                ..
            } => {
                bytes.reverse();
                let _ = responder.reply(bytes);
            }
            NodeEvent::Tunnel { tunnel, .. } => {
                tokio::spawn(echo_tunnel(tunnel));
            }
        }
    }
}

async fn echo_tunnel(tunnel: Tunnel) {
    let (mut reader, mut writer) = tokio::io::split(tunnel);
    if tokio::io::copy(&mut reader, &mut writer).await.is_ok() {
        let _ = writer.shutdown().await;
    }
}

pub(crate) async fn connect(from: &Node, to: &Node) -> PublicKey {
    let addresses = to.listen_addresses().await;
    from.connect(to.public(), addresses, SOON).await.unwrap();
    to.public()
}

/// A TCP connection from 127.0.0.2: from another machine, as far as the other end can tell.
pub(crate) async fn dial_from_elsewhere(to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    let elsewhere = Ipv4Addr::new(127, 0, 0, 2);
    socket.bind(SocketAddr::from((elsewhere, 0))).unwrap();
    socket.connect(to).await.unwrap()
}

/// As [`connect`], over TCP from 127.0.0.2.
pub(crate) async fn connect_from_elsewhere(from: &Node, to: &Node) -> PublicKey {
    let target = SocketAddr::from((Ipv4Addr::LOCALHOST, tcp_port(to).await));
    let forwarder = TcpListener::bind((IpAddr::from(Ipv4Addr::LOCALHOST), 0))
        .await
        .unwrap();
    let port = forwarder.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut near, _) = forwarder.accept().await.unwrap();
        let mut far = dial_from_elsewhere(target).await;
        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
    });
    let through = vec![Over::Tcp.at(port)];
    from.connect(to.public(), through, SOON).await.unwrap();
    to.public()
}

/// The port of the first TCP address the node listens on.
pub(crate) async fn tcp_port(node: &Node) -> u16 {
    let addresses = node.listen_addresses().await;
    let of = |address: &Multiaddr| {
        let text = address.to_string();
        let mut parts = text.split('/').skip_while(|part| *part != "tcp").skip(1);
        parts.next().and_then(|port| port.parse().ok())
    };
    addresses.iter().find_map(of).unwrap()
}

/// Sends `size` bytes through the tunnel and reads them back at the same time, and checks each byte.
pub(crate) async fn check_echo(tunnel: Tunnel, size: usize) {
    let pattern = |place: usize| u8::try_from((place * 31 + place / 251) % 256).unwrap();
    let (mut reader, mut writer) = tokio::io::split(tunnel);
    let sent: Vec<u8> = (0..size).map(pattern).collect();
    let expected = sent.clone();
    let sending = tokio::spawn(async move {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let mut received = Vec::with_capacity(size);
    reader.read_to_end(&mut received).await.unwrap();
    sending.await.unwrap();
    assert_eq!(received.len(), size);
    assert!(received == expected, "the bytes came back changed");
}

/// Waits until `holds`, looking every few milliseconds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(SOON, waiting).await.is_err() {
        panic!("not within {SOON:?}: {what}");
    }
}
