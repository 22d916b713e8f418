//! What expressions find: every field from an offer, names, prices, explanations and order.

use crate::sample::{cpu_offer, gpu_offer, host, list, pair_offer, rtx_4090, text};
use crate::{NO_DISK, parse};
use proptest::prelude::*;
use protocol::filter::{Explanation, Facts, ParseProblem, compare, parse_sort};
use protocol::terms::Need;
use protocol::units::{Bytes, MicroUsd};

#[track_caller]
fn check_found(expression: &str, gpu: bool, cpu: bool) {
    let filter = parse(expression).prepare(NO_DISK);
    let found = [(gpu_offer(), 1), (cpu_offer(), 0)]
        .map(|(offer, gpus)| filter.matches(&Facts::of(host(), &offer, gpus)));
    assert_eq!(found, [gpu, cpu], "{expression}");
}

// peers 3.1 #16, #17: of several models, any will do, and not the first alone.
#[test]
fn names_of_gpus_meet_in_all_their_forms() {
    for name in [
        "RTX_4090",
        "rtx4090",
        "'RTX 4090'",
        "'NVIDIA GeForce RTX 4090'",
    ] {
        check_found(&format!("gpu={name}"), true, false);
        check_found(&format!("gpu!={name}"), false, true);
    }
    check_found("gpu in [H100,rtx4090]", true, false);
    check_found("gpu=none", false, true);
}

#[test]
fn every_field_is_answered_from_the_offer() {
    let both = [
        "gpu_ram=24",
        "gpu_ram>=24",
        "gpu_total_ram=24",
        "num_gpus=1",
        "gpu_frac=0.5",
        "gpu_arch=nvidia",
        "gpu_max_power<=450",
        "compute_cap=8.9",
        "cuda_vers>=12.4",
        "driver_version>=570.124",
        "pci_gen=4",
        "gpu_lanes=16",
        "dph=0.318",
        "dph_base=0.318",
        "duration=7",
        "duration<8",
        "min_bid=0.1",
        "floor<=0.1",
        "discount_max>=0.4",
        "until=1798761600s",
        "end_date<1798761601s",
    ];
    for expression in both {
        check_found(expression, true, false);
    }
    let alike = [
        "storage_cost=0.1",
        "inet_up_cost=0.005",
        "inet_down_cost=0",
        "disk>=500",
        "disk_enforced=no",
        "cpu_name=epyc_7713",
        "cpu_cores=64",
        "cpus=32",
        "cpu_ram=128",
        "arch=x86_64",
        "has_avx=true",
        "shared_memory=64",
        "start_within<=300",
        "network=bridge",
        "os=debian",
        "kernel>=6.1",
        "engine>=20.10",
        "runtime=runc",
        "rentable=true",
        "rented=false",
        "notice>=2m",
        "grace=120",
        "min_duration<=1h",
    ];
    for expression in alike {
        check_found(expression, true, true);
    }
    check_found("duration>=365", false, true);
    check_found("num_gpus=0", false, true);
    // A host that names no end is there for longer than any.
    check_found("until>=4102444800s", false, true);
    // Nothing that is not sold has a price.
    check_found("min_bid<1000", true, false);
    check_found("discount_max<=1", true, false);
    check_found(&format!("id={}", gpu_offer().id), true, false);
    check_found(&format!("host={}", host().short()), true, true);
    check_found("host=h-zzzz", false, false);
}

#[test]
fn what_is_not_known_meets_nothing() {
    check_found("pci_gen<9", true, false);
    check_found("pci_gen!=9", true, false);
    check_found("driver_version notin [1.0]", true, false);
    check_found("ubuntu_version!=22.04", false, false);
    let mut offer = gpu_offer();
    offer.machine.system = text("Ubuntu 22.04.5 LTS");
    let facts = Facts::of(host(), &offer, 1);
    assert!(
        parse("ubuntu_version>=22.04 os='ubuntu 22'")
            .prepare(NO_DISK)
            .matches(&facts)
    );
}

// peers 3.1 #11: an L4 is sold with 24 GB and reports less.
#[test]
fn a_card_counts_as_the_size_it_is_sold_in() {
    let mut offer = gpu_offer();
    let mut l4 = rtx_4090();
    l4.model = text("NVIDIA L4");
    l4.vram = Bytes(23_034 << 20);
    offer.share.gpus = list(vec![l4]);
    let facts = Facts::of(host(), &offer, 1);
    assert!(parse("gpu=L4 gpu_ram>=24").prepare(NO_DISK).matches(&facts));
    assert!(!parse("gpu_ram>24").prepare(NO_DISK).matches(&facts));
}

#[test]
fn the_price_is_all_in_with_the_asked_disk() {
    // 60 GB at $0.10 a GB-month are 6 000 000 µ$ / 720 h = 8 333 µ$ an hour, rounded down.
    let disk = Need::disk(Bytes::from_gb(60));
    let facts = Facts::of(host(), &gpu_offer(), 1);
    assert_eq!(facts.price(disk), MicroUsd(326_333));
    assert!(parse("price<=0.326333").prepare(disk).matches(&facts));
    assert!(!parse("price<0.326333").prepare(disk).matches(&facts));
    assert!(parse("price=0.318").prepare(NO_DISK).matches(&facts));
}

#[test]
fn the_price_is_all_in_with_the_asked_traffic() {
    // An upload of 4 GB an hour at $0.005; what is downloaded is free here.
    let need = Need {
        disk: Bytes(0),
        upload: Bytes::from_gb(4),
        download: Bytes::from_gb(1000),
    };
    let facts = Facts::of(host(), &gpu_offer(), 1);
    assert_eq!(facts.price(need), MicroUsd(318_000 + 20_000));
    assert!(parse("price>=0.338").prepare(need).matches(&facts));
}

#[test]
fn each_portion_of_an_offer_is_found_by_what_it_has() {
    let facts = [1, 2].map(|gpus| Facts::of(host(), &pair_offer(), gpus));
    let check = |expression: &str, wanted: [bool; 2]| {
        let filter = parse(expression).prepare(NO_DISK);
        let found = [&facts[0], &facts[1]].map(|facts| filter.matches(facts));
        assert_eq!(found, wanted, "{expression}");
    };
    check("num_gpus=1", [true, false]);
    check("gpu_total_ram=48", [false, true]);
    check("gpu_ram=24", [true, true]);
    check("gpu_frac=1", [false, true]);
    check("gpu_frac=0.5", [true, false]);
    // 318 000 for each GPU, the floor for each GPU, and half of 63.999 cores, of 128 GB and of 500 GB.
    check("dph=0.636", [false, true]);
    check("min_bid=0.1", [true, true]);
    check("cpus=31.999", [true, false]);
    check("cpu_ram=64", [true, false]);
    check("disk=250", [true, false]);
    // At one price for each GPU the smaller portion comes first, and is the same offer.
    let order = compare(&[], NO_DISK, &facts[0], &facts[1]);
    assert!(order.is_lt());
    assert_eq!(facts[0].id(), facts[1].id());
    assert_eq!((facts[0].gpus(), facts[1].gpus()), (1, 2));
}

// peers 3.1 #9: what is worked out from several fields can be asked for together with all the rest.
#[test]
fn derived_fields_hold_together_as_they_do_alone() {
    let facts = Facts::of(host(), &pair_offer(), 2);
    let matches = |expression: &str| parse(expression).prepare(NO_DISK).matches(&facts);
    let held = [
        "gpu_total_ram>=48",
        "gpu_frac=1",
        "dph<=0.636",
        "dph_base>=0.3",
    ];
    for one in held {
        assert!(matches(one), "{one}");
    }
    // One that does not hold is not lost among them.
    assert!(!matches(&format!("{} gpu_total_ram>48", held.join(" "))));
    assert!(matches(&format!(
        "{} num_gpus=2 gpu=rtx4090",
        held.join(" ")
    )));
}

#[test]
fn the_explanation_counts_what_each_term_costs() {
    let filter = parse("gpu=rtx4090 price<0.3 cpus>=64");
    let prepared = filter.prepare(NO_DISK);
    let (gpu, cpu) = (
        Facts::of(host(), &gpu_offer(), 1),
        Facts::of(host(), &cpu_offer(), 0),
    );
    let mut cheap = gpu_offer();
    cheap.prices.compute.0 = 250_000;
    let cheap = Facts::of(host(), &cheap, 1);
    let mut explanation = Explanation::new(filter.terms.len(), NO_DISK);
    for facts in [&gpu, &cpu, &cheap] {
        explanation.add(facts, prepared.failed(facts));
    }
    // gpu fails price and cpus; cpu fails gpu and cpus; cheap fails cpus alone.
    let counts: Vec<_> = explanation
        .eliminations()
        .iter()
        .map(|one| (one.term, one.eliminated, one.without_it, one.cheapest))
        .collect();
    let cheapest = Some(MicroUsd(250_000));
    assert_eq!(
        counts,
        [(0, 1, 0, None), (1, 1, 0, None), (2, 3, 1, cheapest)]
    );
    assert_eq!(explanation.nearest(), Some((cheap.id(), 1)));
}

#[test]
fn sorting_is_total_and_unknown_comes_last() {
    let (gpu, cpu) = (
        Facts::of(host(), &gpu_offer(), 1),
        Facts::of(host(), &cpu_offer(), 0),
    );
    let first = |keys: &str| compare(&parse_sort(keys).unwrap(), NO_DISK, &gpu, &cpu);
    assert!(first("price").is_gt());
    assert!(first("price-").is_lt());
    assert!(first("num_gpus-,price").is_lt());
    // Only the GPU offer has a driver.
    assert!(first("driver").is_lt() && first("driver-").is_lt());
    // Equal everywhere: the price decides.
    assert!(first("cpus").is_gt());
    let error = parse_sort("price-, dlperf-").unwrap_err();
    assert_eq!(
        error.to_string(),
        "'dlperf' cannot be searched by: it is a score of another market, whose method is not published (at character 8)"
    );
    assert_eq!(
        parse_sort("id,id,id,id,id").unwrap_err().problem,
        ParseProblem::TooManyKeys
    );
}

proptest! {
    #[test]
    fn a_comparison_and_its_opposite_share_out_what_is_known(cores in 0_u16..200, limit in 0_u16..200) {
        let mut offer = gpu_offer();
        offer.machine.cpu_cores = cores;
        let facts = Facts::of(host(), &offer, 1);
        let holds = |operator: &str| {
            parse(&format!("cpu_cores{operator}{limit}")).prepare(NO_DISK).matches(&facts)
        };
        prop_assert_eq!(holds("<"), cores < limit);
        prop_assert_eq!(holds(">="), cores >= limit);
        prop_assert_eq!(holds("="), cores == limit);
        prop_assert_eq!(holds("!="), !holds("="));
        prop_assert_eq!(holds("<="), !holds(">"));
    }
}

#[test]
fn reliability_is_a_part_of_one_and_that_of_an_unknown_host_until_it_is_said() {
    let new = Facts::of(host(), &gpu_offer(), 1);
    // .8 · .6
    assert_eq!(new.reliability(), 480_000);
    let matches = |facts: &Facts, text: &str| parse(text).prepare(NO_DISK).matches(facts);
    assert!(matches(&new, "reliability=0.48") && !matches(&new, "rel>0.48"));
    let known = new.with_reliability(990_001);
    assert!(matches(&known, "reliability>0.99") && matches(&known, "reliability>99%"));
    assert!(!matches(&known, "reliability2>=0.990002"));
}

#[test]
fn of_offers_at_one_price_the_more_reliable_stands_first_however_old_they_are() {
    let need = NO_DISK;
    let older = Facts::of(host(), &gpu_offer(), 1);
    let mut late = gpu_offer();
    late.listed_at.0 += 1;
    let newer = Facts::of(host(), &late, 1);
    assert!(compare(&[], need, &older, &newer).is_lt());
    let newer = newer.with_reliability(480_001);
    assert!(compare(&[], need, &newer, &older).is_lt());
    // Price comes first.
    let mut dear = late;
    dear.prices.compute.0 += 1_000;
    let dear = Facts::of(host(), &dear, 1).with_reliability(999_999);
    assert!(compare(&[], need, &older, &dear).is_lt());
}
