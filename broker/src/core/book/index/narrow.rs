//! Which rows of one shelf meet a query's tests: by levels first, and row by row where these cannot decide.
//!
//! Two sets of rows are narrowed together, those that meet all tests for sure and those that may. Must not know
//! what is done with the rows.

use super::scale::{LevelSet, Range, UNKNOWN};
use super::shelf::{GROUPS_MAX, Shelf};
use super::slices::{self, Group, NONE, Slices};
use super::{Layout, Query, Rows, Subject, Test};

/// A bit for each row of a shelf.
pub(super) type Masks = [Group; GROUPS_MAX];

/// A query, and who to ask what the index does not hold.
pub(super) struct Asked<'a, R> {
    pub(super) layout: &'a Layout,
    pub(super) query: &'a Query,
    pub(super) rows: &'a R,
}

/// The rows of a shelf that are left: used again for each, since it is large.
#[derive(Debug)]
pub(super) struct Narrowed {
    possible: Masks,
    /// Those for sure; of no meaning while they are the same as the possible ones.
    sure: Masks,
    is_certain: bool,
    groups: usize,
    levels: Vec<Within>,
}

/// The levels of the rows that meet a test for sure, and of those that may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Within {
    sure: LevelSet,
    possible: LevelSet,
}

impl<R: Rows> Asked<'_, R> {
    /// Narrows to the rows of a shelf that meet all tests, those about its home aside; says whether there may be
    /// any.
    pub(super) fn narrow(&self, shelf: &Shelf, narrowed: &mut Narrowed) -> bool {
        let Query { scope, tests, .. } = self.query;
        narrowed.begin(shelf, self.query.sees_all);
        let scope = scope.iter().map(|test| (0, test));
        self.pass(shelf, scope.chain(tests.iter().enumerate()), narrowed)
    }

    /// Narrows to the rows of a shelf that are looked at.
    pub(super) fn narrow_to_scope(&self, shelf: &Shelf, narrowed: &mut Narrowed) {
        narrowed.begin(shelf, self.query.sees_all);
        let scope = self.query.scope.iter().map(|test| (0, test));
        if !self.pass(shelf, scope, narrowed) {
            narrowed.possible.fill(NONE);
        }
    }

    /// Narrows to those of `rows` that meet the test at `index`.
    pub(super) fn narrow_to(
        &self,
        shelf: &Shelf,
        rows: &Masks,
        index: usize,
        narrowed: &mut Narrowed,
    ) {
        narrowed.possible = *rows;
        narrowed.is_certain = true;
        let Some(test) = self.query.tests.get(index) else {
            return;
        };
        let within = self.within(shelf, test);
        if self.keep(shelf, test, within, narrowed) {
            self.decide(shelf, std::iter::once((index, test)), 1, narrowed);
        }
    }

    /// Narrows to the rows that meet these tests, each with its place in the query; says whether there may be any.
    fn pass<'t>(
        &self,
        shelf: &Shelf,
        tests: impl Iterator<Item = (usize, &'t Test)> + Clone,
        narrowed: &mut Narrowed,
    ) -> bool {
        let has_home = shelf.home().is_some();
        let is_told = |test: &Test| has_home && self.is_of_home(test);
        // All levels first: what is read for them lies far apart, and is waited for at once this way.
        narrowed.levels.clear();
        for (_, test) in tests.clone().filter(|(_, test)| !is_told(test)) {
            let within = self.within(shelf, test);
            if within.possible == 0 {
                return false;
            }
            narrowed.levels.push(within);
        }
        let levels = std::mem::take(&mut narrowed.levels);
        let open_tests = tests
            .clone()
            .enumerate()
            .filter(|(_, (_, test))| !is_told(test));
        let mut open: u64 = 0;
        for ((index, (_, test)), within) in open_tests.zip(&levels) {
            open |= u64::from(self.keep(shelf, test, *within, narrowed)) << index.min(63);
            if narrowed.rows().iter().flatten().all(|word| *word == 0) {
                break;
            }
        }
        narrowed.levels = levels;
        self.decide(shelf, tests, open, narrowed);
        true
    }

    /// How many of the tests that are about a row's home all rows of this one fail.
    pub(super) fn fails_of_home(&self, tests: &[Test], (model, count): (i64, i64)) -> usize {
        let fails = |test: &&Test| {
            let value = match test.subject {
                Subject::Column(column) if column == self.layout.model => model,
                Subject::Column(column) if column == self.layout.count => count,
                Subject::Column(_) | Subject::Total | Subject::Outside => return false,
            };
            !has(&test.ranges, value)
        };
        tests.iter().filter(fails).count()
    }

    /// The price of an hour with extras.
    pub(super) fn total(&self, shelf: &Shelf, row: usize) -> i64 {
        let price = shelf.value(self.layout.price, row);
        let extras = self.layout.extras.iter().enumerate();
        extras
            .map(|(which, column)| self.rows.extra(which, shelf.value(*column, row)))
            .fold(price, i64::saturating_add)
    }

    /// The least and the most that extras cost on a shelf.
    pub(super) fn extra_bounds(&self, shelf: &Shelf) -> Range {
        let extras = self.layout.extras.iter().enumerate();
        extras.fold((0, 0), |(least, most): Range, (which, column)| {
            let (lowest, highest) = shelf.bounds(*column);
            (
                least.saturating_add(self.rows.extra(which, lowest)),
                most.saturating_add(self.rows.extra(which, highest)),
            )
        })
    }

    fn is_of_home(&self, test: &Test) -> bool {
        let Layout { model, count, .. } = *self.layout;
        matches!(test.subject, Subject::Column(column) if column == model || column == count)
    }

    /// The levels whose rows meet a test.
    fn within(&self, shelf: &Shelf, test: &Test) -> Within {
        let (column, least, most) = match test.subject {
            Subject::Column(column) => (column, 0, 0),
            Subject::Total => {
                let (least, most) = self.extra_bounds(shelf);
                (self.layout.price, least, most)
            }
            Subject::Outside => {
                return Within {
                    sure: 0,
                    possible: LevelSet::MAX,
                };
            }
        };
        let mut within = Within {
            sure: 0,
            possible: 0,
        };
        if let Some(column) = shelf.column(column) {
            for range in &test.ranges {
                within.sure |= column.scale.sure(shifted(*range, least, most));
                within.possible |= column.scale.possible(shifted(*range, most, least));
            }
        }
        within
    }

    /// Keeps the rows that may meet a test; says whether some of them may not.
    fn keep(&self, shelf: &Shelf, test: &Test, within: Within, narrowed: &mut Narrowed) -> bool {
        let column = match test.subject {
            Subject::Column(column) => column,
            Subject::Total => self.layout.price,
            Subject::Outside => {
                narrowed.doubt_all();
                return true;
            }
        };
        match shelf.column(column) {
            Some(column) => narrowed.keep(&column.slices, within),
            None => {
                narrowed.possible.fill(NONE);
                false
            }
        }
    }

    /// Drops the rows that fail a test of those whose bit is in `open`.
    fn decide<'t>(
        &self,
        shelf: &Shelf,
        tests: impl Iterator<Item = (usize, &'t Test)> + Clone,
        open: u64,
        narrowed: &mut Narrowed,
    ) {
        if narrowed.is_certain {
            return;
        }
        let mut doubtful = narrowed.possible;
        let words = doubtful.iter_mut().flatten();
        for (doubtful, sure) in words.zip(narrowed.sure.iter().flatten()) {
            *doubtful &= !sure;
        }
        let doubtful = doubtful.get(..narrowed.groups).unwrap_or_default();
        slices::for_each(doubtful, |row| {
            let meets = tests.clone().enumerate().all(|(index, (place, test))| {
                open >> index.min(63) & 1 == 0 || self.holds(shelf, place, test, row)
            });
            if !meets {
                slices::set(&mut narrowed.possible, row, false);
            }
        });
    }

    fn holds(&self, shelf: &Shelf, index: usize, test: &Test, row: usize) -> bool {
        match test.subject {
            Subject::Column(column) => has(&test.ranges, shelf.value(column, row)),
            Subject::Total => has(&test.ranges, self.total(shelf, row)),
            Subject::Outside => self.rows.holds(index, shelf.slot(row)),
        }
    }
}

impl Narrowed {
    pub(super) const fn new() -> Self {
        Self {
            possible: [NONE; GROUPS_MAX],
            sure: [NONE; GROUPS_MAX],
            is_certain: true,
            groups: 0,
            levels: Vec::new(),
        }
    }

    /// The rows that are left.
    pub(super) fn rows(&self) -> &[Group] {
        self.possible.get(..self.groups).unwrap_or_default()
    }

    /// The rows that are left, with room for those of a full shelf.
    pub(super) const fn masks(&self) -> &Masks {
        &self.possible
    }

    fn begin(&mut self, shelf: &Shelf, sees_all: bool) {
        let rows = if sees_all {
            shelf.present()
        } else {
            shelf.shown()
        };
        self.groups = rows.len();
        self.is_certain = true;
        self.possible.fill(NONE);
        for (possible, rows) in self.possible.iter_mut().zip(rows) {
            *possible = *rows;
        }
    }

    /// No row is sure any more.
    fn doubt_all(&mut self) {
        self.is_certain = false;
        self.sure.fill(NONE);
    }

    /// Keeps the rows of these levels; says whether some may be outside.
    fn keep(&mut self, slices: &Slices, within: Within) -> bool {
        let is_open = within.sure != within.possible;
        if !is_open && within.possible == LevelSet::MAX {
            return false;
        }
        if is_open && self.is_certain {
            self.sure = self.possible;
            self.is_certain = false;
        }
        let mut found = [NONE; GROUPS_MAX];
        let found = found.get_mut(..self.groups).unwrap_or_default();
        slices.find(within.possible, found);
        slices::keep(&mut self.possible, found);
        if !self.is_certain {
            if is_open {
                slices.find(within.sure, found);
            }
            slices::keep(&mut self.sure, found);
        }
        is_open
    }
}

/// A range of totals as one of prices, where at least `low` of its lower and `high` of its higher end are extras.
fn shifted((first, last): Range, low: i64, high: i64) -> Range {
    (
        first.saturating_sub(low).max(UNKNOWN + 1),
        last.saturating_sub(high),
    )
}

fn has(ranges: &[Range], value: i64) -> bool {
    ranges
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&value))
}
