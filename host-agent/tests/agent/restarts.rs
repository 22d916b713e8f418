//! Agents that are killed at any step, agents that are stopped, engines that go away.

use std::time::Duration;

use host_agent::runtime::sim::{Behaviour, Step};
use protocol::lease::{ContainerState, StopReason, Vacate, Want};
use protocol::units::Timestamp;

use crate::broker::{FakeBroker, wait, wanting};
use crate::world::{Host, containers, matched, status};

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
        Want::Vacate(_) => {
            let vacated = ContainerState::Stopped(StopReason::Vacated);
            broker
                .report("vacated", lease, |state| *state == vacated)
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
    let leave = Want::Vacate(Vacate {
        run: 1,
        by: Timestamp(0),
        outbid: true,
    });
    for step in [Step::Terminate, Step::Stop] {
        killed_at(step, Behaviour::HangBefore, leave).await;
        killed_at(step, Behaviour::HangAfter, leave).await;
    }
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
async fn a_shutdown_takes_the_offers_back_and_leaves_containers_running() {
    let broker = FakeBroker::start(1).await;
    let host = Host::new(&[&broker], 2);
    let agent = host.start().await;
    let goal = broker.matched(host.id, &broker.offer().await, 1);
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
