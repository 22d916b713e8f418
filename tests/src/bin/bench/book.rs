//! The broker's index of offers on markets of 100 000 and a million rows, beside SQLite and a plain scan.
//!
//! One thread does all of it, as in the broker, and its CPU time is what counts: other programs on the machine
//! do not. Answers are checked before anything is timed. Must not sign or send anything.

mod change;
mod database;
pub(crate) mod resting;
mod scan;
mod workload;

use std::cell::RefCell;
use std::cmp::Ordering;
use std::hint::black_box;

use broker::core::book::index::{
    Explained, Index, Query, Row as IndexRow, Rows, Slot, Subject, Test, UNKNOWN,
};

use crate::report::Row;
use crate::rounds::{Medians, by_turns, median};
use crate::{Outcome, clock};
use change::Changing;
use database::Database;
use workload::{LAYOUT, Offered, Workload, checksum, market};

const LARGE: usize = 1_000_000;
const SMALL: usize = 100_000;

/// What `gen_market.py` says that the answers to the demands of seed 1 add up to.
const LARGE_SUM: u64 = 0xf15b_a5c0_4b87_6a2d;
const SMALL_SUM: u64 = 0x25fd_862c_62b9_0077;

/// Changes in one round, and how many come between two searches.
const CHANGES: usize = 20_000;
const BETWEEN: usize = 500;

/// Nothing is outside the columns, there are no extras, and no two offers are equal in price and tie.
struct Columns;

impl Rows for Columns {
    fn extra(&self, _: usize, _: i64) -> i64 {
        0
    }

    fn holds(&self, _: usize, _: Slot) -> bool {
        false
    }

    fn compare(&self, left: Slot, right: Slot) -> Ordering {
        left.cmp(&right)
    }
}

/// Searches of a million rows.
pub(crate) fn measure_large() -> Outcome<Vec<Row>> {
    let [middle, slow] = measure_searches(LARGE, LARGE_SUM)?;
    Ok(vec![
        middle.goal("at most 40 µs", |row| row.ours() <= 40.0),
        slow.goal("at most 1 ms", |row| row.ours() <= 1000.0),
    ])
}

/// Searches of a hundred thousand rows.
pub(crate) fn measure_small() -> Outcome<Vec<Row>> {
    let [middle, slow] = measure_searches(SMALL, SMALL_SUM)?;
    Ok(vec![
        middle.goal("at most 20 µs", |row| row.ours() <= 20.0),
        slow.goal("at most 150 µs", |row| row.ours() <= 150.0),
    ])
}

/// The median and the slowest hundredth of all demands, with exact counts and the first 20.
fn measure_searches(count: usize, sum: u64) -> Outcome<[Row; 2]> {
    let market = market(count)?;
    let (index, _) = built(&market.offers)?;
    let database = Database::new(&market.offers)?;
    check(market, &index, &database, sum)?;
    let slow = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let medians = by_turns(
        || {
            let mut times = ask_all(market, |query| {
                black_box(index.search(query, &Columns));
                Ok(())
            })?;
            slow.0.borrow_mut().push(slowest_hundredth(&mut times));
            Ok(median(&mut times))
        },
        || {
            let mut times = ask_all(market, |query| {
                black_box(database.search(query)?);
                Ok(())
            })?;
            slow.1.borrow_mut().push(slowest_hundredth(&mut times));
            Ok(median(&mut times))
        },
    )?;
    let slow = Medians {
        ours: median(&mut slow.0.borrow_mut()),
        baseline: median(&mut slow.1.borrow_mut()),
    };
    let mut scanned = ask_all(market, |query| {
        black_box(scan::search(&market.offers, query));
        Ok(())
    })?;
    let scanned = (median(&mut scanned), slowest_hundredth(&mut scanned));
    let name = if count == LARGE {
        "search_1m"
    } else {
        "search_100k"
    };
    let beside = "SQLite, two covering indexes, which counts nothing";
    Ok([
        Row::new(name, "µs CPU", medians)
            .beside(beside)
            .note(format!(
                "a plain scan of all rows, with the count: {:.0} µs",
                scanned.0
            ))
            .note(by_kind(market, &index)?),
        Row::new(format!("{name}.p99"), "µs CPU", slow)
            .beside(beside)
            .note(format!(
                "a plain scan of all rows, with the count: {:.0} µs",
                scanned.1
            )),
    ])
}

/// Why nothing matched, for every demand at a price that nobody asks.
pub(crate) fn measure_why() -> Outcome<Vec<Row>> {
    let market = market(LARGE)?;
    let (index, _) = built(&market.offers)?;
    let impossible: Vec<Query> = market
        .demands
        .iter()
        .map(|demand| at_no_price(&demand.query))
        .collect();
    for query in impossible.iter().step_by(10) {
        let Explained { tests, nearest } = index.explain(query, &Columns);
        if (tests, nearest.map(Slot::number)) != scan::explain(&market.offers, query) {
            return Err(format!("another explanation than a scan's of {query:?}").into());
        }
    }
    let slow = RefCell::new(Vec::new());
    let mut scanned = impossible.iter().cycle();
    let medians = by_turns(
        || {
            let mut times = Vec::new();
            for query in &impossible {
                times.push(
                    microseconds(|| drop(black_box(index.explain(query, &Columns)))) / 1000.0,
                );
            }
            slow.borrow_mut().push(slowest_hundredth(&mut times));
            Ok(median(&mut times))
        },
        || {
            let query = scanned.next().ok_or("no demand")?;
            Ok(microseconds(|| drop(black_box(scan::explain(&market.offers, query)))) / 1000.0)
        },
    )?;
    let slow = Medians {
        ours: median(&mut slow.borrow_mut()),
        baseline: medians.baseline,
    };
    let row = |name, medians| {
        Row::new(name, "ms CPU", medians)
            .beside("a plain scan that explains")
            .goal("at most 3 ms", |row| row.ours() <= 3.0)
    };
    Ok(vec![
        row("search_why", medians),
        row("search_why.p99", slow),
    ])
}

/// Bytes that a row takes in the index, of which nothing is shared with the offers themselves.
pub(crate) fn measure_memory() -> Outcome<Vec<Row>> {
    let market = market(LARGE)?;
    let (index, _) = built(&market.offers)?;
    let each = |bytes: usize| {
        Ok::<f64, std::num::TryFromIntError>(
            f64::from(u32::try_from(bytes)?) / f64::from(u32::try_from(LARGE)?),
        )
    };
    let ours = each(index.bytes())?;
    let baseline = each(Database::new(&market.offers)?.bytes()?)?;
    let row = Row::new("book_memory", "bytes", Medians { ours, baseline })
        .beside("SQLite in memory, two covering indexes")
        .goal("at most 200 bytes a row", |row| row.ours() <= 200.0)
        .once();
    Ok(vec![row])
}

/// Changes of prices, of what is free, of what is there, with searches in between.
pub(crate) fn measure_update() -> Outcome<Vec<Row>> {
    let market = market(LARGE)?;
    let (index, slots) = built(&market.offers)?;
    let mut book = Changing::new(index, slots, market.offers.clone());
    let mut database = Database::new(&market.offers)?;
    let mut demands = market.demands.iter().cycle();
    let searches = RefCell::new(Vec::new());
    let mut number = 0;
    let medians = by_turns(
        || {
            let mut total = 0.0;
            for _ in 0..CHANGES / BETWEEN {
                total += microseconds(|| (0..BETWEEN).for_each(|_| book.change()));
                let query = &demands.next().ok_or("no demand")?.query;
                let search = || drop(black_box(book.index.search(query, &Columns)));
                searches.borrow_mut().push(microseconds(search));
            }
            Ok(total / f64::from(u32::try_from(CHANGES)?))
        },
        || {
            number += 1;
            let few = (0..2000).map(|step| {
                (
                    (step * 499 + number) % LARGE,
                    1000 + i64::from(number % 7 == 0),
                )
            });
            let few: Vec<(usize, i64)> = few.collect();
            let mut changed = Ok(());
            let took = microseconds(|| changed = database.reprice(&few));
            changed?;
            Ok(took / 2000.0)
        },
    )?;
    let mut single: Vec<f64> = (0..50_000)
        .map(|_| microseconds(|| book.change()))
        .collect();
    let longest = single.iter().copied().fold(0.0, f64::max);
    let slow = slowest_hundredth(&mut single);
    let row = Row::new("book_update", "µs CPU", medians)
        .beside("an update in SQLite, 2000 to a transaction")
        .goal("at most 1 µs", |row| row.ours() <= 1.0)
        .note(format!(
            "one by one: the slowest hundredth from {slow:.1} µs, the longest {:.1} ms",
            longest / 1000.0
        ))
        .note(format!(
            "searches in between: {:.0} µs in the median",
            median(&mut searches.borrow_mut())
        ))
        .note(format!(
            "afterwards a row takes {} bytes",
            book.index.bytes() / LARGE
        ));
    Ok(vec![row])
}

/// An index of these offers, and their slots.
fn built(offers: &[Offered]) -> Outcome<(Index, Vec<Slot>)> {
    let mut index = Index::new(LAYOUT);
    let mut slots = Vec::with_capacity(offers.len());
    for (id, values) in offers.iter().enumerate() {
        let tie = u64::try_from(id)?;
        slots.push(index.insert(&IndexRow { values, tie }, true));
    }
    Ok((index, slots))
}

/// That the index answers as the generator says, and the database as the index.
fn check(market: &Workload, index: &Index, database: &Database, sum: u64) -> Outcome<()> {
    let mut answers = Vec::new();
    for demand in &market.demands {
        let matches = index.search(&demand.query, &Columns);
        let first: Vec<usize> = matches.first.into_iter().map(Slot::number).collect();
        if database.search(&demand.query)? != first {
            return Err(format!("SQLite answers demand {} otherwise", demand.id).into());
        }
        answers.push((demand.id, matches.count, first));
    }
    let found = checksum(&answers)?;
    if found != sum {
        return Err(format!("the answers add up to {found:016x}, not {sum:016x}").into());
    }
    Ok(())
}

/// Microseconds of each demand.
fn ask_all(market: &Workload, ask: impl Fn(&Query) -> Outcome<()>) -> Outcome<Vec<f64>> {
    let mut times = Vec::with_capacity(market.demands.len());
    for demand in &market.demands {
        let mut asked = Ok(());
        times.push(microseconds(|| asked = ask(&demand.query)));
        asked?;
    }
    Ok(times)
}

fn by_kind(market: &Workload, index: &Index) -> Outcome<String> {
    let mut kinds: Vec<&str> = market.demands.iter().map(|demand| &*demand.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut words = Vec::new();
    for kind in kinds {
        let of_kind = market.demands.iter().filter(|demand| demand.kind == kind);
        let mut times: Vec<f64> = of_kind
            .map(|demand| microseconds(|| drop(black_box(index.search(&demand.query, &Columns)))))
            .collect();
        words.push(format!("{kind} {:.1}", median(&mut times)));
    }
    Ok(format!("medians by kind, µs: {}", words.join(", ")))
}

/// The query at a price below every other.
fn at_no_price(query: &Query) -> Query {
    let mut tests: Vec<Test> = query.tests.clone();
    tests.retain(|test| test.subject != Subject::Total);
    tests.push(Test {
        subject: Subject::Total,
        ranges: vec![(UNKNOWN + 1, 0)],
    });
    Query {
        tests,
        ..query.clone()
    }
}

/// CPU time of `work` on this thread.
fn microseconds(work: impl FnOnce()) -> f64 {
    let began = clock::on_cpu();
    work();
    clock::on_cpu().saturating_sub(began).as_secs_f64() * 1_000_000.0
}

/// The time that 99 of 100 do not exceed.
fn slowest_hundredth(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let place = (times.len() * 99).div_ceil(100).saturating_sub(1);
    times.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksums that `gen_market.py` states for its two smaller markets.
    #[test]
    fn answers_add_up_to_what_the_generator_says() {
        for (count, sum) in [
            (1000, 0x79c8_b9fb_1bba_31a9),
            (10_000, 0xdd60_2fa8_e888_1d80),
        ] {
            let market = workload::generate(count).unwrap();
            let (index, _) = built(&market.offers).unwrap();
            let database = Database::new(&market.offers).unwrap();
            check(&market, &index, &database, sum).unwrap();
            for demand in market.demands.iter().step_by(7) {
                let query = at_no_price(&demand.query);
                let Explained { tests, nearest } = index.explain(&query, &Columns);
                let scanned = scan::explain(&market.offers, &query);
                assert_eq!((tests, nearest.map(Slot::number)), scanned);
            }
        }
    }

    #[test]
    fn the_slowest_hundredth_is_the_99th_of_a_hundred() {
        let mut times: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert!((slowest_hundredth(&mut times) - 99.0).abs() < f64::EPSILON);
        assert!(slowest_hundredth(&mut []).abs() < f64::EPSILON);
    }
}
