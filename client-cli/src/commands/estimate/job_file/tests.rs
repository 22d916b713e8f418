//! What job files are read as, and what is said of those that cannot be.

use super::*;

fn right(text: &str) -> JobProfile {
    parse(text, Path::new("JOB.toml")).unwrap()
}

#[track_caller]
fn wrong(text: &str, wanted: &[&str]) {
    let failure = parse(text, Path::new("JOB.toml")).unwrap_err();
    assert_eq!(failure.code(), Code::BadJob);
    for part in wanted {
        assert!(failure.what().contains(part), "{part}: {}", failure.what());
    }
    assert!(failure.what().starts_with("JOB.toml"), "{failure:?}");
}

const FULL: &str = r#"
disk_gb = 150
image_gb = 20
data_gb = 0.5
load_gb = 16
checkpoint_gb = 20
upload_gb = 0.4
gpus = 2
scaling = 0.9

[work]
flops = 2.4e18
precision = "fp8"
compute_efficiency = 0.5
memory_gb = 16_000_000
memory_efficiency = 1
units = 1_000_000

[work.units_per_second]
"RTX 4090" = 54.34
h100 = 200
"#;

#[test]
fn every_key_is_read_in_its_unit() {
    let job = right(FULL);
    let number = |found: Option<NonZeroU64>| found.map_or(0, NonZeroU64::get);
    assert_eq!(number(job.work.gigaflops), 2_400_000_000);
    assert_eq!(number(job.work.memory_megabytes), 16_000_000_000);
    assert_eq!(number(job.work.units), 1_000_000);
    assert_eq!(job.work.precision, Precision::Quarter);
    let rates: Vec<(&str, u64)> = job
        .work
        .rates
        .iter()
        .map(|rate| (rate.gpu.as_str(), rate.milliunits_per_second.get()))
        .collect();
    assert_eq!(rates, [("RTX 4090", 54_340), ("h100", 200_000)]);
    assert_eq!(job.gpus_max, NonZeroU16::new(2));
    assert_eq!(job.scaling, Fraction::new(9000).ok());
    assert_eq!(job.compute_efficiency, Fraction::new(5000).ok());
    assert_eq!(job.memory_efficiency, Some(Fraction::WHOLE));
    assert_eq!(
        (job.image, job.load),
        (Bytes::from_gb(20), Bytes::from_gb(16))
    );
    assert_eq!(
        (job.data, job.upload),
        (Bytes(500_000_000), Bytes(400_000_000))
    );
    assert_eq!(job.checkpoint, Some(Bytes::from_gb(20)));
    assert_eq!(job.disk, Bytes::from_gb(150));
}

#[test]
fn what_is_left_out_is_nothing_or_not_known() {
    let job = right("[work]\nflops = 1e9\n");
    let wanted = JobProfile {
        work: Work {
            gigaflops: NonZeroU64::new(1),
            ..Work::default()
        },
        ..JobProfile::default()
    };
    assert_eq!(job, wanted);
}

#[test]
fn a_value_that_cannot_be_is_refused_with_its_line_and_key() {
    for value in ["-3", "nan", "inf", "-inf", "1e7", "\"60\"", "true", "[]"] {
        wrong(
            &format!("disk_gb = 1\nimage_gb = {value}\n[work]\nflops = 1e15\n"),
            &["line 2", "image_gb"],
        );
    }
    for (line, wanted) in [
        ("flops = 0", "1e9 to 1e28"),
        ("flops = 1e29", "1e9 to 1e28"),
        ("flops = -1e18", "1e9 to 1e28"),
        ("flops = nan", "1e9 to 1e28"),
        ("memory_gb = 0", "0.001 to 1e15"),
        ("units = 0.5", "a count from 1"),
        ("units = 2.5", "a count from 1"),
        ("compute_efficiency = 0", "0.0001 to 1"),
        ("compute_efficiency = 45", "0.0001 to 1"),
        ("memory_efficiency = 1.01", "0.0001 to 1"),
        ("precision = \"fp4\"", "fp16"),
        ("flop = 1e18", "flop"),
    ] {
        wrong(&format!("[work]\n{line}\n"), &["line 2", line, wanted]);
    }
    for line in [
        "gpus = 0",
        "gpus = 17",
        "gpus = 1.5",
        "scaling = 2",
        "gpu = 1",
    ] {
        wrong(
            &format!("{line}\n[work]\nflops = 1e18\n"),
            &["line 1", line],
        );
    }
    let rate = "[work]\nunits = 5\n[work.units_per_second]\nh100 = 0\n";
    wrong(rate, &["line 4 (h100 = 0)", "a rate from 0.001"]);
}

#[test]
fn what_is_no_toml_is_refused_with_its_line() {
    wrong("disk_gb = 5\n[work\n", &["line 2"]);
    wrong(
        "disk_gb = 5\ndisk_gb = 6\n[work]\nflops = 1e9\n",
        &["line 2", "disk_gb"],
    );
    wrong("", &["work"]);
}

#[test]
fn a_job_without_anything_to_do_is_refused() {
    wrong(
        "disk_gb = 5\n[work]\nprecision = \"fp16\"\n",
        &["line 2 ([work])", "nothing to do"],
    );
}

#[test]
fn pieces_without_a_rate_and_rates_without_pieces_are_refused() {
    wrong("[work]\nunits = 5\n", &["line 1 ([work])", "together only"]);
    wrong(
        "[work]\nflops = 1e18\n[work.units_per_second]\nh100 = 1\n",
        &["together only"],
    );
}

#[test]
fn more_rates_than_a_search_carries_are_refused() {
    let mut text = "[work]\nunits = 5\n[work.units_per_second]\n".to_owned();
    for index in 0..17 {
        text.push_str(&format!("gpu{index} = 1\n"));
    }
    wrong(&text, &["more than 16 GPUs"]);
    let long = format!(
        "[work]\nunits = 5\n[work.units_per_second]\n{} = 1\n",
        "x".repeat(65)
    );
    wrong(&long, &["line 4", "64 allowed"]);
}
