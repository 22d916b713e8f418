//! Listings of a machine with three GPUs of one model and one of another.

use super::*;
use crate::core::tests::{gpu, machine};
use crate::wishes::ChunksWord;
use protocol::bounded::Text;
use protocol::machine::Gpu;
use protocol::units::BasisPoints;

const NOW: Timestamp = Timestamp(1_796_000_000_000);
const HOUR: u64 = 3600;

fn mixed() -> Machine {
    let other = Gpu {
        model: Text::cut("NVIDIA Other"),
        ..gpu("GPU-d")
    };
    machine(&[gpu("GPU-a"), gpu("GPU-b"), gpu("GPU-c"), other])
}

fn resolve(wishes: &Wishes, before: Option<&Listing>) -> Result<Listing, String> {
    let machine = mixed();
    listing(
        wishes,
        Ground {
            machine: &machine,
            divisibles: &std::collections::BTreeMap::new(),
            disk_reserve: Bytes::from_gb(10),
            data_root: "/var/lib/docker",
            before,
            now: NOW,
        },
    )
}

fn priced() -> Wishes {
    Wishes {
        price: Some(PricePerHour(350_000)),
        ..Wishes::default()
    }
}

#[track_caller]
fn check_refused(wishes: Wishes, words: &str) {
    let problem = resolve(&wishes, None).unwrap_err();
    assert!(problem.contains(words), "{problem}");
}

#[test]
fn a_price_is_all_that_must_be_said() {
    let listed = resolve(&priced(), None).unwrap();
    assert_eq!(listed.resources.len(), 4);
    assert_eq!((listed.chunks, listed.gpus_min), (Chunks::Any, 1));
    assert_eq!(listed.sales, Sales::default());
    assert_eq!(listed.prices.storage, PricePerGbMonth(100_000));
    let limits = listed.limits;
    assert_eq!(
        (limits.notice, limits.duration_min),
        (Seconds(120), Seconds(0))
    );
    assert_eq!((limits.duration_max, limits.until), (None, None));
    // 500 GB are free and 10 kept: four fifths of 490, in whole GB.
    assert_eq!(limits.disk_max, Bytes::from_gb(392));
    // 16 GiB less a sixteenth.
    assert_eq!(
        (listed.cpu_millicores, listed.ram),
        (8_000, Bytes(15 << 30))
    );
    check_refused(Wishes::default(), "--price");
}

#[test]
fn what_is_not_said_stays_as_it_was_listed_and_none_takes_it_off() {
    let first = Wishes {
        floor: Some(Limit::At(PricePerHour(100_000))),
        max_discount: Some(Limit::At(BasisPoints(4000))),
        chunks: Some(ChunksWord::PowersOfTwo),
        min_gpus: Some(2),
        gpus: Some(GpuChoice::Some(vec!["0".to_owned(), "GPU-c".to_owned()])),
        min_duration: Some(Seconds(HOUR)),
        max_duration: Some(Limit::At(Seconds(100 * HOUR))),
        until: Some(Limit::At(Timestamp(NOW.0 + 86_400_000 * 30))),
        notice: Some(Seconds(60)),
        upload_price: Some(PricePerGb(5_000)),
        cpus: Some(6),
        ram: Some(10),
        disk_max: Some(50),
        ..priced()
    };
    let before = resolve(&first, None).unwrap();
    let dearer = Wishes {
        price: Some(PricePerHour(400_000)),
        ..Wishes::default()
    };
    let mut wanted = before.clone();
    wanted.prices.compute = PricePerHour(400_000);
    assert_eq!(resolve(&dearer, Some(&before)), Ok(wanted));
    let nothing_more = Wishes {
        floor: Some(Limit::None),
        max_discount: Some(Limit::None),
        max_duration: Some(Limit::None),
        until: Some(Limit::None),
        gpus: Some(GpuChoice::All),
        ..Wishes::default()
    };
    let after = resolve(&nothing_more, Some(&before)).unwrap();
    assert_eq!(after.sales, Sales::default());
    assert_eq!(
        (after.limits.until, after.limits.duration_max),
        (None, None)
    );
    assert_eq!(after.resources.len(), 4);
    assert_eq!(after.limits.notice, Seconds(60));
}

#[test]
fn gpus_are_chosen_by_number_or_by_the_beginning_of_their_name() {
    let choose = |names: &[&str]| Wishes {
        gpus: Some(GpuChoice::Some(
            names.iter().map(|name| (*name).to_owned()).collect(),
        )),
        ..priced()
    };
    let listed = resolve(&choose(&["3", "GPU-a"]), None).unwrap();
    let names: Vec<&str> = listed.resources.iter().map(ResourceName::as_str).collect();
    assert_eq!(names, ["GPU-d", "GPU-a"]);
    check_refused(choose(&["4"]), "has 4 GPUs, counted from 0");
    check_refused(choose(&["GPU-x"]), "no GPU of this machine begins so");
    check_refused(choose(&["GPU-"]), "more than one GPU begins so");
    check_refused(choose(&["0", "GPU-a"]), "twice");
    let without = Wishes {
        gpus: Some(GpuChoice::None),
        ..priced()
    };
    assert_eq!(
        resolve(&without, None).unwrap().resources[0].as_str(),
        "machine"
    );
}

#[test]
fn what_makes_no_sense_is_refused_by_the_name_of_its_flag() {
    let floor = |floor| Wishes {
        floor: Some(Limit::At(PricePerHour(floor))),
        ..priced()
    };
    check_refused(floor(0), "--floor 0");
    check_refused(floor(350_001), "--floor 0.350001");
    assert!(resolve(&floor(350_000), None).is_ok());
    let least = |least| Wishes {
        min_gpus: Some(least),
        ..priced()
    };
    check_refused(least(4), "--min-gpus 4: 3 of one model");
    assert!(resolve(&least(3), None).is_ok());
    check_refused(
        Wishes {
            min_duration: Some(Seconds(2 * HOUR)),
            max_duration: Some(Limit::At(Seconds(HOUR))),
            ..priced()
        },
        "--min-duration 2h 00m is longer than --max-duration 1h 00m",
    );
    check_refused(
        Wishes {
            max_duration: Some(Limit::At(Seconds(0))),
            ..priced()
        },
        "--max-duration",
    );
    check_refused(
        Wishes {
            cpus: Some(9),
            ..priced()
        },
        "--cpus 9: this machine has 8",
    );
    check_refused(
        Wishes {
            ram: Some(18),
            ..priced()
        },
        "--ram 18",
    );
    check_refused(
        Wishes {
            disk_max: Some(1001),
            ..priced()
        },
        "--disk-max",
    );
}

#[test]
fn a_promise_is_neither_over_nor_absurd_nor_shorter_than_a_lease() {
    let until = |seconds: u64| Wishes {
        until: Some(Limit::At(Timestamp(NOW.0 + seconds * 1000))),
        ..priced()
    };
    check_refused(until(0), "--until");
    check_refused(until(HOUR - 1), "--until");
    assert!(resolve(&until(HOUR), None).is_ok());
    check_refused(until(11 * 366 * 86_400), "ten years");
    let past = Wishes {
        until: Some(Limit::At(Timestamp(1))),
        ..priced()
    };
    check_refused(past, "--until");
    let short = Wishes {
        min_duration: Some(Seconds(2 * HOUR)),
        ..until(HOUR)
    };
    check_refused(short, "--min-duration");
    // A promise that was made earlier and is over must be renewed before anything else is said.
    let mut before = resolve(&priced(), None).unwrap();
    before.limits.until = Some(Timestamp(NOW.0 - 1));
    let problem = resolve(&priced(), Some(&before)).unwrap_err();
    assert!(problem.contains("--until none"), "{problem}");
}
