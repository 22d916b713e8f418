//! Why nothing matched: what each test costs alone, and the row that fails the fewest.
//!
//! How many tests a row fails is counted for 64 rows at once, in bits. Must not change anything.

use super::narrow::{Asked, Masks, Narrowed};
use super::shelf::Home;
use super::shelf::{GROUPS_MAX, Shelf};
use super::slices::{self, NONE};
use super::{Index, Query, Rows, Slot, Stack, Test, at};
use std::cmp::Ordering;

/// What one test does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Shown rows that fail the test.
    pub fail: usize,
    /// Shown rows that fail no other test, so that they would match without it.
    pub fail_alone: usize,
    /// The lowest price with extras among those.
    pub cheapest: Option<i64>,
}

/// What each test of a query does, and which row comes nearest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explained {
    /// For each test, in the query's order.
    pub tests: Vec<Cost>,
    /// The shown row that fails the fewest tests; of several, the first by price with extras, tie and
    /// [`Rows::compare`].
    pub nearest: Option<Slot>,
}

/// Bits of a count of failed tests, and so one more than the tests it can count, in bits.
const COUNT_BITS: usize = 7;

/// How far a row is from matching: tests that it fails, price with extras, tie.
type Distance = (usize, i64, u64);

/// The nearest row so far.
#[derive(Debug, Clone, Copy)]
struct Nearest {
    distance: Distance,
    slot: Slot,
}

/// What is found so far, and room to work in.
struct Found {
    costs: Vec<Cost>,
    nearest: Option<Nearest>,
    narrowed: Narrowed,
    /// The rows of the shelf at hand that are looked at.
    rows: Masks,
    /// For each test the rows of the shelf at hand that fail it.
    failing: Vec<Masks>,
}

impl Index {
    /// Looks at all shown rows for what keeps them from matching.
    #[must_use]
    pub fn explain(&self, query: &Query, rows: &impl Rows) -> Explained {
        let asked = self.asked(query, rows);
        let mut found = Found {
            costs: vec![Cost::default(); query.tests.len()],
            nearest: None,
            narrowed: Narrowed::new(),
            rows: [NONE; GROUPS_MAX],
            failing: vec![[NONE; GROUPS_MAX]; query.tests.len()],
        };
        // Those that may match first: the nearest is soon found, and most others are known to be farther.
        let fails =
            |tests: &[Test], home: &Home| home.map_or(0, |home| asked.fails_of_home(tests, home));
        let mut stacks: Vec<(usize, &Stack)> = self
            .homes
            .iter()
            .filter(|(home, _)| fails(&query.scope, home) == 0)
            .map(|(home, stack)| (fails(&query.tests, home), stack))
            .collect();
        stacks.sort_by_key(|(fails, _)| *fails);
        for (fails, stack) in stacks {
            for (_, number) in stack {
                if let Some(shelf) = self.shelves.get(at(*number)) {
                    asked.explain(shelf, fails, &mut found);
                }
            }
        }
        Explained {
            tests: found.costs,
            nearest: found.nearest.map(|nearest| nearest.slot),
        }
    }
}

impl<R: Rows> Asked<'_, R> {
    /// Adds what the tests do on a shelf whose rows all fail `fails` of those about their home.
    fn explain(&self, shelf: &Shelf, fails: usize, found: &mut Found) {
        let groups = shelf.shown().len();
        self.narrow_to_scope(shelf, &mut found.narrowed);
        found.rows = *found.narrowed.masks();
        let looked_at = slices::count(found.narrowed.rows());
        if looked_at == 0 {
            return;
        }
        let is_far = |nearest: Nearest| nearest.distance.0 < fails;
        let counts_alone = fails < 2 || !found.nearest.is_some_and(is_far);
        for (test, cost) in found.costs.iter_mut().enumerate() {
            self.narrow_to(shelf, &found.rows, test, &mut found.narrowed);
            cost.fail += looked_at - slices::count(found.narrowed.rows());
            if counts_alone && let Some(failing) = found.failing.get_mut(test) {
                *failing = without(&found.rows, found.narrowed.masks());
            }
        }
        if !counts_alone {
            return;
        }
        let failed = Failed::of(&found.rows, &found.failing);
        let least = self.extra_bounds(shelf).0;
        let least = least.saturating_add(shelf.bounds(self.layout.price).0);
        for (cost, failing) in found.costs.iter_mut().zip(&found.failing) {
            let alone = without(failing, &failed.several);
            let alone = alone.get(..groups).unwrap_or_default();
            let fail_alone = slices::count(alone);
            cost.fail_alone += fail_alone;
            if fail_alone > 0 && cost.cheapest.is_none_or(|cheapest| least < cheapest) {
                slices::for_each(alone, |row| {
                    let total = self.total(shelf, row);
                    cost.cheapest = Some(cost.cheapest.map_or(total, |known| known.min(total)));
                });
            }
        }
        let is_farther = |nearest: Nearest| (failed.fewest, least, 0) > nearest.distance;
        if found.nearest.is_some_and(is_farther) {
            return;
        }
        let near = match failed.fewest {
            0 => (0, failed.none),
            1 => (1, failed.one),
            _ => fewest(&found.rows, &counted(&found.failing, groups)),
        };
        self.approach(shelf, near, least, &mut found.nearest);
    }

    /// Takes the nearest row of a shelf, if it is nearer than the one that is known.
    fn approach(
        &self,
        shelf: &Shelf,
        (fails, rows): (usize, Masks),
        least: i64,
        nearest: &mut Option<Nearest>,
    ) {
        if nearest.is_some_and(|nearest| (fails, least, 0) > nearest.distance) {
            return;
        }
        slices::for_each(&rows, |row| {
            let found = Nearest {
                distance: (fails, self.total(shelf, row), shelf.tie(row)),
                slot: shelf.slot(row),
            };
            let is_nearer = nearest.is_none_or(|known| {
                let order = found.distance.cmp(&known.distance);
                order.then_with(|| self.rows.compare(found.slot, known.slot)) == Ordering::Less
            });
            if is_nearer {
                *nearest = Some(found);
            }
        });
    }
}

/// Rows by how many tests they fail, as far as most need to be known.
struct Failed {
    none: Masks,
    one: Masks,
    several: Masks,
    /// No row fails fewer: 2 where all fail several.
    fewest: usize,
}

impl Failed {
    /// Of these rows, of which those in `failing` fail each test.
    fn of(rows: &Masks, failing: &[Masks]) -> Self {
        let (mut some, mut several) = ([NONE; GROUPS_MAX], [NONE; GROUPS_MAX]);
        for failing in failing {
            let seen = some.iter_mut().zip(several.iter_mut());
            for ((some, several), failing) in seen.zip(failing) {
                let words = some.iter_mut().zip(several.iter_mut());
                for ((some, several), failing) in words.zip(failing) {
                    *several |= *some & failing;
                    *some |= failing;
                }
            }
        }
        let (none, one) = (without(rows, &some), without(&some, &several));
        let is_empty = |rows: &Masks| rows.iter().flatten().all(|word| *word == 0);
        let fewest = match (is_empty(&none), is_empty(&one)) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 2,
        };
        Self {
            none,
            one,
            several,
            fewest,
        }
    }
}

/// The rows of the first that are not of the second.
fn without(rows: &Masks, others: &Masks) -> Masks {
    let mut left = *rows;
    for (left, other) in left.iter_mut().flatten().zip(others.iter().flatten()) {
        *left &= !other;
    }
    left
}

/// How many tests each row fails: the bits of the number, the lowest first.
fn counted(failing: &[Masks], groups: usize) -> [Masks; COUNT_BITS] {
    let mut counts = [[NONE; GROUPS_MAX]; COUNT_BITS];
    // After n tests a count has no more bits than n has.
    for (index, failing) in failing.iter().enumerate() {
        let bits = usize::try_from((index + 1).ilog2() + 1).unwrap_or(COUNT_BITS);
        let mut carries = *failing;
        for count in counts.iter_mut().take(bits) {
            let pairs = count.iter_mut().zip(carries.iter_mut()).take(groups);
            for (count, carries) in pairs {
                for (count, carry) in count.iter_mut().zip(carries) {
                    (*count, *carry) = (*count ^ *carry, *count & *carry);
                }
            }
        }
    }
    counts
}

/// The fewest tests that one of these rows fails, and the rows that fail so few.
fn fewest(rows: &Masks, counts: &[Masks; COUNT_BITS]) -> (usize, Masks) {
    let mut rows = *rows;
    let mut fails = 0;
    for (bit, count) in counts.iter().enumerate().rev() {
        let fewer = without(&rows, count);
        if fewer.iter().flatten().all(|word| *word == 0) {
            fails |= 1 << bit;
        } else {
            rows = fewer;
        }
    }
    (fails, rows)
}
