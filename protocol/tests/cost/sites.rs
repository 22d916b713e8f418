//! What an offer itself says of a site: prices of the portion, bounds, data sheet, the job's own rates.

use super::sample::{cpu_offer, gpu_offer, list, pair_offer, text};
use super::{job, mb, operations, pieces};
use protocol::cost::{Interruption, JobProfile, Rate, Site, Sites, Unfit, Work, estimate};
use protocol::units::{Bytes, MicroUsd, PricePerHour, Seconds, Timestamp};
use std::num::NonZeroU64;

/// Long before the end that the offers promise.
const NOW: Timestamp = Timestamp(1_790_000_000_000);

#[test]
fn both_gpus_of_a_pair_cost_twice_and_do_twice() {
    let job = JobProfile {
        disk: Bytes::from_gb(60),
        ..job(operations(1_000_000_000))
    };
    let offer = pair_offer();
    let site = |gpus| Site {
        hazard: Some(0.0),
        ..Sites::of(&job).at(&offer, gpus, offer.prices.compute, NOW)
    };
    let (one, two) = (site(1), site(2));
    assert_eq!(one.prices.compute, PricePerHour(318_000));
    assert_eq!(two.prices.compute, PricePerHour(636_000));
    let work = |site| estimate(&job, &site).unwrap().times.work;
    // 1e18 / (165.2e12 × 0.45) = 13 451.7 s.
    assert!((work(one) - 13_451.7).abs() < 0.1);
    assert!((work(two) - 13_451.7 / 2.0).abs() < 0.1);
    // Half of the machine's disk for one of two.
    assert_eq!(one.disk_max, Some(Bytes::from_gb(250)));
    assert_eq!(two.disk_max, Some(Bytes::from_gb(500)));
}

#[test]
fn the_price_is_that_of_the_contract_and_not_the_ask() {
    let offer = gpu_offer();
    let job = JobProfile {
        disk: Bytes::from_gb(10),
        ..job(operations(1))
    };
    let bid = Site {
        interruption: Some(Interruption {
            per_hour: None,
            notice: offer.limits.notice,
        }),
        ..Sites::of(&job).at(&offer, 1, PricePerHour(100_000), NOW)
    };
    // 20 s of start: floor(100 000 × 20 / 3600), and 10 GB for as long: floor(10 × 100 000 × 20 / 2 592 000).
    let costs = estimate(&job, &bid).unwrap().costs;
    assert_eq!((costs.compute, costs.storage), (MicroUsd(555), MicroUsd(7)));
}

#[test]
fn a_lease_ends_with_its_longest_time_or_the_promise_of_its_host() {
    let (job, offer) = (job(pieces(1)), gpu_offer());
    let longest = |now| {
        Sites::of(&job)
            .at(&offer, 1, PricePerHour(1), now)
            .duration_max
    };
    assert_eq!(longest(NOW), Some(Seconds(604_800)));
    let hour_before = Timestamp(1_798_761_600_000 - 3_600_000);
    assert_eq!(longest(hour_before), Some(Seconds(3600)));
    assert_eq!(longest(Timestamp(u64::MAX)), Some(Seconds(0)));
    let cpu = cpu_offer();
    assert_eq!(
        Sites::of(&job)
            .at(&cpu, 0, PricePerHour(1), NOW)
            .duration_max,
        None
    );
}

#[test]
fn a_machine_without_a_gpu_is_as_fast_as_the_job_says() {
    let offer = cpu_offer();
    let rated = JobProfile {
        work: Work {
            rates: list(vec![Rate {
                gpu: text("none"),
                milliunits_per_second: NonZeroU64::new(2500).unwrap(),
            }]),
            ..pieces(100)
        },
        image: mb(1),
        disk: Bytes(1),
        ..JobProfile::default()
    };
    let site = |job: &JobProfile| Sites::of(job).at(&offer, 0, offer.prices.compute, NOW);
    let found = estimate(&rated, &site(&rated)).unwrap();
    assert!((found.times.work - 40.0).abs() < 1e-9);
    let computing = JobProfile {
        disk: Bytes(1),
        ..job(operations(1))
    };
    let refused = estimate(&computing, &site(&computing));
    assert_eq!(refused, Err(Unfit::SpeedUnknown));
}

#[test]
fn a_rate_is_of_the_model_that_it_names_in_any_form() {
    let rate = |gpu: &str, milliunits| Rate {
        gpu: text(gpu),
        milliunits_per_second: NonZeroU64::new(milliunits).unwrap(),
    };
    let rates = list(vec![
        rate("RTX 4090 D", 1),
        rate("h100", 2),
        rate("4090", 54_340),
    ]);
    let job = JobProfile {
        work: Work { rates, ..pieces(1) },
        ..JobProfile::default()
    };
    let offer = gpu_offer();
    let site = Sites::of(&job).at(&offer, 1, PricePerHour(1), NOW);
    assert_eq!(site.rate, Some(54.34));
}
