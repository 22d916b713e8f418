//! Tunnels into containers of a real engine: programs with and without a terminal, and logs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ed25519_dalek::SigningKey;
use crate::engine::{Bench, bench};
use host_agent::access::{AccessService, LeaseAccess, LeaseLookup};
use host_agent::runtime::Runtime;
use host_agent::runtime::docker::DockerRuntime;
use protocol::bounded::{Blob, List, Text};
use protocol::ids::{Digest, HostId, LeaseId, MessageId, PublicKey};
use protocol::net::frames::{read_message, write_message};
use protocol::signed::{Envelope, Signed};
use protocol::tunnel::{
    Downward, Exec, Logs, OpeningReply, Purpose, Terminal, TunnelRefusal, TunnelRequest, Upward,
    WindowSize,
};
use protocol::units::{Seconds, Timestamp};
use tokio::io::{DuplexStream, ReadHalf, WriteHalf};

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
struct Renter {
    service: Arc<AccessService<DockerRuntime, OneLease>>,
    key: SigningKey,
    host: HostId,
    lease: LeaseId,
}

impl Renter {
    fn new(bench: &Bench, lease: LeaseId, saved_logs: &Path) -> Self {
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
        Self { service: Arc::new(service), key, host: bench.host, lease }
    }

    async fn open(&self, purpose: Purpose) -> Result<Tunnel, TunnelRefusal> {
        let envelope = Envelope {
            audience: self.host.into(),
            message_id: MessageId::from_bytes(rand::random()),
            issued: now(),
            validity: Seconds(60),
        };
        let request = TunnelRequest { lease: self.lease, purpose };
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

    async fn exec(&self, words: &[&str], size: Option<WindowSize>) -> Result<Tunnel, TunnelRefusal> {
        self.open(Purpose::Exec(Exec {
            command: List::first(words.iter().map(|word| Text::new(*word).unwrap())),
            terminal: size
                .map(|size| Terminal { kind: Text::new("xterm-256color").unwrap(), size }),
            environment: List::default(),
        }))
        .await
    }

    /// What a script says, and its code.
    async fn script(&self, script: &str) -> (Vec<u8>, i32) {
        let tunnel = self.exec(&["sh", "-c", script], None).await.unwrap();
        let said = tunnel.rest().await;
        (said.output, said.code)
    }
}

struct Tunnel {
    reader: ReadHalf<DuplexStream>,
    writer: WriteHalf<DuplexStream>,
}

#[derive(Debug, Default, PartialEq)]
struct Said {
    output: Vec<u8>,
    errors: Vec<u8>,
    code: i32,
}

impl Tunnel {
    async fn send(&mut self, message: Upward) {
        write_message(&mut self.writer, &message).await.unwrap();
    }

    async fn input(&mut self, bytes: &[u8]) {
        self.send(Upward::Input(Blob::new(bytes.to_vec()).unwrap())).await;
    }

    /// Everything to the exit code, within a time that no test needs.
    async fn rest(mut self) -> Said {
        tokio::time::timeout(Duration::from_secs(60), read_rest(&mut self.reader)).await.unwrap()
    }

    /// Output until it has `wanted` in it.
    async fn until(&mut self, wanted: &str) -> String {
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

async fn read_rest(reader: &mut ReadHalf<DuplexStream>) -> Said {
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

const SIZE: WindowSize = WindowSize { rows: 37, columns: 111 };

async fn demo(bench: &Bench, folder: &Path) -> Renter {
    let spec = bench.started("feira-demo", &["sleep", "1000"]).await;
    Renter::new(bench, spec.lease, &folder.join("lease.log"))
}

#[tokio::test]
async fn output_errors_and_code_come_apart_without_a_terminal() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let renter = demo(&bench, folder.path()).await;
    let tunnel = renter.exec(&["sh", "-c", "echo out; echo err >&2; exit 9"], None).await.unwrap();
    let expected = Said { output: b"out\n".to_vec(), errors: b"err\n".to_vec(), code: 9 };
    assert_eq!(tunnel.rest().await, expected);
    assert_eq!(renter.script("true").await, (Vec::new(), 0));
    assert_eq!(renter.script("no-such-program 2>/dev/null").await.1, 127);
}

#[tokio::test]
async fn a_terminal_passes_every_byte_that_a_frame_could_begin_with() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let renter = demo(&bench, folder.path()).await;
    let script = "printf '\\001\\000\\000\\000\\000\\000\\000\\003abcdef\\000\\002'; exit 4";
    let tunnel = renter.exec(&["sh", "-c", script], Some(SIZE)).await.unwrap();
    let said = tunnel.rest().await;
    assert_eq!(said.output, b"\x01\0\0\0\0\0\0\x03abcdef\0\x02");
    assert_eq!((said.errors, said.code), (Vec::new(), 4));
    let script = "head -c 300000 /dev/zero";
    let tunnel = renter.exec(&["sh", "-c", script], Some(SIZE)).await.unwrap();
    assert_eq!(tunnel.rest().await.output, vec![0; 300_000]);
}

#[tokio::test]
async fn three_megabytes_go_in_and_come_back() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let renter = demo(&bench, folder.path()).await;
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let Tunnel { mut reader, mut writer } = renter.exec(&["cat"], None).await.unwrap();
    let send = async {
        for piece in bytes.chunks(32 * 1024) {
            let message = Upward::Input(Blob::new(piece.to_vec()).unwrap());
            write_message(&mut writer, &message).await.unwrap();
        }
        write_message(&mut writer, &Upward::InputEnd).await.unwrap();
    };
    let (said, ()) = tokio::join!(read_rest(&mut reader), send);
    assert_eq!(said.output.len(), bytes.len());
    assert_eq!(Digest::of(&said.output), Digest::of(&bytes));
    assert_eq!(said.code, 0);
}

#[tokio::test]
async fn a_terminal_has_its_size_and_changes_it() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let renter = demo(&bench, folder.path()).await;
    let mut tunnel = renter.exec(&["sh"], Some(SIZE)).await.unwrap();
    tunnel.input(b"stty -echo; stty size; echo $TERM\n").await;
    let said = tunnel.until("xterm-256color").await;
    assert!(said.contains("37 111"), "{said}");
    tunnel.send(Upward::Resize(WindowSize { rows: 50, columns: 132 })).await;
    tunnel.input(b"stty size; exit 6\n").await;
    let said = tunnel.rest().await;
    assert!(String::from_utf8_lossy(&said.output).contains("50 132"));
    assert_eq!(said.code, 6);
}

#[tokio::test]
async fn the_end_of_a_terminals_input_ends_its_shell() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let renter = demo(&bench, folder.path()).await;
    let mut tunnel = renter.exec(&["cat"], Some(SIZE)).await.unwrap();
    tunnel.input(b"line\n").await;
    tunnel.send(Upward::InputEnd).await;
    let said = tunnel.rest().await;
    assert_eq!((said.output.as_slice(), said.code), (&b"line\r\nline\r\n"[..], 0));
}

#[tokio::test]
async fn no_program_named_is_the_best_shell_and_no_shell_is_said() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let renter = demo(&bench, folder.path()).await;
    let mut tunnel = renter.exec(&[], None).await.unwrap();
    tunnel.input(b"echo shell $((6 * 7)); exit 2\n").await;
    let said = tunnel.rest().await;
    assert_eq!((said.output.as_slice(), said.code), (&b"shell 42\n"[..], 2));

    let bare = bench.started("feira-noshell", &[]).await;
    let bare = Renter::new(&bench, bare.lease, &folder.path().join("bare.log"));
    assert_eq!(bare.exec(&[], Some(SIZE)).await.err(), Some(TunnelRefusal::NoShell));
    assert_eq!(bare.exec(&[], None).await.err(), Some(TunnelRefusal::NoShell));
}

#[tokio::test]
async fn an_unknown_program_is_refused_with_the_runtimes_words() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let renter = demo(&bench, folder.path()).await;
    for size in [None, Some(SIZE)] {
        let Some(TunnelRefusal::CommandUnknown(said)) = renter.exec(&["vim"], size).await.err()
        else {
            panic!("it was not refused")
        };
        assert_eq!(said.as_str(), "exec: \"vim\": executable file not found in $PATH");
    }
    bench.runtime.stop(renter.lease, Seconds(1)).await.unwrap();
    assert_eq!(renter.exec(&["true"], None).await.err(), Some(TunnelRefusal::NotRunning));
}

async fn processes_named(renter: &Renter, marker: &str) -> usize {
    // The shell that asks has "grep" in its own arguments.
    let script = format!("ps -o args | grep -v grep | grep -c '{marker}'");
    let (said, _) = renter.script(&script).await;
    String::from_utf8(said).unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn a_program_does_not_outlive_its_tunnel() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let renter = demo(&bench, folder.path()).await;
    let stubborn = "trap '' HUP; while true; do sleep 4321; done";
    for (words, size) in [
        (vec!["sleep", "4321"], None),
        (vec!["sleep", "4321"], Some(SIZE)),
        (vec!["sh", "-c", stubborn], None),
    ] {
        let tunnel = renter.exec(&words, size).await.unwrap();
        assert!(processes_named(&renter, "4321").await >= 1);
        drop(tunnel);
        let mut left = usize::MAX;
        for _ in 0..60 {
            left = processes_named(&renter, "4321").await;
            if left == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(left, 0, "{words:?}");
    }
}

#[tokio::test]
async fn a_signal_reaches_the_program_and_its_children() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let renter = demo(&bench, folder.path()).await;
    let script = "echo up; sleep 5432; echo never";
    let mut tunnel = renter.exec(&["sh", "-c", script], None).await.unwrap();
    tunnel.until("up").await;
    assert!(processes_named(&renter, "5432").await >= 1);
    tunnel.send(Upward::Signal(Text::new("TERM").unwrap())).await;
    let said = tunnel.rest().await;
    assert_eq!((said.output.as_slice(), said.code), (&b""[..], 143));
    assert_eq!(processes_named(&renter, "5432").await, 0);
}

#[tokio::test]
async fn a_child_that_holds_the_output_open_does_not_hold_the_tunnel() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let renter = demo(&bench, folder.path()).await;
    let began = tokio::time::Instant::now();
    let (said, code) = renter.script("sleep 30 & echo done").await;
    assert_eq!((said.as_slice(), code), (&b"done\n"[..], 0));
    assert!(began.elapsed() < Duration::from_secs(15));
}

fn logs(follow: bool, tail: Option<u32>, timestamps: bool) -> Purpose {
    Purpose::Logs(Logs { follow, since: None, tail, timestamps })
}

#[tokio::test]
async fn logs_are_followed_to_the_end_and_outlive_the_container() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = "echo one; echo two >&2; sleep 1; printf three; exit 3";
    let spec = bench.started("feira-demo", &["sh", "-c", script]).await;
    let path = folder.path().join("lease.log");
    let renter = Renter::new(&bench, spec.lease, &path);
    let expected = Said { output: b"one\nthree".to_vec(), errors: b"two\n".to_vec(), code: 3 };
    let followed = renter.open(logs(true, None, false)).await.unwrap().rest().await;
    assert_eq!(followed, expected);

    bench.runtime.save_logs(spec.lease, &path).await.unwrap();
    bench.runtime.remove(spec.lease).await.unwrap();
    let saved = renter.open(logs(false, None, false)).await.unwrap().rest().await;
    assert_eq!(saved, Said { code: 0, ..expected });
    let last = renter.open(logs(false, Some(1), true)).await.unwrap().rest().await;
    let said = String::from_utf8(last.output).unwrap();
    let (at, text) = said.split_once(' ').unwrap();
    assert!(at.parse::<jiff::Timestamp>().is_ok(), "{at}");
    assert_eq!(text, "three");

    std::fs::remove_file(&path).unwrap();
    let gone = renter.open(logs(false, None, false)).await.err();
    assert_eq!(gone, Some(TunnelRefusal::LogsGone(Seconds(60))));
}

#[tokio::test]
async fn the_last_lines_of_a_living_container_are_the_last() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = "for n in 1 2 3 4 5; do echo line $n; done; sleep 1000";
    let spec = bench.started("feira-demo", &["sh", "-c", script]).await;
    let renter = Renter::new(&bench, spec.lease, &folder.path().join("lease.log"));
    let mut said = Said::default();
    for _ in 0..50 {
        said = renter.open(logs(false, Some(2), false)).await.unwrap().rest().await;
        if said.output.ends_with(b"line 5\n") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(String::from_utf8(said.output).unwrap(), "line 4\nline 5\n");
}
