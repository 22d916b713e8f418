//! Every match counted, and the first of them in order.
//!
//! Homes that cannot match are passed over by model and count; rows are looked at for the order only where they may
//! come before the last one that is kept. Must not change anything.

use super::narrow::{Asked, Narrowed};
use super::scale::UNKNOWN;
use super::shelf::Shelf;
use super::slices::{self, GROUP_ROWS};
use super::{Index, Matches, Order, Query, Rows, Slot, Stack, at};
use std::cmp::Ordering;

/// What a match is ordered by: the asked column, the price with extras, the tie.
type Rank = (i64, i64, u64);

const LEAST: Rank = (i64::MIN, i64::MIN, 0);
const MOST: Rank = (i64::MAX, i64::MAX, u64::MAX);

/// The first matches by rank.
struct First<'a, R> {
    rows: &'a R,
    wanted: usize,
    ranked: Vec<(Rank, Slot)>,
    /// What ranks behind this is not taken.
    bar: Rank,
}

impl Index {
    /// How many shown rows match, and the first of them.
    #[must_use]
    pub fn search(&self, query: &Query, rows: &impl Rows) -> Matches {
        let asked = self.asked(query, rows);
        let mut count = 0;
        let mut all: Vec<Slot> = Vec::new();
        let mut first = First::new(rows, query.wanted);
        let mut narrowed = Narrowed::new();
        for (_, number) in self.stacks_for(&asked).into_iter().flatten() {
            let Some(shelf) = self.shelves.get(at(*number)) else {
                continue;
            };
            if !asked.narrow(shelf, &mut narrowed) {
                continue;
            }
            count += slices::count(narrowed.rows());
            if query.order == Order::Outside {
                slices::for_each(narrowed.rows(), |row| all.push(shelf.slot(row)));
            } else {
                asked.rank(shelf, &narrowed, &mut first);
            }
        }
        let first = if query.order == Order::Outside {
            firsts(all, rows, query.wanted)
        } else {
            first.ranked.into_iter().map(|(_, slot)| slot).collect()
        };
        Matches { count, first }
    }

    pub(super) const fn asked<'a, R: Rows>(
        &'a self,
        query: &'a Query,
        rows: &'a R,
    ) -> Asked<'a, R> {
        Asked {
            layout: &self.layout,
            query,
            rows,
        }
    }

    /// The stacks whose home the query allows, those with the lowest prices first, so that the others are soon
    /// known to hold none of the first.
    fn stacks_for<R: Rows>(&self, asked: &Asked<'_, R>) -> Vec<&Stack> {
        let Query { scope, tests, .. } = asked.query;
        let fails =
            |home| asked.fails_of_home(scope, home) > 0 || asked.fails_of_home(tests, home) > 0;
        let fitting = self
            .homes
            .iter()
            .filter(|(home, _)| !home.is_some_and(fails));
        let mut stacks: Vec<(i64, &Stack)> = fitting
            .map(|(_, stack)| (self.lowest_price(stack), stack))
            .collect();
        stacks.sort_by_key(|(price, _)| *price);
        stacks.into_iter().map(|(_, stack)| stack).collect()
    }

    fn lowest_price(&self, stack: &Stack) -> i64 {
        let shelf = stack
            .first()
            .and_then(|(_, shelf)| self.shelves.get(at(*shelf)));
        shelf.map_or(i64::MAX, |shelf| shelf.bounds(self.layout.price).0)
    }
}

impl<R: Rows> Asked<'_, R> {
    /// Takes those of the matching rows of a shelf into `first` that belong there.
    fn rank(&self, shelf: &Shelf, matching: &Narrowed, first: &mut First<'_, R>) {
        let (least, most) = self.extra_bounds(shelf);
        let asked = self.least_asked(shelf);
        let Some(prices) = shelf.column(self.layout.price) else {
            return;
        };
        let groups = matching.rows().iter().zip(shelf.lows()).enumerate();
        for (index, (rows, low)) in groups {
            if !first.may_take((asked, low.saturating_add(least), 0)) {
                continue;
            }
            slices::for_each(std::slice::from_ref(rows), |row| {
                let row = index * GROUP_ROWS + row;
                let total = if least == most {
                    prices.value(row).saturating_add(least)
                } else {
                    self.total(shelf, row)
                };
                let rank = (self.asked_rank(|column| shelf.value(column, row)), total, 0);
                if first.may_take(rank) {
                    first.take((rank.0, rank.1, shelf.tie(row)), shelf.slot(row));
                }
            });
        }
    }

    /// What is asked first is not less than this on a shelf.
    fn least_asked(&self, shelf: &Shelf) -> i64 {
        match self.query.order {
            Order::Total | Order::Outside => 0,
            Order::Column {
                column,
                is_descending,
            } => {
                let (lowest, highest) = shelf.bounds(column);
                if is_descending {
                    ranked(highest, true)
                } else {
                    lowest
                }
            }
        }
    }

    fn asked_rank(&self, value: impl Fn(usize) -> i64) -> i64 {
        match self.query.order {
            Order::Total | Order::Outside => 0,
            Order::Column {
                column,
                is_descending,
            } => ranked(value(column), is_descending),
        }
    }
}

/// A value so that what comes first is less.
fn ranked(value: i64, is_descending: bool) -> i64 {
    match (value, is_descending) {
        (UNKNOWN, _) => i64::MAX,
        (value, true) => -value,
        (value, false) => value,
    }
}

impl<'a, R: Rows> First<'a, R> {
    fn new(rows: &'a R, wanted: usize) -> Self {
        Self {
            rows,
            wanted,
            ranked: Vec::with_capacity(wanted.min(1024) + 1),
            bar: if wanted == 0 { LEAST } else { MOST },
        }
    }

    /// Whether something that ranks like this, or behind it, may be one of the first.
    fn may_take(&self, rank: Rank) -> bool {
        rank <= self.bar
    }

    fn take(&mut self, rank: Rank, slot: Slot) {
        let before = |(other, at): &(Rank, Slot)| {
            other.cmp(&rank).then_with(|| self.rows.compare(*at, slot)) == Ordering::Less
        };
        let place = self.ranked.partition_point(before);
        if place < self.wanted {
            self.ranked.insert(place, (rank, slot));
            self.ranked.truncate(self.wanted);
            if self.ranked.len() == self.wanted {
                self.bar = self.ranked.last().map_or(MOST, |(rank, _)| *rank);
            }
        }
    }
}

/// The first of `all` by [`Rows::compare`] alone.
fn firsts(mut all: Vec<Slot>, rows: &impl Rows, wanted: usize) -> Vec<Slot> {
    let order = |left: &Slot, right: &Slot| rows.compare(*left, *right);
    if wanted > 0 && wanted < all.len() {
        all.select_nth_unstable_by(wanted, order);
    }
    all.truncate(wanted);
    all.sort_unstable_by(order);
    all
}
