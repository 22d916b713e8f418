//! The agent as its brokers, its owner and its engine see it: over a real network, on an engine that is not
//! there, killed wherever it hurts.

mod world;

use std::time::Duration;

use host_agent::admin::ask::ask;
use host_agent::admin::wire::{AdminReply, AdminRequest, Status};
use host_agent::agent::{Agent, StartError};
use host_agent::journal::JournalError;
use host_agent::journal::lock::LockError;
use host_agent::runtime::logs::LogStream;
use host_agent::runtime::sim::{Behaviour, Step};
use host_agent::runtime::{RunState, Runtime};
use protocol::ids::LeaseId;
use protocol::lease::{
    ContainerState, LeaseGoal, ProblemKind, RefusalReason, Stage, StopReason, Want,
};
use protocol::message::{self, HostReply, HostRequest};
use protocol::net::{Identity, Node, NodeConfig, parse_address};
use world::{FakeBroker, Host, key, listing, wait, wanting};

/// A broker, a host without GPU, its agent, and a lease that was just matched.
async fn matched() -> (FakeBroker, Host, Agent, LeaseGoal) {
    let broker = FakeBroker::start(1).await;
    let host = Host::new(&[&broker], 0);
    let agent = host.start().await;
    let goal = broker.matched(host.id, &broker.offer().await, 1);
    (broker, host, agent, goal)
}

async fn containers(host: &Host) -> Vec<(LeaseId, bool)> {
    let found = host.runtime.containers().await.unwrap();
    found
        .into_iter()
        .map(|one| (one.lease, matches!(one.state, RunState::Running { .. })))
        .collect()
}

async fn owner(agent: &Agent, request: AdminRequest) -> AdminReply {
    let socket = agent.socket().to_owned();
    tokio::task::spawn_blocking(move || ask(&socket, &request).unwrap())
        .await
        .unwrap()
}

async fn status(agent: &Agent) -> Status {
    match owner(agent, AdminRequest::Status).await {
        AdminReply::Status(status) => *status,
        other => panic!("{other:?}"),
    }
}

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
    assert!(heard.refusals.is_empty());
    // What is held is not announced.
    broker.offers(0).await;

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
    let offers = broker.offers(2).await;
    let slow = broker.matched(host.id, &offers[0], 1);
    let quick = broker.matched(host.id, &offers[1], 2);
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

#[tokio::test]
async fn a_killed_agent_adopts_what_runs_and_ends_what_nobody_wants() {
    let (broker, host, agent, goal) = matched().await;
    broker.say(host.id, vec![goal.clone()]).await;
    let before = broker.running(goal.lease).await;
    drop(agent);
    let agent = host.start().await;
    let after = wait("reports after the restart", || {
        broker
            .last_report(goal.lease)
            .filter(|last| last.sequence > before.sequence + 500)
    })
    .await;
    assert_eq!((after.run, &after.state), (1, &ContainerState::Running));
    assert!(after.meters.running >= before.meters.running);
    assert_eq!(host.runtime.starts(goal.lease), 1);
    // Killed again; meanwhile the broker lost interest.
    drop(agent);
    let _agent = host.start().await;
    broker.say(host.id, Vec::new()).await;
    for _ in 0..500 {
        if containers(&host).await.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it was not ended");
}

/// Kills the agent when `step` was asked for, before or after it took effect, starts another, and wants
/// `want` in the end.
async fn killed_at(step: Step, behaviour: Behaviour, want: Want) {
    let (broker, host, agent, goal) = matched().await;
    let lease = goal.lease;
    if want == Want::Run(1) {
        host.runtime.script(step, behaviour);
        broker.say(host.id, vec![goal.clone()]).await;
    } else {
        broker.say(host.id, vec![goal.clone()]).await;
        broker.running(lease).await;
        host.runtime.script(step, behaviour);
        broker.say(host.id, wanting(&goal, want)).await;
    }
    wait("the step", || {
        host.runtime
            .steps()
            .iter()
            .any(|(done, _)| *done == step)
            .then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(agent);
    let _agent = host.start().await;
    broker.say(host.id, wanting(&goal, want)).await;
    match want {
        Want::Run(_) => {
            broker.running(lease).await;
            assert_eq!(host.runtime.starts(lease), 1, "{step:?}");
            assert_eq!(containers(&host).await, [(lease, true)]);
        }
        Want::Stop => {
            let asked = ContainerState::Stopped(StopReason::Asked);
            broker
                .report("stopped", lease, |state| *state == asked)
                .await;
            assert_eq!(containers(&host).await, [(lease, false)]);
        }
        Want::End => {
            broker.gone(lease).await;
            assert!(containers(&host).await.is_empty());
            assert!(host.logs(lease).exists());
        }
    }
    let grants = broker.heard().grants;
    assert!(
        grants
            .iter()
            .all(|grant| grant.resources == grants[0].resources),
        "{step:?}"
    );
}

#[tokio::test]
async fn killed_at_each_step_of_a_start() {
    for step in [Step::Pull, Step::Create, Step::Start] {
        killed_at(step, Behaviour::HangBefore, Want::Run(1)).await;
        killed_at(step, Behaviour::HangAfter, Want::Run(1)).await;
    }
}

#[tokio::test]
async fn killed_at_each_step_of_an_end() {
    killed_at(Step::Stop, Behaviour::HangBefore, Want::Stop).await;
    killed_at(Step::Stop, Behaviour::HangAfter, Want::Stop).await;
    for step in [Step::Stop, Step::SaveLogs, Step::Remove] {
        killed_at(step, Behaviour::HangBefore, Want::End).await;
        killed_at(step, Behaviour::HangAfter, Want::End).await;
    }
}

#[tokio::test]
async fn an_engine_that_goes_away_takes_the_offers_with_it_and_leases_go_on() {
    let (broker, host, agent, goal) = matched().await;
    broker.say(host.id, vec![goal.clone()]).await;
    broker.running(goal.lease).await;
    host.runtime.go_down();
    for _ in 0..1000 {
        if status(&agent).await.engine.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let silent = broker.last_report(goal.lease).unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    let during = broker.last_report(goal.lease).unwrap();
    assert!(
        during.sequence - silent.sequence < 500,
        "it signs for what it cannot see"
    );
    host.runtime.come_up();
    wait("running again", || {
        broker.last_report(goal.lease).filter(|last| {
            last.sequence > during.sequence + 500 && last.state == ContainerState::Running
        })
    })
    .await;
    assert_eq!(host.runtime.starts(goal.lease), 1);
}

#[tokio::test]
async fn a_start_goes_on_when_the_engine_is_back() {
    let (broker, host, _agent, goal) = matched().await;
    host.runtime
        .script(Step::Pull, Behaviour::Delay(Duration::from_millis(300)));
    broker.say(host.id, vec![goal.clone()]).await;
    wait("the pull", || {
        host.runtime
            .steps()
            .iter()
            .any(|(step, _)| *step == Step::Pull)
            .then_some(())
    })
    .await;
    host.runtime.go_down();
    tokio::time::sleep(Duration::from_millis(500)).await;
    host.runtime.come_up();
    broker.running(goal.lease).await;
    assert_eq!(host.runtime.starts(goal.lease), 1);
}

#[tokio::test]
async fn a_cut_network_heals_by_itself() {
    let (broker, host, _agent, goal) = matched().await;
    broker.say(host.id, vec![goal.clone()]).await;
    let before = broker.running(goal.lease).await;
    broker.node.disconnect(host.id.into()).await;
    wait("reports after the cut", || {
        broker
            .last_report(goal.lease)
            .filter(|last| last.sequence > before.sequence + 500)
    })
    .await;
    broker.say(host.id, vec![goal.clone()]).await;
    assert_eq!(containers(&host).await, [(goal.lease, true)]);
}

#[tokio::test]
async fn strangers_goals_are_refused_and_counted() {
    let broker = FakeBroker::start(1).await;
    let mut host = Host::new(&[&broker], 0);
    host.config.listen = vec![parse_address("/ip4/127.0.0.1/tcp/0").unwrap()];
    let agent = host.start().await;
    let stranger = Identity::from_signing_key(key(66));
    let (node, _events) = Node::start(&stranger, NodeConfig::renter()).await.unwrap();
    let addresses = agent.addresses().await;
    node.connect(host.id.into(), addresses, Duration::from_secs(5))
        .await
        .unwrap();
    let goal = protocol::lease::Goal {
        sequence: 1,
        started_at: protocol::units::Timestamp(1),
        leases: protocol::bounded::List::default(),
    };
    for bytes in [
        message::encode(&HostRequest::Goal(goal)).unwrap(),
        vec![1, 2, 3],
    ] {
        let answer = node
            .request(host.id.into(), bytes, Duration::from_secs(5))
            .await
            .unwrap();
        assert!(matches!(
            message::decode(&answer).unwrap(),
            HostReply::Refused(_)
        ));
    }
    assert_eq!(status(&agent).await.refusals["unknown_broker"], 2);
}

#[tokio::test]
async fn a_second_agent_on_one_folder_is_refused() {
    let broker = FakeBroker::start(1).await;
    let host = Host::new(&[&broker], 0);
    let _agent = host.start().await;
    let error = host.try_start().await.unwrap_err();
    assert!(
        matches!(
            error,
            StartError::Journal(JournalError::Lock(LockError::Taken { .. }))
        ),
        "{error}"
    );
}

#[tokio::test]
async fn an_owner_lists_and_unlists_a_running_agent() {
    let (broker, host, agent, _goal) = matched().await;
    assert_eq!(status(&agent).await.offers_free, 1);
    assert_eq!(owner(&agent, AdminRequest::Unlist).await, AdminReply::Done);
    broker.offers(0).await;
    let mut dearer = listing(&[]);
    dearer.prices.compute.0 = 400_000;
    let AdminReply::Offers(rows) = owner(&agent, AdminRequest::List(Box::new(dearer))).await else {
        panic!("no offers")
    };
    assert_eq!(rows[0].price_usd_per_hour, "0.400000");
    let offer = broker.offer().await;
    assert_eq!(offer.prices.compute.0, 400_000);
    // An order of the old price is refused.
    let mut old = offer.clone();
    old.prices.compute.0 = 350_000;
    let stale = broker.matched(host.id, &old, 5);
    broker.say(host.id, vec![stale.clone()]).await;
    let refusal = wait("a refusal", || broker.heard().refusals.first().cloned()).await;
    assert_eq!(refusal, (stale.lease, RefusalReason::OfferChanged));
}

#[tokio::test]
async fn a_shutdown_takes_the_offers_back_and_leaves_containers_running() {
    let broker = FakeBroker::start(1).await;
    let host = Host::new(&[&broker], 2);
    let agent = host.start().await;
    let goal = broker.matched(host.id, &broker.offers(2).await[0], 1);
    broker.say(host.id, vec![goal.clone()]).await;
    broker.running(goal.lease).await;
    broker.offers(1).await;
    agent.shutdown().await.unwrap();
    broker.offers(0).await;
    assert_eq!(containers(&host).await, [(goal.lease, true)]);
    let _agent = host.try_start().await.unwrap();
    broker.offers(1).await;
    assert_eq!(host.runtime.starts(goal.lease), 1);
}
