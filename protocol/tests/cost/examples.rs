//! The worked examples, each row to the digits given. The vectors give what comes out; sizes and speeds that
//! go in stand here.

use super::{job, mb, number, operations, pieces, same, site, vectors};
use protocol::bounded::{List, Text};
use protocol::cost::{
    Card, Interruption, JobProfile, Rate, Site, Work, card_of, estimate, rank_key,
};
use protocol::filter::ModelName;
use protocol::units::{Bytes, Seconds};
use std::num::NonZeroU64;

/// Checks an example's rows, and which of them is the cheapest by the hour and by the job.
#[track_caller]
fn check(name: &str, job: &JobProfile, sites: &[Site]) {
    let vectors = vectors();
    let scenarios = vectors["scenarios"].as_array().unwrap();
    let begins = |scenario: &&serde_json::Value| {
        scenario["name"]
            .as_str()
            .is_some_and(|full| full.starts_with(&format!("{name} ")))
    };
    let scenario = scenarios.iter().find(begins).unwrap();
    let rows = scenario["rows"].as_array().unwrap();
    assert_eq!(rows.len(), sites.len());
    for (row, site) in rows.iter().zip(sites) {
        let found = estimate(job, site).unwrap();
        same(found.times.setup(), number(row, "setup_s"), 1);
        same(found.times.work, number(row, "work_s"), 1);
        same(found.times.run(), number(row, "run_s"), 1);
        same(found.times.upload, number(row, "upload_s"), 1);
        same(found.times.total(), number(row, "total_s"), 1);
        let micro = u32::try_from(found.costs.total().0).unwrap();
        same(f64::from(micro) / 1e6, number(row, "usd"), 4);
        let hourly = u32::try_from(site.prices.compute.0).unwrap();
        same(f64::from(hourly) / 1e6, number(row, "usd_h"), 2);
        assert_eq!(rank_key(job, site), u64::from(micro));
    }
    let cheapest = |key: &dyn Fn(&Site) -> u64| {
        let best = (0..sites.len()).min_by_key(|index| key(&sites[*index]));
        &rows[best.unwrap()]["offer"]
    };
    let by_hour = cheapest(&|site| site.prices.compute.0);
    let by_job = cheapest(&|site| rank_key(job, site));
    assert_eq!(by_hour, &scenario["cheapest_hour"], "{name}");
    assert_eq!(by_job, &scenario["cheapest_job"], "{name}");
    assert_eq!(by_hour != by_job, scenario["reversal"].as_bool().unwrap());
}

/// The data sheet of a model with so much memory, in GiB.
fn sheet(model: &str, gigabytes: u64) -> Option<Card> {
    card_of(&ModelName::reported(model, Bytes(gigabytes << 30)))
}

#[test]
fn e1_the_fastest_card_has_the_cheapest_fine_tune() {
    let job = JobProfile {
        image: mb(20_000),
        data: mb(500),
        load: mb(16_000),
        upload: mb(400),
        ..job(operations(2_400_000_000))
    };
    let cards = [
        (680_000, sheet("NVIDIA GeForce RTX 4090", 24)),
        (1_170_000, sheet("NVIDIA A100-SXM4-80GB", 80)),
        (2_250_000, sheet("NVIDIA H100 80GB HBM3", 80)),
    ];
    let sites = cards.map(|(price, card)| Site {
        card,
        ..site(price)
    });
    check("E1", &job, &sites);
}

/// Two cards with rates that were measured, in thousandths of a token a second.
fn measured(work: Work, rates: [(&str, u64); 2]) -> JobProfile {
    let rate = |(gpu, milliunits): (&str, u64)| Rate {
        gpu: Text::new(gpu).unwrap(),
        milliunits_per_second: NonZeroU64::new(milliunits).unwrap(),
    };
    JobProfile {
        work: Work {
            rates: List::new(rates.map(rate).to_vec()).unwrap(),
            ..work
        },
        image: mb(4000),
        load: mb(16_000),
        upload: mb(20),
        ..job(Work::default())
    }
}

/// The two cards at these prices, rated by the job.
fn rated(job: &JobProfile, cards: [(&str, u64); 2]) -> [Site; 2] {
    cards.map(|(model, price)| Site {
        rate: job.rate_on(&ModelName::reported(model, Bytes(24 << 30))),
        ..site(price)
    })
}

#[test]
fn e2_decoding_is_cheapest_on_the_cheaper_card() {
    let job = measured(
        pieces(1_000_000),
        [("RTX_3090", 46_510), ("RTX_4090", 54_340)],
    );
    let cards = [
        ("NVIDIA GeForce RTX 3090", 250_000),
        ("NVIDIA GeForce RTX 4090", 680_000),
    ];
    check("E2", &job, &rated(&job, cards));
}

#[test]
fn e3_reading_prompts_is_cheapest_on_the_faster_card() {
    let job = measured(
        pieces(2_000_000_000),
        [("3090", 4_239_640), ("4090", 9_056_260)],
    );
    let cards = [
        ("NVIDIA GeForce RTX 3090", 250_000),
        ("NVIDIA GeForce RTX 4090", 450_000),
    ];
    check("E3", &job, &rated(&job, cards));
}

#[test]
fn e4_a_slow_link_eats_the_discount() {
    let job = JobProfile {
        image: mb(15_000),
        data: mb(60_000),
        load: mb(10_000),
        upload: mb(2000),
        ..job(operations(200_000_000))
    };
    // The example counts on 71 TFLOP/s of a 3090, whose data sheet says 71.2.
    let card = sheet("NVIDIA GeForce RTX 3090", 24).map(|card| Card {
        half: 71e12,
        ..card
    });
    let slow = Site {
        card,
        download: Some(12.5e6),
        upload: Some(2.5e6),
        ..site(200_000)
    };
    let fast = Site {
        card,
        download: Some(250e6),
        ..site(270_000)
    };
    check("E4", &job, &[slow, fast]);
}

/// Ten hours of work, one piece a second.
fn ten_hours(checkpoint: Option<Bytes>) -> JobProfile {
    JobProfile {
        image: mb(8000),
        data: mb(10_000),
        load: mb(10_000),
        upload: mb(2000),
        checkpoint,
        ..job(pieces(36_000))
    }
}

/// A host that does one piece a second and fails once in so many hours.
fn failing(price: u64, hours: f64) -> Site {
    Site {
        rate: Some(1.0),
        hazard: Some(1.0 / hours),
        ..site(price)
    }
}

#[test]
fn e6_work_that_is_lost_makes_the_cheap_host_dear() {
    let sites = [failing(400_000, 12.0), failing(550_000, 500.0)];
    check("E6", &ten_hours(None), &sites);
}

#[test]
fn e7_checkpoints_make_it_cheap_again() {
    let sites = [failing(400_000, 12.0), failing(550_000, 500.0)];
    check("E7", &ten_hours(Some(mb(20_000))), &sites);
}

#[test]
fn e9_an_interruption_with_notice_costs_a_restart() {
    let interruptible = Site {
        interruption: Some(Interruption {
            per_hour: Some(4.0 / 24.0),
            notice: Seconds(120),
        }),
        ..failing(180_000, 500.0)
    };
    let sites = [interruptible, failing(400_000, 500.0)];
    check("E9", &ten_hours(Some(mb(20_000))), &sites);
}

#[test]
fn e11_a_host_that_has_the_image_is_cheapest_for_a_short_job() {
    let job = JobProfile {
        image: mb(20_000),
        data: mb(850),
        load: mb(2000),
        upload: mb(20),
        ..job(pieces(300))
    };
    let cold = Site {
        rate: Some(1.0),
        ..site(400_000)
    };
    let cached = Site {
        rate: Some(1.0),
        has_image: Some(true),
        ..site(600_000)
    };
    check("E11", &job, &[cold, cached]);
}

#[test]
fn an_interruption_without_time_for_a_checkpoint_is_a_failure() {
    let job = ten_hours(Some(mb(20_000)));
    let with_notice = |seconds| Site {
        interruption: Some(Interruption {
            per_hour: Some(4.0 / 24.0),
            notice: Seconds(seconds),
        }),
        ..failing(180_000, 500.0)
    };
    let run = |site| estimate(&job, &site).unwrap().times.run();
    // A checkpoint takes 10 s. One failure in 500 h and four interruptions a day: as one failure in
    // 1/(1/500 + 1/6) h.
    same(
        run(with_notice(9)),
        run(failing(180_000, 1.0 / (1.0 / 500.0 + 1.0 / 6.0))),
        6,
    );
    same(run(with_notice(10)), 36_162.6, 1);
}

#[test]
fn memory_bounds_work_that_computes_little() {
    // 1.3e15 bytes through 1010 GB/s of which 0.65 are reached: 1980.2 s; 1e15 operations take 13.5 s.
    let work = Work {
        gigaflops: NonZeroU64::new(1_000_000),
        memory_megabytes: NonZeroU64::new(1_300_000_000),
        ..Work::default()
    };
    let site = Site {
        card: sheet("NVIDIA GeForce RTX 4090", 24),
        ..site(680_000)
    };
    same(estimate(&job(work), &site).unwrap().times.work, 1980.2, 1);
}

#[test]
fn several_gpus_share_the_work_and_lose_what_the_job_says() {
    let job = JobProfile {
        scaling: Some(protocol::cost::Fraction::new(9000).unwrap()),
        ..job(pieces(36_000))
    };
    let eight = Site {
        gpus: 8,
        ..failing(3_200_000, 500.0)
    };
    // 36 000 / (8 × 0.9)
    same(estimate(&job, &eight).unwrap().times.work, 5000.0, 6);
    let one_used = JobProfile {
        gpus_max: std::num::NonZeroU16::new(1),
        ..job
    };
    same(estimate(&one_used, &eight).unwrap().times.work, 36_000.0, 6);
}

#[test]
fn a_machine_of_several_fails_as_often_as_all_of_them() {
    let two = Site {
        machines: 2,
        ..failing(400_000, 24.0)
    };
    let run = |site| estimate(&ten_hours(None), &site).unwrap().times.run();
    same(run(two), run(failing(400_000, 12.0)), 6);
}

#[test]
fn traffic_is_paid_by_the_byte() {
    let job = JobProfile {
        image: mb(8000),
        ..ten_hours(None)
    };
    let mut site = failing(400_000, 500.0);
    site.prices.download.0 = 20_000;
    site.prices.upload.0 = 50_000;
    let costs = estimate(&job, &site).unwrap().costs;
    // 8 GB of image and 10 GB of data at $0.02, 2 GB of result at $0.05.
    assert_eq!((costs.download.0, costs.upload.0), (360_000, 100_000));
    site.has_image = Some(true);
    let costs = estimate(&job, &site).unwrap().costs;
    assert_eq!(costs.download.0, 200_000);
}
