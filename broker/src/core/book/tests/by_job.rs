//! Searches that carry a job: the cheapest job first, whatever its hour costs.

use super::*;
use protocol::cost::{JobProfile, Rate, Work};
use protocol::offer::Offer;
use protocol::reliability::Score;
use protocol::units::Seconds;
use std::num::NonZeroU64;

/// A book in which host `n` has one of the `n`-th model at its price.
fn models(list: &[(&str, u64)]) -> Book {
    let mut book = book();
    for (number, (model, price)) in (0..).zip(list) {
        announce(&mut book, number, of_model(number, model, *price));
    }
    book
}

fn of_model(number: u32, model: &str, price: u64) -> Offer {
    let mut offer = offer(number, "GPU-1", price);
    // The fixture's capability is one model's alone.
    let gpu = Gpu {
        compute_capability: (0, 0),
        ..gpu(model, "GPU-1")
    };
    offer.machine.gpus = List::new(vec![gpu]).unwrap();
    offer.share.gpus = offer.machine.gpus.clone();
    offer
}

fn announce(book: &mut Book, number: u32, offer: Offer) {
    let list = vec![signed(number, offer)];
    let announced = book.announce(NOW, host(number), list, List::default());
    assert_eq!(announced, Ok(Announced::Replaced));
}

/// 2.4e18 operations.
fn fine_tune() -> Work {
    Work {
        gigaflops: NonZeroU64::new(2_400_000_000),
        ..Work::default()
    }
}

/// Ten hours on an RTX 4090.
fn ten_hours() -> Work {
    Work {
        units: NonZeroU64::new(36_000),
        rates: List::first([Rate {
            gpu: text("RTX 4090"),
            milliunits_per_second: NonZeroU64::new(1000).unwrap(),
        }]),
        ..Work::default()
    }
}

fn with(work: Work) -> Search {
    Search {
        job: Some(JobProfile {
            work,
            disk: Bytes::from_gb(10),
            ..JobProfile::default()
        }),
        ..search("")
    }
}

#[test]
fn the_fastest_card_comes_first_where_its_job_is_cheapest() {
    let book = models(&[
        ("NVIDIA GeForce RTX 4090", 680_000),
        ("Voodoo 2", 100_000),
        ("NVIDIA H100 80GB HBM3", 2_250_000),
        ("NVIDIA A100-SXM4-80GB", 1_170_000),
    ]);
    // By the hour the other way round; whose speed nobody knows is last.
    let by_job = [2_250_000, 1_170_000, 680_000, 100_000];
    assert_eq!(
        prices(&book.search(&with(fine_tune()), NOW, at_ask)),
        by_job
    );
    let one = Search {
        limit: 1,
        ..with(fine_tune())
    };
    let found = book.search(&one, NOW, at_ask);
    assert_eq!((prices(&found), found.matching), (vec![2_250_000], 4));
}

#[test]
fn a_host_that_fails_often_is_dear_for_a_job_without_checkpoints() {
    let mut book = priced(&[400_000, 550_000]);
    // Two faults and nothing else: one failure in 12 h; 464 h without one: one in 500 h.
    book.rate(host(0), &Score::from_counts(2.0, 0.0, (0, 0)));
    book.rate(host(1), &Score::from_counts(0.0, 464.0, (0, 0)));
    let found = book.search(&with(ten_hours()), NOW, at_ask);
    assert_eq!(prices(&found), [550_000, 400_000]);
    let hazards: Vec<u32> = found.offers.iter().map(|found| found.hazard).collect();
    assert_eq!(hazards, [2_000_000, 83_333_333]);
    let mut saving = with(ten_hours());
    if let Some(job) = &mut saving.job {
        job.checkpoint = Some(Bytes::from_gb(20));
    }
    assert_eq!(
        prices(&book.search(&saving, NOW, at_ask)),
        [400_000, 550_000]
    );
}

#[test]
fn where_the_job_does_not_fit_comes_last() {
    let mut book = priced(&[400_000]);
    let mut short = of_model(1, "NVIDIA GeForce RTX 4090", 100_000);
    short.limits.duration_max = Some(Seconds(3600));
    announce(&mut book, 1, short);
    let found = book.search(&with(ten_hours()), NOW, at_ask);
    assert_eq!(prices(&found), [400_000, 100_000]);
}

#[test]
fn of_jobs_that_cost_the_same_the_more_reliable_host_comes_first_then_the_older_offer() {
    let mut book = priced(&[400_000]);
    let mut older = of_model(1, "NVIDIA GeForce RTX 4090", 400_000);
    older.listed_at = Timestamp(4);
    announce(&mut book, 1, older);
    let first = |book: &Book| {
        let found = book.search(&with(ten_hours()), NOW, at_ask);
        found
            .offers
            .first()
            .map(|found| found.offer.verify().unwrap().signer().into())
    };
    assert_eq!(first(&book), Some(host(1)));
    // As often a failure, but more starts in time.
    for (number, starts) in [(0, 50), (1, 5)] {
        book.rate(host(number), &Score::from_counts(0.0, 464.0, (starts, 0)));
    }
    assert_eq!(first(&book), Some(host(0)));
}

#[test]
fn an_interruptible_lease_is_cheapest_where_the_notice_is_long_enough_for_a_checkpoint() {
    // A checkpoint of 120 GB takes 60 s on the disk that is assumed.
    let mut search = Search {
        kind: ContractKind::Interruptible,
        ..with(ten_hours())
    };
    if let Some(job) = &mut search.job {
        job.checkpoint = Some(Bytes::from_gb(120));
    }
    let mut book = book();
    for (number, notice, price) in [(0, 59, 199_000), (1, 60, 200_000)] {
        let mut offer = of_model(number, "NVIDIA GeForce RTX 4090", price);
        offer.limits.notice = Seconds(notice);
        announce(&mut book, number, offer);
    }
    assert_eq!(
        prices(&book.search(&search, NOW, at_ask)),
        [200_000, 199_000]
    );
    search.kind = ContractKind::OnDemand;
    assert_eq!(
        prices(&book.search(&search, NOW, at_ask)),
        [199_000, 200_000]
    );
}
