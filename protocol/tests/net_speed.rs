//! Measurements of the network between real nodes on loopback: both directions over both transports, a line of known
//! speed, and what a broker refuses so that nobody drains it.
#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod net_world;

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use net_world::{Over, connect, echo_broker, start, until};
use protocol::net::{Direction, Node, NodeConfig, PeerRefusal, Refusal, SpeedError, SpeedLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

const REFUSED: SpeedError = SpeedError::Refused {
    reason: PeerRefusal::MeasuredEnough,
};

async fn broker(seed: u8, over: Over, change: impl Fn(&mut SpeedLimits)) -> Node {
    let mut config = NodeConfig::broker(vec![over.anywhere()]);
    change(&mut config.limits.speed);
    echo_broker(seed, config).await
}

#[tokio::test(flavor = "multi_thread")]
async fn both_directions_are_measured_over_each_transport() {
    for over in Over::BOTH {
        let broker = broker(1, over, |limits| {
            limits.bytes = 8 * 1024 * 1024;
            limits.length = Duration::from_secs(2);
        })
        .await;
        let (host, _events) = start(2, NodeConfig::host(vec![])).await;
        let peer = connect(&host, &broker).await;
        for direction in [Direction::Down, Direction::Up] {
            let heard = AtomicU16::new(0);
            let speed = host
                .measure_speed(peer, direction, |part| heard.store(part, Ordering::Relaxed))
                .await;
            let speed = speed.unwrap();
            assert!(
                speed.bytes > 0 && speed.elapsed < Duration::from_secs(8),
                "{speed:?}"
            );
            // Loopback is faster than 1 Mbit/s however busy the machine is.
            assert!(speed.kilobits_per_second() > 1_000, "{speed:?}");
        }
    }
}

/// Passes bytes on in both directions, in each no more than so many a second.
async fn throttle(to: u16, bytes_per_second: u32) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
            let (near, far) = (near.into_split(), far.into_split());
            tokio::spawn(pass_on(near.0, far.1, bytes_per_second));
            tokio::spawn(pass_on(far.0, near.1, bytes_per_second));
        }
    });
    port
}

async fn pass_on(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    bytes_per_second: u32,
) {
    let mut buffer = vec![0; 16 * 1024];
    let mut due = Instant::now();
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        due = due.max(Instant::now() - Duration::from_millis(20));
        due += Duration::from_secs(1) * u32::try_from(read).unwrap() / bytes_per_second;
        sleep_until(due).await;
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// 2.5 MB a second are 20 Mbit/s; noise and yamux take less than one per cent of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_known_speed_is_measured_as_that() {
    let broker = broker(1, Over::Tcp, |limits| {
        limits.length = Duration::from_secs(3)
    })
    .await;
    let at = broker.listen_addresses().await[0].to_string();
    let port: u16 = at.split('/').nth(4).unwrap().parse().unwrap();
    let slow = throttle(port, 2_500_000).await;
    let (host, _events) = start(2, NodeConfig::host(vec![])).await;
    let through = at.replace(&format!("/tcp/{port}"), &format!("/tcp/{slow}"));
    let peer = broker.public();
    host.connect(
        peer,
        vec![through.parse().unwrap()],
        Duration::from_secs(10),
    )
    .await
    .unwrap();
    for direction in [Direction::Down, Direction::Up] {
        let speed = host.measure_speed(peer, direction, |_| {}).await.unwrap();
        let rate = speed.kilobits_per_second();
        assert!(
            (17_000..=20_500).contains(&rate),
            "{direction:?}: {speed:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_gets_so_many_and_no_more_and_others_are_served() {
    let broker = broker(1, Over::Tcp, |limits| limits.bytes = 256 * 1024).await;
    let (host, _events) = start(2, NodeConfig::host(vec![])).await;
    let peer = connect(&host, &broker).await;
    for _ in 0..4 {
        host.measure_speed(peer, Direction::Down, |_| {})
            .await
            .unwrap();
    }
    let fifth = host.measure_speed(peer, Direction::Down, |_| {}).await;
    assert_eq!(fifth, Err(REFUSED));
    // Reconnecting does not help.
    host.disconnect(peer).await;
    connect(&host, &broker).await;
    assert_eq!(
        host.measure_speed(peer, Direction::Up, |_| {}).await,
        Err(REFUSED)
    );
    assert_eq!(broker.counters().refused(Refusal::TooManyMeasurements), 2);
    let (other, _events) = start(3, NodeConfig::host(vec![])).await;
    connect(&other, &broker).await;
    other
        .measure_speed(peer, Direction::Up, |_| {})
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_together_get_so_many_at_once_and_an_hour() {
    let broker = broker(1, Over::Tcp, |limits| {
        limits.at_once = 1;
        limits.per_hour = 2.try_into().unwrap();
        limits.length = Duration::from_millis(300);
    })
    .await;
    let peer = broker.public();
    let mut hosts = Vec::new();
    for seed in 2..5 {
        let (host, events) = start(seed, NodeConfig::host(vec![])).await;
        connect(&host, &broker).await;
        hosts.push((host, events));
    }
    let begun = Arc::new(Notify::new());
    let (first, says) = (hosts[0].0.clone(), Arc::clone(&begun));
    let running = tokio::spawn(async move {
        let measuring = first.measure_speed(peer, Direction::Up, |_| says.notify_one());
        measuring.await
    });
    begun.notified().await;
    let second = &hosts[1].0;
    let meanwhile = second.measure_speed(peer, Direction::Down, |_| {}).await;
    assert_eq!(meanwhile, Err(REFUSED));
    running.abort();
    // That refusal for want of a place cost no turn: this is the second of the hour.
    until("the place is free again", async || {
        let again = second.measure_speed(peer, Direction::Down, |_| {}).await;
        again.is_ok()
    })
    .await;
    let third = &hosts[2].0;
    let refused = third.measure_speed(peer, Direction::Down, |_| {}).await;
    assert_eq!(refused, Err(REFUSED));
}

/// What a host or a renter has is not for others to use up.
#[tokio::test(flavor = "multi_thread")]
async fn only_brokers_give_measurements() {
    let (host, _events) = start(1, NodeConfig::host(vec![Over::Tcp.anywhere()])).await;
    let (other, _others) = start(2, NodeConfig::renter()).await;
    let peer = connect(&other, &host).await;
    assert_eq!(
        other.measure_speed(peer, Direction::Down, |_| {}).await,
        Err(REFUSED)
    );
}
