//! Faults of GPUs through the whole agent, from what NVIDIA's library tells to what a broker hears: Xid 79, 94 in a
//! slice, 95, a hang, a GPU that vanishes, a driver that is late, a reboot in the middle.

use std::time::Duration;

use fake_nvml::scenario::{CallFault, FakeProcess, FakeProcessKind, Misdeed};
use gpu_health::unit::Until;
use host_agent::admin::wire::{AdminReply, AdminRequest};
use host_agent::clock;
use host_agent::journal::Journal;
use protocol::ids::LeaseId;
use protocol::lease::{
    ContainerState, FaultClass, GpuFault, LeaseGoal, RefusalReason, StopReason, Want,
};
use protocol::offer::Offer;
use protocol::units::Millis;

use crate::broker::{FakeBroker, wait, wanting};
use crate::card::{CardHost, withheld};
use crate::world::{ask_agent, containers};

/// What is promised of the time between a fault and the offers without it.
const PROMISED: Millis = Millis(5_000);

async fn fault(broker: &FakeBroker, lease: LeaseId) -> GpuFault {
    let is_fault =
        |state: &ContainerState| matches!(state, ContainerState::Stopped(StopReason::GpuFault(_)));
    let report = broker.report("a fault", lease, is_fault).await;
    let ContainerState::Stopped(StopReason::GpuFault(fault)) = report.state else {
        panic!("no fault")
    };
    fault
}

fn runs(broker: &FakeBroker, lease: LeaseId) -> bool {
    let report = broker.last_report(lease);
    report.is_some_and(|report| report.state == ContainerState::Running)
}

async fn unfit(broker: &FakeBroker, goal: &LeaseGoal) -> String {
    wait("a refusal", || {
        let refusals = broker.heard().refusals;
        refusals.into_iter().find_map(|(lease, reason)| {
            if let RefusalReason::GpuUnfit(why) = reason
                && lease == goal.lease
            {
                Some(why.to_string())
            } else {
                None
            }
        })
    })
    .await
}

/// The goal that somebody has this resource.
fn matched(broker: &FakeBroker, host: &CardHost, offers: &[Offer], name: &str, n: u8) -> LeaseGoal {
    let found = offers.iter().find_map(|offer| {
        let mut names = offer.share.resources.iter();
        let place = names.position(|it| it.as_str() == name)?;
        Some((offer, place))
    });
    let (offer, place) = found.unwrap();
    broker.matched_with(host.host.id, offer, place, n)
}

/// A lease of the GPU or slice of that name, running.
async fn lease(
    broker: &FakeBroker,
    host: &CardHost,
    goals: &mut Vec<LeaseGoal>,
    name: &str,
) -> LeaseId {
    let offers = wait("offers", || {
        let last = broker.heard().offers.last().cloned()?;
        let has = last
            .iter()
            .any(|offer| offer.share.resources.iter().any(|it| it.as_str() == name));
        has.then_some(last)
    })
    .await;
    let number = u8::try_from(goals.len()).unwrap() + 1;
    let goal = matched(broker, host, &offers, name, number);
    goals.push(goal.clone());
    broker.say(host.host.id, goals.clone()).await;
    broker.running(goal.lease).await;
    goal.lease
}

// Issue of peers 81, 84: a GPU off the bus costs its lease alone, and nobody gets it before a person has seen to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_that_falls_off_the_bus() {
    let broker = FakeBroker::start(1).await;
    let mut host = CardHost::new(&broker, 2, false);
    let agent = host.start().await;
    let (first, second) = (host.uuid(0), host.uuid(1));
    let mut goals = Vec::new();
    let failing = lease(&broker, &host, &mut goals, &first).await;
    let other = lease(&broker, &host, &mut goals, &second).await;

    let begun = clock::monotonic();
    host.scenario.xid(0, 79, None);
    host.write();
    let told = fault(&broker, failing).await;
    withheld(&broker, &first, true).await;
    assert!(clock::monotonic() < begun.plus(PROMISED));
    assert_eq!((told.xid, told.class), (79, FaultClass::Hardware));
    assert_eq!(told.resource, first);
    assert!(runs(&broker, other));
    let row = host.becomes(&agent, &first, "quarantined").await;
    assert_eq!(row.waits, Some(Until::Reboot));

    // The agent is killed and starts again in the same boot: it has forgotten nothing.
    drop(agent);
    let said = broker.heard().offers.len();
    let agent = host.start().await;
    let next = wait("offers of the agent that started again", || {
        let offers = broker.heard().offers;
        let last = offers.iter().skip(said).next_back()?;
        (!last.is_empty()).then(|| last.clone())
    })
    .await;
    goals.push(matched(&broker, &host, &next, &first, 9));
    broker.say(host.host.id, goals.clone()).await;
    let why = unfit(&broker, &goals[2]).await;
    assert!(
        why.contains("fallen off the bus") || why.contains("reboot"),
        "{why}"
    );
    broker.running(other).await;

    // Its owner looked at it: it is tested, and leased again.
    assert_eq!(host.scrubbed().len(), 0);
    let refused = ask_agent(&agent, AdminRequest::Checked("GPU-f".to_owned())).await;
    assert!(matches!(refused, AdminReply::Refused(_)), "{refused:?}");
    let done = ask_agent(&agent, AdminRequest::Checked(first.to_string())).await;
    assert_eq!(done, AdminReply::Done);
    host.becomes(&agent, &first, "fit").await;
    withheld(&broker, &first, false).await;
    assert_eq!(host.scrubbed(), [first.to_string()]);
    agent.shutdown().await.unwrap();
}

// peers 84: an error in one slice is that slice's; one that is not contained is the GPU's.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_one_slice_and_one_that_is_not_contained() {
    let broker = FakeBroker::start(1).await;
    let mut host = CardHost::new(&broker, 2, true);
    let agent = host.start().await;
    let gpu = host.uuid(0);
    let slice = |what: &str| format!("{gpu}/{what}");
    let (first, second) = (slice("3g.40gb@0+4"), slice("3g.40gb@4+4"));
    let mut goals = Vec::new();
    let struck = lease(&broker, &host, &mut goals, &first).await;
    let beside = lease(&broker, &host, &mut goals, &second).await;
    let whole = lease(&broker, &host, &mut goals, &host.uuid(1)).await;

    // The instance that was made first has the driver's lowest number.
    let instance = {
        let mut number = None;
        for candidate in 0..15 {
            host.scenario.xid(0, 94, Some((candidate, 0)));
            host.write();
            tokio::time::sleep(Duration::from_millis(700)).await;
            let report = broker.last_report(struck);
            if report.is_some_and(|it| matches!(it.state, ContainerState::Stopped(_))) {
                number = Some(candidate);
                break;
            }
            assert!(
                runs(&broker, beside),
                "the neighbour ended at instance {candidate}"
            );
        }
        number
    };
    assert!(instance.is_some());
    assert_eq!(fault(&broker, struck).await.xid, 94);
    assert_eq!(fault(&broker, struck).await.resource.as_str(), first);
    assert!(runs(&broker, beside) && runs(&broker, whole));
    withheld(&broker, &second, false).await;

    // The other one ends with an error that is not contained, and the GPU is reset once nobody has it.
    host.scenario.xid(0, 95, None);
    host.scenario.gpus[0].recovery = Some(1);
    host.write();
    assert_eq!(fault(&broker, beside).await.xid, 95);
    wait("a reset", || (host.resets() > 0).then_some(())).await;
    host.scenario.gpus[0].recovery = Some(0);
    host.write();
    host.becomes(&agent, &gpu, "fit").await;
    assert_eq!(host.resets(), 1);
    assert!(runs(&broker, whole));
    agent.shutdown().await.unwrap();
}

// peers 82, 83: a hang and an absence without a word.
#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_that_hangs_and_one_that_vanishes() {
    let broker = FakeBroker::start(1).await;
    let mut host = CardHost::new(&broker, 3, false);
    let agent = host.start().await;
    let (hung, gone, sound) = (host.uuid(0), host.uuid(1), host.uuid(2));
    let mut goals = Vec::new();
    let waiting = lease(&broker, &host, &mut goals, &hung).await;
    let lost = lease(&broker, &host, &mut goals, &gone).await;
    let other = lease(&broker, &host, &mut goals, &sound).await;

    let begun = clock::monotonic();
    host.scenario.faults.push(CallFault {
        call: "*".to_owned(),
        gpu: Some(hung.to_string()),
        does: Misdeed::Hangs {
            milliseconds: 3_600_000,
        },
    });
    host.write();
    withheld(&broker, &hung, true).await;
    assert!(clock::monotonic() < begun.plus(PROMISED));
    host.becomes(&agent, &hung, "unknown").await;
    assert!(runs(&broker, waiting) && runs(&broker, lost) && runs(&broker, other));

    host.scenario.faults.clear();
    host.write();
    withheld(&broker, &hung, false).await;
    assert!(runs(&broker, waiting));

    host.scenario.gpus[1].present = false;
    host.write();
    let told = fault(&broker, lost).await;
    assert_eq!((told.xid, told.class), (0, FaultClass::Hardware));
    // It is not among what is measured any more, without a wait for the next measuring.
    wait("offers without it", || {
        let offers = broker.heard().offers.last().cloned()?;
        let mut names = offers.iter().flat_map(|offer| offer.share.resources.iter());
        (!offers.is_empty() && !names.any(|name| *name == gone)).then_some(())
    })
    .await;
    assert!(runs(&broker, waiting) && runs(&broker, other));
    agent.shutdown().await.unwrap();
}

// peers 85: the driver is ready minutes after the agent.
#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_is_late() {
    let broker = FakeBroker::start(1).await;
    let mut host = CardHost::new(&broker, 1, false);
    let driver = host.scenario.driver.take();
    host.write();
    let agent = host.start().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let names = |broker: &FakeBroker| {
        let last = broker.heard().offers.last().cloned().unwrap_or_default();
        let names = last.iter().flat_map(|offer| offer.share.resources.to_vec());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&broker), []);
    host.scenario.driver = driver;
    host.write();
    let mut goals = Vec::new();
    let running = lease(&broker, &host, &mut goals, &host.uuid(0)).await;
    assert!(runs(&broker, running));
    agent.shutdown().await.unwrap();
}

/// Everything of an earlier boot is cleaned before anybody gets it; what waited for the boot is tested.
#[tokio::test(flavor = "multi_thread")]
async fn a_reboot_in_the_middle() {
    let broker = FakeBroker::start(1).await;
    let mut host = CardHost::new(&broker, 2, false);
    let agent = host.start().await;
    let (fell, used) = (host.uuid(0), host.uuid(1));
    let mut goals = Vec::new();
    let failing = lease(&broker, &host, &mut goals, &fell).await;
    let running = lease(&broker, &host, &mut goals, &used).await;
    host.scenario.xid(0, 79, None);
    host.write();
    fault(&broker, failing).await;
    host.becomes(&agent, &fell, "quarantined").await;

    drop(agent);
    host.host.runtime.end(running, 137, false);
    host.scenario.boot += 1;
    host.scenario.events.clear();
    host.write();
    // The same journal, as the next boot finds it.
    let mut journal = loop {
        match Journal::open(host.host.folder.path()) {
            Ok((mut journal, mut recovered)) => {
                recovered.health.boot = "another".to_owned();
                journal.keep_health(&recovered.health, &[]).unwrap();
                break Some(journal);
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    drop(journal.take());
    let agent = host.start().await;
    for gpu in [&fell, &used] {
        host.becomes(&agent, gpu, "fit").await;
        withheld(&broker, gpu, false).await;
    }
    let mut scrubbed = host.scrubbed();
    scrubbed.sort();
    assert_eq!(scrubbed, [fell.to_string(), used.to_string()]);
    agent.shutdown().await.unwrap();
}

// Threats 44-48: nobody gets a GPU before what was left on it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_is_cleaned_between_two_leases_and_kept_back_when_it_is_not_clean() {
    let broker = FakeBroker::start(1).await;
    let mut host = CardHost::new(&broker, 1, false);
    let agent = host.start().await;
    let gpu = host.uuid(0);
    let mut goals = Vec::new();
    let first = lease(&broker, &host, &mut goals, &gpu).await;
    host.scenario.gpus[0].processes.push(FakeProcess {
        pid: 4242,
        kind: FakeProcessKind::Compute,
        memory: 1 << 30,
        gpu_instance: None,
    });
    host.scenario.gpus[0].memory_used = 1 << 30;
    host.write();

    // The first goes, the second comes in the same breath, and a process of the first is still there.
    let offers = broker.heard().offers.last().cloned().unwrap();
    let next = matched(&broker, &host, &offers, &gpu, 2);
    let both = [wanting(&goals[0], Want::End), vec![next.clone()]].concat();
    broker.say(host.host.id, both.clone()).await;
    broker.gone(first).await;
    host.becomes(&agent, &gpu, "cleaning").await;
    withheld(&broker, &gpu, true).await;
    assert!(
        !containers(&host.host)
            .await
            .iter()
            .any(|(lease, _)| *lease == next.lease)
    );
    assert_eq!(host.scrubbed().len(), 0);

    // It does not go: after ten seconds the GPU is kept back, and the lease is refused.
    let row = host.becomes(&agent, &gpu, "quarantined").await;
    assert!(row.words.contains("4242"), "{}", row.words);
    broker.say(host.host.id, both.clone()).await;
    assert!(unfit(&broker, &next).await.contains("4242"));

    // It is gone, and memory reads otherwise than it was written.
    host.scenario.gpus[0].processes.clear();
    host.scenario.gpus[0].memory_used = 0;
    host.write();
    host.scrubs(r#"{"written":79,"memory":80,"wrong":4}"#);
    ask_agent(&agent, AdminRequest::Checked(gpu.to_string())).await;
    wait("a scrub", || (host.scrubbed().len() == 1).then_some(())).await;
    let row = host.becomes(&agent, &gpu, "quarantined").await;
    assert_eq!(row.waits, Some(Until::Checked));

    // The card was replaced: it is clean, and leased again.
    host.scrubs(r#"{"written":79,"memory":80,"wrong":0}"#);
    ask_agent(&agent, AdminRequest::Checked(gpu.to_string())).await;
    let row = host.becomes(&agent, &gpu, "fit").await;
    assert!(row.cleaning_ms.is_some());
    withheld(&broker, &gpu, false).await;
    goals.clear();
    let offers = broker.heard().offers.last().cloned().unwrap();
    let third = matched(&broker, &host, &offers, &gpu, 3);
    broker.say(host.host.id, vec![third.clone()]).await;
    broker.running(third.lease).await;
    agent.shutdown().await.unwrap();
}
