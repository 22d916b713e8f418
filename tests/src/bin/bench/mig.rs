//! The rule that places slices, beside first fit from the lowest start and in the driver's own order: on one
//! GPU exactly, in pools by simulation, and how long a decision takes.

mod exact;
mod order;
mod place;
mod pool;

use std::cell::RefCell;

use ::mig::board::{Cut, boards};
use ::mig::chip::Chip;

use crate::Outcome;
use crate::report::Row;
use crate::rounds::{Medians, by_turns, median};
use exact::Compared;
use pool::{CELLS, Rates, STANDARD_ERROR};

/// The exact figures of one GPU, for each case of the vectors.
pub(crate) fn measure_exact() -> Outcome<Vec<Row>> {
    let Compared {
        cases,
        figures,
        deviation,
    } = exact::compare()?;
    let row = |case: &exact::Case| {
        let medians = Medians {
            ours: case.ours * 100.0,
            baseline: case.lowest * 100.0,
        };
        Row::new(format!("mig_exact.{}", case.name), "% taken", medians)
            .beside("first fit from the lowest start")
            .goal("every figure of the vectors to six digits", |_| {
                deviation <= exact::SIX_DIGITS
            })
            .once()
            .note(format!(
                "in the driver's order {:.4}, the best that there is {:.4}",
                case.driver * 100.0,
                case.optimum * 100.0
            ))
    };
    let mut rows: Vec<Row> = cases.iter().map(row).collect();
    if let Some(last) = rows.pop() {
        rows.push(last.note(format!(
            "{figures} figures, the furthest {deviation:.1e} off"
        )));
    }
    Ok(rows)
}

/// Pools of GPUs, five seeds each.
pub(crate) fn measure_pool() -> Outcome<Vec<Row>> {
    let chip = chip("H100-80")?;
    let mut rows = Vec::new();
    for cell in &CELLS {
        let [lowest, driver, ours] = pool::simulate(chip, cell);
        let medians = Medians {
            ours: ours.taken * 100.0,
            baseline: lowest.taken * 100.0,
        };
        let slices = |rates: &Rates| rates.slices_taken * 100.0;
        let row = Row::new(
            format!("mig_pool.{}.{}.{}", cell.gpus, cell.mix.name(), cell.load),
            "% taken",
            medians,
        )
        .beside("first fit from the lowest start")
        .goal("at least the published figure less 0.24", |row| {
            row.ours() >= cell.published - STANDARD_ERROR
        })
        .once()
        .note(format!(
            "published {:.2}; in the driver's order {:.2}; by slices {:.2}, {:.2} from the lowest start, {:.2} \
             in the driver's order",
            cell.published,
            driver.taken * 100.0,
            slices(&ours),
            slices(&lowest),
            slices(&driver)
        ));
        rows.push(row);
    }
    Ok(rows)
}

/// CPU time of one decision in a pool of a host, of a site and of a market.
pub(crate) fn measure_place() -> Outcome<Vec<Row>> {
    let chip = chip("H100-80")?;
    let mut rows = Vec::new();
    for gpus in [8, 32, 256] {
        let pool = place::Pool::new(chip, gpus);
        let driver = RefCell::new(Vec::new());
        let medians = by_turns(
            || {
                driver.borrow_mut().push(pool.by_driver());
                Ok(pool.by_rule())
            },
            || Ok(pool.by_lowest()),
        )?;
        let driver = median(&mut driver.borrow_mut());
        rows.push(
            Row::new(format!("mig_place.{gpus}"), "µs CPU", medians)
                .beside("first fit from the lowest start")
                .goal("at most 2 µs", |row| row.ours() <= 2.0)
                .note(format!("first fit in the driver's order: {driver:.3} µs")),
        );
    }
    Ok(rows)
}

fn chip(id: &str) -> Outcome<&'static Chip> {
    let board = boards().iter().find(|board| board.id == id);
    match board.map(|board| &board.cut) {
        Some(Cut::Known(chip)) => Ok(chip),
        Some(Cut::Named { .. }) | None => Err(format!("no chip {id}").into()),
    }
}
