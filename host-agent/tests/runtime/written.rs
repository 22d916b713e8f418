//! Logs of containers of a real engine, through tunnels, while they live and after.

use std::time::Duration;

use host_agent::runtime::Runtime;
use protocol::tunnel::{Logs, Purpose, TunnelRefusal};
use protocol::units::Seconds;

use crate::engine::bench;
use crate::renter::{Renter, Said};

fn logs(follow: bool, tail: Option<u32>, timestamps: bool) -> Purpose {
    Purpose::Logs(Logs {
        follow,
        since: None,
        tail,
        timestamps,
    })
}

#[tokio::test]
async fn logs_are_followed_to_the_end_and_outlive_the_container() {
    let Some(bench) = bench().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = "echo one; echo two >&2; sleep 1; printf three; exit 3";
    let spec = bench.started("feira-demo", &["sh", "-c", script]).await;
    let path = folder.path().join("lease.log");
    let renter = Renter::new(&bench, spec.lease, &path);
    let expected = Said {
        output: b"one\nthree".to_vec(),
        errors: b"two\n".to_vec(),
        code: 3,
    };
    let followed = renter
        .open(logs(true, None, false))
        .await
        .unwrap()
        .rest()
        .await;
    assert_eq!(followed, expected);

    bench.runtime.save_logs(spec.lease, &path).await.unwrap();
    bench.runtime.remove(spec.lease).await.unwrap();
    let saved = renter
        .open(logs(false, None, false))
        .await
        .unwrap()
        .rest()
        .await;
    assert_eq!(
        saved,
        Said {
            code: 0,
            ..expected
        }
    );
    let last = renter
        .open(logs(false, Some(1), true))
        .await
        .unwrap()
        .rest()
        .await;
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
        said = renter
            .open(logs(false, Some(2), false))
            .await
            .unwrap()
            .rest()
            .await;
        if said.output.ends_with(b"line 5\n") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(String::from_utf8(said.output).unwrap(), "line 4\nline 5\n");
}
