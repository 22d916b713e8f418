//! The index beside a plain list of rows: every answer the same, whatever was asked and changed.

mod large;

use super::*;
use proptest::prelude::*;
use std::cmp::Ordering;

/// Columns: model, count, price, storage, and three more, the last of them often unknown.
const LAYOUT: Layout = Layout {
    columns: 7,
    model: 0,
    count: 1,
    price: 2,
    extras: &[3, 5],
};

#[derive(Debug, Clone)]
struct Known {
    values: Vec<i64>,
    tie: u64,
    is_shown: bool,
}

/// An index and what should be in it, by slot.
struct Pair {
    index: Index,
    known: BTreeMap<Slot, Known>,
}

/// The first extra costs three times its price, the second a thousandth; one slot in three fails an outside test.
struct Outside<'a>(&'a BTreeMap<Slot, Known>);

impl Rows for Outside<'_> {
    fn extra(&self, which: usize, price: i64) -> i64 {
        if which == 0 {
            price.max(0) * 3
        } else {
            price.max(0) / 1000
        }
    }

    fn holds(&self, test: usize, slot: Slot) -> bool {
        is_outside_met(test, slot)
    }

    fn compare(&self, left: Slot, right: Slot) -> Ordering {
        let rank = |slot| (total(&self.0[&slot]), self.0[&slot].tie, slot);
        rank(left).cmp(&rank(right))
    }
}

fn total(known: &Known) -> i64 {
    known.values[2] + known.values[3] * 3 + known.values[5] / 1000
}

fn is_outside_met(test: usize, slot: Slot) -> bool {
    !(slot.number() + test).is_multiple_of(3)
}

fn meets((place, test): (usize, &Test), slot: Slot, known: &Known) -> bool {
    let value = match test.subject {
        Subject::Column(column) => known.values[column],
        Subject::Total => total(known),
        Subject::Outside => return is_outside_met(place, slot),
    };
    test.ranges
        .iter()
        .any(|(low, high)| *low <= value && value <= *high)
}

/// The places of the tests that a row fails.
fn failed(query: &Query, slot: Slot, known: &Known) -> Vec<usize> {
    let tests = query.tests.iter().enumerate();
    let failed = tests.filter(|test| !meets(*test, slot, known));
    failed.map(|(place, _)| place).collect()
}

fn order_key(order: Order, known: &Known) -> i64 {
    match order {
        Order::Total | Order::Outside => 0,
        Order::Column {
            column,
            is_descending,
        } => match known.values[column] {
            UNKNOWN => i64::MAX,
            value if is_descending => -value,
            value => value,
        },
    }
}

impl Pair {
    fn new() -> Self {
        Self {
            index: Index::new(LAYOUT),
            known: BTreeMap::new(),
        }
    }

    fn shown(&self) -> impl Iterator<Item = (&Slot, &Known)> {
        self.known.iter().filter(|(_, known)| known.is_shown)
    }

    /// The rows that a query is about.
    fn looked_at<'a>(&'a self, query: &'a Query) -> impl Iterator<Item = (&'a Slot, &'a Known)> {
        let is_seen = |known: &Known| query.sees_all || known.is_shown;
        let in_scope = move |(slot, known): &(&Slot, &Known)| {
            is_seen(known)
                && query
                    .scope
                    .iter()
                    .all(|test| meets((0, test), **slot, known))
        };
        self.known.iter().filter(in_scope)
    }

    fn check(&self, query: &Query) {
        let mut found: Vec<_> = self
            .looked_at(query)
            .filter(|(slot, known)| failed(query, **slot, known).is_empty())
            .map(|(slot, known)| {
                (
                    order_key(query.order, known),
                    total(known),
                    known.tie,
                    *slot,
                )
            })
            .collect();
        found.sort_unstable();
        let rows = Outside(&self.known);
        let matches = self.index.search(query, &rows);
        assert_eq!(matches.count, found.len(), "{query:?}");
        let first: Vec<Slot> = found.iter().map(|at| at.3).take(query.wanted).collect();
        assert_eq!(matches.first, first, "{query:?}");
        self.check_explanation(query);
        assert_eq!(self.index.shown(), self.shown().count());
        assert_eq!(self.index.rows(), self.known.len());
    }

    fn check_explanation(&self, query: &Query) {
        let explained = self.index.explain(query, &Outside(&self.known));
        let mut costs = vec![Cost::default(); query.tests.len()];
        let mut nearest = None;
        for (slot, known) in self.looked_at(query) {
            let failed = failed(query, *slot, known);
            for test in &failed {
                costs[*test].fail += 1;
            }
            if let [only] = *failed {
                let cost = &mut costs[only];
                cost.fail_alone += 1;
                let cheapest = cost.cheapest.unwrap_or(i64::MAX);
                cost.cheapest = Some(total(known).min(cheapest));
            }
            let at = (failed.len(), total(known), known.tie, *slot);
            nearest = Some(nearest.map_or(at, |known: (usize, i64, u64, Slot)| known.min(at)));
        }
        assert_eq!(explained.tests, costs, "{query:?}");
        assert_eq!(explained.nearest, nearest.map(|at| at.3), "{query:?}");
    }

    fn insert(&mut self, known: Known) {
        let row = Row {
            values: &known.values,
            tie: known.tie,
        };
        let slot = self.index.insert(&row, known.is_shown);
        assert!(
            self.known.insert(slot, known).is_none(),
            "a slot given twice"
        );
    }

    fn nth(&self, number: usize) -> Option<Slot> {
        let count = self.known.len().max(1);
        self.known.keys().nth(number % count).copied()
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Insert(known) => self.insert(known),
            Change::Remove(number) => {
                if let Some(slot) = self.nth(number) {
                    self.index.remove(slot);
                    self.known.remove(&slot);
                }
            }
            Change::Show(number, is_shown) => {
                if let Some(slot) = self.nth(number) {
                    self.index.show(slot, is_shown);
                    self.known.get_mut(&slot).unwrap().is_shown = is_shown;
                }
            }
            Change::Update(number, known) => {
                if let Some(slot) = self.nth(number) {
                    self.update(slot, known.values, known.tie);
                }
            }
            Change::Reprice(number, price) => {
                if let Some(slot) = self.nth(number) {
                    self.reprice(slot, price);
                }
            }
        }
    }

    fn update(&mut self, slot: Slot, values: Vec<i64>, tie: u64) {
        let known = self.known.get_mut(&slot).unwrap();
        let row = Row {
            values: &values,
            tie,
        };
        self.index.update(slot, &known.values, &row);
        (known.values, known.tie) = (values, tie);
    }

    fn reprice(&mut self, slot: Slot, price: i64) {
        let known = &self.known[&slot];
        let mut values = known.values.clone();
        values[2] = price;
        self.update(slot, values, known.tie);
    }
}

#[derive(Debug, Clone)]
enum Change {
    Insert(Known),
    Remove(usize),
    Show(usize, bool),
    Update(usize, Known),
    Reprice(usize, i64),
}

fn rows() -> impl Strategy<Value = Known> {
    let maybe = prop_oneof![Just(UNKNOWN), 0..5_i64, -1_000_000..1_000_000_i64];
    let fields = (
        0..3_i64,
        1..4_i64,
        price(),
        0..3_i64,
        0..100_i64,
        0..1_000_000_i64,
        maybe,
    );
    (fields, 0..3_u64, prop::bool::weighted(0.9)).prop_map(|(fields, tie, is_shown)| {
        let (model, count, price, storage, few, many, maybe) = fields;
        Known {
            values: vec![model, count, price, storage, few, many, maybe],
            tie,
            is_shown,
        }
    })
}

fn price() -> impl Strategy<Value = i64> {
    prop_oneof![0..20_i64, 0..1_000_000_i64]
}

fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => rows().prop_map(Change::Insert),
        2 => any::<usize>().prop_map(Change::Remove),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(at, is)| Change::Show(at, is)),
        2 => (any::<usize>(), rows()).prop_map(|(at, known)| Change::Update(at, known)),
        2 => (any::<usize>(), price()).prop_map(|(at, price)| Change::Reprice(at, price)),
    ]
}

fn tests() -> impl Strategy<Value = Test> {
    let range = prop_oneof![
        (0..5_i64).prop_map(|value| vec![(value, value)]),
        (0..100_i64).prop_map(|value| vec![(value, i64::MAX)]),
        (0..1_000_000_i64).prop_map(|value| vec![(UNKNOWN + 1, value)]),
        (0..1_000_000_i64).prop_map(|value| vec![(value, i64::MAX)]),
        (0..5_i64).prop_map(|value| vec![(UNKNOWN + 1, value - 1), (value + 1, i64::MAX)]),
        (0..400_000_i64).prop_map(|value| vec![(0, 0), (2, 5), (value + 7, value + 300_000)]),
    ];
    let subject = prop_oneof![
        6 => (0..7_usize).prop_map(Subject::Column),
        2 => Just(Subject::Total),
        1 => Just(Subject::Outside),
    ];
    (subject, range).prop_map(|(subject, ranges)| Test { subject, ranges })
}

fn queries() -> impl Strategy<Value = Query> {
    let order = prop_oneof![
        3 => Just(Order::Total),
        1 => Just(Order::Outside),
        2 => (0..7_usize, any::<bool>())
            .prop_map(|(column, is_descending)| Order::Column { column, is_descending }),
    ];
    let scope = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec(tests(), 1..3),
    ];
    let tests = prop::collection::vec(tests(), 0..6);
    let sees_all = prop::bool::weighted(0.2);
    (scope, sees_all, tests, order, 0..30_usize).prop_map(
        |(mut scope, sees_all, tests, order, wanted)| {
            scope.retain(|test| test.subject != Subject::Outside);
            Query {
                scope,
                sees_all,
                tests,
                order,
                wanted,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn small_books_answer_like_a_list(
        changes in prop::collection::vec(changes(), 0..300),
        queries in prop::collection::vec(queries(), 1..20),
    ) {
        let mut pair = Pair::new();
        for (number, change) in changes.into_iter().enumerate() {
            pair.apply(change);
            if number % 50 == 0 {
                pair.check(&queries[0]);
            }
        }
        queries.iter().for_each(|query| pair.check(query));
    }
}
