//! Rounds and medians: ours and the baseline take turns, so that a busy minute hits both.
//!
//! Must not know what is measured.

use crate::Outcome;

/// How often each side of a row is measured.
pub(crate) const ROUNDS: usize = 20;

/// The medians of both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Medians {
    pub(crate) ours: f64,
    pub(crate) baseline: f64,
}

/// Measures `ours` and `baseline` by turns, [`ROUNDS`] times each, after one turn that is not counted.
pub(crate) fn by_turns(
    mut ours: impl FnMut() -> Outcome<f64>,
    mut baseline: impl FnMut() -> Outcome<f64>,
) -> Outcome<Medians> {
    let mut sides = (Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS));
    ours()?;
    baseline()?;
    for round in 0..ROUNDS {
        // Who goes first changes, so that neither always finds the other's warm caches.
        if round % 2 == 0 {
            sides.0.push(ours()?);
            sides.1.push(baseline()?);
        } else {
            sides.1.push(baseline()?);
            sides.0.push(ours()?);
        }
    }
    Ok(Medians {
        ours: median(&mut sides.0),
        baseline: median(&mut sides.1),
    })
}

/// The middle value, or the mean of the two in the middle; 0 of none.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (
        values.get(middle),
        middle.checked_sub(1).and_then(|below| values.get(below)),
    ) {
        (Some(upper), Some(lower)) if values.len().is_multiple_of(2) => (lower + upper) / 2.0,
        (Some(middle), _) => *middle,
        (None, _) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert!((median(&mut [3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(&mut [4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < f64::EPSILON);
        assert!(median(&mut []).abs() < f64::EPSILON);
    }
}
