//! What an estimate assumes where nothing was measured, and that it says so.

use super::{job, mb, operations, pieces, same, site};
use protocol::cost::{
    Assumption, Card, Fraction, Interruption, JobProfile, Precision, Site, Unfit, Work, estimate,
    rank_key,
};
use protocol::units::{Bytes, Seconds};
use std::num::NonZeroU64;

/// A job that makes use of every fact.
fn demanding() -> JobProfile {
    JobProfile {
        image: mb(8000),
        data: mb(10_000),
        load: mb(10_000),
        upload: mb(2000),
        checkpoint: Some(mb(20_000)),
        ..job(Work {
            gigaflops: NonZeroU64::new(2_400_000_000),
            memory_megabytes: NonZeroU64::new(1),
            precision: Precision::Quarter,
            ..Work::default()
        })
    }
}

fn card() -> Card {
    Card {
        memory: 1e12,
        single: 20e12,
        half: 300e12,
        quarter: 0.0,
    }
}

fn assumed(job: &JobProfile, site: &Site) -> Vec<Assumption> {
    estimate(job, site).unwrap().assumed.iter().collect()
}

#[test]
fn an_offer_of_which_nothing_is_known_is_estimated_with_every_assumption() {
    let unknown = Site {
        prices: site(400_000).prices,
        gpus: 2,
        card: Some(card()),
        interruption: Some(Interruption {
            per_hour: None,
            notice: Seconds(120),
        }),
        ..Site::default()
    };
    assert_eq!(assumed(&demanding(), &unknown), Assumption::ALL);
    // 20 s, 8 GB and 10 GB at 125 MB/s, 8 GB at 200 MB/s, 10 GB at 2 GB/s.
    let times = estimate(&demanding(), &unknown).unwrap().times;
    same(times.setup(), 20.0 + 64.0 + 40.0 + 80.0 + 5.0, 6);
    // Two of 300 TFLOP/s, 45 % of them.
    same(times.work, 2.4e18 / (2.0 * 300e12 * 0.45), 6);
    same(times.upload, 16.0, 6);
}

#[test]
fn an_offer_of_which_all_is_known_is_estimated_without_any() {
    let measured = Site {
        sustained_operations: Some(100e12),
        sustained_memory: Some(600e9),
        hazard: Some(1.0 / 500.0),
        ..site(400_000)
    };
    assert_eq!(assumed(&demanding(), &measured), []);
    let times = estimate(&demanding(), &measured).unwrap().times;
    same(times.work, 24_000.0, 6);
}

#[test]
fn what_a_job_has_no_use_for_is_not_assumed() {
    // No image, no data, no load, no checkpoint, no result: its start alone, and that the host may fail.
    let bare = Site {
        rate: Some(1.0),
        ..Site::default()
    };
    let wanted = [Assumption::Boot, Assumption::Hazard];
    assert_eq!(assumed(&job(pieces(10)), &bare), wanted);
}

#[test]
fn efficiencies_that_the_job_gives_take_the_place_of_the_assumed_ones() {
    let half = Fraction::new(5000).unwrap();
    let job = JobProfile {
        compute_efficiency: Some(half),
        memory_efficiency: Some(half),
        ..job(operations(150_000))
    };
    let site = Site {
        card: Some(card()),
        ..site(400_000)
    };
    assert_eq!(assumed(&job, &site), [Assumption::DataSheet]);
    same(estimate(&job, &site).unwrap().times.work, 1.0, 6);
}

#[test]
fn measurements_that_are_no_numbers_are_not_known() {
    for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0] {
        let site = Site {
            card: Some(card()),
            boot: Some(wrong),
            download: Some(wrong),
            upload: Some(wrong),
            disk: Some(wrong),
            unpack: Some(wrong),
            sustained_operations: Some(wrong),
            sustained_memory: Some(wrong),
            rate: Some(wrong),
            // None at all is a hazard that can be known.
            hazard: Some(if wrong == 0.0 { -1.0 } else { wrong }),
            ..Site::default()
        };
        let wanted: Vec<_> = Assumption::ALL
            .into_iter()
            .filter(|one| !matches!(one, Assumption::Scaling | Assumption::Interruptions))
            .collect();
        assert_eq!(
            assumed(
                &demanding(),
                &Site {
                    has_image: None,
                    ..site
                }
            ),
            wanted,
            "{wrong}"
        );
    }
}

#[test]
fn work_that_nobody_has_a_speed_for_is_not_estimated() {
    let unknown = site(400_000);
    for work in [operations(1), pieces(1)] {
        assert_eq!(
            estimate(&job(work.clone()), &unknown),
            Err(Unfit::SpeedUnknown)
        );
        assert_eq!(rank_key(&job(work), &unknown), u64::MAX);
    }
}

#[test]
fn what_cannot_be_finished_is_refused_with_the_reason() {
    let site = Site {
        rate: Some(1.0),
        duration_max: Some(Seconds(3600)),
        disk_max: Some(Bytes::from_gb(150)),
        ..site(400_000)
    };
    // 20 s of start.
    assert!(estimate(&job(pieces(3580)), &site).is_ok());
    let too_long = Unfit::TooLong {
        needed: Seconds(3601),
        allowed: Seconds(3600),
    };
    assert_eq!(estimate(&job(pieces(3581)), &site), Err(too_long));
    let large = JobProfile {
        disk: Bytes::from_gb(151),
        ..job(pieces(1))
    };
    let too_large = Unfit::DiskTooLarge {
        needed: Bytes::from_gb(151),
        allowed: Bytes::from_gb(150),
    };
    assert_eq!(estimate(&large, &site), Err(too_large));
    // Four hundred hours without a checkpoint where a host fails every hour: e^400 hours.
    let hopeless = Site {
        hazard: Some(1.0),
        duration_max: None,
        ..site
    };
    assert_eq!(
        estimate(&job(pieces(1_440_000)), &hopeless),
        Err(Unfit::NeverDone)
    );
}
