//! What it costs to check one row of a proof of hardware: the right matrix of its tile, generated and multiplied
//! once.
//!
//! Must not measure a prover; that takes the hardware.

use std::hint::black_box;

use audit::message::Seed;
use audit::row;
use protocol::units::Millis;
use protocol::verify::Parameters;

use crate::report::Row;
use crate::rounds::by_turns;
use crate::{Outcome, clock};

/// The largest tile, with an inner length above that of every class.
const PARAMETERS: Parameters = Parameters {
    tile_side: 8192,
    inner: 65_536,
    tiles: 1,
    rounds: 1,
    audits: 1,
    fill_max: Millis(0),
    pass_max: Millis(0),
};

/// Seconds of one core for one audited row, beside a product that keeps a column whole and multiplies one number
/// after the other.
pub(crate) fn measure() -> Outcome<Vec<Row>> {
    let medians = by_turns(
        || seconds(|seed| row::rows(seed, &PARAMETERS, 0, &[1]).len()),
        || seconds(naive),
    )?;
    let row = Row::new("audit", "s CPU", medians)
        .beside("the same row, number by number")
        .goal("at most 0.3 s on one core", |row| row.ours() <= 0.3);
    Ok(vec![row])
}

fn seconds<T>(mut work: impl FnMut(&Seed) -> T) -> Outcome<f64> {
    let began = clock::on_cpu();
    black_box(work(black_box(&Seed([7; 32]))));
    Ok((clock::on_cpu().saturating_sub(began)).as_secs_f64())
}

fn naive(seed: &Seed) -> Vec<i64> {
    let left = row::left_row(seed, &PARAMETERS, 0, 1);
    let product = |column| {
        let right = row::right_column(seed, &PARAMETERS, 0, column);
        let mut sum = 0;
        for (a, b) in left.iter().zip(&right) {
            sum += black_box(i64::from(*a) * i64::from(*b));
        }
        sum
    };
    (0..PARAMETERS.tile_side).map(product).collect()
}
