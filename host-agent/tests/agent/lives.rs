//! Leases as their brokers see them, from a match to its end, whatever is lost, doubled or late.

use std::time::Duration;

use host_agent::runtime::logs::LogStream;
use host_agent::runtime::sim::{Behaviour, Step};
use protocol::lease::{
    ContainerState, LeaseGoal, ProblemKind, RefusalReason, Stage, StopReason, Want,
};
use protocol::message::HostReply;

use crate::broker::{FakeBroker, wait, wanting};
use crate::world::{Host, containers, matched};

#[tokio::test]
async fn a_lease_from_its_match_to_its_end() {
    let (broker, host, agent, goal) = matched().await;
    let lease = goal.lease;
    broker.say(host.id, vec![goal.clone()]).await;
    let running = broker.running(lease).await;
    assert_eq!(running.run, 1);
    let heard = broker.heard();
    assert_eq!(heard.grants[0].order, goal.order.digest());
    assert_eq!(heard.grants[0].resources[0].0.as_str(), "machine");
    let stages: Vec<Stage> = heard
        .progress
        .iter()
        .map(|progress| progress.stage)
        .collect();
    assert!(stages.is_sorted(), "{stages:?}");
    assert_eq!(heard.refusals, []);
    // Its broker knows that it is held, and may sell what can be won of it.
    broker.offers(1).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    broker.say(host.id, wanting(&goal, Want::Stop)).await;
    let asked = ContainerState::Stopped(StopReason::Asked);
    let stopped = broker
        .report("stopped", lease, |state| *state == asked)
        .await;
    assert!(
        (450..5_000).contains(&stopped.meters.running.0),
        "{:?}",
        stopped.meters
    );
    assert_eq!(containers(&host).await, [(lease, false)]);
    broker.offers(1).await;

    broker.say(host.id, wanting(&goal, Want::Run(2))).await;
    let again = wait("run 2", || {
        broker
            .last_report(lease)
            .filter(|last| last.run == 2 && last.state == ContainerState::Running)
    })
    .await;
    assert!(again.meters.running >= stopped.meters.running);
    let grants = broker.heard().grants;
    let (first, last) = (
        &grants[0].resources[0],
        &grants[grants.len() - 1].resources[0],
    );
    assert!(last.1 > first.1, "a resume takes a new epoch");

    host.runtime.write(lease, LogStream::Output, "goodbye");
    broker.say(host.id, wanting(&goal, Want::End)).await;
    let gone = broker.gone(lease).await;
    assert!(gone.meters.running >= again.meters.running);
    assert!(containers(&host).await.is_empty());
    assert!(
        std::fs::read_to_string(host.logs(lease))
            .unwrap()
            .contains("goodbye")
    );
    let sequences: Vec<u64> = broker
        .heard()
        .reports
        .iter()
        .map(|report| report.sequence)
        .collect();
    assert!(
        sequences.windows(2).all(|pair| pair[0] < pair[1]),
        "{sequences:?}"
    );
    assert_eq!(host.runtime.starts(lease), 2);
    agent.shutdown().await.unwrap();
}

// peers 3.2 #41: what a host says is acknowledged, and said again until it is.
#[tokio::test]
async fn what_is_not_noted_is_said_again() {
    let (broker, host, _agent, goal) = matched().await;
    // Every message is heard and none answered: as if all answers were lost.
    broker.mute(true);
    broker.say(host.id, vec![goal.clone()]).await;
    wait("the first grant", || broker.heard().grants.first().cloned()).await;
    assert!(
        broker.heard().reports.is_empty(),
        "no report before the grant is noted"
    );
    broker.mute(false);
    broker.running(goal.lease).await;
    let grants = broker.heard().grants;
    assert!(grants.len() >= 2);
    assert!(
        grants
            .iter()
            .all(|grant| grant.resources == grants[0].resources)
    );
}

#[tokio::test]
async fn reports_are_repeated_while_nothing_changes() {
    let (broker, host, _agent, goal) = matched().await;
    broker.say(host.id, vec![goal.clone()]).await;
    let first = broker.running(goal.lease).await;
    let later = wait("later reports", || {
        broker
            .last_report(goal.lease)
            .filter(|last| last.meters.running.0 > first.meters.running.0 + 600)
    })
    .await;
    assert_eq!(later.state, ContainerState::Running);
}

#[tokio::test]
async fn two_brokers_race_and_one_wins() {
    let (one, two) = (FakeBroker::start(1).await, FakeBroker::start(2).await);
    let host = Host::new(&[&one, &two], 0);
    let _agent = host.start().await;
    let first = one.matched(host.id, &one.offer().await, 1);
    let second = two.matched(host.id, &two.offer().await, 2);
    one.say(host.id, vec![first.clone()]).await;
    two.say(host.id, vec![second.clone()]).await;
    one.running(first.lease).await;
    let refusal = wait("a refusal", || two.heard().refusals.first().cloned()).await;
    assert_eq!(refusal, (second.lease, RefusalReason::Taken));
    assert!(two.heard().grants.is_empty());
    // All of it is another broker's: nothing is offered here. There it still is.
    two.offers(0).await;
    one.offers(1).await;
    assert_eq!(containers(&host).await, [(first.lease, true)]);
    // The other broker's goal, which does not name it, leaves the winner alone.
    two.say(host.id, Vec::new()).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(containers(&host).await, [(first.lease, true)]);
}

#[tokio::test]
async fn duplicated_and_reordered_goals_have_one_effect() {
    let (broker, host, _agent, goal) = matched().await;
    for _ in 0..5 {
        assert_eq!(
            broker.say_as(host.id, vec![goal.clone()], 7).await,
            HostReply::Noted
        );
    }
    broker.running(goal.lease).await;
    // An older goal without the lease came late.
    let late = broker.say_as(host.id, Vec::new(), 6).await;
    assert!(matches!(late, HostReply::Refused(_)));
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(containers(&host).await, [(goal.lease, true)]);
    assert_eq!(host.runtime.starts(goal.lease), 1);
}

#[tokio::test]
async fn a_program_that_ends_is_reported_at_once_and_not_started_again() {
    let (broker, host, _agent, goal) = matched().await;
    broker.say(host.id, vec![goal.clone()]).await;
    broker.running(goal.lease).await;
    host.runtime.end(goal.lease, 3, false);
    let exited = ContainerState::Stopped(StopReason::Exited(3));
    broker
        .report("exited", goal.lease, |state| *state == exited)
        .await;
    broker.say(host.id, vec![goal.clone()]).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(host.runtime.starts(goal.lease), 1);
    broker.offers(1).await;
}

#[tokio::test]
async fn a_start_that_fails_is_reported_with_its_reason() {
    let (broker, host, _agent, goal) = matched().await;
    host.runtime
        .script(Step::Pull, Behaviour::Fail(ProblemKind::ImageUnknown));
    broker.say(host.id, vec![goal.clone()]).await;
    let failed = broker
        .report("failed", goal.lease, |state| {
            matches!(state, ContainerState::Failed(_))
        })
        .await;
    let ContainerState::Failed(problem) = failed.state else {
        panic!()
    };
    assert_eq!(
        (problem.stage, problem.kind),
        (Stage::Pulling, ProblemKind::ImageUnknown)
    );
    broker.offers(1).await;
    broker.say(host.id, wanting(&goal, Want::End)).await;
    broker.gone(goal.lease).await;
}

#[tokio::test]
async fn a_slow_pull_holds_up_nobody_and_can_be_ended() {
    let broker = FakeBroker::start(1).await;
    let host = Host::new(&[&broker], 2);
    let _agent = host.start().await;
    let offer = broker.offer().await;
    let slow = broker.matched_with(host.id, &offer, 0, 1);
    let quick = broker.matched_with(host.id, &offer, 1, 2);
    host.runtime.script(Step::Pull, Behaviour::HangBefore);
    broker.say(host.id, vec![slow.clone()]).await;
    let pulling = ContainerState::Preparing(Stage::Pulling);
    broker
        .report("pulling", slow.lease, |state| *state == pulling)
        .await;
    broker.say(host.id, vec![slow.clone(), quick.clone()]).await;
    broker.running(quick.lease).await;
    let ended = LeaseGoal {
        want: Want::End,
        ..slow.clone()
    };
    broker.say(host.id, vec![ended, quick.clone()]).await;
    broker.gone(slow.lease).await;
    assert_eq!(containers(&host).await, [(quick.lease, true)]);
}
