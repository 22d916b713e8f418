//! That the simulated engine keeps the trait's promises.

use super::*;
use crate::runtime::exec::Piece;
use protocol::bounded::{List, Text};
use protocol::ids::BrokerId;
use protocol::job::Job;
use protocol::machine::ContainerNetwork;

fn now() -> Timestamp {
    Timestamp(1_000)
}

fn sim() -> SimRuntime {
    SimRuntime::new(HostId::from_bytes([2; 32]), now)
}

fn lease() -> LeaseId {
    LeaseId::from_bytes([1; 16])
}

fn spec() -> ContainerSpec {
    ContainerSpec {
        lease: lease(),
        broker: BrokerId::from_bytes([3; 32]),
        epoch: 4,
        run: 1,
        job: Job {
            image: PinnedImage {
                name: Text::new("demo").unwrap(),
                sha256: [9; 32],
            },
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
    }
}

async fn started(sim: &SimRuntime) {
    let spec = spec();
    let (sender, _progress) = mpsc::channel(4);
    let image = sim.pull(&spec.job.image, spec.disk, sender).await.unwrap();
    sim.create(&spec, &image).await.unwrap();
    assert_eq!(
        sim.start(spec.lease).await.unwrap(),
        StartedAt(Timestamp(1_000))
    );
}

#[tokio::test]
async fn a_life_is_seen_by_its_watch() {
    let sim = sim();
    let mut watch = sim.watch();
    assert_eq!(watch.next().await, Some(ContainerEvent::Listed(Vec::new())));
    started(&sim).await;
    let lease = lease();
    let at = Timestamp(1_000);
    assert_eq!(
        watch.next().await,
        Some(ContainerEvent::Started { lease, at })
    );
    sim.end(lease, 3, false);
    let exit = Exit {
        code: 3,
        out_of_memory: false,
        started: Timestamp(0),
        finished: at,
    };
    assert_eq!(
        watch.next().await,
        Some(ContainerEvent::Died { lease, exit })
    );
    sim.remove(lease).await.unwrap();
    assert_eq!(watch.next().await, Some(ContainerEvent::Removed { lease }));
    assert_eq!(sim.containers().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn an_agent_that_dies_after_a_step_leaves_its_effect() {
    let sim = sim();
    sim.script(Step::Create, Behaviour::HangAfter);
    let late = tokio::time::timeout(Duration::from_millis(20), started(&sim)).await;
    assert!(late.is_err());
    assert_eq!(sim.containers().await.unwrap()[0].state, RunState::Created);
    started(&sim).await;
    assert_eq!(sim.starts(lease()), 1);
    assert_eq!(
        sim.of_host(HostId::from_bytes([9; 32]))
            .containers()
            .await
            .unwrap(),
        Vec::new()
    );
}

#[tokio::test]
async fn failures_are_typed_and_used_up() {
    let sim = sim();
    sim.script(Step::Pull, Behaviour::Fail(ProblemKind::RegistryDown));
    let image = spec().job.image;
    let (sender, _progress) = mpsc::channel(4);
    let problem = sim
        .pull(&image, Bytes(1 << 30), sender.clone())
        .await
        .unwrap_err();
    assert_eq!(problem.kind, ProblemKind::RegistryDown);
    let problem = sim
        .pull(&image, Bytes(1_000), sender.clone())
        .await
        .unwrap_err();
    assert_eq!(problem.kind, ProblemKind::ImageTooBig);
    assert!(sim.pull(&image, Bytes(1 << 30), sender).await.is_ok());
}

#[tokio::test]
async fn an_engine_that_is_down_says_so_and_lists_when_it_is_back() {
    let sim = sim();
    started(&sim).await;
    let mut watch = sim.watch();
    watch.next().await;
    sim.go_down();
    assert!(matches!(
        watch.next().await,
        Some(ContainerEvent::EngineLost { .. })
    ));
    assert!(sim.containers().await.is_err());
    sim.come_up();
    let Some(ContainerEvent::Listed(containers)) = watch.next().await else {
        panic!("no list")
    };
    assert_eq!(containers.len(), 1);
}

#[tokio::test]
async fn logs_are_followed_to_the_end() {
    let sim = sim();
    started(&sim).await;
    sim.write(lease(), LogStream::Output, "before");
    let query = LogQuery {
        follow: true,
        ..LogQuery::default()
    };
    let mut records = sim.logs(lease(), query).await.unwrap();
    sim.write(lease(), LogStream::Errors, "after");
    sim.end(lease(), 0, false);
    assert_eq!(records.next().await.unwrap().unwrap().text, b"before\n");
    assert_eq!(
        records.next().await.unwrap().unwrap().stream,
        LogStream::Errors
    );
    assert_eq!(records.next().await.unwrap(), None);
}

#[tokio::test]
async fn programs_run_and_end() {
    let sim = sim();
    started(&sim).await;
    let command = vec!["echo".to_owned(), "hi".to_owned()];
    let spec = ExecSpec {
        command,
        environment: Vec::new(),
        terminal: None,
    };
    let mut session = sim.exec(lease(), &spec).await.unwrap();
    assert_eq!(
        session.output.next().await.unwrap(),
        Some(Piece::Output(b"hi\n".to_vec()))
    );
    assert_eq!(session.output.next().await.unwrap(), None);
    tokio::task::yield_now().await;
    assert_eq!(
        sim.exec_state(&session.handle).await.unwrap(),
        ExecState::Ended(0)
    );
    let unknown = ExecSpec {
        command: vec!["vi".to_owned()],
        ..spec
    };
    let error = sim.exec(lease(), &unknown).await.unwrap_err();
    assert!(matches!(error, ExecError::CommandUnknown { .. }));
}
