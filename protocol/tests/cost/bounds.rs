//! A profile crosses the wire in one form, and none that can be sent makes the sum go wrong.

use super::{job, pieces, site};
use proptest::prelude::*;
use protocol::bounded::{List, Text};
use protocol::codec;
use protocol::cost::{
    Fraction, FractionError, Interruption, JobProfile, Precision, Rate, Site, Work, card_of,
    estimate, rank_key,
};
use protocol::filter::ModelName;
use protocol::units::{Bytes, Seconds};
use std::num::{NonZeroU16, NonZeroU64};

fn full() -> JobProfile {
    JobProfile {
        work: Work {
            gigaflops: NonZeroU64::new(7),
            precision: Precision::Half,
            memory_megabytes: None,
            units: NonZeroU64::new(9),
            rates: List::first([Rate {
                gpu: Text::cut("H100"),
                milliunits_per_second: NonZeroU64::MIN,
            }]),
        },
        gpus_max: NonZeroU16::new(2),
        scaling: Fraction::new(9000).ok(),
        checkpoint: Some(Bytes(3)),
        ..job(Work::default())
    }
}

#[test]
fn a_profile_is_encoded_field_by_field_in_order() {
    let hexadecimal: String = codec::encode(&full())
        .unwrap()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let wanted = [
        "010700000000000000", // 7 thousand million operations
        "00000000",           // 16 bits
        "00",                 // no bytes
        "010900000000000000", // 9 pieces
        "0100000000000000",   // one rate:
        "0400000000000000",
        "48313030",         // H100
        "0100000000000000", // a thousandth a second
        "010200",           // 2 GPUs
        "012823",           // 9000 ten-thousandths
        "0000",             // both efficiencies as assumed
        "0000000000000000",
        "0000000000000000",   // no image, no data
        "0000000000000000",   // nothing to load
        "010300000000000000", // a checkpoint of 3 bytes
        "0000000000000000",   // no result
        "005cb2ec22000000",   // 150 GB of disk
    ];
    assert_eq!(hexadecimal, wanted.concat());
}

#[test]
fn a_profile_comes_back_as_it_was_sent() {
    let bytes = codec::encode(&full()).unwrap();
    assert_eq!(codec::decode::<JobProfile>(&bytes), Ok(full()));
    let empty = JobProfile::default();
    let bytes = codec::encode(&empty).unwrap();
    assert_eq!(codec::decode::<JobProfile>(&bytes), Ok(empty));
}

#[test]
fn parts_of_a_whole_are_more_than_nothing_and_at_most_all() {
    assert!(Fraction::new(1).is_ok() && Fraction::new(10_000).is_ok());
    for wrong in [0, 10_001, u16::MAX] {
        assert!(Fraction::new(wrong).is_err());
        let bytes = codec::encode(&wrong).unwrap();
        assert!(codec::decode::<Fraction>(&bytes).is_err(), "{wrong}");
    }
    let said = FractionError::to_string(&Fraction::new(0).unwrap_err());
    assert_eq!(
        said,
        "0 ten-thousandths are no part of a whole: 1 to 10000 are"
    );
}

#[test]
fn nothing_of_something_and_too_many_rates_cannot_be_sent() {
    let bytes = codec::encode(&Some(0_u64)).unwrap();
    assert!(codec::decode::<Option<NonZeroU64>>(&bytes).is_err());
    let rate = full().work.rates[0].clone();
    let seventeen = codec::encode(&vec![rate; 17]).unwrap();
    assert!(codec::decode::<List<Rate, 16>>(&seventeen).is_err());
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        any::<u64>(),
        0..10_000_000_000_u64
    ]
}

fn profiles() -> impl Strategy<Value = JobProfile> {
    let work = (number(), number(), number());
    let sizes = (number(), number(), number(), number(), number(), number());
    (work, sizes, 0..10_001_u16).prop_map(|((flops, memory, units), sizes, scaling)| JobProfile {
        work: Work {
            gigaflops: NonZeroU64::new(flops),
            precision: Precision::Quarter,
            memory_megabytes: NonZeroU64::new(memory),
            units: NonZeroU64::new(units),
            rates: List::default(),
        },
        gpus_max: None,
        scaling: Fraction::new(scaling).ok(),
        compute_efficiency: Fraction::new(scaling).ok(),
        memory_efficiency: None,
        image: Bytes(sizes.0),
        data: Bytes(sizes.1),
        load: Bytes(sizes.2),
        checkpoint: Some(Bytes(sizes.3)).filter(|size| size.0 % 3 > 0),
        upload: Bytes(sizes.4),
        disk: Bytes(sizes.5),
    })
}

fn measure() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        Just(None),
        any::<f64>().prop_map(Some),
        (0.0..1e12).prop_map(Some)
    ]
}

fn sites() -> impl Strategy<Value = Site> {
    let speeds = (measure(), measure(), measure(), measure());
    (speeds, measure(), measure(), number(), any::<u16>()).prop_map(
        |((download, disk, boot, rate), hazard, per_hour, price, gpus)| {
            let mut site = site(price % 1_000_000_000_001);
            site.card = card_of(&ModelName::asked("RTX 4090"));
            site.interruption = per_hour.map(|_| Interruption {
                per_hour,
                notice: Seconds(120),
            });
            Site {
                gpus,
                download,
                disk,
                boot,
                rate,
                hazard,
                ..site
            }
        },
    )
}

proptest! {
    #[test]
    fn every_profile_has_an_estimate_that_is_a_number_or_a_reason(
        job in profiles(), site in sites()
    ) {
        let key = rank_key(&job, &site);
        match estimate(&job, &site) {
            Err(_) => prop_assert_eq!(key, u64::MAX),
            Ok(found) => {
                let times = found.times;
                let parts = [
                    times.boot, times.image, times.unpack, times.data, times.load, times.work,
                    times.checkpoints, times.lost, times.upload,
                ];
                prop_assert!(parts.iter().all(|part| part.is_finite() && *part >= 0.0), "{times:?}");
                prop_assert_eq!(i64::try_from(key).ok(), Some(found.costs.total().0));
            }
        }
    }

    #[test]
    fn a_dearer_hour_never_makes_a_cheaper_job(price in 0..1_000_000_000_u64, more in 0..1_000_000_u64) {
        let job = job(pieces(7200));
        let at = |price| rank_key(&job, &Site { rate: Some(1.0), hazard: Some(0.01), ..site(price) });
        prop_assert!(at(price) <= at(price + more));
    }

    #[test]
    fn a_host_that_fails_more_often_takes_longer(hazard in 0.0..0.1_f64, more in 0.0..0.1_f64) {
        let job = JobProfile { checkpoint: Some(Bytes::from_gb(20)), ..job(pieces(36_000)) };
        let at = |hazard| {
            let site = Site { rate: Some(1.0), hazard: Some(hazard), ..site(1) };
            estimate(&job, &site).map_or(f64::MAX, |found| found.times.total())
        };
        // Whole numbers of checkpoints make small steps.
        prop_assert!(at(hazard) <= at(hazard + more) * 1.01);
    }
}
