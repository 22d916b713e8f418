//! Search expressions as renters write them: what they mean, what they find, and what they say when they
//! cannot be read.
#![cfg(test)]

mod found;
mod hardware;
#[path = "../sample/mod.rs"]
mod sample;

use proptest::prelude::*;
use protocol::codec;
use protocol::filter::{
    Comparison, Facts, Field, Filter, ParseError, ParseProblem, Term, Test, Value, parse_sort,
};
use protocol::terms::Need;
use protocol::units::Bytes;
use sample::{gpu_offer, host, list, text};

const NO_DISK: Need = Need::disk(Bytes(0));

fn parse(expression: &str) -> Filter {
    expression
        .parse()
        .unwrap_or_else(|error| panic!("{expression}: {error}"))
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

// peers 3.1 #3: `any` is no condition, and none is added behind the renter's back.
#[test]
fn vast_s_examples_read_as_vast_reads_them() {
    check_reads(
        "gpu_name=RTX_4090 num_gpus>=2 dph<0.5",
        "gpu_name=RTX_4090 num_gpus>=2 dph_total<0.5",
    );
    check_reads(
        "gpu_ram>=24 duration>3 cpu_ram>64",
        "gpu_ram>=24 duration>3 cpu_ram>64",
    );
    check_reads("driver_version>=535.86.05", "driver_version>=535.86.5");
    check_reads(
        "gpu_name in [RTX_4090,RTX 3090]",
        "gpu_name in [RTX_4090,RTX_3090]",
    );
    check_reads(
        "cuda_vers>=12.4 dph<0.5",
        "cuda_max_good>=12.4 dph_total<0.5",
    );
    check_reads("verified=any external = * rentable=?", "");
    check_reads("compute_cap>=650", "compute_cap>=6.5");
}

#[test]
fn operators_have_words_and_blanks() {
    check_reads("num_gpus gte 2  num_gpus lt 9", "num_gpus>=2 num_gpus<9");
    check_reads(
        "num_gpus == 2 num_gpus!=3 num_gpus neq 4",
        "num_gpus=2 num_gpus!=3 num_gpus!=4",
    );
    check_reads("num_gpus NOT IN [1, 3]", "num_gpus notin [1,3]");
    check_reads(
        "num_gpus not eq 3 num_gpus nin [5]",
        "num_gpus!=3 num_gpus notin [5]",
    );
    check_reads("gpu_name = [RTX_4090, H100]", "gpu_name in [RTX_4090,H100]");
    check_reads("gpu_name in H100", "gpu_name in [H100]");
    check_reads("gpu-name=h100", "gpu_name=H100");
}

// peers 3.1 #4: lists with quoted, spaced and single members.
#[test]
fn lists_take_quoted_spaced_and_single_members() {
    check_reads(
        "gpu in ['RTX 4090',\"H100, SXM\" ]",
        "gpu_name in [RTX_4090,\"H100,_SXM\"]",
    );
    check_reads("gpu notin [ RTX 4090 ]", "gpu_name notin [RTX_4090]");
    check_reads("gpu=\"RTX 4090\" gpus=1", "gpu_name=RTX_4090 num_gpus=1");
    check_reads("gpu in [RTX 4090, any]", "");
}

#[test]
fn numbers_are_exact_and_show_in_the_field_s_unit() {
    check_reads(
        "dph<=0.000001 price>$12",
        "dph_total<=0.000001 dph_total>12",
    );
    check_reads("duration>=12h duration<1h", "duration>=0.5 duration<3600s");
    check_reads("disk>=1.5TB ram>=0.5gb", "disk_space>=1500 cpu_ram>=0.5");
    let tenth = Term::compare(Field::DphTotal, Comparison::Equal, "0.1").unwrap();
    assert_eq!(
        tenth.test(),
        &Test::Compare(Comparison::Equal, Value::Number(100_000))
    );
}

/// Expressions, where each stops being readable, and why.
#[rustfmt::skip]
const ERRORS: &[(&str, usize, &str)] = &[
    ("gpu=h100 dph_totl<10", 10, "unknown field 'dph_totl'"),
    ("colour red", 1, "unknown field 'colour'"),
    ("gpu=h100 region=us", 10, "'region' cannot be searched by: offers do not say where a host is yet"),
    ("partition=3g40gb", 11, "'3g40gb' is not a value of partition: a kind of slice like 3g.40gb, none for whole GPUs, or any is wanted"),
    ("partition>3g.40gb", 10, "partition has no order: only =, !=, in and notin can be used with it"),
    ("score>1.234", 7, "'1.234' is finer than score is counted: two decimal places"),
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

// peers 3.1 #2: what cannot be read is an error that names it, never a condition that is dropped.
#[test]
fn every_error_says_where_and_what() {
    for (expression, at, problem) in ERRORS {
        let error = fail(expression);
        assert_eq!(
            (error.at, error.problem.to_string().as_str()),
            (*at, *problem),
            "{expression}"
        );
    }
}

#[test]
fn tips_name_what_was_meant() {
    let tip = |expression: &str| fail(expression).problem.tip();
    assert_eq!(
        tip("dph_totl<10").as_deref(),
        Some("a similar field exists: 'dph_total' (here also: dph, price)")
    );
    assert_eq!(
        tip("dlperf>10").as_deref(),
        Some("'score' comes nearest to it")
    );
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
    assert_eq!(
        fail(&values).problem.to_string(),
        "more than 32 values in one list"
    );
}

#[test]
fn a_filter_that_does_not_fit_its_fields_is_no_filter_on_the_wire() {
    let good = codec::encode(&parse("num_gpus>=2")).unwrap();
    assert_eq!(codec::decode(&good), Ok(parse("num_gpus>=2")));
    let unfit = [
        (
            Field::NumGpus,
            Test::Compare(Comparison::Equal, Value::Flag(true)),
        ),
        (
            Field::GpuName,
            Test::Compare(Comparison::Less, Value::Text(text("H100"))),
        ),
        (
            Field::GpuName,
            Test::Compare(Comparison::Equal, Value::Text(text("h100"))),
        ),
        (Field::NumGpus, Test::In(list(vec![]))),
        // Whole GPUs and slices alike: a word that stands alone.
        (
            Field::Partition,
            Test::Compare(Comparison::NotEqual, Value::Text(text("any"))),
        ),
        (
            Field::Partition,
            Test::In(list(vec![
                Value::Text(text("any")),
                Value::Text(text("3g.40gb")),
            ])),
        ),
        (
            Field::Partition,
            Test::Compare(Comparison::Equal, Value::Text(text("mig-3g.40gb"))),
        ),
        (
            Field::NumGpus,
            Test::Compare(Comparison::Equal, Value::Number(i64::MIN)),
        ),
    ];
    for (field, test) in unfit {
        let bytes = codec::encode(&vec![(field, test.clone())]).unwrap();
        assert!(
            codec::decode::<Filter>(&bytes).is_err(),
            "{field:?} {test:?}"
        );
    }
}

/// Pieces that make texts near to expressions, and some far from them.
fn piece() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "gpu_name",
        "num_gpus",
        "dph",
        "duration",
        "in",
        "notin",
        "not",
        "<",
        "<=",
        "=",
        "!=",
        "[",
        "]",
        ",",
        "'",
        "\"",
        " ",
        "0.4",
        "12.4",
        "RTX_4090",
        "any",
        "*",
        "$",
        "%",
        "h-31bd",
        "true",
        "24GB",
        "partition",
        "3g.40gb",
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
                let facts = Facts::of(host(), &gpu_offer(), 1);
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
}
