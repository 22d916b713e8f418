//! What a container that has to go hears and sees, and what crosses its network, on a real engine.

use std::path::Path;
use std::time::Duration;

use crate::engine::{Bench, bench, spec};
use crate::sandbox::inside;
use host_agent::runtime::{RunState, Runtime, Traffic};
use protocol::ids::LeaseId;
use protocol::machine::ContainerNetwork;
use protocol::units::{Bytes, Seconds};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What the host writes there, as it does: whole, from beside the folder.
fn tell(folder: &Path) {
    let draft = folder.with_extension("draft");
    std::fs::write(&draft, "{\"reason\":\"outbid\"}\n").unwrap();
    std::fs::rename(&draft, folder.join("notice.json")).unwrap();
}

async fn exit_code(bench: &Bench, lease: LeaseId) -> i32 {
    for _ in 0..500 {
        let found = bench.runtime.inspect(lease).await.unwrap().unwrap();
        if let RunState::Exited(exit) = found.state {
            return exit.code;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it did not exit");
}

#[tokio::test]
async fn a_container_hears_the_signal_sees_the_notice_and_cannot_write_it() {
    let Some(bench) = bench().await else { return };
    let script =
        "trap 'cat /run/feira/notice.json >/kept; exit 9' TERM; while :; do sleep 0.1; done";
    let spec = bench.started("feira-demo", &["sh", "-c", script]).await;
    let lease = spec.lease;
    assert_eq!(inside(&bench, lease, "ls -A /run/feira").await, "");
    tell(&spec.notices);
    let seen = inside(
        &bench,
        lease,
        "ls -A /run/feira; cat /run/feira/notice.json",
    )
    .await;
    assert_eq!(seen, "notice.json\n{\"reason\":\"outbid\"}\n");
    let wrong = "touch /run/feira/x; rm /run/feira/notice.json; mount -o remount,rw /run/feira";
    let said = inside(&bench, lease, wrong).await;
    assert_eq!(said.lines().count(), 3, "{said}");
    assert!(said.contains("Read-only file system"), "{said}");
    assert!(spec.notices.join("notice.json").exists() && !spec.notices.join("x").exists());

    bench.runtime.terminate(lease).await.unwrap();
    assert_eq!(exit_code(&bench, lease).await, 9);
    // It does not run: there is nothing to tell.
    bench.runtime.terminate(lease).await.unwrap();
    bench.runtime.start(lease).await.unwrap();
    assert_eq!(
        inside(&bench, lease, "cat /kept").await,
        "{\"reason\":\"outbid\"}\n",
        "the disk is kept"
    );
    bench.runtime.remove(lease).await.unwrap();
    bench.runtime.terminate(lease).await.unwrap();
    assert!(
        spec.notices.exists(),
        "the engine deletes nothing of the host's"
    );
}

/// Answers each connection with 200 000 bytes once it has read to its end.
async fn answer(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = Vec::new();
        stream.read_to_end(&mut read).await.unwrap();
        assert_eq!(read.len(), 1_000_000);
        stream.write_all(&vec![7; 200_000]).await.unwrap();
    }
}

async fn traffic(bench: &Bench, lease: LeaseId) -> Traffic {
    bench.runtime.inspect(lease).await.unwrap().unwrap().traffic
}

#[tokio::test]
async fn what_crosses_a_bridge_is_counted_from_each_start() {
    let Some(bench) = bench().await else { return };
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let _task = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(answer(listener)));
    let (image, pulled) = bench.image("feira-demo").await;
    let mut spec = spec(image, &["sleep", "1000"]);
    spec.network = ContainerNetwork::Bridge;
    bench.runtime.create(&spec, &pulled).await.unwrap();
    bench.runtime.start(spec.lease).await.unwrap();
    let lease = spec.lease;
    let send = format!(
        "gw=$(ip route | sed -n 's/^default via \\([^ ]*\\).*/\\1/p'); \
         head -c 1000000 /dev/zero | nc $gw {port} | wc -c"
    );
    let before = traffic(&bench, lease).await;
    assert!(before.uploaded.0 < 10_000, "{before:?}");
    assert_eq!(inside(&bench, lease, &send).await.trim(), "200000");
    let once = traffic(&bench, lease).await;
    // The payload, and a few per cent of headers and acknowledgements.
    assert!(
        (1_000_000..1_100_000).contains(&once.uploaded.0),
        "{once:?}"
    );
    assert!((200_000..260_000).contains(&once.downloaded.0), "{once:?}");
    let listed = bench.runtime.containers().await.unwrap();
    assert!(listed[0].traffic.uploaded >= once.uploaded);

    bench.runtime.stop(lease, Seconds(1)).await.unwrap();
    assert_eq!(traffic(&bench, lease).await, Traffic::default());
    bench.runtime.start(lease).await.unwrap();
    let again = traffic(&bench, lease).await;
    assert!(
        again.uploaded < Bytes(10_000),
        "a start counts from zero: {again:?}"
    );
}

#[tokio::test]
async fn without_a_network_nothing_crosses() {
    let Some(bench) = bench().await else { return };
    let spec = bench.started("feira-demo", &["sleep", "1000"]).await;
    let loopback = "nc -l -p 9 >/dev/null & sleep 0.2; head -c 100000 /dev/zero | nc 127.0.0.1 9";
    inside(&bench, spec.lease, loopback).await;
    assert_eq!(traffic(&bench, spec.lease).await, Traffic::default());
}
