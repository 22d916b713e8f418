//! One GPU as a Markov chain: its layouts are the states, requests come and leases end at random, and what
//! share of requests is taken follows without any randomness. Compared with the figures of the vectors.

use std::collections::BTreeMap;

use ::mig::chip::Chip;
use ::mig::layout::{Layout, layouts};
use serde::Deserialize;

use super::chip;
use super::order::{Mix, Order, plain, weights};
use crate::Outcome;

/// Figures in the vectors have six digits after the point.
pub(super) const SIX_DIGITS: f64 = 0.6e-6;

const VECTORS: &str = include_str!("../../../../../protocol/mig/tests/data/mig_vectors.json");

/// Most rounds until the probabilities stand still.
const ROUNDS_MAX: usize = 20_000;

/// What is found, beside what the vectors say.
pub(super) struct Compared {
    pub(super) cases: Vec<Case>,
    /// How many figures were compared.
    pub(super) figures: usize,
    /// The furthest of them.
    pub(super) deviation: f64,
}

/// The share of requests taken in one case.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) ours: f64,
    pub(super) lowest: f64,
    pub(super) driver: f64,
    pub(super) optimum: f64,
}

#[derive(Deserialize)]
struct Vectors {
    exact_single_gpu: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    gpu: String,
    mix: String,
    rho: f64,
    results: BTreeMap<String, Figures>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Figures {
    accept: f64,
    slice_accept: f64,
    util: f64,
}

/// What is done in each state with a request for each profile: the state it leads to, or a refusal.
type Policy = Vec<Vec<Option<usize>>>;

/// All layouts of a chip and how they lead to each other.
struct Chain {
    states: Vec<Layout>,
    /// For each state and plain profile: each start that is free, with the state it leads to.
    taken: Vec<Vec<Vec<(u8, usize)>>>,
    /// For each state the states that one lease less leads to.
    ended: Vec<Vec<usize>>,
    sizes: Vec<f64>,
    axis: f64,
}

/// Computes every case of the vectors.
pub(super) fn compare() -> Outcome<Compared> {
    let vectors: Vectors = serde_json::from_str(VECTORS)?;
    let mut found = Compared {
        cases: Vec::new(),
        figures: 0,
        deviation: 0.0,
    };
    for vector in &vectors.exact_single_gpu {
        let chip = chip(&vector.gpu)?;
        let mix = Mix::ALL.into_iter().find(|mix| mix.name() == vector.mix);
        let mix = mix.ok_or_else(|| format!("no mix {}", vector.mix))?;
        let chain = Chain::new(chip)?;
        let rates = chain.rates(chip, mix, vector.rho);
        let mut taken = BTreeMap::new();
        for (name, wanted) in &vector.results {
            let policy = match name.as_str() {
                "low" => chain.in_order(chip, Order::Lowest),
                "drv" => chain.in_order(chip, Order::Driver),
                "hami" => chain.in_order(chip, Order::Hami),
                "lost" => chain.by_loss(chip, mix),
                "opt_count" => chain.optimal(&rates)?,
                other => return Err(format!("no policy {other}").into()),
            };
            let figures = chain.evaluate(&policy, &rates)?;
            for (ours, theirs) in [
                (figures.accept, wanted.accept),
                (figures.slice_accept, wanted.slice_accept),
                (figures.util, wanted.util),
            ] {
                found.figures += 1;
                found.deviation = found.deviation.max((ours - theirs).abs());
            }
            taken.insert(name.as_str(), figures.accept);
        }
        let of = |name| taken.get(name).copied().unwrap_or_default();
        found.cases.push(Case {
            name: format!("{}.{}.{}", vector.gpu, vector.mix, vector.rho),
            ours: of("lost"),
            lowest: of("low"),
            driver: of("drv"),
            optimum: of("opt_count"),
        });
    }
    Ok(found)
}

impl Chain {
    fn new(chip: &Chip) -> Outcome<Self> {
        let states = layouts(chip, &Layout::default(), |profile| !profile.is_marked());
        let numbers: BTreeMap<&Layout, usize> = states
            .iter()
            .enumerate()
            .map(|(number, layout)| (layout, number))
            .collect();
        let number = |layout: &Layout| numbers.get(layout).copied().ok_or("a layout of nowhere");
        let plain = plain(chip);
        let (mut taken, mut ended) = (Vec::new(), Vec::new());
        for layout in &states {
            let mut of_profiles = vec![Vec::new(); plain.len()];
            for placement in layout.addable(chip) {
                let mut larger = layout.clone();
                larger.add(chip, placement)?;
                let rank = plain
                    .iter()
                    .position(|(index, _)| *index == placement.profile);
                if let Some(starts) = rank.and_then(|rank| of_profiles.get_mut(rank)) {
                    starts.push((placement.start, number(&larger)?));
                }
            }
            taken.push(of_profiles);
            let mut fewer = Vec::new();
            for placement in layout.placements() {
                let mut smaller = layout.clone();
                smaller.remove(chip, *placement);
                fewer.push(number(&smaller)?);
            }
            ended.push(fewer);
        }
        Ok(Self {
            sizes: plain
                .iter()
                .map(|(_, profile)| f64::from(profile.size))
                .collect(),
            axis: f64::from(chip.geometry().axis),
            states,
            taken,
            ended,
        })
    }

    /// Requests for each profile in the time that a lease lasts, so that they want `load` of all memory.
    fn rates(&self, chip: &Chip, mix: Mix, load: f64) -> Vec<f64> {
        let (weights, sum) = weights(chip, mix);
        let shares: Vec<f64> = weights
            .iter()
            .map(|weight| f64::from(*weight) / f64::from(sum))
            .collect();
        let size: f64 = shares
            .iter()
            .zip(&self.sizes)
            .map(|(share, size)| share * size)
            .sum();
        shares
            .iter()
            .map(|share| share * load * self.axis / size)
            .collect()
    }

    fn in_order(&self, chip: &Chip, order: Order) -> Policy {
        let plain = plain(chip);
        self.choose(|_, rank, start| {
            plain.get(rank).map_or(0, |(_, profile)| {
                u32::from(order.rank(chip, profile, start))
            })
        })
    }

    /// Least loss with the demand as weights, then the lowest start.
    fn by_loss(&self, chip: &Chip, mix: Mix) -> Policy {
        let (plain, (weights, _)) = (plain(chip), weights(chip, mix));
        self.choose(|state, rank, start| {
            let (Some(layout), Some((_, profile))) = (self.states.get(state), plain.get(rank))
            else {
                return u32::MAX;
            };
            let before = layout.mask();
            let after = before.with(chip.window(profile, start));
            let each = plain.iter().zip(&weights);
            let lost = each.map(|((other, profile), weight)| {
                let fewer = chip.cap(*other, before) - chip.cap(*other, after);
                weight * u32::from(profile.size) * u32::from(fewer)
            });
            lost.sum::<u32>() * 16 + u32::from(start)
        })
    }

    /// The start with the least key, always one where there is one.
    fn choose(&self, key: impl Fn(usize, usize, u8) -> u32) -> Policy {
        let of_profile = |state, rank, starts: &Vec<(u8, usize)>| {
            let least = starts
                .iter()
                .min_by_key(|(start, _)| key(state, rank, *start));
            least.map(|(_, to)| *to)
        };
        let of_state = |(state, ranks): (usize, &Vec<Vec<_>>)| {
            let each = ranks.iter().enumerate();
            each.map(|(rank, starts)| of_profile(state, rank, starts))
                .collect()
        };
        self.taken.iter().enumerate().map(of_state).collect()
    }

    /// The policy that takes most requests of those that choose a start and never refuse what fits: by
    /// relative value iteration on the chain in steps of equal rate.
    fn optimal(&self, rates: &[f64]) -> Outcome<Policy> {
        let most = self.ended.iter().map(Vec::len).max().unwrap_or(0);
        let arrivals: f64 = rates.iter().sum();
        let all = arrivals + f64::from(u32::try_from(most)?);
        let mut worth = vec![0.0; self.states.len()];
        for _ in 0..ROUNDS_MAX {
            let mut next = Vec::with_capacity(worth.len());
            for (state, ranks) in self.taken.iter().enumerate() {
                let here = worth[state];
                // Only differences to staying count.
                let mut gain = 0.0;
                for (starts, rate) in ranks.iter().zip(rates) {
                    let best = starts.iter().map(|(_, to)| 1.0 + worth[*to] - here);
                    gain += rate * best.reduce(f64::max).unwrap_or(0.0);
                }
                gain += self.ended[state]
                    .iter()
                    .map(|to| worth[*to] - here)
                    .sum::<f64>();
                next.push(here + gain / all);
            }
            let steps = || {
                next.iter()
                    .zip(&worth)
                    .map(|(after, before)| after - before)
            };
            let span = steps().fold(f64::MIN, f64::max) - steps().fold(f64::MAX, f64::min);
            let first = next[0];
            worth = next.iter().map(|value| value - first).collect();
            if span < 1e-13 {
                return Ok(self.greedy(&worth));
            }
        }
        Err("the optimum was not found".into())
    }

    /// The start that leads to the best state, by what the states are worth.
    fn greedy(&self, worth: &[f64]) -> Policy {
        let best = |starts: &Vec<(u8, usize)>| {
            let better = |best, to| {
                if worth[to] > worth[best] + 1e-10 {
                    to
                } else {
                    best
                }
            };
            starts.iter().map(|(_, to)| *to).reduce(better)
        };
        let of_state = |ranks: &Vec<Vec<_>>| ranks.iter().map(best).collect();
        self.taken.iter().map(of_state).collect()
    }

    /// The long-run figures of a policy.
    fn evaluate(&self, policy: &Policy, rates: &[f64]) -> Outcome<Figures> {
        let share = self.stationary(policy, rates)?;
        let (mut accept, mut slices, mut used) = (0.0, 0.0, 0.0);
        let offered: f64 = rates.iter().sum();
        let offered_slices: f64 = rates.iter().zip(&self.sizes).map(|(r, s)| r * s).sum();
        for (state, acts) in policy.iter().enumerate() {
            for ((act, rate), size) in acts.iter().zip(rates).zip(&self.sizes) {
                if act.is_some() {
                    accept += share[state] * rate;
                    slices += share[state] * rate * size;
                }
            }
            // In cells, which are units on the chips of the vectors.
            used += share[state] * f64::from(self.states[state].mask().count());
        }
        Ok(Figures {
            accept: accept / offered,
            slice_accept: slices / offered_slices,
            util: used / self.axis,
        })
    }

    /// How much of the time each state has: what flows in flows out, solved state by state until it stands.
    fn stationary(&self, policy: &Policy, rates: &[f64]) -> Outcome<Vec<f64>> {
        let count = self.states.len();
        let (mut inflow, mut outflow) = (vec![Vec::new(); count], vec![0.0; count]);
        for (state, acts) in policy.iter().enumerate() {
            let arrivals = acts
                .iter()
                .zip(rates)
                .filter_map(|(act, rate)| Some(((*act)?, *rate)));
            let ends = self.ended[state].iter().map(|to| (*to, 1.0));
            for (to, rate) in arrivals.chain(ends) {
                inflow[to].push((state, rate));
                outflow[state] += rate;
            }
        }
        let mut share = vec![1.0 / f64::from(u32::try_from(count)?); count];
        for _ in 0..ROUNDS_MAX {
            let mut moved = 0.0_f64;
            for state in 0..count {
                let flow: f64 = inflow[state]
                    .iter()
                    .map(|(from, rate)| share[*from] * rate)
                    .sum();
                let after = flow / outflow[state];
                moved = moved.max((after - share[state]).abs());
                share[state] = after;
            }
            let sum: f64 = share.iter().sum();
            share.iter_mut().for_each(|part| *part /= sum);
            if moved < 1e-15 {
                return Ok(share);
            }
        }
        Err("the probabilities did not stand still".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_the_vectors_is_met() {
        let found = compare().unwrap();
        assert_eq!((found.cases.len(), found.figures), (8, 8 * 5 * 3));
        assert!(found.deviation <= SIX_DIGITS, "{:e}", found.deviation);
    }
}
