//! Between two leases, and resets, with everything around them.

use super::stage::{
    GIB, Stage, alarms, boot, devices, ended, gpu, lease, resets, restored, slice, withdrawn,
};
use crate::between::{Dirty, Scrubbed};
use crate::input::Act;
use crate::unit::{Fitness, Kept, Until};
use host_nvml::news::{GpuNews, GpuState};
use host_nvml::sample::EccCounters;
use protocol::units::{Bytes, Millis, Timestamp};

fn scrubs(acts: &[Act]) -> Vec<String> {
    acts.iter()
        .filter_map(|act| {
            let Act::Scrub { place } = act else {
                return None;
            };
            Some(place.resource.to_string())
        })
        .collect()
}

#[test]
fn a_gpu_is_cleaned_before_it_is_leased_again() {
    let mut stage = Stage::new();
    stage.take(1, &[0, 1]);
    let acts = stage.leave(1);
    assert_eq!(withdrawn(&acts), ["GPU-0", "GPU-1"]);
    let acts = stage.run(4);
    assert_eq!(scrubs(&acts), ["GPU-0", "GPU-1"]);
    assert_eq!(restored(&acts), ["GPU-0", "GPU-1"]);
    let took = acts.iter().find_map(|act| {
        let Act::Cleaned { took, .. } = act else {
            return None;
        };
        Some(took.all)
    });
    assert_eq!(took, Some(Millis(4_000)));
    assert_eq!(resets(&acts), 0);
}

#[test]
fn a_slice_is_cleaned_beside_its_neighbours() {
    let mut stage = Stage::new();
    stage.take_slice(1, 0, 3);
    stage.take_slice(2, 0, 5);
    let acts = stage.leave(1);
    assert_eq!(withdrawn(&acts), ["GPU-0/3g@3"]);
    let place = slice(0, 3);
    assert_eq!(
        stage.health.fitness(&place.resource, &place.gpu),
        Fitness::Cleaning
    );
    // A whole GPU is not free while a slice of it is cleaned; the neighbour's slice is what it was.
    assert_eq!(stage.fitness(0), Fitness::Cleaning);
    let other = slice(0, 5);
    assert!(stage.health.fitness(&other.resource, &other.gpu).is_fit());
    let acts = stage.run(4);
    assert_eq!(scrubs(&acts), ["GPU-0/3g@3"]);
    assert_eq!(restored(&acts), ["GPU-0/3g@3"]);
    assert!(stage.has(2));
}

#[test]
fn a_scrub_that_fails_on_a_slice_keeps_that_slice_alone() {
    let mut stage = Stage::new();
    stage.take_slice(1, 0, 3);
    stage.take_slice(2, 0, 5);
    stage.scrub = Err(Dirty::Scrub("out of memory".to_owned()));
    stage.leave(1);
    stage.run(10);
    let (dirty, other) = (slice(0, 3), slice(0, 5));
    assert!(!stage.health.fitness(&dirty.resource, &dirty.gpu).is_fit());
    assert!(stage.health.fitness(&other.resource, &other.gpu).is_fit());
    assert!(stage.has(2));
    assert!(stage.health.unfit(&[dirty]).is_some());
}

#[test]
fn memory_that_reads_otherwise_is_for_the_owner_to_check() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.scrub = Ok(Scrubbed {
        written: Bytes(79 * GIB),
        memory: Bytes(80 * GIB),
        wrong: 4,
    });
    stage.leave(1);
    stage.run(600);
    assert_eq!(stage.until(0), Some(Until::Checked));
}

#[test]
fn tries_are_further_and_further_apart() {
    let mut stage = Stage::new();
    stage.scrub = Err(Dirty::Scrub("no driver".to_owned()));
    stage.take(1, &[0]);
    stage.leave(1);
    let acts = stage.run(3_600);
    // At once, and 1, 2, 4, 8 and 16 minutes after the last.
    assert_eq!(scrubs(&acts).len(), 6);
}

#[test]
fn errors_during_a_lease_are_a_reset_before_the_next() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.reads(0, |reading| {
        reading.ecc = Some(EccCounters {
            uncorrected: 2,
            uncorrected_ever: 2,
            ..EccCounters::default()
        });
    });
    // No event told of it, and nothing is ended for it.
    let acts = stage.run(4);
    assert_eq!(ended(&acts), []);
    assert_eq!(alarms(&acts).len(), 1);
    stage.leave(1);
    let acts = stage.run(12);
    assert_eq!(resets(&acts), 1);
    assert!(stage.is_fit(0));
}

#[test]
fn a_retired_row_waits_for_its_reset_without_costing_a_lease() {
    let mut stage = Stage::new();
    stage.take(1, &[6]);
    stage.take(2, &[7]);
    stage.xid(6, 63, None);
    assert!(stage.is_fit(6));
    // Its neighbour over NVLink is leased: it is cleaned and sold, and reset another time.
    stage.leave(1);
    let acts = stage.run(12);
    assert_eq!(resets(&acts), 0);
    assert!(stage.is_fit(6));
    stage.leave(2);
    let acts = stage.run(20);
    assert_eq!(resets(&acts), 1);
    assert_eq!(stage.fit().len(), 8);
}

#[test]
fn what_it_is_linked_to_is_not_leased_while_it_is_reset() {
    let mut stage = Stage::new();
    stage.xid(6, 95, None);
    // The reset has begun and not ended.
    let decision = stage.health.decide(&crate::input::Input::Tick, stage.now);
    let mut health = decision.next;
    health.units.get_mut(&gpu(6)).unwrap().reset.running = true;
    assert_eq!(health.fitness(&gpu(7), &gpu(7)), Fitness::Resetting);
    assert!(health.fitness(&gpu(5), &gpu(5)).is_fit());
}

/// A quarantine outlives the agent, and what was leased while it was away is cleaned.
#[test]
fn what_is_kept_outlives_the_agent() {
    let mut stage = Stage::new();
    stage.xid(0, 64, None);
    stage.xid(1, 79, None);
    stage.take(1, &[2]);
    let kept = stage.health.kept();
    let written = serde_json::to_string(&kept).unwrap();
    assert_eq!(serde_json::from_str::<Kept>(&written).unwrap(), kept);
    let mut again = stage.restart(boot(1));
    assert_eq!(again.until(0), Some(Until::Checked));
    assert_eq!(again.until(1), Some(Until::Reboot));
    assert_eq!(again.fit(), [2, 3, 4, 5, 6, 7]);
    // It is said to be leased by nobody: it was cleaned.
    assert_eq!(
        scrubs(&again.acts.drain(..).map(|(_, act)| act).collect::<Vec<_>>()),
        ["GPU-2"]
    );
    // After a boot the one that fell off is tested, and the other waits for its owner.
    let mut booted = stage.restart(boot(2));
    booted.run(12);
    assert_eq!(booted.until(0), Some(Until::Checked));
    assert!(booted.is_fit(1));
}

/// Nothing is decided about leases before the agent has said who has what.
#[test]
fn a_test_waits_until_it_is_known_who_has_what() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.xid(0, 156, None);
    let health = crate::health::Health::recovered(stage.health.kept(), boot(1));
    let mut health = health
        .decide(&crate::input::Input::Machine(devices()), Millis(1))
        .next;
    for second in 2..20 {
        let sample = GpuNews::Sample(host_nvml::sample::GpuSample {
            gpu: gpu(0),
            at: Timestamp(0),
            reading: super::stage::sound(),
        });
        let decision = health.decide(&crate::input::Input::News(sample), Millis(second * 1_000));
        health = decision.next;
        assert_eq!(scrubs(&decision.acts), [""; 0]);
        assert_eq!(resets(&decision.acts), 0);
    }
}

/// A GPU that is not there, or that this host cannot look at, is not cleaned and blocks nothing.
#[test]
fn other_vendors_and_lost_gpus() {
    let mut others = devices();
    others[0].cleanable = false;
    let mut stage = Stage::with(Kept::default(), boot(1), others);
    stage.take(1, &[0]);
    stage.leave(1);
    assert!(stage.is_fit(0));
    stage.take(2, &[1]);
    let acts = stage.state(1, GpuState::Gone);
    assert_eq!(ended(&acts).len(), 1);
    let acts = stage.run(60);
    assert_eq!(scrubs(&acts), [""; 0]);
    // peers 82: back, tested, fit.
    stage.state(1, GpuState::Ready);
    stage.run(12);
    assert_eq!(stage.fit().len(), 8);
}

/// Between the moment in which a lease has a GPU no more and the one in which that is heard of here, nobody gets it.
#[test]
fn what_another_lease_has_or_had_is_worth_a_wait() {
    let mut stage = Stage::new();
    stage.take(1, &[0]);
    stage.take_slice(2, 1, 3);
    let whole = |number| crate::machine::Place::whole(&gpu(number));
    let waits = |stage: &Stage, number, place| {
        let waits = stage.health.not_left(lease(number), &[place]);
        waits.map(|unfit| unfit.soon)
    };
    assert_eq!(waits(&stage, 1, whole(0)), None);
    assert_eq!(waits(&stage, 9, whole(0)), Some(true));
    assert_eq!(waits(&stage, 9, whole(1)), Some(true));
    assert_eq!(waits(&stage, 9, slice(1, 3)), Some(true));
    assert_eq!(waits(&stage, 9, slice(1, 5)), None);
    assert_eq!(waits(&stage, 9, whole(2)), None);
    // An agent that starts again does not know whose it was.
    let kept = crate::health::Health::recovered(stage.health.kept(), boot(1));
    assert!(kept.not_left(lease(1), &[whole(0)]).is_some());
}

/// A display's process has another number after a boot: it is no lease's.
#[test]
fn what_runs_right_after_a_boot_is_the_machines_own() {
    let mut stage = Stage::new();
    let display = |pid| {
        Some(vec![host_nvml::sample::Process {
            pid,
            kind: host_nvml::sample::ProcessKind::Graphics,
            memory: None,
            gpu_instance: None,
            compute_instance: None,
        }])
    };
    let uses = |stage: &mut Stage, pid| {
        stage.reads(0, |reading| {
            reading.processes = display(pid);
            reading.memory_used = Some(Bytes(300 << 20));
        });
    };
    uses(&mut stage, 900);
    stage.run(4);
    stage.take(1, &[0]);
    let mut booted = Stage::new();
    booted.health = crate::health::Health::recovered(stage.health.kept(), boot(2));
    uses(&mut booted, 777);
    booted.hear(crate::input::Input::Machine(devices()));
    booted.hear(crate::input::Input::Tenants(Vec::new()));
    booted.run(12);
    assert!(booted.is_fit(0), "{:?}", booted.fitness(0));
}

/// An agent that starts hears of leases that ended before it knows its GPUs, and not every GPU can be cleaned.
#[test]
fn what_is_left_before_the_gpus_are_known_is_cleaned_if_it_can_be() {
    for cleanable in [true, false] {
        let mut stage = Stage::new();
        stage.take(1, &[0]);
        let mut health = crate::health::Health::recovered(stage.health.kept(), boot(1));
        let mut devices = devices();
        devices[0].cleanable = cleanable;
        for input in [
            crate::input::Input::Tenants(stage.tenants.clone()),
            crate::input::Input::Tenants(Vec::new()),
            crate::input::Input::Machine(devices),
            crate::input::Input::Tenants(Vec::new()),
        ] {
            health = health.decide(&input, Millis(1_000)).next;
        }
        let wanted = if cleanable {
            Fitness::Cleaning
        } else {
            Fitness::Fit
        };
        assert_eq!(health.fitness(&gpu(0), &gpu(0)), wanted);
    }
}
