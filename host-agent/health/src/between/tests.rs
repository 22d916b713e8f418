//! Each step between two leases, and each way in which it fails.

use super::*;
use host_nvml::sample::{EccCounters, ProcessKind, RemappedRows};
use protocol::bounded::Text;
use protocol::ids::BootId;

const BOOT: BootId = BootId::from_bytes([1; 16]);
const GIB: u64 = 1 << 30;

fn idle() -> Idle {
    Idle {
        memory: Some(Bytes(GIB)),
        processes: BTreeSet::from([900]),
    }
}

fn process(pid: u32, instance: Option<u32>) -> Process {
    Process {
        pid,
        kind: ProcessKind::Compute,
        memory: None,
        gpu_instance: instance,
        compute_instance: None,
    }
}

fn reading(processes: &[Process], used: u64) -> Reading {
    Reading {
        processes: Some(processes.to_vec()),
        memory_used: Some(Bytes(used)),
        ..Reading::default()
    }
}

fn errors(uncorrected: u64, failed: bool) -> Counters {
    Counters {
        boot: BOOT,
        ecc: Some(EccCounters {
            uncorrected,
            uncorrected_ever: uncorrected,
            ..EccCounters::default()
        }),
        remapped: Some(RemappedRows {
            failed,
            ..RemappedRows::default()
        }),
    }
}

fn whole() -> Cleaning {
    let place = Place::whole(&Text::cut("A"));
    Cleaning::begin(place, Some(errors(3, false)), Millis(100_000))
}

fn slice() -> Cleaning {
    let place = Place {
        resource: Text::cut("A/3g"),
        gpu: Text::cut("A"),
        instance: Some(3),
    };
    Cleaning::begin(place, Some(errors(3, false)), Millis(100_000))
}

fn scrubbed(written: u64, wrong: u64) -> Result<Scrubbed, Dirty> {
    Ok(Scrubbed {
        written: Bytes(written * GIB),
        memory: Bytes(80 * GIB),
        wrong,
    })
}

/// A cleaning that is empty at 103 s and scrubbed from 104 s to 124 s.
fn compared(cleaning: &Cleaning, counters: Counters) -> Step {
    let empty = reading(&[process(900, None)], GIB);
    let (next, step) = cleaning.read(&empty, counters, &idle(), Millis(103_000));
    assert_eq!(step, Step::IsEmpty);
    assert!(next.is_empty());
    let next = next.scrubbing(Millis(104_000));
    let (next, step) = next.scrubbed(&scrubbed(79, 0), Millis(124_000));
    assert_eq!(step, Step::Nothing);
    next.read(&empty, counters, &idle(), Millis(125_000)).1
}

#[test]
fn the_whole_way_and_how_long_it_took() {
    let Step::Done { took, added } = compared(&whole(), errors(3, false)) else {
        panic!("it is clean");
    };
    assert_eq!(took.emptying, Millis(3_000));
    assert_eq!(took.scrubbing, Millis(20_000));
    assert_eq!(took.all, Millis(25_000));
    assert_eq!(added, Added::default());
}

/// peers 77: memory and processes that outlive a container are seen before it is leased again.
#[test]
fn a_process_has_ten_seconds_to_go() {
    let held = reading(&[process(900, None), process(31, None)], GIB);
    let (next, step) = whole().read(&held, errors(3, false), &idle(), Millis(110_000));
    assert_eq!(step, Step::Nothing);
    let (_, step) = next.read(&held, errors(3, false), &idle(), Millis(110_001));
    assert_eq!(step, Step::Dirty(Dirty::Processes { pids: vec![31] }));
    // The machine's own was there before.
    let own = reading(&[process(900, None)], GIB);
    let (_, step) = next.read(&own, errors(3, false), &idle(), Millis(110_001));
    assert_eq!(step, Step::IsEmpty);
    let unknown = Reading::default();
    let (_, step) = next.read(&unknown, errors(3, false), &idle(), Millis(110_001));
    assert_eq!(step, Step::Dirty(Dirty::UseUnknown));
}

/// Row 44 of the threats.
#[test]
fn memory_above_what_was_in_use_before_is_not_clean() {
    for (used, wanted) in [
        (GIB + (64 << 20), Step::IsEmpty),
        (
            GIB + (64 << 20) + 1,
            Step::Dirty(Dirty::Memory {
                used: Bytes(GIB + (64 << 20) + 1),
                idle: Bytes(GIB),
            }),
        ),
    ] {
        let held = reading(&[], used);
        let (_, step) = whole().read(&held, errors(3, false), &idle(), Millis(120_000));
        assert_eq!(step, wanted);
    }
}

#[test]
fn a_slice_has_its_own_processes_and_no_memory_of_its_own() {
    let neighbours = reading(&[process(31, Some(5))], 60 * GIB);
    let (_, step) = slice().read(&neighbours, errors(3, false), &idle(), Millis(101_000));
    assert_eq!(step, Step::IsEmpty);
    let held = reading(&[process(31, Some(3))], 60 * GIB);
    let (_, step) = slice().read(&held, errors(3, false), &idle(), Millis(120_000));
    assert_eq!(step, Step::Dirty(Dirty::Processes { pids: vec![31] }));
    // A neighbour's memory error is not this slice's.
    assert!(matches!(
        compared(&slice(), errors(4, false)),
        Step::Done { .. }
    ));
}

#[test]
fn a_scrub_has_to_reach_all_of_it_and_to_read_what_it_wrote() {
    let at = whole().scrubbing(Millis(104_000));
    let after = |result| at.scrubbed(&result, Millis(105_000)).1;
    assert_eq!(after(scrubbed(72, 0)), Step::Nothing);
    assert_eq!(
        after(scrubbed(71, 0)),
        Step::Dirty(Dirty::Short {
            written: Bytes(71 * GIB),
            memory: Bytes(80 * GIB),
        })
    );
    assert_eq!(
        after(scrubbed(79, 8)),
        Step::Dirty(Dirty::Mismatch { wrong: 8 })
    );
    assert_eq!(Dirty::Mismatch { wrong: 8 }.until(), Until::Checked);
    assert_eq!(
        after(Err(Dirty::DriverKeeps)),
        Step::Dirty(Dirty::DriverKeeps)
    );
    assert_eq!(Dirty::DriverKeeps.until(), Until::Tested);
    // An answer that nobody waits for changes nothing.
    assert_eq!(
        whole().scrubbed(&scrubbed(79, 0), Millis(1)),
        (whole(), Step::Nothing)
    );
}

#[test]
fn new_errors_during_the_lease_are_found() {
    assert_eq!(
        compared(&whole(), errors(5, false)),
        Step::Dirty(Dirty::Errors(2))
    );
    assert_eq!(
        compared(&whole(), errors(3, true)),
        Step::Dirty(Dirty::Remap)
    );
}

/// Row 44 of the threats.
#[test]
fn a_driver_that_was_told_not_to_clear_memory_is_found() {
    let params = |dwords: &str| {
        format!("ResmanDebugLevel: 4294967295\nRegistryDwords: \"{dwords}\"\nRmMsg: \"\"\n")
    };
    assert!(driver_clears(&params("")));
    assert!(driver_clears(&params("PeerMappingOverride=1")));
    assert!(driver_clears(""));
    assert!(!driver_clears(&params(
        "PeerMappingOverride=1;RMDisableScrubOnFree=0x1"
    )));
    assert!(!driver_clears(&params("rmdisablescrubonfree=1")));
    assert!(!driver_clears(
        "RegistryDwordsPerDevice: \"pci=0000:05:00.0;RMDisableScrubOnFree=1\"\n"
    ));
}
