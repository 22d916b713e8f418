//! How long one decision takes, in a pool as a busy market leaves it.

use std::hint::black_box;

use ::mig::chip::{Chip, ProfileIndex};
use ::mig::layout::{Layout, Placement};
use ::mig::lost::Spot;

use super::order::{Order, plain};
use super::pool::{Numbers, first_fit};
use crate::clock;

/// Decisions in one round.
const DECISIONS: u32 = 20_000;

/// GPUs with some slices on each, and what is asked for.
pub(super) struct Pool {
    chip: &'static Chip,
    gpus: Vec<Layout>,
    asked: Vec<ProfileIndex>,
}

impl Pool {
    /// `count` GPUs, each with up to five slices at random.
    pub(super) fn new(chip: &'static Chip, count: usize) -> Self {
        let plain = plain(chip);
        let kinds = u32::try_from(plain.len()).unwrap_or(1);
        let mut numbers = Numbers(1);
        let mut draw = |end: u32| usize::try_from(numbers.below(end)).unwrap_or(0);
        let gpu = |draw: &mut dyn FnMut(u32) -> usize| {
            let mut layout = Layout::default();
            for _ in 0..draw(6) {
                let (profile, shape) = plain[draw(kinds)];
                let starts = u32::try_from(shape.starts.len()).unwrap_or(1);
                let start = shape.starts[draw(starts)];
                // What is not free is left out.
                let _ = layout.add(chip, Placement { start, profile });
            }
            layout
        };
        let gpus = (0..count).map(|_| gpu(&mut draw)).collect();
        let asked = (0..1000).map(|_| plain[draw(kinds)].0).collect();
        Self { chip, gpus, asked }
    }

    /// Microseconds of a decision by the rule.
    pub(super) fn by_rule(&self) -> f64 {
        self.time(|pool, profile| self.chip.place(pool.iter().enumerate(), profile))
    }

    pub(super) fn by_lowest(&self) -> f64 {
        self.time(first_fit(self.chip, Order::Lowest))
    }

    pub(super) fn by_driver(&self) -> f64 {
        self.time(first_fit(self.chip, Order::Driver))
    }

    fn time(&self, decide: impl Fn(&[Layout], ProfileIndex) -> Option<Spot>) -> f64 {
        let mut asked = self.asked.iter().cycle();
        let began = clock::on_cpu();
        for _ in 0..DECISIONS {
            if let Some(profile) = asked.next() {
                black_box(decide(black_box(&self.gpus), *profile));
            }
        }
        let took = clock::on_cpu().saturating_sub(began);
        took.as_secs_f64() * 1_000_000.0 / f64::from(DECISIONS)
    }
}
