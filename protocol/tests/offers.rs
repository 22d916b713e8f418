//! In which portions an offer is sold, what each portion has of the machine, and what it costs.
#![cfg(test)]

#[path = "sample/mod.rs"]
mod sample;

use proptest::prelude::*;
use protocol::bounded::List;
use protocol::machine::Gpu;
use protocol::offer::{Chunks, Offer, Part};
use protocol::terms::{Need, Rates, compute_due};
use protocol::units::{BasisPoints, Bytes, MicroUsd, Millis, PricePerHour};
use sample::{cpu_offer, gpu_offer, list, pair_offer, text};

/// An offer of `gpus` equal GPUs.
fn offer(gpus: usize, chunks: Chunks, gpus_min: u16) -> Offer {
    let mut offer = pair_offer();
    let named = |number: usize| Gpu {
        uuid: text(&format!("GPU-{number}")),
        ..sample::rtx_4090()
    };
    offer.share.gpus = List::first((0..gpus).map(named));
    offer.share.resources = List::first((0..gpus).map(|number| text(&format!("GPU-{number}"))));
    offer.chunks = chunks;
    offer.gpus_min = gpus_min;
    offer
}

#[track_caller]
fn check_counts(offer: &Offer, wanted: &[u16]) {
    assert_eq!(offer.counts().collect::<Vec<_>>(), wanted);
    for gpus in 0..40 {
        assert_eq!(offer.is_sold_as(gpus), wanted.contains(&gpus), "{gpus}");
    }
}

#[test]
fn portions_are_any_number_powers_of_two_and_all_or_all_alone() {
    check_counts(&offer(6, Chunks::Any, 1), &[1, 2, 3, 4, 5, 6]);
    check_counts(&offer(6, Chunks::PowersOfTwo, 1), &[1, 2, 4, 6]);
    check_counts(&offer(6, Chunks::Whole, 1), &[6]);
    check_counts(&offer(8, Chunks::PowersOfTwo, 1), &[1, 2, 4, 8]);
    check_counts(&offer(1, Chunks::Any, 1), &[1]);
}

#[test]
fn no_portion_is_smaller_than_the_least_and_all_together_are_always_sold() {
    check_counts(&offer(6, Chunks::Any, 4), &[4, 5, 6]);
    check_counts(&offer(8, Chunks::PowersOfTwo, 3), &[4, 8]);
    check_counts(&offer(2, Chunks::Any, 7), &[2]);
}

#[test]
fn a_machine_without_a_gpu_is_sold_as_none() {
    for chunks in [Chunks::Any, Chunks::PowersOfTwo, Chunks::Whole] {
        let offer = Offer {
            chunks,
            ..cpu_offer()
        };
        check_counts(&offer, &[0]);
    }
}

#[test]
fn a_portion_has_its_part_of_the_machine_rounded_down() {
    // 63 999 / 2 = 31 999.5; 128 GB / 2; 64 GB / 2; 500 GB / 2.
    let half = (
        31_999,
        Bytes(64_000_000_000),
        Bytes(32_000_000_000),
        Bytes::from_gb(250),
    );
    assert_eq!(pair_offer().proportion(1), half);
    let whole = (
        63_999,
        Bytes(128_000_000_000),
        Bytes(64_000_000_000),
        Bytes::from_gb(500),
    );
    assert_eq!(pair_offer().proportion(2), whole);
    assert_eq!(cpu_offer().proportion(0).0, 32_000);
    assert_eq!(cpu_offer().proportion(0).3, Bytes::from_gb(500));
}

#[test]
fn compute_is_priced_for_each_gpu_and_the_disk_once() {
    let prices = pair_offer().prices;
    assert_eq!(prices.of_gpus(2).compute, PricePerHour(636_000));
    assert_eq!(prices.of_gpus(2).storage, prices.storage);
    assert_eq!(cpu_offer().prices.of_gpus(0).compute, PricePerHour(20_000));
    // 60 GB at $0.10 a GB-month are 8333 µ$ an hour; 3 GB up at $0.005 are 15 000 µ$.
    let need = Need {
        upload: Bytes::from_gb(3),
        ..Need::disk(Bytes::from_gb(60))
    };
    assert_eq!(
        prices.of_gpus(2).all_in_hour(need),
        MicroUsd(636_000 + 8_333 + 15_000)
    );
}

#[test]
fn a_part_has_its_gpus_in_the_order_of_the_offer() {
    let offer = offer(3, Chunks::Any, 1);
    let part = Part {
        resources: list(vec![text("GPU-0"), text("GPU-2")]),
        cpu_millicores: 8000,
        ram: Bytes(1 << 30),
        shared_memory: Bytes(1 << 29),
    };
    let share = offer.share.part(&part);
    let uuids: Vec<&str> = share.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
    assert_eq!(uuids, ["GPU-0", "GPU-2"]);
    assert_eq!((share.cpu_millicores, share.ram), (8000, Bytes(1 << 30)));
}

/// One change of an offer, and its name.
type Changed = (&'static str, fn(&mut Offer));

#[test]
fn terms_are_all_that_a_renter_relies_on_and_nothing_else() {
    let terms = |change: fn(&mut Offer)| {
        let mut offer = gpu_offer();
        change(&mut offer);
        offer.terms_digest().unwrap()
    };
    let same = terms(|_| ());
    let relied_on: [Changed; 7] = [
        ("price", |offer| offer.prices.compute.0 += 1),
        ("floor", |offer| offer.sales.floor = None),
        ("discount", |offer| {
            offer.sales.discount_max = Some(BasisPoints(1));
        }),
        ("notice", |offer| offer.limits.notice.0 += 1),
        ("end", |offer| offer.limits.until = None),
        ("chunks", |offer| offer.chunks = Chunks::Whole),
        ("least", |offer| offer.gpus_min = 2),
    ];
    for (name, change) in relied_on {
        assert_ne!(terms(change), same, "{name}");
    }
    let moving: [Changed; 2] = [
        ("free disk", |offer| offer.machine.disk_free.0 -= 1),
        ("sequence", |offer| offer.sequence += 1),
    ];
    for (name, change) in moving {
        assert_eq!(terms(change), same, "{name}");
    }
}

proptest! {
    #[test]
    fn portions_together_never_have_more_than_the_machine(
        gpus in 1_u16..=16,
        cpu in any::<u32>(),
        ram in any::<u64>(),
        cuts in prop::collection::vec(1_u16..8, 1..32),
    ) {
        let mut offer = offer(gpus.into(), Chunks::Any, 1);
        offer.share.cpu_millicores = cpu;
        offer.share.ram = Bytes(ram);
        let (mut left, mut cpus, mut rams) = (gpus, 0_u64, 0_u128);
        for cut in cuts {
            let part = cut.min(left);
            if part == 0 {
                break;
            }
            left -= part;
            let (cpu, ram, ..) = offer.proportion(part);
            cpus += u64::from(cpu);
            rams += u128::from(ram.0);
        }
        prop_assert!(cpus <= u64::from(cpu) && rams <= u128::from(ram));
    }

    #[test]
    fn a_flat_rate_is_due_like_a_price_and_steps_that_change_nothing_do_not_count(
        price in 0_u64..1_000_000_000,
        running in 0_u64..100_000_000,
        step in 0_u64..100_000_000,
    ) {
        let (price, running) = (PricePerHour(price), Millis(running));
        let flat = Rates::flat(price);
        prop_assert_eq!(flat.due(running), compute_due(price, running));
        prop_assert_eq!(flat.changed(Millis(step), price), Ok(flat));
    }

    #[test]
    fn what_is_due_never_falls_with_time_and_is_the_exact_sum_rounded_down_once(
        steps in prop::collection::vec((1_u64..10_000_000, 0_u64..10_000_000), 1..20),
        running in 0_u64..100_000_000,
    ) {
        let mut rates = Rates::flat(PricePerHour(7));
        let (mut at, mut exact) = (0, 0_u128);
        let mut price = 7;
        for (span, next) in steps {
            let end = (at + span).min(running.max(at));
            exact += u128::from(price) * u128::from(end - at);
            at += span;
            price = next;
            rates = rates.changed(Millis(at), PricePerHour(next)).unwrap();
        }
        exact += u128::from(price) * u128::from(running.saturating_sub(at));
        let due = rates.due(Millis(running));
        prop_assert_eq!(u128::try_from(due.0).unwrap(), exact / 3_600_000);
        prop_assert!(rates.due(Millis(running + 1)) >= due);
    }
}
