//! Search expressions as renters write them: what they mean, what they find, and what they say when they
//! cannot be read.

mod sample;

use proptest::prelude::*;
use protocol::codec;
use protocol::filter::{
    Comparison, Explanation, Facts, Field, Filter, ParseError, ParseProblem, Term, Test, Value,
    compare, parse_sort,
};
use protocol::units::{Bytes, MicroUsd};
use sample::{cpu_offer, gpu_offer, host, list, text};

const NO_DISK: Bytes = Bytes(0);

fn parse(expression: &str) -> Filter {
    expression.parse().unwrap_or_else(|error| panic!("{expression}: {error}"))
}

fn fail(expression: &str) -> ParseError {
    expression.parse::<Filter>().unwrap_err()
}

/// What an expression reads as, in canonical text.
#[track_caller]
fn check_reads(expression: &str, canonical: &str) {
    let filter = parse(expression);
    assert_eq!(filter.to_string(), canonical);
    assert_eq!(parse(canonical), filter);
}

#[track_caller]
fn check_found(expression: &str, gpu: bool, cpu: bool) {
    let filter = parse(expression).prepare(NO_DISK);
    let found = [gpu_offer(), cpu_offer()].map(|offer| filter.matches(&Facts::of(host(), &offer)));
    assert_eq!(found, [gpu, cpu], "{expression}");
}

#[test]
fn vast_s_examples_read_as_vast_reads_them() {
    check_reads(
        "gpu_name=RTX_4090 num_gpus>=2 dph<0.5",
        "gpu_name=RTX_4090 num_gpus>=2 dph_total<0.5",
    );
    check_reads("gpu_ram>=24 duration>3 cpu_ram>64", "gpu_ram>=24 duration>3 cpu_ram>64");
    check_reads("driver_version>=535.86.05", "driver_version>=535.86.5");
    check_reads("gpu_name in [RTX_4090,RTX 3090]", "gpu_name in [RTX_4090,RTX_3090]");
    check_reads("cuda_vers>=12.4 dph<0.5", "cuda_max_good>=12.4 dph_total<0.5");
    check_reads("verified=any external = * rentable=?", "");
    check_reads("compute_cap>=650", "compute_cap>=6.5");
}

#[test]
fn operators_have_words_and_blanks() {
    check_reads("num_gpus gte 2  num_gpus lt 9", "num_gpus>=2 num_gpus<9");
    check_reads("num_gpus == 2 num_gpus!=3 num_gpus neq 4", "num_gpus=2 num_gpus!=3 num_gpus!=4");
    check_reads("num_gpus NOT IN [1, 3]", "num_gpus notin [1,3]");
    check_reads("num_gpus not eq 3 num_gpus nin [5]", "num_gpus!=3 num_gpus notin [5]");
    check_reads("gpu_name = [RTX_4090, H100]", "gpu_name in [RTX_4090,H100]");
    check_reads("gpu_name in H100", "gpu_name in [H100]");
    check_reads("gpu-name=h100", "gpu_name=H100");
}

#[test]
fn lists_take_quoted_spaced_and_single_members() {
    check_reads("gpu in ['RTX 4090',\"H100, SXM\" ]", "gpu_name in [RTX_4090,\"H100,_SXM\"]");
    check_reads("gpu notin [ RTX 4090 ]", "gpu_name notin [RTX_4090]");
    check_reads("gpu=\"RTX 4090\" gpus=1", "gpu_name=RTX_4090 num_gpus=1");
    check_reads("gpu in [RTX 4090, any]", "");
}

#[test]
fn numbers_are_exact_and_show_in_the_field_s_unit() {
    check_reads("dph<=0.000001 price>$12", "dph_total<=0.000001 dph_total>12");
    check_reads("duration>=12h duration<1h", "duration>=0.5 duration<3600s");
    check_reads("disk>=1.5TB ram>=0.5gb", "disk_space>=1500 cpu_ram>=0.5");
    let tenth = Term::compare(Field::DphTotal, Comparison::Equal, "0.1").unwrap();
    assert_eq!(tenth.test(), &Test::Compare(Comparison::Equal, Value::Number(100_000)));
}

#[test]
fn every_error_says_where_and_what() {
    let cases = [
        ("gpu=h100 dph_totl<10", 10, "unknown field 'dph_totl'"),
        ("colour red", 1, "unknown field 'colour'"),
        ("gpu=h100 reliability>0.99", 10, "'reliability' cannot be searched by: brokers do not compute it yet"),
        ("num_gpus", 9, "'num_gpus' needs an operator and a value, like num_gpus=…"),
        ("num_gpus ~ 3", 10, "unknown operator '~': there are < <= = != >= > in notin"),
        ("num_gpus like 3", 10, "unknown operator 'like': there are < <= = != >= > in notin"),
        ("num_gpus>=", 11, "'num_gpus' has an operator and no value behind it"),
        ("gpu=''", 5, "'gpu' has an operator and no value behind it"),
        ("gpu in [a,,b]", 11, "'gpu' has an operator and no value behind it"),
        ("gpu in [a", 8, "the list is not closed: ']' is missing"),
        ("gpu='RTX", 5, "the quoted text is not closed: ' is missing"),
        ("gpu in []", 5, "the list of values for gpu_name is empty"),
        ("gpu=H100,A100", 5, "several values are written as a list: gpu in [H100,A100]"),
        ("num_gpus>[1,2]", 9, "a list goes with in and notin, not with '>'"),
        ("gpu>h100", 4, "gpu_name has no order: only =, !=, in and notin can be used with it"),
        ("num_gpus=two", 10, "'two' is not a value of num_gpus: a whole number is wanted (GPUs)"),
        ("dph<0.0000001", 5, "'0.0000001' is finer than dph_total is counted: six decimal places"),
        ("has_avx=maybe", 9, "'maybe' is not a value of has_avx: true or false is wanted"),
        ("=3", 1, "a field was expected, not '=3'"),
        ("gpu=€ dph=", 5, "'€' is not a value of gpu_name: a GPU's name like RTX_4090 is wanted"),
        ("os=ü num_gpus=x", 15, "'x' is not a value of num_gpus: a whole number is wanted (GPUs)"),
    ];
    for (expression, at, problem) in cases {
        let error = fail(expression);
        assert_eq!((error.at, error.problem.to_string().as_str()), (at, problem), "{expression}");
    }
}

#[test]
fn tips_name_what_was_meant() {
    let tip = |expression: &str| fail(expression).problem.tip();
    assert_eq!(
        tip("dph_totl<10").as_deref(),
        Some("a similar field exists: 'dph_total' (here also: dph, price)")
    );
    assert_eq!(tip("dlperf>10").as_deref(), Some("'gpu_name' comes nearest to it"));
    assert_eq!(tip("colour=red"), None);
}

#[test]
fn bounds_hold() {
    let long = format!("os={}", "x".repeat(5000));
    assert_eq!(fail(&long).problem, ParseProblem::TooLong);
    let many = "num_gpus=1 ".repeat(33);
    assert_eq!(fail(&many).problem, ParseProblem::TooManyTerms);
    assert_eq!(parse(&"num_gpus=1 ".repeat(32)).terms.len(), 32);
    let values = format!("num_gpus in [{}]", vec!["1"; 33].join(","));
    assert_eq!(fail(&values).problem.to_string(), "more than 32 values in one list");
}

#[test]
fn names_of_gpus_meet_in_all_their_forms() {
    for name in ["RTX_4090", "rtx4090", "'RTX 4090'", "'NVIDIA GeForce RTX 4090'"] {
        check_found(&format!("gpu={name}"), true, false);
        check_found(&format!("gpu!={name}"), false, true);
    }
    check_found("gpu in [H100,rtx4090]", true, false);
    check_found("gpu=none", false, true);
}

#[test]
fn every_field_is_answered_from_the_offer() {
    let both = [
        "gpu_ram=24", "gpu_ram>=24", "gpu_total_ram=24", "num_gpus=1", "gpu_frac=0.5",
        "gpu_arch=nvidia", "gpu_max_power<=450", "compute_cap=8.9", "cuda_vers>=12.4",
        "driver_version>=570.124", "pci_gen=4", "gpu_lanes=16", "dph=0.318", "dph_base=0.318",
        "duration=7", "duration<8",
    ];
    for expression in both {
        check_found(expression, true, false);
    }
    let alike = [
        "storage_cost=0.1", "inet_up_cost=0.005", "inet_down_cost=0", "disk>=500", "disk_enforced=no",
        "cpu_name=epyc_7713", "cpu_cores=64", "cpus=32", "cpu_ram=128", "arch=x86_64", "has_avx=true",
        "shared_memory=64", "start_within<=300", "network=bridge", "os=debian", "kernel>=6.1",
        "engine>=20.10", "runtime=runc", "rentable=true", "rented=false",
    ];
    for expression in alike {
        check_found(expression, true, true);
    }
    check_found("duration>=365", false, true);
    check_found("num_gpus=0", false, true);
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
    let facts = Facts::of(host(), &offer);
    assert!(parse("ubuntu_version>=22.04 os='ubuntu 22'").prepare(NO_DISK).matches(&facts));
}

#[test]
fn a_card_counts_as_the_size_it_is_sold_in() {
    let mut offer = gpu_offer();
    let mut l4 = sample::rtx_4090();
    l4.model = text("NVIDIA L4");
    l4.vram = Bytes(23_034 << 20);
    offer.share.gpus = list(vec![l4]);
    let facts = Facts::of(host(), &offer);
    assert!(parse("gpu=L4 gpu_ram>=24").prepare(NO_DISK).matches(&facts));
    assert!(!parse("gpu_ram>24").prepare(NO_DISK).matches(&facts));
}

#[test]
fn the_price_is_all_in_with_the_asked_disk() {
    // 60 GB at $0.10 a GB-month are 6 000 000 µ$ / 720 h = 8 333 µ$ an hour, rounded down.
    let disk = Bytes::from_gb(60);
    let facts = Facts::of(host(), &gpu_offer());
    assert_eq!(facts.price(disk), MicroUsd(326_333));
    assert!(parse("price<=0.326333").prepare(disk).matches(&facts));
    assert!(!parse("price<0.326333").prepare(disk).matches(&facts));
    assert!(parse("price=0.318").prepare(NO_DISK).matches(&facts));
}

#[test]
fn the_explanation_counts_what_each_term_costs() {
    let filter = parse("gpu=rtx4090 price<0.3 cpus>=64");
    let prepared = filter.prepare(NO_DISK);
    let (gpu, cpu) = (Facts::of(host(), &gpu_offer()), Facts::of(host(), &cpu_offer()));
    let mut cheap = gpu_offer();
    cheap.prices.compute.0 = 250_000;
    let cheap = Facts::of(host(), &cheap);
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
    assert_eq!(counts, [(0, 1, 0, None), (1, 1, 0, None), (2, 3, 1, cheapest)]);
    assert_eq!(explanation.nearest(), Some(cheap.id()));
}

#[test]
fn sorting_is_total_and_unknown_comes_last() {
    let (gpu, cpu) = (Facts::of(host(), &gpu_offer()), Facts::of(host(), &cpu_offer()));
    let first = |keys: &str| compare(&parse_sort(keys).unwrap(), NO_DISK, &gpu, &cpu);
    assert!(first("price").is_gt());
    assert!(first("price-").is_lt());
    assert!(first("num_gpus-,price").is_lt());
    // Only the GPU offer has a driver.
    assert!(first("driver").is_lt() && first("driver-").is_lt());
    // Equal everywhere: the price decides.
    assert!(first("cpus").is_gt());
    let error = parse_sort("price-, dlperf-").unwrap_err();
    assert_eq!(error.to_string(), "'dlperf' cannot be searched by: nobody measures performance yet (at character 8)");
    assert_eq!(parse_sort("id,id,id,id,id").unwrap_err().problem, ParseProblem::TooManyKeys);
}

#[test]
fn a_filter_that_does_not_fit_its_fields_is_no_filter_on_the_wire() {
    let good = codec::encode(&parse("num_gpus>=2")).unwrap();
    assert_eq!(codec::decode(&good), Ok(parse("num_gpus>=2")));
    let unfit = [
        (Field::NumGpus, Test::Compare(Comparison::Equal, Value::Flag(true))),
        (Field::GpuName, Test::Compare(Comparison::Less, Value::Text(text("H100")))),
        (Field::GpuName, Test::Compare(Comparison::Equal, Value::Text(text("h100")))),
        (Field::NumGpus, Test::In(list(vec![]))),
        (Field::NumGpus, Test::Compare(Comparison::Equal, Value::Number(i64::MIN))),
    ];
    for (field, test) in unfit {
        let bytes = codec::encode(&vec![(field, test.clone())]).unwrap();
        assert!(codec::decode::<Filter>(&bytes).is_err(), "{field:?} {test:?}");
    }
}

/// Pieces that make texts near to expressions, and some far from them.
fn piece() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "gpu_name", "num_gpus", "dph", "duration", "in", "notin", "not", "<", "<=", "=", "!=", "[", "]",
        ",", "'", "\"", " ", "0.4", "12.4", "RTX_4090", "any", "*", "$", "%", "h-31bd", "true", "24GB",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => "\\PC{0,6}", 1 => any::<char>().prop_map(String::from)]
}

proptest! {
    #[test]
    fn reading_never_panics_and_what_is_read_reads_again(pieces in prop::collection::vec(piece(), 0..24)) {
        let text = pieces.concat();
        match text.parse::<Filter>() {
            Ok(filter) => {
                prop_assert_eq!(&filter.to_string().parse::<Filter>(), &Ok(filter.clone()));
                let bytes = codec::encode(&filter).unwrap();
                prop_assert_eq!(codec::decode::<Filter>(&bytes), Ok(filter.clone()));
                let facts = Facts::of(host(), &gpu_offer());
                let prepared = filter.prepare(NO_DISK);
                prop_assert_eq!(prepared.matches(&facts), prepared.failed(&facts).none());
            }
            Err(error) => {
                prop_assert!(error.at >= 1 && error.at <= text.chars().count() + 1);
                prop_assert!(!error.to_string().is_empty());
            }
        }
        let _ = parse_sort(&text);
    }

    #[test]
    fn a_comparison_and_its_opposite_share_out_what_is_known(cores in 0_u16..200, limit in 0_u16..200) {
        let mut offer = gpu_offer();
        offer.machine.cpu_cores = cores;
        let facts = Facts::of(host(), &offer);
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
