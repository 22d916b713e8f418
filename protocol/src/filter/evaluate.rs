//! Whether an offer meets a filter, and which of two comes first. Pure: the same answer at broker and client.
//!
//! A fact that is not known (a driver that does not say, a GPU's field on a CPU machine) meets no condition
//! at all, also not `!=`.

use super::facts::{Fact, Facts, spaced};
use super::field::{Field, Kind};
use super::model::ModelName;
use super::profile::EITHER;
use super::{Comparison, Direction, Filter, SortKey, TERMS_MAX, Term, Test, Value};
use crate::terms::Need;
use std::cmp::Ordering;

/// A filter made ready to be held against many offers.
#[derive(Debug, Clone)]
pub struct Prepared {
    terms: Vec<PreparedTerm>,
    need: Need,
    /// Whether it says which slices are looked at; else none are.
    sees_slices: bool,
}

#[derive(Debug, Clone)]
struct PreparedTerm {
    field: Field,
    comparison: Comparison,
    /// What to compare with; more than one only under `Equal` and `NotEqual`.
    wanted: Vec<Wanted>,
}

#[derive(Debug, Clone)]
enum Wanted {
    Number(i64),
    Version([u32; 4]),
    Flag(bool),
    Choice(String),
    Words(String),
    Profile(String),
    Model(ModelName),
    Id(String),
}

/// Which terms of a filter an offer fails, a bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Failed(u32);

const _: () = assert!(TERMS_MAX <= 32, "a bit for each term");

impl Failed {
    /// Whether it fails none.
    #[must_use]
    pub const fn none(self) -> bool {
        self.0 == 0
    }

    /// How many it fails.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether it fails the term at `index`.
    #[must_use]
    pub const fn has(self, index: usize) -> bool {
        index < TERMS_MAX && self.0 >> index & 1 == 1
    }

    /// Whether the term at `index` is the only one that it fails.
    #[must_use]
    pub const fn is_only(self, index: usize) -> bool {
        index < TERMS_MAX && self.0 == 1 << index
    }
}

impl Filter {
    /// The filter, ready for use, with `need` to price with.
    #[must_use]
    pub fn prepare(&self, need: Need) -> Prepared {
        Prepared {
            terms: self.terms.iter().map(PreparedTerm::of).collect(),
            need,
            sees_slices: self.names_partition(),
        }
    }
}

impl Prepared {
    /// Whether an offer is looked at, and meets every term.
    #[must_use]
    pub fn matches(&self, facts: &Facts) -> bool {
        let mut terms = self.terms.iter();
        self.looks_at(facts) && terms.all(|term| term.holds(facts, self.need))
    }

    /// Whether an offer is looked at: a slice only where the filter says which. No explanation counts others.
    #[must_use]
    pub fn looks_at(&self, facts: &Facts) -> bool {
        self.sees_slices || !facts.is_slice()
    }

    /// The terms that an offer fails.
    #[must_use]
    pub fn failed(&self, facts: &Facts) -> Failed {
        let mut failed = 0;
        for (index, term) in self.terms.iter().enumerate().take(TERMS_MAX) {
            failed |= u32::from(!term.holds(facts, self.need)) << index;
        }
        Failed(failed)
    }
}

impl PreparedTerm {
    fn of(term: &Term) -> Self {
        let field = term.field();
        let (comparison, values) = match term.test() {
            Test::Compare(comparison, value) => (*comparison, std::slice::from_ref(value)),
            Test::In(values) => (Comparison::Equal, &**values),
            Test::NotIn(values) => (Comparison::NotEqual, &**values),
        };
        Self {
            field,
            comparison,
            wanted: values.iter().map(|value| wanted(field, value)).collect(),
        }
    }

    fn holds(&self, facts: &Facts, need: Need) -> bool {
        let fact = facts.fact(self.field, need);
        if fact == Fact::Unknown {
            return false;
        }
        let order = || self.wanted.first().and_then(|wanted| wanted.order(fact));
        let is_one = || self.wanted.iter().any(|wanted| wanted.is(fact, facts));
        match self.comparison {
            Comparison::Equal => is_one(),
            Comparison::NotEqual => !is_one(),
            Comparison::Less => order().is_some_and(Ordering::is_lt),
            Comparison::AtMost => order().is_some_and(Ordering::is_le),
            Comparison::AtLeast => order().is_some_and(Ordering::is_ge),
            Comparison::More => order().is_some_and(Ordering::is_gt),
        }
    }
}

fn wanted(field: Field, value: &Value) -> Wanted {
    match value {
        Value::Number(number) => Wanted::Number(*number),
        Value::Version(version) => Wanted::Version(*version),
        Value::Flag(flag) => Wanted::Flag(*flag),
        Value::Text(text) => match field.info().kind {
            Kind::Model => Wanted::Model(ModelName::asked(text)),
            Kind::Id(_) => Wanted::Id(text.to_string()),
            Kind::Words => Wanted::Words(spaced(text)),
            Kind::Profile => Wanted::Profile(text.to_string()),
            Kind::Choice(_) | Kind::Number(_) | Kind::Flag | Kind::Version | Kind::Capability => {
                Wanted::Choice(text.to_string())
            }
        },
    }
}

impl Wanted {
    /// How `fact` lies to this; nothing where there is no order.
    fn order(&self, fact: Fact<'_>) -> Option<Ordering> {
        match (self, fact) {
            (Self::Number(wanted), Fact::Number(number)) => Some(number.cmp(wanted)),
            (Self::Version(wanted), Fact::Version(version)) => Some(version.cmp(wanted)),
            _ => None,
        }
    }

    fn is(&self, fact: Fact<'_>, facts: &Facts) -> bool {
        match (self, fact) {
            (Self::Flag(wanted), Fact::Flag(flag)) => flag == *wanted,
            (Self::Choice(wanted), Fact::Choice(choice)) => choice == wanted,
            (Self::Words(wanted), Fact::Words(words)) => words.contains(wanted.as_str()),
            (Self::Profile(wanted), Fact::Words(profile)) => wanted == EITHER || profile == wanted,
            (Self::Model(wanted), Fact::Model(_)) => facts.model().is_meant_by(wanted),
            (Self::Id(wanted), Fact::Id(_)) => facts.is_called(wanted),
            _ => self.order(fact).is_some_and(Ordering::is_eq),
        }
    }
}

/// The order of two offers by `keys`, then by rank: never equal for two different offers.
#[must_use]
pub fn compare(keys: &[SortKey], need: Need, left: &Facts, right: &Facts) -> Ordering {
    for key in keys {
        let (a, b) = (left.fact(key.field, need), right.fact(key.field, need));
        let order = match key.direction {
            Direction::Descending if a != Fact::Unknown && b != Fact::Unknown => b.cmp(&a),
            Direction::Descending | Direction::Ascending => a.cmp(&b),
        };
        if order.is_ne() {
            return order;
        }
    }
    left.rank(need).cmp(&right.rank(need))
}
