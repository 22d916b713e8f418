//! Faults of GPUs as a broker sees them: the lease that ends, the neighbour that goes on, the GPU that is withheld.

use gpu_health::input::Input;
use host_nvml::event::{EventKind, GpuEvent};
use host_nvml::news::GpuNews;
use protocol::lease::{ContainerState, FaultClass, LeaseGoal, RefusalReason, StopReason};
use protocol::offer::{Offer, ResourceName};
use protocol::units::Timestamp;

use crate::broker::{FakeBroker, wait};
use crate::world::{Host, containers};

/// The GPU fell off the bus.
fn lost(gpu: &ResourceName) -> Input {
    Input::News(GpuNews::Event(GpuEvent {
        gpu: gpu.clone(),
        kind: EventKind::Xid(79),
        gpu_instance: None,
        compute_instance: None,
        at: Timestamp(0),
    }))
}

/// Waits until `goal` is refused for its GPU.
async fn refused(broker: &FakeBroker, goal: &LeaseGoal) {
    wait("a refusal", || {
        let refusals = broker.heard().refusals;
        let mut unfit = refusals.into_iter().filter(|(lease, reason)| {
            *lease == goal.lease && matches!(reason, RefusalReason::GpuUnfit(_))
        });
        unfit.next()
    })
    .await;
}

fn first_gpu(offer: &Offer) -> ResourceName {
    offer.share.resources[0].clone()
}

// peers 81, 84, 89
#[tokio::test]
async fn a_lost_gpu_costs_its_lease_alone_and_is_leased_to_nobody_after_a_restart_either() {
    let broker = FakeBroker::start(1).await;
    let host = Host::new(&[&broker], 2);
    let (agent, gpus) = host.start_hearing().await;
    let offer = broker.offer().await;
    let gpu = first_gpu(&offer);
    let failing = broker.matched_with(host.id, &offer, 0, 1);
    let other = broker.matched_with(host.id, &offer, 1, 2);
    broker
        .say(host.id, vec![failing.clone(), other.clone()])
        .await;
    broker.running(failing.lease).await;
    broker.running(other.lease).await;

    gpus.send(lost(&gpu)).await.unwrap();
    let report = broker
        .report("a fault", failing.lease, |state| {
            matches!(state, ContainerState::Stopped(StopReason::GpuFault(_)))
        })
        .await;
    let ContainerState::Stopped(StopReason::GpuFault(fault)) = report.state else {
        panic!("no fault")
    };
    assert_eq!((fault.xid, fault.class), (79, FaultClass::Hardware));
    assert_eq!(fault.resource, gpu);
    wait("it withheld", || {
        let withheld = broker.heard().withheld;
        withheld
            .last()
            .filter(|names| names.contains(&gpu))
            .cloned()
    })
    .await;
    let stopped = async || {
        let found = containers(&host).await;
        found.contains(&(failing.lease, false)) && found.contains(&(other.lease, true))
    };
    while !stopped().await {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }

    let next = broker.matched_with(host.id, &offer, 0, 3);
    let goals = vec![failing.clone(), other.clone(), next.clone()];
    broker.say(host.id, goals).await;
    refused(&broker, &next).await;

    drop(agent);
    let agent = host.start().await;
    let last = broker.matched_with(host.id, &offer, 0, 4);
    broker
        .say(host.id, vec![failing, other.clone(), last.clone()])
        .await;
    refused(&broker, &last).await;
    let report = broker.last_report(other.lease).unwrap();
    assert_eq!(report.state, ContainerState::Running);
    agent.shutdown().await.unwrap();
}
