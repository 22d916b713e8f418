//! GPUs between an agent, its engine and its owner: images that need another one, and what the owner is shown.

use std::time::Duration;

use gpu_health::input::Input;
use host_agent::agent::Agent;
use host_agent::clock;
use host_nvml::event::{EventKind, GpuEvent};
use host_nvml::news::GpuNews;
use host_nvml::sample::{GpuSample, Reading};
use protocol::bounded::Text;
use protocol::lease::{ContainerState, ProblemKind};
use protocol::units::{Bytes, Millis};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::broker::FakeBroker;
use crate::world::{Host, containers, status};

/// Complaint 79: it is said before anything is made, and nothing is billed.
#[tokio::test]
async fn an_image_that_needs_a_newer_driver_fails_before_it_costs_anything() {
    let broker = FakeBroker::start(1).await;
    let host = Host::new(&[&broker], 1);
    host.runtime.images_say(&[
        "PATH=/bin",
        "NVIDIA_REQUIRE_CUDA=cuda>=13.0 brand=tesla,driver<500",
    ]);
    let agent = host.start().await;
    let goal = broker.matched(host.id, &broker.offer().await, 1);
    broker.say(host.id, vec![goal.clone()]).await;
    let is_failed = |state: &ContainerState| matches!(state, ContainerState::Failed(_));
    let report = broker.report("failed", goal.lease, is_failed).await;
    let ContainerState::Failed(problem) = report.state else {
        panic!("it was looked at")
    };
    assert_eq!(problem.kind, ProblemKind::ImageNeedsOtherGpu);
    assert_eq!(
        problem.detail.as_str(),
        "the image needs CUDA at least 13.0 (NVIDIA_REQUIRE_CUDA), and NVIDIA Test has CUDA 12.8"
    );
    assert_eq!(report.meters.running, Millis(0));
    assert_eq!(
        (host.runtime.starts(goal.lease), containers(&host).await),
        (0, Vec::new())
    );
    agent.shutdown().await.unwrap();
}

/// The page as a scraper gets it.
async fn page(agent: &Agent) -> String {
    let mut stream = TcpStream::connect(agent.metrics_address()).await.unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// The page has what was heard of the first GPU, and nothing of the second.
fn shows_both(page: &str) {
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    let line = |name: &str, uuid: &str| {
        let is_it = |line: &&str| line.starts_with(&format!("{name}{{")) && line.contains(uuid);
        let found = page.lines().find(is_it);
        found.and_then(|line| line.rsplit(' ').next().map(str::to_owned))
    };
    assert_eq!(
        line("DCGM_FI_DEV_GPU_UTIL", "GPU-0").as_deref(),
        Some("87.0")
    );
    assert_eq!(
        line("DCGM_FI_DEV_POWER_USAGE", "GPU-0").as_deref(),
        Some("412.5")
    );
    // 24 GiB less 5.
    assert_eq!(
        line("DCGM_FI_DEV_FB_FREE", "GPU-0").as_deref(),
        Some("19456.0")
    );
    assert_eq!(
        line("DCGM_FI_DEV_XID_ERRORS", "GPU-0").as_deref(),
        Some("31.0")
    );
    assert_eq!(line("DCGM_FI_DEV_GPU_UTIL", "GPU-1"), None);
    assert_eq!(line("host_gpu_leased", "GPU-0").as_deref(), Some("1.0"));
}

#[tokio::test]
async fn the_owner_sees_how_each_gpu_is_who_has_it_and_what_it_earns() {
    let broker = FakeBroker::start(1).await;
    let host = Host::new(&[&broker], 2);
    let (agent, say) = host.start_hearing().await;
    let goal = broker.matched(host.id, &broker.offer().await, 1);
    broker.say(host.id, vec![goal.clone()]).await;
    broker.running(goal.lease).await;
    let gpu: Text<64> = Text::new("GPU-0").unwrap();
    let sample = GpuSample {
        gpu: gpu.clone(),
        at: clock::wall(),
        reading: Reading {
            utilisation_percent: Some(87),
            temperature_c: Some(61),
            power_mw: Some(412_500),
            memory_used: Some(Bytes(5 << 30)),
            ..Reading::default()
        },
    };
    // The renter's own program did it: the lease goes on.
    let event = GpuEvent {
        gpu,
        kind: EventKind::Xid(31),
        gpu_instance: None,
        compute_instance: None,
        at: clock::wall(),
    };
    for news in [GpuNews::Event(event), GpuNews::Sample(sample)] {
        say.send(Input::News(news)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let seen = status(&agent).await.gpu_rows;
    let [first, second] = seen.as_slice() else {
        panic!("two GPUs, and not {}", seen.len())
    };
    assert_eq!(
        (first.uuid.as_str(), second.uuid.as_str()),
        ("GPU-0", "GPU-1")
    );
    assert_eq!(
        first.lease.as_deref(),
        Some(goal.lease.to_string().as_str())
    );
    assert_eq!(
        (second.lease.as_deref(), second.idle_permille),
        (None, Some(1000))
    );
    assert!(
        first.idle_permille.is_some_and(|idle| idle < 1000),
        "{first:?}"
    );
    let earned: f64 = first.earned_usd.parse().unwrap();
    // 0.35 dollars an hour, for a second and less than a minute.
    assert!((0.000_09..0.006).contains(&earned), "{earned}");
    assert_eq!(
        (second.earned_usd.as_str(), first.last_xid),
        ("0.000000", Some(31))
    );
    let reading = first.reading.clone().unwrap();
    assert_eq!(
        (reading.utilisation_percent, reading.temperature_c),
        (Some(87), Some(61))
    );
    assert_eq!(second.reading, None, "nobody said how it is");
    shows_both(&page(&agent).await);
    agent.shutdown().await.unwrap();
}

#[tokio::test]
async fn two_agents_have_two_pages() {
    let broker = FakeBroker::start(1).await;
    let (one, other) = (Host::new(&[&broker], 0), Host::new(&[&broker], 0));
    let (one, other) = (one.start().await, other.start().await);
    assert_ne!(one.metrics_address(), other.metrics_address());
    for agent in [&one, &other] {
        assert!(agent.metrics_address().ip().is_loopback());
    }
    one.shutdown().await.unwrap();
    other.shutdown().await.unwrap();
}
