//! Orders that wait for any offer that matches, found from the offer: who is first in line for a portion of it.
//!
//! The index of offers turned around. A row is an order, or an order for one of the models that it names; its
//! columns are the least and the most that its filter lets a field be, and its price is its limit below zero, so
//! that the highest comes first. What these bounds let through is held against the whole filter, in line, until
//! enough is found. Must not know leases, money, or what is free.

use super::columns::{plain_value, ranges};
use super::index::{Index, Layout, Order, Query, Range, Row, Rows, Slot, Subject, Test, UNKNOWN};
pub use crate::core::waiting::Rank;
use protocol::filter::{
    Comparison, Facts, Field, Filter, Kind, ModelName, Prepared, Term, Test as Condition, Value,
    fields,
};
use protocol::ids::Digest;
use protocol::terms::Need;
use protocol::units::PricePerHour;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// No bound below, and none above.
const LOWEST: i64 = UNKNOWN + 1;
const HIGHEST: i64 = i64::MAX - 1;

/// The columns in front of those of the bounds.
const MODEL: usize = 0;
const COUNT: usize = 1;
const LIMIT: usize = 2;
const BOUNDS: usize = 3;

/// The number of no model: of orders that name none, or not in a way that can be looked up.
const ANY_MODEL: i64 = 0;

/// How many of those in line are looked at first; then eight times as many, and so on.
const FEW: usize = 8;

/// As many are worth being kept in order while others are looked at; of more, all are put in order at the end.
const MANY: usize = 512;

/// Orders that wait.
#[derive(Debug)]
pub struct Bids {
    index: Index,
    waiting: BTreeMap<Rank, Bid>,
    /// Whose row each is, by the number of the slot.
    ranks: Vec<Option<Rank>>,
    /// How many rows have a bound, by column.
    bounded: Vec<usize>,
}

#[derive(Debug)]
struct Bid {
    filter: Prepared,
    rows: Vec<(Slot, Vec<i64>)>,
}

impl Default for Bids {
    fn default() -> Self {
        Self {
            index: Index::new(layout()),
            waiting: BTreeMap::new(),
            ranks: Vec::new(),
            bounded: vec![0; layout().columns],
        }
    }
}

impl Bids {
    /// Takes an order in that waits for `gpus` GPUs of any offer that meets `filter`, priced with `need`.
    pub fn insert(&mut self, rank: Rank, gpus: u16, filter: &Filter, need: Need) {
        self.remove(rank);
        let bounds = bounds(filter);
        let mut rows = Vec::new();
        for model in models_of(filter) {
            let limit = i64::try_from(rank.bid.0.0).unwrap_or(HIGHEST);
            let mut values = vec![model, gpus.into(), -limit];
            values.extend_from_slice(&bounds);
            self.count_bounds(&values, true);
            let row = Row {
                values: &values,
                tie: rank.number,
            };
            let slot = self.index.insert(&row, true);
            if self.ranks.len() <= slot.number() {
                self.ranks.resize(slot.number() + 1, None);
            }
            if let Some(place) = self.ranks.get_mut(slot.number()) {
                *place = Some(rank);
            }
            rows.push((slot, values));
        }
        let filter = filter.prepare(need);
        self.waiting.insert(rank, Bid { filter, rows });
    }

    /// Forgets an order.
    pub fn remove(&mut self, rank: Rank) {
        for (slot, values) in self
            .waiting
            .remove(&rank)
            .into_iter()
            .flat_map(|bid| bid.rows)
        {
            self.index.remove(slot);
            self.count_bounds(&values, false);
            if let Some(place) = self.ranks.get_mut(slot.number()) {
                *place = None;
            }
        }
    }

    /// How many orders wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The first `wanted` orders in line that a portion with these facts may serve, and that pay at least `least`
    /// for each GPU and hour.
    #[must_use]
    pub fn in_line(&self, facts: &Facts, least: PricePerHour, wanted: usize) -> Vec<Rank> {
        let mut query = self.query(facts, least);
        if wanted > MANY {
            (query.order, query.wanted) = (Order::Outside, usize::MAX);
        }
        loop {
            let candidates = self.index.search(&query, &Lines(&self.ranks)).first;
            let is_all = candidates.len() < query.wanted;
            let mut found: Vec<Rank> = candidates
                .into_iter()
                .filter_map(|slot| self.ranks.get(slot.number()).copied().flatten())
                .filter(|rank| {
                    let bid = self.waiting.get(rank);
                    bid.is_some_and(|bid| bid.filter.matches(facts))
                })
                .collect();
            // An order has a row for each model that it names, and two may be names of this one.
            found.dedup();
            if is_all || found.len() >= wanted {
                found.truncate(wanted);
                return found;
            }
            (query.order, query.wanted) = if query.wanted < MANY {
                (Order::Total, query.wanted * 8)
            } else {
                (Order::Outside, usize::MAX)
            };
        }
    }

    fn query(&self, facts: &Facts, least: PricePerHour) -> Query {
        let base = facts.model().base();
        let short = base
            .strip_prefix("rtx")
            .or_else(|| base.strip_prefix("gtx"));
        let named = [Some(base), short].into_iter().flatten();
        let mut models: Vec<Range> = named
            .map(model)
            .chain([ANY_MODEL])
            .map(|number| (number, number))
            .collect();
        models.sort_unstable();
        models.dedup();
        let count = i64::from(facts.gpus());
        let least = i64::try_from(least.0).unwrap_or(HIGHEST);
        let mut tests = vec![
            column(MODEL, models),
            column(COUNT, vec![(count, count)]),
            column(LIMIT, vec![(LOWEST, -least)]),
        ];
        for (field, (low, high)) in
            bounded_fields().zip((BOUNDS..).step_by(2).map(|low| (low, low + 1)))
        {
            let is_bounded = |column: usize| self.bounded.get(column).is_some_and(|rows| *rows > 0);
            if !is_bounded(low) && !is_bounded(high) {
                continue;
            }
            let value = plain_value(facts, field);
            // What is not known meets no condition.
            let (lows, highs) = if value == UNKNOWN {
                ((LOWEST, LOWEST), (HIGHEST, HIGHEST))
            } else {
                ((LOWEST, value), (value, i64::MAX))
            };
            if is_bounded(low) {
                tests.push(column(low, vec![lows]));
            }
            if is_bounded(high) {
                tests.push(column(high, vec![highs]));
            }
        }
        Query {
            scope: Vec::new(),
            sees_all: false,
            tests,
            order: Order::Total,
            wanted: FEW,
        }
    }

    fn count_bounds(&mut self, values: &[i64], is_added: bool) {
        for (column, (value, rows)) in values
            .iter()
            .zip(&mut self.bounded)
            .enumerate()
            .skip(BOUNDS)
        {
            let none = if is_low(column) { LOWEST } else { HIGHEST };
            if *value != none {
                *rows = if is_added {
                    *rows + 1
                } else {
                    rows.saturating_sub(1)
                };
            }
        }
    }
}

/// Orders by their place in line.
struct Lines<'a>(&'a [Option<Rank>]);

impl Rows for Lines<'_> {
    fn extra(&self, _: usize, _: i64) -> i64 {
        0
    }

    fn holds(&self, _: usize, _: Slot) -> bool {
        true
    }

    fn compare(&self, left: Slot, right: Slot) -> Ordering {
        let rank = |slot: Slot| (self.0.get(slot.number()), slot);
        rank(left).cmp(&rank(right))
    }
}

fn layout() -> Layout {
    Layout {
        columns: BOUNDS + 2 * bounded_fields().count(),
        model: MODEL,
        count: COUNT,
        price: LIMIT,
        extras: &[],
    }
}

/// The fields that bounds are kept of: all that are no names, ids or the price, which depends on the order's disk.
fn bounded_fields() -> impl Iterator<Item = Field> {
    let fields = fields().iter().filter(|info| match info.kind {
        Kind::Number(_) | Kind::Flag | Kind::Version | Kind::Capability | Kind::Choice(_) => {
            info.field != Field::DphTotal
        }
        Kind::Model | Kind::Words | Kind::Profile | Kind::Id(_) => false,
    });
    fields.map(|info| info.field)
}

const fn is_low(column: usize) -> bool {
    (column - BOUNDS).is_multiple_of(2)
}

/// For each field the least and the most that a filter lets it be.
fn bounds(filter: &Filter) -> Vec<i64> {
    let mut bounds = Vec::new();
    for field in bounded_fields() {
        let (mut low, mut high) = (LOWEST, HIGHEST);
        for term in filter.terms.iter().filter(|term| term.field() == field) {
            let Some(ranges) = ranges(term) else {
                continue;
            };
            if let (Some(first), Some(last)) = (ranges.first(), ranges.last()) {
                low = low.max(first.0);
                high = high.min(last.1);
            }
        }
        bounds.extend([low, high]);
    }
    bounds
}

/// The models that one term of a filter names, or that of orders that name none.
fn models_of(filter: &Filter) -> Vec<i64> {
    let Some(names) = filter.terms.iter().find_map(names_of) else {
        return vec![ANY_MODEL];
    };
    let asked = names
        .into_iter()
        .map(|name| model(ModelName::asked(name).base()));
    let mut models: Vec<i64> = asked.collect();
    models.sort_unstable();
    models.dedup();
    models
}

/// The number of a model: a digest, so that no list of models is kept. Two with the same one would only be looked at
/// together.
fn model(base: &str) -> i64 {
    let digest = Digest::of(base.as_bytes());
    let bytes = digest.as_bytes().first_chunk().copied().unwrap_or_default();
    i64::from_be_bytes(bytes).saturating_abs().clamp(1, HIGHEST)
}

/// The names of a term that wants one of some models.
fn names_of(term: &Term) -> Option<Vec<&str>> {
    if term.field() != Field::GpuName {
        return None;
    }
    let values: &[Value] = match term.test() {
        Condition::Compare(Comparison::Equal, value) => std::slice::from_ref(value),
        Condition::In(values) => values,
        Condition::Compare(..) | Condition::NotIn(_) => return None,
    };
    values
        .iter()
        .map(|value| match value {
            Value::Text(text) => Some(text.as_str()),
            Value::Number(_) | Value::Flag(_) | Value::Version(_) => None,
        })
        .collect()
}

fn column(column: usize, ranges: Vec<Range>) -> Test {
    Test {
        subject: Subject::Column(column),
        ranges,
    }
}
