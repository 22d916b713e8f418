//! Flags and expressions as they are typed, and what they become.

use super::*;
use clap::Parser;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    filter: FilterArgs,
}

fn typed(words: &[&str]) -> FilterArgs {
    Line::try_parse_from(std::iter::once(&"feira").chain(words))
        .unwrap()
        .filter
}

// peers 3.1 #12: a disk is asked for as at least so much.
#[test]
fn flags_and_expression_become_one_filter() {
    let args = typed(&[
        "--gpu",
        "rtx4090,h100",
        "--gpus",
        "2",
        "--min-vram",
        "24",
        "--max-price",
        "0.40",
        "--disk",
        "60",
        "cuda_vers>=12.4",
        "has_avx=true",
    ]);
    let filter = args.filter().unwrap();
    assert_eq!(
        filter.to_string(),
        "gpu_name in [RTX4090,H100] num_gpus=2 gpu_ram>=24 dph_total<=0.4 cuda_max_good>=12.4 \
         has_avx=true disk_space>=60"
    );
    let labels: Vec<String> = args
        .conditions()
        .unwrap()
        .into_iter()
        .map(|condition| condition.label)
        .collect();
    assert_eq!(
        labels,
        [
            "--gpu rtx4090,h100",
            "--gpus 2",
            "--min-vram 24",
            "--max-price 0.4",
            "cuda_max_good>=12.4",
            "has_avx=true",
            "--disk 60",
        ]
    );
    assert_eq!(args.disk(), Bytes::from_gb(60));
}

// peers 3.9 #127, #128: one slice for one program; several of one GPU are refused with the reason.
#[test]
fn a_slice_is_asked_for_alone() {
    let one = typed(&["--partition", "MIG-3g.40gb", "--gpus", "1"]);
    let filter = one.filter().unwrap().to_string();
    assert_eq!(filter, "num_gpus=1 partition=3g.40gb disk_space>=10");
    assert_eq!(one.words(), ["--gpus", "1", "--partition", "MIG-3g.40gb"]);
    for words in [
        &["--partition", "3g.40gb", "--gpus", "2"][..],
        &["partition=3g.40gb", "num_gpus=2"],
    ] {
        let failure = typed(words).filter().unwrap_err();
        assert_eq!(failure.code(), Code::BadValue);
        assert!(
            failure.what().contains("a slice is leased alone"),
            "{}",
            failure.what()
        );
    }
    for either in ["any", "none", "whole"] {
        assert!(
            typed(&["--partition", either, "--gpus", "2"])
                .filter()
                .is_ok()
        );
    }
    let failure = typed(&["--partition", "3g40gb"]).filter().unwrap_err();
    assert!(
        failure
            .what()
            .contains("'3g40gb' is not a value of partition")
    );
}

#[test]
fn nothing_typed_asks_for_the_default_disk_alone() {
    let args = typed(&[]);
    assert!(args.is_empty());
    assert_eq!(args.filter().unwrap().to_string(), "disk_space>=10");
    assert_eq!(args.conditions().unwrap()[0].label, "--disk 10 (default)");
    assert!(!typed(&["--gpus", "1"]).is_empty());
}

#[test]
fn a_mistyped_field_is_refused_with_the_one_that_was_meant() {
    let failure = typed(&["gpu=h100 dph_totl<10"]).filter().unwrap_err();
    assert_eq!(failure.code(), Code::UnknownField);
    assert_eq!(failure.what(), "unknown field 'dph_totl'");
    assert_eq!(
        failure.help_lines(),
        [
            "a similar field exists: 'dph_total' (here also: dph, price)",
            "all fields: feira help fields",
        ]
    );
    let failure = typed(&["dlperf>99"]).filter().unwrap_err();
    assert_eq!(failure.code(), Code::UnknownField);
    let failure = typed(&["num_gpus>=two"]).filter().unwrap_err();
    assert_eq!(failure.code(), Code::BadExpression);
    assert!(
        failure
            .what()
            .ends_with("(at character 11 of num_gpus>=two)"),
        "{failure:?}"
    );
    let failure = typed(&["--min-vram", "lots"]).filter().unwrap_err();
    assert_eq!(failure.code(), Code::BadValue);
    assert!(
        failure
            .what()
            .starts_with("--min-vram lots: 'lots' is not a value"),
        "{failure:?}"
    );
}

#[test]
fn what_was_typed_can_be_typed_again() {
    let words = [
        "--gpu",
        "rtx4090,h100",
        "--gpus",
        "2",
        "--min-vram",
        "24",
        "--min-cpus",
        "4",
        "--min-ram",
        "16",
        "--min-cuda",
        "12.4",
        "--max-price",
        "0.4",
        "--disk",
        "60",
        "--host",
        "h-7k3f",
        "has_avx=true",
    ];
    let args = typed(&words);
    let again = args.words();
    let again: Vec<&str> = again.iter().map(String::as_str).collect();
    assert_eq!(typed(&again), args);
    assert_eq!(again.first(), Some(&"has_avx=true"));
    assert!(typed(&[]).words().is_empty());
}
