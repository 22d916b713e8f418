//! Tunnels into containers of a real engine: programs with and without a terminal.

use std::path::Path;
use std::time::Duration;

use protocol::bounded::{Blob, Text};
use protocol::ids::Digest;
use protocol::net::frames::write_message;
use protocol::tunnel::{TunnelRefusal, Upward, WindowSize};
use protocol::units::Seconds;

use host_agent::runtime::Runtime;

use crate::engine::{Bench, bench};
use crate::renter::{Renter, Said, Tunnel, read_rest};

const SIZE: WindowSize = WindowSize {
    rows: 37,
    columns: 111,
};

async fn demo(bench: &Bench, folder: &Path) -> Renter {
    let spec = bench.started("feira-demo", &["sleep", "1000"]).await;
    Renter::new(bench, spec.lease, &folder.join("lease.log"))
}

#[tokio::test]
async fn output_errors_and_code_come_apart_without_a_terminal() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let renter = demo(&bench, folder.path()).await;
    let tunnel = renter
        .exec(&["sh", "-c", "echo out; echo err >&2; exit 9"], None)
        .await
        .unwrap();
    let expected = Said {
        output: b"out\n".to_vec(),
        errors: b"err\n".to_vec(),
        code: 9,
    };
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
    let tunnel = renter
        .exec(&["sh", "-c", script], Some(SIZE))
        .await
        .unwrap();
    let said = tunnel.rest().await;
    assert_eq!(said.output, b"\x01\0\0\0\0\0\0\x03abcdef\0\x02");
    assert_eq!((said.errors, said.code), (Vec::new(), 4));
    let script = "head -c 300000 /dev/zero";
    let tunnel = renter
        .exec(&["sh", "-c", script], Some(SIZE))
        .await
        .unwrap();
    assert_eq!(tunnel.rest().await.output, vec![0; 300_000]);
}

#[tokio::test]
async fn three_megabytes_go_in_and_come_back() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let renter = demo(&bench, folder.path()).await;
    let bytes: Vec<u8> = (0..3_000_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let Tunnel {
        mut reader,
        mut writer,
    } = renter.exec(&["cat"], None).await.unwrap();
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
    tunnel
        .send(Upward::Resize(WindowSize {
            rows: 50,
            columns: 132,
        }))
        .await;
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
    assert_eq!(
        (said.output.as_slice(), said.code),
        (&b"line\r\nline\r\n"[..], 0)
    );
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
    assert_eq!(
        bare.exec(&[], Some(SIZE)).await.err(),
        Some(TunnelRefusal::NoShell)
    );
    assert_eq!(
        bare.exec(&[], None).await.err(),
        Some(TunnelRefusal::NoShell)
    );
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
        assert_eq!(
            said.as_str(),
            "exec: \"vim\": executable file not found in $PATH"
        );
    }
    bench.runtime.stop(renter.lease, Seconds(1)).await.unwrap();
    assert_eq!(
        renter.exec(&["true"], None).await.err(),
        Some(TunnelRefusal::NotRunning)
    );
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
    tunnel
        .send(Upward::Signal(Text::new("TERM").unwrap()))
        .await;
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
