//! The benchmarks that go into offers, beside tools that everybody can run: sysbench, fio, and STREAM's triad as a
//! C compiler makes it.
//!
//! Must not change what it measures: both sides do the same work for the same time, by turns.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use measure::control::Unwatched;
use measure::{cpu, disk, ram};

use crate::Outcome;
use crate::report::Row;
use crate::rounds::{Medians, ROUNDS, by_turns, median};

const LENGTH: Duration = Duration::from_secs(1);
const GOAL: &str = "within 5 %";
const FILE: u64 = 256 * 1024 * 1024;

/// Its own words for the kernel that STREAM defines, with the same arrays and the same count of bytes.
const TRIAD: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
int main(int count, char **words) {
    long n = atol(words[1]) / 24;
    double *a = malloc(n * 8), *b = malloc(n * 8), *c = malloc(n * 8), best = 1e9, s = count + 1.0;
    #pragma omp parallel for
    for (long i = 0; i < n; i++) { a[i] = 0; b[i] = 1; c[i] = 2; }
    for (int pass = 0; pass <= 10; pass++) {
        double began = now();
        #pragma omp parallel for
        for (long i = 0; i < n; i++) a[i] = b[i] + s * c[i];
        double took = now() - began;
        if (pass && took < best) best = took;
    }
    printf("%f\n", n * 24.0 / best / 1e6 + 0 * a[n / 2]);
    return 0;
}
"#;

/// Processors, memory and disk.
pub(crate) fn measure() -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    let all = std::thread::available_parallelism()?;
    for (name, threads) in [
        ("cpu_bench.single", NonZeroUsize::MIN),
        ("cpu_bench.all", all),
    ] {
        let medians = by_turns(|| events(threads), || sysbench(threads))?;
        rows.push(row(name, "events/s", medians, "sysbench cpu"));
    }
    rows.push(memory(all)?);
    rows.extend(disks()?);
    Ok(rows)
}

fn row(name: &str, unit: &'static str, medians: Medians, beside: &'static str) -> Row {
    Row::new(name, unit, medians)
        .beside(beside)
        .goal(GOAL, |row| (0.95..=1.05).contains(&row.ratio()))
}

fn events(threads: NonZeroUsize) -> Outcome<f64> {
    let thousandths = cpu::events(threads, LENGTH, &Unwatched)?;
    Ok(approximate(thousandths) / 1000.0)
}

fn sysbench(threads: NonZeroUsize) -> Outcome<f64> {
    let (time, threads) = (LENGTH.as_secs(), threads.get());
    let text = printed(
        "sysbench",
        &[
            "cpu".to_owned(),
            format!("--cpu-max-prime={}", cpu::LIMIT),
            format!("--time={time}"),
            "--events=0".to_owned(),
            format!("--threads={threads}"),
            "run".to_owned(),
        ],
    )?;
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("events per second:"))
        .ok_or("sysbench printed no events per second")?;
    Ok(line.trim().parse()?)
}

fn memory(threads: NonZeroUsize) -> Outcome<Row> {
    let folder = tempfile::tempdir()?;
    let (source, program) = (folder.path().join("triad.c"), folder.path().join("triad"));
    fs::write(&source, TRIAD)?;
    let text = |path: &Path| path.display().to_string();
    printed(
        "cc",
        &[
            "-O3".to_owned(),
            "-fopenmp".to_owned(),
            text(&source),
            "-o".to_owned(),
            text(&program),
        ],
    )?;
    let medians = by_turns(
        || {
            let rate = ram::triad(threads, &Unwatched)?;
            Ok(approximate(rate.per_second()) / 1e6)
        },
        || {
            Ok(printed(&text(&program), &[ram::BYTES.to_string()])?
                .trim()
                .parse()?)
        },
    )?;
    Ok(row(
        "cpu_bench.ram",
        "MB/s",
        medians,
        "STREAM triad in C, OpenMP",
    ))
}

/// All three on one file system, the one of the build: where temporary files are may be memory.
fn disks() -> Outcome<[Row; 3]> {
    let folder = tempfile::tempdir_in(std::env::current_dir()?)?;
    let file = folder.path().join("fio");
    let settings = disk::Settings {
        file: FILE,
        reserve: FILE,
        length: LENGTH,
    };
    let mut ours: [Vec<f64>; 3] = Default::default();
    let mut theirs: [Vec<f64>; 3] = Default::default();
    // The first turn makes fio's file and is not counted.
    fio(&file)?;
    for _ in 0..ROUNDS {
        let rates = disk::rates(folder.path(), settings, &Unwatched)?;
        let of_round = [
            approximate(rates.write.per_second()) / 1e6,
            approximate(rates.read.per_second()) / 1e6,
            approximate(rates.random.per_second()),
        ];
        for (all, one) in ours.iter_mut().zip(of_round) {
            all.push(one);
        }
        for (all, one) in theirs.iter_mut().zip(fio(&file)?) {
            all.push(one);
        }
    }
    let [write, read, random] = [0, 1, 2].map(|place| Medians {
        ours: ours.get_mut(place).map_or(0.0, |all| median(all)),
        baseline: theirs.get_mut(place).map_or(0.0, |all| median(all)),
    });
    Ok([
        row("cpu_bench.disk_write", "MB/s", write, "fio rw=write direct"),
        row("cpu_bench.disk_read", "MB/s", read, "fio rw=read direct"),
        row(
            "cpu_bench.disk_random",
            "IO/s",
            random,
            "fio rw=randread direct, 16 jobs",
        ),
    ])
}

/// Writing and reading in order in MB/s, and random reads a second.
fn fio(file: &Path) -> Outcome<[f64; 3]> {
    let run = |kind: &str, block: &str, jobs: usize| -> Outcome<serde_json::Value> {
        let text = printed(
            "fio",
            &[
                "--name=beside".to_owned(),
                format!("--filename={}", file.display()),
                format!("--size={FILE}"),
                "--direct=1".to_owned(),
                "--ioengine=psync".to_owned(),
                "--thread".to_owned(),
                "--group_reporting".to_owned(),
                "--time_based".to_owned(),
                format!("--runtime={}", LENGTH.as_secs()),
                format!("--rw={kind}"),
                format!("--bs={block}"),
                format!("--numjobs={jobs}"),
                "--output-format=json".to_owned(),
            ],
        )?;
        Ok(serde_json::from_str(&text)?)
    };
    let figure = |said: &serde_json::Value, path: &str| {
        let found = said.pointer(path).and_then(serde_json::Value::as_f64);
        found.ok_or_else(|| format!("fio said nothing at {path}"))
    };
    let write = figure(&run("write", "1M", 1)?, "/jobs/0/write/bw_bytes")?;
    let read = figure(&run("read", "1M", 1)?, "/jobs/0/read/bw_bytes")?;
    let random = figure(&run("randread", "4k", disk::DEPTH)?, "/jobs/0/read/iops")?;
    Ok([write / 1e6, read / 1e6, random])
}

fn printed(program: &str, arguments: &[String]) -> Outcome<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{program}: {error}; apt-get install sysbench fio gcc"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program} failed: {said}").into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Exact below 2^53.
fn approximate(whole: u64) -> f64 {
    whole as f64
}
