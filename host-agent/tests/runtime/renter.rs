//! A renter of one lease: opens tunnels as its program would, over a pipe in memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ed25519_dalek::SigningKey;
use host_agent::access::{AccessService, LeaseAccess, LeaseLookup};
use host_agent::runtime::docker::DockerRuntime;
use protocol::bounded::{Blob, List, Text};
use protocol::ids::{HostId, LeaseId, MessageId, PublicKey};
use protocol::net::frames::{read_message, write_message};
use protocol::signed::{Envelope, Signed};
use protocol::tunnel::{
    Downward, Exec, OpeningReply, Purpose, Terminal, TunnelRefusal, TunnelRequest, Upward,
    WindowSize,
};
use protocol::units::{Seconds, Timestamp};
use tokio::io::{DuplexStream, ReadHalf, WriteHalf};

use crate::engine::Bench;

fn now() -> Timestamp {
    Timestamp(1_000_000)
}

#[derive(Clone)]
struct OneLease(LeaseId, LeaseAccess);

impl LeaseLookup for OneLease {
    async fn lease(&self, asked: LeaseId) -> Option<LeaseAccess> {
        (asked == self.0).then(|| self.1.clone())
    }
}

/// A renter of one lease on this engine.
pub(crate) struct Renter {
    service: Arc<AccessService<DockerRuntime, OneLease>>,
    key: SigningKey,
    host: HostId,
    pub(crate) lease: LeaseId,
}

impl Renter {
    pub(crate) fn new(bench: &Bench, lease: LeaseId, saved_logs: &Path) -> Self {
        let key = SigningKey::from_bytes(&[10; 32]);
        let renter = PublicKey::from_bytes(key.verifying_key().to_bytes());
        let access = LeaseAccess {
            renter: renter.into(),
            keys: Vec::new(),
            running: true,
            saved_logs: saved_logs.to_owned(),
            exit_code: None,
            logs_kept: Seconds(60),
        };
        let runtime = Arc::new(bench.runtime.clone());
        let service = AccessService::new(runtime, OneLease(lease, access), bench.host, now);
        Self {
            service: Arc::new(service),
            key,
            host: bench.host,
            lease,
        }
    }

    pub(crate) async fn open(&self, purpose: Purpose) -> Result<Tunnel, TunnelRefusal> {
        let envelope = Envelope {
            audience: self.host.into(),
            message_id: MessageId::from_bytes(rand::random()),
            issued: now(),
            validity: Seconds(60),
        };
        let request = TunnelRequest {
            lease: self.lease,
            purpose,
        };
        let opening = Signed::sign(request, &self.key, envelope).unwrap();
        let (mut near, far) = tokio::io::duplex(8192);
        let (service, peer) = (Arc::clone(&self.service), opening.signer());
        tokio::spawn(async move { service.serve_tunnel(far, peer).await });
        write_message(&mut near, opening.signed()).await.unwrap();
        match read_message(&mut near).await.unwrap().unwrap() {
            OpeningReply::Open => {
                let (reader, writer) = tokio::io::split(near);
                Ok(Tunnel { reader, writer })
            }
            OpeningReply::Refused(refusal) => Err(refusal),
        }
    }

    pub(crate) async fn exec(
        &self,
        words: &[&str],
        size: Option<WindowSize>,
    ) -> Result<Tunnel, TunnelRefusal> {
        self.open(Purpose::Exec(Exec {
            command: List::first(words.iter().map(|word| Text::new(*word).unwrap())),
            terminal: size.map(|size| Terminal {
                kind: Text::new("xterm-256color").unwrap(),
                size,
            }),
            environment: List::default(),
        }))
        .await
    }

    /// What a script says, and its code.
    pub(crate) async fn script(&self, script: &str) -> (Vec<u8>, i32) {
        let tunnel = self.exec(&["sh", "-c", script], None).await.unwrap();
        let said = tunnel.rest().await;
        (said.output, said.code)
    }
}

pub(crate) struct Tunnel {
    pub(crate) reader: ReadHalf<DuplexStream>,
    pub(crate) writer: WriteHalf<DuplexStream>,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) output: Vec<u8>,
    pub(crate) errors: Vec<u8>,
    pub(crate) code: i32,
}

impl Tunnel {
    pub(crate) async fn send(&mut self, message: Upward) {
        write_message(&mut self.writer, &message).await.unwrap();
    }

    pub(crate) async fn input(&mut self, bytes: &[u8]) {
        self.send(Upward::Input(Blob::new(bytes.to_vec()).unwrap()))
            .await;
    }

    /// Everything to the exit code, within a time that no test needs.
    pub(crate) async fn rest(mut self) -> Said {
        tokio::time::timeout(Duration::from_secs(60), read_rest(&mut self.reader))
            .await
            .unwrap()
    }

    /// Output until it has `wanted` in it.
    pub(crate) async fn until(&mut self, wanted: &str) -> String {
        let mut said = String::new();
        while !said.contains(wanted) {
            let next = tokio::time::timeout(
                Duration::from_secs(20),
                read_message::<Downward, _>(&mut self.reader),
            );
            match next.await.expect("output comes").unwrap() {
                Some(Downward::Output(bytes)) => said += &String::from_utf8_lossy(&bytes),
                other => panic!("{other:?} after {said:?}"),
            }
        }
        said
    }
}

pub(crate) async fn read_rest(reader: &mut ReadHalf<DuplexStream>) -> Said {
    let mut said = Said::default();
    loop {
        match read_message::<Downward, _>(reader).await.unwrap() {
            Some(Downward::Output(bytes)) => said.output.extend_from_slice(&bytes),
            Some(Downward::Errors(bytes)) => said.errors.extend_from_slice(&bytes),
            Some(Downward::Exit(code)) => {
                said.code = code;
                return said;
            }
            other => panic!("{other:?} after {} bytes", said.output.len()),
        }
    }
}
