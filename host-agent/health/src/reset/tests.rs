//! What stands in the way of a reset.

use super::*;
use crate::machine::{Device, Place, Tenancy};
use host_nvml::sample::ProcessKind;
use protocol::bounded::Text;
use protocol::ids::RenterId;
use protocol::machine::Vendor;

fn machine() -> Machine {
    Machine::new(
        [("A", 1), ("B", 1), ("C", 0)].map(|(gpu, link_group)| Device {
            gpu: Text::cut(gpu),
            vendor: Vendor::Nvidia,
            slot: Text::cut(gpu),
            link_group,
            switch: None,
            coherent: false,
            clock_max_mhz: 0,
            memory: 0,
            cleanable: true,
        }),
    )
}

fn leased(gpu: &str) -> Tenants {
    Tenants::new([Tenancy {
        lease: LeaseId::from_bytes([7; 16]),
        renter: RenterId::from_bytes([7; 32]),
        places: vec![Place::whole(&Text::cut(gpu))],
    }])
}

const READY: Facts<'_> = Facts {
    processes: Some(&[]),
    verdict: Some(RecoveryAction::Reset),
    answers: true,
    persistence: Some(false),
};

fn asked(tenants: &Tenants, facts: Facts<'_>) -> Result<Permit, Blocked> {
    permit(&machine(), tenants, &Text::cut("A"), facts)
}

#[test]
fn nothing_of_what_it_touches_may_be_leased() {
    assert!(asked(&Tenants::default(), READY).is_ok());
    for (gpu, is_blocked) in [("A", true), ("B", true), ("C", false)] {
        let result = asked(&leased(gpu), READY);
        assert_eq!(result.is_err(), is_blocked, "{gpu}");
        if let Err(blocked) = result {
            let on = Text::cut(gpu);
            let lease = LeaseId::from_bytes([7; 16]);
            assert_eq!(blocked, Blocked::Leased { lease, on });
        }
    }
}

#[test]
fn the_driver_has_to_want_it_or_to_have_no_word_for_it() {
    let of = |verdict| asked(&Tenants::default(), Facts { verdict, ..READY });
    for allowed in [
        None,
        Some(RecoveryAction::Reset),
        Some(RecoveryAction::DrainAndReset),
    ] {
        assert!(of(allowed).is_ok(), "{allowed:?}");
    }
    for other in [
        RecoveryAction::None,
        RecoveryAction::Reboot,
        RecoveryAction::DrainPeers,
        RecoveryAction::Other(5),
    ] {
        assert_eq!(of(Some(other)), Err(Blocked::Verdict(other)));
    }
}

/// peers 123: what holds the GPU is named. peers 126: the persistence daemon is told to let go first.
#[test]
fn who_holds_it_is_named_and_the_daemon_is_noted() {
    let process = |pid| Process {
        pid,
        kind: ProcessKind::Graphics,
        memory: None,
        gpu_instance: None,
        compute_instance: None,
    };
    let held = [process(41), process(42)];
    let blocked = asked(
        &Tenants::default(),
        Facts {
            processes: Some(&held),
            ..READY
        },
    );
    assert_eq!(blocked, Err(Blocked::Used { pids: vec![41, 42] }));
    assert_eq!(blocked.unwrap_err().to_string(), "processes use it: 41, 42");
    let unknown = asked(
        &Tenants::default(),
        Facts {
            processes: None,
            ..READY
        },
    );
    assert_eq!(unknown, Err(Blocked::UseUnknown));
    let silent = asked(
        &Tenants::default(),
        Facts {
            answers: false,
            ..READY
        },
    );
    assert_eq!(silent, Err(Blocked::Silent));
    let daemon = asked(
        &Tenants::default(),
        Facts {
            persistence: Some(true),
            ..READY
        },
    );
    assert!(daemon.unwrap().persistence);
}
