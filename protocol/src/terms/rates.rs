//! The hourly rate of a lease over its running time: one step for each change of it.
//!
//! A sum over the steps is divided once, so that a lease whose bid changed ten times is rounded down once,
//! like one that never changed.

use crate::bounded::List;
use crate::units::{MicroUsd, Millis, PricePerHour};
use serde::{Deserialize, Serialize};

/// Most steps of one lease.
pub const RATES_MAX: usize = 64;

/// The rate from one moment of a lease's running time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateStep {
    /// From how much running time on.
    pub from: Millis,
    /// What an hour of all its GPUs together costs.
    pub price: PricePerHour,
}

/// The rates of a lease, by running time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates(List<RateStep, RATES_MAX>);

/// Why a rate cannot change again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RatesError {
    /// It changed as often as one lease may.
    #[error("the price of this lease changed {RATES_MAX} times, which is as often as it can")]
    Full,
}

impl Rates {
    /// One rate from the start.
    #[must_use]
    pub fn flat(price: PricePerHour) -> Self {
        Self(List::first([RateStep {
            from: Millis(0),
            price,
        }]))
    }

    /// The steps, by running time.
    #[must_use]
    pub fn steps(&self) -> &[RateStep] {
        &self.0
    }

    /// The rate now: of the last step.
    #[must_use]
    pub fn current(&self) -> PricePerHour {
        self.0.last().map_or(PricePerHour(0), |step| step.price)
    }

    /// The rates with `price` from `from` on. A step that would begin where the last one does takes its place.
    ///
    /// # Errors
    /// When there are [`RATES_MAX`] steps.
    pub fn changed(&self, from: Millis, price: PricePerHour) -> Result<Self, RatesError> {
        let mut steps: Vec<RateStep> = self
            .0
            .iter()
            .copied()
            .filter(|step| step.from < from)
            .collect();
        if steps.last().is_none_or(|last| last.price != price) {
            steps.push(RateStep { from, price });
        }
        List::new(steps).map(Self).map_err(|_| RatesError::Full)
    }

    /// What is due for `running`: `floor(Σ rate × span / 3 600 000)`, spans in milliseconds.
    #[must_use]
    pub fn due(&self, running: Millis) -> MicroUsd {
        let ends = self.0.iter().skip(1).map(|step| step.from).chain([running]);
        let exact = self.0.iter().zip(ends).fold(0_u128, |sum, (step, end)| {
            let span = Millis(end.min(running).0.saturating_sub(step.from.0));
            sum.saturating_add(u128::from(step.price.0) * u128::from(span.0))
        });
        super::floor(exact, 3_600_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Millis = Millis(3_600_000);

    #[test]
    fn a_rate_that_changes_is_rounded_once() {
        // 399 999 for 1 s and 399 999 for another: floor(222.221…) and not 111 + 111 - 1.
        let rates = Rates::flat(PricePerHour(399_999));
        let again = rates.changed(Millis(1000), PricePerHour(399_999)).unwrap();
        assert_eq!(again.due(Millis(2000)), MicroUsd(222));
        let two = rates.changed(Millis(1000), PricePerHour(800_000)).unwrap();
        // (399 999 × 1 + 800 000 × 1) / 3600 = 333.333…
        assert_eq!(two.due(Millis(2000)), MicroUsd(333));
        assert_eq!(two.due(Millis(1000)), MicroUsd(111));
        assert_eq!(two.due(Millis(500)), MicroUsd(55));
    }

    #[test]
    fn a_waived_stretch_costs_nothing_and_the_next_costs_its_rate() {
        let rates = Rates::flat(PricePerHour(160_000));
        let waived = rates.changed(Millis(0), PricePerHour(0)).unwrap();
        let on = waived.changed(HOUR, PricePerHour(160_000)).unwrap();
        assert_eq!(on.due(HOUR), MicroUsd::ZERO);
        assert_eq!(on.due(Millis(7_200_000)), MicroUsd(160_000));
        assert_eq!(on.current(), PricePerHour(160_000));
    }

    #[test]
    fn a_rate_changes_only_so_often() {
        let mut rates = Rates::flat(PricePerHour(1));
        for step in 1..64 {
            rates = rates.changed(Millis(step), PricePerHour(step + 1)).unwrap();
        }
        let once_more = rates.changed(Millis(64), PricePerHour(99));
        assert_eq!(once_more, Err(RatesError::Full));
        assert_eq!(rates.steps().len(), 64);
    }
}
