//! Tunnels over an engine in memory: who is let in, and what flows.

use super::*;
use crate::runtime::logs::LogStream;
use crate::runtime::sim::SimRuntime;
use crate::runtime::{ContainerSpec, Runtime};
use ed25519_dalek::SigningKey;
use protocol::bounded::{Blob, List, Text};
use protocol::ids::{BrokerId, MessageId};
use protocol::job::{Job, PinnedImage, Variable};
use protocol::machine::ContainerNetwork;
use protocol::signed::{Envelope, Signed};
use protocol::tunnel::{Downward, Exec, Logs, Terminal, Upward, WindowSize};
use protocol::units::Bytes;
use tokio::io::DuplexStream;

fn now() -> Timestamp {
    Timestamp(1_000_000)
}

fn host() -> HostId {
    HostId::from_bytes([2; 32])
}

fn lease() -> LeaseId {
    LeaseId::from_bytes([1; 16])
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn public(key: &SigningKey) -> PublicKey {
    PublicKey::from_bytes(key.verifying_key().to_bytes())
}

struct OneLease {
    access: LeaseAccess,
}

impl LeaseLookup for OneLease {
    async fn lease(&self, asked: LeaseId) -> Option<LeaseAccess> {
        (asked == lease()).then(|| self.access.clone())
    }
}

/// The renter has key 10, key 11 may enter too.
async fn service(
    folder: &std::path::Path,
) -> (SimRuntime, Arc<AccessService<SimRuntime, OneLease>>) {
    let sim = SimRuntime::new(host(), now);
    let image = PinnedImage {
        name: Text::new("demo").unwrap(),
        sha256: [9; 32],
    };
    let spec = ContainerSpec {
        lease: lease(),
        broker: BrokerId::from_bytes([3; 32]),
        epoch: 4,
        run: 1,
        job: Job {
            image: image.clone(),
            entrypoint: None,
            command: None,
            environment: List::default(),
        },
        gpus: List::default(),
        cpu_millicores: 1000,
        ram: Bytes(1 << 30),
        shared_memory: Bytes(1 << 26),
        disk: Bytes(1 << 30),
        network: ContainerNetwork::None,
        stop_grace: Seconds(10),
        notices: "/var/lib/feira-host/notices/l-x".into(),
    };
    let (sender, _progress) = tokio::sync::mpsc::channel(4);
    let pulled = sim.pull(&image, spec.disk, sender).await.unwrap();
    sim.create(&spec, &pulled).await.unwrap();
    sim.start(lease()).await.unwrap();
    let access = LeaseAccess {
        renter: public(&key(10)).into(),
        keys: vec![public(&key(11))],
        running: true,
        saved_logs: folder.join("lease.log"),
        exit_code: None,
        logs_kept: Seconds(3600),
    };
    let service = AccessService::new(Arc::new(sim.clone()), OneLease { access }, host(), now);
    (sim, Arc::new(service))
}

fn envelope(message: u8) -> Envelope {
    Envelope {
        audience: host().into(),
        message_id: MessageId::from_bytes([message; 16]),
        issued: now(),
        validity: Seconds(60),
    }
}

fn opening(signer: &SigningKey, envelope: Envelope, lease: LeaseId, purpose: Purpose) -> Opening {
    let request = TunnelRequest { lease, purpose };
    Signed::sign(request, signer, envelope)
        .unwrap()
        .signed()
        .clone()
}

fn exec(words: &[&str]) -> Purpose {
    Purpose::Exec(Exec {
        command: List::first(words.iter().map(|word| Text::new(*word).unwrap())),
        terminal: None,
        environment: List::default(),
    })
}

/// The renter's end of a tunnel with its reply.
async fn open(
    service: &Arc<AccessService<SimRuntime, OneLease>>,
    peer: &SigningKey,
    opening: &Opening,
) -> (DuplexStream, Option<OpeningReply>) {
    let (mut near, far) = tokio::io::duplex(4096);
    let (service, peer) = (Arc::clone(service), public(peer));
    tokio::spawn(async move { service.serve_tunnel(far, peer).await });
    write_message(&mut near, opening).await.unwrap();
    let reply = read_message(&mut near).await.unwrap();
    (near, reply)
}

async fn rest(mut tunnel: DuplexStream) -> (Vec<u8>, Vec<u8>, Option<i32>) {
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    while let Some(message) = read_message::<Downward, _>(&mut tunnel).await.unwrap() {
        match message {
            Downward::Output(bytes) => output.extend_from_slice(&bytes),
            Downward::Errors(bytes) => errors.extend_from_slice(&bytes),
            Downward::Exit(code) => return (output, errors, Some(code)),
            Downward::Broken(detail) => panic!("{detail}"),
        }
    }
    (output, errors, None)
}

#[tokio::test]
async fn the_renter_and_its_other_key_enter_and_get_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let (_, service) = service(folder.path()).await;
    for (message, seed) in [(1, 10), (2, 11)] {
        let opening = opening(
            &key(seed),
            envelope(message),
            lease(),
            exec(&["echo", "hi"]),
        );
        let (tunnel, reply) = open(&service, &key(seed), &opening).await;
        assert_eq!(reply, Some(OpeningReply::Open));
        assert_eq!(rest(tunnel).await, (b"hi\n".to_vec(), Vec::new(), Some(0)));
    }
    let opening = opening(&key(10), envelope(3), lease(), exec(&["exit", "7"]));
    let (tunnel, _) = open(&service, &key(10), &opening).await;
    assert_eq!(rest(tunnel).await.2, Some(7));
}

#[tokio::test]
async fn everybody_else_is_refused_with_a_counted_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (_, service) = service(folder.path()).await;
    let stranger = key(12);
    let other_lease = LeaseId::from_bytes([7; 16]);
    let late = Envelope {
        issued: Timestamp(1),
        ..envelope(4)
    };
    let elsewhere = Envelope {
        audience: PublicKey::from_bytes([5; 32]),
        ..envelope(5)
    };
    let cases = [
        (
            &stranger,
            opening(&stranger, envelope(1), lease(), exec(&["cat"])),
            Refusal::UnknownLease,
        ),
        (
            &stranger,
            opening(&key(10), envelope(2), lease(), exec(&["cat"])),
            Refusal::NotTheSigner,
        ),
        (
            &key(10),
            opening(&key(10), envelope(3), other_lease, exec(&["cat"])),
            Refusal::UnknownLease,
        ),
        (
            &key(10),
            opening(&key(10), late, lease(), exec(&["cat"])),
            Refusal::NotNow,
        ),
        (
            &key(10),
            opening(&key(10), elsewhere, lease(), exec(&["cat"])),
            Refusal::WrongAudience,
        ),
    ];
    for (peer, opening, reason) in cases {
        let before = service.refusals().of(reason);
        let (_, reply) = open(&service, peer, &opening).await;
        assert!(
            matches!(reply, Some(OpeningReply::Refused(_))),
            "{reason:?}: {reply:?}"
        );
        assert_eq!(service.refusals().of(reason), before + 1, "{reason:?}");
    }
    assert_eq!(service.open_tunnels(), 0);
}

#[tokio::test]
async fn a_request_is_good_once() {
    let folder = tempfile::tempdir().unwrap();
    let (_, service) = service(folder.path()).await;
    let opening = opening(&key(10), envelope(1), lease(), exec(&["echo"]));
    let (tunnel, _) = open(&service, &key(10), &opening).await;
    rest(tunnel).await;
    let (_, reply) = open(&service, &key(10), &opening).await;
    assert!(matches!(
        reply,
        Some(OpeningReply::Refused(TunnelRefusal::BadRequest(_)))
    ));
    assert_eq!(service.refusals().of(Refusal::Replayed), 1);
}

#[tokio::test]
async fn garbage_is_answered_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (_, service) = service(folder.path()).await;
    let (mut near, far) = tokio::io::duplex(4096);
    let peer = public(&key(10));
    let server = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.serve_tunnel(far, peer).await }
    });
    near.write_all(&[3, 0, 0, 0, 9, 9, 9]).await.unwrap();
    let reply = read_message(&mut near).await.unwrap();
    assert!(matches!(
        reply,
        Some(OpeningReply::Refused(TunnelRefusal::BadRequest(_)))
    ));
    server.await.unwrap();
    assert_eq!(service.refusals().of(Refusal::Unreadable), 1);
}

#[tokio::test]
async fn a_tunnel_that_ends_without_a_request_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (_, service) = service(folder.path()).await;
    let (near, far) = tokio::io::duplex(4096);
    drop(near);
    service.serve_tunnel(far, public(&key(10))).await;
    assert_eq!(service.refusals().of(Refusal::Unasked), 1);
}

#[tokio::test]
async fn input_reaches_its_end_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (_, service) = service(folder.path()).await;
    let opening = opening(&key(10), envelope(1), lease(), exec(&["cat"]));
    let (mut tunnel, _) = open(&service, &key(10), &opening).await;
    let input = Upward::Input(Blob::new(vec![0, 1, 2, 255]).unwrap());
    write_message(&mut tunnel, &input).await.unwrap();
    write_message(&mut tunnel, &Upward::InputEnd).await.unwrap();
    assert_eq!(
        rest(tunnel).await,
        (vec![0, 1, 2, 255], Vec::new(), Some(0))
    );
}

#[tokio::test]
async fn a_program_ends_with_its_tunnel_or_by_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let (_, service) = service(folder.path()).await;
    let signalled = opening(&key(10), envelope(1), lease(), exec(&["sleep"]));
    let (mut tunnel, _) = open(&service, &key(10), &signalled).await;
    let signal = Upward::Signal(Text::new("INT").unwrap());
    write_message(&mut tunnel, &signal).await.unwrap();
    assert_eq!(rest(tunnel).await.2, Some(130));

    let left = opening(&key(10), envelope(2), lease(), exec(&["sleep"]));
    let (tunnel, _) = open(&service, &key(10), &left).await;
    assert_eq!(service.open_tunnels(), 1);
    drop(tunnel);
    tokio::time::timeout(Duration::from_secs(5), async {
        while service.open_tunnels() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn an_unknown_program_and_a_reserved_variable_are_refused_before_anything_opens() {
    let folder = tempfile::tempdir().unwrap();
    let (_, service) = service(folder.path()).await;
    let unknown = opening(&key(10), envelope(1), lease(), exec(&["vi"]));
    let (_, reply) = open(&service, &key(10), &unknown).await;
    let Some(OpeningReply::Refused(TunnelRefusal::CommandUnknown(said))) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(
        said.as_str(),
        "exec: \"vi\": executable file not found in $PATH"
    );

    let variable = Variable {
        name: Text::new("LD_PRELOAD").unwrap(),
        value: Text::new("x").unwrap(),
    };
    let asked = Purpose::Exec(Exec {
        command: List::default(),
        terminal: Some(Terminal {
            kind: Text::new("xterm").unwrap(),
            size: WindowSize {
                rows: 24,
                columns: 80,
            },
        }),
        environment: List::first([variable]),
    });
    let reserved = opening(&key(10), envelope(2), lease(), asked);
    let (_, reply) = open(&service, &key(10), &reserved).await;
    let Some(OpeningReply::Refused(TunnelRefusal::BadRequest(said))) = reply else {
        panic!("{reply:?}")
    };
    assert!(said.contains("LD_PRELOAD"));
}

fn logs(follow: bool) -> Purpose {
    Purpose::Logs(Logs {
        follow,
        since: None,
        tail: None,
        timestamps: false,
    })
}

#[tokio::test]
async fn logs_come_from_the_engine_then_from_the_file_then_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (sim, service) = service(folder.path()).await;
    sim.write(lease(), LogStream::Output, "one");
    sim.write(lease(), LogStream::Errors, "two");
    let expected = (b"one\n".to_vec(), b"two\n".to_vec(), Some(0));

    let live = opening(&key(10), envelope(1), lease(), logs(false));
    let (tunnel, reply) = open(&service, &key(10), &live).await;
    assert_eq!(reply, Some(OpeningReply::Open));
    assert_eq!(rest(tunnel).await, expected);

    let path = folder.path().join("lease.log");
    sim.save_logs(lease(), &path).await.unwrap();
    sim.remove(lease()).await.unwrap();
    let saved = opening(&key(10), envelope(2), lease(), logs(true));
    let (tunnel, _) = open(&service, &key(10), &saved).await;
    assert_eq!(rest(tunnel).await, expected);

    std::fs::remove_file(path).unwrap();
    let gone = opening(&key(10), envelope(3), lease(), logs(false));
    let (_, reply) = open(&service, &key(10), &gone).await;
    assert_eq!(
        reply,
        Some(OpeningReply::Refused(TunnelRefusal::LogsGone(Seconds(
            3600
        ))))
    );
}

#[tokio::test]
async fn followed_logs_end_with_the_container_and_say_its_code() {
    let folder = tempfile::tempdir().unwrap();
    let (sim, service) = service(folder.path()).await;
    let followed = opening(&key(10), envelope(1), lease(), logs(true));
    let (tunnel, _) = open(&service, &key(10), &followed).await;
    sim.write(lease(), LogStream::Output, "last");
    sim.end(lease(), 3, false);
    assert_eq!(
        rest(tunnel).await,
        (b"last\n".to_vec(), Vec::new(), Some(3))
    );
}
