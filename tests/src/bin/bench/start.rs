//! From `feira rent --yes` to the container's first output, beside `docker run` of the same image.
//!
//! Both ends are measured alike: from before the program is started to the time that the engine wrote
//! on the container's first line. Must not count the clean-up between rounds.

use std::cell::{Cell, RefCell};
use std::process::Command;
use std::time::{Duration, SystemTime};

use feira_tests::programs::{self, run_within};
use feira_tests::renter::{Renter, containers_of_lease};
use feira_tests::stage::Stage;

use crate::report::Row;
use crate::rounds::{by_turns, median};
use crate::{Outcome, clock};

const COMMAND: Duration = Duration::from_secs(60);

/// One row; its notes are the stages that a rental goes through.
pub(crate) fn measure() -> Outcome<Vec<Row>> {
    let stage = Stage::new();
    let broker = stage.broker("broker", &[]);
    let _host = stage.host("host", &[&broker.address], &["--price", "0.10"]);
    let renter = stage.renter("renter", &[&broker.address]);
    broker.deposit(&renter, "100");
    let image = format!("{}/feira-demo:1", programs::registry());
    docker(&["pull", "--quiet", &image])?;

    let stages = RefCell::new(Vec::new());
    let number = Cell::new(0_u32);
    let medians = by_turns(
        || {
            number.set(number.get() + 1);
            let times = rent(&renter, &format!("bench-{}", number.get()))?;
            stages.borrow_mut().push(times);
            Ok(times.iter().take(STAGES.len() - 1).sum())
        },
        || run_on_the_engine(&image),
    )?;
    let mut row = Row::new("start", "ms", medians)
        .beside("docker run, same image and engine")
        .goal("at most 1.5 times the baseline", |row| row.ratio() <= 1.5);
    for (index, stage) in STAGES.iter().enumerate() {
        let mut times: Vec<f64> = stages.borrow().iter().map(|times| times[index]).collect();
        let time = median(&mut times);
        row = row.note(format!(
            "{time:>6.1} ms {:>4.0} %  {stage}",
            100.0 * time / medians.ours
        ));
    }
    Ok(vec![row])
}

/// What a rental goes through, in order; the last comes after the output that is measured to.
const STAGES: [&str; 4] = [
    "the client starts, connects, searches, asks the registry, signs",
    "the broker matches, the host accepts and has the image",
    "the engine creates and starts the container, which prints",
    "(then: the client is told and ends)",
];

/// Milliseconds of each of [`STAGES`].
fn rent(renter: &Renter, name: &str) -> Outcome<[f64; STAGES.len()]> {
    renter.wait_for_offers(1);
    let began = clock::time_of_day();
    let lease = renter.rent(name, &["--budget", "1"]).ok().json();
    let ended = clock::time_of_day();
    let text = |name: &str| {
        lease[name]
            .as_str()
            .ok_or_else(|| format!("a lease without {name}"))
    };
    let container = containers_of_lease(text("id")?)
        .into_iter()
        .next()
        .ok_or("no container")?;
    let created = docker(&["inspect", "--format", "{{.Created}}", &container])?;
    let printed = first_output(&container)?;
    let moments = [
        began,
        parse(text("ordered_at")?)?,
        parse(created.trim())?,
        printed,
    ];
    let mut times = [0.0; STAGES.len()];
    for (index, time) in times.iter_mut().enumerate() {
        let next = moments.get(index + 1).copied().unwrap_or(ended);
        // The client may be told before the first line is written.
        *time = since(moments[index], next).unwrap_or_default();
    }
    let _ = renter.feira(&["end", name, "--yes"]).ok();
    Ok(times)
}

fn run_on_the_engine(image: &str) -> Outcome<f64> {
    let began = clock::time_of_day();
    let container = docker(&["run", "--detach", image])?;
    let took = since(began, first_output(container.trim())?);
    docker(&["rm", "--force", container.trim()])?;
    took
}

/// When the engine wrote the container's first line.
fn first_output(container: &str) -> Outcome<SystemTime> {
    for _ in 0..500 {
        let lines = docker(&["logs", "--timestamps", container])?;
        if let Some((stamp, _)) = lines.split_once(' ') {
            return parse(stamp);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err("the container printed nothing in 5 s".into())
}

/// Milliseconds from one time of day to a later one.
fn since(began: SystemTime, ended: SystemTime) -> Outcome<f64> {
    Ok(ended.duration_since(began)?.as_secs_f64() * 1000.0)
}

/// The time of day of `2026-11-30T14:05:31.123456789Z`: RFC 3339 in UTC, as the engine writes it.
fn parse(stamp: &str) -> Outcome<SystemTime> {
    let wrong = || format!("the engine wrote the time as '{stamp}'");
    let number = |range: std::ops::Range<usize>| {
        stamp
            .get(range)
            .and_then(|digits| digits.parse::<u64>().ok())
            .ok_or_else(wrong)
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let fraction = stamp
        .get(20..)
        .and_then(|rest| rest.strip_suffix('Z'))
        .ok_or_else(wrong)?;
    let nanoseconds: u64 = format!("{fraction:0<9}").parse().map_err(|_| wrong())?;
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds))
}

/// Days from 1970-01-01, by the rule of the Gregorian calendar, with years that begin in March.
const fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days_in_years = year * 365 + year / 4 - year / 100 + year / 400;
    days_in_years + (153 * month + 2) / 5 + day - 1 - 719_468
}

fn docker(arguments: &[&str]) -> Outcome<String> {
    let said = run_within(Command::new("docker").args(arguments), COMMAND);
    if said.code == 0 {
        Ok(said.out)
    } else {
        Err(said.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_times_are_read() {
        let epoch = SystemTime::UNIX_EPOCH;
        assert_eq!(parse("1970-01-01T00:00:00.0Z").unwrap(), epoch);
        // `date -u -d 2024-02-29T12:00:00 +%s`
        let leap = epoch + Duration::from_secs(1_709_208_000) + Duration::from_millis(250);
        assert_eq!(parse("2024-02-29T12:00:00.25Z").unwrap(), leap);
        assert!(parse("yesterday").is_err());
    }
}
