//! Lets seeded worlds happen, and says what they came to: `world --seed 7`, or `world --seeds 0..1000`.
//!
//! Ends with 1 at the first thing that must never be seen, and names its seed.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "it prints how fast worlds go by"
)]

use feira_tests::world::{Size, Violation, run};
use std::collections::BTreeMap;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "usage: world [--seed N | --seeds A..B] [--brokers N] [--hosts N] [--renters N] [--hours N] [--idle-minutes N]";

fn main() -> ExitCode {
    match asked(std::env::args().skip(1)) {
        Ok((seeds, size)) => match worlds(seeds, size) {
            Ok(()) => ExitCode::SUCCESS,
            Err(violation) => {
                println!("{violation}");
                ExitCode::FAILURE
            }
        },
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn worlds(seeds: Range<u64>, size: Size) -> Result<(), Violation> {
    let begun = Instant::now();
    let (mut hours, mut events, mut leases, mut count) = (0.0, 0, 0, 0_u64);
    let mut faults: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in seeds {
        let outcome = run(seed, size)?;
        hours += outcome.simulated.0 as f64 / 3_600_000.0;
        events += outcome.events;
        leases += outcome.leases;
        count += 1;
        for (kind, number) in outcome.faults {
            *faults.entry(kind).or_default() += number;
        }
    }
    let minutes = begun.elapsed().as_secs_f64() / 60.0;
    println!(
        "{count} worlds, {hours:.0} simulated hours, {events} events, {leases} leases that ran"
    );
    for (kind, number) in faults {
        println!("  {kind:<32}{number:>8}");
    }
    println!("{:.0} simulated hours a minute", hours / minutes.max(1e-9));
    Ok(())
}

fn asked(arguments: impl Iterator<Item = String>) -> Result<(Range<u64>, Size), String> {
    let mut seeds = 0..10;
    let mut size = Size {
        brokers: 2,
        hosts: 5,
        renters: 10,
        hours: 24,
        idle_minutes: 30,
    };
    let mut arguments = arguments;
    while let Some(name) = arguments.next() {
        let value = arguments
            .next()
            .ok_or_else(|| format!("{name} wants a value"))?;
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("{name}: '{value}' is not a number"))
        };
        let count = || Ok::<usize, String>(usize::try_from(number()?).unwrap_or(usize::MAX));
        match &*name {
            "--seed" => seeds = number()?..number()? + 1,
            "--seeds" => seeds = range(&value)?,
            "--brokers" => size.brokers = count()?,
            "--hosts" => size.hosts = count()?,
            "--renters" => size.renters = count()?,
            "--hours" => size.hours = number()?,
            "--idle-minutes" => size.idle_minutes = number()?,
            _ => return Err(format!("there is no {name}")),
        }
    }
    if size.brokers == 0 || size.hosts == 0 || size.renters == 0 {
        return Err("a world has at least one of each".to_owned());
    }
    Ok((seeds, size))
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("'{text}' is not a range of seeds, like 0..1000");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    Ok(from.parse().map_err(|_| wrong())?..to.parse().map_err(|_| wrong())?)
}
