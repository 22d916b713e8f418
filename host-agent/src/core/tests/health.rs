//! Faults of GPUs in the rules about leases: what stops, what is billed, who waits and who is refused.

use super::moves::{follow, record, running};
use super::{START, World, at};
use crate::core::health::{as_fast_as_they_are, place};
use crate::core::lease::State;
use crate::core::leases::Leases;
use crate::core::reconcile::{Containers, Observed};
use crate::core::traffic::Crossed;
use crate::core::work::Work;
use gpu_health::health::Health;
use gpu_health::input::Input;
use gpu_health::machine::{Device, Place};
use gpu_health::unit::{Kept, KeptGpu, Until, Wait};
use host_nvml::news::GpuNews;
use host_nvml::sample::{ClockReasons, GpuSample, Reading};
use protocol::bounded::{List, Text};
use protocol::ids::{BootId, LeaseId};
use protocol::lease::{FaultClass, GpuFault, LeaseGoal, RefusalReason, StopReason, Want};
use protocol::machine::{Measure, Quantity, Vendor};
use protocol::offer::ResourceName;
use protocol::units::{Millis, Seconds, Timestamp};

const BOOT: BootId = BootId::from_bytes([1; 16]);

fn fault(resource: &ResourceName) -> GpuFault {
    GpuFault {
        resource: resource.clone(),
        xid: 79,
        class: FaultClass::Hardware,
        detail: Text::cut("off the bus"),
    }
}

fn seen_running() -> Observed {
    Observed::Running {
        started_at: Timestamp(START + 2_000),
        crossed: Crossed::default(),
    }
}

fn stop(leases: &mut Leases, wanted: &LeaseGoal) {
    let resource = leases.record(wanted.lease).unwrap().share.resources[0].clone();
    let faults = [(wanted.lease, fault(&resource))];
    let decision = leases.decide_faults(&faults, at(12));
    leases.apply(&decision);
}

#[test]
fn a_fault_ends_a_lease_at_once_and_keeps_its_disk() {
    let world = World::new();
    let (mut leases, wanted) = running(&world);
    stop(&mut leases, &wanted);
    let after = record(&leases, wanted.lease);
    let State::Stopped { reason, .. } = &after.state else {
        panic!("not stopped")
    };
    assert!(matches!(reason, StopReason::GpuFault(fault) if fault.xid == 79));
    // It ran from second 2 to second 12, and no longer however long its container takes to end.
    assert_eq!(after.running(), Millis(10_000));
    let containers = Containers::from([(wanted.lease, seen_running())]);
    super::moves::see(&mut leases, &containers, 20);
    assert_eq!(record(&leases, wanted.lease).running(), Millis(10_000));
    // Nothing is to be saved on a GPU that failed.
    let work = leases.work(&containers, at(20));
    assert_eq!(work[&wanted.lease], Work::Stop { grace: Seconds(0) });
    // A second fault of the same GPU changes nothing.
    let resource = record(&leases, wanted.lease).share.resources[0].clone();
    let again = leases.decide_faults(&[(wanted.lease, fault(&resource))], at(21));
    assert!(again.changes.is_empty());
    assert!(
        leases
            .decide_faults(&[(LeaseId::from_bytes([9; 16]), fault(&resource))], at(21))
            .changes
            .is_empty()
    );
}

#[test]
fn a_container_that_still_runs_still_has_its_gpu() {
    let world = World::new();
    let (mut leases, wanted) = running(&world);
    let places = |leases: &Leases, containers: &Containers| {
        let tenancies = leases.tenancies(containers, |_| None);
        tenancies
            .into_iter()
            .flat_map(|it| it.places)
            .collect::<Vec<Place>>()
    };
    let whole = place(&Text::cut("GPU-a"), None);
    assert_eq!(
        places(&leases, &Containers::new()),
        std::slice::from_ref(&whole)
    );
    stop(&mut leases, &wanted);
    let containers = Containers::from([(wanted.lease, seen_running())]);
    assert_eq!(places(&leases, &containers), [whole]);
    assert_eq!(places(&leases, &Containers::new()), []);
}

/// What waits for its owner is refused, what is being made ready is worth a wait, what is sound is taken.
#[test]
fn a_gpu_that_is_not_fit_is_refused_or_waited_for() {
    let mut world = World::new();
    let gpu: ResourceName = Text::cut("GPU-a");
    let waiting = KeptGpu {
        gpu: gpu.clone(),
        wait: Some(Wait {
            why: "it fell off the bus".to_owned(),
            xid: 79,
            until: Until::Checked,
        }),
        reset_wanted: None,
        idle: Default::default(),
    };
    let used = Kept {
        boot: BOOT.to_string(),
        used: vec![Place::whole(&gpu)],
        ..Kept::default()
    };
    let quarantined = Kept {
        boot: BOOT.to_string(),
        gpus: vec![waiting],
        ..Kept::default()
    };
    let wanted = world.lease_goal(0, 1, 0, Want::Run(1));
    let answer = |world: &World| {
        let mut leases = world.empty();
        follow(world, &mut leases, 1, std::slice::from_ref(&wanted));
        let refused = leases
            .refused()
            .get(&wanted.lease)
            .map(|(_, reason)| reason.clone());
        (
            leases.record(wanted.lease).is_some(),
            leases.waits(world.broker(0)),
            refused,
        )
    };
    assert_eq!(answer(&world), (true, false, None));
    world.health = Health::recovered(used, BOOT);
    assert_eq!(answer(&world), (false, true, None));
    world.health = Health::recovered(quarantined, BOOT);
    let (is_taken, waits, refused) = answer(&world);
    assert!(!is_taken && !waits);
    assert!(
        matches!(refused, Some(RefusalReason::GpuUnfit(why)) if why.contains("fell off the bus"))
    );
}

/// A GPU that was hot for more than a minute does not do what was measured of it.
#[test]
fn the_speed_of_a_gpu_that_is_slowed_down_is_not_offered() {
    let mut world = World::new();
    let measure = |quantity| Measure {
        quantity,
        value: 7,
        method: Text::cut("fma"),
        version: 1,
        at: Timestamp(START),
    };
    let all = [
        Quantity::Fp32,
        Quantity::GpuMemory,
        Quantity::DiskRead,
        Quantity::Upload,
    ];
    world.offers[0].offer.measures = List::first(all.map(measure));
    let device = Device {
        gpu: Text::cut("GPU-b"),
        vendor: Vendor::Nvidia,
        slot: Text::default(),
        link_group: 0,
        switch: None,
        coherent: false,
        clock_max_mhz: 2_000,
        memory: 1 << 30,
        cleanable: true,
    };
    let machine = Input::Machine(vec![device]);
    let mut health = Health::recovered(Kept::default(), BOOT)
        .decide(&machine, Millis(0))
        .next;
    let offered = |health: &Health| {
        let offers = as_fast_as_they_are(world.offers.clone(), health);
        let measures = offers[0].offer.measures.iter();
        measures.map(|measure| measure.quantity).collect::<Vec<_>>()
    };
    assert_eq!(offered(&health), all);
    for second in (0..64).step_by(2) {
        let hot = GpuNews::Sample(GpuSample {
            gpu: Text::cut("GPU-b"),
            at: Timestamp(0),
            reading: Reading {
                clock_reasons: Some(ClockReasons(ClockReasons::HARDWARE_THERMAL)),
                ..Reading::default()
            },
        });
        health = health
            .decide(&Input::News(hot), Millis(second * 1_000))
            .next;
    }
    assert_eq!(offered(&health), [Quantity::DiskRead, Quantity::Upload]);
}
