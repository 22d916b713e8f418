//! What an index holds and what it is asked: rows of columns, tests on them, an order.
//!
//! Values alone. Must not know how rows are kept.

use super::scale::Range;
#[cfg(doc)]
use super::scale::UNKNOWN;
use std::cmp::Ordering;

/// Which columns there are, and which of them the index itself works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// How many columns a row has.
    pub columns: usize,
    /// The column of the GPU model, as a number for each.
    pub model: usize,
    /// The column of how many GPUs the row sells.
    pub count: usize,
    /// The column of the price of an hour, without extras.
    pub price: usize,
    /// The columns of the prices of what an hour may cost beside: see [`Rows::extra`].
    pub extras: &'static [usize],
}

/// What a row has: a value for each column, [`UNKNOWN`] where it is not known.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The values, in the order of the columns.
    pub values: &'a [i64],
    /// Orders rows of the same price; what is equal in both is ordered by [`Rows::compare`].
    pub tie: u64,
}

/// A row of an index, while it is in there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    /// No slot is less.
    pub(super) const FIRST: Self = Self(0);
    /// The slot of no row.
    pub(super) const NOWHERE: Self = Self(u32::MAX);

    /// The slot that is given out as the `number`th.
    pub(super) fn nth(number: usize) -> Self {
        Self(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// The number of it, for lists beside the index: numbers are used again, so they stay small.
    #[must_use]
    pub fn number(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// What a test is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A column.
    Column(usize),
    /// The price of an hour with extras.
    Total,
    /// Something that the index does not hold: see [`Rows::holds`].
    Outside,
}

/// A condition: the subject's value is known and in one of the ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// What it is about.
    pub subject: Subject,
    /// Rising, without overlap; nothing for what is outside.
    pub ranges: Vec<Range>,
}

/// What matches are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Price with extras, tie, [`Rows::compare`].
    Total,
    /// A column, then as above. What is not known comes last.
    Column {
        /// Which.
        column: usize,
        /// Whether the largest comes first.
        is_descending: bool,
    },
    /// [`Rows::compare`] alone.
    Outside,
}

/// What is searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Which rows are looked at: those that meet all of these, which are about columns. No explanation counts others.
    pub scope: Vec<Test>,
    /// Whether rows that are not shown are looked at, too.
    pub sees_all: bool,
    /// What must hold of them.
    pub tests: Vec<Test>,
    /// What comes first.
    pub order: Order,
    /// How many of the first are wanted.
    pub wanted: usize,
}

/// What an index asks of whoever knows the rows.
pub trait Rows {
    /// What the asked amount of an extra, by its place in [`Layout::extras`], costs in an hour at a price: nothing
    /// at none, and never less at a higher one.
    fn extra(&self, which: usize, price: i64) -> i64;
    /// Whether a row meets the test at this place of the query.
    fn holds(&self, test: usize, slot: Slot) -> bool;
    /// Which of two rows comes first.
    fn compare(&self, left: Slot, right: Slot) -> Ordering;
}

/// The matches of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matches {
    /// How many there are.
    pub count: usize,
    /// The first of them, in order.
    pub first: Vec<Slot>,
}
