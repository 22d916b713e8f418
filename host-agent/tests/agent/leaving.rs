//! Interruptible leases that have to go: told at once, stopped when their notice is over, and back from the same
//! disk; and what they sent meanwhile.

use std::path::{Path, PathBuf};
use std::time::Duration;

use host_agent::clock;
use host_agent::runtime::sim::{Behaviour, Step};
use protocol::ids::LeaseId;
use protocol::lease::{ContainerState, StopReason, Vacate, Want};
use protocol::units::{Bytes, Timestamp};

use crate::broker::{wait, wanting};
use crate::world::{Host, containers, matched};

/// A container's folder of notices.
fn folder(host: &Host, lease: LeaseId) -> PathBuf {
    host.folder.path().join("notices").join(lease.to_string())
}

fn leave(run: u32, outbid: bool) -> Want {
    Want::Vacate(Vacate {
        run,
        by: Timestamp(clock::wall().0 + 2_000),
        outbid,
    })
}

const VACATED: ContainerState = ContainerState::Stopped(StopReason::Vacated);

async fn read(path: &Path) -> serde_json::Value {
    let text = wait("the notice", || std::fs::read_to_string(path).ok()).await;
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_lease_that_was_outbid_is_told_goes_and_comes_back() {
    let (broker, host, _agent, goal) = matched().await;
    let lease = goal.lease;
    broker.say(host.id, vec![goal.clone()]).await;
    broker.running(lease).await;
    // The folder is there from the start, and empty.
    let file = folder(&host, lease).join("notice.json");
    assert!(folder(&host, lease).is_dir() && !file.exists());

    let said = clock::wall();
    broker.say(host.id, wanting(&goal, leave(1, true))).await;
    let notice = read(&file).await;
    assert!(clock::wall().since(said).0 < 2_000, "it was told late");
    assert_eq!(notice["reason"], "outbid");
    assert!(
        [1, 2].contains(&notice["seconds"].as_u64().unwrap()),
        "{notice}"
    );
    assert!(notice["stop_at"].as_str().unwrap().ends_with('Z'));
    // It heard SIGTERM, and runs on.
    wait("the signal", || {
        let told = (Step::Terminate, Some(lease));
        host.runtime.steps().contains(&told).then_some(())
    })
    .await;
    assert_eq!(containers(&host).await, [(lease, true)]);

    let vacated = broker
        .report("vacated", lease, |state| *state == VACATED)
        .await;
    let notice_ran = clock::wall().since(said).0;
    assert!(notice_ran >= 2_000, "stopped after {notice_ran} ms");
    assert_eq!(containers(&host).await, [(lease, false)]);
    assert!(vacated.meters.running.0 >= 2_000, "{:?}", vacated.meters);
    let terms = host.runtime.steps();
    let told = terms.iter().filter(|step| step.0 == Step::Terminate);
    assert_eq!(told.count(), 1);

    broker.say(host.id, wanting(&goal, Want::Stop)).await;
    broker.say(host.id, wanting(&goal, Want::Run(2))).await;
    wait("run 2", || {
        broker
            .last_report(lease)
            .filter(|last| last.run == 2 && last.state == ContainerState::Running)
    })
    .await;
    // The next run does not begin with the notice of the last.
    assert!(!file.exists());
    assert_eq!(host.runtime.starts(lease), 2);
    broker.say(host.id, wanting(&goal, Want::End)).await;
    broker.gone(lease).await;
    assert!(!folder(&host, lease).exists());
}

#[tokio::test]
async fn one_that_saves_its_work_and_ends_is_vacated_at_once() {
    let (broker, host, _agent, goal) = matched().await;
    broker.say(host.id, vec![goal.clone()]).await;
    broker.running(goal.lease).await;
    let said = clock::wall();
    broker.say(host.id, wanting(&goal, leave(1, false))).await;
    let notice = read(&folder(&host, goal.lease).join("notice.json")).await;
    assert_eq!(notice["reason"], "preempted");
    host.runtime.end(goal.lease, 0, false);
    broker
        .report("vacated", goal.lease, |state| *state == VACATED)
        .await;
    assert!(
        clock::wall().since(said).0 < 2_000,
        "it waited for the notice"
    );
}

#[tokio::test]
async fn an_agent_that_starts_again_in_a_notice_ends_it_when_it_is_over() {
    let (broker, mut host, agent, goal) = matched().await;
    // Nothing is heard of the broker meanwhile.
    broker.say(host.id, vec![goal.clone()]).await;
    broker.running(goal.lease).await;
    let said = clock::wall();
    broker.say(host.id, wanting(&goal, leave(1, true))).await;
    read(&folder(&host, goal.lease).join("notice.json")).await;
    drop(agent);
    host.config.brokers.clear();
    let _agent = host.start().await;
    for _ in 0..1000 {
        if containers(&host).await == [(goal.lease, false)] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let took = clock::wall().since(said).0;
    assert_eq!(containers(&host).await, [(goal.lease, false)]);
    assert!(took >= 2_000, "stopped after {took} ms");
}

#[tokio::test]
async fn a_notice_that_is_taken_back_disappears_and_the_lease_runs_on() {
    let (broker, host, _agent, goal) = matched().await;
    broker.say(host.id, vec![goal.clone()]).await;
    broker.running(goal.lease).await;
    let file = folder(&host, goal.lease).join("notice.json");
    broker.say(host.id, wanting(&goal, leave(1, true))).await;
    read(&file).await;
    broker.say(host.id, vec![goal.clone()]).await;
    wait("its end", || (!file.exists()).then_some(())).await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(containers(&host).await, [(goal.lease, true)]);
}

#[tokio::test]
async fn traffic_is_reported_over_runs_and_agents_and_never_falls() {
    let (broker, host, agent, goal) = matched().await;
    let lease = goal.lease;
    broker.say(host.id, vec![goal.clone()]).await;
    let first = broker.running(lease).await;
    assert_eq!(
        (first.meters.uploaded, first.meters.downloaded),
        (Bytes(0), Bytes(0))
    );
    let reported = async |uploaded: u64, downloaded: u64| {
        wait("the traffic", || {
            broker.last_report(lease).filter(|last| {
                let meters = last.meters;
                (meters.uploaded.0, meters.downloaded.0) == (uploaded, downloaded)
            })
        })
        .await
    };
    host.runtime.cross(lease, Bytes(1_000), Bytes(70));
    reported(1_000, 70).await;
    drop(agent);
    host.runtime.cross(lease, Bytes(200), Bytes(7));
    let _agent = host.start().await;
    reported(1_200, 77).await;
    // What crosses in the last moment before a stop counts too.
    host.runtime.cross(lease, Bytes(30), Bytes(3));
    broker.say(host.id, wanting(&goal, Want::Stop)).await;
    let stopped = broker
        .report("stopped", lease, |state| {
            matches!(state, ContainerState::Stopped(_))
        })
        .await;
    assert_eq!(
        (stopped.meters.uploaded, stopped.meters.downloaded),
        (Bytes(1_230), Bytes(80))
    );
    broker.say(host.id, wanting(&goal, Want::Run(2))).await;
    wait("run 2", || {
        broker
            .last_report(lease)
            .filter(|last| last.run == 2 && last.state == ContainerState::Running)
    })
    .await;
    host.runtime.cross(lease, Bytes(4), Bytes(5));
    reported(1_234, 85).await;
    let sums: Vec<u64> = broker
        .heard()
        .reports
        .iter()
        .map(|report| report.meters.uploaded.0)
        .collect();
    assert!(sums.is_sorted(), "{sums:?}");
}

#[tokio::test]
async fn what_comes_for_its_place_in_the_same_goal_gets_it_when_it_is_free() {
    let (broker, host, _agent, goal) = matched().await;
    broker.say(host.id, vec![goal.clone()]).await;
    broker.running(goal.lease).await;
    let next = broker.matched(host.id, &broker.offer().await, 2);
    host.runtime
        .script(Step::Stop, Behaviour::Delay(Duration::from_millis(700)));
    let mut both = wanting(&goal, Want::Stop);
    both.push(next.clone());
    // Said once: the agent goes on by itself when the first one is gone.
    broker.say(host.id, both).await;
    broker.running(next.lease).await;
    assert!(broker.heard().refusals.is_empty());
    let mut found = containers(&host).await;
    found.sort();
    let mut wanted = vec![(goal.lease, false), (next.lease, true)];
    wanted.sort();
    assert_eq!(found, wanted);
}
