//! What the network tests share: real nodes on loopback, and programs that answer.
#![allow(
    dead_code,
    clippy::allow_attributes,
    clippy::unwrap_used,
    reason = "each test binary uses its own part of this, and a test that cannot go on should stop"
)]

use std::time::Duration;

use protocol::ids::PublicKey;
use protocol::net::{Identity, Multiaddr, Node, NodeConfig, NodeEvent, NodeEvents, Tunnel};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
